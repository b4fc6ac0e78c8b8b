/* The translation, as it is streamed and then as words that can be questioned: alternatives at every piece, and
 * typing over it, both of which force the beginning and let the model go on.
 *
 * Knows the search's result and the forced prefix; not how either is shown elsewhere.
 */

import { openAlternatives } from "./alternatives.js";
import { h } from "./dom.js";
import { forcedCount } from "./forcing.js";
import { beginsWord, decimal, label, spoken } from "./format.js";
import { mountHypotheses } from "./hypotheses.js";
import { roving, setRoving } from "./keys.js";
import { parsePrefix } from "./state.js";
import { typeOver } from "./typing.js";

const END = "</s>";
const SAY_AFTER = 700; // ms without a change before the translation is read out

const apart = (piece) => beginsWord(piece) || piece === END;

/** Fills the right card and keeps it up to date. */
export function mountTranslation(context) {
  const { state, search, forcing } = context;
  const output = document.getElementById("output");
  const undo = document.getElementById("undo");
  let shown = null; // {ids, pieces} of the translation whose words can be questioned
  let typing = null; // the field in which a word is typed over
  let focusNext = null; // the position that gets the focus once the translation is there
  let saying = 0;

  mountHypotheses(document.getElementById("hypotheses"), context);
  roving(output, ".piece");
  undo.addEventListener("click", () => forcing.undo());

  function showPieces() {
    const chosen = search.chosen();
    if (chosen?.hypothesis) show(chosen.ids, chosen.hypothesis.pieces);
    else if (chosen) showUnknown(chosen.ids);
  }

  // A translation that the search did not find, but that the visitor chose.
  async function showUnknown(ids) {
    const analysis = await context.results.analysis()?.catch(() => null);
    const stillChosen = search.chosen()?.ids.join(".") === ids.join(".");
    if (analysis && stillChosen && !typing) show(ids, analysis.target);
  }

  function show(ids, pieces) {
    shown = { ids, pieces };
    const forced = forcedCount(state.get().p, pieces);
    const hadFocus = output.contains(document.activeElement) ? Number(document.activeElement.dataset.position) : null;
    const buttons = pieces.map(({ piece }, position) => pieceButton(piece, position, position < forced));
    output.replaceChildren(...buttons.flatMap((button, i) => (i && apart(pieces[i].piece) ? [" ", button] : [button])));
    const position = focusNext ?? hadFocus;
    setRoving(buttons, position ?? forced);
    if (position !== null) buttons[Math.min(position, buttons.length - 1)].focus();
    focusNext = null;
  }

  function pieceButton(piece, position, forced) {
    const end = piece === END;
    const text = end ? "end" : spoken(piece).trimStart() || label(piece);
    const name = [end ? "end of the sentence" : text, forced && "forced"].filter(Boolean).join(", ");
    return h("span",
      { role: "button", class: ["piece", forced && "forced", end && "end"], "data-position": position, "aria-haspopup": "dialog", "aria-label": name },
      text,
    );
  }

  function showStream(text) {
    const forced = forcedText();
    const [head, tail] = text.startsWith(forced) ? [forced, text.slice(forced.length)] : ["", text];
    output.replaceChildren(head && h("span", { class: "forced" }, head), h("span", { class: "arriving" }, tail));
  }

  /** The forced part of the translation as it reads. */
  function forcedText() {
    const { prefix, typed } = search.current;
    return (prefix.map(({ piece }) => spoken(piece)).join("") + typed).trimStart();
  }

  function begin(position, letter) {
    const { ids, pieces } = shown;
    typing = typeOver(output, pieces, position, letter, {
      onChange: (typed, more) => forcing.force(ids.slice(0, position), typed, more),
      onEnd(kept) {
        typing = null;
        focusNext = position;
        if (kept) focusNext = forcedCount(state.get().p, search.chosen()?.hypothesis?.pieces ?? []);
        else forcing.undo();
        if (search.current.done) showPieces();
      },
    });
    context.announce(`Typing over ${label(pieces[position].piece)}`);
  }

  function ask(button) {
    const position = Number(button.dataset.position);
    const { ids, pieces } = shown;
    openAlternatives(context, button, pieces, position, {
      onChoose(alternative) {
        focusNext = position + 1;
        if (alternative.piece === END) state.set({ t: ids.slice(0, position).join(".") }, { push: true });
        else forcing.force([...ids.slice(0, position), alternative.id]);
      },
      onType: () => begin(position, ""),
    });
  }

  output.addEventListener("click", ({ target }) => target.matches(".piece") && ask(target));
  output.addEventListener("keydown", (event) => {
    const { target, key } = event;
    if (!target.matches(".piece") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (key === "Enter" || key === " ") ask(target);
    else if (/^\p{L}$/u.test(key)) begin(Number(target.dataset.position), key);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  search.subscribe((current) => {
    const { status, text, done, steps } = current;
    output.classList.toggle("stale", status === "running" && !steps);
    showTiming(current);
    undo.hidden = !forcing.able();
    if (typing) typing.follow(text.startsWith(forcedText()) ? text.slice(forcedText().length) : "");
    else if (status === "idle") output.replaceChildren(h("span", { class: "plain" }, "Type a sentence: it is translated as you type."));
    else if (done) showPieces();
    else if (status === "running" && steps && focusNext === null) showStream(text);
    clearTimeout(saying);
    if (done && document.activeElement !== document.getElementById("input")) saying = setTimeout(() => context.announce(text), SAY_AFTER);
  });
  state.subscribe((_, changed) => {
    undo.hidden = !parsePrefix(state.get().p);
    if (changed.has("t") && search.current.done && !typing) showPieces();
  });
}

function showTiming({ done, milliseconds, asked, hypotheses }) {
  const timing = document.getElementById("timing");
  if (!done) return;
  timing.textContent = `beam ${asked.beam_size} · score ${decimal(hypotheses[0]?.score ?? 0)} · ${Math.round(milliseconds)} ms`;
}
