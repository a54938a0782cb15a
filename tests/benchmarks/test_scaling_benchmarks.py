"""The benchmarks of scaling: each point can be made, says what its table needs, and counts what it claims to count."""

from __future__ import annotations

from argparse import Namespace

import pytest

from benchmarks import facts_memory, large_evaluation, large_vocabulary
from benchmarks.distributed_speed import epoch_seconds


@pytest.mark.parametrize("softmax", ["full", "sampled"])
def test_a_point_of_the_vocabulary_has_memory_and_time(softmax):
    given = Namespace(
        device="cpu", point="3000", dimension=16, batch_size=32, negatives=64, softmax=softmax, steps=2, compile=False
    )
    point = large_vocabulary.measured(given)
    assert point["entities"] == 3000
    assert point["parameters"] > 2 * 3000 * 16  # two tables, and the rest
    assert point["link_questions_a_step"] > 0
    assert 0 < point["least_step_seconds"] <= point["step_seconds"]
    assert point["least_processor_seconds"] > 0


def test_a_point_of_the_evaluation_is_exact_in_chunks(monkeypatch):
    monkeypatch.setattr("hynt.evaluation.evaluation_pass.SCORES_AT_ONCE", 16 * 700)
    point = large_evaluation.measured(Namespace(device="cpu", point="3000", dimension=16, rows=16))
    assert point["candidates_a_chunk"] == 700
    assert point["exact"] == {"top": True, "rank": True, "sum": True}
    assert point["table_bytes"] == 3001 * 16 * 4  # the masked entity has a row, too
    assert point["rank"]["seconds"] > 0
    assert point["answer"]["seconds"] > 0


def test_seconds_of_an_epoch():
    assert epoch_seconds([9.0, 2.0, 3.0], "cpu") == 2.0
    # On a GPU two epochs may be heard of at once: the second of them took no time, so only their mean is true.
    assert epoch_seconds([60.0, 0.5, 1.0, 0.0, 2.0, 0.1], "cuda") == 1.0


def test_what_a_process_holds_for_a_fact_is_what_the_page_says():
    found = facts_memory.measured(40_000)
    qualifiers, sizes = found["qualifiers_a_fact"], found["bytes_a_fact"]
    assert qualifiers == pytest.approx(0.5, abs=0.01)
    assert sizes["facts"] == pytest.approx(33 + 21 * qualifiers, abs=0.1)
    assert sizes["planner"] == pytest.approx(64 + 32 * qualifiers, abs=0.1)
    assert sizes["plan"] == pytest.approx(28, rel=0.15)  # and some filler, of which small graphs have more
    assert sizes["share_of_4"] < sizes["plan"]
