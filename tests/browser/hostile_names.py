"""A small graph whose names are attacks on a page: what a page shows of them must be text, never markup."""

from __future__ import annotations

from hynt import number
from hynt.formats.from_python import graph_from_facts
from hynt.graph.fact import DATE_UNIT
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.units.dates import decimal_year

ATTACKS = (
    "<script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=\'owned\'">',
    "'><svg/onload=document.title='owned'>",
    "</title></style></svg><h1>owned</h1>",
    "&lt;b&gt;already escaped&lt;/b&gt;",
    "{{ 7 * 7 }} {% raw %} ${7*7}",
    "javascript:document.title='owned'",
    "right to left \u202egnp.exe",
    "a\x00nul and a\x1b[31m colour",
    "name/with?strange#parts&in=it",
)
PEOPLE, TOWNS = 40, ("Springfield", "Shelbyville", "Ogdenville", "Zürich")


def hostile_graph() -> KnowledgeGraph:
    """People with heights over the years, towns, spouses; every fourth person has an attack for a name."""
    facts: dict[str, list[tuple[object, ...]]] = {"train": [], "valid": [], "test": []}
    for index in range(PEOPLE):
        person = f"p{index}"
        split = ("train", "train", "valid", "train", "test")[index % 5]
        facts["train"].append((person, "P19", f"t{index % 4}"))
        facts[split].append((person, "P108", f"t{(index + 1) % 4}", [("since", _year(1990 + index % 20))]))
        for year in range(2000, 2007):
            where = ("train", "train", "valid", "train", "test", "train", "train")[(year + index) % 7]
            facts[where].append((person, "height", number(120 + index + year % 100, "cm"), [("year", _year(year))]))
        wedding = [("year", _year(1990 + index % 20)), ("place", f"t{index % 3}")]
        facts[split].append((person, "P26", f"p{(index + 7) % PEOPLE}", wedding))
    labels = {f"p{index}": name_of(index) for index in range(PEOPLE)}
    labels |= {f"t{index}": town for index, town in enumerate(TOWNS)}
    relations = {"P19": "born in", "P108": "employer <b>", "P26": "spouse"}
    return graph_from_facts(facts, labels=labels, relation_labels=relations, name="people & towns")


def name_of(index: int) -> str:
    """The name of a person."""
    return ATTACKS[index // 4 % len(ATTACKS)] if index % 4 == 0 else f"Person {index}"


def _year(year: int) -> object:
    return number(decimal_year(year, 1), DATE_UNIT, str(year))
