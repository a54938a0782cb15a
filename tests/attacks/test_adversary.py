"""Whatever a file, a setting or a question holds: exit code 0, 1 or 2, a clear word, and bounded memory."""

from __future__ import annotations

import shutil

import pytest

from hynt.graph.storage import save_graph
from tests.attacks.adversary import Originals, case
from tests.training.small_graph import small_graph

QUICK, SLOW, AT_ONCE = 200, 20_000, 500


@pytest.fixture(scope="module")
def originals(tmp_path_factory, given_away):
    folder = tmp_path_factory.mktemp("adversary")
    save_graph(small_graph(), folder / "graph")
    return Originals(folder / "graph", given_away)


def attack(hynt, originals, tmp_path, seeds) -> None:
    for seed in seeds:
        place = tmp_path / str(seed)
        place.mkdir()
        try:
            hynt.fair(*case(seed, place, originals))
        except AssertionError as problem:
            raise AssertionError(f"seed {seed}: {problem}") from None
        assert not list(place.rglob(".partial-*")), f"seed {seed} left something half-written"
        shutil.rmtree(place)


def test_two_hundred_attacks(hynt, originals, tmp_path):
    attack(hynt, originals, tmp_path, range(QUICK))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(QUICK, SLOW, AT_ONCE))
def test_many_attacks(hynt, originals, tmp_path, start):
    attack(hynt, originals, tmp_path, range(start, start + AT_ONCE))


def test_an_attack_is_a_function_of_its_seed(originals, tmp_path):
    for seed in range(24):
        found = []
        for time in ("one", "two"):
            place = tmp_path / time / str(seed)
            place.mkdir(parents=True)
            command = [word.replace(str(place), "PLACE") for word in case(seed, place, originals)]
            files = sorted(path for path in place.rglob("*") if path.is_file() and not path.is_symlink())
            found.append((command, [(path.name, path.read_bytes()) for path in files]))
        assert found[0] == found[1], seed
