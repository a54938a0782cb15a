"""How the graph of a run has changed since training: an append-only journal, from which any version can be had again.

    RUN/updates/journal.jsonl   a line per version: what changed, when, from where, and the hash of the file below
                000001.jsonl    the changes of version 1, a line each, in the graph's own names and units
                lock            held by whoever writes

Version 0 is the graph that the run was trained on. A version is there once its line is on disk; the file it needs was
written before. A line that a kill has torn is not there, and the next writer takes it away. Readers lock nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hynt.errors import DataError, RecordProblem, UsageError
from hynt.files import RESTORE, check_regular, flush, sha256_of, write_whole, writing
from hynt.formats.values import check_name
from hynt.graph.changes import encoded, merged, with_facts, without_entity, without_facts
from hynt.graph.fact import Fact, FactKey, Number, Qualifier, Value
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.sentences import Sentences
from hynt.graph.storage import load_graph
from hynt.graph.vocabulary import Entity
from hynt.markup import shown
from hynt.runs.place import is_run, open_run, refuse_packaged, whole_run

UPDATES, JOURNAL, LOCK = "updates", "journal.jsonl", "lock"
_LONGEST_LINE = 2**16
_OURS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
"""A link in somebody else's run may lead to a file that is no journal: what looks torn there is not cut off."""


@dataclass(frozen=True)
class GraphChange:
    """What becomes of a graph, in this order: entities merged, entities and facts taken away, facts added. Names and
    numbers are as the graph has them.
    """

    merged: tuple[tuple[str, str], ...] = ()  # the first of each becomes the second
    without_entities: tuple[str, ...] = ()
    removed: tuple[Fact, ...] = ()
    added: tuple[Fact, ...] = ()
    labels: tuple[Entity, ...] = ()  # what is known of names, of entities or relations, that the added facts bring

    def __bool__(self) -> bool:
        return bool(self.merged or self.without_entities or self.removed or self.added)

    def applied(self, graph: KnowledgeGraph) -> KnowledgeGraph:
        """The graph after it. What does not fit is a `DataError`, and nothing has changed."""
        for one, other in self.merged:
            graph = merged(graph, _known(graph, one), _known(graph, other))
        for name in self.without_entities:
            graph = without_entity(graph, _known(graph, name))
        if self.removed:
            graph = without_facts(graph, self.removed)
        return with_facts(graph, self.added, self.labels) if self.added else graph

    def told(self, before: KnowledgeGraph, after: KnowledgeGraph) -> list[str]:
        """In words, a line each."""
        was = Sentences(before)
        lines = [f"{was.entity(one)} is {was.entity(other)}" for one, other in self.merged]
        lines += [f"without {was.entity(name)}" for name in self.without_entities]
        for sign, graph, facts in (("-", before, self.removed), ("+", after, self.added)):
            words, table = Sentences(graph), encoded(facts, graph.vocabulary)[0]  # as the graph tells numbers
            lines += [f"{sign} {words.fact(fact)}" for fact in table.facts(graph.vocabulary)]
        return lines

    def lines(self) -> str:
        """As the file of a version has it."""
        rows = [
            *({"merge": list(pair)} for pair in self.merged),
            *({"remove_entity": name} for name in self.without_entities),
            *({"remove": _to_plain(fact)} for fact in self.removed),
            *({"label": list(one)} for one in self.labels),
            *({"add": _to_plain(fact)} for fact in self.added),
        ]
        return "".join(json.dumps(row) + "\n" for row in rows)

    @classmethod
    def from_lines(cls, text: str) -> GraphChange:
        found: dict[str, list[Any]] = {"merge": [], "remove_entity": [], "remove": [], "label": [], "add": []}
        for line in text.split("\n")[:-1]:
            ((kind, what),) = json.loads(line).items()
            found[kind].append(what)
        return cls(
            tuple((_name(one), _name(other)) for one, other in found["merge"]),
            tuple(map(_name, found["remove_entity"])),
            tuple(map(_from_plain, found["remove"])),
            tuple(map(_from_plain, found["add"])),
            tuple(Entity(*map(_name, one)) for one in found["label"]),
        )


@dataclass(frozen=True)
class Version:
    """One line of the journal."""

    version: int
    at: str  # when, in UTC
    source: str  # from where, in the writer's words
    sha256: str  # of its changes
    added: int = 0  # facts
    removed: int = 0  # facts, those of entities that went away among them
    new_entities: int = 0
    gone_entities: int = 0
    facts: int = 0  # that the graph has then
    key: str = ""  # a name that the writer gave it, so that asking twice writes once


class AddedFacts:
    """The facts that came after training and are still there, by what they say, and where each came from."""

    def __init__(self) -> None:
        self.version = 0  # the newest that is counted
        self._sources: dict[FactKey, str] = {}

    def source(self, fact: Fact) -> str:
        """Where a fact came from, if it came after training; else ""."""
        return self._sources.get(fact.key(), "") if self._sources else ""

    def count(self, version: Version, change: GraphChange) -> None:
        """Takes over what became of facts with one more version."""
        if change.merged and self._sources:
            names = dict(change.merged)
            self._sources = {_renamed(key, names): source for key, source in self._sources.items()}
        for fact in change.removed:
            self._sources.pop(fact.key(), None)
        self._sources |= dict.fromkeys((fact.key() for fact in change.added), version.source or "an update")
        self.version = version.version


