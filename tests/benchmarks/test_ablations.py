"""The ablation tables, on a graph of a few facts: every row trains, and the table has the paper's rows and columns."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import ablations
from benchmarks.result_file import read_results
from hynt.graph.storage import save_graph
from tests.training.small_graph import small_graph

ROOT = Path(__file__).resolve().parent.parent.parent
SMALL = (
    "batch_size=64",
    "model.dimension=16",
    "model.context_heads=2",
    "model.prediction_heads=2",
    "model.context_feedforward=16",
    "model.prediction_feedforward=16",
)


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ablations")
    save_graph(small_graph(people=20), folder / "graph")
    command = [sys.executable, "-m", "benchmarks.ablations", "--graph", str(folder / "graph"), "--epochs", "2"]
    command += ["--device", "cpu", "--rows", "1,6,8,9", "--jobs", "2", "--out", str(folder / "out.json")]
    for change in SMALL:
        command += ["--set", change]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout, folder / "out.json"


def test_every_row_is_trained_with_its_switches(outcome):
    said, file = outcome
    rows = {row.name: row for row in read_results(file).rows}
    assert said.count("done") == len(rows) == 4, said
    masking = rows["without masking numbers, relations, qualifiers"].settings["masking"]
    assert masking == {"numbers": False, "relations": False, "qualifiers": False}
    assert rows["without prediction transformer"].settings["model"]["prediction"] == "linear"
    assert rows["numbers as discrete entities"].settings["model"]["numbers"] == "discrete"
    assert rows["HyNT"].settings["schedule"]["epochs"] == 2


def test_the_table_has_a_line_for_each_and_six_figures(outcome):
    lines = ablations.table(outcome[1]).splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == [
        "without masking numbers, relations, qualifiers",
        "without prediction transformer",
        "numbers as discrete entities",
        "HyNT",
    ]
    assert all(line.count("|") == 8 and "–" not in line for line in lines[2:])
