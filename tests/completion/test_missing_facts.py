"""Proposals of facts that a graph lacks: sound, sorted, within budget, and readable again as facts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow.parquet as parquet
import pytest
import torch

from hynt.asking.columns import AskedFacts
from hynt.asking.question import ask
from hynt.completion import missing_questions
from hynt.completion.missing_facts import ProposalOptions, propose
from hynt.completion.missing_proposals import PROPOSAL_SCHEMA
from hynt.errors import UsageError
from hynt.formats.from_python import graph_from_facts
from hynt.formats.importing import read_graph
from hynt.front.run import load
from hynt.runs.scoring import ReadTile
from hynt.training.run import start, train
from tests.town_graph import LABELS, PEOPLE, RELATION_LABELS, town_graph
from tests.town_run import CPU
from tests.training.small_graph import tiny_settings

ALL = ProposalOptions(threshold=0.0, widest=1e9, share=0.05, budget=10_000)
LACKED = {"P108": 9, "height": 11, "P19": 13}  # every so many persons lack this


@pytest.fixture(scope="module")
def predictor(tmp_path_factory):
    """A run on the towns, where some persons have no employer, no height or no birthplace."""
    towns = town_graph()
    lacking = {(f"p{index}", name) for name, step in LACKED.items() for index in range(0, PEOPLE, step)}
    facts = {
        split: [fact for fact in towns.facts(split) if (fact.head, fact.relation) not in lacking]
        for split in towns.splits
    }
    graph = graph_from_facts(facts, labels=LABELS, relation_labels=RELATION_LABELS, name="gaps")
    settings = tiny_settings(schedule={"epochs": 20, "period": 20})
    return load(train(start(graph, settings, tmp_path_factory.mktemp("gaps") / "run", CPU), CPU).path, "cpu")


@pytest.fixture(scope="module")
def found(predictor):
    return propose(predictor, ALL)


def test_who_lacks_what_is_asked(predictor, found):
    asked = {(fact.head, fact.relation) for fact in found.proposals.facts(predictor.graph) if fact.head[0] == "p"}
    assert asked == {(f"p{index}", name) for name, step in LACKED.items() for index in range(0, PEOPLE, step)}


def test_no_proposal_is_known_and_every_answer_has_the_probability_of_predict(predictor, found):
    table = found.rows(predictor.graph)
    assert table.schema.remove_metadata().names == [*PROPOSAL_SCHEMA.names, "confirmed"]
    rows = table.to_pylist()
    assert len(rows) > 10
    has = {(fact.head, fact.relation) for fact in predictor.graph.facts()}
    for row, fact in zip(rows, found.proposals.facts(predictor.graph), strict=True):
        assert (row["head"], row["relation"]) == (fact.head, fact.relation)
        assert (fact.head, fact.relation) not in has
        answer = predictor.predict((fact.head, fact.relation, "?", fact.qualifiers), top=6)
        if row["tail_number"] is None:
            (same,) = [one for one in answer if one.id == row["tail_entity"]]
            assert same.probability == row["answer_probability"]
            assert same.name == row["tail_label"]
        else:
            assert (answer[0].value, answer[0].interval) == (row["tail_number"], (row["low"], row["high"]))
            assert row["answer_probability"] == 0.9
            assert row["tail_unit"] == answer[0].unit
            assert row["tail_label"] == answer[0].text(answer[0].value)  # with the digits of its interval
            assert row["tail_label"] in row["sentence"]
        assert 0 <= row["probability"] <= 1
        assert 0.05 <= row["share"] <= 1
        assert row["confirmed"] is None


@pytest.mark.parametrize("top", [1, 3])
def test_a_question_has_no_more_proposals_than_wanted(predictor, top):
    found = propose(predictor, ProposalOptions(("P108", "P19"), threshold=0.0, share=0.5, top=top))
    asked = found.proposals.table.head * 1000 + found.proposals.table.relation
    assert np.unique(asked, return_counts=True)[1].max() == top
    for fact in found.proposals.facts(predictor.graph):
        assert fact.tail[0] == ("f" if fact.relation == "P108" else "t")  # only what is known to be a tail


def test_the_likelier_comes_first(found):
    order = list(zip(-found.proposals.probability, found.proposals.width, -found.proposals.share, strict=True))
    assert order == sorted(order)


def test_thresholds_and_budgets_cut(predictor, found):
    probability, is_number = found.proposals.probability, found.proposals.is_number
    middle = float(np.median(probability[~is_number]))
    likely = propose(predictor, ProposalOptions(threshold=middle, widest=1e-9, share=0.05, budget=10_000))
    assert len(likely.proposals) == (probability[~is_number] >= middle).sum()
    assert not likely.proposals.is_number.any()
    assert likely.below == len(found.proposals) - len(likely.proposals)
    few = propose(predictor, ProposalOptions(threshold=0.0, widest=1e9, share=0.05, budget=3))
    assert np.array_equal(few.proposals.probability, probability[:3])
    assert few.left_out == len(found.proposals) - 3
    each = propose(predictor, ProposalOptions(threshold=0.0, widest=1e9, share=0.05, per_relation=2))
    assert np.bincount(each.proposals.table.relation).max() == 2


def test_how_many_are_asked_together_changes_nothing(predictor, found, monkeypatch):
    for size in (1, 5):
        monkeypatch.setattr(missing_questions, "AT_ONCE", size)
        again = propose(predictor, ALL)
        assert again.rows(predictor.graph).equals(found.rows(predictor.graph))
        each = propose(predictor, ProposalOptions(threshold=0.0, widest=1e9, share=0.05, per_relation=2, budget=5))
        monkeypatch.undo()
        whole = propose(predictor, ProposalOptions(threshold=0.0, widest=1e9, share=0.05, per_relation=2, budget=5))
        assert each.rows(predictor.graph).equals(whole.rows(predictor.graph))


def test_chosen_relations_only(predictor, found):
    born = propose(predictor, ProposalOptions(("born in",), threshold=0.0, share=0.05))
    relation = predictor.graph.vocabulary.relation_ids["P19"]
    assert set(born.proposals.table.relation.tolist()) == {relation}
    assert len(born.proposals) == (found.proposals.table.relation == relation).sum()


def test_hidden_facts_confirm_what_is_right(predictor):
    """As if test were unknown: what it holds is asked for again, and compared."""
    found = propose(predictor, ProposalOptions(threshold=0.0, widest=1e9, share=0.3, budget=10_000, without=("test",)))
    hidden = {(fact.head, fact.relation): fact for fact in predictor.graph.facts("test")}
    facts = found.proposals.facts(predictor.graph)
    checked = 0
    for number, fact in enumerate(facts):
        truth = hidden.get((fact.head, fact.relation))
        if isinstance(fact.tail, str):
            assert found.is_checked[number] == (truth is not None)
            assert found.is_confirmed[number] == (truth is not None and truth.tail == fact.tail)
            checked += truth is not None
        elif found.is_checked[number]:
            inside = found.proposals.low[number] <= truth.tail.value <= found.proposals.high[number]
            assert found.is_confirmed[number] == inside
            checked += 1
    assert checked >= 12
    assert found.rows(predictor.graph)["confirmed"].null_count == len(facts) - int(found.is_checked.sum())


def test_accepted_proposals_are_facts_again(predictor, found, tmp_path):
    parquet.write_table(found.rows(predictor.graph), tmp_path / "accepted.parquet")
    imported = read_graph(tmp_path / "accepted.parquet", "parquet")
    assert len(imported) == len(found.proposals)
    again = {fact.key() for fact in imported.facts()}
    assert again == {fact.key() for fact in found.proposals.facts(predictor.graph)}


@pytest.mark.parametrize(
    "wanted,word",
    [
        (ProposalOptions(threshold=1.5), "1.5 is not a threshold"),
        (ProposalOptions(share=-1), "-1 is not a share"),
        (ProposalOptions(budget=0), "the budget is 0"),
        (ProposalOptions(per_relation=0), "the per_relation is 0"),
        (ProposalOptions(widest=0), "no interval is as narrow as 0"),
        (ProposalOptions(level=0.7), "there are no intervals of 0.7"),
        (ProposalOptions(("borne in",)), "the graph has no relation called 'borne in'"),
        (ProposalOptions(("place",)), "no fact has the relation 'place': it stands only in qualifiers"),
        (ProposalOptions(without=("train",)), "train cannot be hidden"),
        (ProposalOptions(without=("tset",)), "this graph has no split 'tset'"),
    ],
)
def test_wrong_wishes_are_refused(predictor, wanted, word):
    with pytest.raises(UsageError, match=word):
        propose(predictor, wanted)


def test_a_cut_interval_is_not_taken_for_a_narrow_one(predictor, monkeypatch):
    """Nor is a height below zero proposed, however sure the model is of it."""
    graph, scaling = predictor.graph, predictor.loaded.scaling
    height = graph.vocabulary.relation_ids["height"]
    assert predictor.calibration.radii.ends_at_zero[height]

    def width(said):
        scaled = torch.from_numpy(scaling.scale(np.array([height]), np.array([said]))).float()
        monkeypatch.setattr(ReadTile, "numbers", lambda tile: scaled.expand(len(tile.which)))
        asked = AskedFacts.joined([ask(graph, "p0", "height", "?")])
        return predictor.question_batch(asked).numbers(np.zeros(1, dtype=np.int64), 0.9).width[0]

    assert width(0.01) == pytest.approx(width(9.0))
    assert width(-0.01) == np.inf


def test_chosen_heads_only(predictor, found):
    chosen = propose(predictor, replace(ALL, heads=("Person 0", "p9")))
    whole = [fact for fact in found.proposals.facts(predictor.graph) if fact.head in ("p0", "p9")]
    assert chosen.proposals.facts(predictor.graph) == whole
    assert chosen.questions == len(whole) == 4
    with pytest.raises(UsageError, match="no entity called 'Persn 0'"):
        propose(predictor, replace(ALL, heads=("Persn 0",)))


def test_a_run_without_intervals_proposes_entities_alone(predictor, monkeypatch):
    """One that was trained on the validation split has nothing to fit intervals on."""
    uncalibrated = replace(predictor.calibration, radii=None)
    monkeypatch.setitem(predictor.__dict__, "calibration", uncalibrated)
    found = propose(predictor, ALL)
    assert not found.proposals.is_number.any()
    assert len(found.proposals) > 0
    assert found.without_interval > 0