def _renamed(key: FactKey, names: Mapping[str, str]) -> FactKey:
    head, relation, (is_number, value, tail), pairs = key
    renamed = tuple((name, (number, at, names.get(text, text))) for name, (number, at, text) in pairs)
    return (names.get(head, head), relation, (is_number, value, names.get(tail, tail)), renamed)


@dataclass(frozen=True, eq=False)
class Journal:
    """The changes of one run's graph."""

    run: Path

    @property
    def folder(self) -> Path:
        return self.run / UPDATES

    def versions(self) -> list[Version]:
        """All that are on disk, oldest first."""
        return [version for version, _ in self._lines()]

    def mark(self) -> tuple[int, int]:
        """Where the journal ends, and when it was last written to: another pair after each version."""
        try:
            found = (self.folder / JOURNAL).stat()
        except OSError:
            return 0, 0
        return found.st_size, found.st_mtime_ns

    def latest(self) -> int:
        """The newest version; 0 where the graph is as it was trained on."""
        return len(self.versions())

    def graph(self, base: KnowledgeGraph, version: int | None = None) -> KnowledgeGraph:
        """The graph at a version, or at the newest one, from that of version 0."""
        adding: list[GraphChange] = []  # versions in a row that only add are added at once
        for one, _ in self._lines_to(version):
            change = self.change(one)
            if change.merged or change.without_entities or change.removed:
                base, adding = change.applied(_together(adding).applied(base)), []
            else:
                adding.append(change)
        return _together(adding).applied(base)

    def written(self, version: int | None = None) -> tuple[bytes, list[str]]:
        """The journal's lines up to a version, or to the newest one, and the names of the files that they need. What a
        kill has torn, and what another process writes meanwhile, is not among them.
        """
        lines = self._lines_to(version)
        if not lines:
            return b"", []
        content = (self.folder / JOURNAL).read_bytes()[: lines[-1][1]]
        return content, [self._file(one.version).name for one, _ in lines]

    def change(self, version: Version) -> GraphChange:
        """The changes of a version, refused where its file is not the one that was written."""
        path = self._file(version.version)
        if sha256_of(path) != version.sha256:
            raise DataError("the file was changed: its hash is not the journal's.", where=str(path), advice=RESTORE)
        try:
            return GraphChange.from_lines(path.read_text(encoding="utf-8"))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, RecordProblem):
            raise DataError("these are not changes of a graph.", where=str(path), advice=RESTORE) from None

    def count_added(self, known: AddedFacts, version: int | None = None) -> AddedFacts:
        """Counts what has come since `known` was counted last, up to a version, or to the newest one."""
        for one in self.versions()[known.version : version]:
            known.count(one, self.change(one))
        return known

    @contextmanager
    def writer(self) -> Iterator[JournalWriter]:
        """The one that may write, until the block ends; refused where there is another."""
        refuse_packaged(self.run)
        with writing(self.folder, "the journal of updates"):
            self.folder.mkdir(exist_ok=True)
            lock = os.open(self.folder / LOCK, _OURS, 0o644)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    "another process is updating this run.", where=str(self.run), advice="Try again when it is done."
                ) from None
            yield JournalWriter(self)
        finally:
            os.close(lock)

    def _file(self, version: int) -> Path:
        return self.folder / f"{version:06d}.jsonl"

    def _lines_to(self, version: int | None) -> list[tuple[Version, int]]:
        """The lines up to a version, or all; a version that is not there is refused."""
        lines = self._lines()
        last = len(lines) if version is None else version
        if not 0 <= last <= len(lines):
            raise UsageError(
                f"there is no version {last} of this run.",
                where="version",
                advice=f"It has versions 0 to {len(lines)}: hynt update {self.run} --log lists them.",
            )
        return lines[:last]

    def _lines(self) -> list[tuple[Version, int]]:
        """The whole lines of the journal, each with where it ends. A last line that is torn is left out; a damaged one
        is a `DataError`.
        """
        path = self.folder / JOURNAL
        try:
            check_regular(path)
            content = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):  # what is no run is refused by whoever opens it
            return []
        except OSError as problem:
            what = f"the journal of updates cannot be read: {problem.strerror}."
            raise DataError(what, where=str(path), advice=RESTORE) from None
        found: list[tuple[Version, int]] = []
        end = 0
        while end < len(content):
            stop = content.find(b"\n", end) + 1
            version = _version(content[end:stop], len(found) + 1) if stop else None
            if version is None:
                if stop:  # a kill tears the end off, so a line that has one was changed
                    place = f"{path}:{len(found) + 1}"
                    raise DataError("the journal of updates is damaged.", where=place, advice=RESTORE)
                break
            end = stop
            found.append((version, end))
        return found


