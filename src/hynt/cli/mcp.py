"""`hynt mcp`: a run for an agent, by the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hynt.cli.options import Device, ScoringDevice


def mcp(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder, or world: the run that comes with hynt.")],
    audit: Annotated[
        Path | None, typer.Option("--audit", metavar="FILE", help="What `hynt audit` wrote: doubtful facts to show.")
    ] = None,
    device: ScoringDevice = Device.CPU,
) -> None:
    """Serve RUN to an agent over standard input and output. Over HTTP, `hynt serve RUN` offers the same at /mcp."""
    from hynt.front.serving import serve_agent

    serve_agent(run, audit=audit, device=device.value)
