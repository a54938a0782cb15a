"""From a dump to a saved graph: select, parse, run the recipe, assemble, write.

No graph is written unless all went well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hynt.creation.accounts import Books, NothingKept, RejectGuard
from hynt.creation.engines import DuckDBEngine, QueryEngine, SparkEngine, pairs_table, rows_of, settings_table, steps
from hynt.creation.options import CreationOptions, Selection, read_ids, read_pairs, read_redirects, select
from hynt.creation.parts import ParseJob, cut, unit_rows
from hynt.creation.reading import Scan
from hynt.creation.sources.source import NAMES, PRIMARIES, REDIRECTS, DumpSource, ParseSettings, get_source, prelude_of
from hynt.creation.tasks import BuildFolder, PartSummary, find_files, identity_of, plan_tasks, size_of
from hynt.errors import RecordProblem
from hynt.files import write_whole
from hynt.formats.importing import report_bytes
from hynt.graph.assembly import Assembler, Assembly
from hynt.graph.encoding import RelationDeclaration
from hynt.graph.fact import Fact, Number, Qualifier, Value
from hynt.graph.knowledge_graph import Manifest
from hynt.graph.statistics import graph_statistics
from hynt.graph.storage import check_target, save_assembly
from hynt.graph.units.conversion import lookup
from hynt.graph.vocabulary import Entity
from hynt.progress import SILENT, Progress

_SMALLEST_PART, _LARGEST_PART = 4 << 20, 64 << 20
_STATISTICS_FACTS = 2_000_000
"""Graphs beyond this are counted by `hynt data stats`, not while they are made: counting holds all facts in memory."""
_LOSSES_LISTED = 200


@dataclass(frozen=True)
class CreationResult:
    """A graph that was written."""

    manifest: Manifest
    rejected: int
    rejects: Path | None  # where the bad lines are


def create_graph(
    source: str,
    dump: Path,
    out: Path,
    options: CreationOptions | None = None,
    *,
    overwrite: bool = False,
    progress: Progress = SILENT,
) -> CreationResult:
    """Make a graph from a dump and save it as a folder."""
    options = options or CreationOptions()
    check_target(out, overwrite=overwrite)
    build = _Build(source, dump, out, options, progress)
    with _engine(options, build.work.path) as engine:
        try:
            build.parse(engine)
        finally:
            build.guard.write()
        tables = build.run_recipe(engine)
    try:
        manifest = build.assemble(tables, overwrite=overwrite)
    except NothingKept:
        build.work.remove()  # running the same command again would find nothing again
        raise
    if not options.keep_work:
        build.work.remove()
    return CreationResult(manifest, build.guard.rejected, build.guard.path if build.guard.rejected else None)


def _engine(options: CreationOptions, work: Path) -> QueryEngine:
    chosen = options.engine
    if chosen.name == "spark":
        return SparkEngine(chosen.master, chosen.memory_bytes)
    return DuckDBEngine(chosen.workers, chosen.memory_bytes, work / "spill")


class _Build:
    """One call of `create`, from the dump to the saved graph."""

    def __init__(self, source: str, dump: Path, out: Path, options: CreationOptions, progress: Progress) -> None:
        self.source, self.dump, self.out, self.options = source, dump, out, options
        self.kind = get_source(source)
        self.progress = progress
        self.redirects = read_redirects(options.redirects)
        self.selection: Selection = select(
            options.entities, options.types, options.everything, options.mappings, self.redirects
        )
        self.files = find_files(dump, self.kind)
        self.tasks = plan_tasks(self.files, self.kind)
        self.work = BuildFolder(options.work or out.with_name(f"{out.name}.work"))
        self.guard = RejectGuard(options.max_bad_lines, options.rejects or out.with_name(f"{out.name}.rejects.jsonl"))
        self.books = Books()
        self.summaries: list[PartSummary] = []
        self.bytes_total = sum(size_of(path) for path in self.files)
        self.facts = self.bytes_done = self.mediator_types = 0

    def tell(self, step: str) -> None:
        report_bytes(self.progress, step, self.facts, self.bytes_done, self.bytes_total)

    def parse(self, engine: QueryEngine) -> None:
        """Make the parts that are not there yet."""
        options = self.options
        mediators = frozenset(read_ids(options.mediators)) if options.mediators else frozenset()
        settings = ParseSettings(
            options.language,
            options.text == "keep",
            options.preferred_only,
            options.subclasses,
            mediators,
            units=options.units,
        )
        size = options.part_bytes or min(max(self.bytes_total // 500, _SMALLEST_PART), _LARGEST_PART)
        self.work.open(
            {
                "source": self.source,
                "files": identity_of(self.files),
                "selection": self.selection.digest(),
                "language": settings.language,
                "keep_text": settings.keep_text,
                "preferred_only": settings.preferred_only,
                "subclasses": settings.subclasses,
                "mediators": sorted(mediators),
                "units": settings.units,
                "part_bytes": size,
                "longest_line": options.longest_line,
                "names": NAMES.names,  # which parts of an earlier hynt may lack
            }
        )
        scan = Scan(self.files, self._scanned)
        self.selection, settings = prepared(self.kind, scan, self.selection, settings, self.work)
        self.mediator_types = len(settings.mediator_types)
        job = ParseJob(self.source, self.selection, settings, size, options.longest_line)

        def tell(taken: int, facts: int) -> None:
            self.facts, self.bytes_done = facts, taken
            self.tell("reading")

        self.summaries = engine.parse(self.tasks, job, self.work, self.guard, tell)

    def _scanned(self, taken: int) -> None:
        report_bytes(self.progress, "looking through", 0, min(taken, self.bytes_total), self.bytes_total)

    def run_recipe(self, engine: QueryEngine) -> dict[str, list[Path]]:
        """Give the engine its tables and run every step; the files of each."""
        options, work = self.options, self.work
        units, self.unknown_units = unit_rows((unit for part in self.summaries for unit in part.units), options.units)
        for name, table in (("parsed", "parsed"), ("names", "names"), ("met_redirects", "redirects")):
            engine.give(name, work.tables(table, self.summaries))
        engine.give(
            "given_entities", pa.table({"entity": pa.array(sorted(self.selection.entities or ()), pa.string())})
        )
        engine.give("given_redirects", pairs_table(self.redirects.items(), REDIRECTS))
        engine.give("units", units)
        if self.source == "freebase":
            engine.give("primaries", pairs_table(read_pairs(options.primaries) if options.primaries else (), PRIMARIES))
        engine.give(
            "settings",
            settings_table(
                {
                    "selection": "closed" if self.selection.is_closed else "open",
                    # Wikidata has a line for every entity: what has none was deleted.
                    "values_are_entities": "no" if self.source == "wikidata" else "yes",
                    "tails": "keep" if options.keep_tails else "drop",
                    "min_tail_uses": options.min_tail_uses,
                    "unknown_units": options.unknown_units,
                    "other_units": options.other_units,
                    "max_qualifiers": options.max_qualifiers,
                    "long_facts": options.long_facts,
                }
            ),
        )
        tables: dict[str, list[Path]] = {}
        prelude = prelude_of(self.source)
        if prelude is None:
            engine.give("candidates", work.tables("parsed", self.summaries))
        for step in [*steps("entity_set.sql"), *(steps(prelude) if prelude else []), *steps("recipe.sql")]:
            self.tell(f"querying: {step.name.replace('_', ' ')}")
            tables[step.name] = engine.run(step, work)
        return tables

    def assemble(self, tables: dict[str, list[Path]], *, overwrite: bool) -> Manifest:
        """Settle duplicates, leaks, outliers and splits, and save."""
        self.books.open(self.summaries, rows_of(tables["account"]), rows_of(tables.get("node_account", [])))
        encoding = {"convert_units": False, "mixed": self.options.mixed_relations, "note": self._note}
        with Assembler(self.options.assembly, encoding) as assembler:
            declared = {
                name: RelationDeclaration(name, label=label, description=said)
                for what, name, label, said in read_rows(tables["labels"], ["what", "name", "label", "description"])
                if what == "relation" and (label or said)
            }
            for name, given in read_rows(tables["display_units"], ["relation", "given_unit"]):
                if self.options.units == "si" and (unit := lookup(given)) is not None:
                    declared[name] = declared.get(name, RelationDeclaration(name))._replace(display=unit.symbol)
            for one in declared.values():
                assembler.encoder.declare_relation(one)
            for added, fact in enumerate(read_facts(tables["facts"], tables["fact_qualifiers"])):
                try:
                    assembler.add(fact)
                except RecordProblem as problem:
                    self.books.facts.drop(problem.reason, 1)
                if added % 65_536 == 0:
                    self.tell("collecting facts")
            met = assembler.encoder.entity_ids
            if not met:
                raise NothingKept(self.books)
            assembler.details = {
                name: Entity(name, label, kind)
                for what, name, label, kind in read_rows(tables["labels"], ["what", "name", "label", "type"])
                if what == "entity" and name in met
            }
            if self.options.keep_tails:
                assembler.details |= self._names_of(frozenset(met.keys() - assembler.details.keys()))
            assembly = assembler.finish(self.tell)
            tables_left = (table for split in assembly.split_names for table in assembly.tables(split))
            self.books.settle(assembly.report, sum(table.qualifier_total for table in tables_left))
            self.tell("writing")
            manifest = self._manifest(assembly, tables)
            return save_assembly(assembly, manifest, self.out, overwrite=overwrite)

    def _names_of(self, tails: frozenset[str]) -> dict[str, Entity]:
        """The names of tails outside the chosen entities, from a second look through the dump."""
        found: dict[str, Entity] = {}
        selection, settings = Selection(tails), ParseSettings(self.options.language)
        choose, parse = self.kind.selector(selection, settings), self.kind.parser(selection, settings)
        for task in self.tasks if tails else ():
            self.tell("naming tails")
            for part in cut(task, self.kind, choose, _LARGEST_PART, longest=self.options.longest_line):
                for _, line in part.lines:
                    try:
                        names = parse(line).names
                    except RecordProblem:
                        continue  # counted when the dump was parsed
                    known = (Entity(one.identity, one.label, one.type) for one in names if one.identity in tails)
                    found.update((one.name, one) for one in known)
        if len(found) < len(tails):
            self.books.notes["tail-without-name"] += len(tails) - len(found)
        return found

    def _note(self, reason: str, what: str, advice: str) -> None:  # noqa: ARG002 - the encoder's signature
        self.books.notes[reason] += 1

    def _manifest(self, assembly: Assembly, tables: dict[str, list[Path]]) -> Manifest:
        options = self.options
        named = sum(1 for what, _ in read_rows(tables["labels"], ["what", "name"]) if what == "entity")
        making: dict[str, Any] = {
            **self.books.to_mapping(),
            **assembly.report,
            "files": [path.name for path in self.files],
            "selection": {
                "asked": self.selection.asked,
                "unmapped": self.selection.unmapped,
                "types": sorted(options.types),
                "classes": len(self.selection.types),
                "named": named,
            },
            "units": {
                "rule": options.units,
                "unknown": options.unknown_units,
                "other": options.other_units,
                "not_convertible": self.unknown_units[:_LOSSES_LISTED],
                "losses": rows_of(tables["unit_losses"])[:_LOSSES_LISTED],
            },
            "qualifier_limit": options.max_qualifiers,
            **({"mediator_types": self.mediator_types} if self.source == "freebase" else {}),
        }
        if self.books.facts.kept <= _STATISTICS_FACTS:
            making["statistics"] = asdict(graph_statistics(assembly.to_graph()).counts)
        return Manifest(
            name=options.name or self.out.name,
            source=self.dump.name,
            format=self.source,
            licence=options.licence,
            importing=making,
        )


# From the recipe's tables to facts: two sorted streams, facts and qualifiers, read side by side in bounded memory.

_BATCH_ROWS = 65_536
_FACT_COLUMNS = ["statement", "head", "relation", "kind", "value", "number", "unit"]
_QUALIFIER_COLUMNS = ["statement", "relation", "kind", "value", "number", "unit"]


def read_facts(facts: list[Path], qualifiers: list[Path]) -> Iterator[Fact]:
    """Every fact with its qualifiers, in the order of the dump."""
    pending = _in_order(qualifiers, _QUALIFIER_COLUMNS)
    following = next(pending, None)
    for statement, head, relation, kind, value, number, unit in _in_order(facts, _FACT_COLUMNS):
        held = []
        while following is not None and following[0] == statement:
            held.append(Qualifier(following[1], _value(*following[2:])))
            following = next(pending, None)
        yield Fact(head, relation, _value(kind, value, number, unit), tuple(held))
    if following is not None:
        raise RuntimeError(f"a qualifier of statement {following[0]} has no fact")


def read_rows(paths: list[Path], columns: list[str]) -> Iterator[tuple[Any, ...]]:
    """The rows of a table, file by file."""
    for path in paths:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
                yield from zip(*(batch.column(name).to_pylist() for name in columns), strict=True)


def _in_order(paths: list[Path], columns: list[str]) -> Iterator[tuple[Any, ...]]:
    """Rows that must come sorted by statement: an engine that loses the order would mix up facts."""
    last = None
    for row in read_rows(paths, columns):
        if last is not None and row[0] < last:
            raise RuntimeError(f"statement {row[0]} comes after {last}")
        last = row[0]
        yield row


def _value(kind: str, value: str, number: float | None, unit: str) -> Value:
    return Number(number, value, unit) if kind == "number" and number is not None else value


# What a source looks up in the whole dump before parsing, kept in the work folder so that it is looked up once.


def prepared(
    kind: DumpSource, dump: Scan, selection: Selection, settings: ParseSettings, work: BuildFolder
) -> tuple[Selection, ParseSettings]:
    path = work.file("prepared", "lists.json")
    if work.kept("prepared") is None:
        found, filled = kind.prepare(dump, selection, settings)
        lists = {
            "entities": None if found.entities is None else sorted(found.entities),
            "types": sorted(found.types),
            "mediator_types": sorted(filled.mediator_types),
            "number_properties": sorted(filled.number_properties),
        }
        write_whole(path, json.dumps(lists))
        work.keep("prepared", {}, ["lists.json"])
    held = json.loads(path.read_bytes())
    entities = None if held["entities"] is None else frozenset(held["entities"])
    mediators, numbers = frozenset(held["mediator_types"]), frozenset(held["number_properties"])
    return (
        replace(selection, entities=entities, types=frozenset(held["types"])),
        replace(settings, mediator_types=mediators, number_properties=numbers),
    )
