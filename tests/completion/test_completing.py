"""A file of questions becomes a file of answers: the right ones, in order, whole, and not lost when killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pyarrow.parquet as parquet
import pytest

from hynt.completion import completing
from hynt.completion.batches import ANSWER_SCHEMA, BatchAnswers, CompletionOptions
from hynt.completion.completing import ahead, complete
from hynt.completion.question_files import open_questions
from hynt.errors import UsageError
from hynt.front.run import load
from hynt.training.run import start, train
from tests.completion.question_rows import as_parquet
from tests.heard_progress import HeardProgress
from tests.town_graph import PEOPLE, town_graph
from tests.town_run import CPU
from tests.training.small_graph import tiny_settings

GOOD = [
    line
    for index in range(PEOPLE)
    for line in (
        {"head": f"Person {index}", "relation": "born in", "tail": "?"},
        {"head": f"p{index}", "relation": "height", "tail": "?"},
        {"head": f"p{index}", "relation": "?", "tail": {"number": 171.5, "unit": "cm"}},
        {"head": "?", "relation": "spouse", "tail": f"p{index}", "qualifiers": [["place", "t1"]]},
        {"head": f"p{index}", "relation": "P26", "tail": "p1", "qualifiers": [["date", "?"], ["place", "t1"]]},
    )
]


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(completing, "BATCH", 32)
    monkeypatch.setattr(completing, "PART", 2)


def jsonl(path, lines=GOOD):
    path.write_text("".join(line if isinstance(line, str) else f"{json.dumps(line)}\n" for line in lines))
    return path


def rows_of(found, number):
    """What `predict` says, as rows of the file."""
    rows = []
    for rank, answer in enumerate(found.to_dict()["answers"], 1):
        row = dict.fromkeys(ANSWER_SCHEMA.names) | {"question": number, "kind": found.kind, "rank": rank}
        if found.kind == "number":
            row |= {name: answer[name] for name in ("value", "text", "unit", "low", "high")}
            splits = {split for known in answer["known"] for split in known["splits"]}
            row["known"] = [split for split in ("train", "valid", "test") if split in splits]
            nearest = sorted((abs(known["value"] - answer["value"]), known["value"]) for known in answer["known"])
            row["known_value"] = nearest[0][1] if nearest else None
        else:
            row |= {name: answer[name] for name in ("id", "probability", "known")} | {"label": answer["name"]}
        rows.append(row)
    return rows


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("wishes", [(), ("type",), ("unknown",), ("type", "unknown")])
def test_answers_are_those_of_predict_in_order(predictor, tmp_path, wishes):
    path = jsonl(tmp_path / "q.jsonl")
    done = complete(predictor, path, tmp_path / "a.parquet", CompletionOptions(3, 0.8, wishes))
    table = parquet.read_table(tmp_path / "a.parquet")
    assert (done.questions, done.rows, done.refused, done.resumed_from) == (len(GOOD), len(table), 0, 0)
    assert table.schema.remove_metadata().equals(ANSWER_SCHEMA)
    (batch,) = open_questions(path).batches(1000)
    asked = [batch.questions.parts(row) for row in range(len(GOOD))]
    alone = predictor.predict_many(asked, top=3, level=0.8, candidates=list(wishes))
    assert table.to_pylist() == [row for number, one in enumerate(alone, 1) for row in rows_of(one, number)]
    assert not list(tmp_path.glob(".*"))


@pytest.mark.usefixtures("small_batches")
def test_parquet_questions_get_the_same_answers(predictor, tmp_path):
    (batch,) = open_questions(jsonl(tmp_path / "q.jsonl")).batches(1000)
    as_parquet(batch, tmp_path / "q.parquet")
    for name in ("jsonl", "parquet"):
        complete(predictor, tmp_path / f"q.{name}", tmp_path / f"{name}.answers", CompletionOptions(2))
    first, second = (parquet.read_table(tmp_path / f"{name}.answers") for name in ("jsonl", "parquet"))
    assert first.equals(second)


BAD = [
    ('{"head": "p1", "relation": "born in"\n', "", "no valid JSON at character"),
    ({"head": "p1", "relation": "born in", "tail": "t1"}, "", "the question has no blank."),
    ({"head": "?", "relation": "born in", "tail": "?"}, "", "the question has 2 blanks: head and tail."),
    ({"head": "Persn 2", "relation": "born in", "tail": "?"}, "head", "the graph has no entity called 'Persn 2'."),
    ({"head": "p1", "relation": "borne in", "tail": "?"}, "relation", "the graph has no relation called 'borne in'."),
    ({"head": "?", "relation": "born in", "tail": "Atlantis"}, "tail", "the graph has no entity called 'Atlantis'."),
    ({"head": "?", "relation": "born in", "tail": 7}, "tail", "and an entity is wanted there."),
    ({"head": "?", "relation": "height", "tail": {"number": 3, "unit": "kg"}}, "tail", "kg"),
    ({"head": "p0", "relation": "?", "tail": 1e9}, "relation", "far outside the training range of every relation"),
]


@pytest.mark.parametrize("line,place,word", BAD)
def test_a_bad_question_stops_everything_before_it_begins(predictor, tmp_path, line, place, word):
    path = jsonl(tmp_path / "q.jsonl", [GOOD[0], "\n", line, GOOD[1]])
    with pytest.raises(UsageError) as problem:
        complete(predictor, path, tmp_path / "a.parquet")
    assert problem.value.where == (f"{path}:3, {place}" if place else f"{path}:3")
    assert word in problem.value.what
    assert "--on-error record" in problem.value.advice
    assert [found.name for found in tmp_path.iterdir()] == ["q.jsonl"]


@pytest.mark.usefixtures("small_batches")
def test_all_bad_questions_are_counted(predictor, tmp_path):
    lines = [*GOOD[:40], *(line for line, _, _ in BAD), *GOOD, BAD[1][0]]
    with pytest.raises(UsageError) as problem:
        complete(predictor, jsonl(tmp_path / "q.jsonl", lines), tmp_path / "a.parquet")
    told = f"{len(BAD) + 1} of {len(lines)} questions cannot be asked; this is the first."
    assert problem.value.what.endswith(told)
    assert problem.value.where == f"{tmp_path / 'q.jsonl'}:41"


def test_bad_questions_can_be_recorded(predictor, tmp_path):
    lines = [GOOD[0], *(line for line, _, _ in BAD), GOOD[1]]
    done = complete(
        predictor, jsonl(tmp_path / "q.jsonl", lines), tmp_path / "a", CompletionOptions(1), on_error="record"
    )
    table = parquet.read_table(tmp_path / "a")
    assert done.refused == len(BAD)
    assert table["question"].to_pylist() == list(range(1, len(lines) + 1))
    errors = table["error"].to_pylist()
    assert errors[0] is errors[-1] is None
    for found, (_, place, word) in zip(errors[1:-1], BAD, strict=True):
        assert word in found
        assert found.startswith(place)
    assert table["rank"].null_count == table["kind"].null_count == len(BAD)


def test_where_no_candidate_is_left_a_row_says_so(predictor, tmp_path):
    line = {"head": "p1", "relation": "P19", "tail": "p2", "qualifiers": [["P108", "?"]]}  # never seen as a qualifier
    done = complete(
        predictor, jsonl(tmp_path / "q.jsonl", [line]), tmp_path / "a", CompletionOptions(1, 0.9, ("type",))
    )
    assert parquet.read_table(tmp_path / "a")["error"].to_pylist() == ["candidates: no candidate is left."]
    assert (done.rows, done.refused) == (1, 1)


def test_what_the_model_cannot_answer_is_refused(tmp_path):
    predictor = load(train(start(town_graph(), tiny_settings("frequency"), tmp_path / "run", CPU), CPU).path, "cpu")
    with pytest.raises(UsageError, match="'frequency' cannot answer a number as tail") as problem:
        complete(predictor, jsonl(tmp_path / "q.jsonl"), tmp_path / "a.parquet")
    assert problem.value.where == f"{tmp_path / 'q.jsonl'}:2, tail"


def test_numbers_that_a_log_scale_cannot_take_are_refused(tmp_path):
    settings = tiny_settings(log_relations=["height"])
    predictor = load(train(start(town_graph(), settings, tmp_path / "run", CPU), CPU).path, "cpu")
    lines = [GOOD[0], {"head": "?", "relation": "height", "tail": -1}, GOOD[1]]
    complete(predictor, jsonl(tmp_path / "q.jsonl", lines), tmp_path / "a", CompletionOptions(1), on_error="record")
    errors = parquet.read_table(tmp_path / "a")["error"].to_pylist()
    assert errors[0] is errors[2] is None
    assert "'height' has the value -1.0, which its scale cannot take" in errors[1]


@pytest.mark.parametrize("text", ["", "\n\n"])
@pytest.mark.parametrize("on_error", ["stop", "record"])
def test_a_file_without_questions_is_refused(predictor, tmp_path, text, on_error):
    (tmp_path / "q.jsonl").write_text(text)
    with pytest.raises(UsageError, match="the file holds no questions"):
        complete(predictor, tmp_path / "q.jsonl", tmp_path / "a.parquet", on_error=on_error)
    assert [found.name for found in tmp_path.iterdir()] == ["q.jsonl"]


# ---------------------------------------------------------------------- stopped and resumed


class Stopped(Exception):
    pass


def stopped_after(batches, monkeypatch):
    """Answers as many batches and then fails, as a full disk or a kill would."""
    plain, seen = BatchAnswers.answered, []

    def answered(self, batch):
        if len(seen) == batches:
            raise Stopped
        seen.append(batch.number)
        return plain(self, batch)

    monkeypatch.setattr(BatchAnswers, "answered", answered)
    return seen


def stop(predictor, path, out, batches, monkeypatch, **options):
    """Begins a job that does not come to its end."""
    with monkeypatch.context() as patch:
        stopped_after(batches, patch)
        with pytest.raises(Stopped):
            complete(predictor, path, out, CompletionOptions(2), **options)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("on_error", ["stop", "record"])
def test_a_stopped_job_goes_on_where_its_last_part_ended(predictor, tmp_path, on_error, monkeypatch):
    path, out = jsonl(tmp_path / "q.jsonl"), tmp_path / "a.parquet"
    complete(predictor, path, tmp_path / "whole.parquet", CompletionOptions(2), on_error=on_error)
    stop(predictor, path, out, 5, monkeypatch, on_error=on_error)
    assert not out.exists()
    with pytest.raises(UsageError, match="a job was stopped before it was done") as problem:
        complete(predictor, path, out, CompletionOptions(2), on_error=on_error)
    assert "--resume" in problem.value.advice
    seen = stopped_after(1000, monkeypatch)
    done = complete(predictor, path, out, CompletionOptions(2), on_error=on_error, resume=True)
    assert done.resumed_from == 128  # two parts of two batches of 32
    assert seen[0].min() == 129
    assert parquet.read_table(out).equals(parquet.read_table(tmp_path / "whole.parquet"))
    assert not (tmp_path / ".a.parquet.partial").exists()
    again = complete(predictor, path, out, CompletionOptions(2), on_error=on_error, resume=True)
    assert again.was_finished
    assert (again.questions, again.rows, again.refused) == (done.questions, done.rows, done.refused)


@pytest.mark.usefixtures("small_batches")
def test_another_job_is_not_gone_on_with(predictor, tmp_path, monkeypatch):
    path, out = jsonl(tmp_path / "q.jsonl"), tmp_path / "a.parquet"
    stop(predictor, path, out, 3, monkeypatch)
    with pytest.raises(UsageError) as problem:
        complete(predictor, path, out, CompletionOptions(3, 0.5), resume=True)
    assert problem.value.what == "the work begun here is that of another job: level: 0.9 → 0.5; top: 2 → 3."
    with pytest.raises(UsageError, match=r"candidates: \[\] → \['type'\]"):
        complete(predictor, path, out, CompletionOptions(2, 0.9, ("type",)), resume=True)
    jsonl(path, GOOD[:-1])
    with pytest.raises(UsageError, match="another job: questions changed") as problem:
        complete(predictor, path, out, CompletionOptions(2), resume=True)
    assert "remove this folder" in problem.value.advice
    assert not out.exists()


@pytest.mark.usefixtures("small_batches")
def test_damaged_states_are_told(predictor, tmp_path, monkeypatch):
    path, out = jsonl(tmp_path / "q.jsonl"), tmp_path / "a.parquet"
    stop(predictor, path, out, 5, monkeypatch)
    work = tmp_path / ".a.parquet.partial"
    (work / "part-000000.parquet").write_bytes(b"nothing")
    with pytest.raises(UsageError, match="a finished part is missing or damaged"):
        complete(predictor, path, out, CompletionOptions(2), resume=True)
    (work / "plan.json").write_text("[")
    with pytest.raises(UsageError, match="the file is damaged"):
        complete(predictor, path, out, CompletionOptions(2), resume=True)
    assert not out.exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from hynt.completion import completing
from hynt.completion.batches import CompletionOptions
from hynt.progress import Progress
from hynt.front.run import load
completing.BATCH, completing.PART = 32, 2

class Deadly(Progress):
    def update(self, stage, done, *rest, **details):
        if stage == "answering" and done >= 160:
            os.kill(os.getpid(), signal.SIGKILL)

run, questions, out = map(Path, sys.argv[1:])
completing.complete(load(run, "cpu"), questions, out, CompletionOptions(2), progress=Deadly())
"""


