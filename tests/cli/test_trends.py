"""`hynt trends` as a user runs it: pictures and tables whole or not at all, clear words for the rest."""

from __future__ import annotations

import csv
import subprocess
import sys

import pytest
import torch

from hynt.training.run import start, train
from tests.cli.conftest import leftovers
from tests.training.small_graph import contents, tiny_settings
from tests.trends.seasons_graph import seasons_graph

CPU = torch.device("cpu")
WARMTH = ("--head", "Springfield", "--relation", "temperature")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    torch.set_num_threads(1)
    return train(start(seasons_graph(), tiny_settings(), tmp_path_factory.mktemp("seasons") / "run", CPU), CPU).path


def test_pictures_and_a_table(run, hynt, tmp_path):
    files = [tmp_path / name for name in ("trend.png", "trend.SVG", "trend.csv")]
    done = hynt("trends", run, *WARMTH, "--head", "t1", *(part for file in files for part in ("--out", file)))
    assert done.code == 0, done.err
    assert done.out.startswith("temperature over point in time, 1990 to 2019\n")
    assert "20 known values of other series left out" in done.out
    assert files[0].read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in files[1].read_bytes()
    rows = list(csv.DictReader(files[2].read_text(encoding="utf-8").splitlines()))
    assert {row["head"] for row in rows} == {"Springfield", "Shelbyville"}
    assert sum(row["kind"] == "curve" for row in rows) == 200
    assert leftovers(tmp_path) == []


def test_json_is_what_python_has(run, hynt, tmp_path):
    from hynt.front.run import load
    from hynt.trends.trends import trend

    options = (
        "--qualifier",
        "time of day=night",
        "--from",
        "1995",
        "--to",
        "2025-06",
        "--points",
        "5",
        "--level",
        "0.8",
    )
    found = hynt(
        "trends", run, *WARMTH, *options, "--over", "point in time", "--out", tmp_path / "a.csv", "--json"
    ).json
    own = trend(
        load(run, "cpu"),
        "t0",
        "temperature",
        qualifiers=[("time of day", "night")],
        start=1995,
        end="2025-06",
        points=5,
        level=0.8,
    )
    assert {name: found[name] for name in own.to_dict()} == own.to_dict()
    assert (found["graph"], found["model"], found["out"]) == ("seasons", "hynt", [str(tmp_path / "a.csv")])


@pytest.mark.parametrize(
    "arguments,word",
    [
        (["--head", "Springfeld", "--relation", "temperature"], "The nearest are 'Springfield'"),
        (["--head", "t0", "--relation", "area"], "no fact of 'area' carries a date as a qualifier."),
        ([*WARMTH, "--over", "time of day"], "'time of day' holds entities"),
        ([*WARMTH, "--qualifier", "time of day"], "'time of day' is not a qualifier."),
        ([*WARMTH, "--qualifier", "time of day=nigth"], "where: value of --qualifier 1"),
        ([*WARMTH, "--qualifier", "time of day=night", "--qualifier", "hour=7"], "where: relation of --qualifier 2"),
        ([*WARMTH, "--points", "1"], "a curve cannot have 1 points."),
        ([*WARMTH, "--from", "2020", "--to", "2000"], "the trend would go from 2020 to 2000."),
        ([*WARMTH, "--level", "0.7"], "there are no intervals of 0.7."),
        ([*WARMTH, "--out", "trend.gif"], "trend.gif does not say what to write."),
        ([*WARMTH, "--out", "/nowhere/at/all.png"], "there is no folder"),
        (["--relation", "temperature"], "--head"),
    ],
)
def test_bad_input_leaves_with_2_and_writes_nothing(run, hynt, arguments, word, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = contents(run)
    refused = hynt("trends", run, *arguments, "--out", "trend.png")
    assert refused.code == 2
    assert word in refused.err
    assert refused.out == ""
    assert list(tmp_path.iterdir()) == []
    assert contents(run) == before


def test_no_run_and_no_file(hynt, tmp_path, run):
    assert "there is no run at" in hynt("trends", tmp_path, *WARMTH, "--out", tmp_path / "a.png").err
    assert hynt("trends", run, *WARMTH).code == 2


def test_without_matplotlib_a_table_can_still_be_written(run, hynt, tmp_path, monkeypatch):
    monkeypatch.setattr("hynt.reporting.scales.find_spec", lambda name: None)
    refused = hynt("trends", run, *WARMTH, "--out", tmp_path / "a.png")
    assert refused.code == 2
    assert "pip install 'hynt[plot]'" in refused.err
    assert hynt("trends", run, *WARMTH, "--out", tmp_path / "a.csv").code == 0


def test_a_wrong_name_is_refused_before_torch_is_loaded(run, tmp_path):
    script = (
        "import sys\nfrom hynt.cli.application import run\n"
        f"code = run(['trends', {str(run)!r}, '--head', 'Nowhere', '--relation', 'temperature', '--out', 'a.csv'])\n"
        "assert 'torch' not in sys.modules and 'matplotlib' not in sys.modules\nsys.exit(code)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "no entity called 'Nowhere'" in done.stderr


def test_a_changed_run_is_refused(run, hynt, tmp_path):
    import shutil

    copy = shutil.copytree(run, tmp_path / "run")
    weights = copy / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    refused = hynt("trends", copy, *WARMTH, "--out", tmp_path / "a.png")
    assert refused.code == 2
    assert "weights.safetensors" in refused.err
    assert not (tmp_path / "a.png").exists()
