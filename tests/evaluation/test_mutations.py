"""Wrong ranks, filters and keys must turn the oracle's test red: each mutant changes one expression of the source."""

from __future__ import annotations

import sys

import pytest

from tests.evaluation import test_ranks
from tests.mutants import mutant_of

MUTANTS = [
    ("evaluation/tiles.py", "scores > target[:, None]", "scores < target[:, None]"),
    ("evaluation/tiles.py", "scores > target[:, None]", "scores >= target[:, None]"),
    ("evaluation/tiles.py", "Tally(self.better, self.ties - 1,", "Tally(self.better, self.ties,"),
    ("evaluation/tiles.py", "(value > target[row])).long(), alpha=-1", "(value > target[row])).long()"),
    ("evaluation/tiles.py", "(inside & (value == target[row])).long(), alpha=-1", "(inside & (value < 0)).long()"),
    ("evaluation/tiles.py", " & (candidate != answer[row])", ""),
    ("evaluation/tiles.py", "range(0, count, chunk)", "range(0, count - 1, chunk)"),
    ("evaluation/tiles.py", "(candidate >= first) & (candidate < end)", "(candidate > first) & (candidate < end)"),
    ("evaluation/tiles.py", "right=True", "right=False"),
    ("evaluation/tiles.py", "+ flat - before]", "+ flat]"),
    ("evaluation/metrics.py", "1.0 + better + half", "better + half"),
    ("evaluation/metrics.py", "ties // 2 if", "(ties + 1) // 2 if"),
    ("graph/content_hash.py", "[table.qualifier_owner()] - pair", "[table.qualifier_owner()]"),
    ("graph/content_hash.py", "_triplet(blank, relation, tail) + pairs", "_triplet(blank, relation, tail)"),
    ("graph/content_hash.py", "_triplet(head, relation, blank) + pairs", "_triplet(head, relation, tail) + pairs"),
    ("graph/content_hash.py", "rest + _pair(qualifier, blank)", "rest + _pair(qualifier, value)"),
    ("graph/content_hash.py", "lanes[is_number] = number_hashes(number[is_number])", "pass"),
    ("graph/known_answers.py", "offsets[at + 1], 0) - starts", "offsets[at + 1], 0) - starts - 1"),
    ("graph/known_answers.py", "begins(high, low, answers)", "begins(high, low)"),
]

USERS = {
    "evaluation/tiles.py": {"tally": [test_ranks], "KnownSlots": [test_ranks]},
    "evaluation/metrics.py": {"ranks": [test_ranks]},
    "graph/content_hash.py": {"question_keys": [test_ranks, sys.modules["hynt.graph.known_answers"]]},
    "graph/known_answers.py": {"KnownAnswers": [test_ranks]},
}


def agrees() -> bool:
    """Whether ranks equal the oracle on two hundred graphs; a crash is a disagreement too."""
    try:
        for seed in range(200):
            chunk = None if seed % 3 else 1 + seed % 5
            got, expected = test_ranks.ranked_graph(seed, chunk, ties=("realistic", "hynt")[seed % 2])
            if got != expected:
                return False
    except (AssertionError, IndexError, RuntimeError, ValueError):
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("path, right, wrong", MUTANTS)
def test_a_mutant_is_caught(path, right, wrong, tmp_path, monkeypatch):
    mutant = mutant_of(path, right, wrong, tmp_path, monkeypatch)
    for name, modules in USERS[path].items():
        for module in modules:
            monkeypatch.setattr(module, name, getattr(mutant, name))
    assert not agrees()


@pytest.mark.slow
def test_the_source_itself_agrees():
    assert agrees()
