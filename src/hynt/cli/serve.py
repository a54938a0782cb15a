"""`hynt serve` and `hynt mcp`: a run over HTTP for programs and browsers, and one for an agent, by the Model Context
Protocol.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

import hynt
from hynt.cli.options import AsOf, ScoringDevice, option, said
from hynt.cli.output import Output

ServedArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="RUN", help="A run folder, or world: the run that comes with hynt.")
]


@dataclass(frozen=True)
class ServedOptions:
    """What is served of a run, and on which device it answers."""

    audit: Path | None = option(None, "What `hynt audit` wrote: doubtful facts to show.", metavar="FILE")
    version: AsOf = None
    device: ScoringDevice = "cpu"


@dataclass(frozen=True)
class ServiceOptions:
    """Where a run is served, to whom, and within which limits."""

    host: str = option("127.0.0.1", "The address to listen on; by default this machine alone.")
    port: int = option(8000, "0 takes any free port.", min=0, max=65535)
    token_file: Path | None = option(None, "Ask for the token in FILE; required for other machines.", metavar="FILE")
    allowed_hosts: list[str] | None = option(
        None, "A name by which clients call this machine. Repeatable.", "--allowed-host", metavar="NAME"
    )
    batching: bool = option(True, "Answer questions together.", "--batching/--no-batching")
    window: float = option(2.0, "Milliseconds that a question waits for others.", min=0, max=1000)
    queue: int = option(1_024, "Questions that may wait; more are refused.", min=1)
    answer_within: float = option(30.0, "Seconds that an answer may take.", "--timeout", min=0.1)
    grace: float = option(10.0, "Seconds that stopping may take after SIGTERM or Ctrl-C.", min=0)
    log_questions: bool = option(False, "Write what is asked to the log; off by default.")
    accept_updates: bool = option(False, "Let those with the token add and remove facts; needs --token-file.")


def serve(
    run: ServedArgument,
    options: ServiceOptions,
    served: ServedOptions,
    quiet: bool = option(False, "Log only problems, not every request."),
    *,
    output: Output,
) -> None:
    """Serve RUN over HTTP until Ctrl-C or SIGTERM: pages for people, JSON under /v1 for programs."""
    _start_log(quiet)
    asked = said(options) | said(served) | {"window": options.window / 1000}
    hynt.serve(run, started=lambda url: _announce(url, run, output.as_json), **asked)


def _start_log(quiet: bool) -> None:
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.WARNING if quiet else logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
    )
    for name in ("uvicorn.error", "asyncio"):  # our own log says what matters
        logging.getLogger(name).setLevel(logging.ERROR)


def _announce(url: str, run: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"url": url, "run": run, "pid": os.getpid()}), flush=True)
    print(f"Serving {run} at {url} (Ctrl-C to stop)", file=sys.stderr, flush=True)


def mcp(run: ServedArgument, options: ServedOptions) -> None:
    """Serve RUN to an agent over standard input and output. Over HTTP, `hynt serve RUN` offers the same at /mcp."""
    from hynt.front.serving import serve_agent

    serve_agent(run, **said(options))
