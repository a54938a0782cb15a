"""Sweeps on one machine: what is tried, pruned, kept, and resumed; and that the test split is never read."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from hynt.config import from_mapping, read_toml, with_overrides
from hynt.errors import UsageError
from hynt.graph.storage import load_graph
from hynt.interruption import Stopper
from hynt.runs.checkpoint import Interrupted
from hynt.runs.model_choice import settings_class_for
from hynt.sweeping.space import load_space, space_from
from hynt.sweeping.study import counting, opened, settled, standing
from hynt.sweeping.sweep import blind_copy, prepare, report, sweep
from hynt.training.resolve_settings import SettingsRequest, resolve_settings
from tests.conftest import ROOT
from tests.sweeping.conftest import Heard, make_plan
from tests.training.small_graph import small_graph, tiny_settings


def trials_of(plan):
    with opened(plan) as study:
        return study.get_trials()


def test_the_best_trial_becomes_a_preset(people, tmp_path):
    plan, heard = make_plan(people, tmp_path / "out", pruning="none", trials=4), Heard()
    result = sweep(plan, heard, Stopper())
    assert result["trials"] == {"complete": 4, "pruned": 0, "failed": 0, "unfinished": 0}
    values = {number: value for number, (_, value, _) in heard.outcomes.items()}
    best = max(values, key=lambda number: values[number])
    assert result["best"]["trial"] == best
    assert result["best"]["value"] == values[best] == max(value for _, value in heard.values[best])
    assert result["best"]["settings"] == heard.began[best]
    graph = load_graph(people)
    settings = resolve_settings(SettingsRequest("hynt", result["preset"]), graph, on_gpu=False)
    base = from_mapping(settings_class_for("hynt"), plan.base)
    assert settings == with_overrides(base, plan.space.changes(heard.began[best]))
    assert settings.model.context_heads == settings.model.prediction_heads
    lines = (tmp_path / "out" / "trials" / "0000.jsonl").read_text().splitlines()
    assert sum("validation" in json.loads(line) for line in lines) == 4
    assert read_toml(tmp_path / "out" / "trials" / "0000.toml")["model_name"] == "hynt"
    assert not [path for path in (tmp_path / "out" / "trials").iterdir() if path.is_dir()]


def test_less_is_better_where_errors_are_counted(people, tmp_path):
    plan, heard = make_plan(people, tmp_path / "out", pruning="none", metric="number.all.rmse"), Heard()
    result = sweep(plan, heard, Stopper())
    assert result["best"]["value"] == min(value for _, value, _ in heard.outcomes.values())


@pytest.mark.slow
def test_hyperband_ends_poor_trials_early(people, tmp_path):
    plan, heard = make_plan(people, tmp_path / "out", trials=12), Heard()
    result = sweep(plan, heard, Stopper())
    pruned = [number for number, (outcome, *_) in heard.outcomes.items() if outcome == "pruned"]
    assert result["trials"]["pruned"] == len(pruned) > 0
    assert all(len(heard.values[number]) < 4 for number in pruned)
    assert result["best"]["trial"] not in pruned


def test_a_trial_that_was_trained_to_its_end_is_complete(people, tmp_path):
    plan = make_plan(people, tmp_path / "out", trials=5)
    plan = replace(plan, base=plan.base | {"validation": plan.base["validation"] | {"every": 4}})  # at the end alone
    heard = Heard()
    result = sweep(plan, heard, Stopper())
    assert all(len(values) == 1 for values in heard.values.values())
    assert result["trials"] == {"complete": 5, "pruned": 0, "failed": 0, "unfinished": 0}


def test_the_test_split_is_never_read(people, tmp_path):
    """The test file is replaced by one that cannot be opened as a file; a sweep does not notice."""
    graph = tmp_path / "graph"
    shutil.copytree(people, graph)
    (graph / "test.parquet").unlink()
    (graph / "test.parquet").mkdir()
    counts = []
    out = tmp_path / "out"

    def look(number, epoch):
        counts.append(json.loads((out / "trials" / f"{number:04d}" / "reads.json").read_text())["test"])

    plan = make_plan(graph, out, trials=2)
    assert sweep(plan, Heard(look), Stopper())["best"] is not None
    assert counts
    assert set(counts) == {0}
    assert not list(out.rglob("test.parquet"))
    copy = load_graph(out / "graph")
    assert list(copy.splits) == ["train", "valid"]
    assert copy.vocabulary == small_graph().vocabulary


def test_what_would_look_at_the_test_split_is_refused(people, tmp_path):
    graph = load_graph(people)
    for path, value in (("train_on", "train+valid"), ("scale_on", "all-splits")):
        settings = with_overrides(tiny_settings(), [f"{path}={value}"])
        with pytest.raises(UsageError) as problem:
            settled(settings, "link.all.mrr", load_space("hynt"), graph)
        assert problem.value.where == path
        varied = space_from({"space": {path: {"choices": ["train", value]}}}, "S")
        with pytest.raises(UsageError):
            settled(tiny_settings(), "link.all.mrr", varied, graph)
    with pytest.raises(UsageError, match="has no metric"):
        settled(tiny_settings(), "link.mrr", load_space("hynt"), graph)


def test_a_graph_without_validation_is_refused(people, tmp_path):
    from hynt.formats.from_python import graph_from_facts
    from hynt.graph.storage import save_graph

    save_graph(graph_from_facts({"train": [("a", "b", "c")]}, name="one"), tmp_path / "one")
    with pytest.raises(UsageError, match="no validation split"):
        blind_copy(str(tmp_path / "one"), tmp_path / "copy")


def test_settings_that_cannot_be_trained_are_counted_not_fatal(people, tmp_path):
    plan = make_plan(people, tmp_path / "out", trials=6, pruning="none", sampling="grid")
    space = space_from({"space": {"model.context_heads": {"choices": [2, 3, 4]}}}, "S")
    heard = Heard()
    result = sweep(replace(plan, space=space, trials=3), heard, Stopper())
    assert result["trials"] == {"complete": 2, "pruned": 0, "failed": 1, "unfinished": 0}
    (problem,) = result["problems"]
    assert problem.startswith("model: the dimension 16 cannot be shared among 3 heads")
    assert "such as 18" in problem
    assert sorted(values["model.context_heads"] for values in heard.began.values()) == [2, 3, 4]


def test_a_sweep_goes_on_to_more_trials_and_refuses_to_become_another(people, tmp_path):
    out = tmp_path / "out"
    plan = make_plan(people, out, trials=2, pruning="none")
    sweep(plan, Heard(), Stopper())
    with pytest.raises(UsageError, match="there is a sweep named 'sweep' already"):
        sweep(plan, Heard(), Stopper())
    heard = Heard()
    result = sweep(replace(plan, trials=3), heard, Stopper(), resume=True)
    assert list(heard.began) == [2]
    assert result["trials"]["complete"] == 3
    assert len({tuple(trial.params.values()) for trial in trials_of(plan)}) == 3
    with pytest.raises(UsageError, match="begun with other settings: seed: 0 → 5"):
        sweep(replace(plan, base={**plan.base, "seed": 5}), Heard(), Stopper(), resume=True)
    with pytest.raises(UsageError, match="begun with another sampling"):
        sweep(replace(plan, sampling="random"), Heard(), Stopper(), resume=True)
    older = {name: value for name, value in plan.base.items() if name != "saving"}
    assert sweep(replace(plan, base=older, trials=3), Heard(), Stopper(), resume=True)["trials"]["complete"] == 3
    with pytest.raises(UsageError, match="exists already"):
        prepare(out, resume=False)
    with pytest.raises(UsageError, match="a sweep of another graph"):
        blind_copy("world", out / "graph")


def test_ctrl_c_keeps_the_trial_and_goes_on_from_its_checkpoint(people, tmp_path):
    plan, stopper = make_plan(people, tmp_path / "out", trials=2, pruning="none"), Stopper()

    def stop(number, epoch):
        stopper.asked = epoch == 2

    with pytest.raises(Interrupted):
        sweep(plan, Heard(stop), stopper)
    assert standing(trials_of(plan)).waiting == 1
    heard = Heard()
    result = sweep(plan, heard, Stopper(), resume=True)
    assert result["trials"] == {"complete": 2, "pruned": 0, "failed": 0, "unfinished": 0}
    again = min(heard.began)
    assert [epoch for epoch, _ in heard.values[again]] == [3, 4], "the first two epochs were not trained again"
    assert heard.began[again] == trials_of(plan)[0].params
    whole = sweep(make_plan(people, tmp_path / "whole", trials=1, pruning="none"), Heard(), Stopper())
    assert heard.outcomes[again][1] == whole["best"]["value"], "stopped and resumed, it ends where it would have"


def test_a_second_ctrl_c_does_not_lose_the_trial(people, tmp_path):
    def stop(number, epoch):
        raise KeyboardInterrupt

    plan = make_plan(people, tmp_path / "out", trials=1, pruning="none")
    with pytest.raises(KeyboardInterrupt):
        sweep(plan, Heard(stop), Stopper())
    assert standing(trials_of(plan)).waiting == 1
    assert sweep(plan, Heard(), Stopper(), resume=True)["trials"]["complete"] == 1


KILLED = """
import os, signal, sys
from pathlib import Path
from hynt.interruption import Stopper
from hynt.sweeping.sweep import sweep
from tests.sweeping.conftest import Heard, make_plan

