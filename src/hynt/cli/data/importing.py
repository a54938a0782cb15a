"""`hynt data import`: a source of any format becomes a checked, saved graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from hynt.cli.data.options import READING, FormatOption, SourceOptions, SourcesArgument
from hynt.cli.options import AsOf, GraphArgument, about, argument, option
from hynt.cli.output import SavedOutput, note_to_person
from hynt.errors import UsageError
from hynt.files import check_new_folder
from hynt.names import plural
from hynt.progress import ShownProgress, visible
from hynt.runs import LARGEST_SEED

if TYPE_CHECKING:
    from rich.console import Console

    from hynt.formats.format import ReadReport
    from hynt.formats.importing import ImportResult
    from hynt.front.graphs import ImportWords


@dataclass(frozen=True)
class ImportedSourceOptions(SourceOptions):
    """The same, and what the graph's manifest says of it."""

    published: str = option(
        "", "A published graph: its layout, licence and counts are known; see `list`.", metavar="NAME"
    )
    on_error: Literal["stop", "skip"] = option(
        "stop", "A record that cannot be kept: stop and write nothing, or skip and count it.", **READING
    )
    name: str = option("", "The graph's name; the source's if not given.")
    licence: str = option("", "The licence of the data, for the manifest.")
    source_words: str = option("", "The source in words, for the manifest.", "--source")


def import_source(
    source: SourcesArgument = None,
    out: Path | None = option(None, "The folder to make.", "--out", "-o", metavar="DIR"),
    format: FormatOption = "",
    folder: Path | None = option(None, "With --published: its folder.", "--from", metavar="FOLDER"),
    preview: bool = option(False, "Show the first facts, all relations and what is left out; write nothing."),
    overwrite: bool = option(False, "Replace a graph that is already there."),
    *,
    options: ImportedSourceOptions,
    output: SavedOutput,
) -> None:
    """Read a source and save it as a graph folder. Nothing is written unless everything went well."""
    from hynt.front.graphs import import_source as made_of

    words = options.words()
    source = [*([folder] if folder else []), *(source or [])]
    if not source:
        raise UsageError("no source was given.", where="SOURCE", advice="Give a file or a folder.")
    if preview:
        _preview(source, format, words, output)
        return
    if out is None:
        raise UsageError(
            "no folder was given to save the graph in.", where="--out", advice="Say --out DIR, or --preview."
        )
    check_new_folder(out, "--out")
    with about(source[0]), ShownProgress() as progress:
        done = made_of(source, format, out, overwrite=overwrite, progress=progress, **words)
    _deliver(done, output)


def _deliver(done: ImportResult, output: SavedOutput) -> None:
    result = done.to_dict()
    tell_hints(result)
    output.deliver(result, lambda screen: _tell(result, done, screen))


def _tell(result: dict[str, Any], done: ImportResult, out: Console) -> None:
    importing = result["importing"]
    if done.report.inferred:
        out.print(f"Read as {result['format']}.")
    rejected = sum(importing["rejected"].values())
    out.print(f"{plural(importing['read'], 'record')} read, {importing['kept']:,} kept, {rejected:,} rejected.")
    tell_problems({**result, **importing}, out)
    tell_outcome({**importing, "counts": result["counts"]}, out)
    out.print(f"Saved in {visible(result['graph'])}")
    tell_beside(result["beside"], out)


def _preview(source: list[Path], format: str, words: dict[str, Any], output: SavedOutput) -> None:
    from hynt.front.graphs import check_source

    with about(source[0]), ShownProgress() as progress:
        found = check_source(source, format, preview=True, progress=progress, **words)
    result = found.to_dict()
    tell_hints(result)
    output.deliver(result, lambda out: _tell_preview(result, found.report, out))
    if not found.ok and words["on_error"] == "stop":
        raise typer.Exit(1)


def _tell_preview(result: dict[str, Any], report: ReadReport, out: Console) -> None:
    _tell_check({**result, "outcome": None}, report, out)
    outcome = result["outcome"]
    out.print(f"The first {plural(len(outcome['facts']), 'fact')}:")
    for fact in outcome["facts"]:
        out.print(f"  {visible(fact)}")
    out.print(f"{plural(len(outcome['relations']), 'relation')}:")
    for one in outcome["relations"]:
        kind = f"number{' in ' + one['unit'] if one['unit'] else ''}" if one["kind"] == "number" else "entity"
        out.print(f"  {visible(one['label'] or one['relation'])}: {kind}, {plural(one['uses'], 'use')}")
    tell_outcome(outcome, out)
    out.print("Nothing was written.")


