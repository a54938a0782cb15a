"""`hynt create`: a graph from a dump of Wikidata, YAGO3 or Freebase."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hynt.cli.options import argument, option
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

    entities: Path | None = option(None, "Ids, one per line.", **_WHO, metavar="FILE")
    mapping: list[Path] | None = option(
        None, "Maps the ids of --entities: id TAB id. Give several to map in steps.", metavar="FILE", **_WHO
    )
    instance_of: list[str] | None = option(
        None, "Entities of this type. Give several for any of them.", metavar="TYPE", **_WHO
    )
    subclasses: bool = option(False, "wikidata: subclasses of --instance-of count too.", **_WHO)
    everything: bool = option(False, "Every entity of the dump.", "--all", **_WHO)
    redirects: Path | None = option(None, "wikidata: old ids, id TAB id it leads to.", metavar="FILE", **_WHO)
    language: str = option("en", "The language of names.", **_WHO)
    preferred_only: bool = option(
        False, "wikidata: where statements of a property are marked as preferred, only those.", **_WHAT
    )
    text: str = option("drop", "Drop text, or keep it as entities.", metavar="drop|keep", **_WHAT)
    keep_tails: bool = option(
        True,
        "Keep values outside the chosen entities, with names from a second pass over the dump; or drop their "
        "facts, as the paper does.",
        "--keep-tails/--closed-set",
        **_WHAT,
    )
    min_tail_uses: int = option(1, "Keep such a value only if it occurs this often.", min=1, **_WHAT)
    max_qualifiers: int | None = option(None, "The most qualifiers a fact may have.", min=0, **_WHAT)
    long_facts: str = option("shorten", "What to do with facts that have more.", metavar="shorten|drop", **_WHAT)
    mediators: Path | None = option(
        None,
        "freebase: the types of mediators, one per line, instead of those that the dump declares.",
        metavar="FILE",
        **_WHAT,
    )
    primaries: Path | None = option(
        None, "freebase: property TAB the mediator's property with the primary value.", metavar="FILE", **_WHAT
    )
    units: str = option("si", "Convert numbers to SI units, or keep them as they are.", metavar="si|keep", **_NUMBERS)
    unknown_units: str = option("drop", "What to do with numbers in unknown units.", metavar="drop|keep", **_NUMBERS)
    other_units: str = option(
        "drop",
        "What to do with numbers in another unit than most of their relation.",
        metavar="drop|keep|split",
        **_NUMBERS,
    )
    keep_leakage: bool = option(False, "Keep inverse and near-duplicate relations.", **_AFTER)
    outlier_rules: Path | None = option(None, "Limits for numbers and wrong facts, as TOML.", metavar="FILE", **_AFTER)
    mixed_relations: str = option(
        "split",
        "Relations with both numbers and entities: split them, or drop the kind that came second.",
        metavar="split|drop",
        **_AFTER,
    )
    split: str = option("8:1:1", "Shares of train, valid and test.", metavar="A:B:C", **_AFTER)
    seed: int = option(0, "The seed of the split.", min=0, max=LARGEST_SEED, **_AFTER)
    engine: str = option("duckdb", "One machine, or a cluster.", metavar="duckdb|spark", **_ENGINE)
    master: str = option("local[*]", "spark: its master, such as yarn or local[4].", **_ENGINE)
    workers: int | None = option(None, "duckdb: processes that parse; all cores if not given.", min=1, **_ENGINE)
    memory: str = option("1GB", "Memory for the queries; beyond it they use the disk.", **_ENGINE)
    work: Path | None = option(
        None,
        "Where finished parts are kept until the graph is done; GRAPH.work if not given.",
        metavar="DIR",
        **_ENGINE,
    )
    keep_work: bool = option(False, "Leave the work folder when done.", **_ENGINE)
    max_bad_lines: float = option(
        0.001, "Stop when more of the lines than this cannot be read.", metavar="SHARE", **_ENGINE
    )
    rejects: Path | None = option(
        None, "Where bad lines go; GRAPH.rejects.jsonl if not given.", metavar="FILE", **_ENGINE
    )
    name: str = option("", "The graph's name; the folder's if not given.")
    licence: str = option("", "The licence of the dump, for the manifest.")


def create(
    source: str = argument(..., "The kind of dump.", metavar="wikidata|yago|freebase"),
    dump: Path = argument(..., "A file (plain, .gz, .bz2, .zst), or the folder of its parts.", metavar="DUMP"),
    out: Path = option(..., "The folder to write the graph to.", metavar="GRAPH"),
    *,
    options: DumpOptions,
    overwrite: bool = option(False, "Replace the graph at --out."),
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
