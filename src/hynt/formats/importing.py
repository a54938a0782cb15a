"""From a source of any format to a checked, saved graph: read, encode, settle, write.

    facts in the graph = kept − duplicates − removed (by correction, by rule, as leaks, across splits)

Nothing is written unless everything went well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hynt.errors import DataError, RecordProblem, UsageError
from hynt.formats.corrections import Corrections
from hynt.formats.csv_edges import read_value
from hynt.formats.declarations import Declarations, labels_without_use, read_declarations
from hynt.formats.format import EVERYWHERE, Format, ReadOptions, ReadReport, UnitRule, changed_options
from hynt.formats.inference import files_beside, infer_format
from hynt.formats.outcome import (
    AUTO,
    counts_of,
    date_format_of,
    grouping_of,
    hints_at,
    hints_at_extremes,
    hints_at_spaces,
    hints_at_units,
    looked_at,
    outcome_of,
    unmarked_in,
)
from hynt.formats.registry import differences, get_format, places_of, published
from hynt.formats.source_files import SourceFile, source_files, title_of, with_train_file
from hynt.formats.values import written_numbers
from hynt.graph.assembly import Assembler, Assembly, AssemblyPolicy
from hynt.graph.encoding import MixedRelations, RelationDeclaration
from hynt.graph.fact import Fact, Value
from hynt.graph.knowledge_graph import KnowledgeGraph, Manifest, read_manifest
from hynt.graph.splitting import ADDED
from hynt.graph.storage import check_target, is_graph, load_graph, save_assembly
from hynt.graph.vocabulary import Entity
from hynt.markup import shown
from hynt.progress import SILENT, Progress
from hynt.results import PlainValues

_PROGRESS_EVERY = 8192  # facts


@dataclass(frozen=True)
class ImportOptions:
    """How a source becomes a graph."""

    reading: ReadOptions = field(default_factory=ReadOptions)
    assembly: AssemblyPolicy = field(default_factory=AssemblyPolicy)
    units: UnitRule | None = None  # None: as the format has it
    unit_of: Mapping[str, str] = field(default_factory=dict)  # relation → the unit of its bare numbers
    mixed_relations: MixedRelations = "error"
    on_error: Literal["stop", "skip"] = "stop"  # skip: leave bad records out and count them
    entity_labels: Path | None = None
    relation_labels: Path | None = None
    corrections: Corrections | None = None  # facts that go, and what comes in the place of some
    published: str = ""  # the name of a published graph: its layout, format, licence and counts are known
    train_file: str = ""  # a file of the first source that is its training split, in place of the one called so
    keep_splits: bool = False  # whether further sources keep the splits they have
    name: str = ""
    licence: str = ""
    source: str = ""  # the source in words, for the manifest; the name of the file or folder if empty


class SourceProblems(DataError):
    """A source with records that cannot be kept: nothing was written."""

    def __init__(self, report: ReadReport) -> None:
        self.report = report
        first = report.problems[0]
        count = sum(report.rejected.values())
        reasons = ", ".join(f"{reason} ({number})" for reason, number in report.rejected.most_common())
        super().__init__(
            f"{count} of {report.read} records cannot be kept: {reasons}. The first: {first.what}",
            where=first.where,
            advice=f"{first.advice} Or leave such records out with --on-error skip.".strip(),
        )


@dataclass(frozen=True, eq=False, repr=False)
class ImportResult(PlainValues):
    """A graph that was made of a source, and the account of it."""

    manifest: Manifest
    report: ReadReport
    folder: Path | None  # where it was saved
    held: KnowledgeGraph | None = None  # where it was not saved

    @cached_property
    def graph(self) -> KnowledgeGraph:
        """The graph; one that was saved is read when it is first asked for."""
        if self.held is not None:
            return self.held
        assert self.folder is not None
        return load_graph(self.folder)

    def to_dict(self) -> dict[str, Any]:
        """What was read, and what became of it, as plain values."""
        manifest = self.manifest
        folder = None if self.folder is None else str(self.folder)
        named = {"graph": folder, "name": manifest.name, "format": manifest.format}
        made = {"counts": dict(manifest.counts), "importing": dict(manifest.importing)}
        return {**named, **made, **self.report.findings()}

    def __repr__(self) -> str:
        """The counts, the first problems with their places, and what may have been overlooked."""
        return shown("\n".join(self.report.told(self.manifest.source)))


def import_graph(
    source: Path | Sequence[Path],
    format_name: str,
    out: Path | None,
    options: ImportOptions | None = None,
    *,
    overwrite: bool = False,
    progress: Progress = SILENT,
) -> ImportResult:
    """Read a source, or several into one graph, and save it as a graph folder, or keep it in memory without one."""
    if out is not None:
        check_target(Path(out), overwrite=overwrite)
    run = _opened(source, format_name, options, progress)
    with run.assembler:
        assembly = run.read()
        manifest = run.manifest(assembly)
        if out is None:
            counted = replace(manifest, counts=counts_of(assembly))
            return ImportResult(counted, run.report, None, assembly.to_graph(manifest))
        run.tell("writing")
        saved = save_assembly(assembly, manifest, Path(out), overwrite=overwrite)
        return ImportResult(saved, run.report, Path(out))


def read_graph(
    source: Path | Sequence[Path],
    format_name: str,
    options: ImportOptions | None = None,
    *,
    progress: Progress = SILENT,
) -> KnowledgeGraph:
    """Read a source into memory, without saving it."""
    return import_graph(source, format_name, None, options, progress=progress).graph


def check_source(
    source: Path | Sequence[Path],
    format_name: str,
    options: ImportOptions | None = None,
    *,
    preview: bool = False,
    progress: Progress = SILENT,
) -> tuple[ReadReport, dict[str, Any]]:
    """Read everything, write nothing: what was found, and what an import would make of it ({} with bad records). A
    `preview` leaves out what cannot be kept, and shows the first facts as the graph would have them, and the kind, unit
    and use of every relation.
    """
    run = _opened(source, format_name, options, progress)
    with run.assembler:
        run.collect()
        if run.report.rejected and not preview:
            return run.report, {}
        assembly = run.settled()
        return run.report, {**outcome_of(assembly), **(looked_at(assembly) if preview else {})}


def _opened(
    source: Path | Sequence[Path], format_name: str, options: ImportOptions | None, progress: Progress
) -> _Import:
    """A reading that is ready to begin. For `--numeric auto` the source is read once before, to find the relations
    whose values are written like numbers."""
    sources = [source] if isinstance(source, Path) else list(source)
    options = options or ImportOptions()
    if options.published:
        name, graph = published(options.published)
        sources[:1], format_name = places_of(graph, sources[0]), format_name or graph.format
        options = replace(
            options,
            name=options.name or name,
            licence=options.licence or graph.licence,
            published=name,
            train_file=options.train_file or graph.train_file,
            keep_splits=options.keep_splits or bool(graph.further),
        )
    names = format_name or ",".join(infer_format(path, options.reading).name for path in sources)
    reading: Any = options.reading  # its fields are set by name below
    given = {option: getattr(reading, option) for option in ("numeric", "dates") if AUTO in getattr(reading, option)}
    if given:
        said = {option: tuple(name for name in names if name != AUTO) for option, names in given.items()}
        reading = replace(reading, **said)
        scout = _Import(sources, names, replace(options, reading=reading, mixed_relations="split"), progress)
        with scout.assembler:
            scout.collect()
            found = unmarked_in(scout.assembler.finish(scout.tell))
            found["numeric"] = [*found.get("numeric", ()), *found.get("quantities", ())]
        reading = replace(reading, **{option: (*said[option], *found.get(option, ())) for option in given})
    run = _Import(sources, names, replace(options, reading=reading), progress)
    run.report.inferred = [] if format_name else names.split(",")
    return run


def report_bytes(progress: Progress, step: str, facts: int, taken: int, total: int) -> None:
    """Facts are counted, but only the bytes of a source tell how much of it is left."""
    megabytes = f"{taken / 1e6:.1f} of {total / 1e6:.1f} MB"
    progress.update(step, facts, unit="facts", share=min(taken / total, 1.0) if total else None, note=megabytes)


class _Source(NamedTuple):
    """One of the sources of a graph."""

    path: Path
    format: Format
    parts: list[SourceFile]
    declared: Declarations
    joins_train: bool  # another source's splits are kept, so that all of this one is added to train


class _Import:
    """One reading of all sources."""

    def __init__(self, sources: Sequence[Path], format_name: str, options: ImportOptions, progress: Progress) -> None:
        self.options = options
        self.progress = progress
        self.report = ReadReport()
        self.sources = _sources(sources, format_name, options)
        self.bytes_total = sum(part.path.stat().st_size for source in self.sources for part in source.parts)
        self.assembler = Assembler(
            options.assembly,
            {
                "convert_units": (options.units or self.sources[0].format.units) == "si",
                "mixed": options.mixed_relations,
                "strict": options.reading.strict,
                "place": lambda: self.report.where,
                "note": self.report.note,
            },
            _details(self.sources),
        )

    def read(self) -> Assembly:
        """Collect and settle; refuses a source with bad records unless they are to be skipped."""
        self.collect()
        if self.report.rejected and self.options.on_error == "stop":
            raise SourceProblems(self.report)
        return self.settled()

    def collect(self) -> None:
        """Read every part into the assembler."""
        report, add, corrections = self.report, self.assembler.add, self.options.corrections
        unit_of = self.options.unit_of
        for name, unit in unit_of.items():
            self.assembler.encoder.declare_relation(RelationDeclaration(name, unit=unit))
        for source in self.sources:
            for declared in source.declared.relations:
                unit = unit_of.get(declared.name, declared.unit)
                if declared.unit not in ("", unit):
                    raise UsageError(
                        f"the unit of {declared.name!r} is {declared.unit} by {source.path}, not {unit}.",
                        where="--unit-of",
                        advice="Leave the option out, or correct the file.",
                    )
                self.assembler.encoder.declare_relation(declared._replace(unit=unit))
            if source.declared.fixes_order:
                self.assembler.encoder.declare_entities(entity.name for entity in source.declared.entities)
        unused: dict[str, None] | None = None
        for source in self.sources:
            marked = _Marked(source.format, self.options.reading)
            for part in source.parts:
                split = ADDED if source.joins_train else part.split
                for fact in source.format.read(part.path, self.options.reading, report):
                    try:
                        taken = marked(fact) if corrections is None else corrections.applied(marked(fact))
                        if taken is not None:
                            add(taken, split)
                    except RecordProblem as problem:
                        report.kept -= 1
                        report.reject(problem)
                    if report.kept % _PROGRESS_EVERY == 0:
                        self.tell("reading")
            unused = marked.unused if unused is None else {name: None for name in marked.unused if name in unused}
        for name in unused or ():
            report.note("unused-name", f"{name!r} is neither a column nor a relation here.", "Check its spelling.")
        missed = 0 if corrections is None else corrections.to_mapping()["not_found"]
        if missed:
            report.hints.append(f"{missed:,} of the corrections are about facts that the source does not hold.")
        self._name_by(report.labels)
        self.tell("reading")

    def settled(self) -> Assembly:
        """The graph, once everything is read, and what the user may have overlooked about it."""
        assembly = self.assembler.finish(self.tell)
        vocabulary, report = assembly.vocabulary, self.report
        relations = [relation.name for relation in vocabulary.relations]
        unmarked = unmarked_in(assembly)
        report.hints += hints_at(unmarked, grouping_of(vocabulary, unmarked), date_format_of(vocabulary, unmarked))
        report.hints += hints_at_units(vocabulary) + hints_at_spaces(vocabulary)
        report.hints += hints_at_extremes(
            vocabulary, (table for split in assembly.split_names for table in assembly.tables(split))
        )
        for file in self.sources[0].declared.labelled:
            report.hints += labels_without_use(file, vocabulary.entities if file.what == "entity" else relations)
        given = (self.options.entity_labels, self.options.relation_labels)
        taken = [*(source.path for source in self.sources), *(path for path in given if path is not None)]
        for source in self.sources:
            read = [*taken, *(part.path for part in source.parts)]
            report.beside += files_beside(source.path, read, self.assembler.encoder.entity_ids, set(relations))
        return assembly

    def _name_by(self, labels: Mapping[str, str]) -> None:
        """Use the names that stood among the facts, where nothing better was declared."""
        encoder, details = self.assembler.encoder, self.assembler.details
        for name, label in labels.items():
            if name in encoder.entity_ids and not details.get(name, Entity(name)).label:
                details[name] = details.get(name, Entity(name))._replace(label=label)
            encoder.name_relation(name, label)
        for name, description in self.report.descriptions.items():
            encoder.name_relation(name, description=description)
        if any(source.format.name == "rdf" for source in self.sources):
            self._name_by_ends()

    def _name_by_ends(self) -> None:
        """Call what nothing names by the end of its IRI, where no other entity or relation is called so."""
        from hynt.formats.rdf.terms import local_name

        encoder, details = self.assembler.encoder, self.assembler.details
        unnamed = [name for name in encoder.entity_ids if not details.get(name, Entity(name)).label]
        ends = _unlike(((name, local_name(name)) for name in unnamed), {entity.label for entity in details.values()})
        for name, label in ends.items():
            details[name] = details.get(name, Entity(name))._replace(label=label)
        relations = {name: label or local_name(name, is_relation=True) for name, label in encoder.relation_labels()}
        for name, label in _unlike(relations.items()).items():
            encoder.name_relation(name, label)

    def tell(self, step: str) -> None:
        report_bytes(self.progress, step, self.report.kept, self.report.bytes_read, self.bytes_total)

    def manifest(self, assembly: Assembly) -> Manifest:
        options, first = self.options, self.sources[0]
        importing = {
            **self.report.to_mapping(),
            **assembly.report,
            "files": [part.path.name for source in self.sources for part in source.parts],
            "beside": [Path(file.file).name for file in self.report.beside],
            "units": options.units or first.format.units,
        }
        if options.corrections is not None:
            importing["corrections"] = options.corrections.to_mapping()
        if options.published:
            found = differences(published(options.published)[1], counts_of(assembly))
            importing["published"] = {"name": options.published, "differences": found}
        licences = (read_manifest(source.path).licence for source in self.sources if is_graph(source.path))
        return Manifest(
            name=options.name or title_of(first.path, first.format),
            source=options.source or ", ".join(source.path.name for source in self.sources),
            format=", ".join(dict.fromkeys(source.format.name for source in self.sources)),
            licence=options.licence or " and ".join(dict.fromkeys(filter(None, licences))),
            importing=importing,
        )


def _unlike(named: Iterable[tuple[str, str]], taken: Collection[str] = ()) -> dict[str, str]:
    """Those of some names, each with a label, whose label is neither empty nor taken nor that of another."""
    found = dict(named)
    count = Counter(found.values())
    return {name: label for name, label in found.items() if label and count[label] == 1 and label not in taken}


def _details(sources: Sequence[_Source]) -> dict[str, Entity]:
    """What is known of each entity; of two sources that name it, the first counts."""
    found: dict[str, Entity] = {}
    for source in sources:
        for name, label, kind in source.declared.entities:
            known = found.get(name, Entity(name))
            found[name] = Entity(name, known.label or label, known.type or kind)
    return found


def _sources(paths: Sequence[Path], format_name: str, options: ImportOptions) -> list[_Source]:
    """The sources with their formats: one for all, or one for each, by commas."""
    names = format_name.split(",")
    if len(names) not in (1, len(paths)):
        raise UsageError(
            f"{len(names)} formats for {len(paths)} sources.",
            where="--format",
            advice="Give one for all, or one for each, separated by commas.",
        )
    found: list[_Source] = []
    for path, name in zip(paths, names * (len(paths) if len(names) == 1 else 1), strict=True):
        chosen = get_format(name)
        parts = source_files(path, chosen)
        if options.train_file and not found:
            parts = with_train_file(path, parts, options.train_file)
        labels = {} if found else {"entity_labels": options.entity_labels, "relation_labels": options.relation_labels}
        found.append(_Source(path, chosen, parts, read_declarations(path, **labels), joins_train=False))
    _refuse_foreign_options([source.format for source in found], options.reading)
    split = next((place for place, source in enumerate(found) if any(part.split for part in source.parts)), None)
    own = [options.keep_splits and any(part.split for part in source.parts) for source in found]
    joins = [split not in (None, place) and not own[place] for place in range(len(found))]
    return [one._replace(joins_train=join) for one, join in zip(found, joins, strict=True)]


class _Marked:
    """Facts with the values that the user declared numbers or dates, where the format itself cannot be told."""

    def __init__(self, chosen: Format, options: ReadOptions) -> None:
        self._options, self._kinds = options, {} if "numeric" in chosen.options else options.kinds
        self.unused = dict.fromkeys(self._kinds)

    def __call__(self, fact: Fact) -> Fact:
        kinds = self._kinds
        if not kinds:
            return fact
        pairs = fact.qualifiers
        if any(relation in kinds for relation, _ in pairs):
            pairs = tuple(pair._replace(value=self._value(*pair)) for pair in pairs)
        return fact._replace(tail=self._value(fact.relation, fact.tail), qualifiers=pairs)

    def _value(self, relation: str, value: Value) -> Value:
        kind = self._kinds.get(relation)
        if kind is None:
            return value
        self.unused.pop(relation, None)
        return read_value(value, kind, self._options) if isinstance(value, str) else value


def _refuse_foreign_options(chosen: Sequence[Format], options: ReadOptions) -> None:
    """An option that no format of the sources knows is wrong use, not something to ignore."""
    known = frozenset[str]().union(*(one.options for one in chosen))
    if options.number_format:
        written_numbers(options.number_format)  # refuses what is no example of a number
    for option in changed_options(options):
        if option not in EVERYWHERE | known:
            raise UsageError(
                f"the format {chosen[0].name} has no option {option.replace('_', '-')!r}.",
                where=f"--{option.replace('_', '-')}",
                advice=f"It knows: {', '.join(sorted({'numeric', 'dates', *known}))}.",
            )
