"""`hynt push` and `hynt pull` as a person meets them."""

from __future__ import annotations

import pytest
import torch

from hynt.training.run import start, train
from tests.training.small_graph import contents, small_graph, tiny_settings


@pytest.fixture
def run(tmp_path):
    torch.set_num_threads(1)
    cpu = torch.device("cpu")
    return train(start(small_graph(), tiny_settings(), tmp_path / "run", cpu), cpu).path


def test_there_and_back(hynt, run, tmp_path):
    done = hynt("push", run, tmp_path / "given", "--licence", "cc0-1.0")
    assert done.code == 0, done.err
    assert f"next: hynt pull {tmp_path / 'given'} RUN" in done.out.replace("\n", " ")
    (tmp_path / "given" / "run.py").write_text("")
    done = hynt("pull", tmp_path / "given", tmp_path / "back", "--json")
    assert done.code == 0, done.err
    assert done.json["passed_over"] == ["run.py"]
    assert contents(tmp_path / "back") == contents(run)


def test_what_is_wrong_is_told(hynt, run, tmp_path):
    done = hynt("pull", tmp_path / "none", tmp_path / "back")
    assert done.code == 2
    assert "there is no folder" in done.err
    (run / "scaling.json").write_text("{}")
    done = hynt("push", run, tmp_path / "given")
    assert done.code == 2
    assert "the file was changed" in done.err
    done = hynt("push", tmp_path / "none", tmp_path / "given")
    assert done.code == 2
    assert "there is no run" in done.err
