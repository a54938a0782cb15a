"""A file of questions answered in several processes: the same file, to the last byte, resumed and refused alike."""

from __future__ import annotations

import pytest

from hynt.completion import completing
from hynt.completion.batches import CompletionOptions, assist
from hynt.completion.completing import complete
from hynt.front.run import load
from tests.completion.test_completing import GOOD, jsonl
from tests.distributed.processes import together
from tests.heard_progress import HeardProgress

WANTED = CompletionOptions(top=3)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(completing, "BATCH", 16)
    monkeypatch.setattr(completing, "PART", 2)


def answered_alone(run, questions, out) -> None:
    (run / "calibration.json").unlink(missing_ok=True)  # made by whoever comes first, and read by the others
    complete(load(run, "cpu"), questions, out, WANTED, on_error="record")


def completed(workers, run, questions, out, resume=False) -> None:
    predictor = load(run, "cpu")
    if workers.rank:
        assist(predictor, questions, WANTED, completing.BATCH, workers)
    else:
        done = complete(predictor, questions, out, WANTED, on_error="record", resume=resume, workers=workers)
        assert done.questions == len(GOOD) + 1


def test_three_processes_write_what_one_writes(run, tmp_path):
    unknown = {"head": "nobody", "relation": "height", "tail": "?"}
    questions = jsonl(tmp_path / "q.jsonl", [*GOOD[:40], unknown, *GOOD[40:]])
    alone, shared = tmp_path / "alone.parquet", tmp_path / "shared.parquet"
    answered_alone(run, questions, alone)
    assert together(3, completed, run, questions, shared) == [0, 0, 0]
    assert shared.read_bytes() == alone.read_bytes()
    assert together(2, completed, run, questions, shared, True) == [0, 0]  # done already: nothing to do


def stopped(workers, run, questions, out) -> None:
    """The first process is gone after its first part."""
    predictor = load(run, "cpu")
    if workers.rank:
        assist(predictor, questions, WANTED, completing.BATCH, workers)
        return

    def leave(update) -> None:
        if update.done > 3 * completing.BATCH:
            raise SystemExit(9)

    complete(predictor, questions, out, WANTED, on_error="record", progress=HeardProgress(leave), workers=workers)


def test_a_job_of_two_processes_goes_on_in_one(run, tmp_path):
    questions = jsonl(tmp_path / "q.jsonl")
    alone, shared = tmp_path / "alone.parquet", tmp_path / "shared.parquet"
    answered_alone(run, questions, alone)
    codes = together(2, stopped, run, questions, shared)
    assert codes[0] == 9
    assert codes[1] != 0
    assert not shared.exists()
    done = complete(load(run, "cpu"), questions, shared, WANTED, on_error="record", resume=True)
    assert done.resumed_from == 2 * completing.BATCH
    assert shared.read_bytes() == alone.read_bytes()
