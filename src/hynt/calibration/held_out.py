"""Held-out questions as calibration sees them: each right answer among the candidates that are not known otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hynt.calibration.intervals import training_spread
from hynt.calibration.reach import AskedNumbers
from hynt.calibration.temperature import FirstAnswers, Gaps
from hynt.evaluation.evaluation_pass import refuse_non_finite
from hynt.evaluation.metrics import KIND_OF_TASK, TaskName, answerable_components
from hynt.evaluation.results import NumberQuestions
from hynt.graph.content_hash import question_keys
from hynt.graph.fact_table import POSITION_GROUPS, Components, FactTable, components, position_group
from hynt.graph.known_answers import AnswerLists, KnownAnswers
from hynt.graph.vocabulary import Floats, Ids, spaced, spread
from hynt.progress import SILENT, Progress
from hynt.runs.observing import stored_folds
from hynt.runs.opening import LoadedRun
from hynt.runs.scoring import ReadTile, SaidNumbers, nobody, read_tiles

SPLIT = "valid"
"""Where all is fitted that makes answers mean what they say."""
MOST_QUESTIONS = 4096
"""Of one task and position: enough for one number to two digits; more are thinned out evenly."""
ENOUGH_QUESTIONS = 100
"""Held-out questions from which on a position has a temperature of its own."""
KEPT_BYTES = 2**26
"""Of scores of a task and position, which a fit looks at some thirty times; more are put together by their gaps."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Questions of one task and position with what the model says to them, scored once for all temperatures."""

    row: Ids  # (n,) the facts they were made of
    position: Ids  # (n,) that is hidden
    relation: Ids  # (n,) beside the answer; where a relation is asked for, the first answer
    gaps: Gaps  # (n,) between the answers
    is_finite: NDArray[np.bool_]  # (n,) whether every candidate has a finite score
    total: int  # questions of the split, before some were left out

    def __len__(self) -> int:
        return len(self.row)

    def first_answers(self, inverse_temperature: float | Floats) -> FirstAnswers:
        """The first answers at an inverse_temperature, one for all or (n,)."""
        return self.gaps.first_answers(inverse_temperature)

    @classmethod
    def read(
        cls,
        loaded: LoadedRun,
        task: TaskName,
        table: FactTable,
        taken: Components,
        others: AnswerLists,
        device: torch.device,
        *,
        total: int,
        fold: Ids | None = None,
        told: Callable[[int, int], None] = nobody,
    ) -> HeldOut:
        """Asks the model for the components `taken` (n,) of facts; `others` are the known answers of each question, the
        right one among them.
        """
        relation = taken.relation.astype(np.int64)
        answer = taken.entity.astype(np.int64) if task == "link" else relation
        is_finite, parts, order = np.ones(len(taken), dtype=np.bool_), list[Gaps](), list[Ids]()

        def work(tile: ReadTile) -> None:
            row, candidate = _listed(others, tile.which)
            is_other = candidate != answer[tile.which][row]
            row, candidate = row[is_other], candidate[is_other]

            def chunks() -> Iterator[tuple[int, Tensor]]:
                """Scores of the candidates from the first on, with −∞ for other known answers."""
                for first, whole in tile.entity_chunks() if task == "link" else tile.relation_chunks():
                    scores = whole[: len(tile.which)].clone()
                    is_finite[tile.which] &= torch.isfinite(scores).all(1).cpu().numpy()
                    here = (candidate >= first) & (candidate < first + scores.shape[1])
                    places = (torch.from_numpy(one).to(scores.device) for one in (row[here], candidate[here] - first))
                    scores[tuple(places)] = -torch.inf
                    yield first, scores

            right = torch.from_numpy(answer[tile.which]).to(tile.question.encoded.device)
            parts.append(Gaps.of(chunks, right, KEPT_BYTES // (4 * len(taken))))
            order.append(tile.which)

        read_tiles(loaded, table, taken.row, taken.position, device, work, fold=fold, told=told)
        gaps = Gaps.joined(parts, np.argsort(np.concatenate(order)))
        beside = relation if task == "link" else gaps.first.cpu().numpy()
        return cls(taken.row, taken.position, beside, gaps, is_finite, total)


def _listed(lists: AnswerLists, which: Ids) -> tuple[Ids, Ids]:
    """The known answers of these questions: whose each is, and which."""
    starts, ends = lists.offsets[which], lists.offsets[which + 1]
    row, slot = spread(starts, ends - starts)
    return row, lists.answers[slot].astype(np.int64)


def held_out(
    loaded: LoadedRun,
    split: str,
    task: TaskName,
    device: torch.device,
    most: int = MOST_QUESTIONS,
    progress: Progress = SILENT,
) -> dict[str, HeldOut]:
    """The link or relation questions of a split that the model answers, by the name of the position that they hide.

    The other known answers that are no candidates are those of training and of the split itself: what is fitted on the
    validation split knows nothing of the test split.
    """
    table, is_number = loaded.graph.split(split), loaded.graph.vocabulary.relation_is_number
    parts = components(table, is_number)
    chosen = answerable_components(loaded.model, parts, task)
    names = (SPLIT, *loaded.known_splits, split)
    seen = {name: facts for name, facts in loaded.graph.splits.items() if name in names}
    index = KnownAnswers.build(seen, is_number).of_kind(KIND_OF_TASK[task])
    keys, fold = question_keys(table, is_number), stored_folds(loaded, table)
    found, group = {}, position_group(parts.position[chosen])
    for one in np.unique(group).tolist():
        own = chosen[group == one]
        few = spaced(own, most)
        taken, others = parts.take(few), index.lookup(keys[few])
        told = progress.counting(f"asking for {task}s, {POSITION_GROUPS[one]}")
        held = HeldOut.read(loaded, task, table, taken, others, device, total=len(own), fold=fold, told=told)
        refuse_non_finite(held.is_finite, taken, loaded.graph, split)
        found[POSITION_GROUPS[one]] = held
    return found


class NumberReading(NamedTuple):
    """The number questions of a split with what the run says to them, as metrics see them and as intervals do."""

    questions: NumberQuestions
    asked: AskedNumbers


def read_numbers(
    loaded: LoadedRun, split: str, device: torch.device, progress: Progress = SILENT
) -> NumberReading | None:
    """The answers to the number questions of a split, each without its own fact in view; None where there are none."""
    table, graph, scaling = loaded.graph.split(split), loaded.graph, loaded.scaling
    parts = components(table, graph.vocabulary.relation_is_number)
    taken = parts.take(answerable_components(loaded.model, parts, "number"))
    if not len(taken):
        return None
    relation, said = taken.relation.astype(np.int64), SaidNumbers(np.zeros(len(taken)))
    fold, told = stored_folds(loaded, table), progress.counting("asking for numbers")
    read_tiles(loaded, table, taken.row, taken.position, device, said.add, fold=fold, told=told)
    with np.errstate(over="ignore", invalid="ignore"):
        predicted = scaling.unscale(relation, said.scaled)
    refuse_non_finite(np.isfinite(predicted), taken, graph, split)
    spread = training_spread(graph, [graph.split(name) for name in loaded.known_splits], scaling)
    asked = AskedNumbers.of(table, taken.row, taken.position, relation, said, spread)
    questions = NumberQuestions(
        taken.row,
        taken.position,
        relation,
        table.head[taken.row].astype(np.int64),
        table.qualifier_counts()[taken.row],
        taken.number,
        predicted,
        predicted,
        scaling.linear(relation, taken.number),
        *[scaling.linear(relation, predicted)] * 2,  # no mean is asked for here
    )
    return NumberReading(questions, asked)
