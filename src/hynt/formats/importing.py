"""From a source of any format to a checked, saved graph: read, encode, settle, write.

    facts in the graph = kept − duplicates − removed (by rule, as leaks, across splits)

Nothing is written unless everything went well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from hynt.errors import DataError, RecordProblem, UsageError
from hynt.formats.declarations import Declarations, read_declarations
from hynt.formats.format import Format, ReadOptions, ReadReport, UnitRule
from hynt.formats.parts import SourceFile, find_parts, title_of
from hynt.formats.registry import get_format
from hynt.graph.assembly import Assembler, Assembly, AssemblyPolicy
from hynt.graph.encoding import MixedRelations
from hynt.graph.knowledge_graph import KnowledgeGraph, Manifest
from hynt.graph.splitting import find_leakage
from hynt.graph.storage import check_target, save_assembly
from hynt.graph.vocabulary import Entity
from hynt.progress import SILENT, Progress

_PROGRESS_EVERY = 8192  # facts


@dataclass(frozen=True)
class ImportOptions:
    """How a source becomes a graph."""

    reading: ReadOptions = field(default_factory=ReadOptions)
    assembly: AssemblyPolicy = field(default_factory=AssemblyPolicy)
    units: UnitRule | None = None  # None: as the format has it
    mixed_relations: MixedRelations = "error"
    on_error: Literal["stop", "skip"] = "stop"  # skip: leave bad records out and count them
    entity_labels: Path | None = None
    relation_labels: Path | None = None
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


@dataclass(frozen=True)
class ImportResult:
    """A graph that was written."""

    manifest: Manifest
    report: ReadReport


def import_graph(
    source: Path,
    format_name: str,
    out: Path,
    options: ImportOptions | None = None,
    *,
    overwrite: bool = False,
    progress: Progress = SILENT,
) -> ImportResult:
    """Read a source and save it as a graph folder."""
    check_target(Path(out), overwrite=overwrite)
    run = _Import(Path(source), format_name, options or ImportOptions(), progress)
    with run.assembler:
        assembly = run.read()
        run.tell("writing")
        return ImportResult(save_assembly(assembly, run.manifest(assembly), Path(out), overwrite=overwrite), run.report)


def read_graph(
    source: Path, format_name: str, options: ImportOptions | None = None, *, progress: Progress = SILENT
) -> KnowledgeGraph:
    """Read a source into memory, without saving it."""
    run = _Import(Path(source), format_name, options or ImportOptions(), progress)
    with run.assembler:
        assembly = run.read()
        return assembly.to_graph(run.manifest(assembly))


def check_source(
    source: Path, format_name: str, options: ImportOptions | None = None, *, progress: Progress = SILENT
) -> tuple[ReadReport, dict[str, Any]]:
    """Read everything, write nothing: what was found, and what an import would make of it ({} with bad records)."""
    run = _Import(Path(source), format_name, options or ImportOptions(), progress)
    with run.assembler:
        run.collect()
        if run.report.rejected:
            return run.report, {}
        return run.report, _outcome(run.assembler.finish(run.tell))


def _outcome(assembly: Assembly) -> dict[str, Any]:
    """What a graph would hold, and the relations in it that give others away."""
    vocabulary, outcome = assembly.vocabulary, dict(assembly.report)
    names = [relation.name for relation in vocabulary.relations]
    chunks = (chunk for split in assembly.split_names for chunk in assembly.tables(split))
    leaks = find_leakage(chunks, vocabulary.relation_is_number, vocabulary.entity_count)
    outcome["leakage_left"] = [leak.to_mapping(names) for leak in leaks]
    outcome["counts"] = {
        "entities": vocabulary.entity_count,
        "relations": vocabulary.relation_count,
        "number_relations": int(vocabulary.relation_is_number.sum()),
        **{split: sum(len(table) for table in assembly.tables(split)) for split in assembly.split_names},
    }
    return outcome


def report_bytes(progress: Progress, step: str, facts: int, taken: int, total: int) -> None:
    """Facts are counted, but only the bytes of a source tell how much of it is left."""
    megabytes = f"{taken / 1e6:.1f} of {total / 1e6:.1f} MB"
    progress.update(step, facts, unit="facts", share=min(taken / total, 1.0) if total else None, note=megabytes)


class _Import:
    """One reading of a source."""

    def __init__(self, source: Path, format_name: str, options: ImportOptions, progress: Progress) -> None:
        self.format = get_format(format_name, source.name)
        _refuse_foreign_options(self.format, options.reading)
        self.options = options
        self.source = source
        self.progress = progress
        self.report = ReadReport()
        self.parts: list[SourceFile] = find_parts(source, self.format)
        self.bytes_total = sum(part.path.stat().st_size for part in self.parts)
        self.declared: Declarations = read_declarations(
            source, self.format, entity_labels=options.entity_labels, relation_labels=options.relation_labels
        )
        self.assembler = Assembler(
            options.assembly,
            {
                "convert_units": (options.units or self.format.units) == "si",
                "mixed": options.mixed_relations,
                "strict": options.reading.strict,
                "place": lambda: self.report.where,
                "note": self.report.note,
            },
            {entity.name: entity for entity in self.declared.entities},
        )

    def read(self) -> Assembly:
        """Collect and settle; refuses a source with bad records unless they are to be skipped."""
        self.collect()
        if self.report.rejected and self.options.on_error == "stop":
            raise SourceProblems(self.report)
        return self.assembler.finish(self.tell)

    def collect(self) -> None:
        """Read every part into the assembler."""
        for declared in self.declared.relations:
            self.assembler.encoder.declare_relation(*declared)
        if self.declared.fixes_order:
            self.assembler.encoder.declare_entities(entity.name for entity in self.declared.entities)
        report, add = self.report, self.assembler.add
        for part in self.parts:
            for fact in self.format.read(part.path, self.options.reading, report):
                try:
                    add(fact, part.split)
                except RecordProblem as problem:
                    report.kept -= 1
                    report.reject(problem)
                if report.kept % _PROGRESS_EVERY == 0:
                    self.tell("reading")
        self._name_by(report.labels)
        self.tell("reading")

    def _name_by(self, labels: Mapping[str, str]) -> None:
        """Use the names that stood among the facts, where nothing better was declared."""
        encoder, details = self.assembler.encoder, self.assembler.details
        for name, label in labels.items():
            if name in encoder.entity_ids and not details.get(name, Entity(name)).label:
                details[name] = details.get(name, Entity(name))._replace(label=label)
            encoder.name_relation(name, label)

    def tell(self, step: str) -> None:
        report_bytes(self.progress, step, self.report.kept, self.report.bytes_read, self.bytes_total)

    def manifest(self, assembly: Assembly) -> Manifest:
        options = self.options
        importing = {
            **self.report.to_mapping(),
            **assembly.report,
            "files": [part.path.name for part in self.parts],
            "units": options.units or self.format.units,
        }
        return Manifest(
            name=options.name or title_of(self.source, self.format),
            source=options.source or self.source.name,
            format=self.format.name,
            licence=options.licence,
            importing=importing,
        )


def _refuse_foreign_options(chosen: Format, options: ReadOptions) -> None:
    """An option that the format does not know is wrong use, not something to ignore."""
    everywhere = {"strict", "max_line_bytes", "max_expansion"}
    for option in _changed(options):
        if option not in everywhere | chosen.options:
            raise UsageError(
                f"the format {chosen.name} has no option {option.replace('_', '-')!r}.",
                where=f"--{option.replace('_', '-')}",
                advice=f"It knows: {', '.join(sorted(chosen.options)) or 'no options of its own'}.",
            )


def _changed(options: ReadOptions) -> Iterator[str]:
    default = ReadOptions()
    for item in fields(ReadOptions):
        if getattr(options, item.name) != getattr(default, item.name):
            yield item.name
