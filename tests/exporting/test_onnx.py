"""The exported model answers as torch does, for any number of rows, and says what it belongs to."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest
import torch

from hynt import exporting
from hynt.batches.buckets import layout_of
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import mask
from hynt.errors import DataError, UsageError
from hynt.exporting import EXPORTABLE, Inputs, ScoringModule, export_onnx
from hynt.front.run import load
from hynt.models.contract import Entities, Relations, ScaledNumber
from hynt.models.registry import MODELS
from hynt.runs.opening import load_run
from hynt.training.run import start, train
from tests.conftest import ROOT
from tests.exporting.conftest import CPU
from tests.training.small_graph import small_graph, tiny_settings


def asked(loaded, split: str, rows: int, capacity: int = 5):
    """Some questions about facts of a split, every component in turn."""
    table = loaded.graph.split(split)
    facts = FactTensors.from_table(table, loaded.graph.vocabulary, loaded.scaling, literals=loaded.literals)
    length = 3 + 2 * facts.qualifier_counts()
    owner = torch.repeat_interleave(torch.arange(len(facts)), length)
    position = torch.cat([torch.arange(int(n)) for n in length])
    assert len(owner) >= rows
    return mask(facts, owner[:rows], position[:rows], layout_of([(rows, capacity)]))[0]


def session_of(file):
    import onnxruntime

    return onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])


def fed(batch) -> dict[str, np.ndarray]:
    return {name: value.numpy() for name, value in Inputs.of(batch)._asdict().items()}


@pytest.mark.parametrize("split, rows", [("valid", 1), ("valid", 2), ("test", 7), ("train", 200)])
def test_any_number_of_rows_has_the_scores_of_torch(exported, split, rows):
    batch = asked(exported.loaded, split, rows)
    entities, relations, numbers = session_of(exported.file).run(None, fed(batch))
    model = exported.loaded.model
    with torch.no_grad():
        question = model.read(batch)
        wanted = [model.score(question, kind).numpy() for kind in (Entities(), Relations(), ScaledNumber())]
    for found, truth in zip((entities, relations, numbers), wanted, strict=True):
        assert found.shape == truth.shape
        np.testing.assert_allclose(found, truth, atol=2e-5)


def test_padding_is_not_read(exported):
    """What stands in qualifiers that are not there changes nothing."""
    given = fed(asked(exported.loaded, "test", 7))
    session = session_of(exported.file)
    before = session.run(None, given)
    absent = ~given["qualifier_present"]
    assert absent.any()
    for name, value in (("qualifier_relation", 1), ("qualifier_entity", 2), ("qualifier_number", 5.0)):
        given[name] = np.where(absent, np.asarray(value, given[name].dtype), given[name])
    for one, other in zip(before, session.run(None, given), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_file_says_what_it_is(exported):
    session = session_of(exported.file)
    about = session.get_modelmeta().custom_metadata_map
    manifest = exported.loaded.run.manifest
    assert about["hynt.entities.sha256"] == manifest["graph"]["fingerprints"]["entities"]
    assert about["hynt.relations.sha256"] == manifest["graph"]["fingerprints"]["relations"]
    assert about["hynt.weights.sha256"] == manifest["files"]["weights.safetensors"]
    assert about["hynt.qualifiers"] == "5"
    assert int(about["hynt.hidden_entity"]) == exported.loaded.model.sizes.entities
    assert "number: tail" in json.loads(about["hynt.answers"])
    assert [one.name for one in session.get_inputs()] == list(Inputs._fields) == exported.report["inputs"]
    rows = {one.shape[0] for one in session.get_inputs()}
    assert len(rows) == 1
    assert isinstance(rows.pop(), str), "the number of rows is open"
    assert exported.report["outputs"] == ["entity_scores", "relation_scores", "number"]
    assert 0 < max(exported.report["largest_difference"].values()) < 1e-4


def test_a_file_that_is_not_torch_s_equal_is_not_kept(exported, tmp_path, monkeypatch):
    """The traced program is changed behind the exporter's back: one weight of one bias."""
    import onnx

    def wrong(scoring, model, questions):
        program = onnx.load(str(exported.file))
        bias = next(one for one in program.graph.initializer if "relation_output.bias" in one.name)
        values = onnx.numpy_helper.to_array(bias).copy()
        values[0] += 0.01
        bias.CopyFrom(onnx.numpy_helper.from_array(values, bias.name))
        return program

    monkeypatch.setattr(exporting, "_traced", wrong)
    with pytest.raises(DataError, match=r"relation_scores of the exported model are up to 0\.01 from torch's"):
        export_onnx(exported.loaded, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("model", ["gran", "hy-transformer", "frequency", "relation-mean", "relation-median"])
def test_the_single_forward_is_the_two_calls(model, tmp_path):
    """Of every model that can be exported, before any exporter comes in."""
    small = {"gran": {"instances": 1}}.get(model, {})
    sizes = {"dimension": 8, "layers": 1, "feedforward": 16} | small if model in ("gran", "hy-transformer") else {}
    settings = tiny_settings(model, schedule={"epochs": 1, "period": 1}, batch_size=32, model=sizes)
    loaded = load_run(train(start(small_graph(), settings, tmp_path / "run", CPU), CPU).path)
    batch = asked(loaded, "valid", 9)
    module = ScoringModule(loaded.model, 5).eval()
    with torch.no_grad():
        found = dict(zip(module.tasks, module(*Inputs.of(batch)), strict=True))
        question = loaded.model.read(batch)
        for task in module.tasks:
            candidates = {0: Entities(), 1: Relations(), 2: ScaledNumber()}[int(task)]
            torch.testing.assert_close(found[task], loaded.model.score(question, candidates), equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gran", "hy-transformer", "frequency", "relation-mean", "relation-median"])
def test_other_models_are_exported_too(model, tmp_path):
    sizes = {"dimension": 8, "layers": 1, "feedforward": 16} if model in ("gran", "hy-transformer") else {}
    settings = tiny_settings(model, schedule={"epochs": 1, "period": 1}, batch_size=32, model=sizes)
    loaded = load_run(train(start(small_graph(), settings, tmp_path / "run", CPU), CPU).path)
    report = export_onnx(loaded, tmp_path / "model.onnx", 2)
    assert report["largest_difference"]
    assert (tmp_path / "model.onnx").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"tied_output": True},
        {"prediction": "linear"},
        {"encoding": "hadamard"},
        {"number_of_hidden_relation": "entity"},
        {"number_bias": False, "encoding_bias": True, "context_position": False},
    ],
)
def test_every_form_of_hynt_is_exported(changes, tmp_path):
    sizes = tiny_settings().model
    own = {name: getattr(sizes, name) for name in ("dimension", "context_heads", "prediction_heads")} | changes
    settings = tiny_settings(schedule={"epochs": 1, "period": 1}, model=own)
    loaded = load_run(train(start(small_graph(), settings, tmp_path / "run", CPU), CPU).path)
    assert max(export_onnx(loaded, tmp_path / "model.onnx")["largest_difference"].values()) < 1e-4


