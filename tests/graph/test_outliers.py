"""The rule for suspicious numbers, and rule files that remove facts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hynt.errors import DataError, UsageError
from hynt.formats.importing import read_graph
from hynt.graph.assembly import Assembler, AssemblyPolicy
from hynt.graph.fact import Fact, Number, Qualifier, fact
from hynt.graph.outlier_rules import NumberLimits, OutlierRules, Removal, read_outlier_rules
from hynt.graph.outliers import find_outliers
from hynt.graph.vocabulary import Entity
from tests.graph.small_graphs import assembled

SERIES = [fact(f"series {at}", "number of seasons", at % 10 + 1) for at in range(60)]
GLEE = fact("Glee", "number of seasons", 91)


def test_the_papers_example_is_found():
    report = find_outliers(assembled({"train": [*SERIES, GLEE]}))
    assert [found.fact for found in report.suspicious] == [GLEE]
    assert report.found == 1
    assert report.suspicious[0].is_tail
    assert report.suspicious[0].distance > 10
    (limits,) = report.ranges
    assert (limits.below, limits.above, limits.log) == (0, 1, False)
    assert 10 < limits.high < 91


def test_few_numbers_are_left_alone():
    assert find_outliers(assembled({"train": [*SERIES[:5], GLEE]})).ranges == ()
    assert find_outliers(assembled({"train": [fact("a", "r", "b")]})).suspicious == ()


def test_long_tails_are_judged_by_orders_of_magnitude():
    towns = [fact(f"town {at}", "population", 10.0 ** (1 + 7 * at / 99)) for at in range(100)]
    assert find_outliers(assembled({"train": towns})).found == 0
    report = find_outliers(assembled({"train": [*towns, fact("odd", "population", 1e30)]}))
    assert [found.fact.head for found in report.suspicious] == ["odd"]
    assert report.ranges[0].log


def test_qualifiers_are_looked_at_too():
    facts = [fact(f"a{at}", "member of", "b", [("since", 1990 + at % 30)]) for at in range(40)]
    report = find_outliers(assembled({"train": [*facts, fact("a", "member of", "b", [("since", 19.0)])]}))
    assert [(found.value, found.is_tail) for found in report.suspicious] == [(19.0, False)]


def test_equal_numbers_with_one_exception():
    animals = [fact(f"animal {at}", "legs", 4) for at in range(100)]
    report = find_outliers(assembled({"train": [*animals, fact("odd", "legs", 400)]}))
    assert [found.value for found in report.suspicious] == [400.0]
    assert find_outliers(assembled({"train": animals})).found == 0


def test_limit_shortens_the_list_but_not_the_count():
    odd = [fact(f"odd {at}", "number of seasons", 500 + at) for at in range(2)]
    report = find_outliers(assembled({"train": [*SERIES, *odd]}), limit=1)
    assert ([found.value for found in report.suspicious], report.found) == ([501.0], 2)


def test_known_errors_of_hn_yg_are_found(shared_data):
    graph = read_graph(shared_data / "HN-YG" / "raw", "hynt")
    found = {(item.fact.head, item.fact.relation) for item in find_outliers(graph).suspicious}
    assert ("YAGO_George_R._R._Martin", "hasHeight") in found  # 13 metres
    assert ("YAGO_The_Beach_Boys", "wasBornOnDate") in found  # 1257


def assembled_with(rules: OutlierRules, facts: list[Fact], details: dict[str, Entity] | None = None):
    with Assembler(AssemblyPolicy(outlier_rules=rules), {}, details or {}) as assembler:
        for one in facts:
            assembler.add(one, "train")
        return assembler.finish().to_graph()


def test_limits_remove_tails_and_qualifiers_and_are_counted():
    facts = [*SERIES, GLEE, fact("Lost", "on", "ABC", [("number of seasons", 0)])]
    rules = OutlierRules(limits={"number of seasons": NumberLimits(1, 60)})
    graph = assembled_with(rules, facts)
    assert len(graph) == 60
    assert "Glee" not in graph.vocabulary.entity_ids
    assert graph.manifest.importing["outliers"] == {
        "removed_facts": 2,
        "rules": [{"rule": "number of seasons: at least 1 and at most 60", "removed_facts": 2}],
    }


def test_single_facts_are_removed_by_number_literal_or_entity():
    facts = [
        GLEE,
        fact("Glee", "number of seasons", 6),
        fact("Glee", "on", "Fox"),
        fact("Glee", "on", "ABC"),
        fact("Glee", "born", Number(2016.9, "2016-20-11", "date")),
    ]
    rules = OutlierRules(
        remove=(
            Removal("The Glee", "number of seasons", number=91),
            Removal("Glee", "born", literal="2016-20-11"),
            Removal("Glee", "on", entity="ABC"),
            Removal("Glee", "number of seasons", number=7),
        )
    )
    graph = assembled_with(rules, facts, {"Glee": Entity("Glee", "The Glee")})
    assert [one[:3] for one in graph.facts()] == [facts[1][:3], facts[2][:3]]
    report = graph.manifest.importing["outliers"]
    assert [rule["removed_facts"] for rule in report["rules"]] == [1, 1, 1, 0]
    json.dumps(report)


def test_a_fact_is_counted_under_the_first_rule_it_breaks():
    bad = Fact("a", "r", Number(99.0, "99"), (Qualifier("q", Number(-1.0, "-1")),))
    rules = OutlierRules(limits={"r": NumberLimits(maximum=9), "q": NumberLimits(minimum=0)})
    report = assembled_with(rules, [*SERIES, bad]).manifest.importing["outliers"]
    assert report["removed_facts"] == 1
    assert [rule["removed_facts"] for rule in report["rules"]] == [1, 0]


def test_unknown_names_in_rules_are_refused():
    with pytest.raises(DataError) as refused:
        assembled_with(OutlierRules(limits={"number of season": NumberLimits(1)}), SERIES)
    assert str(refused.value) == (
        "limits: the outlier rules speak of the relation 'number of season', which the source does not have. "
        "Did you mean 'number of seasons'?"
    )
    with pytest.raises(DataError, match="the entity 'Gleee'"):
        assembled_with(OutlierRules(remove=(Removal("Gleee", "number of seasons", number=1),)), [GLEE])
    with pytest.raises(DataError, match="carries entities, so its numbers have no limits"):
        assembled_with(OutlierRules(limits={"on": NumberLimits(1)}), [fact("a", "on", "b")])


def test_removing_everything_is_refused():
    with pytest.raises(DataError, match="no fact is left"):
        assembled_with(OutlierRules(limits={"number of seasons": NumberLimits(minimum=1000)}), SERIES)


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "the file has no rules"),
        ("[limits.r]\nmaximun = 3", "unknown setting"),
        ("[limits.r]", "a limit needs a minimum or a maximum"),
        ("[limits.r]\nminimum = 3\nmaximum = 1", "the minimum 3 is above the maximum 1"),
        ("[limits.r]\nminimum = nan", "finite"),
        ('[[remove]]\nhead = "a"\nrelation = "r"', "exactly one of number, literal and entity"),
        ('[[remove]]\nhead = "a"\nnumber = 3', "a setting is missing"),
        ("[limits", "not valid TOML"),
    ],
)
def test_bad_rule_files_are_refused_with_their_place(tmp_path: Path, text, message):
    path = tmp_path / "rules.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as refused:
        read_outlier_rules(path)
    assert message in str(refused.value)
    assert str(path) in refused.value.where


def test_a_rule_file_is_read(tmp_path: Path):
    path = tmp_path / "rules.toml"
    path.write_text('[limits."number of seasons"]\nmaximum = 60\n\n[[remove]]\nhead="a"\nrelation="r"\nnumber=3\n')
    rules = read_outlier_rules(path)
    assert rules == OutlierRules({"number of seasons": NumberLimits(None, 60.0)}, (Removal("a", "r", 3.0),))
