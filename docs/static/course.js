// The theme's choice of dark or light is told to the pictures of the course, which otherwise follow the system. And on
// paper nothing can be unfolded: a page is printed unfolded, but for the results of predictions that were not made.
"use strict";
(function () {
  const root = document.documentElement;
  function tell() {
    const dark = root.dataset.theme === "dark";
    document.body.dataset.jpThemeLight = String(!dark);
    for (const frame of document.querySelectorAll(".course-stepper-output iframe")) {
      const inner = frame.contentDocument;
      if (inner && inner.body) inner.documentElement.style.colorScheme = dark ? "dark" : "light";
    }
  }
  let unfolded = [];
  window.addEventListener("beforeprint", () => {
    unfolded = [...document.querySelectorAll("details:not([open])")].filter((it) => !it.closest(".course-prediction"));
    for (const fold of unfolded) fold.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const fold of unfolded) fold.open = false;
  });
  document.addEventListener("DOMContentLoaded", () => {
    new MutationObserver(tell).observe(root, { attributes: true, attributeFilter: ["data-theme"] });
    tell();
    window.addEventListener("load", tell);
  });
})();
