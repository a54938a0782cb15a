"""A made-up graph as a company might keep one: 70 firms with founders, products, revenues and employees by year.

Much of it follows from other facts (who founds a firm works for it, a product's category is its maker's industry), so a
model that has learnt the graph answers well, and one that was trained too briefly does not.

python -m benchmarks.generated_companies facts.jsonl
hynt data import facts.jsonl --format jsonl --out parts/companies
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any, TypeAlias

FIRST = (
    "Ana Ben Carla Dev Elif Farid Greta Hugo Ines Jun Kofi Lena Marco Nadia Omar Petra Quinn Rosa Sven Tara Uma Viktor "
    "Wanda Xin Yara Zeno"
)
LAST = (
    "Abbott Berg Castro Diaz Engel Fischer Garcia Hansen Ito Jansen Klein Larsen Meyer Novak Okafor Park Rossi Sato "
    "Torres Ueda Vogel Weber Yilmaz Zhang"
)
COUNTRY_OF = {
    "Berlin": "Germany",
    "Munich": "Germany",
    "Paris": "France",
    "Lyon": "France",
    "Tokyo": "Japan",
    "Osaka": "Japan",
    "Austin": "United States",
    "Boston": "United States",
    "Toronto": "Canada",
    "Oslo": "Norway",
}
COUNTRIES = ["Germany", "France", "Japan", "United States", "Canada", "Norway"]
INDUSTRIES = ["robotics", "biotech", "software", "shipping", "solar power", "food"]
ROLES = ("chief executive", "chief scientist", "chair")

Record: TypeAlias = tuple[str, str, Any, list[Any]]


def companies(firms: int = 70, seed: int = 4) -> list[Record]:
    """Head, relation, tail and qualifiers, as the format jsonl writes them."""
    chance = random.Random(seed)
    people = [f"{first} {last}" for first in FIRST.split() for last in LAST.split()]
    chance.shuffle(people)
    facts: list[Record] = [(city, "country", country, []) for city, country in COUNTRY_OF.items()]
    for firm in range(1, firms + 1):
        facts += _firm(chance, firm, people[3 * firm - 3 : 3 * firm])
    return facts


def _firm(chance: random.Random, number: int, founders: list[str]) -> list[Record]:
    first = chance.choice(["Nova", "Blue", "Terra", "Quanta", "Helio", "Aero", "Vita", "Omni"])
    name = f"{first} {chance.choice(['Labs', 'Works', 'Dynamics', 'Foods', 'Systems', 'Marine'])} {number}"
    city, industry, begun = chance.choice(list(COUNTRY_OF)), chance.choice(INDUSTRIES), chance.randint(1985, 2015)
    facts: list[Record] = [
        (name, "headquarters", city, []),
        (name, "industry", industry, []),
        (name, "founded", _day(chance, begun), []),
    ]
    revenue = chance.uniform(1, 80)
    employees = int(revenue * chance.uniform(3, 8)) + 5
    for year in range(2014, 2024):
        revenue *= chance.uniform(0.97, 1.22)
        employees = int(employees * chance.uniform(0.98, 1.15)) + 1
        when = [["point in time", {"date": str(year)}]]
        facts.append((name, "revenue", {"number": round(revenue, 2), "unit": "million USD"}, when))
        facts.append((name, "employees", employees, when))
    for person, role in zip(founders, ROLES, strict=True):
        facts.append((name, "founder", person, [["role", role]]))
        facts.append((person, "born", _day(chance, begun - chance.randint(22, 45)), []))
        facts.append((person, "works for", name, [["role", role], ["start time", {"date": str(begun)}]]))
        at_home = chance.random() < 0.8
        facts.append((person, "citizen of", COUNTRY_OF[city] if at_home else chance.choice(COUNTRIES), []))
    for letter in "abc":
        product = f"{first}{chance.choice(['Bot', 'Cell', 'Ware', 'Ship', 'Panel', 'Bar'])}-{number}{letter}"
        facts.append((name, "product", product, [["start time", {"date": str(begun + chance.randint(1, 8))}]]))
        facts.append((product, "mass", {"number": round(chance.lognormvariate(1, 1), 2), "unit": "kg"}, []))
        facts.append((product, "category", industry, []))
    return facts


def _day(chance: random.Random, year: int) -> dict[str, str]:
    return {"date": f"{year}-{chance.randint(1, 12):02d}-{chance.randint(1, 28):02d}"}


def write(path: Path) -> None:
    """One JSON object a line."""
    lines = []
    for head, relation, tail, qualifiers in companies():
        record = {"head": head, "relation": relation, "tail": tail}
        lines.append(json.dumps(record | ({"qualifiers": qualifiers} if qualifiers else {})))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
