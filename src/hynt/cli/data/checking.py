"""`hynt data check`: read a source whole, change nothing, and say what is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from hynt.cli.data.options import (
    AcrossOption,
    AcrossSplits,
    DatesOption,
    DelimiterOption,
    EntityLabelsOption,
    FormatOption,
    HeadOption,
    LanguageOption,
    LeakageOption,
    LiteralsOption,
    MixedOption,
    MixedRelations,
    NumericOption,
    RelationLabelsOption,
    RelationOption,
    RulesOption,
    SeedOption,
    SourceArgument,
    SplitByOption,
    SplitOption,
    StrictOption,
    StringLiterals,
    TailOption,
    UnitsOption,
    assembly_policy,
    read_options,
)
from hynt.cli.data.outcome import plural, problems_of, tell_outcome, tell_problems
from hynt.cli.interruption import interruptible
from hynt.cli.output import JsonFlag, SaveFile, check_save, deliver
from hynt.cli.progress import ReadingProgress

if TYPE_CHECKING:
    from rich.console import Console


def check(
    source: SourceArgument,
    format: FormatOption,
    split: SplitOption = "",
    split_by: SplitByOption = "",
    seed: SeedOption = None,
    across_splits: AcrossOption = AcrossSplits.KEEP,
    remove_leakage: LeakageOption = False,
    units: UnitsOption = None,
    mixed_relations: MixedOption = MixedRelations.ERROR,
    strict: StrictOption = False,
    outlier_rules: RulesOption = None,
    numeric: NumericOption = None,
    dates: DatesOption = None,
    head: HeadOption = "",
    relation: RelationOption = "",
    tail: TailOption = "",
    delimiter: DelimiterOption = "",
    string_literals: LiteralsOption = StringLiterals.DROP,
    label_language: LanguageOption = "en",
    entity_labels: EntityLabelsOption = None,
    relation_labels: RelationLabelsOption = None,
    json: JsonFlag = False,
    save: SaveFile = None,
) -> None:
    """Read a source whole and change nothing. Leaves with 1 when records cannot be kept, and shows the first 20."""
    from hynt.formats.importing import ImportOptions, check_source

    check_save(save)
    options = ImportOptions(
        reading=read_options(strict, numeric, dates, head, relation, tail, delimiter, string_literals, label_language),
        assembly=assembly_policy(split, split_by, seed, across_splits, remove_leakage, outlier_rules),
        units=units.value if units else None,
        mixed_relations=mixed_relations.value,
        entity_labels=entity_labels,
        relation_labels=relation_labels,
    )
    with interruptible(), ReadingProgress() as progress:
        report, outcome = check_source(source, format, options, progress=progress)
    result: dict[str, Any] = {
        "ok": not report.rejected, "source": str(source), "format": format,
        **report.to_mapping(), **problems_of(report), "outcome": outcome or None,
    }  # fmt: skip
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
