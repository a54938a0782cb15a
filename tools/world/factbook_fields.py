"""The Factbook's single numbers: where each stands, the words that must follow the number, and how it is qualified."""

from __future__ import annotations

from dataclasses import dataclass

from tools.world.statement import Entity, Value

PEOPLE, ECONOMY, ENERGY, LAND, NATURE = "People and Society", "Economy", "Energy", "Geography", "Environment"


@dataclass(frozen=True)
class Field:
    """A place in a country's record that holds one number.

    `wording` is a pattern for what stands between the number and its year; `years` above 0 says the field is a yearly
    series of which the latest so many are taken; `dated_by` is the field whose year holds when the text has none.
    """

    relation: str
    path: tuple[str, ...]
    wording: str
    qualifiers: tuple[tuple[str, Value], ...] = ()
    years: int = 0
    dated_by: tuple[str, ...] = ()


def _entity(relation: str, type_: str, label: str) -> tuple[tuple[str, Value], ...]:
    return ((relation, Entity(type_, label)),)


def _single() -> list[Field]:
    return [
        Field("area", (LAND, "Area", "total "), "sq km"),
        Field("mean elevation", (LAND, "Elevation", "mean elevation"), "m"),
        Field("land boundary length", (LAND, "Land boundaries", "total"), "km"),
        Field("agricultural land share", (LAND, "Land use", "agricultural land"), "%"),
        Field("forest share", (LAND, "Land use", "forest"), "%"),
        Field("renewable water resources", (NATURE, "Total renewable water resources"), "cubic meters"),
        Field("population growth rate", (PEOPLE, "Population growth rate"), "%"),
        Field("birth rate", (PEOPLE, "Birth rate"), "births/1,000 population"),
        Field("death rate", (PEOPLE, "Death rate"), "deaths/1,000 population"),
        Field("net migration rate", (PEOPLE, "Net migration rate"), r"migrant\(s\)/1,000 population"),
        Field("urban population share", (PEOPLE, "Urbanization", "urban population"), "% of total population"),
        Field("mother's mean age at first birth", (PEOPLE, "Mother's mean age at first birth"), "years"),
        Field("maternal mortality ratio", (PEOPLE, "Maternal mortality ratio"), "deaths/100,000 live births"),
        Field("infant mortality rate", (PEOPLE, "Infant mortality rate", "total"), "deaths/1,000 live births"),
        Field("literacy rate", (PEOPLE, "Literacy", "total population"), "%"),
        Field("tobacco use", (PEOPLE, "Tobacco use", "total"), "%"),
        Field("total fertility rate", (PEOPLE, "Total fertility rate"), "children born/woman"),
        Field("health expenditure", (PEOPLE, "Health expenditure", "Health expenditure (as % of GDP)"), "% of GDP"),
        Field("education expenditure", (PEOPLE, "Education expenditure", "Education expenditure (% GDP)"), "% of GDP"),
        Field("education expenditure", (PEOPLE, "Education expenditure"), "% of GDP"),
        Field("physician density", (PEOPLE, "Physician density"), "physicians/1,000 population"),
        Field("obesity rate", (PEOPLE, "Obesity - adult prevalence rate"), "%"),
        Field("poverty rate", (ECONOMY, "Population below poverty line"), "%"),
        Field("electricity consumption", (ENERGY, "Electricity", "consumption"), "kWh"),
        Field("electrification rate", (ENERGY, "Electricity access", "electrification - total population"), "%"),
        Field("internet users share", ("Communications", "Internet users", "percent of population"), "%"),
        Field(
            "mobile subscriptions per 100 inhabitants",
            ("Communications", "Telephones - mobile cellular", "subscriptions per 100 inhabitants"),
            "",
        ),
        Field("airports count", ("Transportation", "Airports"), ""),
        Field("ports count", ("Transportation", "Ports", "total ports"), ""),
    ]


