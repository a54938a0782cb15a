"""The wheel and the sdist, built and used outside the tree: an editable install would hide a missing file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import hynt
from tests.conftest import ROOT


def call(*arguments: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HYNT_DEBUG": "", **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    call("-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT), cwd=folder)
    return folder


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory) -> Path:
    """The wheel's files in a folder of their own. The dependencies are the environment's, the package is not."""
    target = tmp_path_factory.mktemp("installed")
    (wheel,) = built.glob("*.whl")
    call("-m", "pip", "install", "--no-deps", "--no-index", "--quiet", "--target", str(target), str(wheel), cwd=built)
    return target


def shipped_world() -> set[str]:
    """The files of the embedded graph, named from the package up."""
    files = (path for path in (ROOT / "src/hynt/world").rglob("*") if path.is_file())
    return {path.relative_to(ROOT / "src").as_posix() for path in files if "__pycache__" not in path.parts}


def test_wheel_holds_everything_it_needs(built):
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    licences = f"hynt-{hynt.__version__}.dist-info/licenses"
    assert wheel.name == f"hynt-{hynt.__version__}-py3-none-any.whl"
    assert {"hynt/py.typed", "hynt/__main__.py", f"{licences}/LICENSE", f"{licences}/NOTICE"} <= names
    assert "hynt/world/NOTICE" in shipped_world()
    assert shipped_world() <= names
    assert all(name.startswith(("hynt/", f"hynt-{hynt.__version__}.dist-info/")) for name in names)
    assert not [name for name in names if "__pycache__" in name]


def test_sdist_holds_everything_it_needs(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"LICENSE", "NOTICE", "README.md", "CHANGELOG.md", "pyproject.toml", "constraints.txt", "Makefile"}
    assert wanted <= names
    assert {"src/hynt/py.typed", "tests/test_packaging.py", "mkdocs.yml", "docs/index.md"} <= names
    assert {f"src/{name}" for name in shipped_world()} <= names
    assert not [name for name in names if name.startswith(".venv") or "__pycache__" in name]


def test_wheel_runs_outside_the_tree(installed, tmp_path):
    where = call("-c", "import hynt; print(hynt.__file__)", cwd=tmp_path, PYTHONPATH=str(installed)).strip()
    assert Path(where).is_relative_to(installed)
    version = call("-m", "hynt", "--version", cwd=tmp_path, PYTHONPATH=str(installed))
    assert version == f"hynt {hynt.__version__}\n"


def test_wheel_opens_the_embedded_graph(installed, tmp_path):
    told = json.loads(call("-m", "hynt", "data", "stats", "world", "--json", cwd=tmp_path, PYTHONPATH=str(installed)))
    assert isinstance(told, dict)
    assert "error" not in told
    assert told
