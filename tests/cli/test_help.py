"""Help at 80 columns: whole words, whole option names, types that a reader knows."""

from __future__ import annotations

import re

import pytest
import typer

from hynt.cli.application import VERBS, app, run

DATA = typer.main.get_command(app).get_command(None, "data").commands


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("verb", [*([name] for name in VERBS), *(["data", name] for name in DATA)], ids=" ".join)
def test_nothing_is_cut(verb, capsys):
    assert run([*verb, "--help"]) == 0
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= 80
    assert not re.search(r"<\w+>|list\[|--[a-z-]+…|x>=|<=x|│", told)
    command = typer.main.get_command(app).get_command(None, verb[0])
    command = command.commands[verb[1]] if len(verb) == 2 else command
    for parameter in command.params:
        if parameter.param_type_name == "option":
            words = re.split(r"\s", told)
            assert all(option in words or f"{option}," in words for option in parameter.opts), parameter.opts
    assert "-h, --help" in told


def test_hynt_alone_shows_what_to_type_first(capsys):
    assert run([]) == 2
    told = capsys.readouterr().err
    first = told.split("First steps")[1].split("Commands")[0]
    assert [line.split()[1] for line in first.splitlines() if line.startswith("  hynt ")] == [
        "demo",
        "data",
        "train",
        "predict",
        "serve",
    ]
    assert all(re.search(rf"^  {verb} ", told, re.MULTILINE) for verb in VERBS)


def test_ranges_and_defaults_are_in_words(capsys):
    assert run(["serve", "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "[default: 8000; 0 to 65535]" in told
    assert "[default: 1024; at least 1]" in told
    assert run(["train", "--help"]) == 0
    assert "[default: hynt, or as --minutes suit]" in " ".join(capsys.readouterr().out.split())
