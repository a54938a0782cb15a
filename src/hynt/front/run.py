"""A run and all that can be done with it.

run = hynt.load("runs/first")
run.predict("Japan", "capital", "?").to_pandas()
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from hynt.asking.predictor import LEVEL
from hynt.asking.question import answer_id, ask, asked_parts, rules_of
from hynt.errors import UsageError
from hynt.front.completing import Completable
from hynt.front.evaluating import Evaluable
from hynt.front.publishing import Publishable
from hynt.front.recorded_run import Note
from hynt.graph.fact import Fact

if TYPE_CHECKING:
    from hynt.auditing.auditing import Audit
    from hynt.explanation.explanations import Explanation
    from hynt.runs.journal import Version
    from hynt.runs.settings import RunSettings
    from hynt.trends.trends import Trend

Facts: TypeAlias = str | os.PathLike[str] | Iterable[Any]
"""A file of facts, or facts as tuples."""


def load(
    run: str | os.PathLike[str], device: str = "auto", note: Note = lambda text: None, version: int | None = None
) -> Run:
    """Opens a run. Every file is checked first; one that was changed is a `UsageError` that names it.

    `note` is called with a line of text when something takes a while, such as calibration on first use. `version` opens
    the run as it was after so many updates of its graph (0: as trained); by default all of them count.

    >>> run = hynt.load("runs/world")
    >>> run.graph.name
    'world'
    """
    opened = Run(run, device, note, version=version)
    _ = opened.loaded
    return opened


class Run(Evaluable, Completable, Publishable):
    """A trained model with its graph, settings and records, in a folder. It answers questions and says how well it
    does.

    `hynt.train` makes one and `hynt.load` opens one. `hynt.Client` asks a served run in the same words.

    >>> run = hynt.load("runs/world")
    >>> run.predict("Japan", "capital", "?", top=2).to_pandas().shape
    (2, 7)
    """

    @cached_property
    def settings(self) -> RunSettings:
        """All settings it was trained with.

        >>> run.settings.seed
        0
        """
        return self.loaded.settings

    def explain(
        self,
        fact: Fact | Sequence[Any] | Mapping[str, Any] | str | None = None,
        relation: Any = None,
        tail: Any = None,
        qualifiers: Mapping[str, Any] | Sequence[Any] = (),
        *,
        head: Any = None,
        answer: str | None = None,
        candidates: str | Sequence[str | Iterable[str]] = (),
        level: float = LEVEL,
    ) -> Explanation:
        """What the first answer to a question, or the one named by `answer`, depends on: each part of the question is
        left out in turn.

        >>> found = run.explain("Japan", "life expectancy", "?", {"point in time": 2024, "sex": "female"})
        >>> sorted(one.part for one in found.influences)[:3]
        ['all qualifiers', 'head', 'qualifier 1']
        """
        from hynt.asking.candidates import candidate_mask
        from hynt.calibration.intervals import check_level

        check_level(level)
        asked = ask(self.graph, *asked_parts(fact, relation, tail, qualifiers, head), self.names)
        allowed = candidate_mask(self.graph, asked, rules_of(candidates), self.names)
        about = None if answer is None else answer_id(asked, answer, self.names)
        from hynt.explanation.explaining import explain_asked

        return explain_asked(self, asked, allowed, about, level)

    def trends(
        self,
        heads: str | Sequence[str],
        relation: str,
        *,
        over: str | None = None,
        qualifiers: Mapping[str, Any] | Sequence[Any] = (),
        start: Any = None,
        end: Any = None,
        points: int = 100,
        level: float = LEVEL,
    ) -> Trend:
        """How a number of one or more heads changes along a qualifier: the date that most facts carry, unless `over`
        names another. `qualifiers` choose a series where there are several.

        >>> found = run.trends(["Brazil", "India"], "total fertility rate", points=5)
        >>> [one.name for one in found.series], len(found.at)
        (['Brazil', 'India'], 5)
        """
        from hynt.calibration.intervals import check_level
        from hynt.trends.trends import trend

        check_level(level)
        return trend(
            self, heads, relation, over=over, qualifiers=qualifiers, start=start, end=end, points=points, level=level
        )

    def embeddings(self, out: str | os.PathLike[str] | None = None) -> NDArray[np.float32]:
        """(entities, width) the vectors of the entities, in the order of `graph.entities`. With `out` they are also
        written as Parquet, with id, name and type.

        >>> run.embeddings("vectors.parquet").shape[0] == len(run.graph.entities)
        True
        """
        if out is not None:
            from hynt.asking.embeddings import write_embeddings
            from hynt.files import check_parquet

            check_parquet(Path(out), "out")
            write_embeddings(self.loaded, Path(out))
        return super().embeddings()

    def audit(self, out: str | os.PathLike[str] | None = None, **options: Any) -> Audit:
        """Ranks the facts of the run's graph, as it is now, by how wrong they look: `hynt.audit` with the same options.

        >>> found = run.audit(model="transea", preset="transea-small", splits=["test"], folds=2, epochs=1)
        >>> len(found) > 0
        True
        """
        from hynt.front.auditing import audit

        self._refuse_elsewhere("audit")
        return audit(self.path, out, **{"device": self._device, "version": self.version, **options})

    def with_facts(self, facts: Facts) -> Self:
        """The same run, asked as if these were facts of its graph too; nothing is written. Facts are tuples `(head,
        relation, tail, qualifiers)` or a file, as for `update`, and may name new entities and relations. The model must
        read observed facts, as hynt-inductive does.

        >>> more = inductive.with_facts([("Zoe", "knows", "person 1")])
        >>> "Zoe" in more.graph, "Zoe" in inductive.graph
        (True, False)
        """
        from hynt.asking.graph_updates import GivenChange

        self._refuse_fixed()
        return self.on(GivenChange(_given(facts)).fitted(self.graph, self.path).graph)

    def update(
        self,
        facts: Facts | None = None,
        *,
        remove: Facts | None = None,
        remove_entities: str | Sequence[str] = (),
        merge: Sequence[str] | Sequence[tuple[str, str]] = (),
        corrections: str | os.PathLike[str] | None = None,
        skip_known: bool = False,
        format: str = "",  # noqa: A002 - the word users know it by
        source: str = "",
        key: str = "",
        out: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Changes the graph of the run for good, without training: adds facts, removes facts, removes entities with all
        their facts, and merges the first of two entities into the second. Facts are tuples, or a file of any format
        that can be imported; `corrections` is a file of decisions from the page of doubtful facts. Either all of it
        becomes one new version, or nothing is changed. Returns the run at that version.

        `source` tells the log where the facts come from; a second update with the same `key` changes nothing. With
        `out` the run is copied to that folder first, and the copy changes: a refused update leaves none.

        >>> later = inductive.update([("Zoe", "knows", "person 1")], source="the registry")
        >>> later.version, "Zoe" in later.graph, later.versions()[-1].added
        (1, True, 1)
        """
        from hynt import leftovers
        from hynt.asking.graph_updates import GivenChange
        from hynt.formats.corrections import read_corrections
        from hynt.runs.journal import Journal

        self._refuse_elsewhere("update")
        self._refuse_fixed()
        files = tuple(Path(one).name for one in (facts, remove, corrections) if isinstance(one, (str, os.PathLike)))
        decided = None if corrections is None else read_corrections(Path(corrections))
        change = GivenChange(
            _given(facts, format),
            _given(remove, format),
            [remove_entities] if isinstance(remove_entities, str) else remove_entities,
            cast("Sequence[tuple[str, str]]", [merge] if merge and isinstance(merge[0], str) else merge),
            skip_known,
            source,
            key,
            files,
            decided,
        )
        changed = self if out is None else type(self)(self.save(out).path, self._device, self.note)
        journal, graph = Journal(changed.path), changed.saved.graph
        try:
            written = change.written(changed.path, lambda journal, version: journal.graph(graph(), version))
        except BaseException:
            if out is not None:  # an unchanged copy is not what was asked for
                leftovers.discard(changed.path)
            raise
        for note in written.notes:
            self.note(note)
        return changed._at(journal.latest() if written.version is None else written.version.version)

    def versions(self) -> list[Version]:
        """What has changed in its graph since training: a record per update, with its number, time and source.

        >>> run.versions()
        []
        """
        return self._journal(self.version)

    def changes(self, version: int) -> list[str]:
        """What the update that made a version changed, a line each: `+` before facts that came, `-` before those that
        went.

        >>> inductive.update([("Zoe", "knows", "person 1")], out="runs/more").changes(1)
        ['+ Zoe · knows · person 1']
        """
        from hynt.runs.journal import Journal

        if version < 1:
            advice = "Version 1 is the first that an update made."
            raise UsageError(f"no update made version {version}.", where="version", advice=advice)
        journal, graph = Journal(self.path), self.saved.graph()
        before, after = (journal.graph(graph, one) for one in (version - 1, version))
        return journal.change(journal.versions()[version - 1]).told(before, after)

    def save(self, folder: str | os.PathLike[str]) -> Run:
        """Copies the run to a new folder and opens the copy; so a run that was trained without `out` is kept.

        >>> run.save("runs/copy").path.name
        'copy'
        """
        self._refuse_elsewhere("save")
        self.saved.copy(Path(folder))
        return Run(folder, self._device, self.note)

    def _refuse_fixed(self) -> None:
        """Refuses a run whose model does not read the facts that it is asked of."""
        from hynt.models.contract import Part
        from hynt.models.registry import MODELS
        from hynt.runs.model_choice import ENSEMBLE

        name = self.saved.manifest["model_name"]
        if name == ENSEMBLE or Part.OBSERVED_FACTS not in MODELS.get(name).reads:
            raise UsageError(
                f"a run of {name!r} cannot follow its graph: it knows what it was trained on and nothing else.",
                where=str(self.path),
                advice="Make one that can: hynt train GRAPH --model hynt-inductive --out RUN.",
            )


def _given(facts: Facts | None, format_name: str = "") -> Iterable[Any]:
    """Facts from a file of any format, or as they are."""
    from hynt.formats.fact_file import FactFile

    if isinstance(facts, (str, os.PathLike)):
        return FactFile(Path(facts), format_name)
    return () if facts is None else facts