@dataclass(frozen=True, eq=False)
class JournalWriter:
    """Writes to a journal; there is one at a time."""

    journal: Journal

    def append(
        self,
        change: GraphChange,
        before: KnowledgeGraph,
        source: str,
        key: str = "",
        after: KnowledgeGraph | None = None,
    ) -> Version:
        """One more version, on disk when this returns. `before` is the graph at the newest version so far, and `after`
        with the change, made here if not given.
        """
        journal, lines = self.journal, self.journal._lines()
        after = change.applied(before) if after is None else after
        number = len(lines) + 1
        text = change.lines()
        names, gone = set(before.vocabulary.entities), set(after.vocabulary.entities)
        version = Version(
            number,
            datetime.now(UTC).isoformat(timespec="seconds"),
            source,
            hashlib.sha256(text.encode()).hexdigest(),
            len(change.added),
            len(before) + len(change.added) - len(after),
            len(gone - names),
            len(names - gone),
            len(after),
            key,
        )
        line = _line(version)
        if len(line) > _LONGEST_LINE:
            raise UsageError("the key is too long.", where="key", advice="Choose a shorter one.")
        write_whole(journal._file(number), text)
        self._append_line(line, lines[-1][1] if lines else 0)
        return version

    def _append_line(self, line: bytes, end: int) -> None:
        """At the end of the last whole line; what a kill has torn there goes away."""
        path = self.journal.folder / JOURNAL
        with writing(path, "the journal of updates"):
            handle = os.open(path, _OURS, 0o644)
            try:
                os.ftruncate(handle, end)
                try:
                    if os.pwrite(handle, line, end) != len(line):
                        raise OSError(28, "No space left on device")
                    os.fsync(handle)
                except OSError:
                    os.ftruncate(handle, end)  # what was not acknowledged is not there
                    raise
            finally:
                os.close(handle)
            flush(self.journal.folder)
            flush(self.journal.run)


def _together(adding: Sequence[GraphChange]) -> GraphChange:
    return GraphChange(
        added=tuple(fact for one in adding for fact in one.added),
        labels=tuple(label for one in adding for label in one.labels),
    )


def _known(graph: KnowledgeGraph, name: str) -> int:
    if name not in graph.vocabulary.entity_ids:
        raise DataError(f"the graph has no entity {name!r}.", advice="Check its spelling: hynt data show finds names.")
    return graph.vocabulary.entity_ids[name]


def _line(version: Version) -> bytes:
    content = {name: value for name, value in asdict(version).items() if value != ""}
    plain = json.dumps(content, sort_keys=True)
    return json.dumps({**content, "line": _digest(plain)}, sort_keys=True).encode() + b"\n"


def _version(line: bytes, number: int) -> Version | None:
    """What a line says; None where it is torn or changed."""
    try:
        content = json.loads(line[:_LONGEST_LINE])
        digest = content.pop("line")
        if digest != _digest(json.dumps(content, sort_keys=True)) or content["version"] != number:
            return None
        version = Version(**{"source": "", **content})
        version = replace(version, source=shown(version.source), at=shown(version.at))  # somebody else's may hold codes
        kinds = {field.name: str if field.type == "str" else int for field in fields(Version)}
        is_fine = all(
            type(value) is kinds[name] and (not isinstance(value, int) or 0 <= value < 2**53)
            for name, value in asdict(version).items()
        )
        return version if is_fine else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _to_plain(fact: Fact) -> dict[str, Any]:
    def value(one: Value) -> Any:
        return {"number": one.value, "literal": one.literal, "unit": one.unit} if isinstance(one, Number) else one

    pairs = [[pair.relation, value(pair.value)] for pair in fact.qualifiers]
    plain = {"head": fact.head, "relation": fact.relation, "tail": value(fact.tail)}
    return plain | ({"qualifiers": pairs} if pairs else {})


def _from_plain(plain: Mapping[str, Any]) -> Fact:
    def value(one: Any) -> Value:
        if not isinstance(one, dict):
            return _name(one)
        if not math.isfinite(number := float(one["number"])):
            raise ValueError(f"{number} is not a number of a fact")
        return Number(number, _name(one["literal"]), _name(one["unit"]))

    pairs = tuple(Qualifier(_name(relation), value(one)) for relation, one in plain.get("qualifiers", ()))
    return Fact(_name(plain["head"]), _name(plain["relation"]), value(plain["tail"]), pairs)


def _name(given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError(f"a name is a text, not {given!r}")
    return check_name(given, "name") if given else given  # a literal and a unit may be empty


def graph_as_of(source: str | os.PathLike[str], version: int | None = None) -> KnowledgeGraph:
    """A saved or built-in graph, or that of a run with all updates, or as it was after so many."""
    if is_run(source):
        run = open_run(Path(source))
        with whole_run():
            return Journal(run.path).graph(run.graph(), version)
    if version is not None:
        raise UsageError("a graph has no versions.", where="version", advice="Name a run whose graph was updated.")
    return load_graph(source)


def changed_share(facts: int, versions: Sequence[Version]) -> float:
    """How much of a graph has changed: facts that came and went, as a share of those there were before."""
    return sum(one.added + one.removed for one in versions) / max(1, facts)
