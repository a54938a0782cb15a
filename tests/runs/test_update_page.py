"""What docs/how-to/keeping-up-to-date.md says is so: its files, commands and programs, in their order."""

from __future__ import annotations

import re
import shlex
import shutil

from hynt.cli.application import run as invoke
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "how-to" / "keeping-up-to-date.md").read_text(encoding="utf-8")


def test_the_page(inductive_run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(inductive_run, tmp_path / "runs" / "people")
    files = re.findall(r"`(\w+\.jsonl)`", PAGE)
    names: dict[str, object] = {}
    for kind, block in re.findall(r"```(\w+)\n(.*?)```", PAGE, flags=re.DOTALL):
        if kind == "json":
            (tmp_path / files.pop(0)).write_text(block)
        elif kind == "python":
            exec(compile(block, "page", "exec"), names)
        elif kind == "console":  # what is for a service is tried with one, in tests/service
            for command, shown in re.findall(r"^\$ hynt (.*)\n((?:[^$].*\n)*)", block, flags=re.MULTILINE):
                capsys.readouterr()
                assert invoke(shlex.split(command)) == 0, command
                assert shown in capsys.readouterr().out
    assert not files
    assert '1 ["the town\'s register"]' in capsys.readouterr().out
