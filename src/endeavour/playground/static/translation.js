/* The translation, as it is streamed and then as words that can be questioned: alternatives at every piece, and
 * typing over it, both of which force the beginning and let the model go on.
 *
 * Knows the search's result and the forced prefix; not how either is shown elsewhere.
 */

import { openAlternatives } from "./alternatives.js";
import { overtaken } from "./api.js";
import { h } from "./dom.js";
import { forcedCount } from "./forcing.js";
import { decimal, label, readable } from "./format.js";
import { mountHypotheses } from "./hypotheses.js";
import { modified, roving, setRoving } from "./keys.js";
import { NEW_SEARCH, printIds } from "./state.js";
import { typeOver } from "./typing.js";
import { announce, report } from "./messages.js";

const END = "</s>";
const AFTER_FORCED = "after the forced pieces";
const SAY_AFTER = 700; // ms without a change before the translation is read out

/** Fills the right card and keeps it up to date. */
export function mountTranslation(context) {
  const { state, search, forcing, results } = context;
  const output = document.getElementById("output");
  const undo = document.getElementById("undo");
  let shown = null; // {ids, pieces, score} of the translation whose words can be questioned
  let typing = null; // the field in which a word is typed over
  let focusNext = null; // the position that gets the focus once the translation is there
  let saying = 0;

  mountHypotheses(document.getElementById("hypotheses"), context);
  roving(output, ".piece");
  undo.addEventListener("click", () => {
    focusNext = AFTER_FORCED; // if the button goes with the last choice
    forcing.undo();
  });

  function showPieces() {
    const chosen = search.chosen();
    if (chosen?.hypothesis) {
      report(null); // of a translation chosen before
      show(chosen.hypothesis);
    } else if (chosen) showUnknown(chosen.ids);
  }

  // A translation that the search did not find, but that the visitor chose.
  async function showUnknown(ids) {
    try {
      const translation = await results.translation();
      const stillChosen = search.chosen()?.ids.join(".") === ids.join(".");
      if (translation && stillChosen && !typing) show(translation);
    } catch (error) {
      if (!overtaken(error)) report(error.message);
    }
  }

  function show(translation) {
    const { pieces, score } = (shown = translation);
    showTiming(search.current, score);
    const forced = forcedCount(state.get().p, pieces);
    const { activeElement } = document;
    const inside = output.contains(activeElement);
    const hadFocus = inside ? Number(activeElement.dataset.position) : null;
    const buttons = [];
    const line = [];
    readable(pieces).forEach((text, position) => {
      if (/^ |^<\/s>$/.test(text)) line.push(" ");
      if (!text.trim()) return; // a space of its own, or a further byte of a character
      buttons.push(pieceButton(text.trim(), position, position < forced));
      line.push(buttons.at(-1));
    });
    fill(...(line[0] === " " ? line.slice(1) : line));
    const position = focusNext === AFTER_FORCED ? forced : (focusNext ?? hadFocus);
    const at = buttons.findLastIndex((button) => Number(button.dataset.position) <= (position ?? forced));
    setRoving(buttons, at);
    // Whoever has gone to another part of the page meanwhile stays there.
    if (position !== null && (inside || activeElement === document.body)) buttons[Math.max(0, at)].focus();
    focusNext = null;
  }

  function pieceButton(read, position, forced) {
    const end = read === END;
    const text = end ? "end" : read;
    const name = [end ? "end of the sentence" : text, forced && "forced"].filter(Boolean).join(", ");
    return h(
      "span",
      {
        role: "button",
        class: ["piece", forced && "forced", end && "end"],
        "data-position": position,
        "aria-haspopup": "dialog",
        "aria-label": name,
      },
      text,
    );
  }

  function showStream(text) {
    const forced = forcedText();
    const [head, tail] = text.startsWith(forced) ? [forced, text.slice(forced.length)] : ["", text];
    fill(head && h("span", { class: "forced" }, head), tail);
  }

  function fill(...content) {
    output.classList.remove("stale");
    output.replaceChildren(...content);
  }

  /** The forced part of the translation as it reads. */
  function forcedText() {
    const { prefix, typed } = search.current;
    return (readable(prefix).join("") + typed).trimStart();
  }

  async function say() {
    const translation = await results.translation().catch(() => null); // whoever shows it reports why
    if (translation) announce(translation.text, output.lang);
  }

  function begin(position, letter) {
    if (output.matches(".stale")) return; // the pieces are of another question
    const { ids, pieces } = shown;
    const { p, t } = state.get();
    typing = typeOver(output, pieces, position, letter, {
      onChange: (typed, more) => forcing.force(ids.slice(0, position), typed, more),
      onEnd(kept, left) {
        typing = null;
        focusNext = left ? null : kept && state.get().p !== p ? AFTER_FORCED : position;
        if (!kept) state.set({ ...NEW_SEARCH, p, t }, { push: true });
        if (search.current.done) showPieces();
      },
    });
    if (letter) typing.changed();
    announce(`Typing over ${label(pieces[position].piece)}`);
  }

  function ask(button) {
    const position = Number(button.dataset.position);
    const { ids, pieces } = shown;
    openAlternatives(context, button, pieces, position, {
      onChoose(alternative) {
        focusNext = position + 1;
        if (alternative.piece === END) state.set({ t: printIds(ids.slice(0, position)) }, { push: true });
        else forcing.force([...ids.slice(0, position), alternative.id]);
      },
      onType: () => begin(position, ""),
    });
  }

  output.addEventListener("click", ({ target }) => target.matches(".piece") && ask(target));
  output.addEventListener("keydown", (event) => {
    const { target, key } = event;
    if (!target.matches(".piece") || modified(event)) return;
    if (key === "Enter" || key === " ") ask(target);
    else if (/^\p{L}$/u.test(key)) begin(Number(target.dataset.position), key);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  search.subscribe((current) => {
    const { status, text, done, steps, stale, hypotheses } = current;
    if (stale || typing) output.classList.toggle("stale", stale); // pieces stay so until others are shown
    if (status === "idle") document.getElementById("timing").textContent = "";
    undo.hidden = !state.get().p;
    if (stale && status !== "error") return;
    if (typing) {
      typing.follow(text.startsWith(forcedText()) ? text.slice(forcedText().length) : "");
      if (done) showTiming(current, hypotheses[0].score);
    } else if (status === "idle")
      fill(h("span", { class: "plain" }, "Type a sentence: it is translated as you type."));
    else if (done) showPieces();
    else if (status === "running" && steps && focusNext === null && !output.contains(document.activeElement))
      showStream(text);
    clearTimeout(saying);
    if (done && document.activeElement !== document.getElementById("input"))
      saying = setTimeout(say, SAY_AFTER);
  });
  state.subscribe((_, changed) => changed.has("t") && search.current.done && !typing && showPieces());
}

function showTiming({ milliseconds, beam_size: beam }, score) {
  document.getElementById("timing").textContent =
    `beam ${beam} · score ${decimal(score)} · ${Math.round(milliseconds)} ms`;
}
