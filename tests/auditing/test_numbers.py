"""What models learn of numbers that are far off, and how numbers are judged all the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from hynt.auditing.judges import AuditFolder, Judges
from hynt.auditing.plan import clip_outliers, edges, plan_audit
from hynt.formats.from_python import graph_from_facts
from hynt.interruption import Stopper
from tests.heard_progress import HeardProgress


def years(count: int, *odd: float):
    facts = [(f"e{i % 20}", "year", 1990.0 + i % 35, [("rank", 1 + i % 9)]) for i in range(count)]
    return graph_from_facts({"train": [*facts, *((f"e{i}", "year", value) for i, value in enumerate(odd))]})


def test_a_number_far_outside_is_pulled_in_and_the_others_stay():
    graph = years(300, 20250.0, 199.5)
    table = graph.split("train")
    learned, moved = clip_outliers(table, graph.vocabulary, ())
    assert moved == 2
    low, high = (bound[graph.vocabulary.relation_ids["year"]] for bound in edges(table, graph.vocabulary, ()))
    assert (low, high) == pytest.approx((1990 - 3 * 34, 2024 + 3 * 34))
    changed = np.flatnonzero(learned.tail_number != table.tail_number)
    assert sorted(learned.tail_number[changed].tolist()) == pytest.approx([low, high])
    assert np.array_equal(learned.qualifier_number, table.qualifier_number)


def test_one_number_is_never_the_bulk_of_a_small_relation():
    graph = years(15, 20250.0)
    _, moved = clip_outliers(graph.split("train"), graph.vocabulary, ())
    assert moved == 1


def test_too_few_numbers_have_no_bulk():
    graph = graph_from_facts({"train": [("a", "size", 1.0), ("b", "size", 2.0), ("c", "size", 1e9)]})
    _, moved = clip_outliers(graph.split("train"), graph.vocabulary, ())
    assert moved == 0


def test_logarithms_count_where_the_scale_is_a_log_scale():
    facts = [(f"e{i}", "people", 10.0 ** (1 + i % 6)) for i in range(120)] + [("e0", "people", 1e9)]
    graph = graph_from_facts({"train": facts})
    assert clip_outliers(graph.split("train"), graph.vocabulary, ())[1] == 1
    assert clip_outliers(graph.split("train"), graph.vocabulary, ("people",))[1] == 0


def test_a_plan_learns_pulled_in_numbers_and_judges_the_stored_ones():
    graph = years(300, 20250.0)
    plan = plan_audit(graph, folds=2)
    assert plan.clipped == 1
    assert plan.table.tail_number.max() == 20250.0
    assert plan.learned.tail_number.max() < 2200
    assert max(plan.fold_graph(fold).split("train").tail_number.max() for fold in (0, 1)) < 2200


def test_numbers_that_models_read_nearer_are_told(tmp_path):
    plan = plan_audit(years(300, 20250.0), folds=2)
    nothing = replace(plan, folds=replace(plan.folds, is_judged=np.zeros_like(plan.folds.is_judged)))
    for one, told in ((nothing, 1), (replace(nothing, clipped=0), 0)):
        progress = HeardProgress()
        assert Judges(one, AuditFolder(tmp_path), torch.device("cpu"), progress, Stopper()).judged() == []
        assert sum("numbers far outside the rest of their relation: 1" in line for line in progress.said) == told


def test_schedules_end_low():
    """A cycle that would be cut becomes one that ends with the last epoch."""
    from hynt.training.resolve_settings import SettingsRequest

    graph = years(40)
    cut = plan_audit(graph, folds=2, request=SettingsRequest(epochs=30, changes=("schedule.period=20",)))
    assert cut.settings.schedule.period == 30
    whole = plan_audit(graph, folds=2, request=SettingsRequest(epochs=60, changes=("schedule.period=20",)))
    assert whole.settings.schedule.period == 20
    assert cut.settings.validation.patience is None
