"""Gapminder's five-year series of population, life expectancy and fertility, 1955 to 2005, from vega-datasets."""

from __future__ import annotations

import json
from pathlib import Path

from tools.world.countries import Countries
from tools.world.statement import Date, Reading, Rejected, Statement, quantity

SOURCE = "gapminder"
_COLUMNS = {"pop": "population", "life_expect": "life expectancy", "fertility": "total fertility rate"}


def read(path: Path, countries: Countries) -> Reading:
    """One statement per row and column, for the countries in the graph."""
    for row in json.loads(path.read_text(encoding="utf-8")):
        country = countries.named(row["country"])
        where = f"Gapminder, {row['country']} {row['year']}"
        for column, relation in _COLUMNS.items():
            passage = json.dumps(row, ensure_ascii=False)
            if country is None:
                yield Rejected("country below a million people", where, passage)
                continue
            when = (("point in time", Date(str(row["year"]))),)
            yield Statement(
                country.entity, relation, quantity(row[column]), when, SOURCE, f"{where}: {column}", passage
            )
