"""Whatever a file, a setting or a question holds: exit code 0, 1 or 2, a clear word, and bounded memory."""

from __future__ import annotations

import io
import json
import shutil
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from hynt.graph.storage import save_graph
from hynt.runs.journal import Journal
from hynt.runs.opening import load_run
from tests.attacks.adversary import case
from tests.attacks.hostile_requests import message, request
from tests.attacks.mutations import Originals
from tests.conftest import ROOT
from tests.service.conftest import TOKEN, accepting_updates, in_thread, serving
from tests.service.inference.fake_engine import FakeEngine
from tests.service.served_graph import served_graph
from tests.training.small_graph import small_graph

QUICK, SLOW, AT_ONCE = 200, 20_000, 500


@pytest.fixture(scope="module")
def originals(hynt, tmp_path_factory, given_away, inductive_run):
    folder = tmp_path_factory.mktemp("adversary")
    save_graph(small_graph(), folder / "graph")
    followed = shutil.copytree(inductive_run, folder / "followed")
    fact = {"head": "Zoe", "relation": "knows", "tail": "person 1", "qualifiers": {"year": 2020}}
    (folder / "more.jsonl").write_text(json.dumps(fact) + "\n" + json.dumps({**fact, "tail": "Max"}) + "\n")
    (folder / "one.jsonl").write_text(json.dumps(fact) + "\n")
    for words in (
        ("update", followed, folder / "more.jsonl", "--key", "monday"),
        ("update", followed, "--remove", folder / "one.jsonl"),
        ("update", followed, "--merge", "Max", "person 2", "--remove-entity", "person 3"),
        ("calibrate", followed),
        ("ensemble", given_away, given_away, "--out", folder / "ensemble", "--device", "cpu"),
        ("calibrate", folder / "ensemble"),
    ):
        assert hynt.fair(*words).code == 0
    return Originals(folder / "graph", given_away, followed, folder / "ensemble")


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


BROKE = (823, 2839, 3487, 4710, 5179, 5323, 7433, 25276, 36129)
"""Seeds of the slow lane that broke something once."""


def test_what_broke_something_once(hynt, originals, tmp_path):
    attack(hynt, originals, tmp_path, BROKE)


def test_two_hundred_attacks(hynt, originals, tmp_path):
    attack(hynt, originals, tmp_path, range(QUICK))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(QUICK, SLOW, AT_ONCE))
def test_many_attacks(hynt, originals, tmp_path, start):
    attack(hynt, originals, tmp_path, range(start, start + AT_ONCE))


def send(site, seeds, token="") -> Counter[bytes]:
    """What became of requests: each is answered or hung up on, none is a bug, and the next is answered as ever."""
    found: Counter[bytes] = Counter()
    for seed in seeds:
        content, is_whole = request(seed, token)
        with socket.create_connection((site.host, site.port), timeout=30 if is_whole else 0.05) as connection:
            try:
                connection.sendall(content)
                answer = connection.recv(12, socket.MSG_WAITALL)
            except (ConnectionError, TimeoutError):
                assert not is_whole, f"seed {seed}"
                continue
        assert answer[9:10] in b"1234" or answer[9:12] in (b"501", b"503"), f"seed {seed}: {answer!r}"
        found[answer[9:12]] += 1
    assert site.get("/health").status == 200
    return found


def test_two_hundred_requests():
    with in_thread(served_graph(), FakeEngine()) as site:
        found = send(site, range(QUICK))
    assert found[b"200"] > 20
    assert sum(found.values()) > QUICK / 2


@pytest.mark.slow
def test_many_requests(inductive_run, tmp_path):
    """Whoever has the token may write, and what was written stands."""
    run, options = accepting_updates(inductive_run, tmp_path)
    with serving(run, tmp_path / "log", *options) as site:
        found = send(site, range(QUICK, 5_000), TOKEN)
        assert found[b"200"] > 500
        assert site.get("/ready").json["restarts"] == 0
        assert "Traceback" not in site.log
    versions = Journal(run).versions()
    assert len(versions) > 10
    assert len(load_run(run).graph) == len(small_graph())  # the graph of training
    assert len(Journal(run).graph(small_graph())) == versions[-1].facts


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


def test_a_message_without_end_is_not_kept():
    from hynt.service.agents import BoundedLines

    class Endless(io.RawIOBase):
        """A message whose end never comes, until 64 megabytes of it were read."""

        left = 2**26
        begun = False

        def readable(self):
            return True

        def readinto(self, into):
            given = b'{"jsonrpc": "2.0", "id": 7, "method": "' if not self.begun else b"x" * min(len(into), self.left)
            self.begun = True
            self.left -= len(given)
            into[: len(given)] = given
            return len(given)

    lines = io.BufferedReader(BoundedLines(io.BufferedReader(Endless(), 2**20)))
    (told,) = [json.loads(line) for line in lines]
    assert told == {"jsonrpc": "2.0", "id": 7, "method": "a message of more than 65,536 bytes"}
    ping = b'{"jsonrpc": "2.0", "id": 1, "method": "%s"}'
    longest = ping % (b"y" * (65_535 - len(ping) + 2))
    short = b"\n".join((ping % b"x", longest, b"", b"z" * 65_536, ping % b"last"))
    assert [len(line) for line in io.BufferedReader(BoundedLines(io.BytesIO(short)))] == [43, 65_536, 1, 68, 45]


@pytest.mark.parametrize("said", [b'"\\ud800"', b"[" * 3_000 + b"]" * 3_000, b"nothing"])
def test_a_message_that_cannot_be_read_is_answered(said):
    """The protocol's library passes over it in silence, and whoever asked would wait."""
    from hynt.service.agents import BoundedLines

    call = b'{"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "a", "arguments": {"query": %s}}, "id": 5}\n'
    (told,) = [json.loads(line) for line in io.BufferedReader(BoundedLines(io.BytesIO(call % said)))]
    assert (told["id"], told["method"]) == (5, "a message that cannot be read")


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 6_000, 2_000))
def test_an_agent_that_sends_anything(given_away, tmp_path, start):
    """After each message the server still answers; what a well-formed question is told does not change."""
    run = shutil.copytree(given_away, tmp_path / "run")
    asked = {"head": "person 0", "relation": "knows", "tail": "?"}
    question = {"method": "tools/call", "params": {"name": "predict", "arguments": asked}}
    greeting = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    command = [sys.executable, "-m", "hynt", "mcp", str(run)]
    with (
        (tmp_path / "said").open("wb") as said,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, cwd=ROOT) as server,
    ):
        assert server.stdin is not None
        assert server.stdout is not None

        def answer(request, number):
            told = json.dumps({"jsonrpc": "2.0", "id": number, **request}).encode() + b"\n"
            server.stdin.write(told)
            server.stdin.flush()
            while (found := json.loads(server.stdout.readline())).get("id") != number:
                pass
            return found

        answer({"method": "initialize", "params": greeting}, "first")
        server.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        before = answer(question, "before")["result"]
        for seed in range(start, start + 2_000):
            server.stdin.write(message(seed) + b"\n")
            answer({"method": "ping"}, f"after {seed}")
        assert answer(question, "again")["result"] == before
        peak = next(line for line in Path(f"/proc/{server.pid}/status").read_text().splitlines() if "VmHWM" in line)
        assert int(peak.split()[1]) < 600_000  # kilobytes
        server.stdin.close()
        assert server.wait(60) == 0
    assert "Traceback" not in (tmp_path / "said").read_text()