def _yearly() -> list[Field]:
    gini = "Gini Index coefficient - distribution of family income"
    return [
        Field("GDP PPP", (ECONOMY, "Real GDP (purchasing power parity)"), "", years=1),
        Field("GDP growth rate", (ECONOMY, "Real GDP growth rate"), "%", years=2),
        Field("GDP per capita PPP", (ECONOMY, "Real GDP per capita"), "", years=2),
        Field("inflation rate", (ECONOMY, "Inflation rate (consumer prices)"), "%", years=2),
        Field("unemployment rate", (ECONOMY, "Unemployment rate"), "%", years=1),
        Field("Gini index", (ECONOMY, gini), "", years=1),
        Field("public debt", (ECONOMY, "Public debt"), "% of GDP", years=1),
        Field("exports", (ECONOMY, "Exports"), "", years=1),
        Field("imports", (ECONOMY, "Imports"), "", years=1),
        Field("military expenditure", ("Military and Security", "Military expenditures"), "% of GDP", years=2),
    ]


def _by_sex() -> list[Field]:
    measures = [
        ("population", (PEOPLE, "Population"), "total", ""),
        ("median age", (PEOPLE, "Median age"), "total", "years"),
        ("life expectancy", (PEOPLE, "Life expectancy at birth"), "total population", "years"),
        ("youth unemployment rate", (ECONOMY, "Youth unemployment rate (ages 15-24)"), "total", "%"),
    ]
    fields = []
    for relation, path, total, wording in measures:
        fields.append(Field(relation, (*path, total), wording))
        for sex in ("male", "female"):
            qualifiers = _entity("sex", "sex", sex)
            fields.append(Field(relation, (*path, sex), wording, qualifiers, dated_by=(*path, total)))
    return fields


def _by_kind() -> list[Field]:
    fields = [
        Field("alcohol consumption", (PEOPLE, "Alcohol consumption per capita", "total"), "liters of pure alcohol")
    ]
    for beverage in ("beer", "wine", "spirits"):
        path = (PEOPLE, "Alcohol consumption per capita", beverage)
        fields.append(
            Field("alcohol consumption", path, "liters of pure alcohol", _entity("beverage", "product", beverage))
        )
    for sector in ("agriculture", "industry", "services"):
        path = (ECONOMY, "GDP - composition, by sector of origin", sector)
        fields.append(Field("GDP share by sector", path, "%", _entity("sector", "sector", sector)))
    emissions = (NATURE, "Carbon dioxide emissions")
    tonnes = "metric tonnes of CO2"
    fields.append(Field("carbon dioxide emissions", (*emissions, "total emissions"), tonnes))
    for wording, label in (
        ("from coal and metallurgical coke", "coal"),
        ("from petroleum and other liquids", "petroleum"),
        ("from consumed natural gas", "natural gas"),
    ):
        qualifiers = _entity("energy source", "energy_source", label)
        fields.append(Field("carbon dioxide emissions", (*emissions, wording), tonnes, qualifiers))
    for wording, label in (
        ("fossil fuels", "fossil fuels"),
        ("nuclear", "nuclear"),
        ("solar", "solar"),
        ("wind", "wind"),
        ("hydroelectricity", "hydroelectricity"),
        ("geothermal", "geothermal"),
        ("biomass and waste", "biomass"),
        ("tide and wave", "tide and wave"),
    ):
        path = (ENERGY, "Electricity generation sources", wording)
        qualifiers = _entity("energy source", "energy_source", label)
        fields.append(Field("electricity generation share", path, "% of total installed capacity", qualifiers))
    water = (PEOPLE, "Drinking water source")
    for settlement in ("urban", "rural"):
        qualifiers = _entity("settlement", "settlement", settlement)
        path = (*water, f"improved: {settlement}")
        total = (*water, "improved: total")
        fields.append(Field("improved drinking water share", path, "% of population", qualifiers, dated_by=total))
    return fields


FIELDS: list[Field] = [*_single(), *_yearly(), *_by_sex(), *_by_kind()]
"""Every field that `factbook.py` reads, in a fixed order."""
