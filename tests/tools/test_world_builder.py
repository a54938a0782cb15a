"""The builder of `world`: its readers of the Factbook on short texts typed here; no source package is needed."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # the builder lives outside the installed package

from tools.world import factbook, factbook_geography, factbook_government, factbook_lists
from tools.world.audit import row
from tools.world.countries import Countries, Country, read_countries
from tools.world.geonames import Cities, City
from tools.world.statement import Date, Reading, Rejected, Statement
from tools.world.text import calendar_date, measure, plain, split_outside_parentheses, year_in_parentheses


def country(code: str, name: str, **record: Any) -> Country:
    return Country(code, name, record)


def world(**record: Any) -> Countries:
    """A small world: one country with a record, and others that texts may name."""
    others = {"us": "United States", "ch": "China", "uk": "United Kingdom", "ga": "The Gambia", "ni": "Nigeria"}
    return Countries([country("sg", "Senegal", **record), *(country(code, name) for code, name in others.items())])


def facts(reading: Reading) -> list[str]:
    """The statements as readable text."""
    return ["\t".join(row(item).split("\t")[:4]) for item in reading if isinstance(item, Statement)]


def reasons(reading: Reading) -> list[str]:
    return [item.reason for item in reading if isinstance(item, Rejected)]


@pytest.mark.parametrize(
    ("text", "wording", "value"),
    [
        ("377,915 sq km", "sq km", "377915"),
        ("$5.715 trillion (2024 est.)", "", "5715000000000"),
        ("-0.45% (2025 est.)", "%", "-0.45"),
        ("67.5 million metric tonnes of CO2 (2023 est.)", "metric tonnes of CO2", "67500000"),
        ("82.3 years", "years", "82.3"),
    ],
)
def test_a_measure_is_a_number_followed_by_the_expected_words(text: str, wording: str, value: str) -> None:
    found = measure(text, wording)
    assert found is not None
    assert found[0] == Decimal(value)


@pytest.mark.parametrize("text", ["NA", "3 sq km less than", "7.5% national budget (2022 est.)", "about 12%", "10-20%"])
def test_other_words_are_no_measure(text: str) -> None:
    assert measure(text, "% of GDP") is None


def test_years_in_parentheses() -> None:
    assert year_in_parentheses("12% (2024 est.)") == Date("2024")
    assert year_in_parentheses("(July 2020 est.)") == Date("2020-07")
    assert year_in_parentheses("24 years (2015/16 est.)") == Date("2015")
    assert year_in_parentheses("(male 7,701,196/female 7,239,389)") is None


def test_calendar_dates() -> None:
    assert calendar_date("13 September 2022") == Date("2022-09-13")
    assert calendar_date("5 Sep 2025") == Date("2025-09-05")
    assert calendar_date("September 2022") == Date("2022-09")
    assert calendar_date("6/12/2021") == Date("2021-06-12")
    assert calendar_date("7 June 843") == Date("0843-06-07")
    assert calendar_date("5 Someday 2022") is None
    assert calendar_date("45161") is None


def test_plain_text_has_no_tags_entities_or_notes() -> None:
    assert plain("<p>C&ocirc;te&nbsp; d'Ivoire</p> <strong>note:</strong> more") == "Côte d'Ivoire"


def test_splitting_minds_parentheses_and_thousands() -> None:
    assert split_outside_parentheses("a 1,000 km, b (c, d); e", ",;") == ["a 1,000 km", "b (c, d)", "e"]


def test_only_countries_of_a_million_people_are_read(tmp_path: Path) -> None:
    for code, name, people in (("ja", "Japan", "123,201,945 (2024 est.)"), ("tv", "Tuvalu", "11,824 (2025 est.)")):
        record = {
            "People and Society": {"Population": {"total": {"text": people}}},
            "Government": {"Country name": {"conventional short form": {"text": name}}},
        }
        (tmp_path / "asia").mkdir(exist_ok=True)
        (tmp_path / "asia" / f"{code}.json").write_text(json.dumps(record), encoding="utf-8")
    assert [found.name for found in read_countries(tmp_path)] == ["Japan"]


def test_entries_for_two_territories_together_are_set_aside(tmp_path: Path) -> None:
    record = {
        "People and Society": {"Population": {"total": {"text": "3,310,554 (2025 est.)"}}},
        "Economy": {"Exports": {"note": "entry includes West Bank and Gaza Strip"}, "Imports": {"note": "in dollars"}},
        "Government": {"Country name": {"conventional short form": {"text": "West Bank"}}},
    }
    (tmp_path / "asia").mkdir()
    (tmp_path / "asia" / "we.json").write_text(json.dumps(record), encoding="utf-8")
    countries = read_countries(tmp_path)
    assert list(countries.by_code["we"].record["Economy"]) == ["Imports"]
    assert [item.origin for item in countries.set_aside] == ["Factbook, West Bank: Economy > Exports"]


def test_a_number_takes_the_year_of_its_total() -> None:
    ages = {"total population": {"text": "85.2 years (2024 est.)"}, "female": {"text": "88.2 years"}}
    found = facts(factbook.read_numbers(world(**{"People and Society": {"Life expectancy at birth": ages}})))
    assert found == [
        "country/Senegal\tlife expectancy\t85.2\tpoint in time: 2024",
        "country/Senegal\tlife expectancy\t88.2\tpoint in time: 2024; sex: sex/female",
    ]


def test_a_yearly_series_gives_its_latest_years() -> None:
    series = {f"Real GDP growth rate {year}": {"text": f"{year % 10}% ({year} est.)"} for year in (2022, 2024, 2023)}
    found = facts(factbook.read_numbers(world(Economy={"Real GDP growth rate": series})))
    assert found == [
        "country/Senegal\tGDP growth rate\t4\tpoint in time: 2024",
        "country/Senegal\tGDP growth rate\t3\tpoint in time: 2023",
    ]


def test_ages_carry_three_qualifiers() -> None:
    ages = {
        "0-14 years": {"text": "12.1% (male 701/female 602)"},
        "15-64 years": {"text": "58.4% (male 9,001/female 8,002)"},
        "65 years and over": {"text": "29.5% (2024 est.) (male 15/female 20)"},
    }
    found = facts(factbook.read_age_structure(world(**{"People and Society": {"Age structure": ages}})))
    assert found[3] == (
        "country/Senegal\tpopulation\t8002\tpoint in time: 2024; sex: sex/female; age group: age_group/15-64_years"
    )
    assert len(found) == 6


def test_railways_by_gauge() -> None:
    tracks = {
        "narrow gauge": {"text": "3,882 km (2014) 1.067-m gauge (858 km electrified)"},
        "broad gauge": {"text": "9 km"},
    }
    found = list(factbook.read_railways(world(Transportation={"Railways": tracks})))
    assert facts(iter(found)) == [
        "country/Senegal\trailway length\t3882\tpoint in time: 2014; track: track/narrow_gauge; "
        "track gauge: 1.067; electrified length: 858"
    ]
    assert reasons(iter(found)) == ["no number in the expected words"]


def test_trade_partners_with_share_year_and_rank() -> None:
    text = {"text": "China 26%, Gambia, The 10%, Atlantis 5%, S. Korea 4% (2023)", "note": "top five export partners"}
    found = list(factbook_lists.read_partners(world(Economy={"Exports - partners": text})))
    assert facts(iter(found)) == [
        "country/Senegal\texport partner\tcountry/China\tshare: 26; point in time: 2023; rank: 1",
        "country/Senegal\texport partner\tcountry/The_Gambia\tshare: 10; point in time: 2023; rank: 2",
    ]
    assert reasons(iter(found)) == ["partner is no country of the graph"] * 2


def test_goods_that_are_elements_are_linked_to_them() -> None:
    text = {"text": "gold, cocoa beans, other nuts (2023)", "note": "top five export commodities"}
    found = facts(factbook_lists.read_goods(world(Economy={"Exports - commodities": text}), frozenset({"Gold"})))
    assert found == [
        "country/Senegal\texports commodity\telement/Gold\tpoint in time: 2023; rank: 1",
        "country/Senegal\texports commodity\tproduct/cocoa_beans\tpoint in time: 2023; rank: 2",
    ]


def test_hedged_resources_are_left_out() -> None:
    text = {"text": "iron ore, and zinc, fish (Lake Chad); small deposits of gold, copper; some marble; timber"}
    found = factbook_lists.read_resources(world(Geography={"Natural resources": text}), frozenset({"Zinc"}))
    assert [line.split("\t")[2] for line in facts(found)] == ["product/iron_ore", "element/Zinc", "product/timber"]


def test_groups_keep_names_and_plain_shares() -> None:
    text = (
        "Wolof 39.7%, Pulaar (Fula) 27.5%, EU (excluding Dutch) 6.4%, Druze <1%, other 5.4% (includes Europeans); "
        "less than 1%: Jola, other (2019 est.)"
    )
    found = facts(factbook_lists.read_groups(world(**{"People and Society": {"Ethnic groups": {"text": text}}})))
    assert found == [
        "country/Senegal\tethnic group\tethnic_group/Wolof\tshare: 39.7; point in time: 2019",
        "country/Senegal\tethnic group\tethnic_group/Pulaar\tshare: 27.5; point in time: 2019",
        "country/Senegal\tethnic group\tethnic_group/Druze\tpoint in time: 2019",
        "country/Senegal\tethnic group\tethnic_group/Jola\tpoint in time: 2019",
    ]


def test_memberships_keep_the_role() -> None:
    text = {"text": "AU, OAS (observers), EITI (compliant country) (suspended)"}
    record = {"Government": {"International organization participation": text}}
    found = list(factbook_lists.read_memberships(world(**record), fewest=1))
    assert facts(iter(found)) == [
        "country/Senegal\tmember of\torganization/AU\t",
        "country/Senegal\tmember of\torganization/OAS\trole: role/observers",
    ]
    assert reasons(iter(found)) == ["entry not in the expected words"]


def test_a_border_is_told_by_the_first_country_only() -> None:
    text = {"text": "The Gambia 749 km; China (north) 1,046 km, Atlantis 4 km"}
    record = {"Geography": {"Land boundaries": {"border countries": text}}}
    found = list(factbook_geography.read_borders(world(**record)))
    assert facts(iter(found)) == ["country/Senegal\tshares border with\tcountry/The_Gambia\tborder length: 749"]
    assert reasons(iter(found)) == ["border told by the other country", "neighbour is no country of the graph"]


def test_rivers_take_their_english_name_and_their_ends() -> None:
    text = {"text": "Rhein (Rhine) river source and mouth (shared with Germany) - 1,233 km; Río Negro - 2,250 km; Odd"}
    record = {"Geography": {"Major rivers (by length in km)": text}}
    assert facts(factbook_geography.read_rivers(world(**record))) == [
        "country/Senegal\triver\triver/Rhine\tlength: 1233; "
        "river part: river_part/source; river part: river_part/mouth",
        "country/Senegal\triver\triver/Rio_Negro\tlength: 2250",
    ]


def test_lakes_of_one_size_only() -> None:
    text = {
        "text": "Lake Kivu (shared with Rwanda) - 2,220 sq km; Chad - 10,360-25,900 sq km; Superior* – 53,348 sq km"
    }
    record = {"Geography": {"Major lakes (area sq km)": {"fresh water lake(s)": text}}}
    assert facts(factbook_geography.read_lakes(world(**record))) == [
        "country/Senegal\tlake\tlake/Kivu\tsurface area: 2220; water type: water_type/fresh_water",
        "country/Senegal\tlake\tlake/Superior\tsurface area: 53348; water type: water_type/fresh_water",
    ]


def test_a_capital_is_found_under_its_other_name() -> None:
    countries = world(
        Government={
            "Capital": {
                "name": {"text": "Ndakaaru (Dakar)"},
                "geographic coordinates": {"text": "14 44 N, 17 38 W"},
                "time difference": {"text": "UTC+5:45 (ahead of Washington)"},
            }
        }
    )
    record = {"name": "Dakar", "population": 9, "geonameid": 1, "alternatenames": ["Ndakaaru"]}
    cities = Cities([City(record, countries.by_code["sg"])])
    assert facts(factbook_geography.read_capitals(countries, cities)) == [
        "country/Senegal\tcapital\tcity/Dakar_Senegal\t",
        "city/Dakar_Senegal\tcountry\tcountry/Senegal\t",
        "city/Dakar_Senegal\tlatitude\t14.733\t",
        "city/Dakar_Senegal\tlongitude\t-17.633\t",
        "city/Dakar_Senegal\tUTC offset\t5.75\t",
    ]


def test_one_of_several_capitals_is_none() -> None:
    name = {"text": "La Paz (administrative capital); Sucre (constitutional [legislative and judicial] capital)"}
    found = list(
        factbook_geography.read_capitals(
            Countries([country("bl", "B", Government={"Capital": {"name": name}})]), Cities([])
        )
    )
    assert reasons(iter(found)) == ["no single capital"]


def test_a_kind_of_government_without_its_remarks() -> None:
    text = {"text": "parliamentary democracy (Parliament) under a constitutional monarchy; a Commonwealth realm"}
    countries = Countries([country("jm", "Jamaica", Government={"Government type": text})])
    assert facts(factbook_government.read_government_types(countries)) == [
        "country/Jamaica\tgovernment type\tgovernment_type/parliamentary_democracy_under_a_constitutional_monarchy\t"
    ]


def test_urban_areas_take_the_year_that_follows_them() -> None:
    text = {"text": "90,000 Kaolack (2018), 3.340 million DAKAR (capital), 1.454 Thies, 120,000 Touba (Mbacke) (2023)"}
    record = {"People and Society": {"Major urban areas - population": text}}
    found = facts(factbook_geography.read_urban_areas(world(**record), Cities([])))
    assert [line for line in found if "urban area" in line] == [
        "city/Touba_Senegal\turban area population\t120000\tpoint in time: 2023",
        "city/Thies_Senegal\turban area population\t1.454\tpoint in time: 2023",  # left out later: out of bounds
        "city/Dakar_Senegal\turban area population\t3340000\tpoint in time: 2023",
        "city/Kaolack_Senegal\turban area population\t90000\tpoint in time: 2018",
    ]


def test_leaders_need_one_name_a_title_and_a_date() -> None:
    offices = {
        "chief of state": {
            "text": "King CHARLES III (since 8 September 2022); represented by Governor Mary SIMON (since 2021)"
        },
        "head of government": {"text": "Presidency Council Chairman RASHAD (since 19 April 2022)"},
    }
    found = list(
        factbook_government.read_leaders(
            Countries([country("sg", "Senegal", Government={"Executive branch": offices})])
        )
    )
    assert facts(iter(found)) == [
        "country/Senegal\tchief of state\tperson/CHARLES_III\tstart time: 2022-09-08; position: position/King"
    ]
    assert len(reasons(iter(found))) == 1


def test_independence_takes_the_first_date_and_from_whom() -> None:
    def read(text: str) -> list[str]:
        return facts(factbook_government.read_independence(world(Government={"Independence": {"text": text}})))

    assert read("4 April 1960 (from the UK); 20 August 1960 (full)") == [
        "country/Senegal\tindependence date\t1960-04-04\tseparated from: country/United_Kingdom"
    ]
    assert read("9 September 1991 (from the Soviet Union)")[0].endswith("former_state/Soviet_Union")
    assert read("1492") == ["country/Senegal\tindependence date\t1492\t"]
    assert read("ca. 965 (unified)") == []
    assert read("none (territory of France)") == []


def test_chambers_carry_up_to_four_qualifiers() -> None:
    chamber = {
        "number of seats": {"text": "596 (568 directly elected; 28 appointed)"},
        "electoral system": {"text": "mixed system"},
        "term in office": {"text": "5 years"},
        "most recent election date": {"text": "10/24/2020 to 11/8/2020"},
        "percentage of women in chamber": {"text": "27.7%"},
    }
    found = facts(
        factbook_government.read_legislatures(world(Government={"Legislative branch - lower chamber": chamber}))
    )
    assert found == [
        "country/Senegal\twomen in legislature share\t27.7\tchamber: chamber/lower_chamber",
        "country/Senegal\tlegislature seats\t596\tchamber: chamber/lower_chamber; "
        "electoral system: electoral_system/mixed_system; term of office: 5; last election: 2020-10-24",
    ]
