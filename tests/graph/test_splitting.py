"""Made splits: by content, stable when facts come, fair to train; groups stay together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hynt.errors import UsageError
from hynt.graph.assembly import AssemblyPolicy
from hynt.graph.fact import fact
from hynt.graph.splitting import SplitRule, missing_from_train
from tests.graph.fact_strategies import facts
from tests.graph.small_graphs import assembled


def split_of(graph):
    return {one.key(): name for name in graph.splits for one in graph.facts(name)}


@given(st.lists(facts(), min_size=1, max_size=40), st.integers(0, 3))
def test_made_splits_share_nothing_and_train_knows_every_name(made, seed):
    graph = assembled(made, AssemblyPolicy(split=SplitRule(seed=seed)))
    assert set(split_of(graph)) == {one.key() for one in made}
    assert len(graph) == len({one.key() for one in made})
    vocabulary = graph.vocabulary
    tables = [graph.splits["train"], *(graph.splits[name] for name in graph.splits if name != "train")]
    assert missing_from_train(tables, vocabulary) == {"entities": 0, "relations": 0}


@given(st.lists(facts(), min_size=1, max_size=25), st.randoms())
def test_order_of_facts_changes_no_split(made, random):
    shuffled = list(made)
    random.shuffle(shuffled)
    assert split_of(assembled(made)) == split_of(assembled(shuffled))


def many(count, start=0):
    return [fact(f"e{index % 50}", "r", f"e{index % 37}", [("year", index)]) for index in range(start, start + count)]


def test_adding_facts_moves_no_other():
    before, after = split_of(assembled(many(2000))), split_of(assembled(many(3000, start=-1000)))
    assert all(after[key] == split for key, split in before.items())


def test_shares_are_close_to_what_was_asked():
    graph = assembled(many(20_000))
    assert [round(len(graph.splits[name]) / 20_000, 2) for name in graph.splits] == [0.8, 0.1, 0.1]


def test_another_seed_is_another_split():
    first, second = (assembled(many(2000), AssemblyPolicy(split=SplitRule(seed=seed))) for seed in (0, 1))
    assert split_of(first) != split_of(second)


def test_groups_stay_together():
    series = [fact(f"e{index % 60}", f"r{index % 7}", index, [("year", index)]) for index in range(3000)]
    graph = assembled(series, AssemblyPolicy(split=SplitRule(group_by=("head", "relation"))))
    homes: dict[tuple[str, str], set[str]] = {}
    for name in graph.splits:
        for one in graph.facts(name):
            homes.setdefault((one.head, one.relation), set()).add(name)
    assert all(len(splits) == 1 for splits in homes.values())
    assert {name for splits in homes.values() for name in splits} == {"train", "valid", "test"}


def test_an_entity_met_once_is_in_train():
    lonely = [fact(f"only{index}", "r", "hub") for index in range(200)]
    graph = assembled(many(500) + lonely)
    assert all(split_of(graph)[one.key()] == "train" for one in lonely)
    assert graph.manifest.importing["split"]["brought_into_train"] > 0


@pytest.mark.parametrize("text", ["8:1", "a:b:c", "", "8:1:1:1", "nan:1:1"])
def test_a_split_that_is_not_three_shares_is_refused(text):
    with pytest.raises(UsageError, match="is not a split"):
        SplitRule.of(text)


@pytest.mark.parametrize("shares", [(0.0, 1.0, 1.0), (8.0, -1.0, 1.0)])
def test_shares_that_leave_no_train_are_refused(shares):
    with pytest.raises(UsageError, match="is not three shares"):
        SplitRule(shares=shares)


def test_shares_are_parsed():
    assert SplitRule.of("8:1:1", 3, ["head"]) == SplitRule((8.0, 1.0, 1.0), 3, ("head",))


def test_grouping_by_an_unknown_part_is_refused():
    with pytest.raises(UsageError, match="cannot be grouped by 'year'"):
        SplitRule(group_by=("head", "year"))


def test_a_zero_share_leaves_the_split_out():
    graph = assembled(many(1000), AssemblyPolicy(split=SplitRule(shares=(9.0, 1.0, 0.0))))
    assert list(graph.splits) == ["train", "valid"]
    assert np.isclose(len(graph.splits["valid"]) / 1000, 0.1, atol=0.03)
