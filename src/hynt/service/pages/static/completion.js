// Completion for fields with `data-complete`: entities, relations, numbers (relations that hold them), or values, whose
// kind the relation beside them decides. A combobox as WAI-ARIA describes it; without this script the fields are plain.
"use strict";

(() => {
  const SHOWN = 8;
  const WAIT = 120; // milliseconds after the last key
  let open = null; // the field whose list is shown, its list and what it holds
  let timer = 0;
  let request = null;
  let count = 0;
  const relations = new Map(); // by name and id: what they hold

  const status = document.createElement("div");
  status.className = "quiet";
  status.setAttribute("role", "status");
  document.body.append(status);

  function prepare(field) {
    if (field.getAttribute("role") === "combobox") return;
    field.setAttribute("role", "combobox");
    field.setAttribute("aria-autocomplete", "list");
    field.setAttribute("aria-expanded", "false");
  }

  async function fetched(address) {
    if (request) request.abort();
    request = new AbortController();
    const answer = await fetch(address, { signal: request.signal, headers: { Accept: "application/json" } });
    return answer.ok ? answer.json() : {};
  }

  async function relationsLike(text, kind) {
    const parameters = new URLSearchParams({ query: text, limit: String(SHOWN) });
    if (kind) parameters.set("kind", kind);
    const found = (await fetched(`/v1/relations?${parameters}`)).relations || [];
    for (const one of found) {
      relations.set(one.name, one);
      relations.set(one.id, one);
    }
    return found;
  }

  async function relationBeside(field) {
    const scope = field.closest("fieldset, .triplet");
    const beside = scope && scope.querySelector("[data-complete='relations']");
    const name = beside ? beside.value.trim() : "";
    if (!name || name === "?") return null;
    if (!relations.has(name)) await relationsLike(name);
    return relations.get(name) || null;
  }

  function hintFor(relation) {
    if (relation.is_date) return "A date: 1995, 1995-06 or 1995-06-30";
    return relation.unit && relation.unit !== "1" ? `A number with its unit; without one, the unit is ${relation.unit}` : "A number";
  }

  // What an empty field may hold, from what stands in the others: the relations of the head, the qualifiers of the
  // relation, the values that were seen there.
  async function usual(field) {
    const place = field.closest("[data-place]")?.dataset.place;
    if (!place || !field.form) return { items: [] };
    const said = (name) => {
      const named = field.form.querySelector(`[name=${name}]`); // the first of several heads
      const text = named?.value.trim() || "";
      return text === "?" ? "" : text;
    };
    const wanted = /^\d+r$/.test(place) ? "qualifier" : /^\d+v$/.test(place) ? "value" : place;
    const numbers = field.dataset.complete === "numbers";
    const beside = await (wanted === "tail" || wanted === "value" ? relationBeside(field) : null);
    if (beside && beside.kind === "number") return { items: [], hint: hintFor(beside) };
    const relation = wanted === "value" ? beside?.id || "" : said("relation");
    if ((wanted === "tail" || wanted === "value") && !relation) return { items: [] };
    return fetched(`/suggested?${new URLSearchParams({ wanted, head: said("head"), relation, numbers })}`);
  }

  async function suggestions(field, text) {
    if (!text) return usual(field);
    const kind = field.dataset.complete;
    if (kind === "relations") return { items: await relationsLike(text) };
    if (kind === "numbers") return { items: await relationsLike(text, "number") };
    if (kind === "values") {
      const relation = await relationBeside(field);
      if (relation && relation.kind === "number") return { items: [], hint: hintFor(relation) };
    }
    const found = await fetched(`/v1/entities?${new URLSearchParams({ query: text, limit: String(SHOWN) })}`);
    return { items: found.entities || [] };
  }

  // An id says nothing to people, unless only the ids tell two of a name apart.
  function detail(item, isShared) {
    const parts = [];
    if (item.type) parts.push(item.type.replaceAll("_", " "));
    if (item.kind) parts.push(item.kind === "number" ? (item.is_date ? "dates" : "numbers") : "entities");
    if (item.id !== item.name && isShared) parts.push(item.id);
    if (item.description) parts.push(item.description);
    return parts.join(" · ");
  }

  function show(field, items, hint) {
    close();
    if (!items.length && !hint) {
      status.textContent = "No suggestion.";
      return;
    }
    const list = document.createElement("ul");
    list.className = "suggestions";
    list.id = `suggestions-${(count += 1)}`;
    if (items.length) {
      list.setAttribute("role", "listbox");
      list.setAttribute("aria-label", "Suggestions");
    }
    items.forEach((item, index) => {
      const option = document.createElement("li");
      option.id = `${list.id}-${index}`;
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", "false");
      const name = document.createElement("span");
      name.textContent = item.name;
      const aside = document.createElement("span");
      aside.className = "aside";
      aside.textContent = detail(item, items.some((other) => other !== item && other.name === item.name && other.type === item.type));
      option.append(name, " ", aside);
      option.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
      option.addEventListener("click", () => choose(index));
      list.append(option);
    });
    if (hint) {
      const told = document.createElement("li");
      told.className = "told";
      told.textContent = hint;
      list.append(told);
    }
    (field.closest(".entry") || field.parentElement).append(list);
    open = { field, list, items, chosen: -1, typed: Boolean(field.value.trim()) };
    if (items.length) {
      field.setAttribute("aria-expanded", "true");
      field.setAttribute("aria-controls", list.id);
    }
    status.textContent = items.length ? `${items.length} suggestion${items.length === 1 ? "" : "s"}.` : hint;
  }

  function close() {
    if (!open) return;
    open.list.remove();
    open.field.setAttribute("aria-expanded", "false");
    open.field.removeAttribute("aria-controls");
    open.field.removeAttribute("aria-activedescendant");
    open = null;
  }

  function mark(index) {
    const options = open.list.querySelectorAll("[role=option]");
    if (!options.length) return;
    open.chosen = (index + options.length) % options.length;
    options.forEach((option, at) => option.setAttribute("aria-selected", String(at === open.chosen)));
    options[open.chosen].scrollIntoView({ block: "nearest" });
    open.field.setAttribute("aria-activedescendant", options[open.chosen].id);
  }

  function choose(index) {
    const { field, items } = open;
    const item = items[index];
    const shared = items.filter((other) => other.name === item.name).length > 1;
    close();
    if (field.dataset.go) {
      window.location.assign(field.dataset.go + encodeURIComponent(item.id));
      return;
    }
    field.value = shared ? item.id : item.name;
    field.dataset.id = item.id;
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }

  async function look(field) {
    const text = field.value.trim();
    if (text === "?") {
      close();
      return;
    }
    try {
      const found = await suggestions(field, text);
      if (document.activeElement !== field || field.value.trim() !== text) return;
      if (text || found.items?.length || found.hint) show(field, found.items || [], found.hint);
      else close();
    } catch (error) {
      if (error.name !== "AbortError") close();
    }
  }

  document.addEventListener("focusin", (event) => {
    if (!event.target.matches("[data-complete]")) return;
    prepare(event.target);
    if (!event.target.value.trim()) look(event.target);
  });
  document.addEventListener("input", (event) => {
    if (!event.target.matches("[data-complete]")) return;
    prepare(event.target);
    if (open && open.field === event.target && !open.typed) close(); // it was about an empty field
    clearTimeout(timer);
    timer = setTimeout(look, WAIT, event.target);
  });
  document.addEventListener("focusout", (event) => {
    clearTimeout(timer);
    if (open && event.target === open.field) close();
  });
  document.addEventListener("keydown", (event) => {
    const field = event.target;
    if (!field.matches || !field.matches("[data-complete]")) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (open && open.field === field) mark(event.key === "ArrowDown" ? open.chosen + 1 : open.chosen - 1);
      else look(field);
    } else if (event.key === "Escape" && open) {
      event.preventDefault();
      close();
    } else if (event.key === "Enter" && open && open.field === field && open.chosen >= 0) {
      event.preventDefault();
      choose(open.chosen);
    } else if (event.key === "Enter") {
      clearTimeout(timer);
      close();
    }
  });
})();
