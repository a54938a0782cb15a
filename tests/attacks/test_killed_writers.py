"""Killed at any write, a command leaves the old state or the new one, and nothing that the next one trips on."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from hynt.cli.application import run as hynt
from hynt.runs.opening import load_run
from tests.attacks.dying_hynt import DyingHynt
from tests.attacks.writers import WRITERS, command
from tests.conftest import require

KILLS = 20
TIMED = (".json", ".jsonl", ".html", ".toml", ".md")
"""Of files that say when they were made."""
GOES_ON = {"train", "sweep", "compare"}
"""What they leave is there to go on from: tests/crash is about that."""
COUNTS = {"evaluate"}
"""Its table says how often the split was read."""
THERE = ("exists already", "already exists", "is not empty", "the graph holds this already")


@pytest.fixture(scope="module")
def dying(tmp_path_factory):
    require("a C compiler", shutil.which("cc") is not None, "apt install gcc")
    built = tmp_path_factory.mktemp("dying") / "sudden_death.so"
    source = Path(__file__).with_name("sudden_death.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", built, source, "-ldl"], check=True)
    with DyingHynt(built) as process:
        yield process


def contents(folder: Path) -> dict[str, bytes]:
    """What lies there under names that anybody sees; of files that tell the time, that they are not empty."""
    paths = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    return {
        str(path): (folder / path).read_bytes()[: 1 if path.name.endswith(TIMED) else None]
        for path in paths
        if not any(part.startswith(".") or part.endswith(".work") for part in path.parts)
    }


def hidden(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob(".*"))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("verb", sorted({*WRITERS} - GOES_ON - COUNTS))
def test_a_kill_leaves_the_old_state_or_the_new_one(dying, place, tmp_path, capsys, verb):
    def begun() -> tuple[list[str], Path]:
        out = tmp_path / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        return command(verb, place, out), out

    words, out = begun()
    before = contents(out)
    finished = dying.run(words, out)
    assert finished.code == 0, finished.said
    whole, events, chance = contents(out), finished.events, random.Random(verb)
    few = range(1, events + 1)
    last = [*few][-KILLS // 2 :]  # where things get their names
    for at in sorted({*last, *chance.sample(few, min(len(few), KILLS))}):
        words, out = begun()
        assert dying.run(words, out, at).code == -9
        found = contents(out)
        half = [name for name, content in found.items() if content not in (before.get(name), whole.get(name))]
        made = {Path(name).parts[0] for name in found} - {Path(name).parts[0] for name in before}
        lacking = [name for name in whole if Path(name).parts[0] in made and name not in found]
        assert (half, lacking) == ([], []), at
        load_run(out / "asked")
        resumed = [*words, "--resume"] if any(out.glob(".*.parquet.partial")) else words
        again = dying.run(resumed, out)
        assert again.code == 0 or any(told in again.said for told in THERE), (at, again.said)
        assert contents(out) == whole, at
        assert hynt(["data", "clean", str(out), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["folder"] == str(out)
        assert hidden(out) == [], at
