"""`hynt serve` and `hynt mcp`: a run over HTTP for programs and browsers, and one for an agent, by the Model Context
Protocol.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

import hynt
from hynt.cli.options import ScoringDevice
from hynt.cli.output import Output


def serve(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder, or world: the run that comes with hynt.")],
    host: Annotated[str, typer.Option("--host", help="The address to listen on; by default this machine alone.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes any free port.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help="Ask for the token in FILE; required for other machines."),
    ] = None,
    allowed_hosts: Annotated[
        list[str] | None,
        typer.Option("--allowed-host", metavar="NAME", help="A name by which clients call this machine. Repeatable."),
    ] = None,
    audit: Annotated[
        Path | None, typer.Option("--audit", metavar="FILE", help="What `hynt audit` wrote: doubtful facts to show.")
    ] = None,
    device: ScoringDevice = "cpu",
    batching: Annotated[bool, typer.Option("--batching/--no-batching", help="Answer questions together.")] = True,
    window: Annotated[
        float, typer.Option("--window", min=0, max=1000, help="Milliseconds that a question waits for others.")
    ] = 2.0,
    queue: Annotated[int, typer.Option("--queue", min=1, help="Questions that may wait; more are refused.")] = 1_024,
    answer_within: Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds that an answer may take.")] = 30.0,
    grace: Annotated[
        float, typer.Option("--grace", min=0, help="Seconds that stopping may take after SIGTERM or Ctrl-C.")
    ] = 10.0,
    log_questions: Annotated[
        bool, typer.Option("--log-questions", help="Write what is asked to the log; off by default.")
    ] = False,
    accept_updates: Annotated[
        bool,
        typer.Option("--accept-updates", help="Let those with the token add and remove facts; needs --token-file."),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Log only problems, not every request.")] = False,
    *,
    output: Output,
) -> None:
    """Serve RUN over HTTP until Ctrl-C or SIGTERM: pages for people, JSON under /v1 for programs."""
    _start_log(quiet)
    hynt.serve(
        run,
        host,
        port,
        token_file=token_file,
        allowed_hosts=allowed_hosts or (),
        audit=audit,
        device=device,
        started=lambda url: _announce(url, run, output.as_json),
        batching=batching,
        window=window / 1000,
        queue=queue,
        answer_within=answer_within,
        grace=grace,
        log_questions=log_questions,
        accept_updates=accept_updates,
    )


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


def mcp(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder, or world: the run that comes with hynt.")],
    audit: Annotated[
        Path | None, typer.Option("--audit", metavar="FILE", help="What `hynt audit` wrote: doubtful facts to show.")
    ] = None,
    device: ScoringDevice = "cpu",
) -> None:
    """Serve RUN to an agent over standard input and output. Over HTTP, `hynt serve RUN` offers the same at /mcp."""
    from hynt.front.serving import serve_agent

    serve_agent(run, audit=audit, device=device)
