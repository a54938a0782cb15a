// A fact added by hand: it is sent with the token, listed at once, and the answers before and after it are shown. The
// token lives in its field and nowhere else.
"use strict";

(() => {
  const PAUSE = 300; // milliseconds between two looks at whether the model counts it
  const PATIENCE = 60_000;
  const SHOWN = 5; // answers before, and answers after
  const panel = document.getElementById("add-fact");
  const form = panel?.querySelector("form");
  if (!form) return;
  const [fault, told, outcome] = [".fault", ".told", ".outcome"].map((name) => panel.querySelector(name));
  const token = document.getElementById("add-token");
  let sent = null; // the last body and its key: the same body sent again counts once
  panel.hidden = false;

  const said = (place, within = form) => within.querySelector(`[data-place="${place}"] input`).value.trim();

  function element(name, text = "", more = {}) {
    return Object.assign(document.createElement(name), { textContent: text, ...more });
  }

  function fact() {
    const pairs = [...form.querySelectorAll("fieldset")].map((row) => [said("0r", row), said("0v", row)]);
    const qualifiers = pairs.filter((pair) => pair.some(Boolean)).map(([relation, value]) => ({ relation, value }));
    return { head: said("head"), relation: said("relation"), tail: said("tail"), qualifiers };
  }

  // A plain number of a relation that the graph does not have is a number, and the service reads those with a unit; what
  // else is new is an entity.
  async function kinds(added) {
    const typed = async (relation, written) => {
      const value = /^[-+]?\d{1,3}(,\d{3})+(\.\d+)?$/.test(written) ? written.replaceAll(",", "") : written;
      if (!/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(value)) return value;
      const answer = await fetch(`/v1/relations?${new URLSearchParams({ query: relation })}`);
      const known = answer.ok ? (await answer.json()).relations : [];
      return known.some((one) => one.id === relation || one.name === relation) ? value : Number(value);
    };
    const qualifiers = await Promise.all(
      added.qualifiers.map(async ({ relation, value }) => ({ relation, value: await typed(relation, value) })),
    );
    return { ...added, tail: await typed(added.relation, added.tail), qualifiers };
  }

  // What the answers are compared for: the question on the page, or what the fact itself answers.
  function question(added) {
    const given = new URLSearchParams(window.location.search);
    if (window.location.pathname !== "/ask" || [...given.values()].filter((text) => text === "?").length !== 1) {
      return { ...added, tail: "?" };
    }
    const values = given.getAll("value");
    const qualifiers = given.getAll("qualifier").map((relation, at) => ({ relation, value: values[at] || "" }));
    return { head: given.get("head"), relation: given.get("relation"), tail: given.get("tail"), qualifiers };
  }

  async function send(method, address, body) {
    const headers = { "Content-Type": "application/json", Authorization: `Bearer ${token.value.trim()}` };
    const answer = await fetch(address, { method, headers, credentials: "omit", body: JSON.stringify(body) });
    return { ok: answer.ok, refused: answer.status === 422, version: Number(answer.headers.get("Hynt-Version")), found: await answer.json() };
  }

  const ask = (asked) => send("POST", "/v1/predict", { ...asked, top: 50 });

  function refuse(text, field = null) {
    fault.textContent = text;
    told.textContent = "";
    field?.focus();
  }

  function problem({ found }) {
    const first = found.errors?.[0];
    const detail = first?.detail || found.detail || "This did not work.";
    return `${detail.charAt(0).toUpperCase()}${detail.slice(1)}${first?.advice && first.pointer ? ` ${first.advice}` : ""}`;
  }

  function keyOf(body) {
    const text = JSON.stringify(body);
    if (!sent || sent.text !== text) {
      const random = crypto.getRandomValues(new Uint8Array(16));
      sent = { text, key: [...random].map((byte) => byte.toString(16).padStart(2, "0")).join("") };
    }
    return sent.key;
  }

  async function add() {
    const added = fact();
    for (const [place, name] of [["head", "head"], ["relation", "relation"], ["tail", "tail"]]) {
      if (!added[place]) return refuse(`The ${name} is missing.`, form.querySelector(`[data-place="${place}"] input`));
    }
    if (!token.value.trim()) return refuse("The token is missing: whoever runs the service has it.", token);
    fault.textContent = "";
    told.textContent = "Asking for the answer as it is now, to compare.";
    outcome.replaceChildren();
    const asked = question(added);
    const before = await ask(asked);
    told.textContent = "Adding.";
    const typed = await kinds(added);
    const body = { facts: [typed], source: said("source") || "by hand" };
    const answer = await send("POST", "/v1/facts", { ...body, key: keyOf(body) });
    if (!answer.ok) return refuse(problem(answer));
    sent = null;
    const version = answer.found.version;
    told.textContent = `Added as version ${version}. It is listed; the model is reading the graph anew.`;
    await fresh();
    const after = await counted(asked, version);
    if (!after) {
      told.textContent = `Added as version ${version}. The model has not read it yet; ask again in a while.`;
      return undefined;
    }
    told.textContent = `Added as version ${version}, and counted by the model.`;
    if (after.ok) compare(before, after);
    else outcome.append(element("p", problem(after), { className: "aside" }));
    const back = element("button", "Take it back", { type: "button", className: "secondary" });
    back.addEventListener("click", () => guarded(() => takeBack(typed)));
    outcome.append(back);
    return fresh();
  }

  async function takeBack(added) {
    const answer = await send("DELETE", "/v1/facts", { facts: [added], source: "taken back by hand" });
    if (!answer.ok) return refuse(problem(answer));
    outcome.replaceChildren();
    told.textContent = `Taken back: version ${answer.found.version}.`;
    await fresh();
    if (await counted(question(added), answer.found.version)) return fresh();
    return undefined;
  }

  async function counted(asked, version) {
    const until = Date.now() + PATIENCE;
    while (Date.now() < until) {
      const now = await ask(asked);
      if ((now.ok || now.refused) && now.version >= version) return now;
      await new Promise((done) => setTimeout(done, PAUSE));
    }
    return null;
  }

  // What the page shows, once more.
  async function fresh() {
    const asking = document.getElementById("question");
    if (asking) {
      if (document.getElementById("result")?.dataset.state !== "empty") asking.requestSubmit();
      return;
    }
    const answer = await fetch(window.location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const name of [".heading", ".tabs", "#facts"]) {
      const theirs = page.querySelector(name);
      if (theirs) document.querySelector(name)?.replaceWith(document.adoptNode(theirs));
    }
    document.dispatchEvent(new Event("hynt:changed"));
  }

  function percent(share) {
    if (share >= 0.0005 && share < 0.9995) return `${(100 * share).toFixed(1)} %`;
    return share > 0.5 ? "> 99.9 %" : "< 0.1 %";
  }

  function rows(before, after) {
    const [old, now] = [before.ok ? before.found.answers : [], after.found.answers];
    if (after.found.kind === "number") {
      const between = (one) => (one?.low_text ? `${one.low_text} to ${one.high_text}` : "–");
      return [
        ["number", old[0]?.text || "–", now[0].text],
        ["interval", between(old[0]), between(now[0])],
      ];
    }
    const [was, is] = [old, now].map((list) => new Map(list.map((one) => [one.id, one])));
    const ids = new Set([...now.slice(0, SHOWN), ...old.slice(0, SHOWN)].map((one) => one.id));
    const share = (one) => (one ? percent(one.probability) : "–");
    return [...ids].map((id) => [(is.get(id) || was.get(id)).name, share(was.get(id)), share(is.get(id))]);
  }

  function compare(before, after) {
    const table = element("table");
    table.append(element("caption", `How the answer changed: ${after.found.question}`));
    const head = element("tr");
    for (const name of ["answer", "before", "after"]) head.append(element("th", name, { scope: "col" }));
    table.append(element("thead"), element("tbody"));
    table.tHead.append(head);
    for (const [name, was, is] of rows(before, after)) {
      const row = element("tr", "", { className: was === is ? "" : "differs" });
      row.append(element("th", name, { scope: "row" }), element("td", was), element("td", is));
      table.tBodies[0].append(row);
    }
    const scroll = element("div", "", { className: "scroll", tabIndex: 0 });
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "How the answer changed");
    scroll.append(table);
    outcome.append(scroll);
    if (!before.ok) outcome.append(element("p", "Before, this could not be asked: the graph did not know the name.", { className: "aside" }));
    for (const note of after.found.notes) outcome.append(element("p", note, { className: "aside" }));
  }

  async function guarded(work) {
    const buttons = [...panel.querySelectorAll("button")];
    buttons.forEach((button) => (button.disabled = true));
    try {
      await work();
    } catch {
      refuse("The service cannot be reached. Try again: what arrived already counts once.");
    }
    buttons.forEach((button) => (button.disabled = false));
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    guarded(add);
  });
  form.querySelector("[data-more]").addEventListener("click", () => {
    const place = form.querySelector(".more-pairs");
    place.append(panel.querySelector("[data-pair]").content.cloneNode(true));
    number();
    place.lastElementChild.querySelector("input").focus();
  });
  form.addEventListener("click", (event) => {
    if (!event.target.matches(".remove")) return;
    event.target.closest("fieldset").remove();
    number();
    form.querySelector("[data-more]").focus();
  });

  function number() {
    form.querySelectorAll("fieldset").forEach((row, at) => {
      row.querySelector("legend").textContent = `Qualifier ${at + 1} of the new fact`;
      row.querySelectorAll(".field").forEach((field, side) => {
        field.querySelector("input").id = `add-${at}-${side}`;
        field.querySelector("label").htmlFor = `add-${at}-${side}`;
        field.querySelector("label").textContent = `${side ? "Value" : "Relation"} of qualifier ${at + 1} of the new fact`;
      });
    });
  }
})();
