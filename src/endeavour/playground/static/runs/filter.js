/* Which lines of a test set are shown, and in which order: a filter as one types it, and a column to sort by.
 *
 * Knows rows of /api/evaluation as values; not the table. A filter is words that must occur, and conditions such as
 * flag:repetitive, chrf<40 or ratio>1.5; all must hold.
 */

export const FLAGS = {
  repetitive: "loops",
  copied: "copies",
  empty: "empty",
  too_short: "too short",
  too_long: "too long",
};
const NUMBERS = { chrf: "chrf", ratio: "length_ratio", line: "line" };
const COLUMNS = ["line", "source", "hypothesis", "chrf", "length_ratio", "flags"];

const CONDITION = /^(chrf|ratio|line)(<=|>=|<|>|=)(-?[\d.]+)$/i;
const COMPARE = {
  "<": (a, b) => a < b,
  ">": (a, b) => a > b,
  "<=": (a, b) => a <= b,
  ">=": (a, b) => a >= b,
  "=": (a, b) => a === b,
};

/** A filter as a function from a row to whether it is shown. */
function parseFilter(filter) {
  const tests = filter
    .split(/\s+/)
    .filter(Boolean)
    .map((token) => {
      const flag = /^flag:(\w*)$/i.exec(token)?.[1].toLowerCase();
      if (flag !== undefined)
        return (row) => row.flags.some((one) => [one, FLAGS[one], "any"].includes(flag));
      const condition = CONDITION.exec(token);
      if (condition) {
        const [, name, sign, value] = condition;
        return (row) => COMPARE[sign](row[NUMBERS[name.toLowerCase()]], Number(value));
      }
      const word = token.toLowerCase();
      return (row) =>
        ["source", "hypothesis", "reference"].some((column) => row[column].toLowerCase().includes(word));
    });
  return (row) => tests.every((test) => test(row));
}

/** The filter with a token added, or without it if it is there. */
export function toggled(filter, token) {
  const tokens = filter.split(/\s+/).filter(Boolean);
  return (tokens.includes(token) ? tokens.filter((one) => one !== token) : [...tokens, token]).join(" ");
}

/** Whether a filter has a token. */
export const has = (filter, token) => filter.split(/\s+/).includes(token);

/** `sort` as [column, descending]; the order of the file where it is empty or makes no sense. */
export function parseSort(sort) {
  const column = sort.replace(/^-/, "");
  return COLUMNS.includes(column) ? [column, sort.startsWith("-")] : ["line", false];
}

/** The rows that a filter lets through, sorted; rows that are alike stay in the order of the file. */
export function arranged(rows, filter, sort) {
  const [column, descending] = parseSort(sort);
  const kept = rows.filter(parseFilter(filter));
  const value = column === "flags" ? (row) => row.flags.length : (row) => row[column];
  const compare = (a, b) => {
    const [x, y] = [value(a), value(b)];
    return typeof x === "string" ? x.localeCompare(y, "en") : x - y;
  };
  return kept.sort((a, b) => (descending ? -compare(a, b) : compare(a, b)) || a.line - b.line);
}
