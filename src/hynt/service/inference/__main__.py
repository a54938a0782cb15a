"""The inference process: `python -m hynt.service.inference RUN DEVICE [VERSION]`, started by the HTTP process and
spoken to by pipe.

It ends when the HTTP process closes the pipe, so one that was killed leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO

from hynt.errors import HyntError
from hynt.service.inference.answering import FollowingJobs
from hynt.service.inference.process import FOLLOW, Frame, read_frame


def main(run: str, device: str, version: str = "") -> int:
    """Loads the run, says so, and answers until the pipe is closed."""
    # Ctrl-C reaches the whole group of processes; the HTTP process decides when this one ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(5)  # the HTTP process is to answer /health however busy the model is
    replies, jobs = _private_pipes()
    try:
        from hynt.asking.predictor import Predictor

        wanted = int(version) if version else None
        predictor = Predictor(Path(run), device, lambda text: _send(replies, Frame({"note": text})), wanted)
        _ = predictor.loaded
        answering = FollowingJobs(predictor, lambda version: _send(replies, Frame({"version": version})))
        answering.now.warm_up()
        examples = answering.now.examples()
    except HyntError as error:
        failure = {"what": error.what, "where": error.where, "advice": error.advice, "exit_code": error.exit_code}
        _send(replies, Frame({"failed": failure}))
        return error.exit_code
    told = {**predictor.described(), **predictor.loaded.described()}
    _send(replies, Frame({"ready": told, "follows": predictor.loaded.observed is not None, "examples": examples}))
    while (frame := read_frame(jobs)) is not None:
        if frame.header["kind"] == FOLLOW:
            answering.follow()
        else:
            _send(replies, answered(answering, frame.header))
    return 0


def answered(answering: FollowingJobs, header: dict[str, Any]) -> Frame:
    """The reply to one message: for each job the length of its bytes, or its faults."""
    found = answering.replies(header["kind"], header["jobs"])
    parts = [
        {
            "bytes": len(reply.body),
            "faults": [fault.to_dict() for fault in reply.faults],
            "broken": reply.broken,
            "bug": reply.bug,
            "version": reply.version,
        }
        for reply in found
    ]
    return Frame({"id": header["id"], "parts": parts}, b"".join(reply.body for reply in found))


def _private_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The pipes of this conversation; what a library prints goes to standard error instead of between messages."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    jobs = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return replies, jobs


_ONE_AT_A_TIME = threading.Lock()
"""The thread that prepares a version announces it, beside the one that replies."""


def _send(replies: BinaryIO, frame: Frame) -> None:
    try:
        with _ONE_AT_A_TIME:
            replies.write(frame.encoded())
            replies.flush()
    except BrokenPipeError:
        os._exit(0)  # the HTTP process is gone; nobody is left to tell


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
