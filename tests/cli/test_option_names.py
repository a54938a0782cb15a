"""Errors name options as they are typed, not as the library calls its arguments."""

from __future__ import annotations

import pytest

ASKED = ("--head", "p1", "--relation", "height", "--tail", "?")
TREND = ("--head", "p1", "--relation", "height", "--out", "trend.csv")
MISSING = ("--missing", "--out", "missing.parquet")

WRONG = [
    (["predict", "RUN", *ASKED, "--level", "0.7"], "--level"),
    (["predict", "RUN", *ASKED[:4]], "--tail"),
    (["predict", "RUN", *ASKED, "--qualifier", "nothing=1"], "relation of --qualifier 1"),
    (["predict", "RUN", *ASKED, "--candidates", "type"], "--candidates"),
    (["predict", "RUN", *ASKED, "--candidates", "level"], "level"),  # a file that is not there
    (["explain", "RUN", *ASKED, "--answer", "p2"], "--answer"),
    (["trends", "RUN", *TREND, "--level", "0.7"], "--level"),
    (["trends", "RUN", *TREND, *["--head", "p1"] * 70], "--head"),
    (["trends", "RUN", *TREND, "--over", "nothing"], "--over"),
    (["trends", "RUN", *TREND, "--points", "1"], "--points"),
    (["complete", "RUN", *MISSING, "--level", "0.7"], "--level"),
    (["complete", "RUN", *MISSING, "--widest", "0"], "--widest"),
    (["complete", "RUN", *MISSING, "--relations", "nothing"], "--relations"),
    (["complete", "RUN", *MISSING, "--without", "tst"], "--without"),
    (["evaluate", "RUN", "--task", "lnk"], "--task"),
    (["evaluate", "RUN", "--split", "tst"], "--split"),
    (["compare", "world", "--out", "out", "--task", "lnk"], "--task"),
    (["compare", "world", "--out", "out", "--models", "hint"], "--models"),
    (["train", "world", "--out", "run", "--set", "model.dimension=7"], "model"),  # the path of the settings
    (["similar", "RUN", "nobody"], "ENTITY"),
    (["data", "show", "world", "nobody"], "NAME"),
]


@pytest.mark.parametrize("words,place", WRONG)
def test_the_place_of_a_wrong_use_is_what_was_typed(town_run, hynt, tmp_path, monkeypatch, words, place):
    monkeypatch.chdir(tmp_path)
    refused = hynt(*[town_run if word == "RUN" else word for word in words], "--json")
    assert refused.code == 2, refused.err
    assert refused.json["error"]["where"] == place
    assert list(tmp_path.iterdir()) == []
