/* What the page says besides what it shows: to screen readers, and of what went wrong.
 *
 * Knows the two elements that say it.
 */

/** Says something in a language to screen readers; the same words twice are said twice. */
export function announce(text, lang = "en") {
  const live = document.getElementById("live");
  live.textContent = "";
  requestAnimationFrame(() => Object.assign(live, { lang, textContent: text }));
}

/** Shows what went wrong, or with nothing that all is well. */
export function report(message) {
  const problem = document.getElementById("problem");
  problem.hidden = !message;
  if (problem.textContent !== message) problem.textContent = message ?? "";
}
