/* What the logs of several runs come to: series for the curves, a table, a line of text about one update.
 *
 * Knows the lines of log.js; not how curves are drawn.
 */

import { decimal, thousands } from "../format.js";
import { tableOf } from "../drawing.js";

/** Loss, BLEU and learning rate over the updates, as `curves` takes them. */
export function panelsOf(logs) {
  const series = (kind, key, name, dots) =>
    logs
      .map((log, run) => {
        const lines = log[kind].filter((line) => Number.isFinite(line[key]));
        return { run, kind: name, dots, points: lines.map((line) => [line.update, line[key]]) };
      })
      .filter(({ points }) => points.length);
  const small = (value) => (value === 0 ? "0" : value.toExponential().replace("e-", "e−"));
  return [
    {
      title: "loss: training (thin) and validation (dots)",
      height: 150,
      series: [...series("train", "loss", "thin", false), ...series("validation", "loss", "thick", true)],
    },
    {
      title: "validation BLEU",
      height: 120,
      series: series("validation", "bleu", "thick", true),
    },
    {
      title: "learning rate",
      height: 60,
      format: small,
      series: series("train", "learning_rate", "thick", false),
    },
  ].filter((panel) => panel.series.length);
}

/** The validations of all runs. */
export function tableOfLogs(logs) {
  const rows = logs.flatMap((log, i) =>
    log.validation.map((line) => [
      `${i + 1} ${log.run}`,
      thousands(line.update),
      number(line.loss, 3),
      number(line.perplexity, 2),
      number(line.bleu, 2),
    ]),
  );
  return tableOf(rows, ["run", "update", "validation loss", "perplexity", "BLEU"]);
}

/** For each run what was logged nearest to an update. */
export function linesNear(logs, update) {
  const near = (lines) =>
    lines.reduce(
      (best, line) =>
        best && Math.abs(best.update - update) <= Math.abs(line.update - update) ? best : line,
      null,
    );
  return logs.flatMap((log, i) => {
    const [train, validation] = [near(log.train), near(log.validation)];
    if (!train) return [];
    const validated = validation
      ? `, BLEU ${number(validation.bleu, 1)} at ${thousands(validation.update)}`
      : "";
    return [`${i + 1} update ${thousands(train.update)}: loss ${number(train.loss, 3)}${validated}`];
  });
}

/** A number of a log, where null stands for none: a loss may have become infinite. */
export const number = (value, digits) =>
  value === null || value === undefined ? "–" : decimal(value, digits);
