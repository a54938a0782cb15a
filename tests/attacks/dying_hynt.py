"""The `hynt` command in a process that dies at a chosen write: one process with everything loaded forks for each."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.conftest import ROOT

NEVER = 0


@dataclass(frozen=True)
class Death:
    """How a command ended: -9 where it was killed."""

    code: int
    said: str
    events: int  # what it wrote, flushed, renamed and removed; 0 where it was killed


class DyingHynt:
    """Forks a command whenever it is asked to."""

    def __init__(self, library: Path) -> None:
        self._library = library

    def __enter__(self) -> Self:
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "LD_PRELOAD": str(self._library),
        }
        argv = [sys.executable, "-m", "tests.attacks.dying_hynt"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, cwd=ROOT, env=environment, text=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, words: list[str], disk: Path, at: int = NEVER) -> Death:
        """Runs one command line, which is killed before the `at`-th of its writes to `disk`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        said = disk.with_name("said.txt")
        self._process.stdin.write(json.dumps([words, str(disk), at, str(said)]) + "\n")
        self._process.stdin.flush()
        code, events = json.loads(self._process.stdout.readline())
        return Death(code, said.read_text(encoding="utf-8", errors="replace"), events)


def _main() -> None:
    import torch

    from hynt.cli.application import run

    torch.set_num_threads(1)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    for line in sys.stdin:
        words, disk, at, said = json.loads(line)
        told, telling = os.pipe()
        child = os.fork()
        if not child:
            handle = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(handle, 1)
            os.dup2(handle, 2)
            os.environ |= {"DYING_DISK": disk, "DYING_AT": str(at)}
            code = run(words)
            sys.stdout.flush()
            sys.stderr.flush()
            os.write(telling, str(ctypes.CDLL(None).disk_events()).encode())
            os._exit(code)
        os.close(telling)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        events = int(os.read(told, 20) or 0)
        os.close(told)
        print(json.dumps([code, events]), file=answers, flush=True)


if __name__ == "__main__":
    _main()
