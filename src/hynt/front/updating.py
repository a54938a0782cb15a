"""A run's graph kept up to date: facts as people write them are fitted to its names, kinds and units, and written to
its journal, all or nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from hynt.errors import UsageError
from hynt.front.recorded_run import RecordedRun

if TYPE_CHECKING:
    from hynt.runs.journal import Version

Facts: TypeAlias = str | os.PathLike[str] | Iterable[Any]
"""A file of facts, or facts as tuples."""


class Updatable(RecordedRun):
    """A run whose graph is kept up to date, without training."""

    def with_facts(self, facts: Iterable[Any]) -> Self:
        """The same run, asked as if these were facts of its graph too; nothing is written. Facts are tuples `(head,
        relation, tail, qualifiers)` and may name new entities and relations. The model must read observed facts, as
        hynt-inductive does.

        >>> more = inductive.with_facts([("Zoe", "knows", "person 1")])
        >>> "Zoe" in more.graph, "Zoe" in inductive.graph
        (True, False)
        """
        from hynt.asking.graph_updates import fitted_facts
        from hynt.graph.changes import with_facts

        return self.on(with_facts(self.graph, fitted_facts(self.graph, facts)))

    def update(
        self,
        facts: Facts | None = None,
        *,
        remove: Facts | None = None,
        remove_entities: Sequence[str] = (),
        merge: Sequence[tuple[str, str]] = (),
        corrections: str | os.PathLike[str] | None = None,
        skip_known: bool = False,
        format: str = "",  # noqa: A002 - the word users know it by
        source: str = "",
        key: str = "",
    ) -> Self:
        """Changes the graph of the run for good, without training: adds facts, removes facts, removes entities with all
        their facts, and merges the first of two entities into the second. Facts are tuples, or a file of any format
        that can be imported; `corrections` is a file of decisions from the page of doubtful facts. Either all of it
        becomes one new version, or nothing is changed. Returns the run at that version.

        `source` tells the log where the facts come from; a second update with the same `key` changes nothing.

        >>> later = inductive.update([("Zoe", "knows", "person 1")], source="the registry")
        >>> later.version, "Zoe" in later.graph, later.versions()[-1].added
        (1, True, 1)
        """
        from hynt.asking.graph_updates import GivenChange
        from hynt.formats.corrections import read_corrections
        from hynt.models.contract import Part
        from hynt.models.registry import MODELS
        from hynt.runs.journal import Journal
        from hynt.runs.model_choice import ENSEMBLE

        name = self.saved.manifest["model_name"]
        if name == ENSEMBLE or Part.OBSERVED_FACTS not in MODELS.get(name).reads:
            raise UsageError(
                f"a run of {name!r} cannot follow its graph: it knows what it was trained on and nothing else.",
                where=str(self.path),
                advice="Make one that can: hynt train GRAPH --model hynt-inductive --out RUN.",
            )
        files = [Path(one).name for one in (facts, remove, corrections) if isinstance(one, (str, os.PathLike))]
        decided = None if corrections is None else read_corrections(Path(corrections))
        added, gone = _given(facts, format), _given(remove, format)
        change = GivenChange(
            added if decided is None else chain(added, decided.added()),
            gone if decided is None else chain(gone, decided.removed()),
            remove_entities,
            merge,
            skip_known,
            source or ", ".join(files),
            key,
        )
        written, _ = change.written(self.path, lambda journal, version: journal.graph(self.saved.graph(), version))
        return self._at(Journal(self.path).latest() if written is None else written.version)

    def _at(self, version: int) -> Self:
        """The run at a version; weights that are loaded already are not read again."""
        made = type(self)(self.path, self._device, self.note, self._kept, version)
        made.__dict__["saved"] = self.saved
        if "loaded" in self.__dict__:
            made.__dict__["trained"] = self.loaded.home or self.loaded
        return made

    def versions(self) -> list[Version]:
        """What has changed in its graph since training: a record per update, with its number, time and source.

        >>> run.versions()
        []
        """
        return self._journal(self.version)


def _given(facts: Facts | None, format_name: str) -> Iterable[Any]:
    """Facts from a file of any format, or as they are."""
    from hynt.asking.graph_updates import FactFile

    if isinstance(facts, (str, os.PathLike)):
        return FactFile(Path(facts), format_name)
    return () if facts is None else facts
