"""A run that someone gives away with every hash in order and something hostile in it."""

from __future__ import annotations

import json
import re

import pytest
import torch
from safetensors.torch import load_file, save_file

from hynt.errors import DataError
from hynt.runs.model_choice import no_larger_than
from hynt.runs.opening import load_run
from hynt.service.pages.overview import measured_of
from tests.attacks.forging import sign_run, write_index


def pulled(hynt, away, tmp_path) -> str:
    outcome = hynt.fair("pull", away, tmp_path / "pulled")
    assert outcome.code == 1
    assert not (tmp_path / "pulled").exists()
    return outcome.said


def test_what_was_given_away_can_be_pulled(hynt, away, tmp_path):
    sign_run(away)
    assert hynt.fair("pull", away, tmp_path / "pulled").code == 0


@pytest.mark.parametrize(
    ("setting", "value"),
    [("context_layers", 100_000), ("dimension", 10**9), ("dimension", 10**6), ("prediction_layers", 10**9)],
)
def test_settings_that_ask_for_more_than_the_weights_are_refused(hynt, away, tmp_path, setting, value):
    config = (away / "config.toml").read_text()
    assert re.search(rf"^{setting} = \d+$", config, re.MULTILINE)
    (away / "config.toml").write_text(re.sub(rf"^{setting} = \d+$", f"{setting} = {value}", config, flags=re.MULTILINE))
    sign_run(away)
    said = pulled(hynt, away, tmp_path)
    assert "the settings ask for" in said
    assert "config.toml" in said


def test_settings_that_make_no_model_are_refused(hynt, away, tmp_path):
    config = (away / "config.toml").read_text()
    (away / "config.toml").write_text(config.replace("position_scale = 1.0", "position_scale = 1e308"))
    sign_run(away)
    said = pulled(hynt, away, tmp_path)
    assert "must be at most 1e+38" in said
    assert "config.toml: model.position_scale" in said
    refused = pytest.raises(DataError, match="no model can be made by these settings: 0 rows")
    with refused, no_larger_than(away / "weights.safetensors"):
        raise RuntimeError("0 rows")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused(hynt, away, tmp_path, value):
    tensors = load_file(away / "weights.safetensors")
    tensors["relation"][0, 0] = value
    save_file(tensors, away / "weights.safetensors")
    sign_run(away)
    assert "'relation' holds a value that is not a finite number" in pulled(hynt, away, tmp_path)
    with pytest.raises(DataError, match="not a finite number"):
        load_run(away)


QUESTION = ("--head", "person 0", "--relation", "knows", "--tail", "?")


@pytest.mark.parametrize("words", [("calibrate",), ("evaluate",), ("predict", *QUESTION), ("explain", *QUESTION)])
def test_weights_whose_answers_are_no_numbers_are_found_before_anything_is_fitted(hynt, away, words):
    tensors = load_file(away / "weights.safetensors")
    save_file({name: tensor * 1e30 for name, tensor in tensors.items()}, away / "weights.safetensors")
    sign_run(away)
    outcome = hynt.fair(words[0], away, *words[1:])
    assert outcome.code  # 2 where the run is what was asked for, 1 in the midst of work
    assert "is not a finite number" in outcome.said
    assert "lower learning rate" in outcome.said


@pytest.mark.parametrize("name", ["scaling.json", "environment.json", "config.toml", "calibration.json"])
@pytest.mark.parametrize("kind", ["deep", "list", "binary", "large"])
def test_a_file_that_only_looks_like_json_is_refused(hynt, away, tmp_path, name, kind):
    content = {
        "deep": b"[" * 100_000 if name == "config.toml" else b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        "list": b"[1, 2, 3]",
        "binary": b"\xff\xfe\x00\x01",
        "large": b"# " + b"x" * 20_000_000 if name == "config.toml" else b'{"a": "' + b"x" * 20_000_000 + b'"}',
    }[kind]
    (away / name).write_bytes(content)
    if name == "calibration.json":
        listed = json.loads((away / "hynt-run.json").read_bytes())
        listed["files"][name] = ""
        (away / "hynt-run.json").write_text(json.dumps(listed))
    sign_run(away)
    outcome = hynt.fair("pull", away, tmp_path / "pulled")
    assert outcome.code == 1
    assert name in outcome.said


@pytest.mark.parametrize(
    "changes",
    [
        {"graph": {"path": 5, "fingerprints": {}, "name": "x"}},
        {"graph": {"path": "graph", "fingerprints": [], "name": "x"}},
        {"graph": {"path": "gr\0aph", "fingerprints": {}, "name": "x"}},
        {"graph": {"path": "graph", "fingerprints": {"entities": 1}, "name": "x"}},
        {"graph": []},
        {"files": []},
        {"files": {"weights.safetensors": 5}},
        {"model_name": 7},
        {"training": "long"},
        {"training": {"weights_of_epoch": "x"}},
        {"training": {"weights_of_epoch": 10**400}},
        {"training": {"seconds": "long"}},
        {"training": {"seconds": float("nan")}},
        {"training": {"best": {"epoch": 1, "metric": 5, "value": 0.5}}},
        {"training": {"best": {"epoch": 1, "metric": "mrr", "value": [0.5]}}},
        {"training": {"best_of_tasks": {"link": 5}}},
    ],
    ids=lambda changes: str(changes)[:60],
)
def test_a_manifest_of_other_kinds_is_refused(hynt, away, tmp_path, changes):
    sign_run(away, **changes)
    assert "the manifest is not that of a run" in pulled(hynt, away, tmp_path) or "files" in changes


