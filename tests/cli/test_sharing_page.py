"""The page on sharing: its commands run. Its Python is in tests/exporting."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "how-to" / "sharing-runs.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(line.removeprefix("$ "))
    for block in re.findall(r"```console\n(.*?)```", PAGE, flags=re.DOTALL)
    for line in block.splitlines()
]


@pytest.mark.slow  # it exports a model, as tests/exporting does
def test_the_page_is_so(page_folder, hynt, monkeypatch):
    monkeypatch.chdir(page_folder)
    ours = [command for command in COMMANDS if command[0] == "hynt"]
    assert [command[1] for command in ours] == ["train", "push", "pull", "export"]
    for command in ours:
        done = hynt(*command[1:])
        assert done.code == 0, done.err
    assert list((page_folder / "runs" / "tracking" / "tensorboard").rglob("events.*"))
    assert (page_folder / "runs" / "pulled" / "weights.safetensors").exists()
    assert (page_folder / "model.onnx").exists()


def test_an_existing_file_is_not_replaced_unasked(page_folder, hynt, tmp_path):
    (tmp_path / "model.onnx").write_text("mine")
    done = hynt("export", page_folder / "runs" / "first", "--out", tmp_path / "model.onnx")
    assert done.code == 2
    assert "exists already" in done.err
    assert hynt("export", page_folder / "runs" / "first", "--out", tmp_path).code == 2
    assert hynt("export", tmp_path, "--out", tmp_path / "new.onnx").code == 2
    assert (tmp_path / "model.onnx").read_text() == "mine"
