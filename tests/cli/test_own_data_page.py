"""The five-minute guide: its files are written, its commands run, and they print what the page shows; and the home page
goes on with the graph that it leaves.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "start" / "own-data.md").read_text(encoding="utf-8")
HOME = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def test_the_guide_does_what_it_says(tmp_path: Path):
    program = tmp_path / "bin" / "hynt"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hynt "$@"\n')
    program.chmod(0o755)
    folder = tmp_path / "work"
    folder.mkdir()
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    commands = 0
    for language, title, content in BLOCK.findall(PAGE):
        if title:
            (folder / title).write_text(content, encoding="utf-8")
        elif language == "python":
            done = subprocess.run([sys.executable, "-c", content], cwd=folder, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        elif language == "console":
            commands += run_commands(content, folder, environment)
    assert commands == 19
    assert (folder / "japan.png").read_bytes().startswith(b"\x89PNG")
    went_on = re.findall(r"^\$ (hynt (\w+) my-.*)$", HOME, flags=re.MULTILINE)
    assert [verb for _, verb in went_on] == ["train", "predict", "serve"]
    for command, _ in went_on[:2]:
        done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Douglas Adams · mass · ?\n  in the graph, train: 176.4 lb\n")


def run_commands(content: str, folder: Path, environment: dict[str, str]) -> int:
    """Run each `$ command` and compare its output with the lines below it, where `…` stands for anything."""
    steps = re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]
    for step in steps:
        command, _, expected = step.partition("\n")
        done = subprocess.run(
            command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8"
        )
        pattern = re.escape(expected).replace("…", ".*")
        assert re.fullmatch(pattern, done.stdout), f"$ {command}\n{done.stdout}{done.stderr}"
        assert done.returncode == int("what to do" in expected), done.stderr
    return len(steps)
