"""`hynt push` and `hynt pull`: a run given away, as a folder laid out like a hub repository or to the hub itself, and
one taken, checked to the byte.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hynt.cli.output import JsonFlag, deliver
from hynt.progress import visible

if TYPE_CHECKING:
    from rich.console import Console


def push(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run.")],
    destination: Annotated[str, typer.Argument(metavar="DEST", help="A folder, or hf:owner/name on the hub.")],
    evaluation: Annotated[
        Path | None, typer.Option("--evaluation", metavar="FILE", help="What `hynt evaluate RUN --save FILE` wrote.")
    ] = None,
    licence: Annotated[
        str, typer.Option("--licence", help="The model's, such as cc-by-4.0; by default the graph's.")
    ] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier push left in DEST.")] = False,
    public: Annotated[bool, typer.Option("--public", help="Make a new repository on the hub public.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Give RUN away with a model card made from it. Weights are safetensors; nothing is a pickle."""
    from hynt.front.publishing import push as give

    result = give(run, destination, evaluation=evaluation, licence=licence, overwrite=overwrite, public=public)
    deliver(result, as_json=as_json, save=None, text=lambda console: _print_pushed(console, result))


def _repository(destination: str) -> str:
    """What was given, where it can be a repository's name as well."""
    return destination if re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", destination, re.ASCII) else "owner/name"


def _print_pushed(console: Console, result: dict[str, Any]) -> None:
    where = "the repository" if result["on_the_hub"] else "the folder"
    console.print(f"{len(result['files'])} files of {result['run']} are in {where} {result['destination']}")
    if not result["on_the_hub"]:
        console.print(f"it is on this machine; to send it to the hub, say hf:{_repository(result['destination'])}")
    if result["left_out"]:
        console.print(f"left out, since no run has them: {visible(', '.join(result['left_out']))}")
    if result["licence"] is None:
        console.print("no licence is stated: see that you may give the graph away, and say --licence")
    if not result["graph_included"]:
        console.print("the graph is not part of the run: whoever pulls it needs the graph as well")
    console.print(f"next: hynt pull {result['destination']} RUN")


def pull(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A folder, or hf:owner/name on the hub.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The run folder to make.")],
    as_json: JsonFlag = False,
) -> None:
    """Take the run in SOURCE. Each file is checked by its hash first; files that no run has are passed over."""
    from hynt.front.publishing import pulled

    result = pulled(source, out)
    deliver(result, as_json=as_json, save=None, text=lambda console: _print_pulled(console, result))


def _print_pulled(console: Console, result: dict[str, Any]) -> None:
    console.print(
        f"{visible(result['model'])} on {visible(result['graph'])}: {len(result['files'])} files, "
        f"all as listed, in {result['run']}"
    )
    if result["passed_over"]:
        console.print(f"passed over, since no run has them: {visible(', '.join(result['passed_over']))}")
    if not result["graph_included"]:
        console.print("the graph was not given away with the run: put it where the model card says")
    console.print(f"next: hynt predict {result['run']} --help")
