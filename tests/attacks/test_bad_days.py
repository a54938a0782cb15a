"""A disk that is slow, a clock that jumps, a model that dies under load: waited for, told, and nothing is lost.

`bad_day.c` is loaded into the process under test, so that whatever writes (Python, Arrow, SQLite) meets it.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hynt.runs.journal import Journal
from hynt.runs.opening import load_run
from tests.attacks.writers import WRITERS, command
from tests.conftest import ROOT, require
from tests.service.asking_http import wait_until
from tests.service.conftest import BEARER, accepting_updates, serving
from tests.service.test_under_load import child_of

pytestmark = pytest.mark.slow
A_YEAR = "31536000"


@pytest.fixture(scope="session")
def library(tmp_path_factory) -> Path:
    require("a C compiler", shutil.which("cc") is not None, "apt install gcc")
    built = tmp_path_factory.mktemp("bad") / "bad_day.so"
    source = Path(__file__).with_name("bad_day.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", built, source, "-ldl"], check=True)
    return built


def bad_day(library: Path, **troubles: object) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "LD_PRELOAD": str(library)} | {
        name: str(value) for name, value in troubles.items()
    }


def started(words: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "hynt", *words]
    return subprocess.Popen(
        argv, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def finished(words: list[str], environment: dict[str, str]) -> None:
    with started(words, environment) as process:
        _, said = process.communicate(timeout=240)
    assert process.returncode == 0, said


def contents(folder: Path) -> dict[str, bytes]:
    """What was written, but for hours and durations."""
    timed = (".json", ".jsonl", ".html", ".db", ".toml", ".md", ".png", ".svg")
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(timed)
    }


@pytest.mark.parametrize("verb", sorted({*WRITERS} - {"sweep", "compare"}))
def test_a_slow_disk_changes_nothing_that_is_written(library, place, tmp_path, verb):
    found = []
    for folder, troubles in (("quick", {}), ("slow", {"SLOW_WRITE": 20, "SLOW_SYNC": 100, "SLOW_READ": 5})):
        (out := tmp_path / folder).mkdir()
        finished(command(verb, place, out), bad_day(library, SLOW_DISK=out, **troubles))
        assert not list(out.rglob(".partial-*"))
        found.append(contents(out))
    assert found[0].keys() == found[1].keys()
    assert {name for name in found[0] if found[0][name] != found[1][name]} == set()


@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_ctrl_c_on_a_slow_disk_is_heard_and_nothing_is_lost(library, place, tmp_path, seconds):
    words = [*command("train", place, tmp_path), "--epochs", "2000"]
    environment = bad_day(library, SLOW_DISK=tmp_path, SLOW_WRITE=50, SLOW_SYNC=200)
    with started(words, environment) as process:
        lines = iter(process.stderr or ())
        assert any(line.startswith("epoch") for line in lines)
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        heard = next(line for line in lines if line.startswith("stopping: what is done is being saved."))
        assert time.monotonic() - began < 5.0, heard
        assert ", and saved." in "".join(lines)
    assert process.returncode == 130
    assert not list(tmp_path.rglob(".partial-*"))
    with started([*words, "--resume"], bad_day(library)) as process:
        lines = iter(process.stderr or ())
        assert any(line.startswith("epoch") for line in lines)
        process.send_signal(signal.SIGINT)
        assert "was stopped in epoch" in "".join(lines)


def test_reading_from_a_slow_disk_shows_how_it_goes_and_can_be_stopped(library, tmp_path):
    (tmp_path / "disk").mkdir()
    with (tmp_path / "disk" / "many.jsonl").open("w") as file:
        for at in range(200_000):
            file.write(f'{{"head": "p{at % 5000}", "relation": "knows", "tail": "p{at % 4999}"}}\n')
    words = ["data", "import", str(tmp_path / "disk" / "many.jsonl"), "--out", str(tmp_path / "graph")]
    with started(words, bad_day(library, SLOW_DISK=tmp_path / "disk", SLOW_READ=2_000)) as process:
        lines = iter(process.stderr or ())
        assert next(lines).startswith("reading: ")
        assert any(line.startswith("reading: ") and " left" in line for line in lines)  # the first may be too early
        process.send_signal(signal.SIGINT)
        said = "".join(lines)
    assert (process.returncode, said.splitlines()[-1]) == (130, "interrupted: nothing half-written is left")
    assert [path.name for path in tmp_path.iterdir()] == ["disk"]


@pytest.mark.parametrize("words", [("data", "check"), ("data", "import", "--out", "OUT")])
def test_a_pipe_as_a_source_keeps_nobody_waiting(hynt, tmp_path, words):
    os.mkfifo(tmp_path / "facts.jsonl")
    words = tuple(word.replace("OUT", str(tmp_path / "graph")) for word in words)
    outcome = hynt.fair(*words[:2], tmp_path / "facts.jsonl", "--format", "jsonl", *words[2:])
    assert outcome.code == 1
    assert "is not a regular file" in outcome.said


def add(site, head: str):
    fact = {"head": head, "relation": "knows", "tail": "person 1"}
    headers = {"Content-Type": "application/json", **BEARER}
    return site.send("POST", "/v1/facts", json.dumps({"facts": [fact]}), headers, timeout=120)


def test_a_service_with_a_slow_journal_keeps_answering(library, inductive_run, tmp_path, monkeypatch):
    folder, options = accepting_updates(inductive_run, tmp_path)
    for name, value in bad_day(library, SLOW_DISK=folder, SLOW_WRITE=500, SLOW_SYNC=3_000).items():
        monkeypatch.setenv(name, value)
    with serving(folder, tmp_path / "log", *options) as site, ThreadPoolExecutor(2) as writers:
        began = time.monotonic()
        changes = [writers.submit(add, site, name) for name in ("Zoe", "Ada")]
        waited = []
        while not all(change.done() for change in changes):
            asked = time.monotonic()
            question = {"head": "person 1", "relation": "born in", "tail": "?"}
            assert site.get("/health").status == 200
            assert site.get("/v1/entities?query=person", **BEARER).status == 200
            assert site.post("/v1/predict", question, **BEARER).status == 200
            waited.append(time.monotonic() - asked)
        assert time.monotonic() - began > 6.0  # it was slow indeed
        assert len(waited) > 10
        assert max(waited) < 3.0  # nobody waited for the disk
        assert sorted(change.result().json["version"] for change in changes) == [1, 2]
        third = writers.submit(add, site, "Eve")
        time.sleep(1.0)  # it is being written
        code = site.stop()
    assert code == 0
    answered = third.exception() is None and third.result().status == 200
    assert Journal(folder).latest() in ((3,) if answered else (2, 3))
    assert load_run(folder)


@pytest.mark.parametrize("verb", ["train", "audit", "complete", "import", "update", "calibrate"])
def test_a_clock_that_jumps_years_changes_nothing(library, place, tmp_path, verb):
    found = []
    for folder, troubles in (("steady", {}), ("jumping", {"CLOCK_JUMP": A_YEAR})):
        (out := tmp_path / folder).mkdir()
        finished(command(verb, place, out), bad_day(library, **troubles))
        found.append(contents(out))
    assert found[0] == found[1]


def test_a_service_whose_clock_jumps_answers_and_follows(library, inductive_run, tmp_path, monkeypatch):
    folder, options = accepting_updates(inductive_run, tmp_path)
    for name, value in bad_day(library, CLOCK_JUMP=A_YEAR).items():
        monkeypatch.setenv(name, value)
    with serving(folder, tmp_path / "log", *options) as site:
        for version in range(1, 6):
            assert add(site, f"new {version}").json["version"] == version
            question = {"head": f"new {version}", "relation": "born in", "tail": "?"}
            wait_until(lambda asked=question: site.post("/v1/predict", asked, **BEARER).status == 200)
        assert site.stop() == 0
    assert [one.version for one in Journal(folder).versions()] == [1, 2, 3, 4, 5]


def test_a_model_that_is_killed_again_and_again_under_load(inductive_run, tmp_path):
    """Every question is answered as ever, or refused with when to come back; none hangs."""
    question = {"head": "person 1", "relation": "born in", "tail": "?", "top": 20}
    chance = random.Random(5)
    with serving(inductive_run, tmp_path / "log") as site:
        expected = site.predict(**question).json
        over, outcomes, wrong = threading.Event(), [], []

        def press() -> None:
            while not over.is_set():
                asked = time.monotonic()
                found = site.predict(**question)
                outcomes.append((found.status, time.monotonic() - asked))
                if found.status == 200 and found.json["answers"] != expected["answers"]:
                    wrong.append(found.json)
                if found.status != 200 and not 1 <= int(found.headers["retry-after"]) <= 60:
                    wrong.append(found.headers)

        clients = [threading.Thread(target=press) for _ in range(8)]
        for client in clients:
            client.start()
        try:
            for _ in range(4):
                time.sleep(chance.uniform(0.2, 1.0))
                os.kill(child_of(site.process.pid), signal.SIGKILL)
                assert site.get("/health").status == 200
                site.wait_until_ready()
        finally:
            over.set()
            for client in clients:
                client.join(60)
        assert not any(client.is_alive() for client in clients)
        assert wrong == []
        assert {status for status, _ in outcomes} == {200, 503}
        assert max(seconds for _, seconds in outcomes) < 30
        assert site.get("/ready").json["restarts"] == 4
        assert site.predict(**question).json["answers"] == expected["answers"]
        assert site.stop() == 0
