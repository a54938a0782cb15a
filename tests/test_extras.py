"""Each extra alone: the built wheel beside exactly what the extra declares, and one real command of it.

A clean environment is made without an index: what `pip install 'hynt[extra]'` would bring is linked from this
environment, by the requirements that the wheel and its dependencies declare, and nothing else can be imported.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conftest import ROOT, require
from tests.creation import sample_dump
from tests.creation.sources.wikidata_lines import dump

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

TRAIN = ["train", "graph", "--epochs", "1", "--preset", "hynt-small", "--device", "cpu", "--out", "tracked", "--track"]
COMMANDS = {
    "create": ["create", "wikidata", "dump.json", "--all", "--workers", "1", "--out", "made"],
    "spark": ["create", "wikidata", "dump.json", "--all", "--engine", "spark", "--master", "local[1]", "--out", "made"],
    "rdf": ["data", "import", "facts.ttl", "--format", "rdf", "--out", "made"],
    "plot": ["data", "show", "world", "Japan", "--picture", "japan.png"],
    "sweep": ["sweep", "graph", "--trials", "1", "--epochs", "1", "--device", "cpu", "--out", "swept"],
    "tensorboard": [*TRAIN, "tensorboard"],
    "mlflow": [*TRAIN, "mlflow"],
    "wandb": [*TRAIN, "wandb"],
    "onnx": ["export", "run", "--out", "model.onnx"],
}
STARTED = {"serve": ["serve", "run", "--port", "0"], "mcp": ["mcp", "run"]}
"""Commands that go on until they are ended."""
ASKED_OF_NOBODY = {"hub": ["pull", "hf:nobody/nothing", "pulled"]}
"""Commands that need a server: they must come as far as looking for it."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    target = folder / "installed"
    shutil.unpack_archive(found, target, format="zip")
    return target


def needed(wheel: Path, extra: str) -> set[str]:
    """The names of all distributions that `pip install 'hynt[extra]'` brings beside hynt."""
    (information,) = wheel.glob("*.dist-info")
    waiting: list[tuple[Distribution, str]] = [(Distribution.at(information), extra)]
    seen: set[tuple[str, str]] = set()
    while waiting:
        found, wanted = waiting.pop()
        for text in found.requires or ():
            requirement = Requirement(text)
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": wanted}):
                continue
            name = canonicalize_name(requirement.name)
            for further in {"", *requirement.extras} - {kind for known, kind in seen if known == name}:
                seen.add((name, further))
                waiting.append((Distribution.at(information) if name == "hynt" else distribution(name), further))
    return {name for name, _ in seen} - {"hynt"}


def clean_environment(wheel: Path, extra: str, folder: Path) -> dict[str, str]:
    """Environment variables under which Python finds the wheel and what it needs, and no more (with -S)."""
    site = folder / "site"
    site.mkdir()
    for name in needed(wheel, extra):
        found = distribution(name)
        for top in {path.parts[0] for path in found.files or () if path.parts[0] not in ("..", "__pycache__")}:
            if not (site / top).exists():
                (site / top).symlink_to(str(found.locate_file(top)))
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "JAVA_HOME", "TMPDIR")}
    return {
        **kept,
        "HOME": str(folder),
        "PYTHONPATH": f"{wheel}:{site}",
        "PYSPARK_PYTHON": sys.executable,
        "WANDB_MODE": "offline",
        "HF_ENDPOINT": "http://127.0.0.1:9",
        "OMP_NUM_THREADS": "1",
    }


def hynt(arguments: list[str], cwd: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-S", "-m", "hynt", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=900)


@pytest.fixture(scope="module")
def workplace(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph and a run, made by hynt without any extra."""
    place = tmp_path_factory.mktemp("core")
    environment = clean_environment(wheel, "", place)
    facts = [f"town {n}\tnear\ttown {n % 7}\n" for n in range(40)] + [f"town {n}\theight\t={n}\n" for n in range(40)]
    (place / "facts.tsv").write_text("".join(facts), encoding="utf-8")
    (place / "facts.ttl").write_text("<http://x.org/a> <http://x.org/near> <http://x.org/b> .", encoding="utf-8")
    (place / "dump.json").write_bytes(dump(sample_dump.lines()))
    for arguments in (
        ["data", "import", "facts.tsv", "--format", "tsv", "--out", "graph"],
        ["train", "graph", "--epochs", "1", "--preset", "hynt-small", "--device", "cpu", "--out", "run"],
    ):
        done = hynt(arguments, place, environment)
        assert done.returncode == 0, done.stderr
    return place


@pytest.fixture
def place(workplace: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(workplace, tmp_path / "place", ignore=shutil.ignore_patterns("site")))


def test_every_extra_is_tried(wheel: Path):
    (information,) = wheel.glob("*.dist-info")
    declared = set(Distribution.at(information).metadata.get_all("Provides-Extra") or ())
    assert declared - {"all", "dev"} == {*COMMANDS, *STARTED, *ASKED_OF_NOBODY}


def test_all_brings_what_every_extra_brings(wheel: Path):
    every = set().union(*(needed(wheel, extra) for extra in (*COMMANDS, *STARTED, *ASKED_OF_NOBODY)))
    assert needed(wheel, "all") == every


def test_a_clean_environment_lacks_what_nobody_declared(wheel: Path, place: Path):
    done = hynt(COMMANDS["rdf"], place, clean_environment(wheel, "", place))
    assert done.returncode == 2
    assert "pip install 'hynt[rdf]'" in done.stderr


@pytest.mark.parametrize("extra", [*COMMANDS, *ASKED_OF_NOBODY])
def test_an_extra_alone_is_enough_for_its_command(wheel: Path, place: Path, extra: str):
    if extra == "spark":
        require("Java 17", shutil.which("java") is not None, "apt install openjdk-17-jre-headless")
    done = hynt({**COMMANDS, **ASKED_OF_NOBODY}[extra], place, clean_environment(wheel, extra, place))
    if extra in COMMANDS:
        assert done.returncode == 0, done.stderr
    else:
        assert "Traceback" not in done.stderr
        assert "pip install" not in done.stderr, done.stderr


@pytest.mark.parametrize("extra", STARTED)
def test_an_extra_alone_is_enough_for_its_service(wheel: Path, place: Path, extra: str):
    command = [sys.executable, "-S", "-m", "hynt", *STARTED[extra]]
    environment = clean_environment(wheel, extra, place)
    started = subprocess.Popen(
        command, cwd=place, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        _, err = started.communicate(timeout=40)
        assert started.returncode == 0, err.decode()  # mcp ends with its input
    except subprocess.TimeoutExpired:
        started.send_signal(signal.SIGTERM)
        _, err = started.communicate(timeout=60)
        assert b"Traceback" not in err
        assert b"pip install" not in err
