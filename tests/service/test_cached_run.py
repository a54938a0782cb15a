"""`hynt serve world`: a run made on first use, whole or not at all, and found the next time."""

from __future__ import annotations

import pytest

from hynt.errors import DataError
from hynt.service import cached_run
from tests.service.conftest import serving


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "hynt" / "runs"


def trained(out, epochs):
    out.mkdir()
    (out / "manifest.json").write_text(f"{epochs}")


def test_the_name_says_what_it_was_made_of(cache, monkeypatch):
    first = cached_run.world_run_folder()
    assert first.parent == cache
    assert first.name.startswith("world-0.1.0-")
    monkeypatch.setattr(cached_run, "__version__", "9.9.9")
    assert cached_run.world_run_folder().name.startswith("world-9.9.9-")
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert cached_run.cache_folder().is_absolute()


def test_it_is_made_once(cache, monkeypatch):
    made = []
    monkeypatch.setattr(cached_run, "_train", lambda out, epochs: (made.append(out), trained(out, epochs)))
    first = cached_run.world_run()
    assert cached_run.world_run() == first == cached_run.world_run_folder()
    assert len(made) == 1
    assert [path.name for path in cache.iterdir()] == [first.name]
    assert cached_run.world_run(epochs=2) != first


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), DataError("training on world failed with exit code 1.")])
def test_nothing_is_left_when_training_fails(problem, cache, monkeypatch):
    def fails(out, epochs):
        trained(out, epochs)
        raise problem

    monkeypatch.setattr(cached_run, "_train", fails)
    with pytest.raises(type(problem)):
        cached_run.world_run()
    assert list(cache.iterdir()) == []


def test_another_process_may_be_quicker(cache, monkeypatch):
    def beaten(out, epochs):
        trained(out, epochs)
        trained(cached_run.world_run_folder(), "theirs")

    monkeypatch.setattr(cached_run, "_train", beaten)
    assert (cached_run.world_run() / "manifest.json").read_text() == "theirs"
    assert len(list(cache.iterdir())) == 1


def test_a_folder_that_cannot_be_made(tmp_path, monkeypatch):
    (tmp_path / "hynt").write_text("a file where a folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(DataError, match="the run cannot be kept") as refused:
        cached_run.world_run()
    assert "XDG_CACHE_HOME=DIR" in refused.value.advice


def test_training_that_fails_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(cached_run, "WORLD", "no-such-graph")
    with pytest.raises(DataError, match="training on no-such-graph failed with exit code 2"):
        cached_run._train(tmp_path / "run", None)


@pytest.mark.slow
def test_world_is_trained_and_served(cache, tmp_path):
    with serving("world", tmp_path / "log") as service:
        found = service.predict(head="Japan", relation="population", tail="?")
        assert found.status == 200
        assert found.json["calibrated"] is True
        assert "Training a small run of the embedded graph, once" in service.log
        assert "epoch 40 of 40" in service.log
    with serving("world", tmp_path / "log") as service:
        assert "Training" not in service.log
