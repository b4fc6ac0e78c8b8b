/* What is looked at in Learn: which attention, layer and head, and which pieces are followed.
 *
 * Knows the answer of /api/learn; reports choices and keeps none.
 */

import { h, segments } from "../dom.js";
import { label } from "../format.js";
import { roving, setRoving } from "../keys.js";

const KINDS = { encoder: "Encoder", decoder: "Decoder", cross: "Cross" };

/**
 * @param {{onChoose: (patch: object) => void, onFollow: (patch: object) => void}} on `onChoose` gets keys of the state,
 *   `onFollow` a position of source or target
 */
export function createChoices({ onChoose, onFollow }) {
  const kinds = segments("Which attention", Object.values(KINDS), (i) =>
    onChoose({ kind: Object.keys(KINDS)[i], key: null }),
  );
  const layer = stepper("Layer", (value) => onChoose({ layer: value }));
  const head = stepper("Head", (value) => onChoose({ head: value }));
  const chips = {
    source: followable("Follow in the source", "source", onFollow),
    target: followable("… in the translation", "target", onFollow),
  };
  const cut = h("p", { class: "hint", hidden: true });
  const node = h(
    "div",
    { class: "choices" },
    kinds.node,
    h("div", { class: "steppers" }, layer.node, head.node),
    chips.source.node,
    chips.target.node,
    cut,
  );

  function show(data, followed) {
    kinds.press(Object.keys(KINDS).indexOf(data.kind));
    layer.show(data.layer, layersOf(data.model, data.kind));
    head.show(data.head, data.model.num_heads);
    chips.source.show(data.tokens.source, followed.source, data.kind === "encoder");
    chips.target.show(data.tokens.target_in, followed.target, data.kind !== "encoder");
    cut.hidden = data.components === data.model.width;
    cut.textContent = `Vectors have ${data.model.width} numbers; the first ${data.components} are shown, and lengths are theirs, but for those layer by layer.`;
  }
  return { node, show };
}

/** How many layers of a model have attention of this kind. */
export const layersOf = (model, kind) => (kind === "encoder" ? model.encoder_layers : model.decoder_layers);

/** A number between two buttons. */
function stepper(name, onChange) {
  let [value, count] = [0, 1];
  const button = (sign, by, title) =>
    h(
      "button",
      {
        class: "quiet",
        "aria-label": title,
        onclick: () => onChange((value = (value + by + count) % count)),
      },
      sign,
    );
  const shown = h("output", {});
  const keys = name === "Layer" ? ["[", "]"] : [",", "."];
  const node = h(
    "div",
    { class: "stepper", role: "group", "aria-label": name },
    button("‹", -1, `Previous ${name.toLowerCase()} (key ${keys[0]})`),
    shown,
    button("›", 1, `Next ${name.toLowerCase()} (key ${keys[1]})`),
  );
  return {
    node,
    show(now, all) {
      [value, count] = [now, all];
      shown.textContent = `${name} ${now + 1} of ${all}`;
    },
  };
}

/** Pieces of which one is followed. */
function followable(title, side, onFollow) {
  const list = h("div", { class: "follow", role: "group", "aria-label": title });
  roving(list, "button");
  const node = h("div", {}, h("p", { class: "hint" }, title), list);
  return {
    node,
    show(pieces, chosen, asks) {
      node.classList.toggle("asks", asks);
      const had = list.contains(document.activeElement);
      const buttons = pieces.map(({ piece }, i) =>
        h(
          "button",
          { "aria-pressed": String(i === chosen), onclick: () => onFollow({ [side]: i }) },
          label(piece),
        ),
      );
      list.replaceChildren(...buttons);
      setRoving(buttons, chosen);
      if (had) buttons[chosen].focus();
    },
  };
}
