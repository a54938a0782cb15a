"""Answers to many questions, from a file or from memory, to a file or to memory; and facts that a graph lacks, proposed
by a run.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hynt.asking.predictor import LEVEL
from hynt.asking.question import parts_of
from hynt.errors import UsageError, located
from hynt.files import check_parquet, whole_file
from hynt.front.jobs import Watching, in_processes, options, watched
from hynt.front.recorded_run import RecordedRun
from hynt.graph.fact import DATE_UNIT, Number
from hynt.names import plural
from hynt.results import SHOWN, Table, box, more, notebook_table, pairs

if TYPE_CHECKING:
    import pyarrow as pa

    from hynt.completion.batches import CompletionOptions
    from hynt.completion.missing_facts import Proposals


@dataclass(frozen=True, eq=False, repr=False)
class Completed(Table):
    """What was answered: a table with a row per answer, in a file or in memory."""

    questions: int
    rows: int
    refused: int  # questions without an answer; their rows say why
    resumed_from: int  # questions that were answered already
    seconds: float
    was_finished: bool  # whether there was nothing left to do
    out: Path | None  # the Parquet file; None where the rows are in memory
    held: pa.Table | None

    @property
    def questions_per_second(self) -> float:
        """From the first question read to the last row written."""
        return (self.questions - self.resumed_from) / self.seconds if self.seconds > 0 else 0.0

    def to_arrow(self) -> pa.Table:
        """An Arrow table, a row per answer."""
        import pyarrow.parquet as parquet

        return self.held if self.held is not None else parquet.read_table(self.out)

    def __repr__(self) -> str:
        return f"<answers to {plural(self.questions, 'question')}: {plural(self.rows, 'row')} {self._place}>"

    def _repr_html_(self) -> str:
        told = [("questions", f"{self.questions:,}"), ("rows", f"{self.rows:,}"), ("kept", self._place)]
        told += [("without an answer", f"{self.refused:,}")] if self.refused else []
        return box("answers", pairs(told))

    @property
    def _place(self) -> str:
        return "in memory" if self.out is None else f"in {self.out}"


def _file(questions: str | os.PathLike[str] | Iterable[Any], place: Path) -> Path:
    """The file of questions that was given, or one of those in memory."""
    if isinstance(questions, (str, os.PathLike)):
        return Path(questions)
    if hasattr(questions, "__arrow_c_stream__"):
        from hynt.formats.from_python import TableColumns, as_arrow, facts_of_table
        from hynt.formats.parquet import FACT_COLUMNS

        table = as_arrow(questions)
        if set(table.column_names) <= FACT_COLUMNS:
            import pyarrow.parquet as parquet

            parquet.write_table(table, place / "questions.parquet")
            return place / "questions.parquet"
        questions = facts_of_table(table, TableColumns("head", "relation", "tail"), "question")
    path = place / "questions.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number, question in enumerate(questions, 1):
            head, relation, tail, qualifiers = parts_of(question, f"question {number}")
            written = [[name, _written(value)] for name, value in qualifiers]
            record = {"head": head, "relation": relation, "tail": _written(tail), "qualifiers": written}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return path


def _written(value: Any) -> Any:
    """A value as JSON lines have it."""
    if isinstance(value, Number):
        if value.unit == DATE_UNIT:
            return {"date": value.literal}
        return {"number": value.value, "unit": value.unit} if value.unit else value.value
    return {"date": value.isoformat()[:10]} if isinstance(value, datetime.date) else value


@dataclass(frozen=True, eq=False, repr=False)
class ProposalReport(Table):
    """Proposals, most probable first, and how many questions they come from."""

    found: Proposals
    table: pa.Table

    def __len__(self) -> int:
        return len(self.table)

    def to_arrow(self) -> pa.Table:
        """An Arrow table, a row per proposal."""
        return self.table

    def counts(self) -> dict[str, Any]:
        """What was asked, and what became of it."""
        found, expected = self.found, self.found.expected() or (None, None, None)
        return {
            "proposals": len(self.table),
            "of_entities": int((~found.proposals.is_number).sum()),
            "of_numbers": int(found.proposals.is_number.sum()),
            "relations_lacked": found.relations,
            "questions": found.questions,
            "not_answerable": found.unasked,
            "without_interval": found.without_interval,
            "below_threshold": found.below,
            "oversight_rate": found.rate,
            **dict(zip(("expected_true", "expected_low", "expected_high"), expected, strict=True)),
            "beyond_budget": found.left_out,
            "checked": int(found.is_checked.sum()),
            "confirmed": int(found.is_confirmed.sum()),
        }

    def __repr__(self) -> str:
        lines = [f"<{plural(len(self), 'proposed fact')}>", *filter(None, [told_expected(self.counts())])]
        return "\n".join([*lines, *(f"{row[2]}  {row[1]}" for row in self._rows(10))])

    def _repr_html_(self) -> str:
        shown = notebook_table(["rank", "proposed fact", "probability", "peers"], self._rows(SHOWN), numbers=(0, 2, 3))
        return box(f"{len(self):,} proposed facts", shown, more(len(self) - SHOWN, "proposals"))

    def _rows(self, count: int) -> list[list[str]]:
        return [
            [str(row["rank"]), row["sentence"], f"{row['probability']:.3f}", f"{row['share']:.0%}"]
            for row in self.table.slice(0, count).to_pylist()
        ]


def told_expected(counts: Mapping[str, Any]) -> str:
    """How many proposals should be true, in words; "" where nothing is known, or there are none."""
    if counts["expected_true"] is None or not counts["proposals"]:
        return ""
    low, high = math.floor(counts["expected_low"]), math.ceil(counts["expected_high"])
    return f"about {counts['expected_true']:,.0f} of them should be true, nine times in ten {low:,} to {high:,}"


def _done_in_processes(command: list[str], processes: int) -> dict[str, Any]:
    words = "the job stopped; what is done is kept."
    found = in_processes(command, processes, words, "Go on with resume=True.")
    done = {name: found[name] for name in ("questions", "rows", "resumed_from", "seconds")}
    return done | {"refused": found["without_answer"], "was_finished": False}


class Completable(RecordedRun):
    """A run that answers many questions, and proposes facts that its graph lacks."""

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
        """Answers all questions of a file (.jsonl, .csv, .tsv or .parquet), or in memory, in a list or a data frame,
        however many there are.

        With `out` the answers are written to a Parquet file, part by part, so that a job can be resumed; without it
        they are held in memory. With `on_error="record"` a question that cannot be asked becomes a row that says why.

        >>> found = run.complete([("Japan", "capital", "?"), ("Japan", "population", "?")], top=2)
        >>> found.questions, found.to_arrow().column_names[:3]
        (2, ['question', 'kind', 'rank'])
        """
        from hynt.calibration.intervals import check_level
        from hynt.completion.question_files import open_questions
        from hynt.distributed.launch import is_launched

        if out is None and resume:
            raise UsageError("answers in memory cannot be resumed.", where="resume", advice="Give a file as out.")
        with tempfile.TemporaryDirectory(prefix="hynt-complete-") as place:
            target = Path(place) / "answers.parquet" if out is None else Path(out)
            if out is not None:
                check_parquet(target, "out")
            check_level(level)
            file = _file(questions, Path(place))
            open_questions(file)
            _ = self.graph  # what can be refused without the model is refused before torch is loaded
            rules, how = tuple(dict.fromkeys(candidates)), {"on_error": on_error, "resume": resume}
            if processes > 1 and not is_launched():
                words = options(
                    out=target,
                    top=top,
                    level=level,
                    candidates=rules,
                    device=self.device.type,
                    processes=processes,
                    **how,
                )
                done = _done_in_processes(["complete", str(self.path), str(file), *words], processes)
            else:
                from hynt.completion.batches import CompletionOptions

                done = self._answered(file, target, CompletionOptions(top, level, rules), how, progress)
            if out is not None:
                return Completed(**done, out=target, held=None)
            import pyarrow.parquet as parquet

            return Completed(**done, out=None, held=parquet.read_table(target))

    def _answered(
        self, file: Path, out: Path, wanted: CompletionOptions, how: dict[str, Any], progress: Watching
    ) -> dict[str, Any]:
        from hynt.completion.batches import assist
        from hynt.completion.completing import BATCH, complete
        from hynt.distributed.worker_group import current_workers
        from hynt.interruption import interruptible

        with current_workers(self.device) as workers:
            _ = self.loaded
            if workers.rank:
                assist(self, file, wanted, BATCH, workers)
                return dict.fromkeys(("questions", "rows", "refused", "resumed_from", "seconds"), 0) | {
                    "was_finished": True
                }
            with interruptible(), watched(progress) as shown:
                return asdict(complete(self, file, out, wanted, progress=shown, workers=workers, **how))

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
        """Facts that the graph lacks, most probable first: of entities without a relation that at least a `share` of
        their peers have. `heads` asks about these entities alone. `without` treats splits as unknown, to see which
        proposals they confirm.

        >>> found = run.propose(["capital"], threshold=0.0, share=0.5, without=["test"], budget=3)
        >>> len(found) <= 3
        True
        """
        for name, given in (("relations", relations), ("heads", heads)):
            if isinstance(given, str):
                raise UsageError(f"{name} are a list of names.", where=name, advice="Give a list.")
        if out is not None:
            check_parquet(Path(out), "out")
        graph = self.graph
        with located("relations"):
            for name in relations:
                graph.names.relation(name)
        with located("heads"):
            for name in heads:
                graph.names.entity(name)
        with located("without"):
            for name in without:
                graph.split(name)
        from hynt.completion.missing_facts import ProposalOptions, propose
        from hynt.interruption import interruptible

        wanted = ProposalOptions(
            tuple(relations), budget, threshold, widest, per_relation, share, level, top, tuple(without), tuple(heads)
        )
        wanted.check()
        _ = self.loaded
        with interruptible(), watched(progress) as shown:
            found = propose(self, wanted, shown)
        made: Any = found.rows(self.graph)
        if out is not None:
            import pyarrow.parquet as parquet

            with whole_file(Path(out)) as file:
                parquet.write_table(made, file, compression="zstd")
        return ProposalReport(found, made)
