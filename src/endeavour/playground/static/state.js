/* What is chosen on the page: one store, mirrored in the address's hash so that an address restores everything.
 *
 * Knows the keys, their types and defaults, and the browser's history; not what any key means to a view.
 */

const text = { fallback: "", parse: (value) => value };
const number = {
  fallback: null,
  parse: (value) => (value !== "" && Number.isFinite(Number(value)) ? Number(value) : null),
};
const flag = { fallback: false, parse: (value) => value === "1" };
const count = (fallback = null) => ({
  fallback,
  parse: (value) => (/^\d+$/.test(value) ? Number(value) : fallback),
});
const choice = (fallback, ...others) => ({
  fallback,
  parse: (value) => (others.includes(value) ? value : fallback),
});

const KEYS = {
  v: choice("look", "search", "runs", "learn"), // the view
  run: text, // the system; empty: the server's default
  q: text, // the sentence to translate
  p: text, // the forced prefix: "ids, dot-separated~typed text"
  t: text, // the chosen translation's ids, see printIds; empty: the best hypothesis
  ref: text, // a translation to score beside the search
  beam: count(), // null: as the run was configured
  lp: number, // length penalty, likewise
  node: count(), // the chosen node of the search
  at: count(), // the step of the search that is shown; null: the last
  kind: choice("cross", "encoder", "decoder"), // which attention
  map: choice("attention", "saliency"), // what Look's large picture shows
  layer: count(), // 0-based; null: the view's own choice
  head: count("avg"), // likewise; "avg": the mean of all
  words: flag, // pieces joined into words
  step: count(0), // Learn: the step that is open
  source: count(), // Learn: the piece that is followed; null: one in the middle
  target: count(), // likewise
  key: count(), // Learn: what the query attends to; null: most
  w: text, // Runs: further systems, comma-separated
  set: text, // Runs: "run/evaluation folder"
  sort: text,
  filter: text,
};

/** What another search of the same sentence leaves behind. */
export const NEW_SEARCH = { t: "", node: null, at: null, target: null, key: null };

/** What a new sentence leaves behind. */
export const NEW_SENTENCE = { ...NEW_SEARCH, p: "", ref: "", source: null };

const DELAY = 250; // ms; browsers limit how often the address may change, and typing changes it with every key

/** The state an address's hash describes; keys it lacks, or that make no sense, have their defaults. */
function parseHash(hash) {
  const query = new URLSearchParams(hash.replace(/^#/, ""));
  const state = {};
  for (const [key, kind] of Object.entries(KEYS)) {
    state[key] = query.has(key) ? kind.parse(query.get(key)) : kind.fallback;
  }
  return state;
}

/** The shortest hash that describes a state: keys at their default are left out. */
function printHash(state) {
  const query = new URLSearchParams();
  for (const [key, kind] of Object.entries(KEYS)) {
    if (state[key] !== kind.fallback) query.set(key, state[key] === true ? 1 : state[key]);
  }
  const printed = query.toString();
  return printed ? `#${printed}` : "";
}

/**
 * A store over the window's address.
 *
 * @returns {{get: () => object, set: (patch: object, options?: {push?: boolean}) => void,
 *   subscribe: (listener: (state: object, changed: Set<string>) => void) => void, address: (patch: object) => string}}
 */
export function createState() {
  const listeners = [];
  let current = Object.freeze(parseHash(location.hash));
  let timer = 0;

  const url = (state = current) => location.pathname + location.search + printHash(state);

  function write(push) {
    clearTimeout(timer);
    timer = 0;
    if (push) history.pushState(null, "", url());
    else history.replaceState(null, "", url());
  }

  /** Makes `next` the state, and writes the address before anybody hears of it. */
  function take(next, writeAddress) {
    const changed = new Set(Object.keys(KEYS).filter((key) => next[key] !== current[key]));
    if (!changed.size) return;
    current = Object.freeze(next);
    writeAddress();
    for (const listener of listeners) listener(current, changed);
  }

  function set(patch, { push = false } = {}) {
    for (const key of Object.keys(patch)) if (!(key in KEYS)) throw new Error(`state has no key ${key}`);
    if (push && timer) write(false); // the entry that is left keeps what was typed
    take({ ...current, ...patch }, () => {
      if (push) write(true);
      else timer ||= setTimeout(() => write(false), DELAY);
    });
  }

  addEventListener("popstate", () => {
    clearTimeout(timer);
    timer = 0;
    take(parseHash(location.hash), () => {});
  });
  addEventListener("pagehide", () => timer && write(false));

  return {
    get: () => current,
    set,
    subscribe(listener) {
      listeners.push(listener);
    },
    address: (patch) => location.origin + url({ ...current, ...patch }),
  };
}

/** A translation's ids as `t` has them: dot-separated; "-" where there are none. */
export const printIds = (ids) => ids.join(".") || "-";

/** Ids of a dot-separated list, as `t` and `p` have them. */
export const parseIds = (list) => (list ? list.split(".").map(Number).filter(Number.isInteger) : []);

/** A forced prefix as the server wants it, from `p`; null where nothing is forced. */
export function parsePrefix(p) {
  if (!p) return null;
  const cut = p.indexOf("~");
  const ids = parseIds(cut < 0 ? p : p.slice(0, cut));
  const typed = cut < 0 ? "" : p.slice(cut + 1);
  return ids.length || typed ? { ids, text: typed } : null;
}

/** The inverse of `parsePrefix`. */
export const printPrefix = (ids, typed = "") => ids.join(".") + (typed ? `~${typed}` : "");
