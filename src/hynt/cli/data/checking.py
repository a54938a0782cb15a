"""`hynt data check`: read a source whole, change nothing, and say what is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from hynt.cli.data.options import FormatOption, SourceArgument, SourceOptions
from hynt.cli.data.outcome import plural, problems_of, tell_hints, tell_outcome, tell_problems
from hynt.cli.interruption import interruptible
from hynt.cli.option_groups import with_option_groups
from hynt.cli.option_names import about
from hynt.cli.output import JsonFlag, SaveFile, check_save, deliver
from hynt.cli.progress import ReadingProgress

if TYPE_CHECKING:
    from rich.console import Console


@with_option_groups
def check(
    source: SourceArgument,
    options: SourceOptions,
    format: FormatOption = "",
    json: JsonFlag = False,
    save: SaveFile = None,
) -> None:
    """Read a source whole and change nothing. Leaves with 1 when records cannot be kept, and shows the first 20."""
    from hynt.formats.importing import check_source

    check_save(save)
    with about(source), interruptible(), ReadingProgress() as progress:
        report, outcome = check_source(source, format, options.importing(), progress=progress)
    result: dict[str, Any] = {
        "ok": not report.rejected,
        "source": str(source),
        "format": format,
        **report.to_mapping(),
        **problems_of(report),
        "outcome": outcome or None,
    }
    tell_hints(result)
    deliver(result, as_json=json, save=save, text=lambda out: _tell(result, out))
    if report.rejected:
        raise typer.Exit(1)


def _tell(result: dict[str, Any], out: Console) -> None:
    rejected = sum(result["rejected"].values())
    out.print(f"{plural(result['read'], 'record')} read, {result['kept']:,} kept, {rejected:,} rejected.")
    tell_problems(result, out)
    if result["outcome"]:
        tell_outcome(result["outcome"], out)
        out.print("Nothing stands in the way of an import.")
