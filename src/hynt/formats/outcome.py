"""What a graph holds that is read and not yet saved: its counts, leaks, first facts, and values nobody marked.

Values that are written like numbers or dates and were read as names are said, with the option that marks them. A graph
whose numbers nobody marked reads well and means nothing. Whether a value is a number is never guessed, for house
numbers are names: nothing but a hint follows from it, unless the user asks for it with `--numeric auto`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hynt.formats.values import grouping
from hynt.graph.assembly import Assembly
from hynt.graph.fact_table import FactTable
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.outliers import hiding_numbers
from hynt.graph.sentences import Sentences, format_quantity
from hynt.graph.splitting import find_leakage
from hynt.graph.units.conversion import lookup
from hynt.graph.vocabulary import Vocabulary
from hynt.names import as_given, plural, shortened

PREVIEWED = 10
"""Facts that a preview shows."""


def _tables(assembly: Assembly) -> Iterator[FactTable]:
    return (table for split in assembly.split_names for table in assembly.tables(split))


def grouping_of(vocabulary: Vocabulary, unmarked: dict[str, list[str]]) -> str:
    """How values that nobody marked as numbers seem to group their digits; "" where they do not."""
    if not unmarked.get("numeric"):
        return ""
    names = pa.array(vocabulary.entities, type=pa.string())
    return grouping(lambda pattern: pc.any(pc.match_substring_regex(names, pattern)).as_py())


_DAY_FIRST, _MONTH_FIRST = r"^\s*(1[3-9]|[23]\d)/\d\d?/\d{4}\s*$", r"^\s*\d\d?/(1[3-9]|[23]\d)/\d{4}\s*$"


def date_format_of(vocabulary: Vocabulary, unmarked: dict[str, list[str]]) -> str:
    """How values that nobody marked as dates are written, where it takes a format; "" where it does not."""
    if not unmarked.get("dates"):
        return ""
    names = pa.array(vocabulary.entities, type=pa.string())
    slashes, day, month = (
        pc.any(pc.match_substring_regex(names, pattern)).as_py()
        for pattern in (rf"^\s*{_SLASHES}\s*$", _DAY_FIRST, _MONTH_FIRST)
    )
    return "" if not slashes or (day and month) else "%m/%d/%Y" if month else "%d/%m/%Y"


def unmarked_in(assembly: Assembly) -> dict[str, list[str]]:
    """The relations whose values are written like numbers or dates and were read as names."""
    return find_unmarked(assembly.vocabulary, lambda: _tables(assembly))


def counts_of(assembly: Assembly) -> dict[str, int]:
    """Entities, relations, and the facts of each split."""
    vocabulary = assembly.vocabulary
    return {
        "entities": vocabulary.entity_count,
        "relations": vocabulary.relation_count,
        "number_relations": int(vocabulary.relation_is_number.sum()),
        **{split: sum(len(table) for table in assembly.tables(split)) for split in assembly.split_names},
    }


def outcome_of(assembly: Assembly) -> dict[str, Any]:
    """What a graph would hold, and the relations in it that give others away."""
    vocabulary = assembly.vocabulary
    names = [relation.name for relation in vocabulary.relations]
    leaks = find_leakage(_tables(assembly), vocabulary)
    left = [leak.to_mapping(names) for leak in leaks]
    return {**assembly.report, "leakage_left": left, "counts": counts_of(assembly)}


def looked_at(assembly: Assembly) -> dict[str, Any]:
    """The first facts in words, and the kind, unit and use of every relation."""
    vocabulary = assembly.vocabulary
    uses = np.zeros(vocabulary.relation_count, dtype=np.int64)
    for table in _tables(assembly):
        uses += np.bincount(np.concatenate([table.relation, table.qualifier_relation]), minlength=len(uses))
    first = next(assembly.tables(assembly.split_names[0]))
    few = first.where(np.arange(len(first)) < PREVIEWED)
    graph = KnowledgeGraph(vocabulary, {assembly.split_names[0]: few}, assembly.entities)
    return {
        "facts": [Sentences(graph).fact(fact) for fact in graph.facts()],
        "relations": [
            {"relation": one.name, "label": one.label, "kind": one.kind, "unit": one.unit, "uses": int(count)}
            for one, count in zip(vocabulary.relations, uses, strict=True)
        ],
    }


AUTO = "auto"
SHARE = 0.9
"""Of the values: some may be missing or unknown, in words."""

_NAMED_UNIT = re.compile(r"[(\[]([^()\[\]]+)[)\]]$")
_NAMES_SHOWN = 5
_LONGEST_HINT = 300
_SPELT_NUMBER = r"[-+]?(0|0[.,]\d+|[1-9]\d*([.,]\d+)*)([eE][-+]?\d+)?"  # 007 and 01067 are codes
_SPELT_UNIT = r"^\s*[-+]?(?:0|0[.,]\d+|[1-9]\d*(?:[.,]\d+)*)\s*(?P<unit>(?:/\D|[^\s\d.,+/-]).{0,15}?)\s*$"
_SPELT_MONEY = r"^\s*[-+]?(US)?[$£€₩₪₹₽]\s*\d+([.,]\d+)*\s*(k|K|m|M|mn|b|B|bn|tn|[mb]illion)?\s*$"
_SPELT_YEAR = r"(1[5-9]|20)\d\d"
_SLASHES = r"\d\d?/\d\d?/\d{4}"
_SPELLINGS = {
    "numeric": ("numbers", rf"^\s*{_SPELT_NUMBER}\s*$"),
    "quantities": ("numbers with units", rf"^\s*{_SPELT_NUMBER}\s*$|{_SPELT_MONEY}"),
    "dates": (
        "dates",
        rf"^\s*({_SPELT_YEAR}|[-+]?\d{{4,}}-\d\d(-\d\d(T.*)?)?|\d{{4}}/\d\d?/\d\d?|{_SLASHES}|\d\d?\.\d\d?\.\d{{4}}"
        r"|[A-Z][a-z]{2,8} \d{1,2}, \d{4}|\d{1,2} [A-Z][a-z]{2,8} \d{4})\s*$",
    ),
    "years": ("years", rf"^\s*{_SPELT_YEAR}\s*$"),
}
_MOST_UNITS = 10_000
"""Different endings of names that are looked up: numbered things have more, and no units."""


def _spelt(names: pa.Array) -> dict[str, np.ndarray]:
    """By option, (n,) which names are written like that."""
    like = {
        option: np.array(pc.match_substring_regex(names, spelling).to_pylist(), dtype=np.bool_)
        for option, (_, spelling) in _SPELLINGS.items()
    }
    units = pc.struct_field(pc.extract_regex(names, _SPELT_UNIT), "unit")
    endings = units.drop_null().unique()
    if len(endings) <= _MOST_UNITS:
        known = pa.array([unit for unit in endings.to_pylist() if lookup(unit)], pa.string())
        like["quantities"] |= np.array(pc.is_in(units, value_set=known).to_pylist(), dtype=np.bool_)
    return like


def find_unmarked(vocabulary: Vocabulary, tables: Callable[[], Iterable[FactTable]]) -> dict[str, list[str]]:
    """The relations with entities that are never the head of a fact and whose values are written like numbers
    ("numeric"), numbers of which most have a unit ("quantities"), dates ("dates", some of them finer than a year) or
    years ("years", which are among the numbers). `tables` is called for each pass over the facts."""
    like = _spelt(pa.array(vocabulary.entities, type=pa.string()))
    spelt = {option: fitting.copy() for option, fitting in like.items() if fitting.any()}
    for table in tables() if spelt else ():
        for option in spelt:
            like[option][table.head] = False
    count = vocabulary.relation_count
    seen = {option: np.zeros(count) for option in spelt}
    fits = {option: np.zeros(count) for option in spelt}
    for table in tables() if any(like[option].any() for option in spelt) else ():
        for option, names in spelt.items():
            named = ~names[table.head]  # the others are facts of numbered things, and so may their values be
            for relation, value in (
                (table.relation[named], table.tail_entity[named]),
                (table.qualifier_relation, table.qualifier_entity),
            ):
                seen[option] += np.bincount(relation, minlength=count)
                fits[option] += np.bincount(relation, weights=like[option][value], minlength=count)
    entities = ~vocabulary.relation_is_number
    found = {option: entities & (seen[option] > 0) & (fits[option] >= SHARE * seen[option]) for option in spelt}
    if "dates" in found:
        found["dates"] &= fits["dates"] > fits.get("years", 0)
        for option in found.keys() - {"dates"}:
            found[option] &= ~found["dates"]
    if "quantities" in found:
        found["quantities"] &= ~found.get("numeric", np.zeros(count, dtype=np.bool_))
    return {
        option: [vocabulary.relations[place].name for place in np.flatnonzero(flags)] for option, flags in found.items()
    }


def hints_for_programs(graph: KnowledgeGraph) -> list[str]:
    """What to say of such relations of a graph that a program has made."""
    vocabulary = graph.vocabulary
    unmarked = find_unmarked(vocabulary, lambda: graph.splits.values())
    formats = grouping_of(vocabulary, unmarked), date_format_of(vocabulary, unmarked)
    return hints_at(unmarked, *formats, to_program=True)


def hints_at(
    unmarked: dict[str, list[str]], number_format: str = "", date_format: str = "", *, to_program: bool = False
) -> list[str]:
    """What to say of such relations after an import. `number_format` is how their numbers seem to group digits,
    `date_format` how their dates are written, where that must be said. A program is told arguments, a person options.
    """
    said = []
    years = set(unmarked.get("years", ()))
    for kind, found in unmarked.items():
        names = [name for name in found if kind == "years" or name not in years]
        if not names:
            continue
        words = _SPELLINGS[kind][0]
        start = f"values of {_listed(names)} are written like {words} and were read as names. "
        flag = "dates" if kind in ("dates", "years") else "numeric"
        formats = {"dates": ("date", date_format), "years": ("date", "")}
        option, example = formats.get(kind, ("number", number_format))
        if to_program:
            told = f", {option}_format={example!r}" if example else ""
            said.append(f"{start}If they are {words}, add: {flag}={names!r}{told}")
            continue
        written = f" --{option}-format {shlex.quote(example)}" if example else ""
        exact = f"{start}If they are {words}, add: --{flag} {as_given(names)}{written}"
        long = len(exact) > _LONGEST_HINT and kind != "years"
        said.append(f"{start}If they are {words}, add: --{flag} {AUTO}{written}" if long else exact)
    return said


def hints_at_units(vocabulary: Vocabulary) -> list[str]:
    """What to say of numbers without a unit whose relation's name ends in one: height (cm), flow [m3/s]."""
    bare = (one.name for one in vocabulary.relations if one.kind == "number" and not one.unit)
    named = ((name, _NAMED_UNIT.search(name)) for name in bare)
    units = {name: found[1] for name, found in named if found and lookup(found[1])}
    if not units:
        return []
    options = " ".join(
        f"--unit-of {shlex.quote(f'{name}={unit}')}" for name, unit in list(units.items())[:_NAMES_SHOWN]
    )
    start = (
        f"the name{'s' if len(units) > 1 else ''} of {_listed(list(units))} seem{'' if len(units) > 1 else 's'} to say "
    )
    return [f"{start}the unit of their numbers. To keep it with them, add: {options}"]