def merge(
    graphs: list[str] = argument(..., "Saved graphs; the first keeps its splits.", metavar="GRAPH…"),
    out: Path = option(..., "The folder to make.", "--out", "-o", metavar="DIR"),
    split: str = option("", "Make new splits with these shares.", metavar="8:1:1"),
    seed: int | None = option(None, "With --split: draw others.", metavar="N", min=0, max=LARGEST_SEED),
    overwrite: bool = option(False, "Replace a graph that is already there."),
    name: str = option("", "The graph's name; the first one's if not given."),
    *,
    output: SavedOutput,
) -> None:
    """Put the facts of several graphs into one. The first keeps its splits; the facts of the others join train, without
    those that valid or test asks for."""
    from hynt.front.graphs import import_source as made_of
    from hynt.graph.knowledge_graph import read_manifest
    from hynt.graph.storage import graph_folder

    check_new_folder(out, "--out")
    folders = [graph_folder(graph) for graph in graphs]
    words: ImportWords = {
        "split": split,
        "seed": seed,
        "name": name or read_manifest(folders[0]).name,
        "units": "keep",
        "mixed_relations": "split",
    }
    with ShownProgress() as progress:
        done = made_of(folders, "parquet", out, overwrite=overwrite, progress=progress, **words)
    _deliver(done, output)


# `hynt data check`: read a source whole, change nothing, and say what is wrong with it.


def check(
    options: SourceOptions, source: SourcesArgument = None, format: FormatOption = "", *, output: SavedOutput
) -> None:
    """Read a whole source and change nothing. Exits with 1 if records cannot be kept, and shows the first 20."""
    from hynt.front.graphs import check_source

    if not source:
        raise UsageError("no source was given.", where="SOURCE", advice="Give a file or a folder.")
    with about(source[0]), ShownProgress() as progress:
        found = check_source(source, format, progress=progress, **options.words())
    result = found.to_dict()
    tell_hints(result)
    output.deliver(result, lambda out: _tell_check(result, found.report, out))
    if not found.ok:
        raise typer.Exit(1)


def _tell_check(result: dict[str, Any], report: ReadReport, out: Console) -> None:
    if report.inferred:
        out.print(f"Read as {result['format']}.")
    rejected = sum(result["rejected"].values())
    out.print(f"{plural(result['read'], 'record')} read, {result['kept']:,} kept, {rejected:,} rejected.")
    tell_problems(result, out)
    if result["outcome"]:
        tell_outcome(result["outcome"], out)
        out.print("Nothing stands in the way of an import.")
    tell_beside(result["beside"], out)


# What a check or an import found, in words.


def tell_hints(result: Mapping[str, Any]) -> None:
    """What the user may have forgotten to say, on standard error."""
    for hint in result["hints"]:
        note_to_person(hint)


def tell_problems(result: Mapping[str, Any], out: Console) -> None:
    """The first problems with place, reason and advice, a count per reason, and the odd things that were kept."""
    rejected: dict[str, int] = result["rejected"]
    if rejected:
        _tell_list(result["problems"], out)
        if sum(rejected.values()) > len(result["problems"]):
            out.print(f"… these are the first {len(result['problems'])}.")
        out.print("By reason: " + _counted(rejected))
    for words, left in (("Left out", True), ("Odd, but kept (--strict refuses it)", False)):
        counts = {reason: count for reason, count in result["noted"].items() if (reason in result["left_out"]) is left}
        if counts:
            out.print(f"{words}: {_counted(counts)}")
            examples = {note["reason"]: note for note in reversed(result["notes"]) if note["reason"] in counts}
            _tell_list([examples[reason] for reason in counts if reason in examples][:3], out)


def tell_beside(beside: list[dict[str, str]], out: Console) -> None:
    """Every file that was left aside, and how to have it read."""
    if beside:
        out.print("Not read, in the same folder:")
    for file in beside:
        reads = f"; to read it, add: {visible(file['option'])}" if file["option"] else ""
        out.print(f"  {visible(Path(file['file']).name)}: {file['what']}{reads}")


