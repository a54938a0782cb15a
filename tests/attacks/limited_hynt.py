"""The `hynt` command in a process whose memory is bounded: whatever takes too much, or aborts, fails the test."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import select
import subprocess
import sys
from dataclasses import dataclass
from typing import Self

from tests.conftest import ROOT

MEMORY = 4 * 2**30
"""Bytes of data for one process, torch and all; its children are bounded as well, each for itself."""
SECONDS = 60
"""For one command, on a machine that is busy with other things."""
FAIR = (0, 1, 2)
"""The exit codes that a file, a setting or a request may cause."""


@dataclass(frozen=True)
class Outcome:
    """How one command ended."""

    code: int
    said: str  # on standard error
    printed: str  # on standard output


class LimitedHynt:
    """One process for many commands, so that hynt is loaded once."""

    def __enter__(self) -> Self:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "HYNT_DEBUG": "", "CUDA_VISIBLE_DEVICES": ""}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.attacks.limited_hynt"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=environment,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, *arguments: object, largest_file: int | None = None) -> Outcome:
        """Runs one command line. A process that is killed, aborts or hangs is an `AssertionError` that names it.

        `largest_file`: in bytes, where the system stops writing, as a full disk does.
        """
        if self._process.poll() is not None:  # an earlier command ended it
            self.__enter__()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        asked = {"arguments": [str(argument) for argument in arguments], "largest_file": largest_file}
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        process.stdin.flush()
        ready = select.select([process.stdout], [], [], SECONDS)[0]
        line = process.stdout.readline() if ready else b""
        if not line:
            process.kill()
            code = process.wait()  # the next command would be given to it otherwise
            how = f"ended the process: {code}" if ready else f"took more than {SECONDS} s"
            raise AssertionError(f"hynt {' '.join(map(str, arguments))} {how}")
        return Outcome(**json.loads(line))

    def fair(self, *arguments: object, largest_file: int | None = None) -> Outcome:
        """As `run`, for a command that must end well or with a clear word."""
        outcome = self.run(*arguments, largest_file=largest_file)
        command = ascii(" ".join(str(argument) for argument in arguments))
        assert outcome.code in FAIR, f"hynt {command}: {outcome.code}, {outcome.said[-2000:]}"
        told = "error: " in outcome.said or outcome.printed  # `data check` prints what it found
        assert outcome.code == 0 or told, f"hynt {command}: {outcome.code} without a word"
        assert "Traceback" not in outcome.said
        return outcome


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode()  # type: ignore[attr-defined]


def _main() -> None:
    from hynt.cli.application import run

    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    unlimited = resource.RLIM_INFINITY
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what native code prints is no answer
    for line in sys.stdin:
        asked = json.loads(line)
        said, printed = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace") for _ in range(2))
        largest = unlimited if asked["largest_file"] is None else asked["largest_file"]
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, unlimited))
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(printed):
            code = run(asked["arguments"])
        resource.setrlimit(resource.RLIMIT_FSIZE, (unlimited, unlimited))
        told, shown = (_written(one) for one in (said, printed))
        outcome = {"code": code, "said": told[-20_000:], "printed": shown[-200_000:]}
        print(json.dumps(outcome), file=answers, flush=True)


if __name__ == "__main__":
    _main()
