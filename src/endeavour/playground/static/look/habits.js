/* What the chosen head does in numbers: how far from the word its weight goes, and how spread each word's weight is.
 *
 * Knows one map, see maps.js.
 */

import { figure } from "../figure.js";
import { MINUS } from "../format.js";
import { bars } from "../charts.js";
import { tableOf } from "../drawing.js";
import { entropies } from "./maps.js";

const FAR = 4; // places from which all distances are one
const ENDS = ["<s>", "</s>"];

/** The share of a map's weight by distance, and on the sign of the beginning or end: [label, share][]. */
function byDistance({ map, rows, columns, values }) {
  const shares = new Array(2 * FAR + 1).fill(0);
  // What was written stands behind its beginning: a piece is in the column after that of its row.
  const shift = map.columnSide === "written" ? 1 : 0;
  let end = 0;
  values.forEach((row, i) =>
    row.forEach((value, j) => {
      if (ENDS.includes(columns[j].text)) end += value ?? 0;
      else shares[Math.min(FAR, Math.max(-FAR, j - i - shift)) + FAR] += value ?? 0;
    }),
  );
  const sign = columns.find(({ text }) => ENDS.includes(text))?.text ?? "</s>";
  const labels = shares.map((_, i) => distance(i - FAR));
  return [...labels.map((text, i) => [text, shares[i] / rows.length]), [sign, end / rows.length]];
}

const distance = (by) =>
  Math.abs(by) === FAR
    ? by < 0
      ? `\u2264${MINUS}${FAR}`
      : `\u2265+${FAR}`
    : by < 0
      ? `${MINUS}${-by}`
      : by > 0
        ? `+${by}`
        : "0";

/**
 * @param {HTMLElement} root
 */
export function createHabits(root) {
  const far = figure({
    title: "Where the weight goes",
    hint: "By distance, in percent; \u22121 is the place before.",
    label: "Weight by distance",
  });
  const wide = figure({
    title: "How spread it is",
    hint: "Entropy of each row, in bits; 0: all weight in one place.",
    label: "Entropy by row",
  });
  root.append(far.node, wide.node);

  function show(map) {
    const shares = byDistance(map);
    const spread = entropies(map.values);
    const names = map.rows.map(({ text }) => text);
    const rounded = spread.map((value) => value.toFixed(2));
    const note = `${map.title}. ${map.sentence}`;
    const [labels, parts] = [shares.map(([text]) => text), shares.map(([, share]) => share)];
    far.show({
      graphic: bars({
        labels,
        values: parts,
        most: Math.max(0.4, ...parts),
        width: far.stage.clientWidth,
        format: (value) => String(Math.round(100 * value)),
      }),
      json: { title: map.title, shares: Object.fromEntries(shares) },
      note,
      table: () =>
        tableOf(
          shares.map(([text, share]) => [text, `${(100 * share).toFixed(1)} %`]),
          ["Distance", "Share of the weight"],
          map.title,
        ),
    });
    wide.show({
      graphic: bars({
        labels: names,
        values: spread,
        most: Math.max(3, ...spread),
        width: wide.stage.clientWidth,
        format: (value) => value.toFixed(1),
      }),
      json: { title: map.title, rows: names, entropy: spread },
      note,
      table: () =>
        tableOf(
          names.map((text, i) => [text, rounded[i]]),
          ["Row", "Entropy (bits)"],
          map.title,
        ),
    });
  }
  return { show };
}
