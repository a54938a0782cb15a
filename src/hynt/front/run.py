"""A run and all that can be done with it.

run = hynt.load("runs/first")
run.predict("Japan", "capital", "?").to_pandas()
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from hynt.asking.predictor import LEVEL
from hynt.asking.question import asked_parts, rules_of
from hynt.errors import UsageError
from hynt.front.recorded_run import Note, RecordedRun
from hynt.graph.fact import Fact

if TYPE_CHECKING:
    from hynt.auditing.auditing import Audit
    from hynt.explanation.explanations import Explanation
    from hynt.front.completing import Completed, ProposalReport
    from hynt.front.evaluating import CalibrationReport, EvaluationReport
    from hynt.front.jobs import Watching
    from hynt.front.updating import Facts
    from hynt.graph.knowledge_graph import KnowledgeGraph
    from hynt.reporting.report.page import Report
    from hynt.runs.journal import Version
    from hynt.runs.settings import RunSettings
    from hynt.trends.trends import Trend


def load(
    run: str | os.PathLike[str], device: str = "auto", note: Note = lambda text: None, version: int | None = None
) -> Run:
    """Opens a run. Every file is checked first; one that was changed is a `UsageError` that names it.

    `note` hears what takes a while, such as the calibration on first use. `version` opens it as it was after so many
    updates of its graph, 0 as it was trained; else all updates count.

    >>> run = hynt.load("runs/world")
    >>> run.graph.name
    'world'
    """
    opened = Run(run, device, note, version=version)
    _ = opened.loaded
    return opened


class Run(RecordedRun):
    """A trained model with its graph, settings and records, in a folder. It answers, and it says how well it does.

    `hynt.train` makes one and `hynt.load` opens one. What a served run answers through `hynt.Client`, it answers by the
    same words.

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

    # ------------------------------------------------------------------ asking

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
        """What mattered to the first answer to a question, or to `answer`: each part is taken away in turn.

        >>> found = run.explain("Japan", "life expectancy", "?", {"point in time": 2024, "sex": "female"})
        >>> sorted(one.part for one in found.influences)[:3]
        ['all qualifiers', 'head', 'qualifier 1']
        """
        from hynt.asking.candidates import candidate_mask
        from hynt.asking.question import answer_id, ask
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
        """How a number of some heads moves along a qualifier, which is the date that the facts carry most unless
        `over` names another. `qualifiers` choose a series.

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
        """(entities, width) the entities' vectors, in the order of `graph.entities`. With `out` they are written as
        Parquet as well, with id, name and type.

        >>> run.embeddings("vectors.parquet").shape[0] == len(run.graph.entities)
        True
        """
        if out is not None:
            from hynt.asking.embeddings import write_embeddings
            from hynt.files import check_parquet

            check_parquet(Path(out), "out")
            write_embeddings(self.loaded, Path(out))
        return super().embeddings()

    def with_facts(self, facts: Iterable[Any]) -> Run:
        """What if these were facts too? The same run, asked of its graph and of them; nothing is written. Facts are
        tuples `(head, relation, tail, qualifiers)`, and may name entities and relations that are new. It needs a model
        that reads observed facts, such as hynt-inductive.

        >>> more = inductive.with_facts([("Zoe", "knows", "person 1")])
        >>> "Zoe" in more.graph, "Zoe" in inductive.graph
        (True, False)
        """
        from hynt.asking.graph_updates import fitted_facts
        from hynt.graph.changes import with_facts

        return self.on(with_facts(self.graph, fitted_facts(self.graph, facts)))

    # ------------------------------------------------------------------ keeping its graph up to date

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
    ) -> Run:
        """Changes the graph of the run for good, without training: adds facts, takes some away, takes entities away
        with all their facts, makes the first of two entities the second. Facts are tuples, or a file of any format that
        can be imported; `corrections` is a file of decisions from the page of doubtful facts. All of it becomes one
        version, or nothing does; the run at that version comes back.

        `source` says for the log where it comes from; asking again with the same `key` changes nothing.

        >>> later = inductive.update([("Zoe", "knows", "person 1")], source="the registry")
        >>> later.version, "Zoe" in later.graph, later.versions()[-1].added
        (1, True, 1)
        """
        from hynt.front.updating import updated

        return updated(self, facts, remove, remove_entities, merge, corrections, skip_known, format, source, key)

    def versions(self) -> list[Version]:
        """What has changed in its graph since training: a record per update, with its number, time and source.

        >>> run.versions()
        []
        """
        return self._journal(self.version)

    # ------------------------------------------------------------------ many questions

    def complete(
        self,
        questions: str | os.PathLike[str] | Iterable[Any],
        out: str | os.PathLike[str] | None = None,
        *,
        top: int = 10,
        level: float = LEVEL,
        candidates: Sequence[Literal["type", "unknown"]] = (),
        on_error: Literal["stop", "record"] = "stop",
        resume: bool = False,
        processes: int = 1,
        progress: Watching = None,
    ) -> Completed:
        """Answers to a whole file of questions (.jsonl or .parquet), or to questions in memory, however many.

        With `out` the answers become a Parquet file, written part by part and resumable; without it they are held in
        memory. With `on_error="record"` a question that cannot be asked becomes a row that says why.

        >>> found = run.complete([("Japan", "capital", "?"), ("Japan", "population", "?")], top=2)
        >>> found.questions, found.to_arrow().column_names[:3]
        (2, ['question', 'kind', 'rank'])
        """
        from hynt.front.completing import completed

        return completed(self, questions, out, top, level, tuple(candidates), on_error, resume, processes, progress)

    def propose(
        self,
        relations: Sequence[str] = (),
        *,
        out: str | os.PathLike[str] | None = None,
        budget: int = 1000,
        threshold: float = 0.5,
        widest: float = 0.5,
        per_relation: int | None = None,
        share: float = 0.75,
        level: float = LEVEL,
        top: int = 1,
        without: Sequence[str] = (),
        heads: Sequence[str] = (),
        progress: Watching = None,
    ) -> ProposalReport:
        """Facts that the graph lacks, for entities without a relation that a `share` of their peers has; most
        probable first. `heads` asks about these entities alone. `without` takes splits for unknown, to see which
        proposals they confirm.

        >>> found = run.propose(["capital"], threshold=0.0, share=0.5, without=["test"], budget=3)
        >>> len(found) <= 3
        True
        """
        from hynt.front.completing import proposed

        limits = (budget, threshold, widest, per_relation, share, level, top)
        return proposed(self, relations, limits, tuple(without), heads, out, progress)

    def audit(self, out: str | os.PathLike[str] | None = None, **options: Any) -> Audit:
        """The facts of the run's graph by how wrong they look: `hynt.audit` of this run, with its options.

        >>> found = run.audit(model="transea", preset="transea-small", splits=["test"], folds=2, epochs=1)
        >>> len(found) > 0
        True
        """
        trained = self._as_trained("audit")
        from hynt.front.auditing import audit

        return audit(trained.path, out, **{"device": self._device, **options})

    # ------------------------------------------------------------------ how good it is

    def evaluate(
        self,
        split: str = "test",
        *,
        tasks: str | Iterable[str] = ("link", "relation", "number"),
        ties: Literal["realistic", "hynt"] = "realistic",
        type_constrained: bool = False,
        references: bool = True,
        intervals: bool = False,
        breakdown: Sequence[str] = (),
        compare: Run | str | os.PathLike[str] | None = None,
        questions: str | os.PathLike[str] | None = None,
        observed: KnowledgeGraph | str | os.PathLike[str] | None = None,
        asked: KnowledgeGraph | str | os.PathLike[str] | None = None,
        without_duplicates: bool = False,
        shuffle_literals: bool = False,
        processes: int = 1,
        progress: Watching = None,
    ) -> EvaluationReport:
        """Asks every question of a held-out split and says how well the run answers, beside trivial models. Readings
        of a split are counted in the run.

        `intervals` adds 95 % bootstrap intervals, `breakdown` tells questions apart, `compare` asks another run on the
        same graph; `questions` is a Parquet file. A model that reads observed facts is given the training split, of
        which `without_duplicates` leaves out asked facts, or that of the graph `observed`; the split is then that of
        `asked`. `shuffle_literals`: links and relations where numbers are those of other facts: do they help?

        >>> found = run.evaluate("valid", tasks="link", references=False)
        >>> 0 < found.metric("link.all.mrr") < 1
        True
        """
        from hynt.front.evaluating import evaluated

        return evaluated(
            self._as_trained("evaluate") if self.version and self.loaded.changed else self,
            split,
            tasks,
            ties,
            type_constrained=type_constrained,
            references=references,
            intervals=intervals,
            breakdown=breakdown,
            compare=compare,
            questions=questions,
            observed=observed,
            asked=asked,
            without_duplicates=without_duplicates,
            shuffle_literals=shuffle_literals,
            processes=processes,
            progress=progress,
        )

    def calibrate(self, split: str | None = None) -> CalibrationReport:
        """Fits probabilities and intervals on the validation split, once, and says how well they fit; with `split`,
        measured there as well, and the reading is counted.

        >>> run.calibrate().calibrated
        True
        """
        trained = self._as_trained("calibrate")
        from hynt.front.evaluating import calibrated

        return calibrated(trained, split)

    def report(
        self,
        out: str | os.PathLike[str] | None = None,
        split: str = "test",
        *,
        entity: str | None = None,
        again: bool = False,
        progress: Watching = None,
    ) -> Report:
        """One self-contained page that says what the run is and how far it can be trusted, written to `out`. Figures
        that were measured before are used again unless `again`. `entity` is the one whose facts are drawn.

        >>> made = run.report("report.html", "valid")
        >>> made.sections[0], made.page.startswith("<!doctype html>")
        ('metrics', True)
        """
        trained = self._as_trained("report")
        from hynt.front.publishing import reported

        return reported(trained, out, split, entity, again=again, progress=progress)

    # ------------------------------------------------------------------ keeping it

    def save(self, folder: str | os.PathLike[str]) -> Run:
        """A copy of the run in a new folder, which is opened: what keeps a run that was trained without `out`.

        >>> run.save("runs/copy").path.name
        'copy'
        """
        self.saved.copy(Path(folder))
        return Run(folder, self._device, self.note)

    def export(
        self,
        out: str | os.PathLike[str],
        format: Literal["onnx"] = "onnx",  # noqa: A002 - the word users know it by
        *,
        qualifiers: int | None = None,
        overwrite: bool = False,
    ) -> dict[str, Any]:
        """Writes the scoring model for programs without torch, after comparing its answers with torch's. `qualifiers`
        is the most that a fact may have; else as the graph has them.

        >>> run.export("model.onnx", qualifiers=2)["qualifiers"]
        2
        """
        trained = self._as_trained("export")
        from hynt.front.publishing import exported

        return exported(trained, out, format, qualifiers, overwrite=overwrite)

    def _as_trained(self, verb: str) -> Run:
        """The run over the graph that it was trained on: this one, or the same before any update."""
        if ("loaded" not in self.__dict__ and not self.version) or self.loaded.home is None:
            return self
        if not self.loaded.changed:
            raise UsageError(
                f"{verb} works on the graph that a run was trained on, and this run is asked of another.",
                where=verb,
                advice="Take the run itself, from hynt.load.",
            )
        return Run(self.path, self._device, self.note, version=0)
