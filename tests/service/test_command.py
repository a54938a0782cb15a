"""`hynt serve` before it serves: what it refuses, and in which words."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hynt.cli.application import run


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["nowhere"], "there is no run at 'nowhere'."),
        (["nowhere", "--token-file", "no-token"], "the token cannot be read: No such file or directory."),
        (["nowhere", "--audit", "no-audit"], "there is no such file."),
        (["nowhere", "--audit", "text"], "this is not the result of an audit."),
        (["nowhere", "--audit", "."], "this is not the result of an audit."),
        (["nowhere", "--audit", "other.parquet"], "this is not the result of an audit."),
        (["nowhere", "--host", "0.0.0.0"], "0.0.0.0 can be reached from other machines, and no token is asked for."),
        (["nowhere", "--host", "no.such.host.invalid"], "cannot listen at no.such.host.invalid port 0"),
    ],
)
def test_wrong_use(arguments, words, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("rank\n1\n")
    pq.write_table(pa.table({"rank": [1]}), tmp_path / "other.parquet")
    assert run(["serve", *arguments, "--port", "0", "--json"]) == 2
    told = capsys.readouterr()
    assert words in told.err
    assert json.loads(told.out)["error"]["exit_code"] == 2


def test_without_the_extra(capsys, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "fastapi" else real(name))
    assert run(["serve", "world"]) == 2
    told = capsys.readouterr().err
    assert "fastapi is not installed." in told
    assert "pip install 'hynt[serve]'" in told


def test_the_front_stays_light():
    code = (
        "import sys, hynt.service.http.server; "
        "print([name for name in ('torch', 'matplotlib', 'pandas', 'polars') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