def test_a_model_that_cannot_be_exported_is_refused_by_name(tmp_path):
    assert set(EXPORTABLE) < set(MODELS)
    settings = tiny_settings(
        "nalp", schedule={"epochs": 1, "period": 1}, model={"dimension": 8, "filters": 4, "hidden": 4}
    )
    loaded = load_run(train(start(small_graph(), settings, tmp_path / "run", CPU), CPU).path)
    with pytest.raises(UsageError, match="'nalp' cannot be written as ONNX; these can: hynt, gran"):
        export_onnx(loaded, tmp_path / "model.onnx")


def test_the_example_of_the_page_asks_without_torch(exported):
    page = (ROOT / "docs" / "how-to" / "sharing-runs.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    call = [sys.executable, "-c", "import sys; sys.modules['torch'] = None\n" + example]
    asked = subprocess.run(call, cwd=exported.file.parent, text=True, capture_output=True, check=True)
    question = ("Japan", "life expectancy", "?", [("point in time", "2024")])
    told = load(exported.loaded.run.path, "cpu").predict(question)
    assert float(asked.stdout.removesuffix(" years\n")) == pytest.approx(told[0].value, abs=1e-3)


def test_without_the_libraries_the_word_says_how_to_get_them(exported, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(UsageError, match=r"onnxscript is not installed.*pip install 'hynt\[onnx\]'"):
        export_onnx(exported.loaded, tmp_path / "model.onnx")
