"""The notebooks run, and show what they are there to show."""

from __future__ import annotations

import json
import re

import pytest

from tools import notebooks

BOOKS = sorted(notebooks.FOLDER.glob("*.ipynb"))


def code_cells(path):
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(path, tmp_path, monkeypatch):
    """With fewer epochs, for the time; the slow test runs them as they are."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for cell in code_cells(path):
        quick = re.sub(r"(epochs(?:=|\": ))\d+", r"\g<1>2", "".join(cell["source"]))
        exec(compile(quick.replace("folds=3", "folds=2"), path.name, "exec"), names)
    assert "graph" in names


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_what_is_kept_is_what_a_reader_wants(path):
    shown = [output for cell in code_cells(path) for output in cell["outputs"]]
    assert sum("text/html" in output.get("data", {}) for output in shown) >= 3  # graphs, runs and answers as tables
    lines = [line for output in shown for line in "".join(output.get("text", "")).splitlines()]
    assert any(line.startswith(("note: training", "fold 1")) for line in lines)
    page = notebooks.page(path.read_text(encoding="utf-8"))
    assert page.startswith("# ")
    assert "\r" not in page
    assert not re.search(r"/(?:tmp|home|root|work)/|Traceback", page)
    assert not re.search(r"<style scoped>|class=.dataframe", page), "data frames look like the other tables"


@pytest.mark.slow
@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_kernel_shows_the_same_things(path):
    """In Jupyter itself: every output is of the kind that is kept, and progress leaves no trace."""
    made = [cell for cell in notebooks.run(path).cells if cell.cell_type == "code"]
    for fresh, kept in zip(made, code_cells(path), strict=True):
        kinds = [sorted(output.get("data", {"stream": None})) for output in fresh.outputs]
        assert kinds == [sorted(output.get("data", {"stream": None})) for output in kept["outputs"]]
        assert "\r" not in "".join(output.get("text", "") for output in fresh.outputs)
