"""Answers as a page shows them: bars for probabilities, a number upon the spread of its relation, and the paper's table
of how the answer changes with the qualifiers.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from hynt.asking.answers import Answers
from hynt.errors import UsageError
from hynt.graph.sentences import format_difference
from hynt.graph.units.conversion import with_display
from hynt.markup import Markup
from hynt.reporting.charts_svg import Marked, spread_chart
from hynt.service.http.problems import Fault, HttpProblem, fault_of
from hynt.service.pages.questions import BLANK, AskedForm, address
from hynt.service.served_run import ServedRun

SUGGESTED = 6


async def answered(served: ServedRun, form: AskedForm) -> dict[str, Any]:
    """What stands below the form: answers, or what keeps them from being given."""
    missing = form.missing()
    if form.is_empty:
        return {"state": "empty"}
    if missing or form.blanks() != 1:
        return {"state": "incomplete", "missing": missing, "holes": form.blanks()}
    variants = form.variants(lambda written: _name_of(served, written))
    try:
        bodies = await served.asked("predict", [variant.question for _, variant in variants], "questions")
    except HttpProblem as problem:
        if problem.status != 422:
            return {"state": "problem", "problem": problem, "waiting": problem.status in (429, 503)}
        own = [fault for fault in problem.faults if (fault.pointer or "").startswith("#/questions/0")]
        faults = own or list(problem.faults[:1])
        faults += _also_unknown(served, form.filled, {field_of(fault.pointer or "") for fault in faults})
        order = {place: number for number, place in enumerate(form.places())}  # as the fields stand
        faults.sort(key=lambda fault: order.get(field_of(fault.pointer or ""), -1))
        return {"state": "refused", "faults": [_explained_fault(form, fault) for fault in faults]}
    found = [json.loads(body) for body in bodies]
    answers = Answers.from_dict(found[0])
    return {
        "state": "answered",
        "answers": found[0],
        "new": answers.new,
        "guesses": answers.guesses,
        "number": await _number(served, form, found[0]),
        "changes": _changes(variants, found),
        "all_stored": _all_stored(form),
        "why": await _why(served, form) if form.why else None,
    }


def _name_of(served: ServedRun, written: str) -> str:
    """What people call an entity whose id stands in a field because several have its name."""
    found = served.views.names.entities_called(written)
    return served.graph.entity_labels[found[0]] if len(found) == 1 else written


def _all_stored(form: AskedForm) -> str | None:
    """Where the page of an entity lists every stored answer; None where the blank is no head or tail of a fact."""
    own = {form.tail: ("head", form.head), form.head: ("tail", form.tail)}
    position, entity = own.get(BLANK, ("", ""))
    if not position:
        return None
    return address("/entity", [("id", entity), ("position", position), ("relation", form.relation)])


def told(result: Mapping[str, Any]) -> str:
    """What stands below the form in one sentence, for those who do not see it change."""
    if result["state"] == "answered":
        stored = result["answers"]["stored"]
        told = f"In the graph: {stored[0]['text']}." if stored else "The graph holds no answer."
        if result["number"] is not None:
            texts = result["number"]["texts"]
            between = f", between {texts['low']} and {texts['high']}" if "low" in texts else ""
            return f"{told} The model says {texts['value']}{between}."
        new = [f"{one.name}, {100 * one.probability:.1f} percent" for one in result["new"]]
        return f"{told} New: {'; '.join(new) or 'none'}."
    if result["state"] == "incomplete":
        missing = ", ".join(result["missing"])
        return f"Still to fill in: {missing}." if missing else "The question needs exactly one blank."
    if result["state"] == "refused":
        return " ".join(str(fault["detail"]) for fault in result["faults"])
    return str(result["problem"].detail) if result["state"] == "problem" else ""


async def _number(served: ServedRun, form: AskedForm, found: Mapping[str, Any]) -> dict[str, Any] | None:
    """A predicted number with its drawing."""
    if found["kind"] != "number":
        return None
    answer = found["answers"][0]
    relation = await served.relation(_relation_of_blank(form))
    none = (note for note in found["notes"] if answer["low"] is None and note.startswith("there is no interval"))
    return {
        "answer": answer,
        "no_interval": next(none, "there is no interval for it"),
        "relation": relation,
        "chart": number_chart(relation, answer),
        "texts": rounded_texts(answer),
    }


def rounded_texts(answer: Mapping[str, Any]) -> dict[str, str]:
    """A predicted number and its interval with as many digits as the interval is sure of; dates stay dates."""
    found = {"value": str(answer["text"])}
    return found if answer["low"] is None else found | {"low": answer["low_text"], "high": answer["high_text"]}


def answer_unit(answer: Mapping[str, Any]) -> str:
    """The unit of an answer, with the one that people read."""
    return with_display(answer["unit"], answer.get("display_unit", ""))


def _relation_of_blank(form: AskedForm) -> str:
    for relation, value in form.qualifiers:
        if value == BLANK:
            return relation
    return form.relation


def number_chart(relation: Mapping[str, Any], answer: Mapping[str, Any]) -> Markup | None:
    """The answer upon the numbers that the graph holds of its relation; None where it holds none."""
    interval = None if answer["low"] is None else (float(answer["low"]), float(answer["high"]))
    known = [float(one["value"]) for one in answer["known"]]
    title = f"{relation['name']}: the answer among the numbers of the graph"
    marked = Marked(answer_unit(relation), float(answer["value"]), interval, known)
    return numbers_chart("answer-chart", title, relation, marked)


def numbers_chart(identity: str, title: str, relation: Mapping[str, Any], marked: Marked) -> Markup | None:
    """How the numbers of a relation are spread; None where it holds none. Bins that are as wide as each other on a
    logarithmic scale rather than on a plain one are drawn on it.
    """
    if relation["numbers"] is None:
        return None
    edges, counts = [float(edge) for edge in relation["numbers"]["edges"]], relation["numbers"]["counts"]
    log = len(edges) > 2 and edges[0] > 0 and edges[-1] - edges[-2] > 1.5 * (edges[1] - edges[0])
    return spread_chart(identity, title, edges, counts, marked, log=log)


def _changes(variants: list[tuple[str, AskedForm]], found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first answer to the question, and to what is left of it without some qualifiers."""
    if len(variants) < 2:
        return []
    rows: list[dict[str, Any]] = []
    for (without, form), answers in zip(variants, found, strict=True):
        first = answers["answers"][0]
        texts = rounded_texts(first) if answers["kind"] == "number" else {"value": first["name"]}
        rows.append(
            {
                "without": without,
                "question": answers["question"],
                "address": form.address,
                "answer": texts["value"],
                "probability": first.get("probability"),
                "low": texts.get("low"),
                "high": texts.get("high"),
                "same": texts["value"] == (rows[0]["answer"] if rows else texts["value"]),
            }
        )
    return rows


