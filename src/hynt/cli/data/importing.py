"""`hynt data import`: a source of any format becomes a checked, saved graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hynt.cli.data.options import FormatOption, OnError, SourceArgument, SourceOptions
from hynt.cli.data.outcome import plural, problems_of, tell_hints, tell_outcome, tell_problems
from hynt.cli.interruption import interruptible
from hynt.cli.option_groups import with_option_groups
from hynt.cli.option_names import about
from hynt.cli.output import JsonFlag, SaveFile, check_save, deliver, visible
from hynt.cli.progress import ReadingProgress
from hynt.files import check_new_folder

if TYPE_CHECKING:
    from rich.console import Console


@with_option_groups
def import_source(
    source: SourceArgument,
    options: SourceOptions,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder to make.")],
    format: FormatOption = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a saved graph that is there.")] = False,
    on_error: Annotated[
        OnError,
        typer.Option(
            "--on-error",
            rich_help_panel="Reading",
            help="A record that cannot be kept: stop and write nothing, or skip and count it.",
        ),
    ] = OnError.STOP,
    name: Annotated[str, typer.Option("--name", help="The graph's name; the source's if not given.")] = "",
    licence: Annotated[str, typer.Option("--licence", help="The licence of the data, for the manifest.")] = "",
    source_words: Annotated[str, typer.Option("--source", help="The source in words, for the manifest.")] = "",
    json: JsonFlag = False,
    save: SaveFile = None,
) -> None:
    """Read a source and save it as a graph folder. Nothing is written unless everything went well."""
    from hynt.formats.importing import import_graph

    check_save(save)
    check_new_folder(out, "--out")
    wanted = options.importing(on_error=on_error.value, name=name, licence=licence, source=source_words)
    with about(source), interruptible(), ReadingProgress() as progress:
        done = import_graph(source, format, out, wanted, overwrite=overwrite, progress=progress)
    manifest = done.manifest
    result: dict[str, Any] = {
        "graph": str(out),
        "name": manifest.name,
        "format": format,
        "counts": dict(manifest.counts),
        "importing": dict(manifest.importing),
        **problems_of(done.report),
    }
    tell_hints(result)
    deliver(result, as_json=json, save=save, text=lambda screen: _tell(result, screen))


def _tell(result: dict[str, Any], out: Console) -> None:
    importing = result["importing"]
    rejected = sum(importing["rejected"].values())
    out.print(f"{plural(importing['read'], 'record')} read, {importing['kept']:,} kept, {rejected:,} rejected.")
    tell_problems({**result, **importing}, out)
    tell_outcome({**importing, "counts": result["counts"]}, out)
    out.print(f"Saved in {visible(result['graph'])}", soft_wrap=True)
