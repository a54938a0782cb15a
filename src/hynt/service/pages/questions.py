"""A question as the address of a page holds it: every state can be shared, and every button is a link to another one.

    /ask?head=Japan&relation=life+expectancy&tail=%3F&qualifier=sex&value=female

Questions to begin with are taken from the graph itself, so that an empty page is an invitation.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any
from urllib.parse import urlencode

import numpy as np

from hynt.asking.written import number_for
from hynt.errors import UsageError
from hynt.graph.fact import DATE_UNIT, Fact, Number
from hynt.graph.fact_table import FactTable
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.sentences import Sentences, format_moment, format_stored
from hynt.graph.statistics import values_over_time
from hynt.graph.vocabulary import Relation
from hynt.reporting.report.graph import best_known

BLANK = "?"
TRIPLET = ("head", "relation", "tail")
TOPS = (10, 25, 50, 100)
MOST_QUALIFIERS = 16
"""The most qualifiers that fit in an address."""
RULES = ("type", "unknown")


def address(path: str, parameters: Iterable[tuple[str, Any]] = ()) -> str:
    """A path with parameters; those without a value are left out."""
    given = [(name, str(value)) for name, value in parameters if value not in (None, "")]
    return f"{path}?{urlencode(given)}" if given else path


@dataclass(frozen=True)
class AskedForm:
    """The fields of the form, as people filled them in."""

    head: str = ""
    relation: str = ""
    tail: str = ""
    qualifiers: tuple[tuple[str, str], ...] = ()
    top: int = TOPS[0]
    candidates: tuple[str, ...] = ()
    why: bool = False  # whether it is also told what mattered to the answer

    @classmethod
    def read(cls, given: Sequence[tuple[str, str]]) -> AskedForm:
        """From an address. What makes no sense there (a `top` that is no number) falls back to what is usual."""
        values = defaultdict[str, list[str]](list)
        for name, value in given:
            values[name].append(value.strip())
        pairs = tuple(zip_longest(values["qualifier"], values["value"], fillvalue=""))[:MOST_QUALIFIERS]
        top, head, relation, tail = (next(iter(values[name]), "") for name in ("top", *TRIPLET))
        return cls(
            head,
            relation,
            tail,
            pairs,
            int(top) if top.isdecimal() and int(top) in TOPS else TOPS[0],
            tuple(rule for rule in RULES if rule in values["candidates"]),
            "1" in values["why"],
        )

    @classmethod
    def of(cls, fact: Mapping[str, Any]) -> AskedForm:
        """A fact as `GraphViews` tells it, in ids."""
        pairs = tuple((pair["relation"]["id"], _field_of(pair["value"])) for pair in fact["qualifiers"])
        return cls(fact["head"]["id"], fact["relation"]["id"], _field_of(fact["tail"]), pairs[:MOST_QUALIFIERS])

    @property
    def address(self) -> str:
        """Where this very question is asked."""
        pairs = [
            (name, part) for pair in self.qualifiers for name, part in zip(("qualifier", "value"), pair, strict=True)
        ]
        # Empty sides of a qualifier stay: relations and values are told apart by their order.
        given = [("head", self.head), ("relation", self.relation), ("tail", self.tail)]
        written = [(name, value) for name, value in given if value] + pairs
        written += [("candidates", rule) for rule in self.candidates]
        if self.top != TOPS[0]:
            written.append(("top", str(self.top)))
        if self.why:
            written.append(("why", "1"))
        return f"/ask?{urlencode(written)}" if written else "/ask"

    @property
    def question(self) -> dict[str, Any]:
        """As the inference process reads it."""
        return {
            "head": self.head,
            "relation": self.relation,
            "tail": self.tail,
            "qualifiers": [{"relation": relation, "value": value} for relation, value in self.filled.qualifiers],
            "top": self.top,
            "candidates": list(self.candidates),
            "level": 0.9,
        }

    @property
    def filled(self) -> AskedForm:
        """Without the rows for qualifiers that were left empty."""
        return replace(self, qualifiers=tuple(pair for pair in self.qualifiers if any(pair)))

    def named(self, name: Callable[..., str]) -> AskedForm:
        """With names in the place of ids, as `GraphViews.name_to_write` has them."""

        def value(text: str) -> str:
            return text if text[:1].isdigit() else name(text)  # a number or a date stays what it is

        pairs = tuple((name(relation, is_relation=True), value(text)) for relation, text in self.qualifiers)
        relation = name(self.relation, is_relation=True)
        return replace(self, head=name(self.head), relation=relation, tail=value(self.tail), qualifiers=pairs)

    def places(self) -> list[str]:
        """The places of all parts, as `put` names them."""
        sides = [f"{number}{side}" for number in range(len(self.qualifiers)) for side in ("r", "v")]
        return [*TRIPLET, *sides]

    def part(self, place: str) -> str:
        """What stands at a place; nothing where there is no such place."""
        if place in TRIPLET:
            return str(getattr(self, place))
        if place not in self.places():
            return ""
        return self.qualifiers[int(place[:-1])][0 if place[-1] == "r" else 1]

    @property
    def is_empty(self) -> bool:
        return not any(self.part(place) for place in self.places())

    def missing(self) -> list[str]:
        """The parts that are neither filled in nor asked for."""
        found = [name for name in TRIPLET if not getattr(self, name)]
        for number, (relation, value) in enumerate(self.qualifiers, 1):
            if bool(relation) != bool(value):
                found.append(f"{'value' if relation else 'relation'} of qualifier {number}")
        return found

    def blanks(self) -> int:
        """How many blanks there are."""
        return sum(self.part(place) == BLANK for place in self.places())

    # ------------------------------------------------------------------ what the buttons lead to

    def put(self, place: str, text: str) -> AskedForm:
        """The same with another part; `place` is head, relation, tail, or a qualifier's number and side: 0r, 1v."""
        if place in TRIPLET:
            return replace(self, **{place: text})  # type: ignore[arg-type]
        if place not in self.places():
            return self
        pairs = list(self.qualifiers)
        number = int(place[:-1])
        relation, value = pairs[number]
        pairs[number] = (text, value) if place[-1] == "r" else (relation, text)
        return replace(self, qualifiers=tuple(pairs))

    def with_blank(self, place: str) -> AskedForm:
        """The same with the blank elsewhere."""
        emptied = self
        for part in self.places():
            if self.part(part) == BLANK:
                emptied = emptied.put(part, "")
        return emptied.put(place, BLANK)

    def with_qualifier(self, relation: str = "", value: str = "") -> AskedForm:
        """With one more qualifier, or room for one."""
        return replace(self, qualifiers=(*self.qualifiers, (relation, value))[:MOST_QUALIFIERS])

    def without(self, number: int) -> AskedForm:
        """Without one qualifier, by its place from 0."""
        return replace(self, qualifiers=tuple(pair for at, pair in enumerate(self.qualifiers) if at != number))

    def asking_why(self) -> AskedForm:
        """The same, with what mattered to the answer."""
        return replace(self, why=True)

    def variants(self, name: Callable[[str], str] = str) -> list[tuple[str, AskedForm]]:
        """This question, and what it is without each of its qualifiers: what is removed, in names, and the question."""
        full = self.filled
        found = [("", full)]
        if len(full.qualifiers) > 1:
            for place, pair in enumerate(full.qualifiers):
                if BLANK not in pair:
                    found.append((" ".join(map(name, pair)), full.without(place)))
        visible = tuple(pair for pair in full.qualifiers if BLANK in pair)
        if len(visible) < len(full.qualifiers):
            alone = full.qualifiers[0] if len(full.qualifiers) == 1 else None
            removed = "all qualifiers" if alone is None else " ".join(map(name, alone))
            found.append((removed, replace(full, qualifiers=visible)))
        return found


