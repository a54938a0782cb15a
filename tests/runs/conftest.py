"""Small models train on one thread, and a run that may be updated."""

from __future__ import annotations

import shutil

import pytest

import hynt
from tests.one_thread import one_thread

__all__ = ["one_thread"]


@pytest.fixture
def folder(inductive_run, tmp_path):
    """A copy of a run that follows its graph, for a test to change."""
    return shutil.copytree(inductive_run, tmp_path / "run")


@pytest.fixture
def run(folder):
    return hynt.load(folder, "cpu")
