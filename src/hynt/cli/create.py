"""`hynt create`: a graph from a dump of Wikidata, YAGO3 or Freebase."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hynt.cli.output import SavedOutput
from hynt.progress import visible
from hynt.runs import LARGEST_SEED

if TYPE_CHECKING:
    from rich.console import Console


# The options of `hynt create`, by what they are about.

_WHO: dict[str, Any] = {"rich_help_panel": "Which entities"}
_WHAT: dict[str, Any] = {"rich_help_panel": "Which facts"}
_NUMBERS: dict[str, Any] = {"rich_help_panel": "Numbers"}
_AFTER: dict[str, Any] = {"rich_help_panel": "Cleaning and splitting"}
_ENGINE: dict[str, Any] = {"rich_help_panel": "Engine"}


@dataclass(frozen=True)
class DumpOptions:
    """What becomes of a dump."""

    # fmt: off
    entities: Annotated[Path | None, typer.Option(
        "--entities", **_WHO, metavar="FILE", help="Ids, one per line."
    )] = None
    mapping: Annotated[list[Path] | None, typer.Option(
        "--mapping", metavar="FILE", **_WHO, help="Maps the ids of --entities: id TAB id. Give several to map in steps."
    )] = None
    instance_of: Annotated[list[str] | None, typer.Option(
        "--instance-of", metavar="TYPE", **_WHO, help="Entities of this type. Give several for any of them."
    )] = None
    subclasses: Annotated[bool, typer.Option(
        "--subclasses", **_WHO, help="wikidata: subclasses of --instance-of count too."
    )] = False
    everything: Annotated[bool, typer.Option("--all", **_WHO, help="Every entity of the dump.")] = False
    redirects: Annotated[Path | None, typer.Option(
        "--redirects", metavar="FILE", **_WHO, help="wikidata: old ids, id TAB id it leads to."
    )] = None
    language: Annotated[str, typer.Option("--language", **_WHO, help="The language of names.")] = "en"
    preferred_only: Annotated[bool, typer.Option(
        "--preferred-only", **_WHAT,
        help="wikidata: where statements of a property are marked as preferred, only those.",
    )] = False
    text: Annotated[str, typer.Option(
        "--text", metavar="drop|keep", **_WHAT, help="Drop text, or keep it as entities."
    )] = "drop"
    keep_tails: Annotated[bool, typer.Option(
        "--keep-tails/--closed-set", **_WHAT,
        help="Keep values outside the chosen entities, with names from a second pass over the dump; or drop their "
        "facts, as the paper does.",
    )] = True
    min_tail_uses: Annotated[int, typer.Option(
        "--min-tail-uses", min=1, **_WHAT, help="Keep such a value only if it occurs this often."
    )] = 1
    max_qualifiers: Annotated[int | None, typer.Option(
        "--max-qualifiers", min=0, **_WHAT, help="The most qualifiers a fact may have."
    )] = None
    long_facts: Annotated[str, typer.Option(
        "--long-facts", metavar="shorten|drop", **_WHAT, help="What to do with facts that have more."
    )] = "shorten"
    mediators: Annotated[Path | None, typer.Option(
        "--mediators", metavar="FILE", **_WHAT,
        help="freebase: the types of mediators, one per line, instead of those that the dump declares.",
    )] = None
    primaries: Annotated[Path | None, typer.Option(
        "--primaries", metavar="FILE", **_WHAT,
        help="freebase: property TAB the mediator's property with the primary value.",
    )] = None
    units: Annotated[str, typer.Option(
        "--units", metavar="si|keep", **_NUMBERS, help="Convert numbers to SI units, or keep them as they are."
    )] = "si"
    unknown_units: Annotated[str, typer.Option(
        "--unknown-units", metavar="drop|keep", **_NUMBERS, help="What to do with numbers in unknown units."
    )] = "drop"
    other_units: Annotated[str, typer.Option(
        "--other-units", metavar="drop|keep|split", **_NUMBERS,
        help="What to do with numbers in another unit than most of their relation.",
    )] = "drop"
    keep_leakage: Annotated[bool, typer.Option(
        "--keep-leakage", **_AFTER, help="Keep inverse and near-duplicate relations."
    )] = False
    outlier_rules: Annotated[Path | None, typer.Option(
        "--outlier-rules", metavar="FILE", **_AFTER, help="Limits for numbers and wrong facts, as TOML."
    )] = None
    mixed_relations: Annotated[str, typer.Option(
        "--mixed-relations", metavar="split|drop", **_AFTER,
        help="Relations with both numbers and entities: split them, or drop the kind that came second.",
    )] = "split"
    split: Annotated[str, typer.Option(
        "--split", metavar="A:B:C", **_AFTER, help="Shares of train, valid and test."
    )] = "8:1:1"
    seed: Annotated[int, typer.Option("--seed", min=0, max=LARGEST_SEED, **_AFTER, help="The seed of the split.")] = 0
    engine: Annotated[str, typer.Option(
        "--engine", metavar="duckdb|spark", **_ENGINE, help="One machine, or a cluster."
    )] = "duckdb"
    master: Annotated[str, typer.Option(
        "--master", **_ENGINE, help="spark: its master, such as yarn or local[4]."
    )] = "local[*]"
    workers: Annotated[int | None, typer.Option(
        "--workers", min=1, **_ENGINE, help="duckdb: processes that parse; all cores if not given."
    )] = None
    memory: Annotated[str, typer.Option(
        "--memory", **_ENGINE, help="Memory for the queries; beyond it they use the disk."
    )] = "1GB"
    work: Annotated[Path | None, typer.Option(
        "--work", metavar="DIR", **_ENGINE,
        help="Where finished parts are kept until the graph is done; GRAPH.work if not given.",
    )] = None
    keep_work: Annotated[bool, typer.Option("--keep-work", **_ENGINE, help="Leave the work folder when done.")] = False
    max_bad_lines: Annotated[float, typer.Option(
        "--max-bad-lines", metavar="SHARE", **_ENGINE, help="Stop when more of the lines than this cannot be read."
    )] = 0.001
    rejects: Annotated[Path | None, typer.Option(
        "--rejects", metavar="FILE", **_ENGINE, help="Where bad lines go; GRAPH.rejects.jsonl if not given."
    )] = None
    name: Annotated[str, typer.Option("--name", help="The graph's name; the folder's if not given.")] = ""
    licence: Annotated[str, typer.Option("--licence", help="The licence of the dump, for the manifest.")] = ""
    # fmt: on


def create(
    source: Annotated[str, typer.Argument(metavar="wikidata|yago|freebase", help="The kind of dump.")],
    dump: Annotated[
        Path, typer.Argument(metavar="DUMP", help="A file (plain, .gz, .bz2, .zst), or the folder of its parts.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="GRAPH", help="The folder to write the graph to.")],
    options: DumpOptions,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the graph at --out.")] = False,
    *,
    output: SavedOutput,
) -> None:
    """Make a graph from a dump of Wikidata, YAGO3 or Freebase.

    The same command resumes a build that was stopped.
    """
    from hynt.front.creating import create as created

    made = created(source, dump, out, overwrite=overwrite, progress=True, **vars(options)).to_dict()
    output.deliver(made, lambda console: print_result(made, console))


def print_result(told: dict[str, Any], console: Console) -> None:
    from hynt.creation.accounts import account_text

    counts = told["counts"]
    splits = ", ".join(f"{name} {counts[name]:,}" for name in ("train", "valid", "test") if name in counts)
    console.print(
        f"{visible(told['graph'])}: {counts['entities']:,} entities, {counts['relations']:,} relations "
        f"({counts['number_relations']:,} with numbers); facts: {splits}"
    )
    for name in ("lines", "facts", "qualifiers"):
        console.print(f"{name}: {account_text(told[name])}")
    for leak in told.get("leakage", {}).get("relations", []):
        console.print(
            f"removed {visible(leak['removed'])}: {leak['kind']} of {visible(leak['kept'])}, "
            f"{leak['shared']:,} of {leak['pairs']:,} pairs shared"
        )
    unknown = told["units"]["not_convertible"]
    if unknown:
        console.print(f"units not in the table: {', '.join(map(visible, unknown))}")
    if told["rejects"]:
        console.print(f"{told['rejected_lines']:,} lines could not be read: see {visible(told['rejects'])}")
    statistics = told.get("statistics")
    if statistics:
        console.print(
            "statistics: " + ", ".join(f"{key.replace('_', ' ')} {value:,}" for key, value in statistics.items())
        )
    else:
        console.print(f"statistics: hynt data stats {visible(told['graph'])}")