def changed(form: AskedForm, given: Mapping[str, str]) -> AskedForm | None:
    """What a button of the form asks for; None where none was pressed."""
    if "blank" in given:
        return form.with_blank(given["blank"])
    if "add" in given:
        return form.with_qualifier()
    if "remove" in given:
        place = given["remove"]
        return form.without(int(place)) if place.isdecimal() and len(place) < 4 else form
    return None


ENTITIES = 8
EXAMPLE_QUALIFIERS = 3
TRENDS = 4
SERIES = 3
"""Values of one head over time from which on a trend is offered."""


def beginnings(graph: KnowledgeGraph, best: Sequence[tuple[int, int]] = ()) -> dict[str, Any]:
    """Well-known entities, questions of different kinds, and trends. `best` are held-out facts that the run answers
    well, by row and position; without them questions are of the commonest relations.
    """
    train = graph.split("train")
    held_out = graph.splits.get("valid")
    table = held_out if held_out is not None and len(held_out) else train
    questions = _best_questions(graph, best) if best else _questions(graph, table)
    return {"entities": _entities(graph), "questions": questions, "trends": _trends(graph)}


def _best_questions(graph: KnowledgeGraph, best: Sequence[tuple[int, int]]) -> list[dict[str, str]]:
    facts = graph.split("valid").take(np.array([row for row, _ in best], dtype=np.int64)).facts(graph.vocabulary)
    return [_example(graph, fact, TRIPLET[position]) for fact, (_, position) in zip(facts, best, strict=True)]


