"""Runs given away and taken back: equal to the byte, refused when touched, never more than a run's own files."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
import yaml

from hynt import files
from hynt.cli.application import run
from hynt.errors import DataError, UsageError
from hynt.files import index_text
from hynt.front.graphs import export_graph
from hynt.front.run import load
from hynt.runs.run_folder import RunFolder
from hynt.sharing.cards import CROISSANT, plain
from hynt.sharing.push_and_pull import CARD, LIST, pull, push
from hynt.training.run import start, train
from tests.training.small_graph import contents, small_graph, tiny_settings

CPU = torch.device("cpu")


@pytest.fixture
def given(original, tmp_path) -> Path:
    push(original, str(tmp_path / "given"))
    return tmp_path / "given"


def test_a_pulled_run_is_the_run(original, given, tmp_path):
    result = pull(str(given), tmp_path / "pulled")
    assert contents(tmp_path / "pulled") == contents(original)
    assert "calibration.json" in result["files"]
    assert "graph/train.parquet" in result["files"]
    assert (result["passed_over"], result["graph_included"]) == ([], True)
    question = ("person 1", "knows", "?")
    assert str(load(tmp_path / "pulled", "cpu").predict(question)) == str(load(original, "cpu").predict(question))


def test_the_folder_is_a_repository_of_the_hub(original, given):
    names = set(contents(given))
    assert names == set(contents(original)) | {CARD, CROISSANT, LIST}
    assert not [name for name in names if name.endswith((".pkl", ".pt", ".bin", ".py", ".pickle"))]
    card = (given / CARD).read_text(encoding="utf-8")
    _, header, text = card.split("---\n", 2)
    found = yaml.safe_load(header)
    assert (found["license"], found["license_name"], found["library_name"]) == ("other", "not stated", "hynt")
    metrics = {one["name"]: one["value"] for one in found["model-index"][0]["results"][0]["metrics"]}
    best = json.loads((original / "manifest.json").read_text())["training"]["best"]
    assert metrics["link.all.mrr, valid"] == best["value"]
    assert f"| entities | all | mrr | {best['value']:.4f} |" in text
    assert (original / "config.toml").read_text() in text
    assert "licence: not stated" in text
    assert "valid 0 times, test 0 times" in text
    assert "No figures of the test split were given with it." in text.split("## Limits")[1]


def test_an_exported_graph_is_described_and_read_again(tmp_path, capsys):
    made = export_graph(small_graph(), tmp_path / "files", "parquet")
    assert made[-1].name == CROISSANT
    check_data_set(tmp_path / "files")
    assert run(["data", "import", str(tmp_path / "files"), "--units", "keep", "--out", str(tmp_path / "again")]) == 0
    told = capsys.readouterr()
    assert "Read as parquet." in told.out
    assert CROISSANT not in told.out + told.err


def test_an_export_is_described_from_its_first_moment(tmp_path, monkeypatch):
    described, publish = [], files._publish

    def watched(staging, folder, overwrite):
        described.append((staging / CROISSANT).is_file())
        publish(staging, folder, overwrite)

    monkeypatch.setattr(files, "_publish", watched)
    export_graph(small_graph(), tmp_path / "files", "parquet")
    assert described == [True]


def test_the_graph_of_a_run_is_described_as_a_data_set(given):
    check_data_set(given)


def check_data_set(given):
    """By what Croissant 1.0 requires of a data set, its files and its fields."""
    found = json.loads((given / CROISSANT).read_text(encoding="utf-8"))
    required = {"@context", "@type", "conformsTo", "name", "description", "license", "url", "creator", "datePublished"}
    assert required <= set(found)
    assert (found["@type"], found["conformsTo"]) == ("sc:Dataset", "http://mlcommons.org/croissant/1.0")
    files = {one["@id"]: one for one in found["distribution"]}
    for one in files.values():
        assert {"@type", "name", "contentUrl", "encodingFormat", "sha256"} <= set(one)
        assert hashlib.sha256((given / one["contentUrl"]).read_bytes()).hexdigest() == one["sha256"]
    columns = {name: pq.read_schema(given / one["contentUrl"]).names for name, one in files.items()}
    for records in found["recordSet"]:
        assert [field["name"].partition("/")[2] for field in records["field"]] == columns[f"{records['@id']}.parquet"]
        for field in (part for one in records["field"] for part in one.get("subField", [one])):
            assert field["source"]["fileObject"]["@id"] in files
            assert field["dataType"] in {"sc:Text", "sc:Float", "sc:Integer"}
    (train,) = (one for one in found["recordSet"] if one["@id"] == "train")
    kinds = {one["name"]: one.get("dataType", "repeated") for one in train["field"]}
    assert (kinds["train/head"], kinds["train/tail_number"], kinds["train/qualifiers"]) == (
        "sc:Text",
        "sc:Float",
        "repeated",
    )


def test_pushing_to_a_folder_says_that_nothing_was_sent(original, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["push", str(original), "someone/name"]) == run(["push", str(original), str(tmp_path / "given")]) == 0
    told = capsys.readouterr().out
    assert "are in the folder someone/name" in told
    assert "it is on this machine; to send it to the hub, say hf:someone/name" in told
    assert "say hf:owner/name" in told


def test_the_card_has_the_evaluation_and_the_licence(original, tmp_path):
    run = RunFolder.open(original)
    protocol = {
        "graph": "small",
        "split": "test",
        "ties": "realistic",
        "model": "hynt",
        "seed": 0,
        "epoch": run.manifest["training"]["weights_of_epoch"],
    }
    evaluation = {"link": {"all": {"mrr": 0.25, "hits@10": 0.5, "questions": 4}}, "protocol": protocol}
    (tmp_path / "test.json").write_text(json.dumps(evaluation))
    push(original, str(tmp_path / "given"), evaluation=tmp_path / "test.json", licence="CC-BY-4.0")
    _, header, text = (tmp_path / "given" / CARD).read_text().split("---\n", 2)
    found = yaml.safe_load(header)
    assert found["license"] == "cc-by-4.0"
    names = [one["name"] for one in found["model-index"][0]["results"][0]["metrics"]]
    assert "link.all.hits@10, test" in names
    assert "On the split test:" in text
    assert 'ties: "realistic"' in text
    protocol["seed"] = 7
    (tmp_path / "other.json").write_text(json.dumps(evaluation | {"protocol": protocol}))
    with pytest.raises(UsageError, match="the evaluation is of another run"):
        push(original, str(tmp_path / "again"), evaluation=tmp_path / "other.json")
    (tmp_path / "other.json").write_text(json.dumps(evaluation | {"link": {"all": {"mrr": "x"}}}))
    with pytest.raises(UsageError, match="this is not an evaluation"):
        push(original, str(tmp_path / "again"), evaluation=tmp_path / "other.json")
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(UsageError, match="this is not an evaluation"):
        push(original, str(tmp_path / "again"), evaluation=tmp_path / "other.json")
    assert not (tmp_path / "again").exists()


def test_names_from_data_do_nothing_in_a_card(tmp_path):
    from dataclasses import replace

    nasty = 'evil"\n---\nlicense: mit\n# <script>alert(1)</script> | [x](javascript:1) `code`'
    graph = small_graph()
    graph = replace(graph, manifest=replace(graph.manifest, name=nasty, licence=nasty, source=nasty))
    run = train(start(graph, tiny_settings(), tmp_path / "run", CPU), CPU)
    push(run.path, str(tmp_path / "given"))
    card = (tmp_path / "given" / CARD).read_text()
    _, header, text = card.split("---\n", 2)
    assert yaml.safe_load(header)["license_name"] == nasty.strip()
    assert "<script>" not in text
    assert "[x](" not in text
    assert plain("a\nb|c <d> `e`") == "a b\\|c &lt;d&gt; \\`e\\`"
    assert plain("\x1b[31m\u202eb") == "\\\\x1b\\[31m\\\\u202eb"


@pytest.mark.parametrize(
    "name",
    [
        "weights.safetensors",
        "config.toml",
        "manifest.json",
        "metrics.jsonl",
        "calibration.json",
        "graph/train.parquet",
        "graph/manifest.json",
    ],
)
def test_a_changed_file_is_refused_by_name(given, tmp_path, name):
    content = bytearray((given / name).read_bytes())
    content[len(content) // 2] ^= 1
    (given / name).write_bytes(content)
    with pytest.raises(DataError, match="was changed") as problem:
        pull(str(given), tmp_path / "pulled")
    assert problem.value.where.endswith(name)
    assert not (tmp_path / "pulled").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["given"], "nothing half-written is left"


def test_a_missing_file_and_a_changed_list_are_refused(given, tmp_path):
    listed = (given / LIST).read_text()
    (given / LIST).write_text(listed.replace("a", "b", 1))
    with pytest.raises(DataError, match=r"does not match its own hash|is damaged"):
        pull(str(given), tmp_path / "pulled")
    (given / LIST).write_text(listed)
    (given / "scaling.json").unlink()
    with pytest.raises(DataError, match="the file is missing"):
        pull(str(given), tmp_path / "pulled")
    (given / LIST).unlink()
    with pytest.raises(DataError, match="not a run that was given away"):
        pull(str(given), tmp_path / "pulled")


@pytest.mark.parametrize(
    "name",
    ["../evil.py", "/etc/passwd", "setup.py", "weights.pkl", "graph/../../x", "modeling.py", "graph/extra.parquet"],
)
def test_a_list_that_asks_for_other_files_is_refused(given, tmp_path, name):
    files = json.loads((given / LIST).read_text())["files"]
    files[name] = "0" * 64
    (given / LIST).write_text(index_text({"kind": "hynt run", "files": files}))
    with pytest.raises(DataError, match="which is not a file of a run"):
        pull(str(given), tmp_path / "pulled")


def test_surplus_files_are_passed_over_and_named(original, given, tmp_path):
    for name in ("setup.py", "weights.pkl", "graph/evil.py", "modeling.py"):
        (given / name).write_text("raise SystemExit('this ran')")
    (given / ".git").mkdir()
    (given / ".git" / "config").write_text("")
    result = pull(str(given), tmp_path / "pulled")
    assert result["passed_over"] == ["graph/evil.py", "modeling.py", "setup.py", "weights.pkl"]
    assert contents(tmp_path / "pulled") == contents(original)


def test_a_rewritten_list_does_not_help_a_changed_run(given, tmp_path):
    """Whoever changes the weights and the list, but not the run's manifest, is found all the same."""
    content = bytearray((given / "weights.safetensors").read_bytes())
    content[-1] ^= 1
    (given / "weights.safetensors").write_bytes(content)
    files = json.loads((given / LIST).read_text())["files"]
    files["weights.safetensors"] = hashlib.sha256(content).hexdigest()
    (given / LIST).write_text(index_text({"kind": "hynt run", "files": files}))
    with pytest.raises(DataError, match="its hash is not the manifest's") as problem:
        pull(str(given), tmp_path / "pulled")
    assert problem.value.where == str(given / "weights.safetensors")


