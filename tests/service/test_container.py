"""The container file is linted everywhere, and built where an engine is there."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT

FILE = ROOT / "Containerfile"


def test_the_linter_finds_nothing():
    linter = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([linter, FILE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_it_runs_as_nobody_special_and_is_looked_after():
    lines = FILE.read_text(encoding="utf-8").split("FROM")[-1].splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER")]
    assert users == ["10001"]
    assert any(line.startswith("HEALTHCHECK") for line in lines)


def test_it_is_made_of_named_files_and_pinned_packages():
    """Nothing else reaches the engine, a token beside the sources least of all; what builds hynt is pinned too."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    copied = {name for line in lines if line.startswith("COPY") for name in line.split()[1:-1]}
    copied = {name for name in copied if not name.startswith(("--", "/"))}
    assert all((ROOT / name).exists() for name in copied)
    let_in = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in let_in
    assert {line[1:] for line in let_in if line.startswith("!")} == copied
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {*project["license-files"], project["readme"]} <= copied
    installed = [line for line in lines if "pip install" in line]
    assert all("-c constraints.txt" in line for line in installed)
    assert "--no-build-isolation" in installed[-1]


def test_its_command_is_one_that_hynt_knows(hynt_serve, tmp_path):
    """As it would start, with a run that is not there: the words are understood, the run is missed."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    command = next(line for line in lines if line.startswith("CMD ["))
    assert command == 'CMD ["/data/run", "--host", "0.0.0.0", "--token-file", "/data/token"]'
    token = tmp_path / "token"
    token.write_text("a" * 32)
    token.chmod(0o600)
    done = hynt_serve(tmp_path / "run", "--host", "0.0.0.0", "--token-file", token)
    assert done.returncode == 2
    assert str(tmp_path / "run") in done.stderr


@pytest.mark.slow
def test_it_builds():
    engine = next((found for name in ("docker", "podman") if (found := shutil.which(name))), None)
    if engine is None or subprocess.run([engine, "info"], capture_output=True, check=False).returncode:
        pytest.skip("no container engine runs here")
    done = subprocess.run([engine, "build", "-f", FILE, ROOT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
