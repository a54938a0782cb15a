// Copies what stands beside the button; without this script the text can still be selected.
"use strict";

(() => {
  async function copied(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const field = Object.assign(document.createElement("textarea"), { value: text, className: "quiet" });
      document.body.append(field); // where the page is not served by https, browsers only copy what is selected
      field.select();
      const done = document.execCommand("copy");
      field.remove();
      return done;
    }
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("button[data-copy]");
    if (!button) return;
    const text = button.dataset.copy === "address" ? window.location.href : document.getElementById(button.dataset.copy).textContent;
    const done = await copied(text);
    button.focus();
    const told = button.closest(".take").querySelector("[role=status]");
    told.textContent = done ? "Copied." : "The browser does not let this page copy.";
  });
})();
