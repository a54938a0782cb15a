"""A run and all that can be done with it.

run = hynt.load("runs/first")
run.predict("Japan", "capital", "?").to_pandas()
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hynt.asking.predictor import LEVEL
from hynt.asking.question import answer_id, ask, asked_parts, rules_of
from hynt.front.completing import Completable
from hynt.front.evaluating import Evaluable
from hynt.front.publishing import Publishable
from hynt.front.recorded_run import Note
from hynt.front.updating import Updatable
from hynt.graph.fact import Fact

if TYPE_CHECKING:
    from hynt.auditing.auditing import Audit
    from hynt.explanation.explanations import Explanation
    from hynt.runs.settings import RunSettings
    from hynt.trends.trends import Trend


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


class Run(Evaluable, Completable, Publishable, Updatable):
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

    def save(self, folder: str | os.PathLike[str]) -> Run:
        """Copies the run to a new folder and opens the copy; so a run that was trained without `out` is kept.

        >>> run.save("runs/copy").path.name
        'copy'
        """
        self.saved.copy(Path(folder))
        return Run(folder, self._device, self.note)