def die(number, epoch):
    if number == 1 and epoch == 2:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    sweep(make_plan(Path(sys.argv[1]), Path(sys.argv[2]), pruning="none"), Heard(die), Stopper())
"""


def test_a_killed_sweep_goes_on(people, tmp_path):
    """The trial of the dead worker is marked failed once it was silent for long enough, and tried again."""
    (tmp_path / "killed.py").write_text(KILLED)
    out = tmp_path / "out"
    call = [sys.executable, str(tmp_path / "killed.py"), str(people), str(out)]
    done = subprocess.run(call, env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}, check=False)
    assert done.returncode == -signal.SIGKILL
    plan, heard = make_plan(people, out, pruning="none"), Heard()
    assert standing(trials_of(plan)).running == 1
    result = sweep(plan, heard, Stopper(), resume=True)
    assert result["trials"] == {"complete": 3, "pruned": 0, "failed": 0, "unfinished": 0}
    states = [trial.state.name for trial in trials_of(plan)]
    assert sorted(states) == ["COMPLETE", "COMPLETE", "COMPLETE", "FAIL"]
    assert [trial.number for trial in counting(trials_of(plan))] == [0, 2, 3]
    retried = next(
        number for number, values in heard.began.items() if values == plan.space.values(trials_of(plan)[1].params)
    )
    assert min(epoch for epoch, _ in heard.values[retried]) > 1, "it went on from the checkpoint"


def test_whoever_has_nothing_to_begin_waits_for_the_others(people, tmp_path):
    plan, stopper = make_plan(people, tmp_path / "out", trials=1, grace=60), Stopper()
    with opened(plan) as study:
        study._storage.record_heartbeat(study.ask()._trial_id)  # another worker, alive

    class Impatient(Heard):
        def __call__(self, news):
            super().__call__(news)
            stopper.asked = True

    heard = Impatient()
    with pytest.raises(Interrupted):
        sweep(plan, heard, stopper, resume=True)
    assert heard.waited == (1, 60)
    assert heard.began == {}


@pytest.mark.slow
def test_workers_in_processes_share_the_trials(people, tmp_path):
    plan, heard = make_plan(people, tmp_path / "out", pruning="none", trials=4, grace=60), Heard()
    result = sweep(plan, heard, Stopper(), workers=2)
    assert result["trials"] == {"complete": 4, "pruned": 0, "failed": 0, "unfinished": 0}
    assert sorted(heard.outcomes) == [trial.number for trial in counting(trials_of(plan))]
    assert heard.epochs == {number: [(epoch, 4) for epoch in (1, 2, 3, 4)] for number in heard.outcomes}
    assert report(plan)["best"] == result["best"]
