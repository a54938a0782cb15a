"""A relation beside a number is judged among those of the same unit: nothing else could be stored there."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from hynt import number
from hynt.auditing import judging
from hynt.auditing.judging import Judge, RelationScores, relation_sorts
from hynt.formats.from_python import graph_from_facts
from hynt.front.auditing import audit
from hynt.graph.fact import DATE_UNIT
from hynt.graph.fact_table import RELATION, components, concatenate
from hynt.graph.known_answers import KnownAnswers
from hynt.graph.seen_values import SeenValues
from hynt.runs.opening import load_run
from hynt.runs.scoring import read_tiles
from hynt.training.run import start, train
from tests.training.small_graph import tiny_settings

CPU = torch.device("cpu")
SORTS = [{"height", "reach"}, {"weight"}, {"born", "died"}, {"point in time"}, {"shoe size", "shirt size"}]
ENTITIES = {"lives in", "works in"}


def people(with_units: bool = True):
    """Lengths, a weight, dates as values and as a qualifier, numbers without a unit, and two relations to towns."""

    def written(value: float, unit: str):
        return number(value, unit) if with_units else number(value)

    facts = []
    for index in range(40):
        one = f"p{index}"
        when = [("point in time", written(1990.0 + index % 9, DATE_UNIT))]
        facts += [
            (one, "height", written(150.0 + index, "cm"), when),
            (one, "reach", written(140.0 + 2 * index, "cm")),
            (one, "weight", written(50.0 + index, "kg")),
            (one, "born", written(1950.0 + index, DATE_UNIT)),
            (one, "died", written(1970.0 + index, DATE_UNIT)),
            (one, "shoe size", number(36.0 + index % 10)),
            (one, "shirt size", number(34.0 + index % 12)),
            (one, "lives in", f"t{index % 4}"),
            (one, "works in", f"t{(index + 1) % 4}"),
        ]
    return graph_from_facts({"train": facts}, name="people")


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    graph = people()
    settings = tiny_settings(batch_size=64, schedule={"epochs": 1, "period": 1})
    run = train(start(graph, settings, tmp_path_factory.mktemp("people") / "run", CPU), CPU)
    loaded, table = load_run(run.path, CPU), graph.split("train")
    is_number = graph.vocabulary.relation_is_number
    places = SeenValues.of([table], is_number, relation_sorts(graph.vocabulary))
    return Judge(loaded, KnownAnswers.build(graph.splits, is_number), places, np.arange(len(table)), table, table, CPU)


def allowed_beside(name: str) -> set[str]:
    return next(sort for sort in [*SORTS, ENTITIES] if name in sort)


def test_relations_of_one_sort_have_the_same_kind_and_unit():
    relations = people().vocabulary
    sort = dict(zip((one.name for one in relations.relations), relation_sorts(relations).tolist(), strict=True))
    assert sort["height"] == sort["reach"]
    assert sort["born"] == sort["died"] == sort["point in time"]
    assert sort["lives in"] == sort["works in"]
    assert sort["shoe size"] == sort["shirt size"]
    assert len({sort[name] for name in ("height", "weight", "born", "lives in", "shirt size")}) == 5


def scores_on_own_scale(judge, fact, position: int, relation: int) -> np.ndarray:
    """(relations,) what the model says where a relation has been put into a fact and then hidden: the slow way."""
    one = judge.table.take(np.array([fact]))
    if position == RELATION:
        one = replace(one, relation=np.full_like(one.relation, relation))
    else:
        one = replace(one, qualifier_relation=np.full_like(one.qualifier_relation, relation))
    found = []
    read_tiles(judge.loaded, one, np.array([0]), np.array([position]), CPU, lambda tile: found.append(tile.relations()))
    return found[0][0].numpy()


def test_relations_of_the_same_unit_are_tried_each_on_its_own_scale(judge):
    """Against the slow way: a softmax over one score for each relation that could stand there."""
    inverse_temperature, graph = 1.3, judge.loaded.graph
    names, ids = [one.name for one in graph.relations], graph.vocabulary.relation_ids
    found = judge.ranked("relation", inverse_temperature)
    parts = components(judge.table, graph.vocabulary.relation_is_number)
    asked = parts.take(np.flatnonzero(parts.kind == 1))
    assert np.array_equal(asked.position, found.position)
    assert np.array_equal(asked.row, found.fact)
    differ = 0
    for index in range(0, len(asked), 3):
        relation, position = int(asked.relation[index]), int(asked.position[index])
        candidates = sorted(ids[name] for name in allowed_beside(names[relation]))
        # No question here has a second known answer, which would be no candidate.
        rows = {one: scores_on_own_scale(judge, int(asked.row[index]), position, one) for one in candidates}
        weight = {one: math.exp(inverse_temperature * rows[one][one]) for one in candidates}
        chance = {one: weight[one] / sum(weight.values()) for one in candidates}
        differ += not np.allclose(rows[candidates[0]], rows[candidates[-1]])
        assert found.values[index] == len(candidates)
        assert math.exp(found.log_probability[index]) == pytest.approx(chance[relation], rel=1e-4)
        assert found.best[index] in candidates
        assert math.exp(found.best_log_probability[index]) == pytest.approx(max(chance.values()), rel=1e-4)
        assert found.place[index] == 1 + sum(one > chance[relation] + 1e-9 for one in chance.values())
        if np.isfinite(found.decoy_log_probability[index]):
            (other,) = set(candidates) - {relation}
            assert math.exp(found.decoy_log_probability[index]) == pytest.approx(chance[other], rel=1e-4)
    assert differ > 50


def test_many_relations_of_a_unit_share_the_scale_of_the_stored_one(judge, monkeypatch):
    asked = components(judge.table, judge.loaded.graph.vocabulary.relation_is_number)
    asked = asked.take(np.flatnonzero(asked.kind == 1))
    alone, shared = {}, {}
    scores = RelationScores(judge.loaded, judge.places, judge.table, CPU)
    scores.each(asked, lambda which, found: alone.update(zip(which.tolist(), found.numpy().copy(), strict=True)))
    monkeypatch.setattr(judging, "MOST_TRIED", 1)
    scores.each(asked, lambda which, found: shared.update(zip(which.tolist(), found.numpy().copy(), strict=True)))
    assert sorted(alone) == sorted(shared) == list(range(len(asked)))
    apart = 0
    for index in range(len(asked)):
        own = int(asked.relation[index])
        assert np.array_equal(np.isfinite(alone[index]), np.isfinite(shared[index]))
        assert alone[index][own] == pytest.approx(shared[index][own], abs=1e-5)
        apart += not np.allclose(alone[index], shared[index])
    assert apart > 100


def test_far_outside_its_scale_a_relation_is_no_candidate(judge):
    """No reach of 30 m was ever seen; the stored height stays one, or nothing could be said about it."""
    names = judge.loaded.graph.vocabulary.relation_ids
    far = replace(judge.table, tail_number=np.where(judge.table.relation == names["height"], 3000.0, 1.0))
    asked = components(far, judge.loaded.graph.vocabulary.relation_is_number)
    asked = asked.take(np.flatnonzero((asked.position == RELATION) & (asked.relation == names["height"])))
    RelationScores(judge.loaded, judge.places, far, CPU).each(
        asked,
        lambda which, found: [
            np.testing.assert_array_equal(np.flatnonzero(np.isfinite(row)), [names["height"]]) for row in found.numpy()
        ],
    )


def test_the_only_relation_of_a_unit_is_certain(judge):
    found, names = judge.ranked("relation", 2.0), [one.name for one in judge.loaded.graph.relations]
    parts = components(judge.table, judge.loaded.graph.vocabulary.relation_is_number)
    stored = np.array([names[one] for one in parts.relation[parts.kind == 1].tolist()])
    alone = np.isin(stored, ["weight", "point in time"])
    assert alone.sum() == 80
    assert (found.values[alone] == 1).all()
    assert (found.values[~alone] == 2).all()
    assert not found.log_probability[alone].any()
    assert np.isinf(found.decoy_log_probability[alone]).all()


def test_sharpness_is_fitted_on_the_same_candidates(judge):
    """Without units there are more of them, and something else comes out."""
    fitted = judge.inverse_temperature("relation")
    assert fitted is not None
    assert math.isfinite(fitted)
    plain = people(with_units=False)
    sorts = relation_sorts(plain.vocabulary)
    everything = SeenValues.of([plain.split("train")], plain.vocabulary.relation_is_number, sorts)
    free = Judge(judge.loaded, judge.known, everything, judge.facts, judge.table, judge.table, CPU)
    assert free.inverse_temperature("relation") != pytest.approx(fitted, rel=1e-3)


@pytest.mark.parametrize("with_units", [True, False])
def test_an_audit_names_only_relations_that_could_stand_there(with_units, tmp_path):
    from hynt.graph.storage import save_graph

    save_graph(people(with_units), tmp_path / "graph")
    found = audit(
        tmp_path / "graph",
        folds=2,
        epochs=1,
        device="cpu",
        work=tmp_path / "work",
        changes=("batch_size=64", "model.dimension=16", "model.context_heads=2", "model.prediction_heads=2"),
    )
    verdicts, relations = found.found, found.plan.graph.relations
    asked = np.flatnonzero(verdicts.stored.kind == 1)
    assert len(asked) == len(concatenate(list(found.plan.graph.splits.values()))) + 40
    said = {
        (relations[int(verdicts.stored.relation[row])].name, relations[int(verdicts.best[row])].name) for row in asked
    }
    if with_units:
        assert all(best in allowed_beside(stored) for stored, best in said)
        alone = asked[verdicts.values[asked] == 1]
        assert len(alone) == 80
        assert not verdicts.score[alone].any()
    else:  # any number within reach could be any other relation's; entities could not
        numbers = set().union(*SORTS)
        assert all((stored in numbers) == (best in numbers) for stored, best in said)
        main = asked[verdicts.stored.position[asked] == RELATION]
        assert set(verdicts.values[main].tolist()) >= {2, 3}
