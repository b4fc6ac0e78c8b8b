/* Light or dark, before anything is drawn: as the system has it, unless the visitor chose otherwise.
 *
 * A classic script, so that the page does not flash. Knows only the stored choice.
 */

(() => {
  const stored = () => {
    try {
      return localStorage.getItem("endeavour-theme");
    } catch {
      return null; // a browser that keeps nothing
    }
  };
  const chosen = stored();
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
