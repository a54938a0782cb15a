// Many questions from a file: read here, asked a few dozen at a time, and kept until they are downloaded. The file
// itself never leaves the browser; only its questions do.
"use strict";

(() => {
  const form = document.getElementById("bulk");
  const progress = document.getElementById("progress");
  if (!form || !progress) return;
  const [bar, told, actions, faults] = ["progress", "[role=status]", ".actions", ".faults"].map((one) => progress.querySelector(one));
  const stop = form.querySelector("[name=stop]");
  const LARGEST = 5e6; // bytes
  const MOST = 10_000;
  const TOGETHER = 48;
  const ROOM = 50_000; // bytes of one request
  const SHOWN = 20; // faults
  let stopped = false;
  let rows = []; // one for each answer, and for each question without one

  // ---------------------------------------------------------------- reading

  // A table as CSV has it: cells in double quotes may hold commas, line ends and doubled quotes.
  function cells(text) {
    const found = [[]];
    let cell = "";
    let quoted = false;
    for (let at = 0; at < text.length; at += 1) {
      const sign = text[at];
      if (quoted && sign === '"' && text[at + 1] === '"') {
        cell += '"';
        at += 1;
      } else if (sign === '"' && (quoted || !cell)) quoted = !quoted;
      else if (!quoted && (sign === "," || sign === "\n")) {
        found.at(-1).push(cell.replace(/\r$/, ""));
        cell = "";
        if (sign === "\n") found.push([]);
      } else cell += sign;
    }
    if (cell || found.at(-1).length) found.at(-1).push(cell);
    return found.filter((row) => row.some((one) => one.trim()));
  }

  function fromTable(text) {
    const [names, ...table] = cells(text).map((row) => row.map((one) => one.trim()));
    const places = ["head", "relation", "tail"].map((name) => (names || []).findIndex((one) => one.toLowerCase() === name));
    if (places.includes(-1)) throw new Error("The first line has to name the columns head, relation and tail.");
    return table.map((row) => {
      const [head, relation, tail] = places.map((place) => row[place] || "");
      const pairs = names.map((name, at) => ({ relation: name, value: row[at] || "" }));
      return { head, relation, tail, qualifiers: pairs.filter((pair, at) => pair.value && !places.includes(at)) };
    });
  }

  function written(value) {
    if (value === null || typeof value !== "object") return value;
    if ("date" in value) return value.date;
    return value.unit ? `${value.number} ${value.unit}` : value.number;
  }

  function fromLines(text) {
    return text.split("\n").filter((line) => line.trim()).map((line, at) => {
      let one;
      try {
        one = JSON.parse(line);
      } catch {
        throw new Error(`Line ${at + 1} is not JSON.`);
      }
      const given = one.qualifiers || [];
      const pairs = Array.isArray(given) ? given.map((pair) => (Array.isArray(pair) ? pair : [pair.relation, pair.value])) : Object.entries(given);
      const qualifiers = pairs.map(([relation, value]) => ({ relation, value: written(value) }));
      return { head: one.head, relation: one.relation, tail: written(one.tail), qualifiers };
    });
  }

  // ---------------------------------------------------------------- asking

  function refuse(question, detail) {
    rows.push({ question: question.number, ...question.asked, error: detail });
    if (faults.childElementCount < SHOWN) faults.append(Object.assign(document.createElement("li"), { textContent: `Question ${question.number}: ${detail}` }));
  }

  function keep(question, found) {
    for (const one of found.answers) rows.push({ question: question.number, ...question.asked, kind: found.kind, ...one });
  }

  // All that can be asked of a batch; a question that is refused is left out, and the others are asked again.
  async function ask(batch, top) {
    while (batch.length && !stopped) {
      const questions = batch.map(({ asked }) => ({ ...asked, top }));
      const answer = await fetch("/v1/predict", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ questions }) });
      const found = await answer.json();
      if (answer.ok) {
        batch.forEach((question, at) => keep(question, found.results[at]));
        return;
      }
      if (answer.status === 429 || answer.status === 503) {
        const wait = Number(answer.headers.get("Retry-After")) || 1;
        await new Promise((resolve) => setTimeout(resolve, 1000 * wait));
        continue;
      }
      const wrong = new Map();
      for (const fault of found.errors || []) {
        const [, at] = /^#\/questions\/(\d+)/.exec(fault.pointer || "") || [];
        if (at !== undefined && !wrong.has(Number(at))) wrong.set(Number(at), fault.detail);
      }
      if (!wrong.size) throw new Error(found.detail || "The service refused the questions.");
      for (const [at, detail] of wrong) refuse(batch[at], detail);
      batch = batch.filter((_, at) => !wrong.has(at));
    }
  }

  function* batches(questions) {
    let [batch, size] = [[], 0];
    for (const one of questions) {
      const length = 2 * JSON.stringify(one.asked).length + 20;
      if (batch.length === TOGETHER || (batch.length && size + length > ROOM)) {
        yield batch;
        [batch, size] = [[], 0];
      }
      batch.push(one);
      size += length;
    }
    if (batch.length) yield batch;
  }

  async function work(file, top) {
    if (file.size > LARGEST) throw new Error("The file is larger than 5 MB. The command hynt complete takes files of any size.");
    const text = (await file.text()).replace(/^\ufeff/, "");
    const isTable = /\.csv$/i.test(file.name) || !text.trimStart().startsWith("{");
    const questions = (isTable ? fromTable(text) : fromLines(text)).map((asked, at) => ({ number: at + 1, asked }));
    if (!questions.length) throw new Error("The file holds no question.");
    if (questions.length > MOST) throw new Error(`The file holds ${questions.length.toLocaleString("en")} questions, and 10,000 are taken at a time.`);
    const began = performance.now();
    told.textContent = `Asking ${questions.length.toLocaleString("en")} question${questions.length === 1 ? "" : "s"}.`;
    let done = 0;
    for (const batch of batches(questions)) {
      if (stopped) break;
      await ask(batch, top);
      done += batch.length;
      bar.value = done / questions.length;
      const left = ((performance.now() - began) / done) * (questions.length - done);
      told.textContent = `${done.toLocaleString("en")} of ${questions.length.toLocaleString("en")} questions${left > 2000 ? `, about ${Math.ceil(left / 1000)} s left` : ""}`;
    }
    rows.sort((one, other) => one.question - other.question);
    const refused = rows.filter((row) => row.error).length;
    told.textContent = `${stopped ? "Stopped after" : "Done:"} ${done.toLocaleString("en")} questions${refused ? `, ${refused.toLocaleString("en")} of them refused` : ""}.`;
  }

  // ---------------------------------------------------------------- taking answers away

  const COLUMNS = ["question", "head", "relation", "tail", "qualifiers", "kind", "rank", "id", "name", "probability", "value", "text", "unit", "low", "high", "known", "error"];

  const FORMULA = /^(?![-+]\d[\d,.]*$)[=+\-@\t\r\n]/; // what a spreadsheet would work out, as in results.py

  function cell(value) {
    if (value === undefined || value === null) return "";
    let text = Array.isArray(value) ? value.map((one) => (one.relation ? `${one.relation}=${one.value}` : one.text ?? one.value ?? one)).join("; ") : String(value);
    if (typeof value !== "number" && FORMULA.test(text)) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  function download(kind) {
    const lines = kind === "csv" ? [COLUMNS.join(","), ...rows.map((row) => COLUMNS.map((name) => cell(row[name])).join(","))] : rows.map((row) => JSON.stringify(row));
    const address = URL.createObjectURL(new Blob([`${lines.join("\n")}\n`]));
    Object.assign(document.createElement("a"), { href: address, download: `answers.${kind}` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const [file] = document.getElementById("file").files;
    const button = form.querySelector(".primary");
    [rows, stopped, bar.value] = [[], false, 0];
    faults.replaceChildren();
    [progress.hidden, actions.hidden, button.disabled, stop.hidden] = [false, true, true, false];
    told.textContent = "Reading the file.";
    try {
      await work(file, Number(document.getElementById("top").value));
    } catch (error) {
      told.textContent = error instanceof TypeError ? "The service cannot be reached." : error.message;
    }
    [actions.hidden, button.disabled, stop.hidden] = [!rows.length, false, true];
  });
  stop.addEventListener("click", () => {
    stopped = true;
  });
  actions.addEventListener("click", (event) => {
    if (event.target.name) download(event.target.name);
  });
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    if (!event.dataTransfer.files.length) return;
    document.getElementById("file").files = event.dataTransfer.files;
    form.requestSubmit();
  });
})();
