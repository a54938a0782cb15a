"""Wrong copies of a module, for tests that hold other tests to account."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import ROOT


def mutant_of(path: str, right: str, wrong: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module at `path` below src/hynt with one piece of its text exchanged."""
    text = (ROOT / "src" / "hynt" / path).read_text(encoding="utf-8")
    assert right in text, "the source has changed: mend this mutant"
    (folder / "mutant.py").write_text(text.replace(right, wrong), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("mutant", folder / "mutant.py")
    assert spec is not None
    assert spec.loader is not None
    mutant = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mutant", mutant)
    spec.loader.exec_module(mutant)
    return mutant
