// Sets the theme before the first paint, so it is no module. "auto" follows the system.
"use strict";
(function () {
  const kKey = "outrider.theme";
  const kThemes = ["auto", "light", "dark"];

  function stored() {
    try {
      const theme = localStorage.getItem(kKey);
      return kThemes.includes(theme) ? theme : "auto";
    } catch {
      return "auto";  // no storage in this browser: the system's theme
    }
  }

  function apply(theme) {
    document.documentElement.dataset.theme = theme;
  }

  window.outriderTheme = {
    get: () => document.documentElement.dataset.theme,
    next() {
      const theme = kThemes[(kThemes.indexOf(this.get()) + 1) % kThemes.length];
      apply(theme);
      try {
        localStorage.setItem(kKey, theme);
      } catch {
        // It holds until the page is closed.
      }
      return theme;
    },
  };
  apply(stored());
})();
