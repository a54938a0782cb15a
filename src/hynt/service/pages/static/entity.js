// The page of an entity: facts narrowed while one types, what is probably missing, and a walk through the drawing of
// what is around. Without this script the filter is sent, and links lead to what is missing and to the drawings.
"use strict";

(() => {
  const WAIT = 200; // milliseconds after the last key

  async function part(address, id) {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const found = page.getElementById(id);
    return found && document.adoptNode(found);
  }

  // ---------------------------------------------------------------- the filter

  function narrow(form) {
    let timer = 0;
    let latest = 0;

    async function update() {
      const given = new URLSearchParams([...new FormData(form)].filter(([, value]) => value.trim()));
      const own = (latest += 1);
      const address = `${form.getAttribute("action")}?${given}`;
      try {
        const fresh = await part(address, "facts");
        if (own !== latest || !fresh) return;
        document.getElementById("facts").replaceWith(fresh);
        history.replaceState(null, "", address);
        for (const section of document.querySelectorAll("#facts ~ section")) section.classList.toggle("put-aside", given.has("words"));
      } catch {
        // The service is not there just now; sending the form says so.
      }
    }

    form.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(update, WAIT);
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      clearTimeout(timer);
      update();
    });
  }

  // ---------------------------------------------------------------- what is probably missing

  async function propose(section) {
    section.hidden = false;
    section.querySelector(".told").textContent = "The model looks for it …";
    try {
      const fresh = await part(section.dataset.from, "missing");
      if (!fresh) throw new Error("no answer");
      fresh.dataset.from = section.dataset.from;
      section.replaceWith(fresh);
    } catch {
      section.hidden = true; // a page without this part is whole
    }
  }

  // ---------------------------------------------------------------- around it

  function centred(section) {
    const window = section.querySelector(".picture");
    if (window) window.scrollLeft = (window.scrollWidth - window.clientWidth) / 2;
  }

  // A phone has room for facts below the entity, not on both sides of it.
  function fitting(address) {
    const isNarrow = window.matchMedia("(max-width: 44rem)").matches;
    return isNarrow && !address.includes("narrow=") ? `${address}&narrow=1` : address;
  }

  async function walk(address, focus) {
    try {
      const fresh = await part(fitting(address), "around");
      if (!fresh) throw new Error("no drawing");
      document.getElementById("around").replaceWith(fresh);
      centred(fresh);
      if (focus) fresh.querySelector("h2").focus();
    } catch {
      if (focus) window.location.assign(address);
    }
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("#around svg a, #around > p > a[href^='/neighbourhood']");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    walk(link.getAttribute("href"), true);
  });

  const form = document.getElementById("narrow");
  if (form) narrow(form);
  const missing = document.getElementById("missing");
  if (missing) {
    if (!document.querySelector("[data-waiting]")) propose(missing); // else when the model is there
    else document.addEventListener("hynt:ready", () => propose(missing));
  }
  const around = document.getElementById("around");
  const from = around?.dataset.from;
  if (from) walk(from, false);
  else if (around) centred(around);
  document.addEventListener("hynt:changed", () => {
    if (from) walk(from, false);
    if (missing) propose(document.getElementById("missing"));
  });
})();
