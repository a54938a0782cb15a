"""Commands of raw files: their programs are there, and take these options today."""

from __future__ import annotations

import argparse
import re
import runpy
import shlex
import sys

import pytest
import typer

from benchmarks.device import Job
from benchmarks.reproduce import work_list
from benchmarks.result_file import RAW, read_results
from hynt.cli.application import app
from hynt.training.resolve_settings import PRESETS
from tests.conftest import ROOT

PAST = {"benchmarks.ablations"}
"""Programs that are gone; the note of such a row names what makes it today."""


class Parsed(BaseException):
    """A command line was understood."""


@pytest.fixture
def understood(monkeypatch):
    original = argparse.ArgumentParser.parse_args

    def stop(self, args=None, namespace=None):
        raise Parsed(original(self, args, namespace))

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)

    def asked(words):
        if words[0] == "hynt":
            command, context, rest = typer.main.get_command(app), None, words[1:]
            while hasattr(command, "get_command"):
                command, name, *rest = command.get_command(context, rest[0]), *rest
            command.make_context(name, list(rest))
            return
        module, arguments = (words[2], words[3:]) if words[1] == "-m" else (words[1][:-3].replace("/", "."), words[2:])
        place = ROOT / module.replace(".", "/")
        if module in PAST:
            assert not place.with_suffix(".py").exists()
            return
        monkeypatch.setattr(sys, "argv", [module, *arguments])
        with pytest.raises(Parsed) as given:
            runpy.run_path(str(place / "__main__.py" if place.is_dir() else f"{place}.py"), run_name="__main__")
        if module == "benchmarks.device":
            assert [Job(text) for text in given.value.args[0].jobs]
        elif module == "benchmarks.reproduce":
            assert work_list(given.value.args[0])

    return asked


def every_row():
    return [(path.name, row) for path in sorted(RAW.glob("*.json")) for row in read_results(path).rows]


def test_every_command_can_be_given(understood, capsys):
    found = {}
    for file, row in every_row():
        for command in row.commands:
            for part in re.split(r"; | && ", command):
                options = tuple(
                    re.findall(r"(?:^| )(-m \S+|--models \S+|--?[a-z][\w-]*|\w+\.py|[a-z]+=|hynt \w+ \w*)", part)
                )
                found.setdefault(options, (part, f"{file}: {row.name}"))
    assert len(found) > 50
    wrong = []
    for part, where in found.values():
        try:
            understood(shlex.split(part))
        except (SystemExit, Exception) as problem:  # noqa: BLE001 - whatever stops it is told with its row
            wrong.append(f"{where}: {part}: {problem or capsys.readouterr().err.splitlines()[-1]}")
    assert wrong == [], "\n".join(wrong)


def test_presets_of_rows_exist():
    named = {row.preset for _, row in every_row() if row.preset}
    assert len(named) > 20
    assert [name for name in sorted(named) if name not in PRESETS] == []
