"""What docs/how-to/creating-graphs.md says is so: fields, and commands that can be given."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from hynt.cli.application import run
from tests.conftest import ROOT
from tests.creation import sample_dump
from tests.creation.sources.test_freebase import TRIPLES
from tests.creation.sources.wikidata_lines import dump
from tests.documented import meanings

PAGE = (ROOT / "docs" / "how-to" / "creating-graphs.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ (hynt create .*)$", PAGE, flags=re.MULTILINE)


def test_fields_are_the_documented_ones(tmp_path, capsys):
    documented = set(meanings("create"))
    (tmp_path / "dump.json").write_bytes(dump(sample_dump.lines()))
    (tmp_path / "dump.nt").write_text("\n".join(TRIPLES), encoding="utf-8")
    told = set()
    for source, name in (("wikidata", "dump.json"), ("freebase", "dump.nt")):
        out = tmp_path / source
        assert (
            run(["create", source, str(tmp_path / name), "--all", "--out", str(out), "--json", "--workers", "1"]) == 0
        )
        told |= set(json.loads(capsys.readouterr().out))
    assert told <= documented
    assert documented - told == {"outliers", "across_splits"}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_can_be_given(command, tmp_path, monkeypatch, capsys):
    """Each is understood, and fails only because the dump is not there."""
    monkeypatch.chdir(tmp_path)
    for name in re.findall(r"(?:--entities|--mapping) (\S+)", command):
        (tmp_path / name).write_text("m.1\tm.1\n", encoding="utf-8")
    assert run(shlex.split(command)[1:]) == 1
    assert "cannot be read: no such file or directory." in capsys.readouterr().err


def test_the_account_on_the_page_is_the_samples(tmp_path, capsys):
    (tmp_path / "dump.json").write_bytes(dump(sample_dump.lines()))
    assert run(["create", "wikidata", str(tmp_path / "dump.json"), "--all", "--out", str(tmp_path / "graph")]) == 0
    told = capsys.readouterr().out
    lines, facts = re.findall(r"^(?:lines|facts): .*$", PAGE, flags=re.MULTILINE)
    assert lines in told
    assert facts.removesuffix(" + …") in told
