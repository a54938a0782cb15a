// The question as it is changed: answers follow without a new page, and the address always says what is shown.
// Without this script every button sends the form, and the server answers with a page.
"use strict";

(() => {
  const form = document.getElementById("question");
  const rows = document.getElementById("qualifiers");
  const template = document.getElementById("qualifier-template");
  if (!form || !rows || !template) return;
  let request = null;
  let asked = serialised();

  function inputs() {
    return [...form.querySelectorAll(".field input")];
  }

  function serialised() {
    const given = new URLSearchParams();
    for (const name of ["head", "relation", "tail"]) {
      const text = form.elements[name].value.trim();
      if (text) given.append(name, text);
    }
    for (const row of rows.querySelectorAll("fieldset")) {
      const [relation, value] = [...row.querySelectorAll("input")].map((input) => input.value.trim());
      if (!relation && !value) continue;
      given.append("qualifier", relation);
      given.append("value", value);
    }
    for (const box of form.querySelectorAll("[name=candidates]:checked")) given.append("candidates", box.value);
    if (form.elements.top.selectedIndex > 0) given.append("top", form.elements.top.value);
    if (form.elements.why) given.append("why", "1");
    return given.toString();
  }

  function markBlanks() {
    for (const field of form.querySelectorAll(".field")) {
      const blank = field.querySelector("input").value.trim() === "?";
      field.classList.toggle("blank", blank);
      field.querySelector(".ask-this").setAttribute("aria-pressed", String(blank));
    }
  }

  async function update(force = false) {
    markBlanks();
    const now = serialised();
    if (now === asked && !force) return;
    asked = now;
    if (request) request.abort();
    request = new AbortController();
    const result = document.getElementById("result");
    result.setAttribute("aria-busy", "true");
    document.getElementById("told").textContent = "Asking.";
    const address = now ? `/ask?${now}` : "/ask";
    try {
      const answer = await fetch(address, { signal: request.signal, headers: { Accept: "text/html" } });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("result");
      if (!fresh) throw new Error("no result");
      if (fresh.dataset.state === "incomplete" && result.dataset.state === "answered") {
        keep(result, fresh);
        return;
      }
      document.title = page.title;
      history.pushState(null, "", address);
      result.replaceWith(document.adoptNode(fresh));
      document.getElementById("told").textContent = fresh.dataset.told; // what a screen reader says of it
      showFaults(page);
      document.dispatchEvent(new Event("hynt:answered"));
    } catch (error) {
      if (error instanceof TypeError) unreachable(address); // how fetch says that nobody answers
      else if (error.name !== "AbortError") window.location.assign(address);
    }
  }

  // A field that is only half of a new qualifier takes no answer away: what is missing is said above it.
  function keep(result, fresh) {
    const notice = document.adoptNode(fresh.querySelector(".notice"));
    notice.classList.add("pending");
    notice.append(" Below is the answer to the question before.");
    result.querySelector(".pending")?.remove();
    result.prepend(notice);
    result.removeAttribute("aria-busy");
    document.getElementById("told").textContent = fresh.dataset.told;
  }

  // The address says what was asked already: when the service is there again, the page is opened anew and answers.
  function unreachable(address) {
    history.pushState(null, "", address);
    const result = document.getElementById("result");
    const notice = document.createElement("div");
    notice.className = "notice";
    notice.dataset.waiting = "";
    for (const text of ["The service cannot be reached.", "The question is kept, and asked again by itself when the service is back."]) {
      notice.append(Object.assign(document.createElement("p"), { textContent: text }));
    }
    result.removeAttribute("aria-busy");
    result.dataset.state = "unreachable";
    result.replaceChildren(notice);
    document.getElementById("told").textContent = "The service cannot be reached.";
    document.dispatchEvent(new Event("hynt:answered"));
  }

  // What the server found wrong with a field stands below that field, typed text stays as it is.
  function showFaults(page) {
    for (const field of form.querySelectorAll(".field")) {
      const place = field.dataset.place;
      const input = field.querySelector("input");
      const theirs = page.querySelector(`#question .field[data-place="${place}"] .fault`);
      field.querySelector(".fault")?.remove();
      field.classList.toggle("wrong-field", Boolean(theirs));
      input.removeAttribute("aria-invalid");
      input.removeAttribute("aria-describedby");
      if (theirs) {
        field.append(document.adoptNode(theirs));
        input.setAttribute("aria-invalid", "true");
        input.setAttribute("aria-describedby", theirs.id);
      }
    }
  }

  function renumber() {
    [...rows.querySelectorAll("fieldset")].forEach((row, number) => {
      row.querySelector("legend").textContent = `Qualifier ${number + 1}`;
      row.querySelectorAll(".field").forEach((field, side) => {
        const place = `${number}${side ? "v" : "r"}`;
        const name = `${side ? "Value" : "Relation"} of qualifier ${number + 1}`;
        field.dataset.place = place;
        field.querySelector("input").id = `f-${place}`;
        field.querySelector("label").htmlFor = `f-${place}`;
        field.querySelector("label").textContent = name;
        field.querySelector(".ask-this").value = place;
        field.querySelector(".ask-this").setAttribute("aria-label", `Ask for the ${name.toLowerCase()}`);
      });
      row.querySelector(".remove").value = String(number);
      row.querySelector(".remove").setAttribute("aria-label", `Remove qualifier ${number + 1}`);
    });
  }

  function pressed(button) {
    if (button.name === "blank") {
      const own = button.closest(".field").querySelector("input");
      for (const input of inputs()) if (input !== own && input.value.trim() === "?") input.value = "";
      own.value = "?";
      const empty = inputs().find((input) => !input.value.trim());
      (empty || own).focus();
    } else if (button.name === "add") {
      rows.append(template.content.cloneNode(true));
      renumber();
      rows.lastElementChild.querySelector("input").focus();
    } else if (button.name === "remove") {
      button.closest("fieldset").remove();
      renumber();
      form.querySelector("[name=add]").focus();
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const button = event.submitter;
    const isChange = button && ["blank", "add", "remove"].includes(button.name);
    if (isChange) pressed(button);
    update(!isChange);
  });
  form.addEventListener("change", () => update());
  window.addEventListener("popstate", () => window.location.reload());
})();