def tell_outcome(outcome: Mapping[str, Any], out: Console) -> None:
    """What the graph holds, and what was done or left on the way there."""
    counts = outcome["counts"]
    splits = {split: counts[split] for split in ("train", "valid", "test") if split in counts}
    listed = ", ".join(f"{split} {count:,}" for split, count in splits.items())
    out.print(f"{plural(sum(splits.values()), 'fact')}: {listed}.")
    out.print(
        f"{plural(counts['entities'], 'entity', 'entities')}; {plural(counts['relations'], 'relation')}, "
        f"{counts['number_relations']:,} of them with numbers."
    )
    out.print(f"{plural(outcome['duplicates'], 'duplicate')} dropped.")
    made = outcome["split"]
    if made["rule"] != "given":
        shares = ":".join(f"{share:g}" for share in made["shares"])
        grouped = f", facts with the same {' and '.join(made['group_by'])} together" if made["group_by"] else ""
        out.print(f"Splits made by content, {shares} with seed {made['seed']}{grouped}.")
        if made["brought_into_train"]:
            moved = plural(made["brought_into_train"], "fact")
            out.print(f"{moved} went to train, so that it has every entity and relation.")
    across = outcome.get("across_splits")
    if across:
        pairs = {key.replace("_", " "): count for key, count in across.items() if "_and_" in key}
        dropped = f"; {across['dropped']:,} dropped from the later one" if "dropped" in across else ""
        if any(pairs.values()):
            out.print(f"Facts in two splits: {_counted(pairs)}{dropped}.")
    if "added" in outcome:
        joined, held_out = outcome["added"]["facts"], outcome["added"]["held_out"]
        left = f"; {held_out:,} left out, which valid or test asks for" if held_out else ""
        out.print(f"{plural(joined, 'fact')} of further sources joined train{left}.")
    if "published" in outcome:
        told = outcome["published"]
        for name, count in told["differences"].items():
            counted = f"{count['published']:,} {name.replace('_', ' ')}"
            out.print(f"{told['name']} was published with {counted}, and here are {count['here']:,}.")
        if not told["differences"]:
            out.print(f"All counts are those that {told['name']} was published with.")
    tell_missing(outcome["missing_from_train"], out)
    _tell_removals(outcome, out)


def tell_missing(lacking: Mapping[str, int], out: Console) -> None:
    """How many entities and relations of valid and test train lacks, if any."""
    if any(lacking.values()):
        entities = plural(lacking["entities"], "entity", "entities")
        out.print(f"Train lacks {entities} and {plural(lacking['relations'], 'relation')} of the others.")


def _tell_removals(outcome: Mapping[str, Any], out: Console) -> None:
    if "corrections" in outcome:
        made = outcome["corrections"]
        out.print(f"Corrections: {plural(made['removed'], 'fact')} removed, {made['replaced']:,} replaced.")
    if "outliers" in outcome:
        out.print(f"{plural(outcome['outliers']['removed_facts'], 'fact')} removed by the outlier rules:")
        for rule in outcome["outliers"]["rules"]:
            out.print(f"  {rule['removed_facts']:,}  {visible(rule['rule'])}")
    if "leakage" in outcome:
        if outcome["leakage"]["relations"]:
            removed = plural(outcome["leakage"]["removed_facts"], "fact")
            out.print(f"{removed} removed because the relation gives another away:")
            _tell_leaks(outcome["leakage"]["relations"], out)
        else:
            out.print("No relation gives another away.")
    left = outcome.get("leakage_left")
    if left:
        out.print("Relations that give others away (--remove-leakage removes the first of each two):")
        _tell_leaks(left, out)


def _tell_leaks(leaks: list[dict[str, Any]], out: Console) -> None:
    for leak in leaks:
        pair = (leak["removed"], leak["kept"], leak["pairs"], leak["kept_pairs"])
        out.print(f"  {leak_text(leak, *pair)} (overlap {leak['overlap']:.2f})")


def leak_text(leak: Mapping[str, Any], one: str, other: str, pairs: int, other_pairs: int) -> str:
    """How a relation gives another away."""
    kind = "an inverse" if leak["kind"] == "inverse" else "a near-duplicate"
    shared = f"{leak['shared']:,} shared pairs of {pairs:,} and {other_pairs:,}"
    return f"{visible(one)} is {kind} of {visible(other)}: {shared}"


def _tell_list(problems: list[dict[str, str]], out: Console) -> None:
    """Each with its place; what to do once, after the last of those in a row that it is said of."""
    for problem, following in zip_longest(problems, problems[1:]):
        out.print(f"{visible(problem['where'])}: {problem['reason']}: {visible(problem['what'])}")
        if problem["advice"] and (following is None or following["advice"] != problem["advice"]):
            out.print(f"  what to do: {visible(problem['advice'])}")


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {count:,}" for reason, count in sorted(counts.items(), key=lambda item: -item[1]))


# `hynt data export`: a graph as files of another format.


def export(
    graph: GraphArgument,
    out: Path = option(..., "What to write; it must not exist yet.", "--out", "-o", metavar="PATH"),
    format: str = option("", "The format to write, if the name of PATH does not say.", "--format", "-f", metavar="F"),
    as_of: AsOf = None,
    *,
    output: SavedOutput,
) -> None:
    """Write a graph in another format."""
    from hynt.front.graphs import export_graph, read_graph

    loaded = read_graph(graph, as_of)
    files = [str(path) for path in export_graph(loaded, out, format)]
    result: dict[str, Any] = {
        "graph": graph,
        "format": format,
        "out": str(out),
        "files": files,
        "facts": {split: len(table) for split, table in loaded.splits.items()},
    }
    told = f"{len(loaded):,} facts written to {visible(str(out))}"
    output.deliver(result, lambda screen: screen.print(told))
