/* Trainings, under way or finished: curves of the runs that are compared, and, validation by validation, where one
 * sentence's pieces look and what is translated by now.
 *
 * Follows the logs of a few runs as they grow; knows their lines, not how they are trained.
 */

import { card, h } from "../dom.js";
import { figure } from "../figure.js";
import { label, thousands } from "../format.js";
import { attentionMatrix } from "./attention.js";
import { curves } from "./curves.js";
import { followLog } from "./log.js";
import { linesNear, number, panelsOf, tableOfLogs } from "./panels.js";
import { createSamples } from "./samples.js";
import { announce } from "../messages.js";
import { foldOf } from "../systems.js";
import { tooltip } from "../tooltip.js";

const MOST = 4; // runs at a time

export function createTraining({ systems }) {
  const legend = h("ul", { class: "legend" });
  const plot = figure({
    title: "Curves",
    label: "Loss, BLEU and learning rate over the updates. Arrow keys move along the updates.",
    onKey,
  });
  const maps = figure({
    title: "One sentence’s attention",
    label: "Cross-attention of the last layer on one validation sentence",
  });
  const slider = h("input", {
    type: "range",
    min: 0,
    max: 0,
    value: 0,
    id: "validation",
    oninput: () => ((pinned = slider.valueAsNumber < Number(slider.max)), showAttention()),
  });
  const samples = createSamples();
  const which = h("output", { for: "validation" });
  const whose = h("select", {
    "aria-label": "Run whose attention is shown",
    onchange: () => (([asked, pinned] = [true, false]), showAttention()),
  });
  maps.node.insertBefore(
    h("div", { class: "scrub" }, whose, h("label", { for: "validation" }, "Validation"), slider, which),
    maps.stage,
  );
  const node = card(
    "training",
    "Training",
    h("p", { class: "hint" }, `Those being trained now, and the runs compared above; ${MOST} at the most.`),
    legend,
    h("div", { class: "split" }, plot.node, maps.node),
    samples.node,
  );
  let logs = [];
  let drawn = null;
  let place = null; // the update that is pointed at
  let asked = false; // somebody chose whose attention is shown
  let pinned = false; // a validation was chosen; otherwise the newest is shown

  const isTraining = (name) => Boolean(systems.runOf(name)?.training);

  /** Follows these runs, by name, and no others. */
  function follow(names) {
    const wanted = [...new Set(names)].slice(0, MOST);
    const goesOn = (log) => wanted.includes(log.run) && !(log.ended && isTraining(log.run));
    for (const log of logs) if (!goesOn(log)) log.close();
    logs = wanted.map(
      (name) => logs.find((log) => log.run === name && goesOn(log)) ?? followLog(name, changed),
    );
    const before = whose.value;
    whose.replaceChildren(...wanted.map((name) => h("option", { value: name }, name)));
    const live = wanted.find(isTraining);
    whose.value = asked && wanted.includes(before) ? before : (live ?? wanted[0] ?? "");
    whose.hidden = wanted.length < 2;
    show();
  }

  function close() {
    for (const log of logs) log.close();
    logs = [];
  }

  function changed(log) {
    const live = log.train.at(-1);
    if (live && !log.ended && isTraining(log.run) && log.validation.length > (log.told ?? 0)) {
      if (log.told !== undefined)
        announce(
          `${log.run}: update ${log.validation.at(-1).update}, BLEU ${number(log.validation.at(-1).bleu, 1)}`,
        );
      log.told = log.validation.length;
    }
    show();
  }

  function show() {
    legend.replaceChildren(...logs.map((log, i) => legendEntry(log, i, isTraining(log.run))));
    const width = plot.stage.clientWidth || 600;
    drawn = curves(panelsOf(logs), width, point);
    plot.show({
      graphic: drawn.node,
      table: () => tableOfLogs(logs),
      json: logs.map(({ run, train, validation }) => ({ run, train, validation })),
      name: "Training curves",
    });
    if (place !== null) drawn.mark(place);
    showAttention();
  }

  /** The lines next to an update, of each run. */
  function point(update) {
    place = update;
    drawn.mark(update);
    const rows = update === null ? [] : linesNear(logs, update);
    if (rows.length) tooltip.show(drawn.line, ...rows.map((row) => h("div", {}, row)));
    else tooltip.hide();
  }

  function onKey({ key }) {
    const updates = [...new Set(logs.flatMap((log) => log.validation.map(({ update }) => update)))].sort(
      (a, b) => a - b,
    );
    if (!["ArrowLeft", "ArrowRight", "Home", "End"].includes(key) || !updates.length) return false;
    const next =
      { Home: updates[0], End: updates.at(-1) }[key] ??
      (key === "ArrowLeft"
        ? (updates.findLast((update) => update < (place ?? Infinity)) ?? updates[0])
        : (updates.find((update) => update > (place ?? -1)) ?? updates.at(-1)));
    point(next);
    announce(
      logs
        .map((log, i) => [i + 1, log.validation.find(({ update }) => update === next)])
        .filter(([, line]) => line)
        .map(
          ([mark, line]) =>
            `${mark} update ${next}: loss ${number(line.loss, 2)}, BLEU ${number(line.bleu, 1)}`,
        )
        .join("; "),
    );
    return true;
  }

  function showAttention() {
    const log = logs.find(({ run }) => run === whose.value) ?? logs[0];
    const pictures = log?.attention ?? [];
    maps.node.hidden = !pictures.length;
    const [languages, fold] = [systems.languages(log?.run), foldOf(systems.runOf(log?.run))];
    if (!pictures.length) {
      samples.show(log?.samples.at(-1), languages, fold);
      return;
    }
    slider.max = pictures.length - 1;
    if (!pinned) slider.value = slider.max;
    const picture = pictures[Math.min(slider.valueAsNumber, pictures.length - 1)];
    const bleu = log.validation.find(({ update }) => update === picture.update)?.bleu;
    samples.show(
      log.samples.find(({ update }) => update === picture.update),
      languages,
      fold,
    );
    which.textContent = `update ${thousands(picture.update)}${bleu === undefined ? "" : `, BLEU ${number(bleu, 1)}`}`;
    slider.setAttribute("aria-valuetext", which.textContent);
    const [rows, columns] = [picture.target, picture.source].map((pieces) => pieces.map(label));
    maps.show({
      ...attentionMatrix({
        rows,
        columns,
        values: picture.weights,
        width: maps.stage.clientWidth || 360,
        sides: [10, 24],
        caption: which.textContent,
      }),
      json: picture,
      name: `Attention of ${log.run} at update ${picture.update}`,
    });
  }

  return {
    node,
    follow,
    close,
    show,
  };
}

/** What the legend says of a run, whose curve is the i-th. */
function legendEntry(log, i, isTraining) {
  const [train, validation] = [log.train.at(-1), log.validation.at(-1)];
  const status = statusOf(log, isTraining);
  const facts = [
    train && `update ${thousands(Math.max(train.update, validation?.update ?? 0))}`,
    train && `loss ${number(train.loss, 3)}`,
    validation && `BLEU ${number(validation.bleu, 1)}`,
    train && !log.ended && `${thousands(Math.round(train.tokens_per_second))} tokens/s`,
    log.damaged && `damaged lines in its log: ${thousands(log.damaged)}`,
  ];
  return h(
    "li",
    { class: `run-${i}`, "data-run": log.run, "data-status": status === "training" ? "live" : "still" },
    h("span", { class: "swatch", "aria-hidden": "true" }, i + 1),
    h("b", {}, log.run),
    h("span", { class: "state" }, status),
    h("span", { class: "hint" }, facts.filter(Boolean).join(" · ")),
  );
}

function statusOf({ lost, ended, train }, isTraining) {
  if (lost) return lost;
  if (ended) return "finished";
  if (!train.length) return "no line yet";
  return isTraining ? "training" : "not training now";
}
