"""Jobs of the device benchmark on a small graph: trained, changed for an ablation, asked elsewhere and as one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import hynt.models.layers.message_passing as passing
from benchmarks import results_table
from benchmarks.inductive_ablations import ABLATIONS
from benchmarks.result_file import ResultFile, Row, Run, read_results
from hynt.batches.message_plan import MessagePlan
from hynt.graph.storage import save_graph
from hynt.objectives.drawn_beside import DrawnBeside
from hynt.objectives.number_distribution import Bins
from hynt.objectives.observed_and_targets import ObservedAndTargets
from hynt.objectives.streams import PhaseSettings
from tests.models.question_batches import every_question
from tests.models.test_hynt_inductive import FACTS, model_of
from tests.training.small_graph import small_graph

ROOT = Path(__file__).resolve().parent.parent.parent
SMALL = (
    "model=hynt-inductive epochs=1 set=batch_size=16 set=model.dimension=16 set=model.layers=1 set=model.feedforward=16"
)


@pytest.mark.slow
def test_runs_are_asked_elsewhere_and_as_one(tmp_path):
    save_graph(small_graph(people=20), tmp_path / "graph")
    graph, kept = f"graph={tmp_path}/graph", f"keep={tmp_path}/runs"
    jobs = [
        f"name=two {graph} {SMALL} measure=train,ensemble seeds=0,1 breakdown=relation split=valid {kept}",
        f"name=equal {graph} {SMALL} measure=ensemble weights=equal seeds=0,1 split=valid {kept}",
        f"name=elsewhere {graph} {SMALL} measure=train asked={tmp_path}/graph split=valid",
        f"name=changed {graph} {SMALL} measure=train ablation=squared-error split=valid",
    ]
    command = [
        sys.executable,
        "benchmarks/device.py",
        "--plain",
        "--device",
        "cpu",
        "--out",
        str(tmp_path / "o"),
        *jobs,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    found = {row.name: row for row in read_results(tmp_path / "o").rows}
    first = found["two"].runs[0]
    assert [run.seed for run in found["two"].runs] == [0, 1]
    assert first.breakdowns["link"]["relation"]
    for name in ("two, as one", "equal"):
        assert 0 < found[name].figure("link", "all", "mrr").mean <= 1
    assert set(found["equal"].measured["weights"]["groups"]["link at head"]["everywhere"]) == {0.5}
    elsewhere = found["elsewhere"].runs[0]
    there, here = (one.metrics["valid"]["link"]["all"] for one in (elsewhere, first))
    assert there == pytest.approx(here)
    assert elsewhere.breakdowns["link"]["seen"]
    changed = found["changed"].runs[0]
    assert changed.metrics["valid"]["number"] != first.metrics["valid"]["number"]


@pytest.fixture
def changed(monkeypatch):
    """Makes the changes of an ablation, which are undone after the test."""
    places = [(passing, "kernels_serve"), (passing.NodeAttention, "__init__"), (MessagePlan, "_others"), (Bins, "loss")]
    for place, name in [*places, (DrawnBeside, "_chosen"), (ObservedAndTargets, "drawn")]:
        monkeypatch.setattr(place, name, getattr(place, name))
    return lambda name: ABLATIONS[name]()


def drawn():
    """What two steps observe, and what they ask about."""
    epoch = model_of(FACTS).phases(FACTS, PhaseSettings(batch_size=30, epochs=1))[0].stream.epoch(0, 0)
    steps = [epoch.items(index).tensors for index in (0, 1)]
    return [(set(torch.cat(one[:2]).tolist()), set(one[2].tolist())) for one in steps]


def test_a_fixed_split_observes_the_same_facts_in_each_step_and_asks_about_others(changed):
    changed("fixed-split")
    (first, asked), (second, others) = drawn()
    assert first == second
    assert asked != others
    assert len(asked) == 30
    assert not first & (asked | others)


def test_without_a_split_what_is_asked_about_is_observed(changed):
    changed("no-split")
    (first, asked), (second, _) = drawn()
    assert first != second
    assert len(asked) == 30
    assert asked <= first


def test_a_mean_hears_every_message_alike(changed):
    changed("mean")
    own = torch.randn(3, 12)
    attention = passing.NodeAttention(own, 2, 1)
    assert attention.total.eq(1).all()
    torch.testing.assert_close(attention.mixed.flatten(1), own[:, 8:])


def test_a_message_with_its_receiver_changes_states_but_no_question_sees_its_answer(changed):
    model, (batch, _, _) = model_of(FACTS), every_question(FACTS, torch.arange(4))
    rows = torch.arange(len(FACTS))
    with torch.no_grad():
        before = model.encode(FACTS, rows)
        asked = model.read_beside(batch, before).encoded
        changed("with-receiver")
        after = model.encode(FACTS, rows)
        torch.testing.assert_close(model.read_beside(batch, before).encoded, asked)
    assert not torch.allclose(before.layers[-1].value, after.layers[-1].value)


def test_a_table_has_a_row_for_seeds_and_one_for_an_ensemble(tmp_path):

    def run(seed, value):
        metrics = dict.fromkeys(("mrr", "hits@1", "hits@3", "hits@10"), value)
        return Run(seed, {"test": {"link": {"triplet": metrics, "all": metrics}}})

    seeds = Row("seeds", [], "cpu", split="test", runs=[run(0, 0.19), run(1, 0.20), run(2, 0.21)])
    one = Row("one", [], "cpu", split="test", runs=[run(None, 0.25)])
    ResultFile("Two rows.", [seeds, one]).write(tmp_path / "raw.json")
    rows = list(results_table.rows([tmp_path / "raw.json"], "link"))
    assert rows == [["raw: seeds", "3", *["0.2000 ± 0.0100"] * 5], ["raw: one", "1", *["0.2500"] * 5]]
    assert not list(results_table.rows([tmp_path / "raw.json"], "number"))
