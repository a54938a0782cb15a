"""Graphs in and out in one call, and what there is to choose from."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from hynt.errors import DataError, UsageError
from hynt.formats.format import ReadOptions, ReadReport, UnitRule
from hynt.graph.encoding import MixedRelations
from hynt.graph.knowledge_graph import KnowledgeGraph, read_manifest
from hynt.graph.splitting import SPLITS, AcrossSplits, SplitRule
from hynt.graph.units.conversion import require
from hynt.markup import shown
from hynt.names import check_options
from hynt.results import PlainValues

if TYPE_CHECKING:
    from hynt.formats.importing import ImportOptions, ImportResult
    from hynt.front.jobs import Watching

AnyPath = str | os.PathLike[str]


def read_graph(source: AnyPath, version: int | None = None) -> KnowledgeGraph:
    """A saved graph by its folder, or a built-in one by its name: "world" comes with hynt. The folder of a run gives
    the graph that it answers from, with all updates, or as it was after `version` of them.

    >>> hynt.read_graph("world")
    <graph world: 33,147 facts (train 26,576, valid 3,302, test 3,269), 1,838 entities, 144 relations, 93 of them with \
numbers>
    """
    from hynt.runs.journal import graph_as_of

    return graph_as_of(source, version)


def import_graph(
    source: AnyPath | Sequence[AnyPath],
    format: str | None = None,  # noqa: A002 - the word users know it by
    out: AnyPath | None = None,
    *,
    overwrite: bool = False,
    progress: Watching = None,
    **options: Unpack[ImportWords],
) -> KnowledgeGraph:
    """Reads facts from a file or a folder of files, in one of the formats that `hynt.list_formats` lists; with `out`
    the graph is also saved there. Of several sources the first that has splits keeps them, and the facts of the others
    join train; saved graphs are sources too, as for `hynt data merge`.

    Without `format`, file names and first lines decide, where they leave no doubt. A record that cannot be kept is a
    `DataError` with its file and line, unless `on_error="skip"`; `import_source` gives the account of
    what became of each. Text that looks like numbers or dates and is not named is a warning. The options are those of
    `hynt data import`.

    >>> from pathlib import Path
    >>> _ = Path("facts.csv").write_text("head,relation,tail,year\\nAnn,height,1.7,2020\\nAnn,knows,Bob,2021\\n")
    >>> graph = hynt.import_graph("facts.csv", "csv-edges", numeric=["height", "year"])
    >>> print("\\n".join(graph["Ann"].texts()))
    Ann · height · 1.7 (year 2020)
    Ann · knows · Bob (year 2021)
    """
    from hynt.formats.outcome import hints_for_programs

    graph = import_source(source, format, out, overwrite=overwrite, progress=progress, **options).graph
    for hint in hints_for_programs(graph):
        warnings.warn(hint, stacklevel=2)
    return graph


def import_source(
    source: AnyPath | Sequence[AnyPath],
    format: str | None = None,  # noqa: A002 - the word users know it by
    out: AnyPath | None = None,
    *,
    overwrite: bool = False,
    progress: Watching = None,
    **options: Unpack[ImportWords],
) -> ImportResult:
    """Does what `import_graph` does, and gives the account of it with the `graph`: how much was read, kept and left
    out, the first rejected records with place and reason, and what may have been overlooked.

    >>> from pathlib import Path
    >>> _ = Path("facts.csv").write_text("head,relation,tail\\nAnn,height,1.7\\nBob,height,tall\\n")
    >>> made = hynt.import_source("facts.csv", numeric=["height"], on_error="skip")
    >>> made["importing"]["rejected"], made.graph["Ann"].texts()
    ({'bad-number': 1}, ['Ann · height · 1.7'])
    >>> made
    <2 records of facts.csv: 1 kept, 1 rejected>
    facts.csv:3: 'tall' is not a number.
    """
    from hynt.formats.importing import import_graph as import_to
    from hynt.front.jobs import watched
    from hynt.interruption import interruptible

    wanted, folder = import_options(**options), None if out is None else Path(out)
    with interruptible(), watched(progress) as told:
        return import_to(_paths(source), format or "", folder, wanted, overwrite=overwrite, progress=told)


def check_source(
    source: AnyPath | Sequence[AnyPath],
    format: str | None = None,  # noqa: A002 - the word users know it by
    *,
    preview: bool = False,
    progress: Watching = None,
    **options: Unpack[ImportWords],
) -> SourceCheck:
    """Reads what `import_graph` would read, to the end, and says what is wrong with it and what a graph of it would
    hold; nothing is written. A `preview` leaves out what cannot be kept, and shows the first facts and all relations.

    >>> from pathlib import Path
    >>> _ = Path("facts.csv").write_text("head,relation,tail\\nAnn,height,1.7\\nBob,height,tall\\n")
    >>> found = hynt.check_source("facts.csv", preview=True, numeric=["height"])
    >>> found.ok, found["rejected"], found["outcome"]["facts"]
    (False, {'bad-number': 1}, ['Ann · height · 1.7'])
    >>> found["problems"][0]["where"]
    'facts.csv:3'
    """
    from hynt.formats.importing import check_source as check
    from hynt.front.jobs import watched
    from hynt.interruption import interruptible

    paths, wanted = _paths(source), import_options(**options)
    with interruptible(), watched(progress) as told:
        found = check(paths, format or "", wanted, preview=preview, progress=told)
    return SourceCheck(tuple(paths), format or "", *found)


@dataclass(frozen=True, eq=False, repr=False)
class SourceCheck(PlainValues):
    """What was found in a source, and what a graph of it would hold."""

    sources: tuple[Path, ...]
    format: str  # as it was given; "" where names and first lines decide
    report: ReadReport
    outcome: Mapping[str, Any]  # empty where bad records leave none

    @property
    def ok(self) -> bool:
        """Whether every record can be kept."""
        return not self.report.rejected

    def to_dict(self) -> dict[str, Any]:
        """All that was found, as plain values."""
        return {
            "ok": self.ok,
            "source": ", ".join(map(str, self.sources)),
            "format": self.format or ", ".join(dict.fromkeys(self.report.inferred)),
            **self.report.to_mapping(),
            **self.report.findings(),
            "outcome": dict(self.outcome) or None,
        }

    def __repr__(self) -> str:
        """The counts, the first problems with their places, and what may have been overlooked."""
        return shown("\n".join(self.report.told(self["source"])))


def _paths(source: AnyPath | Sequence[AnyPath]) -> list[Path]:
    return [Path(source)] if isinstance(source, str | os.PathLike) else [Path(one) for one in source]


class ImportWords(TypedDict, total=False):
    """How a source becomes a graph, in plain values; what is left out is as the format has it."""

    split: str  # shares of train, valid and test for new splits, such as "8:1:1"
    split_by: Sequence[str]  # facts that agree in these of head, relation and tail stay together
    seed: int | None
    across_splits: AcrossSplits
    remove_leakage: bool
    units: UnitRule | None
    unit_of: Mapping[str, str]  # relation → the unit of numbers that do not say theirs
    mixed_relations: MixedRelations
    strict: bool
    outlier_rules: AnyPath | None
    numeric: Iterable[str]
    dates: Iterable[str]
    head: str
    relation: str
    tail: str
    relation_name: str
    label: str
    wide: bool
    qualifier: Iterable[str]
    date_format: str
    number_format: str
    several: Iterable[str]
    several_by: str
    delimiter: str
    string_literals: Literal["drop", "keep"]
    label_language: str
    base: str
    named_graphs: Literal["ignore", "qualifier"]
    entity_labels: AnyPath | None
    relation_labels: AnyPath | None
    corrections: AnyPath | None
    train_file: str
    keep_splits: bool
    on_error: Literal["stop", "skip"]
    published: str
    name: str
    licence: str
    source_words: str


_LISTS = ("numeric", "dates", "qualifier", "several")
"""The words that stand for several names; one may be given alone."""


def import_options(**words: Unpack[ImportWords]) -> ImportOptions:
    """The options of an import, checked."""
    from hynt.formats.corrections import read_corrections
    from hynt.formats.importing import ImportOptions
    from hynt.graph.assembly import AssemblyPolicy
    from hynt.graph.outlier_rules import read_outlier_rules

    given: dict[str, Any] = dict(words)
    check_options("an import", given, ImportWords.__annotations__)
    shares, seed, together = given.get("split"), given.get("seed"), tuple(given.get("split_by", ()))
    if seed is not None and not (shares or together):
        raise UsageError(
            "a seed alone makes no splits.", where="--seed", advice="Say which ones to make: --split 8:1:1 --seed N."
        )
    unit_of = given.get("unit_of") or {}
    for unit in unit_of.values() if given.get("units") != "keep" else ():
        try:
            require(unit)
        except DataError as problem:
            raise DataError.of(problem, "--unit-of") from None
    rule = SplitRule.of(shares or SplitRule.shares, seed or 0, together)
    rules, decided = given.get("outlier_rules"), given.get("corrections")
    lists: dict[str, Any] = {
        name: (given[name],) if isinstance(given[name], str) else tuple(given[name]) for name in _LISTS if name in given
    }
    lists["numeric"] = tuple(dict.fromkeys((*lists.get("numeric", ()), *unit_of)))
    labels: dict[str, Any] = {
        name: Path(given[name]) for name in ("entity_labels", "relation_labels") if given.get(name) is not None
    }
    of_reading = [field.name for field in fields(ReadOptions) if field.name not in _LISTS]
    of_graph = ("units", "mixed_relations", "on_error", "published", "name", "licence", "train_file", "keep_splits")
    return ImportOptions(
        ReadOptions(**{name: given[name] for name in of_reading if name in given}, **lists),
        AssemblyPolicy(
            split=rule if shares or together else None,
            across_splits=given.get("across_splits", "keep"),
            remove_leakage=given.get("remove_leakage", False),
            outlier_rules=None if rules is None else read_outlier_rules(Path(rules)),
        ),
        **{name: given[name] for name in of_graph if name in given},
        **labels,
        corrections=None if decided is None else read_corrections(Path(decided)),
        source=given.get("source_words", ""),
        unit_of=unit_of,
    )


def export_graph(
    graph: KnowledgeGraph | AnyPath,
    out: AnyPath,
    format: str | None = None,  # noqa: A002 - the word users know it by
) -> list[Path]:
    """Writes a graph in another format, and says which files were made.

    >>> graph = hynt.graph_from_facts([("Ann", "knows", "Bob")])
    >>> [path.name for path in hynt.export_graph(graph, "people", "tsv")][0]
    'train.tsv'
    """
    from hynt.files import check_new_folder
    from hynt.formats.registry import FORMATS, get_format
    from hynt.interruption import interruptible

    target = Path(out)
    chosen = get_format(format or "", target.name)
    if chosen.write is None:
        writers = ", ".join(name for name, known in FORMATS.items() if known.write is not None)
        what = f"the format {chosen.name} is only read, not written."
        raise UsageError(what, where="format", advice=f"Use {writers}.")
    if target.exists() or target.is_symlink():
        raise UsageError(f"{target} exists already.", where="out", advice="Choose a new name, or remove it first.")
    check_new_folder(target, "out")
    loaded = graph if isinstance(graph, KnowledgeGraph) else read_graph(graph)
    with interruptible():
        if chosen.name != "parquet":
            return list(chosen.write(loaded, target))
        from hynt.files import write_whole
        from hynt.formats.parquet import write_graph
        from hynt.sharing.cards import CROISSANT, croissant_text

        def describe(folder: Path) -> str:
            write_whole(folder / CROISSANT, croissant_text(loaded.manifest, folder))
            return CROISSANT

        return write_graph(loaded, target, describe)


def list_graphs() -> list[dict[str, Any]]:
    """The graphs that come with hynt: name, counts, licence and source.

    >>> [graph["name"] for graph in hynt.list_graphs()]
    ['world']
    """
    from hynt.graph.storage import BUILT_IN, graph_folder

    found = []
    for name in BUILT_IN:
        manifest = read_manifest(graph_folder(name))
        splits = {split: manifest.counts[split] for split in SPLITS if split in manifest.counts}
        counts = {key: manifest.counts[key] for key in ("entities", "relations", "number_relations")}
        said = {"licence": manifest.licence, "source": manifest.source}
        found.append({"name": name, "facts": sum(splits.values()), "splits": splits, **counts, **said})
    return found


def list_formats() -> list[dict[str, Any]]:
    """The formats that facts are read from and written to.

    >>> sorted(known["name"] for known in hynt.list_formats() if known["writes"])
    ['hynt', 'jsonl', 'parquet', 'rdf', 'stare', 'tsv']
    """
    from hynt.formats.registry import FORMATS

    return [
        {
            "name": known.name,
            "summary": known.summary,
            "suffixes": list(known.suffixes),
            "reads": True,
            "writes": known.write is not None,
            "units": known.units,
            "options": sorted(option.replace("_", "-") for option in known.options),
            "extra": known.extra,
        }
        for known in FORMATS.values()
    ]


def list_published() -> list[dict[str, Any]]:
    """The published graphs that `import_graph(folder, published=name)` knows: format, licence, and the counts of their
    papers. None of them comes with hynt.

    >>> hynt.list_published()[0]["name"]
    'HN-WK'
    """
    from hynt.formats.registry import PUBLISHED

    return [
        {"name": name, "format": one.format, "licence": one.licence, "counts": dict(one.counts)}
        for name, one in PUBLISHED.items()
    ]


def list_models() -> dict[str, dict[str, Any]]:
    """The models by name: what each reads, what it is trained on, and what it can be asked.

    >>> hynt.list_models()["hynt"]["reads"]
    ['head', 'relation', 'tail', 'numbers', 'qualifiers']
    """
    return models_and_problems()[0]


def models_and_problems() -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """The same, and what is wrong with installed models that cannot be loaded."""
    from hynt.models.registry import MODELS

    listed = MODELS.listed()
    found = {
        name: {
            "summary": entry.summary,
            "trained_on": entry.trained_on,
            "reads": ["head", "relation", "tail", *sorted(part.value for part in entry.reads)],
            "answers": {
                task: sorted(position.value for asked, position in entry.answers if asked.name.lower() == task)
                for task in ("link", "relation", "number")
            },
        }
        for name, entry in listed.entries.items()
    }
    return found, listed.problems
