"""The options of `hynt create`, by what they are about."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

_WHO, _WHAT, _NUMBERS, _AFTER, _ENGINE = "Which entities", "Which facts", "Numbers", "Cleaning and splitting", "Engine"

SourceName: TypeAlias = Annotated[str, typer.Argument(metavar="wikidata|yago|freebase", help="The kind of dump.")]
DumpPath: TypeAlias = Annotated[
    Path, typer.Argument(help="A file (plain, .gz, .bz2, .zst), or the folder of its parts.")
]
OutFolder: TypeAlias = Annotated[Path, typer.Option("--out", metavar="GRAPH", help="The folder to write the graph to.")]
Entities: TypeAlias = Annotated[
    Path | None, typer.Option("--entities", metavar="FILE", rich_help_panel=_WHO, help="Ids, one a line.")
]
Mapping: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--mapping",
        metavar="FILE",
        rich_help_panel=_WHO,
        help="Maps the ids of --entities: id TAB id. Give several to map in steps.",
    ),
]
InstanceOf: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--instance-of",
        metavar="TYPE",
        rich_help_panel=_WHO,
        help="Entities of this type. Give several for any of them.",
    ),
]
Subclasses: TypeAlias = Annotated[
    bool, typer.Option("--subclasses", rich_help_panel=_WHO, help="wikidata: subclasses of --instance-of count too.")
]
Everything: TypeAlias = Annotated[bool, typer.Option("--all", rich_help_panel=_WHO, help="Every entity of the dump.")]
Redirects: TypeAlias = Annotated[
    Path | None,
    typer.Option("--redirects", metavar="FILE", rich_help_panel=_WHO, help="wikidata: old ids, id TAB id it leads to."),
]
Language: TypeAlias = Annotated[str, typer.Option("--language", rich_help_panel=_WHO, help="The language of names.")]
PreferredOnly: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--preferred-only",
        rich_help_panel=_WHAT,
        help="wikidata: where statements of a property are marked as preferred, only those.",
    ),
]
TextRule: TypeAlias = Annotated[
    str, typer.Option("--text", metavar="drop|keep", rich_help_panel=_WHAT, help="Drop text, or keep it as entities.")
]
MaxQualifiers: TypeAlias = Annotated[
    int | None,
    typer.Option("--max-qualifiers", min=0, rich_help_panel=_WHAT, help="The most qualifiers a fact may have."),
]
LongFacts: TypeAlias = Annotated[
    str,
    typer.Option(
        "--long-facts", metavar="shorten|drop", rich_help_panel=_WHAT, help="What becomes of facts beyond that."
    ),
]
Mediators: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--mediators",
        metavar="FILE",
        rich_help_panel=_WHAT,
        help="freebase: the types of mediators, one a line, instead of those that the dump declares.",
    ),
]
Primaries: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--primaries",
        metavar="FILE",
        rich_help_panel=_WHAT,
        help="freebase: property TAB the mediator's property with the primary value.",
    ),
]
Units: TypeAlias = Annotated[
    str,
    typer.Option(
        "--units",
        metavar="si|keep",
        rich_help_panel=_NUMBERS,
        help="Convert numbers to SI units, or keep them as they are.",
    ),
]
UnknownUnits: TypeAlias = Annotated[
    str,
    typer.Option(
        "--unknown-units",
        metavar="drop|keep",
        rich_help_panel=_NUMBERS,
        help="Numbers in a unit that the table does not know.",
    ),
]
OtherUnits: TypeAlias = Annotated[
    str,
    typer.Option(
        "--other-units",
        metavar="drop|keep|split",
        rich_help_panel=_NUMBERS,
        help="Numbers in another unit than most of their relation.",
    ),
]
KeepLeakage: TypeAlias = Annotated[
    bool, typer.Option("--keep-leakage", rich_help_panel=_AFTER, help="Keep inverse and near-duplicate relations.")
]
OutlierRules: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--outlier-rules", metavar="FILE", rich_help_panel=_AFTER, help="Limits for numbers and wrong facts, as TOML."
    ),
]
MixedRelations: TypeAlias = Annotated[
    str,
    typer.Option(
        "--mixed-relations",
        metavar="split|drop",
        rich_help_panel=_AFTER,
        help="Relations with both numbers and entities: split them, or drop the kind that came second.",
    ),
]
SplitShares: TypeAlias = Annotated[
    str, typer.Option("--split", metavar="A:B:C", rich_help_panel=_AFTER, help="Shares of train, valid and test.")
]
Seed: TypeAlias = Annotated[int, typer.Option("--seed", rich_help_panel=_AFTER, help="Of the split.")]
Engine: TypeAlias = Annotated[
    str, typer.Option("--engine", metavar="duckdb|spark", rich_help_panel=_ENGINE, help="One machine, or a cluster.")
]
Master: TypeAlias = Annotated[
    str, typer.Option("--master", rich_help_panel=_ENGINE, help="spark: its master, such as yarn or local[4].")
]
Workers: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, rich_help_panel=_ENGINE, help="duckdb: processes that parse; all cores if not given."
    ),
]
Memory: TypeAlias = Annotated[
    str, typer.Option("--memory", rich_help_panel=_ENGINE, help="For the queries; beyond it they use the disk.")
]
Work: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--work",
        metavar="DIR",
        rich_help_panel=_ENGINE,
        help="Where finished parts are kept until the graph is done; GRAPH.work if not given.",
    ),
]
KeepWork: TypeAlias = Annotated[
    bool, typer.Option("--keep-work", rich_help_panel=_ENGINE, help="Leave the work folder when done.")
]
MaxBadLines: TypeAlias = Annotated[
    float,
    typer.Option(
        "--max-bad-lines",
        metavar="SHARE",
        rich_help_panel=_ENGINE,
        help="Stop when more of the lines than this cannot be read.",
    ),
]
Rejects: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--rejects",
        metavar="FILE",
        rich_help_panel=_ENGINE,
        help="Where bad lines go; GRAPH.rejects.jsonl if not given.",
    ),
]
Name: TypeAlias = Annotated[str, typer.Option("--name", help="The graph's name; the folder's if not given.")]
Licence: TypeAlias = Annotated[str, typer.Option("--licence", help="The licence of the dump, for the manifest.")]
Overwrite: TypeAlias = Annotated[bool, typer.Option("--overwrite", help="Replace the graph at --out.")]
