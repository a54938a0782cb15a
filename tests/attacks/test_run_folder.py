"""A run with a changed byte is refused before anything of it is used, and the word says which file."""

from __future__ import annotations

import json
import shutil

import pytest
import torch

from hynt.errors import DataError, HyntError, UsageError
from hynt.files import index_text
from hynt.interruption import Stopper
from hynt.runs.checkpoint import Interrupted, Watcher
from hynt.runs.opening import load_run
from hynt.training.run import start, train
from tests.training.small_graph import small_graph, tiny_settings

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    torch.set_num_threads(1)
    return train(start(small_graph(), tiny_settings(), tmp_path_factory.mktemp("runs") / "run", CPU), CPU).path


@pytest.fixture
def run(original, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(original, copy)
    return copy


def refused(run) -> str:
    with pytest.raises(HyntError) as problem:
        load_run(run)
    return str(problem.value)


@pytest.mark.parametrize("name", ["weights.safetensors", "config.toml", "scaling.json", "graph/train.parquet"])
@pytest.mark.parametrize("place", ["first", "middle", "last", "cut", "longer", "empty"])
def test_a_changed_file_is_refused_by_name(run, name, place):
    path = run / name
    content = bytearray(path.read_bytes())
    if place in ("first", "middle", "last"):
        at = {"first": 0, "middle": len(content) // 2, "last": len(content) - 1}[place]
        content[at] ^= 1
    path.write_bytes({"cut": content[:-1], "longer": content + b"\n", "empty": b""}.get(place, content))
    assert name.rpartition("/")[2] in refused(run)


def test_every_byte_of_the_manifest_counts(run):
    path = run / "manifest.json"
    content = path.read_bytes()
    for at in range(0, len(content), 7):
        changed = bytearray(content)
        changed[at] ^= 1
        path.write_bytes(changed)
        try:
            load_run(run)
        except (DataError, UsageError) as problem:
            assert "manifest.json" in str(problem)
        else:
            # White space between the values is not part of what is hashed.
            assert json.loads(changed) == json.loads(content)


def test_a_missing_file_is_named(run):
    (run / "weights.safetensors").unlink()
    assert "weights.safetensors: the file is missing." in refused(run)


def test_a_graph_exchanged_with_its_own_manifest_is_refused(run):
    from hynt.graph.storage import save_graph

    save_graph(small_graph(people=21), run / "graph", overwrite=True)
    assert "not the one this run was made with: entities: changed" in refused(run)


def test_weights_of_another_model_are_refused_though_hashed(run, tmp_path):
    """Whoever makes a new manifest around other tensors still meets the check of names, shapes and types."""
    import hashlib

    from safetensors.torch import load_file, save_file

    tensors = load_file(run / "weights.safetensors")
    for changed, word in (
        ({name: value for name, value in tensors.items() if name != "relation"}, "'relation' is in one of them only"),
        ({**tensors, "relation": tensors["relation"][:, :-1].contiguous()}, "'relation' is"),
        ({**tensors, "relation": tensors["relation"].double()}, "torch.float64"),
    ):
        save_file(changed, run / "weights.safetensors")
        manifest = json.loads((run / "manifest.json").read_bytes())
        manifest.pop("sha256")
        manifest["files"]["weights.safetensors"] = hashlib.sha256(
            (run / "weights.safetensors").read_bytes()
        ).hexdigest()
        (run / "manifest.json").write_text(index_text(manifest))
        assert word in refused(run)


def test_a_pickle_in_place_of_weights_is_never_opened(run):
    import hashlib

    torch.save({"relation": torch.zeros(1)}, run / "weights.safetensors")
    manifest = json.loads((run / "manifest.json").read_bytes())
    manifest.pop("sha256")
    manifest["files"]["weights.safetensors"] = hashlib.sha256((run / "weights.safetensors").read_bytes()).hexdigest()
    (run / "manifest.json").write_text(index_text(manifest))
    assert "the tensors cannot be read" in refused(run)


def test_a_changed_count_of_readings_is_refused(run):
    loaded = load_run(run)
    assert loaded.run.count_read("test") == 1
    assert loaded.run.count_read("test") == 2
    (run / "reads.json").write_text((run / "reads.json").read_text().replace('"test": 2', '"test": 0'))
    with pytest.raises(DataError, match=r"reads\.json: the file was changed"):
        loaded.run.count_read("test")


@pytest.mark.parametrize("name", ["weights.safetensors", "optimiser.safetensors", "progress.json", "manifest.json"])
def test_a_changed_checkpoint_is_passed_over(tmp_path, name):
    folder = start(small_graph(), tiny_settings(), tmp_path / "run", CPU)
    stopper = Stopper()

    class Stop(Watcher):
        def epoch_done(self, record):
            stopper.asked = record.epoch == 1

    with pytest.raises(Interrupted):
        train(folder, CPU, Stop(), stopper)
    (checkpoint,) = folder.checkpoints.iterdir()
    content = bytearray((checkpoint / name).read_bytes())
    content[len(content) // 2] ^= 1
    (checkpoint / name).write_bytes(content)
    assert "this run has no weights yet" in refused(folder.path)


def test_a_newer_schema_is_named(run):
    manifest = json.loads((run / "manifest.json").read_bytes())
    manifest.pop("sha256")
    (run / "manifest.json").write_text(index_text({**manifest, "schema_version": 9}))
    assert "schema version 9; this hynt reads version 1" in refused(run)


def test_a_folder_that_is_no_run_is_named(tmp_path):
    with pytest.raises(UsageError, match="there is no run at"):
        load_run(tmp_path)
