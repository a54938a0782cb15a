"""Jobs run on cores of their own, most valuable first, and end in time."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from benchmarks.pinned_jobs import Job, last_cores, run_pinned

TELL = "import os, sys; print(sorted(os.sched_getaffinity(0)), os.environ['OMP_NUM_THREADS']); sys.exit(%d)"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_job_has_one_thread_on_one_core_and_tells_how_it_ended():
    core = last_cores(1)
    wait = "import time; time.sleep(0.3); "  # it is pinned right after it began
    jobs = [Job("good", python(wait + TELL % 0), 1), Job("bad", python(wait + TELL % 3), 1)]
    good, bad = run_pinned(jobs, core)
    assert (good.key, good.code, good.said) == ("good", 0, f"{core} 1")
    assert (bad.key, bad.code) == ("bad", 3)


def test_a_job_that_would_not_end_in_time_gives_way_to_a_later_one_that_does():
    jobs = [Job("long", python("pass"), 100), Job("short", python("pass"), 1)]
    assert [one.key for one in run_pinned(jobs, last_cores(1), limit=20)] == ["short"]


def test_what_still_runs_at_the_limit_is_ended(tmp_path):
    note = tmp_path / "pid"
    code = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    began = time.monotonic()
    assert list(run_pinned([Job("long", python(code), 0.5)], last_cores(1), limit=2)) == []
    assert time.monotonic() - began < 20
    assert not Path(f"/proc/{note.read_text()}").exists()