def hints_at_spaces(vocabulary: Vocabulary) -> list[str]:
    """What to say of names that are another's but for spaces at their ends."""
    said = []
    for kind, listed in (("entities", vocabulary.entities), ("relations", [one.name for one in vocabulary.relations])):
        names = pa.array(listed, type=pa.string())
        bare = pc.utf8_trim_whitespace(names)
        odd = pc.and_(pc.not_equal(names, bare), pc.is_in(bare, value_set=names))
        found = names.filter(odd).to_pylist()
        if found:
            words = ("is", "its") if len(found) == 1 else ("are", "their")
            count = plural(len(found), "name")
            said.append(
                f"{count} of {kind} {words[0]} another's but for spaces at {words[1]} ends, such as {found[0]!r} and "
                f"{found[0].strip()!r}. They were kept apart: take the spaces away in the source if they mean the same."
            )
    return said


def hints_at_extremes(vocabulary: Vocabulary, tables: Iterable[FactTable]) -> list[str]:
    """What to say of numbers that would hide all others of their relation."""
    said = []
    for one in hiding_numbers(vocabulary, list(tables)):
        relation = vocabulary.relations[one.relation]
        value, low, high = (format_quantity(number, relation.unit) for number in (one.value, one.low, one.high))
        said.append(
            f"{relation.label or relation.name} has the number {value}, beside which all others are as one: nine "
            f"tenths lie between {low} and {high}. Correct or remove it; hynt data stats GRAPH --outliers lists more."
        )
    return said


def hint_at_numbers(graph: KnowledgeGraph) -> str | None:
    """What to say of a graph without any number, some of whose relations seem to hold numbers that nobody marked."""
    if graph.vocabulary.relation_is_number.any():
        return None
    names = find_unmarked(graph.vocabulary, lambda: graph.splits.values()).get("numeric")
    if not names:
        return None
    return (
        f"this graph holds no numbers, but values of {_listed(names)} look like numbers. They are taken for names of "
        f"entities, so nothing is learnt of how large they are. If they are numbers, import the graph again with "
        f"--numeric {AUTO} (docs/start/own-data.md)."
    )


def _listed(names: list[str]) -> str:
    shown = ", ".join(shortened(name, 30) for name in names[:_NAMES_SHOWN])
    return shown + (f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else "")
