"""`hynt update`: facts that come and go after training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hynt.cli.options import RunArgument
from hynt.cli.output import Output, print_table
from hynt.errors import UsageError, located
from hynt.files import check_new_folder
from hynt.names import plural
from hynt.progress import visible

if TYPE_CHECKING:
    from rich.console import Console


def update(
    run: RunArgument,
    facts: Annotated[
        Path | None, typer.Argument(metavar="FACTS", help="Facts to add: a file or folder of any import format.")
    ] = None,
    remove: Annotated[
        Path | None,
        typer.Option("--remove", metavar="FACTS", help="Facts to take away, written as the graph has them."),
    ] = None,
    remove_entities: Annotated[
        list[str] | None,
        typer.Option("--remove-entity", metavar="E", help="Remove this entity and all its facts. Repeatable."),
    ] = None,
    merge: Annotated[
        tuple[str, str] | None, typer.Option("--merge", metavar="A B", help="Merge the entity A into the entity B.")
    ] = None,
    corrections: Annotated[
        Path | None,
        typer.Option("--corrections", metavar="FILE", help="Decisions downloaded from the page of doubtful facts."),
    ] = None,
    skip_known: Annotated[
        bool, typer.Option("--skip-known", help="Skip facts that the graph already holds, instead of refusing them.")
    ] = False,
    format: Annotated[
        str, typer.Option("--format", "-f", metavar="F", help="The files' format, where the name does not say it.")
    ] = "",
    source: Annotated[str, typer.Option("--source", help="Where this comes from, for the log.")] = "",
    key: Annotated[
        str, typer.Option("--key", help="A name for this update: a second one of that name does nothing.")
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="RUN",
            help="Copy the run to this new folder first, and change the copy; without changes, only copy.",
        ),
    ] = None,
    log: Annotated[bool, typer.Option("--log", help="Change nothing, and list all versions.")] = False,
    changes: Annotated[
        int | None, typer.Option("--changes", metavar="N", help="Change nothing, and list what version N changed.")
    ] = None,
    *,
    output: Output,
) -> None:
    """Change the graph of RUN without training again: its answers take in what is added and forget what is removed.

    All of it becomes one new version, or nothing is changed. Commands that ask a run take `--as-of N` to ask an earlier
    one.
    """
    from dataclasses import asdict

    from hynt.front.run import Run

    told: dict[str, Any]
    notes: list[str] = []
    opened = Run(run, "cpu", notes.append)
    asked = "--log" if log else "" if changes is None else "--changes"
    if asked and (facts or remove or remove_entities or merge or corrections or out):
        raise UsageError("a log changes nothing.", where=asked, advice="Ask for it by itself.")
    if changes is not None:
        with located("--changes"):
            lines = opened.changes(changes)
        told = {"run": str(run), "version": changes, "changes": lines}
        output.deliver(told, lambda console: _print_changes(console, lines))
        return
    if log:
        log_lines = [asdict(one) for one in opened.versions()]
        told = {"run": str(run), "version": opened.version, "versions": log_lines}
        output.deliver(told, lambda console: _print_log(console, log_lines))
        return
    if out is not None:
        check_new_folder(out, "--out")
        if not (facts or remove or remove_entities or merge or corrections):
            copied = {"run": str(out), "changed": False, "version": opened.save(out).version}
            text = f"Copied to {visible(str(out))}."
            output.deliver(copied, lambda console: console.print(text))
            return
    before = opened.version
    later = opened.update(
        facts,
        remove=remove,
        remove_entities=remove_entities or (),
        merge=[] if merge is None else [merge],
        corrections=corrections,
        skip_known=skip_known,
        format=format,
        source=source,
        key=key,
        out=out,
    )
    listed = later.versions()
    result = {
        "run": str(out or run),
        "changed": later.version > before,
        **(asdict(listed[-1]) if listed else {"version": 0}),
        "notes": notes,
    }
    output.deliver(result, lambda console: _print(console, result))


def _print(console: Console, result: dict[str, Any]) -> None:
    if not result["changed"]:
        console.print(f"Nothing changed: version {result['version']}.")
        return
    console.print(
        f"Version {result['version']}: {plural(result['added'], 'fact')} added, {result['removed']:,} removed; "
        f"{plural(result['new_entities'], 'new entity', 'new entities')}, {result['gone_entities']:,} gone; "
        f"{plural(result['facts'], 'fact')} now."
    )
    for note in result["notes"]:
        console.print(f"note: {visible(note)}")


def _print_changes(console: Console, lines: list[str]) -> None:
    for line in lines:
        console.print(visible(line), soft_wrap=True, markup=False, highlight=False)


def _print_log(console: Console, versions: list[dict[str, Any]]) -> None:
    if not versions:
        console.print("No updates: the graph is as the run was trained on it.")
        return
    names = ("added", "removed", "new_entities", "gone_entities", "facts")
    rows = [(str(one["version"]), one["at"], one["source"], *(f"{one[name]:,}" for name in names)) for one in versions]
    print_table(console, ("version", "when", "from", "added", "removed", "new entities", "gone", "facts"), rows)
