// Decisions about doubtful facts: kept in this browser, and downloaded as lines that an import and an update of hynt
// take. Nothing here changes the graph that is served.
"use strict";

(() => {
  const list = document.getElementById("doubts");
  const bar = document.getElementById("decisions");
  if (!list || !bar) return;
  const NAMES = { keep: "right", remove: "wrong", replace: "changed" };
  const place = `hynt:decisions:${bar.dataset.graph}`;

  // A fact as the page wrote it, to what was decided: {decision, with, told}.
  function load() {
    try {
      return new Map(Object.entries(JSON.parse(localStorage.getItem(place)) || {}));
    } catch {
      return new Map();
    }
  }

  let decisions = load();

  function store() {
    try {
      localStorage.setItem(place, JSON.stringify(Object.fromEntries(decisions)));
    } catch {
      bar.querySelector(".full").hidden = false;
    }
    show();
  }

  function line(fact, made) {
    const more = made.decision === "replace" ? `, "with": ${made.with}` : "";
    return `{"decision": "${made.decision}", "fact": ${fact}${more}}\n`;
  }

  function show() {
    for (const item of list.querySelectorAll("[data-fact]")) {
      const made = decisions.get(item.dataset.fact);
      for (const button of item.querySelectorAll("button[name]")) {
        button.setAttribute("aria-pressed", String(made?.decision === button.name));
      }
      item.querySelector(".decided").textContent = made?.decision === "replace" ? `to be ${made.told}` : "";
    }
    const counts = { keep: 0, remove: 0, replace: 0 };
    for (const made of decisions.values()) counts[made.decision] += 1;
    const told = Object.keys(counts).map((name) => `${counts[name]} ${NAMES[name]}`).join(", ");
    bar.querySelector(".told").textContent = decisions.size ? `You decided on ${decisions.size}: ${told}.` : "You decided on none yet.";
    for (const button of bar.querySelectorAll("button")) button.disabled = !decisions.size;
  }

  function download() {
    const lines = [...decisions].map(([fact, made]) => line(fact, made));
    const address = URL.createObjectURL(new Blob(lines, { type: "application/jsonl" }));
    Object.assign(document.createElement("a"), { href: address, download: "decisions.jsonl" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  }

  // ---------------------------------------------------------------- another value

  async function exact(kind, text) {
    const listed = kind === "entity" ? "entities" : "relations";
    const answer = await fetch(`/v1/${listed}?${new URLSearchParams({ query: text, limit: "8" })}`);
    const found = answer.ok ? (await answer.json())[listed] : [];
    return found.find((one) => one.id === text) || found.find((one) => one.name.toLowerCase() === text.toLowerCase());
  }

  function number(text, before) {
    if (before !== null && typeof before === "object" && "date" in before) {
      return /^[-+]?\d{1,6}(-\d\d(-\d\d)?)?$/.test(text) ? { date: text } : null;
    }
    const [, digits, unit] = /^([-+]?[\d,]*\.?\d+(?:[eE][-+]?\d+)?)\s*(.*)$/.exec(text) || [];
    if (digits === undefined) return null;
    const value = Number(digits.replaceAll(",", ""));
    const known = unit || (before !== null && typeof before === "object" ? before.unit : "");
    return known ? { number: value, unit: known } : value;
  }

  // [object, key]: where a component stands in a fact.
  function spot(fact, component) {
    const [, side, index] = /^(relation|value) of qualifier (\d+)$/.exec(component) || [];
    return side ? [fact.qualifiers[index - 1], side === "relation" ? 0 : 1] : [fact, component];
  }

  async function change(item, field) {
    const fact = JSON.parse(item.dataset.fact);
    const [holder, key] = spot(fact, item.dataset.component);
    const text = field.value.trim();
    const fault = item.querySelector(".fault");
    fault.textContent = "";
    if (item.dataset.kind === "number") holder[key] = number(text, holder[key]);
    else holder[key] = field.dataset.id || (text && (await exact(item.dataset.kind, text))?.id) || null;
    if (holder[key] === null) {
      fault.textContent = item.dataset.kind === "number" ? `“${text}” is not a number or date.` : "Nothing in the graph is called that.";
      field.focus();
      return;
    }
    decisions.set(item.dataset.fact, { decision: "replace", with: JSON.stringify(fact), told: text });
    item.querySelector("form").hidden = true;
    store();
    item.querySelector("button[name=replace]").focus();
  }

  list.addEventListener("click", (event) => {
    const button = event.target.closest("button[name]");
    if (!button) return;
    const item = button.closest("[data-fact]");
    const form = item.querySelector("form");
    const isOn = button.getAttribute("aria-pressed") === "true";
    if (button.name === "replace" && !isOn) {
      form.hidden = false;
      form.querySelector("input").focus();
      return;
    }
    form.hidden = true;
    if (isOn) decisions.delete(item.dataset.fact);
    else decisions.set(item.dataset.fact, { decision: button.name });
    store();
  });
  list.addEventListener("submit", (event) => {
    event.preventDefault();
    const item = event.target.closest("[data-fact]");
    change(item, item.querySelector("input")).catch(() => {
      item.querySelector(".fault").textContent = "The service cannot be reached.";
    });
  });
  list.addEventListener("input", (event) => delete event.target.dataset.id);
  bar.querySelector("[name=download]").addEventListener("click", download);
  bar.querySelector("[name=forget]").addEventListener("click", () => {
    decisions = new Map();
    store();
  });
  bar.hidden = false;
  for (const part of list.querySelectorAll(".decide")) part.hidden = false;
  show();
})();