@pytest.mark.parametrize("said", [5, {"link": 5}, {"link": {"all": {"mrr": "x"}}}, {"link": {"all": {"mrr": 10**400}}}])
def test_figures_that_are_none_are_on_no_card(hynt, away, tmp_path, said):
    epoch = json.loads((away / "manifest.json").read_bytes())["training"]["weights_of_epoch"]
    with (away / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"phase": "x", "epoch": epoch, "validation": said}) + "\n")
    outcome = hynt.fair("push", away, tmp_path / "given")
    assert outcome.code == 2
    assert "the training record is damaged" in outcome.said


@pytest.mark.parametrize("entry", [5, None, [], {"offset": 10**400, "width": 1}, {"offset": "0", "width": 1}])
def test_scales_that_are_none_are_refused(hynt, away, tmp_path, entry):
    scales = json.loads((away / "scaling.json").read_bytes())
    scales[next(iter(scales))] = entry
    (away / "scaling.json").write_text(json.dumps(scales))
    sign_run(away)
    assert "expected finite numbers" in pulled(hynt, away, tmp_path)


def test_a_model_of_any_size_is_built_when_its_weights_are_there(away):
    """The bounds are those of the file: a model that fits its weights is never refused."""
    loaded = load_run(away)
    assert all(torch.isfinite(value).all() for value in loaded.model.state_dict().values())


@pytest.mark.parametrize(
    "changes", [{"name": 5}, {"counts": []}, {"licence": None}, {"display_units": {"a": 1}}], ids=str
)
def test_a_graphs_manifest_of_other_kinds_is_refused(hynt, away, changes):
    from tests.attacks.forging import sign_graph

    path = away / "graph" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | changes))
    sign_graph(away / "graph")
    outcome = hynt.fair("data", "stats", away / "graph")
    assert outcome.code == 1
    assert "the manifest is not that of a graph" in outcome.said


@pytest.mark.parametrize("name", ["manifest.json", "train.parquet"])
def test_a_pipe_in_a_graph_keeps_nobody_waiting(hynt, away, name):
    import os

    (away / "graph" / name).unlink()
    os.mkfifo(away / "graph" / name)
    outcome = hynt.fair("data", "stats", away / "graph")
    assert outcome.code in (1, 2)


def test_half_a_character_in_a_question_is_no_name(hynt, away):
    asked = ("--head", "person 0", "--relation", "knows", "--tail", "?")
    outcome = hynt.fair("predict", away, *asked, "--qualifier=\ud800=2000")
    assert outcome.code == 2


def test_a_link_in_a_run_that_was_given_away_is_refused(hynt, away, tmp_path):
    (away / "scaling.json").rename(tmp_path / "elsewhere.json")
    (away / "scaling.json").symlink_to(tmp_path / "elsewhere.json")
    outcome = hynt.fair("pull", away, tmp_path / "pulled")
    assert outcome.code == 1
    assert "this is a link, or no file at all" in outcome.said


@pytest.mark.parametrize("verb", ["evaluate", "report"])
@pytest.mark.parametrize("count", ["often", {"a": 1}, None, 1.5, -1, float("nan")], ids=str)
def test_counts_of_readings_that_are_none_are_refused(hynt, away, tmp_path, verb, count):
    write_index(away / "reads.json", {"valid": 0, "test": count})
    sign_run(away)
    outcome = hynt.fair(verb, away, *(["--out", tmp_path / "report.html"] if verb == "report" else []))
    assert outcome.code
    assert "reads.json" in outcome.said


@pytest.mark.parametrize(
    "changes",
    [{"epoch": "x"}, {"epoch": 10**400}, {"loss": 5}, {"loss": {"link": "x"}}, {"loss": {"link": [1]}}],
    ids=str,
)
def test_a_record_that_no_training_wrote_is_refused_by_a_report(hynt, away, tmp_path, changes):
    line = {"phase": "masked facts", "epoch": 1, "loss": {"link": 1.0}, **changes}
    with (away / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    outcome = hynt.fair("report", away, "--out", tmp_path / "report.html")
    assert outcome.code == 2
    assert "the training record is damaged" in outcome.said


@pytest.mark.parametrize("part", ["evaluation", "intervals"])
def test_kept_figures_that_nobody_measured_are_refused(hynt, away, tmp_path, part):
    assert hynt.fair("report", away, "--out", tmp_path / "report.html").code == 0
    kept = away / "measurements-test.json"
    write_index(kept, json.loads(kept.read_bytes()) | {part: ["anything"]})
    outcome = hynt.fair("report", away, "--out", tmp_path / "report.html")
    assert outcome.code
    assert "hynt report RUN --again" in outcome.said
    assert measured_of(away)[0] is None
    assert hynt.fair("report", away, "--again", "--out", tmp_path / "report.html").code == 0
    assert measured_of(away)[0] is not None


@pytest.mark.parametrize(
    "words",
    [
        ("train", "world"),
        ("train", "world", "--set"),
        ("data", "split", "world"),
        ("data", "import", "x"),
        ("audit", "x"),
    ],
    ids=" ".join,
)
def test_a_seed_that_no_generator_takes_is_refused(hynt, tmp_path, words):
    told = f"seed={2**64}" if words[-1] == "--set" else f"--seed={2**64}"
    outcome = hynt.fair(*words, told, "--out", tmp_path / "out")
    assert outcome.code == 2
    assert f"{2**63 - 1}" in outcome.said