@pytest.mark.usefixtures("small_batches")
@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_a_kill_loses_no_finished_part_and_leaves_no_half_file(predictor, tmp_path):
    path, out = jsonl(tmp_path / "q.jsonl"), tmp_path / "a.parquet"
    arguments = [sys.executable, "-c", KILLED, str(predictor.loaded.run.path), str(path), str(out)]
    killed = subprocess.run(arguments, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not out.exists()
    done = complete(predictor, path, out, CompletionOptions(2), resume=True)
    assert done.resumed_from == 128
    complete(predictor, path, tmp_path / "whole.parquet", CompletionOptions(2))
    assert parquet.read_table(out).equals(parquet.read_table(tmp_path / "whole.parquet"))


# ---------------------------------------------------------------------- making items ahead


def test_items_made_ahead_are_few_and_in_order():
    made = []

    def items():
        for number in range(100):
            made.append(number)
            yield number

    found = ahead(items())
    assert [next(found) for _ in range(3)] == [0, 1, 2]
    found.close()
    assert len(made) < 10  # memory stays bounded: nobody runs far ahead
    assert list(ahead(iter(range(50)))) == list(range(50))


def test_what_goes_wrong_ahead_is_raised_in_its_place():
    def items():
        yield 1
        raise UsageError("no more.")

    found = ahead(items())
    assert next(found) == 1
    with pytest.raises(UsageError, match="no more"):
        next(found)


@pytest.mark.parametrize("on_error", ["stop", "record"])
def test_progress_is_of_what_is_answered_not_of_what_was_read_ahead(predictor, tmp_path, monkeypatch, on_error):
    monkeypatch.setattr(completing, "BATCH", 30)
    (batch,) = open_questions(jsonl(tmp_path / "q.jsonl")).batches(1000)
    as_parquet(batch, tmp_path / "q.parquet")
    heard = HeardProgress()
    complete(
        predictor,
        tmp_path / "q.parquet",
        tmp_path / "a.parquet",
        CompletionOptions(1),
        on_error=on_error,
        progress=heard,
    )
    steps = [("answering", done, round(done / 300, 3)) for done in range(0, 301, 30)]
    checks = [("checking", done, round(done / 300, 3)) for done in range(30, 301, 30)]
    told = [(update.stage, update.done, round(update.share, 3)) for update in heard.updates]
    assert told == (checks + steps if on_error == "stop" else steps)


def test_memory_does_not_grow_with_the_file(predictor, tmp_path, monkeypatch):
    """No more than a few batches are alive at any time."""
    monkeypatch.setattr(completing, "BATCH", 8)
    sizes = []
    plain = BatchAnswers.answered

    def answered(self, batch):
        sizes.append(len(batch.asked) + len(batch.refused))
        return plain(self, batch)

    monkeypatch.setattr(BatchAnswers, "answered", answered)
    complete(predictor, jsonl(tmp_path / "q.jsonl"), tmp_path / "a.parquet", CompletionOptions(1))
    assert max(sizes) == 8
    groups = parquet.read_metadata(tmp_path / "a.parquet").num_row_groups
    assert groups == len(sizes) == int(np.ceil(len(GOOD) / 8))