def _entities(graph: KnowledgeGraph) -> list[dict[str, str]]:
    names, labels = graph.vocabulary.entities, graph.entity_labels
    return [{"id": names[one], "name": labels[one]} for one in best_known(graph, ENTITIES)]


def _questions(graph: KnowledgeGraph, table: FactTable) -> list[dict[str, str]]:
    """A missing entity, a missing number and a missing relation, of facts with qualifiers where there are some."""
    is_number, counts = graph.vocabulary.relation_is_number, table.qualifier_counts()
    frequency = np.bincount(table.relation, minlength=len(graph.relations))[table.relation]
    fits = (counts > 0) & (counts <= EXAMPLE_QUALIFIERS)
    weight = np.bincount(graph.split("train").head, minlength=graph.vocabulary.entity_count)[table.head]
    taken: set[int] = set()
    heads: set[int] = set()
    found = []
    for numbers, place in ((False, "tail"), (True, "tail"), (False, "head"), (False, "relation")):
        of_kind = is_number[table.relation] == numbers
        fresh = ~np.isin(table.relation, list(taken)) & ~np.isin(table.head, list(heads))
        order = np.lexsort((np.arange(len(table)), -weight, -frequency, ~(fits & fresh), ~of_kind))
        if not len(order) or not of_kind[order[0]]:
            continue
        row = int(order[0])
        taken.add(int(table.relation[row]))
        heads.add(int(table.head[row]))
        (fact,) = table.take(np.array([row], dtype=np.int64)).facts(graph.vocabulary)
        found.append(_example(graph, fact, place))
    return found


def _example(graph: KnowledgeGraph, fact: Fact, place: str) -> dict[str, str]:
    words = Sentences(graph)
    shown = [words.entity(fact.head), words.relation(fact.relation), words.value(fact.tail)]
    shown[TRIPLET.index(place)] = BLANK
    few = fact.qualifiers[:EXAMPLE_QUALIFIERS]
    pairs = tuple((pair.relation, written(pair.value)) for pair in few)
    told = "; ".join(f"{words.relation(pair.relation)} {words.value(pair.value)}" for pair in few)
    form = AskedForm(fact.head, fact.relation, written(fact.tail), pairs).put(place, BLANK)
    return {"text": " · ".join(shown) + (f" ({told})" if told else ""), "address": form.address}


def written(value: str | Number) -> str:
    """A value as a field of the form takes it."""
    return value if isinstance(value, str) else written_number(value.value, value.unit, format_stored(value))


def written_number(value: float, unit: str, shown: str = "") -> str:
    """A number as a field takes it: a date as a date, and with the unit in which it is shown, where these can be read
    back as the very number.
    """
    if unit != DATE_UNIT:
        if " " in shown and _reads_as(shown, unit) == value:
            return shown
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if value >= 1:
        return format_moment(value)
    year = math.floor(value)  # astronomical, as dates are written: 0 is 1 BCE
    return f"-{-year:04d}" if year else "0000"


def _reads_as(shown: str, unit: str) -> float | None:
    try:
        return number_for(Relation("", "number", unit), shown, "").value
    except UsageError:
        return None


def _trends(graph: KnowledgeGraph) -> list[dict[str, str]]:
    """The relations with numbers at the most dates, each with the head that has most; a head comes once."""
    couples, counts = np.unique(values_over_time(graph, "train"), return_counts=True)
    relations, heads = set[int](), set[int]()
    found = []
    for place in np.argsort(-counts, kind="stable").tolist():
        head, relation = divmod(int(couples[place]), graph.vocabulary.relation_count)
        if head in heads or relation in relations or counts[place] < SERIES:
            continue
        heads.add(head)
        relations.add(relation)
        parameters = [("head", graph.vocabulary.entities[head]), ("relation", graph.relations[relation].name)]
        text = f"{graph.entity_labels[head]}: {graph.relation_labels[relation]}"
        found.append({"text": text, "address": address("/trends", parameters)})
        if len(found) == TRENDS:
            break
    return found


def _field_of(value: Mapping[str, Any]) -> str:
    if "id" in value:
        return str(value["id"])
    return written_number(float(value["number"]), value["unit"], str(value["text"]))
