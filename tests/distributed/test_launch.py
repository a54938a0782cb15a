"""Who speaks for a job of several processes when it fails: each cause is told once, and with --json as one object."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading

import pytest

from hynt.distributed import launch as distributed_launch
from hynt.distributed.launch import INTERRUPTED, LEFT_ALONE, launch
from hynt.errors import HyntError

SCRIPT = """
import json, os, signal, sys, time
what, when = json.loads(sys.argv[1])[int(os.environ["RANK"])]
time.sleep(when)
print(json.dumps({"rank": os.environ["RANK"], "ended": what}))
print("error of", os.environ["RANK"], file=sys.stderr)
sys.stdout.flush()
if what < 0:
    os.kill(os.getpid(), -what)
sys.exit(what)
"""


@pytest.fixture
def ended(tmp_path, monkeypatch):
    """Launches processes that end so: a code, or a signal below 0, after so many seconds."""
    (tmp_path / "script.py").write_text(SCRIPT)
    monkeypatch.setattr(distributed_launch, "PROGRAM", (sys.executable, str(tmp_path / "script.py")))

    def call(*ends: tuple[int, float]) -> int:
        return launch([json.dumps(ends), "--json"], len(ends), "it stopped.", "Try again.")

    return call


def objects(out: str) -> list[dict]:
    return [json.loads(line) for line in out.splitlines()]


def test_the_first_process_speaks_for_all(ended, capfd):
    assert ended((0, 0.0), (0, 0.0)) == 0
    out, said = capfd.readouterr()
    assert objects(out) == [{"rank": "0", "ended": 0}]
    assert said == "error of 0\n"


@pytest.mark.parametrize("first", [(LEFT_ALONE, 0.0), (LEFT_ALONE, 1.5), (INTERRUPTED, 1.5)])
def test_who_fails_on_its_own_is_heard_whatever_the_others_do(first, ended, capfd):
    assert ended(first, (LEFT_ALONE, 0.0), (2, 0.0)) == 2
    out, said = capfd.readouterr()
    assert objects(out) == [{"rank": "2", "ended": 2}]
    assert said == "error of 0\nerror of 2\n"


def test_what_all_say_is_told_once(ended, capfd):
    assert ended((2, 1.0), (2, 0.0)) == 2
    out, said = capfd.readouterr()
    assert objects(out) == [{"rank": "0", "ended": 2}]
    assert said == "error of 0\n"


def test_no_code_of_ours_gets_out(ended, capfd):
    assert ended((LEFT_ALONE, 0.0), (LEFT_ALONE, 0.0)) == 1
    assert len(objects(capfd.readouterr().out)) == 1


def test_ctrl_c_is_told_by_the_first_process_alone(ended, capfd):
    with pytest.raises(SystemExit) as leaving:  # typer's own way out would say more
        ended((INTERRUPTED, 1.5), (INTERRUPTED, 0.0))
    assert leaving.value.code == INTERRUPTED
    out, said = capfd.readouterr()
    assert objects(out) == [{"rank": "0", "ended": INTERRUPTED}]
    assert said == "error of 0\n"


def test_a_killed_process_is_told_of_by_the_one_that_watches(ended, capfd):
    with pytest.raises(HyntError, match=r"process 2 of 2 was ended by SIGKILL, so it stopped\."):
        ended((LEFT_ALONE, 0.1), (-9, 0.0))
    assert capfd.readouterr().out == ""


def test_a_polite_kill_is_passed_on(ended):
    before = signal.getsignal(signal.SIGTERM)
    killing = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGTERM))
    killing.start()
    with pytest.raises(HyntError, match=r"process 1 of 2 was ended by SIGTERM"):
        ended((0, 60.0), (0, 60.0))
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_thread_that_hears_no_signals_launches_too(ended, capfd):
    codes = []
    thread = threading.Thread(target=lambda: codes.append(ended((0, 0.0), (0, 0.0))))
    thread.start()
    thread.join()
    assert codes == [0]
    assert objects(capfd.readouterr().out) == [{"rank": "0", "ended": 0}]
