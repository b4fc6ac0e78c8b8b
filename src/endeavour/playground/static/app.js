/* Builds the page: store, search, the sentence and its translation, four views that are mounted when first shown.
 *
 * Knows every part by its interface and nothing of what a view shows.
 */

import { OFFLINE, get } from "./api.js";
import { createForcing } from "./forcing.js";
import { openHelp } from "./help.js";
import { listenForKeys, roving, setRoving } from "./keys.js";
import { announce, report } from "./messages.js";
import { createResults } from "./results.js";
import { createSearch } from "./searching.js";
import { createState } from "./state.js";
import { createSystems } from "./systems.js";
import { mountSentence } from "./sentence.js";
import { mountTranslation } from "./translation.js";

const LOOK_AGAIN = 3000; // ms after which the runs are asked for again, while somebody sees the page
const ONLY_DRAWN = new Set(["at", "node", "step", "words"]); // keys of the state for which nothing is asked
const VIEWS = ["look", "search", "runs", "learn"];
const $ = (id) => document.getElementById(id);

function wireCopyLink(state, systems) {
  $("copy-link").addEventListener("click", async () => {
    try {
      // Named, because another server, or this one started anew, may have another default.
      await navigator.clipboard.writeText(state.address({ run: state.get().run || systems.default }));
      $("copy-link").textContent = "Copied";
      announce("Link copied");
    } catch {
      announce("The browser does not let this page copy; the address bar has the link");
      $("copy-link").textContent = "See address bar";
    }
    setTimeout(() => ($("copy-link").textContent = "Copy link"), 2000);
  });
}

function wireTools() {
  $("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try {
      localStorage.setItem("endeavour-theme", root.dataset.theme);
    } catch {
      // The choice then lasts as long as the page.
    }
    dispatchEvent(new Event("themechange"));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    dispatchEvent(new Event("themechange")),
  );
  $("open-help").addEventListener("click", openHelp);
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the hash is the state
    $("tabs").querySelector('[aria-selected="true"]').focus();
  });
}

/** Keeps up with runs that are begun, trained, evaluated and deleted. */
async function followRuns(systems, search, state, reload) {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN));
    if (document.hidden) continue;
    try {
      const before = systems.weights(state.get().run);
      const changed = systems.update(await get("/api/runs"));
      // The model may be another one now, and what failed for want of a server or of a checkpoint may succeed.
      const { status, offline } = search.current;
      const other = systems.weights(state.get().run) !== before;
      if (other || (status === "error" && (offline || changed))) search.start();
      else if ($("problem").textContent === OFFLINE) reload();
    } catch {
      // The server is away; the parts that need it say so.
    }
  }
}

/** Views by name, mounted when first shown; a module that fails to load says so in its place. */
function createViews(context) {
  const mounted = new Map();

  async function mount(name) {
    const root = $(`view-${name}`);
    try {
      const module = await import(`./${name}.js`);
      return module.mount(root, context);
    } catch (error) {
      console.error(error);
      root.textContent = `This view could not be loaded: ${error.message}. Reload the page to try again.`;
      return { update() {} };
    }
  }

  return {
    async show(name, changed) {
      const left = document.activeElement.closest(`[role=tabpanel]:not(#view-${name})`); // or the focus were lost
      for (const view of VIEWS) {
        $(`view-${view}`).hidden = view !== name;
        $(`tab-${view}`).setAttribute("aria-selected", view === name);
      }
      const tabs = [...$("tabs").children];
      setRoving(tabs, VIEWS.indexOf(name));
      if (left) tabs[VIEWS.indexOf(name)].focus();
      const first = !mounted.has(name);
      if (first) mounted.set(name, mount(name));
      const view = await mounted.get(name);
      const state = context.state.get();
      if (state.v === name)
        view.update(state, first || changed.has("v") ? new Set(Object.keys(state)) : changed);
      mounted.set(name, view);
    },
    key: (name, event) => mounted.get(name)?.key?.(event) ?? false,
  };
}

function wireTabs(state) {
  const choose = (v) => state.set({ v }, { push: true });
  for (const tab of $("tabs").children) tab.addEventListener("click", () => choose(tab.dataset.view));
  $("tabs").addEventListener(
    "focusin",
    ({ target }) => target.matches(":focus-visible") && choose(target.dataset.view),
  );
  roving($("tabs"), '[role="tab"]');
  return Object.fromEntries(VIEWS.map((view, i) => [String(i + 1), () => choose(view)]));
}

async function boot() {
  const state = createState();
  wireTools();
  const toViews = wireTabs(state);
  const systems = createSystems(await get("/api/runs"));
  wireCopyLink(state, systems);
  if (!state.get().q) state.set({ q: systems.runOf(state.get().run)?.examples[0] ?? "" });
  const search = createSearch(state);
  const results = createResults(state, search);
  const forcing = createForcing(state);
  const context = { state, systems, search, results, forcing };

  mountSentence(context);
  mountTranslation(context);
  search.subscribe(({ error, status }) => (error ? report(error) : status !== "running" && report(null)));
  const views = createViews(context);
  const show = (current, changed) => {
    // What failed in a view is asked for again, or no longer.
    if ([...changed].some((key) => !ONLY_DRAWN.has(key))) report(search.current.error);
    views.show(current.v, changed);
  };
  state.subscribe(show);
  listenForKeys((event) => views.key(state.get().v, event), {
    ...toViews,
    "/": () => $("input").focus(),
    "?": openHelp,
    Backspace: () => forcing.undo(),
  });
  search.start();
  followRuns(systems, search, state, () => show(state.get(), new Set(Object.keys(state.get()))));
  await views.show(state.get().v, new Set());
}

boot().catch((error) => {
  console.error(error);
  report(error.message);
});
