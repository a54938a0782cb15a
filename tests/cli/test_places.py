"""Where a command cannot write, it says so before it works, and leaves nothing."""

from __future__ import annotations

import json
import shutil

import pytest

ASKED = ("--head", "p1", "--relation", "height", "--tail", "?")

FOLDERS = {
    "train": ("train", "world", "--preset", "hynt-small", "--out"),
    "demo": ("demo", "--epochs", "1", "--out"),
    "sweep": ("sweep", "world", "--preset", "hynt-small", "--trials", "1", "--out"),
    "compare": ("compare", "world", "--models", "transea", "--out"),
    "import": ("data", "import", "SOURCE", "--format", "jsonl", "--out"),
    "export": ("data", "export", "world", "--format", "jsonl", "--out"),
    "create": ("create", "wikidata", "SOURCE", "--all", "--out"),
}
FILES = {
    "save": ("predict", "RUN", *ASKED, "--save"),
    "complete": ("complete", "RUN", "--missing", "--out"),
    "audit": ("audit", "world", "--out"),
    "onnx": ("export", "RUN", "--out"),
    "embeddings": ("embeddings", "RUN", "--out"),
    "questions": ("evaluate", "RUN", "--questions"),
    "picture": ("explain", "RUN", *ASKED, "--out"),
}


@pytest.fixture
def said(hynt, town_run, tmp_path):
    """Runs words with a run and a source for RUN and SOURCE, and a place in the folder `there`."""
    source = tmp_path / "source.jsonl"
    source.write_text('{"head": "a", "relation": "r", "tail": "b"}\n')
    (tmp_path / "there").mkdir()

    def command(words, place):
        places = {"RUN": str(town_run), "SOURCE": str(source)}
        json_too = () if words[0] == "demo" else ("--json",)
        return hynt(*[places.get(word, word) for word in words], tmp_path / "there" / place, *json_too)

    return command


@pytest.mark.parametrize("verb", [*FOLDERS, *FILES])
def test_a_folder_without_rights(said, tmp_path, monkeypatch, verb):
    def refused(**options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refused)
    done = said(FOLDERS.get(verb) or FILES[verb], "picture.svg" if verb == "picture" else "new")
    assert done.code == 2, done.err
    assert f"nothing can be written in {tmp_path / 'there'}: Permission denied.\n  where: --" in done.err
    assert list((tmp_path / "there").iterdir()) == []


@pytest.mark.parametrize("verb", FOLDERS)
def test_a_folder_below_a_file(said, tmp_path, verb):
    (tmp_path / "there" / "file").write_text("kept")
    done = said(FOLDERS[verb], "file/new")
    assert done.code == 2, done.err
    assert f"{tmp_path / 'there' / 'file'} is a file, so no folder can be made in it.\n  where: --out" in done.err
    assert (tmp_path / "there" / "file").read_text() == "kept"


@pytest.mark.parametrize("wrong", [("nowhere",), ("world", "--metric", "link.all.mmr"), ("world", "--model", "hint")])
def test_a_sweep_that_cannot_begin_leaves_no_folder(hynt, tmp_path, wrong):
    done = hynt("sweep", *wrong, "--trials", "1", "--preset", "hynt-small", "--out", tmp_path / "sweep")
    assert done.code == 2, done.err
    assert list(tmp_path.iterdir()) == []


def test_a_run_to_compare_with_that_is_not_there_costs_no_reading(hynt, town_run, tmp_path):
    run = shutil.copytree(town_run, tmp_path / "run")
    done = hynt("evaluate", run, "--compare", tmp_path / "nowhere")
    assert done.code == 2
    assert "there is no run at" in done.err
    assert "or say world, the run that comes with hynt" in done.err
    assert json.loads((run / "reads.json").read_text())["test"] == 0


def test_a_demo_does_not_take_a_folder_of_something_else_for_a_run(hynt, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    done = hynt("demo", "--out", tmp_path, "--epochs", "1")
    assert done.code == 2
    assert f"{tmp_path} is there and is not a run.\n  where: --out" in done.err


def test_a_comparison_has_an_end(hynt, tmp_path):
    done = hynt("compare", "world", "--minutes-per-model", "inf", "--out", tmp_path / "compared", "--json")
    assert done.code == 2
    assert "--minutes-per-model" in done.json["error"]["what"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "verb", [("data", "import", "SOURCE", "--format", "jsonl"), ("create", "wikidata", "SOURCE", "--all")]
)
def test_overwriting_replaces_graphs_alone_and_is_refused_before_reading(hynt, town_run, tmp_path, verb):
    run = shutil.copytree(town_run, tmp_path / "run")  # it has a manifest too
    before = sorted(path.name for path in run.iterdir())
    words = [tmp_path / "not-there.json" if word == "SOURCE" else word for word in verb]
    done = hynt(*words, "--out", run, "--overwrite")
    assert done.code == 2, done.err
    assert "run is not a saved graph, so it is not replaced." in done.err
    assert sorted(path.name for path in run.iterdir()) == before


def test_results_of_questions_are_not_written_under_the_name_of_another_format(hynt, town_run, tmp_path):
    done = hynt("evaluate", town_run, "--questions", tmp_path / "questions.csv")
    assert done.code == 2
    assert "would hold Parquet under the name of another format.\n  where: --questions" in done.err


def test_an_unfinished_run_is_not_exported(hynt, tmp_path):
    import torch

    from hynt.training.run import start
    from tests.town_graph import town_graph
    from tests.training.small_graph import tiny_settings

    start(town_graph(), tiny_settings(), tmp_path / "run", torch.device("cpu"))
    done = hynt("export", tmp_path / "run", "--out", tmp_path / "model.onnx")
    assert done.code == 2, done.err
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
