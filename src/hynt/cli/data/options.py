"""The options that say how a source becomes a graph, the same for `check` and `import`."""

from __future__ import annotations

import csv
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from hynt.errors import UsageError

if TYPE_CHECKING:
    from hynt.formats.format import ReadOptions
    from hynt.graph.assembly import AssemblyPolicy


class AcrossSplits(StrEnum):
    KEEP = "keep"
    DROP = "drop"
    ERROR = "error"


class Units(StrEnum):
    SI = "si"
    KEEP = "keep"


class MixedRelations(StrEnum):
    ERROR = "error"
    SPLIT = "split"


class OnError(StrEnum):
    STOP = "stop"
    SKIP = "skip"


class StringLiterals(StrEnum):
    DROP = "drop"
    KEEP = "keep"


_SPLITTING, _READING, _TABLES, _NAMES = "Splits", "Reading", "Edge lists and RDF", "Names"

SourceArgument: TypeAlias = Annotated[Path, typer.Argument(metavar="SOURCE", help="A file, or a folder of files.")]
FormatOption: TypeAlias = Annotated[
    str, typer.Option("--format", "-f", metavar="F", help="The format of the source: see `hynt data list`.")
]
SplitOption: TypeAlias = Annotated[
    str, typer.Option("--split", metavar="8:1:1", rich_help_panel=_SPLITTING,
        help="Make new splits with these shares of train, valid and test, instead of keeping given ones."),
]  # fmt: skip
SplitByOption: TypeAlias = Annotated[
    str, typer.Option("--split-by", metavar="head,relation", rich_help_panel=_SPLITTING,
        help="Make new splits; facts that agree in these parts go together, such as a time series."),
]  # fmt: skip
SeedOption: TypeAlias = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", min=0, max=2**63 - 1, rich_help_panel=_SPLITTING, help="Draw other splits."),
]
AcrossOption: TypeAlias = Annotated[
    AcrossSplits, typer.Option("--across-splits", rich_help_panel=_SPLITTING,
        help="What to do with a fact in two given splits; drop takes it out of the later one."),
]  # fmt: skip
LeakageOption: TypeAlias = Annotated[
    bool, typer.Option("--remove-leakage", rich_help_panel=_SPLITTING,
        help="Remove relations that give others away: inverses and near-duplicates."),
]  # fmt: skip
UnitsOption: TypeAlias = Annotated[
    Units | None, typer.Option("--units", rich_help_panel=_READING,
        help="Convert quantities to SI, or keep them; as the format has it if not given.", show_default=False),
]  # fmt: skip
MixedOption: TypeAlias = Annotated[
    MixedRelations, typer.Option("--mixed-relations", rich_help_panel=_READING,
        help="A relation with entities and numbers: refuse it, or split it in two."),
]  # fmt: skip
OnErrorOption: TypeAlias = Annotated[
    OnError, typer.Option("--on-error", rich_help_panel=_READING,
        help="A record that cannot be kept: stop and write nothing, or skip and count it."),
]  # fmt: skip
StrictOption: TypeAlias = Annotated[
    bool, typer.Option("--strict", rich_help_panel=_READING, help="Refuse odd things that are else kept and noted.")
]
RulesOption: TypeAlias = Annotated[
    Path | None, typer.Option("--outlier-rules", metavar="FILE", rich_help_panel=_READING,
        help="Leave out the facts that this TOML file rules out."),
]  # fmt: skip
NumericOption: TypeAlias = Annotated[
    list[str] | None, typer.Option("--numeric", metavar="COLUMN,…", rich_help_panel=_TABLES,
        help="csv-edges: the columns (or relations) that hold numbers.", show_default=False),
]  # fmt: skip
DatesOption: TypeAlias = Annotated[
    list[str] | None, typer.Option("--dates", metavar="COLUMN,…", rich_help_panel=_TABLES,
        help="csv-edges: the columns (or relations) that hold dates.", show_default=False),
]  # fmt: skip
HeadOption: TypeAlias = Annotated[
    str, typer.Option("--head", metavar="COLUMN", rich_help_panel=_TABLES, help="csv-edges: the column of heads.")
]
RelationOption: TypeAlias = Annotated[
    str, typer.Option("--relation", metavar="COLUMN", rich_help_panel=_TABLES,
        help="csv-edges: the column of relations."),
]  # fmt: skip
TailOption: TypeAlias = Annotated[
    str, typer.Option("--tail", metavar="COLUMN", rich_help_panel=_TABLES, help="csv-edges: the column of tails.")
]
DelimiterOption: TypeAlias = Annotated[
    str, typer.Option("--delimiter", metavar="CHARACTER", rich_help_panel=_TABLES,
        help="csv-edges: comma, semicolon, tab, pipe, or the character itself."),
]  # fmt: skip
LiteralsOption: TypeAlias = Annotated[
    StringLiterals, typer.Option("--string-literals", rich_help_panel=_TABLES,
        help="rdf: drop and count text literals, or keep them as entities."),
]  # fmt: skip
LanguageOption: TypeAlias = Annotated[
    str, typer.Option("--label-language", metavar="LANGUAGE", rich_help_panel=_TABLES,
        help="rdf: the language of the rdfs:labels that become names."),
]  # fmt: skip
EntityLabelsOption: TypeAlias = Annotated[
    Path | None, typer.Option("--entity-labels", metavar="FILE", rich_help_panel=_NAMES,
        help="Names of entities: id TAB name."),
]  # fmt: skip
RelationLabelsOption: TypeAlias = Annotated[
    Path | None, typer.Option("--relation-labels", metavar="FILE", rich_help_panel=_NAMES,
        help="Names of relations: id TAB name."),
]  # fmt: skip


def assembly_policy(
    split: str, split_by: str, seed: int | None, across: AcrossSplits, remove_leakage: bool, rules: Path | None
) -> AssemblyPolicy:
    """What to do with the facts once they are read."""
    from hynt.graph.assembly import AssemblyPolicy
    from hynt.graph.outlier_rules import read_outlier_rules
    from hynt.graph.splitting import SplitRule, parse_shares

    rule = None
    if split or split_by:
        shares = parse_shares(split) if split else SplitRule().shares
        rule = SplitRule(shares, seed or 0, tuple(names_in(split_by, "--split-by")))
    elif seed is not None:
        raise UsageError(
            "a seed alone makes no splits.", where="--seed", advice="Say which ones to make: --split 8:1:1 --seed N."
        )
    return AssemblyPolicy(
        split=rule,
        across_splits=across.value,
        remove_leakage=remove_leakage,
        outlier_rules=read_outlier_rules(rules) if rules else None,
    )


def read_options(
    strict: bool,
    numeric: list[str] | None,
    dates: list[str] | None,
    head: str,
    relation: str,
    tail: str,
    delimiter: str,
    string_literals: StringLiterals,
    label_language: str,
) -> ReadOptions:
    """How to read the files."""
    from hynt.formats.format import ReadOptions

    return ReadOptions(
        strict=strict,
        numeric=tuple(name for text in numeric or () for name in names_in(text, "--numeric")),
        dates=tuple(name for text in dates or () for name in names_in(text, "--dates")),
        head=head, relation=relation, tail=tail, delimiter=delimiter, string_literals=string_literals.value,
        label_language=label_language,
    )  # fmt: skip


def names_in(text: str, option: str) -> list[str]:
    """Names separated by commas; one that holds a comma stands in double quotes."""
    if not text:
        return []
    names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True))]
    if not all(names):
        raise UsageError(f"{text!r} has an empty name.", where=option, advice="Separate names by single commas.")
    return names
