// Tries an endpoint from its form, and shows what came back.
"use strict";

(() => {
  const LONGEST = 20_000; // characters of an answer that are shown

  async function send(form) {
    let path = form.dataset.path;
    const query = new URLSearchParams();
    for (const field of form.querySelectorAll("[data-place]")) {
      const value = field.value.trim();
      if (field.dataset.place === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(value));
      else if (value) query.set(field.name, value);
    }
    const given = { method: form.dataset.method };
    if (form.elements.body) Object.assign(given, { headers: { "Content-Type": "application/json" }, body: form.elements.body.value });
    const began = performance.now();
    const answer = await fetch(query.size ? `${path}?${query}` : path, given);
    const text = await answer.text();
    return { status: answer.status, words: answer.statusText, text, took: Math.round(performance.now() - began) };
  }

  function indented(text) {
    try {
      return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      return text;
    }
  }

  for (const form of document.querySelectorAll(".endpoint form")) {
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const told = form.querySelector("[role=status]");
      const reply = form.querySelector(".reply");
      told.textContent = "Asking.";
      try {
        const found = await send(form);
        const text = indented(found.text);
        told.textContent = `${found.status} ${found.words}, ${found.took} ms`;
        reply.textContent = text.length > LONGEST ? `${text.slice(0, LONGEST)}\n… ${(text.length - LONGEST).toLocaleString("en")} more characters` : text;
        reply.hidden = false;
      } catch {
        told.textContent = "The service cannot be reached.";
      }
    });
  }
})();