def test_a_manifest_of_something_else_is_refused(given, tmp_path):
    (given / "manifest.json").write_text(index_text({"schema_version": 1}))
    files = json.loads((given / LIST).read_text())["files"]
    files["manifest.json"] = hashlib.sha256((given / "manifest.json").read_bytes()).hexdigest()
    (given / LIST).write_text(index_text({"kind": "hynt run", "files": files}))
    with pytest.raises(DataError, match="the manifest is not that of a run"):
        pull(str(given), tmp_path / "pulled")


def test_what_is_pushed_is_whole_and_finished(original, tmp_path):
    unfinished = start(small_graph(), tiny_settings(), tmp_path / "new", CPU)
    with pytest.raises(UsageError, match="the run is not finished"):
        push(unfinished.path, str(tmp_path / "given"))
    damaged = Path(shutil.copytree(original, tmp_path / "damaged"))
    (damaged / "scaling.json").write_text("{}")
    with pytest.raises(DataError, match="was changed"):
        push(damaged, str(tmp_path / "given"))
    with pytest.raises(UsageError, match="lies in the run itself"):
        push(original, str(original / "given"))
    assert not (tmp_path / "given").exists()


def test_pushing_again_replaces_and_spares_what_is_not_ours(original, given, tmp_path):
    (given / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        push(original, str(given))
    smaller = Path(shutil.copytree(original, tmp_path / "smaller"))
    (smaller / "calibration.json").unlink()
    (smaller / "scratch.txt").write_text("x")
    result = push(smaller, str(given), overwrite=True)
    assert result["left_out"] == ["scratch.txt"]
    assert (given / "notes.txt").read_text() == "mine"
    assert not (given / "calibration.json").exists()
    assert pull(str(given), tmp_path / "pulled")["passed_over"] == ["notes.txt"]
    with pytest.raises(UsageError, match="exists already"):
        pull(str(given), tmp_path / "pulled")


def test_a_large_graph_stays_outside(tmp_path, monkeypatch):
    from hynt.graph.storage import save_graph
    from hynt.runs import run_folder

    monkeypatch.setattr(run_folder, "LARGEST_EMBEDDED", 10)
    graph = small_graph()
    save_graph(graph, tmp_path / "graph")
    run = train(start(graph, tiny_settings(), tmp_path / "run", CPU, tmp_path / "graph"), CPU)
    assert push(run.path, str(tmp_path / "given"))["graph_included"] is False
    assert "put it at ../graph" in (tmp_path / "given" / CARD).read_text()
    assert pull(str(tmp_path / "given"), tmp_path / "pulled")["graph_included"] is False
    assert load(tmp_path / "pulled", "cpu").graph == graph


def test_without_the_library_the_word_says_how_to_get_it(original, monkeypatch, tmp_path):
    import sys

    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UsageError, match=r"pip install 'hynt\[hub\]'"):
        pull("hf:ann/towns", tmp_path / "pulled")
