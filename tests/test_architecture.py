"""Dependencies point one way, files stay short, and the graph part knows no torch: held for every source file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

SOURCE = ROOT / "src" / "hynt"
FILES = sorted(SOURCE.rglob("*.py"))

# A room imports from rooms of its own level or below. Files outside any room (errors, config, registry) are below all.
LEVELS = {
    "config": 0,
    "graph": 1,
    "formats": 2,
    "creation": 2,
    "batches": 2,
    "world": 2,
    "kernels": 3,
    "objectives": 4,
    "models": 5,
    "evaluation": 6,
    "distributed": 6,
    "runs": 7,
    "training": 8,
    "calibration": 8,
    "asking": 9,
    "completion": 10,
    "auditing": 10,
    "trends": 10,
    "explanation": 10,
    "sweeping": 10,
    "tracking": 10,
    "sharing": 10,
    "exporting": 10,
    "reporting": 11,
    "comparison": 11,
    "front": 12,
    "service": 12,
    "cli": 13,
}
WITHOUT_TORCH = ("config", "graph", "formats", "creation", "world")
DOORS = ("__init__.py", "__main__.py")
"""The package's own entry files open every room."""

LONGEST_FILE = 450
FEWEST_WORDS = 5
TELLING = re.compile(r"[`(\[{=]|[^\x00-\x7f]")
"""What lets a shorter docstring say enough: code, a shape or a formula."""

VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}


def room_of(path: Path) -> str | None:
    """The folder, or the one file that is a room of its own; None for what stands below all rooms."""
    first, *rest = path.relative_to(SOURCE).with_suffix("").parts
    return first if rest or first in LEVELS else None


def imported(path: Path) -> Iterator[str]:
    """Every module a file imports, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_source_file_keeps_to_its_room(path):
    room = room_of(path)
    if room is None and path.name in DOORS:
        return
    assert room is None or room in LEVELS, f"{room} is a new room: give it a level"
    level = 0 if room is None else LEVELS[room]
    for module in imported(path):
        parts = module.split(".")
        assert not (parts[0] == "torch" and (room is None or room in WITHOUT_TORCH)), f"{room} must not need torch"
        if parts[0] == "hynt" and len(parts) > 1 and parts[1] in LEVELS:
            assert LEVELS[parts[1]] <= level, f"{path.name} in {room} imports {module}, which stands above it"


def empty_words(source: str) -> list[str]:
    """The docstrings of a file that are too short to tell a reader anything."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [ast.get_docstring(node) for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    return [text for text in found if text and len(text.split()) < FEWEST_WORDS and not TELLING.search(text)]


def test_a_docstring_says_something_or_is_left_out():
    for path in FILES:
        said = empty_words(path.read_text(encoding="utf-8"))
        assert not said, f"{path.relative_to(SOURCE)}: say more than {said}, or leave it out"


@pytest.mark.parametrize("text", ["The whole page.", "For JSON.", "One kind of dump."])
def test_words_that_say_nothing_are_found(text):
    assert empty_words(f'def made():\n    """{text}"""\n') == [text]
    assert empty_words(f'class Made:\n    """{text}"""\n') == [text]


@pytest.mark.parametrize(
    "text", ["(rows,) scaled numbers.", "e ∘ r.", "See `Run.predict`.", "How often each relation occurs."]
)
def test_shapes_and_formulas_say_enough(text):
    assert not empty_words(f'def made():\n    """{text}"""\n')


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks", "tools"])
def test_files_are_short_and_well_named(folder):
    for path in (ROOT / folder).rglob("*.py"):
        assert path.stem not in VAGUE_NAMES, f"{path}: name the file after what it does"
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines <= LONGEST_FILE, f"{path} has {lines} lines: split it by idea"


def test_a_class_name_means_one_thing():
    found: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(path.relative_to(SOURCE).as_posix())
    assert not {name: places for name, places in found.items() if len(places) > 1}


def test_no_modules_import_each_other_in_a_circle():
    """Imports inside functions are left out: they are how a module reaches for another only when it is called."""
    modules = {path.relative_to(SOURCE.parent).with_suffix("").as_posix().replace("/", "."): path for path in FILES}
    needs = {name: {one for one in _loaded(path) if one in modules} for name, path in modules.items()}
    while ready := {name for name, others in needs.items() if not others}:
        needs = {name: others - ready for name, others in needs.items() if name not in ready}
    assert not needs, f"among these is a circle: {', '.join(sorted(needs))}"


def _loaded(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
