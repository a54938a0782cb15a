"""`hynt update`: facts that come and go after training."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hynt.cli.options import RunArgument, argument, option, said
from hynt.cli.output import Output, print_table
from hynt.errors import UsageError, located
from hynt.files import check_new_folder
from hynt.names import plural
from hynt.progress import visible

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class UpdateOptions:
    """What is changed, and what the log says of it."""

    facts: Path | None = argument(None, "Facts to add: a file or folder of any import format.", metavar="FACTS")
    remove: Path | None = option(None, "Facts to take away, written as the graph has them.", metavar="FACTS")
    remove_entities: list[str] | None = option(
        None, "Remove this entity and all its facts. Repeatable.", "--remove-entity", metavar="E"
    )
    merge: tuple[str, str] | None = option(None, "Merge the entity A into the entity B.", metavar="A B")
    corrections: Path | None = option(None, "Decisions downloaded from the page of doubtful facts.", metavar="FILE")
    skip_known: bool = option(False, "Skip facts that the graph already holds, instead of refusing them.")
    format: str = option("", "The files' format, where the name does not say it.", "--format", "-f", metavar="F")
    source: str = option("", "Where this comes from, for the log.")
    key: str = option("", "A name for this update: a second one of that name does nothing.")
    out: Path | None = option(
        None, "Copy the run to this new folder first, and change the copy; without changes, only copy.", metavar="RUN"
    )

    @property
    def are_changes(self) -> bool:
        """Whether there is anything to change."""
        return any((self.facts, self.remove, self.remove_entities, self.merge, self.corrections))


def update(
    run: RunArgument,
    options: UpdateOptions,
    log: bool = option(False, "Change nothing, and list all versions."),
    changes: int | None = option(None, "Change nothing, and list what version N changed.", metavar="N"),
    *,
    output: Output,
) -> None:
    """Change the graph of RUN without training again: its answers take in what is added and forget what is removed.

    All of it becomes one new version, or nothing is changed. Commands that ask a run take `--as-of N` to ask an earlier
    one.
    """
    from hynt.front.run import Run

    told: dict[str, Any]
    notes: list[str] = []
    opened = Run(run, "cpu", notes.append)
    asked = "--log" if log else "" if changes is None else "--changes"
    if asked and (options.are_changes or options.out):
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
    if options.out is not None:
        check_new_folder(options.out, "--out")
        if not options.are_changes:
            copied = {"run": str(options.out), "changed": False, "version": opened.save(options.out).version}
            text = f"Copied to {visible(str(options.out))}."
            output.deliver(copied, lambda console: console.print(text))
            return
    before = opened.version
    later = opened.update(**said(options))
    listed = later.versions()
    result = {
        "run": str(options.out or run),
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
        console.print(visible(line))


def _print_log(console: Console, versions: list[dict[str, Any]]) -> None:
    if not versions:
        console.print("No updates: the graph is as the run was trained on it.")
        return
    names = ("added", "removed", "new_entities", "gone_entities", "facts")
    rows = [(str(one["version"]), one["at"], one["source"], *(f"{one[name]:,}" for name in names)) for one in versions]
    print_table(console, ("version", "when", "from", "added", "removed", "new entities", "gone", "facts"), rows)
