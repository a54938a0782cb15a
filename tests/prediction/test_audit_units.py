"""A relation beside a number is judged among those of the same unit: nothing else could be stored there."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from hynt import number
from hynt.formats.from_python import graph_from_facts
from hynt.graph.components import RELATION, components
from hynt.graph.fact import DATE_UNIT
from hynt.graph.fact_table import concatenate
from hynt.graph.known_answers import KnownAnswers
from hynt.prediction.auditing import audit
from hynt.prediction.decoys import Places, relation_sorts
from hynt.prediction.judging import Judge
from hynt.prediction.scoring import read_tiles
from hynt.training.loading import load_run
from hynt.training.run import start, train
from tests.training.small_graph import tiny_settings

CPU = torch.device("cpu")
SORTS = [{"height", "reach"}, {"weight"}, {"born", "died"}, {"point in time"}, {"shoe size", "children"}]
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
            (one, "height", written(150.0 + index, "cm"), when), (one, "reach", written(140.0 + 2 * index, "cm")),
            (one, "weight", written(50.0 + index, "kg")), (one, "born", written(1950.0 + index, DATE_UNIT)),
            (one, "died", written(2000.0 + index % 20, DATE_UNIT)), (one, "shoe size", number(36.0 + index % 10)),
            (one, "children", number(index % 5)), (one, "lives in", f"t{index % 4}"),
            (one, "works in", f"t{(index + 1) % 4}"),
        ]  # fmt: skip
    return graph_from_facts({"train": facts}, name="people")


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    graph = people()
    settings = tiny_settings(batch_size=64, schedule={"epochs": 1, "period": 1})
    run = train(start(graph, settings, tmp_path_factory.mktemp("people") / "run", CPU), CPU)
    loaded, table = load_run(run.path, CPU), graph.split("train")
    is_number = graph.vocabulary.relation_is_number
    places = Places.of(components(table, is_number), graph.vocabulary)
    return Judge(loaded, KnownAnswers.build(graph.splits, is_number), places, np.arange(len(table)), table, CPU)


def allowed_beside(name: str) -> set[str]:
    return next(sort for sort in [*SORTS, ENTITIES] if name in sort)


def test_relations_of_one_sort_have_the_same_kind_and_unit():
    relations = people().vocabulary
    sort = dict(zip((one.name for one in relations.relations), relation_sorts(relations).tolist(), strict=True))
    assert sort["height"] == sort["reach"]
    assert sort["born"] == sort["died"] == sort["point in time"]
    assert sort["lives in"] == sort["works in"]
    assert sort["shoe size"] == sort["children"]
    assert len({sort[name] for name in ("height", "weight", "born", "lives in", "children")}) == 5


def test_probabilities_places_and_decoys_are_among_relations_of_the_same_unit(judge):
    """Against the slow way: a softmax over the scores of the relations that could stand there."""
    sharpness, graph = 1.3, judge.loaded.graph
    names, ids = [one.name for one in graph.relations], graph.vocabulary.relation_ids
    found = judge.ranked("relation", sharpness)
    parts = components(judge.table, graph.vocabulary.relation_is_number)
    asked = parts.take(np.flatnonzero(parts.kind == 1))
    scores = np.zeros((len(asked), len(names)))

    def keep(tile):
        scores[tile.which] = tile.relations().numpy()

    read_tiles(judge.loaded, judge.table, asked.row, asked.position, CPU, keep)
    assert np.array_equal(asked.position, found.position)
    for index, relation in enumerate(asked.relation.tolist()):
        candidates = sorted(ids[name] for name in allowed_beside(names[relation]))
        # No question here has a second known answer, which would be no candidate.
        weight = np.exp(sharpness * scores[index, candidates])
        chance = dict(zip(candidates, weight / weight.sum(), strict=True))
        assert found.values[index] == len(candidates)
        assert math.exp(found.log_probability[index]) == pytest.approx(chance[relation], rel=1e-4)
        assert found.best[index] in candidates
        assert math.exp(found.best_log_probability[index]) == pytest.approx(max(chance.values()), rel=1e-4)
        assert found.place[index] == 1 + sum(one > chance[relation] + 1e-9 for one in chance.values())
        if np.isfinite(found.decoy_log_probability[index]):
            (other,) = set(candidates) - {relation}
            assert math.exp(found.decoy_log_probability[index]) == pytest.approx(chance[other], rel=1e-4)


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
    """With one relation a unit there would be nothing to fit, and with all relations something else would come out."""
    fitted = judge.sharpness("relation")
    assert fitted is not None
    assert math.isfinite(fitted)
    everything = Places(
        np.zeros_like(judge.places.sort), np.array([1, 3]), np.array([0, 0]), np.array([10, 10]), np.arange(10)
    )  # fmt: skip
    free = Judge(judge.loaded, judge.known, everything, judge.facts, judge.table, CPU)
    assert free.sharpness("relation") != pytest.approx(fitted, rel=1e-3)


@pytest.mark.parametrize("with_units", [True, False])
def test_an_audit_names_only_relations_that_could_stand_there(with_units, tmp_path):
    from hynt.graph.storage import save_graph

    save_graph(people(with_units), tmp_path / "graph")
    found = audit(
        tmp_path / "graph", folds=2, epochs=1, device="cpu", work=tmp_path / "work",
        changes=("batch_size=64", "model.dimension=16", "model.context_heads=2", "model.prediction_heads=2"),
    )  # fmt: skip
    verdicts, relations = found.found, found.plan.graph.relations
    asked = np.flatnonzero(verdicts.stored.kind == 1)
    assert len(asked) == len(concatenate(list(found.plan.graph.splits.values()))) + 40
    said = {(relations[int(verdicts.stored.relation[row])].name, relations[int(verdicts.best[row])].name)
            for row in asked}  # fmt: skip
    if with_units:
        assert all(best in allowed_beside(stored) for stored, best in said)
        alone = asked[verdicts.values[asked] == 1]
        assert len(alone) == 80
        assert not verdicts.score[alone].any()
    else:  # numbers of every relation could be any other's; entities could not
        numbers = set().union(*SORTS)
        assert all((stored in numbers) == (best in numbers) for stored, best in said)
        main = asked[verdicts.stored.position[asked] == RELATION]
        assert set(verdicts.values[main].tolist()) >= {2, 7}
