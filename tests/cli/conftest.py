"""Running commands as a user does, and a small source to run them on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hynt.cli.application import run


class Outcome(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object on standard output; fails when there is anything else."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        assert self.out.count("\n") == 1
        return found


Hynt = Callable[..., Outcome]


@pytest.fixture
def hynt(capfd: pytest.CaptureFixture[str]) -> Hynt:
    """Runs one command line in this process. Whatever happens there is no traceback."""

    def command(*arguments: object) -> Outcome:
        code = run([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err
        return Outcome(code, out, err)

    return command


FACTS = [
    {"head": "Q17", "relation": "P36", "tail": "Q1490"},
    {
        "head": "Q17",
        "relation": "P2250",
        "tail": {"number": 88.2, "unit": "year"},
        "qualifiers": [["P585", {"date": "2024"}], ["P21", "Q6581072"]],
    },
    {
        "head": "Q17",
        "relation": "P2250",
        "tail": {"number": 82.1, "unit": "year"},
        "qualifiers": [["P585", {"date": "2024"}], ["P21", "Q6581097"]],
    },
    {"head": "Q42", "relation": "P2067", "tail": {"number": 176.4, "unit": "lb"}},
    {"head": "Q42", "relation": "P569", "tail": {"date": "1952-03-11"}},
    {"head": "Q1490", "relation": "P17", "tail": "Q17"},
]

LABELS = {
    "Q17": "Japan",
    "Q1490": "Tokyo",
    "Q42": "Douglas Adams",
    "Q6581072": "female",
    "Q6581097": "male",
    "P36": "capital",
    "P2250": "life expectancy",
    "P585": "point in time",
    "P21": "sex",
    "P2067": "mass",
    "P569": "date of birth",
    "P17": "country",
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with a JSON Lines file and two files of names."""
    folder = tmp_path / "source"
    folder.mkdir()
    lines = [json.dumps(fact) for fact in FACTS]
    (folder / "facts.jsonl").write_text("\n".join([*lines, lines[0]]) + "\n", encoding="utf-8")
    for kind, letter in (("entities", "Q"), ("relations", "P")):
        rows = [f"{name}\t{label}\n" for name, label in LABELS.items() if name.startswith(letter)]
        (folder.parent / f"{kind}.tsv").write_text("".join(rows), encoding="utf-8")
    return folder


@pytest.fixture
def graph(source: Path, hynt: Hynt) -> Path:
    """The source as a saved graph with names."""
    folder = source.parent / "graph"
    names = ("--entity-labels", source.parent / "entities.tsv", "--relation-labels", source.parent / "relations.tsv")
    done = hynt("data", "import", source, "--format", "jsonl", "--out", folder, *names, "--licence", "CC0-1.0")
    assert done.code == 0, done.err
    return folder


@pytest.fixture(scope="module")
def page_folder(world_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a page's commands run: it has runs/first, of `world`. The pages' numbers are those of a longer one."""
    place = tmp_path_factory.mktemp("page")
    shutil.copytree(world_run, place / "runs" / "first")
    return place


@pytest.fixture(scope="session")
def town_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the graph of towns; nobody writes to it."""
    import torch

    from hynt.training.run import start, train
    from tests.town_graph import town_graph
    from tests.training.small_graph import tiny_settings

    torch.set_num_threads(1)
    cpu = torch.device("cpu")
    return train(start(town_graph(), tiny_settings(), tmp_path_factory.mktemp("towns") / "run", cpu), cpu).path


def leftovers(folder: Path) -> list[str]:
    """Half-written things: there must never be any."""
    return [path.name for path in folder.rglob("*") if ".partial" in path.name or ".old-" in path.name]
