"""`hynt data import`: a source of any format becomes a checked, saved graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    OnError,
    OnErrorOption,
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
from hynt.cli.output import JsonFlag, SaveFile, check_save, deliver, visible
from hynt.cli.progress import ReadingProgress

if TYPE_CHECKING:
    from rich.console import Console


def import_source(
    source: SourceArgument,
    format: FormatOption,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder to make.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a saved graph that is there.")] = False,
    split: SplitOption = "",
    split_by: SplitByOption = "",
    seed: SeedOption = None,
    across_splits: AcrossOption = AcrossSplits.KEEP,
    remove_leakage: LeakageOption = False,
    units: UnitsOption = None,
    mixed_relations: MixedOption = MixedRelations.ERROR,
    on_error: OnErrorOption = OnError.STOP,
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
    name: Annotated[str, typer.Option("--name", help="The graph's name; the source's if not given.")] = "",
    licence: Annotated[str, typer.Option("--licence", help="The licence of the data, for the manifest.")] = "",
    source_words: Annotated[str, typer.Option("--source", help="The source in words, for the manifest.")] = "",
    json: JsonFlag = False,
    save: SaveFile = None,
) -> None:
    """Read a source and save it as a graph folder. Nothing is written unless everything went well."""
    from hynt.formats.importing import ImportOptions, import_graph

    check_save(save)
    options = ImportOptions(
        reading=read_options(strict, numeric, dates, head, relation, tail, delimiter, string_literals, label_language),
        assembly=assembly_policy(split, split_by, seed, across_splits, remove_leakage, outlier_rules),
        units=units.value if units else None,
        mixed_relations=mixed_relations.value,
        on_error=on_error.value,
        entity_labels=entity_labels,
        relation_labels=relation_labels,
        name=name,
        licence=licence,
        source=source_words,
    )
    with interruptible(), ReadingProgress() as progress:
        done = import_graph(source, format, out, options, overwrite=overwrite, progress=progress)
    manifest = done.manifest
    result: dict[str, Any] = {
        "graph": str(out), "name": manifest.name, "format": format, "counts": dict(manifest.counts),
        "importing": dict(manifest.importing), **problems_of(done.report),
    }  # fmt: skip
    deliver(result, as_json=json, save=save, text=lambda screen: _tell(result, screen))


def _tell(result: dict[str, Any], out: Console) -> None:
    importing = result["importing"]
    rejected = sum(importing["rejected"].values())
    out.print(f"{plural(importing['read'], 'record')} read, {importing['kept']:,} kept, {rejected:,} rejected.")
    tell_problems({**result, **importing}, out)
    tell_outcome({**importing, "counts": result["counts"]}, out)
    out.print(f"Saved in {visible(result['graph'])}", soft_wrap=True)
