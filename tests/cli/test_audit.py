"""`hynt audit` as a person meets it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch

from hynt.cli.audit import _doubt, _percent
from hynt.graph.storage import save_graph
from hynt.training.run import start, train
from tests.conftest import ROOT
from tests.documented import fields
from tests.training.small_graph import NARROW, set_each, tiny_settings
from tests.trends.series_graph import SERIES, series_graph

PAGE = (ROOT / "docs" / "how-to" / "auditing.md").read_text(encoding="utf-8")
SMALL = [*set_each(*NARROW, "batch_size=64"), "--device", "cpu", "--epochs", "2", "--folds", "2"]


def test_nothing_that_a_model_says_is_certain():
    shares = (0.0, 0.0004, 0.001, 0.5, 0.9994, 0.9995, 1.0)
    told = ["under 0.1%", "under 0.1%", "0.1%", "50.0%", "99.9%", "over 99.9%", "over 99.9%"]
    assert [_percent(share) for share in shares] == told


def test_how_far_off_a_number_is_reads_well_however_far():
    """Of 1e200 among temperatures, two hundred digits were printed."""
    far = [_doubt({"kind": "number", "residual": residual}) for residual in (2.14, 766.43, 11995.8, 7.27089e199)]
    times = ["2.1", "770", "12,000", "7.3 × 10¹⁹⁹"]
    assert far == [f" ({one} times its interval off)" for one in times]


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def series(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("cli-series") / "series"
    save_graph(series_graph(), folder)
    return folder


@pytest.fixture(scope="module")
def trained_series(tmp_path_factory) -> Path:
    cpu = torch.device("cpu")
    settings = tiny_settings(batch_size=64, schedule={"epochs": 2, "period": 2})
    return train(start(series_graph(), settings, tmp_path_factory.mktemp("cli-run") / "run", cpu), cpu).path


def test_ranks_every_fact_and_says_how_it_goes(series, tmp_path, hynt):
    out = tmp_path / "suspicious.parquet"
    done = hynt("audit", series, "--out", out, "--top", 3, *SMALL)
    assert done.code == 0, done.err
    assert "fold 1 of 2: training on" in done.err
    assert "epoch 2 of 2: loss link" in done.err
    assert "judging 2 of 2:" in done.err
    assert "the model would have said" in done.out
    assert f"{5 * SERIES} of {5 * SERIES} facts judged in" in done.out
    assert pq.read_table(out).num_rows == 5 * SERIES
    assert sorted(path.name for path in tmp_path.iterdir()) == ["suspicious.parquet"]


def test_json_is_one_object_with_the_documented_fields(series, tmp_path, hynt):
    out = tmp_path / "components.parquet"
    done = hynt(
        "audit", series, "--out", out, "--components", "--work", tmp_path / "work", "--json", "--top", 2, *SMALL
    )
    found = done.json
    assert set(found) == set(fields("audit"))
    assert (found["facts"], found["judged"], found["rows"]) == (5 * SERIES, 5 * SERIES, found["components"])
    assert len(found["suspicious"]) == 2
    columns = pq.read_schema(out).names
    cells = re.findall(r"^\| (`[a-z_`, ]+`) \|", PAGE, flags=re.MULTILINE)
    assert columns == re.findall(r"`([a-z_]+)`", " ".join(cells))
    assert (tmp_path / "work" / "fold-1" / "manifest.json").exists()
    again = hynt(
        "audit", series, "--out", out, "--components", "--work", tmp_path / "work", "--json", "--top", 2, *SMALL
    )
    assert "training on" not in again.err
    assert again.json["suspicious"] == found["suspicious"]


def test_a_run_judges_its_test_split_without_training(trained_series, tmp_path, hynt):
    done = hynt(
        "audit", trained_series, "--split", "test", "--out", tmp_path / "out.parquet", "--json", "--device", "cpu"
    )
    assert done.code == 0, done.err
    assert "training on" not in done.err
    assert done.json["splits"] == ["test"]
    assert set(pq.read_table(tmp_path / "out.parquet")["judge"].to_pylist()) <= {
        f"run-{number}" for number in range(1, 6)
    }


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["nowhere", "--out", "OUT"], 2, "there is no graph at 'nowhere'"),
        (["GRAPH", "--out", "OUT", "--split", "tset"], 2, "this graph has no split 'tset'"),
        (["GRAPH", "--out", "OUT", "--folds", "1"], 2, "--folds"),
        (["GRAPH", "--out", "OUT", "--fold-by", "time"], 2, "folds cannot be made by 'time'"),
        (["GRAPH", "--out", "OUT", "--model", "hint"], 2, "Did you mean hynt"),
        (["GRAPH", "--out", "OUT", "--set", "model.width=3"], 2, "model.width"),
        (["GRAPH", "--out", "HERE"], 2, "is a folder"),
        (["GRAPH", "--out", "HERE/no/such/out.parquet"], 2, "there is no folder"),
    ],
)
def test_bad_input_is_told_and_nothing_is_left(series, tmp_path, hynt, arguments, code, text):
    places = {"GRAPH": str(series), "OUT": str(tmp_path / "out.parquet"), "HERE": str(tmp_path)}
    filled = [re.sub("GRAPH|OUT|HERE", lambda found: places[found[0]], argument) for argument in arguments]
    done = hynt("audit", *filled, "--device", "cpu")
    assert done.code == code
    assert text in done.err
    assert not list(tmp_path.iterdir())


def test_a_changed_run_is_refused(trained_series, tmp_path, hynt):
    run = shutil.copytree(trained_series, tmp_path / "run")
    weights = run / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\1")
    done = hynt("audit", run, "--split", "test", "--out", tmp_path / "out.parquet", "--device", "cpu")
    assert done.code == 2
    assert "the file was changed" in done.err
    assert list(tmp_path.iterdir()) == [run]  # no answer, and no folder of work


@pytest.mark.slow
def test_python_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(example, "auditing.md", "exec"), names)
    assert len(names["found"].to_pandas()) == len(names["found"].plan.table)


def test_the_first_line_says_what_is_judged_and_by_whom(series, trained_series, tmp_path, hynt):
    for source, options, told in (
        (series, SMALL, "The graph series, judged by 2 models of hynt trained for it."),
        (trained_series, ["--device", "cpu", "--split", "valid,test"], "by the run itself, which did not train on the"),
        (trained_series, [*SMALL, "--split", "train"], "judged by 2 models trained with its settings."),
        (
            trained_series,
            ["--device", "cpu", "--folds", "2"],
            "judged by 2 models trained with its settings, and by the run itself where it did not train.",
        ),
    ):
        done = hynt("audit", source, "--out", tmp_path / "suspicious.parquet", "--top", 1, *options)
        assert done.code == 0, done.err
        first = " ".join(done.out.partition("┏")[0].split())
        assert told in first, source
        assert "comes with hynt" not in done.err


def test_world_is_a_graph_here_and_how_to_ask_its_run_is_said(tmp_path, hynt):
    done = hynt("audit", "world", "--out", tmp_path / "suspicious.parquet", "--split", "extra")
    assert "this judges the graph world by new models; the run that comes with hynt judges it without" in done.err
    assert "hynt update world --out RUN, then hynt audit RUN" in " ".join(done.err.split())
