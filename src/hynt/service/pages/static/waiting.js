// While the model is loaded: asks now and then whether it is there. A page that could not answer is opened again; one
// that only said so loses its banner, and keeps what was typed.
"use strict";

(() => {
  const PAUSE = 1000; // milliseconds

  function waiting() {
    return [...document.querySelectorAll("[data-waiting]")];
  }

  async function look() {
    const found = waiting();
    if (!found.length) return;
    try {
      const state = await (await fetch("/state", { cache: "no-store" })).json();
      if (state.ready) {
        const banner = found.find((one) => one.dataset.waiting === "banner");
        if (found.some((one) => one !== banner)) window.location.reload();
        else {
          banner.textContent = "The model is ready.";
          banner.classList.add("done");
          delete banner.dataset.waiting;
          document.dispatchEvent(new Event("hynt:ready"));
        }
        return;
      }
    } catch {
      // The service is not reachable just now: it may be starting again.
    }
    setTimeout(look, PAUSE);
  }

  setTimeout(look, PAUSE);
  document.addEventListener("hynt:answered", () => setTimeout(look, PAUSE));
})();