async def _why(served: ServedRun, form: AskedForm) -> dict[str, Any] | str:
    """What the answer becomes without each part of the question, what mattered most first, and what is to be known of
    it; or why that is not told.
    """
    try:
        found = await served.explain(form.filled.question)
    except HttpProblem as problem:
        return problem.detail
    is_number = found["kind"] == "number"
    changes = [one["value_change"] if is_number else one["probability_change"] for one in found["influences"]]
    most = max((abs(change) for change in changes if change is not None), default=0.0) or 1.0
    rows = []
    for one, change in zip(found["influences"], changes, strict=True):
        attention = one["context_attention"] if one["context_attention"] is not None else one["prediction_attention"]
        rows.append(
            {
                "part": one["part"],
                "says": one["says"],
                "change": one["change"],
                "answer": one["answer"],
                "told": "" if change is None else _change_text(float(change), found, is_number=is_number),
                "share": 0.0 if change is None else abs(float(change)) / most,
                "attention": attention,
            }
        )
    notes = [note for note in found["notes"] if note.startswith("the graph holds this answer")]
    return {"rows": rows, "notes": notes}


def _change_text(change: float, found: Mapping[str, Any], *, is_number: bool) -> str:
    sign = "+" if change > 0 else "−"
    if not is_number:
        return f"{sign}{100 * abs(change):.1f}\u00a0points"
    return f"{sign}{format_difference(abs(change), answer_unit(found['answers'][0]))}"


# ---------------------------------------------------------------------- refusals


def _also_unknown(served: ServedRun, form: AskedForm, told: set[str]) -> list[Fault]:
    """Other names that the graph lacks: a question is refused for the first, and a person wants to mend them all."""
    names = served.views.names
    pointers = {"head": "#/head", "relation": "#/relation"}
    pointers |= {f"{number}r": f"#/qualifiers/{number}/relation" for number in range(len(form.qualifiers))}
    found = []
    for place, pointer in pointers.items():
        written = form.part(place)
        if place in told or written in ("", BLANK):
            continue
        try:
            if place == "head" and not names.entities_called(written):
                names.entity(written)
            if place != "head" and not names.relations_called(written):
                names.relation(written)
        except UsageError as problem:
            found.append(replace(fault_of(problem), pointer=pointer))
    return found


def _explained_fault(form: AskedForm, fault: Fault) -> dict[str, Any]:
    """A fault with the field it is about, and questions that may have been meant."""
    place = field_of(fault.pointer or "")
    told = refusal(fault)
    near = [one | {"address": form.filled.put(place, one["value"]).address} for one in told["near"]]
    return {**told, "place": place, "near": near}


def field_of(pointer: str) -> str:
    """The form's field that a fault is about: head, relation, tail, 0r, 1v; "" for the whole question."""
    path = pointer.removeprefix("#")
    path = re.sub(r"^/questions/\d+", "", path)
    found = re.fullmatch(r"/qualifiers/(\d+)(?:/(relation|value))?", path)
    if found:
        return f"{found[1]}{'r' if found[2] == 'relation' else 'v'}"
    return path.removeprefix("/") if path in ("/head", "/relation", "/tail") else ""


def refusal(fault: Fault) -> dict[str, Any]:
    """A refusal as a page says it, with a heading and what may have been meant."""
    listed = told_apart([asdict(one) for one in (fault.namesakes or fault.nearest)[:SUGGESTED]])
    heading = "Which one" if fault.namesakes else "Did you mean"
    return {"detail": fault.detail, "advice": fault.advice, "heading": heading, "near": listed}


def told_apart(listed: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Entities or relations as a choice; where two have one name, their types tell them apart, or else their ids."""
    names = Counter(one["name"] for one in listed)
    kinds = Counter((one["name"], one.get("type", "")) for one in listed)
    found = []
    for one in listed:
        kind = one.get("type", "")
        tells = kind.replace("_", " ") if kind and kinds[one["name"], kind] == 1 else one["id"]
        found.append({"name": one["name"], "told": tells if names[one["name"]] > 1 else "", "value": one["id"]})
    return found
