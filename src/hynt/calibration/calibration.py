"""What makes a run's answers mean what they say: a temperature for probabilities, radii for intervals of numbers.

Both are fitted on the validation split, once, and kept in the run as `calibration.json`. The run's manifest stays as
it is: the file carries its own hash and that of the weights it was made with, and is refused with any others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hynt.calibration.intervals import (
    Radii,
    fit_conditional_radii,
    furthest_ends,
    never_negative,
    training_edges,
    training_spread,
)
from hynt.calibration.reach import BINS, AskedNumbers, ResidualScale
from hynt.calibration.temperature import BINS as CONFIDENCE_BINS
from hynt.calibration.temperature import FirstAnswers, Gaps, fit_by_relation, fit_inverse_temperature
from hynt.errors import DataError
from hynt.evaluation.evaluation_pass import refuse_non_finite
from hynt.evaluation.metrics import KIND_OF_TASK, TaskName, answerable_components
from hynt.evaluation.results import NumberQuestions
from hynt.files import RESTORE, index_text, read_index, write_whole
from hynt.graph.content_hash import question_keys
from hynt.graph.fact_table import POSITION_GROUPS, Components, FactTable, components, position_group
from hynt.graph.known_answers import AnswerLists, KnownAnswers
from hynt.graph.vocabulary import Floats, Ids, Vocabulary, spaced, spread
from hynt.progress import SILENT, Progress, noted
from hynt.runs import WEIGHTS
from hynt.runs.observing import stored_folds
from hynt.runs.opening import LoadedRun
from hynt.runs.scoring import ReadTile, SaidNumbers, nobody, read_tiles

CALIBRATION = "calibration.json"
SCHEMA_VERSION = 2
OLDER_VERSIONS = (1,)
"""Of 0.1, in which a relation's intervals were all of one width."""
HOTTEST = 1e9
"""No temperature that is fitted is above it, or below one part in it."""
MOST_OFF = 0.03
"""The expected calibration error up to which probabilities are called right."""
SPLIT = "valid"
RANKED: tuple[TaskName, ...] = ("link", "relation")


@dataclass(frozen=True, eq=False)
class Calibration:
    """How scores become probabilities and numbers get intervals."""

    missing: str  # why there is none; "" where there is one
    tasks: Mapping[str, Mapping[str, float]]  # for link and relation, what `_task` measured
    radii: Radii | None  # None where no number was held out
    positions: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    """For each task, what `_measured` says of the positions that have enough held-out questions, by their names."""
    relations: Mapping[str, Mapping[str, Floats]] = field(default_factory=dict)
    """For each task and some of these positions, (relations,) the temperatures beside each relation; where relations
    are asked for, with each as the first answer.
    """

    def inverse_temperature(self, task: str, position: int, relation: int | None = None) -> float:
        """What the scores of a question are multiplied by that hides this position beside this relation: as fitted
        there, else as fitted for the task; 1 where the task is not calibrated. Where a relation is asked for, it is
        the first answer; None: whatever it is.
        """
        beside = None if relation is None else np.array([relation])
        return float(self.inverse_temperatures(task, np.array([position]), beside)[0])

    def inverse_temperatures(self, task: str, position: Ids, relation: Ids | None) -> Floats:
        """(n,) the same for questions that hide these positions (n,) beside these relations (n,)."""
        found: Floats = np.ones(len(position))
        if task not in self.tasks:
            return found
        groups = position_group(position)
        for one in np.unique(groups).tolist():
            name, here = POSITION_GROUPS[one], groups == one
            found[here] = self.positions.get(task, {}).get(name, self.tasks[task])["temperature"]
            if relation is not None and name in self.relations.get(task, {}):
                found[here] = self.relations[task][name][relation[here]]
        return 1.0 / found

    def still_off(self, task: str, position: int) -> float | None:
        """How far from right first answers to held-out questions that hide this position still are, on average; None
        where it is little, or could be chance.
        """
        measured = self.positions.get(task, {}).get(POSITION_GROUPS[int(position_group(np.array([position]))[0])])
        if measured is None:
            return None
        chance = math.sqrt(CONFIDENCE_BINS / (2 * math.pi * measured["questions"]))  # of the best, at the most
        error = measured["calibration_error_after"]
        return error if error > MOST_OFF + chance else None

    def to_mapping(self, vocabulary: Vocabulary) -> dict[str, Any]:
        """What is saved with the run as JSON; relations are called by their names."""
        if self.missing:
            return {"calibrated": False, "reason": self.missing}
        found: dict[str, Any] = {"calibrated": True, "split": SPLIT} | {
            task: dict(one) | {"positions": self._of_positions(task, vocabulary)} for task, one in self.tasks.items()
        }
        if self.radii is None:
            return found
        reach = {} if self.radii.scale is None else {"reach": self.radii.scale.to_mapping()}
        return found | reach | {"number": self.radii.to_mapping(vocabulary)}

    def _of_positions(self, task: str, vocabulary: Vocabulary) -> dict[str, Any]:
        found: dict[str, Any] = {name: dict(of) for name, of in self.positions.get(task, {}).items()}
        for name, temperature in self.relations.get(task, {}).items():
            own = np.flatnonzero(temperature != self.positions[task][name]["temperature"]).tolist()
            found[name]["relations"] = {vocabulary.relations[one].name: float(temperature[one]) for one in own}
        return found

    def on(self, home: Vocabulary, vocabulary: Vocabulary) -> Calibration:
        """The same for another graph: temperatures hold there too, and so do intervals of relations that both have."""
        numbers = [relation.name for relation in vocabulary.relations if relation.kind == "number"]
        mapping = self.to_mapping(home)
        if "number" in mapping:
            none: dict[str, Any] = {"values": 0, "radius": {}, "own": []}
            mapping["number"] = {name: mapping["number"].get(name, none) for name in numbers}
        return Calibration.from_mapping(mapping, vocabulary, "calibration")

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any], vocabulary: Vocabulary, where: str) -> Calibration:
        """Reads what `to_mapping` wrote."""
        if not mapping.get("calibrated"):
            return cls(str(mapping.get("reason") or "it was marked so"), {}, None)
        try:
            tasks: dict[str, dict[str, float]] = {task: _figures(mapping[task]) for task in RANKED if task in mapping}
            positions = {
                task: {name: _figures(of) for name, of in mapping[task].get("positions", {}).items()} for task in tasks
            }
            kept = [*tasks.values(), *(of for one in positions.values() for of in one.values())]
            relations = {
                task: {
                    name: _temperatures(of["relations"], positions[task][name]["temperature"], vocabulary)
                    for name, of in mapping[task].get("positions", {}).items()
                    if "relations" in of
                }
                for task in tasks
            }
            temperatures = [one["temperature"] for one in kept] + [
                temperature for task in relations.values() for one in task.values() for temperature in one
            ]
            fine = all(math.isfinite(number) for one in kept for number in one.values()) and all(
                1 / HOTTEST <= one <= HOTTEST for one in temperatures
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            fine = False
        if not fine:
            raise DataError("the calibration cannot be read.", where=where, advice=RESTORE)
        radii = Radii.from_mapping(mapping["number"], vocabulary, where) if "number" in mapping else None
        if radii is not None and "reach" in mapping:
            size = vocabulary.relation_count
            scale = ResidualScale.none(vocabulary, np.zeros((size, BINS - 1)), np.ones(size))
            radii = replace(radii, scale=scale.read(mapping["reach"], where))
        return cls("", tasks, radii, positions, relations)


def _figures(mapping: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a mapping."""
    numbers = {name: value for name, value in mapping.items() if name not in ("positions", "relations")}
    return {name: value if isinstance(value, int) else float(value) for name, value in numbers.items()}


def _temperatures(mapping: Mapping[str, Any], others: float, vocabulary: Vocabulary) -> Floats:
    """(relations,) those in a mapping by relation, and one for the `others`."""
    found = np.full(vocabulary.relation_count, others)
    for name, temperature in mapping.items():
        if name in vocabulary.relation_ids:
            found[vocabulary.relation_ids[name]] = float(temperature)
    return found


def calibration_of(
    loaded: LoadedRun, device: torch.device, note: Callable[[str], None] = lambda text: None
) -> Calibration:
    """The run's calibration: read where it is kept, else made and kept.

    A run over another graph has that of its own. That of an unfinished run is not kept, because its weights will
    change; nor where the folder cannot be written to.
    """
    if loaded.home is not None:
        found = calibration_of(loaded.home, device, note).on(loaded.home.graph.vocabulary, loaded.graph.vocabulary)
        return _with_ends(found, loaded)
    path, vocabulary = loaded.run.path / CALIBRATION, loaded.graph.vocabulary
    weights = loaded.run.manifest["files"].get(WEIGHTS)
    if path.exists() and weights is not None:
        content = read_index(path)
        if content.get("schema_version") not in (SCHEMA_VERSION, *OLDER_VERSIONS) or content.get("weights") != weights:
            raise DataError(
                "the calibration was made with other weights, or by another hynt.",
                where=str(path),
                advice="Remove the file: it is made again.",
            )
        return _with_ends(Calibration.from_mapping(content, vocabulary, str(path)), loaded)
    made = calibrate(loaded, device, note)
    if weights is not None:
        content = {"schema_version": SCHEMA_VERSION, "weights": weights, **made.to_mapping(vocabulary)}
        try:
            write_whole(path, index_text(content))
        except DataError as problem:
            note(f"the calibration cannot be kept in the run: {problem.what} It is made anew each time.")
    return made


def calibrate(loaded: LoadedRun, device: torch.device, note: Callable[[str], None] = lambda text: None) -> Calibration:
    """Fits both on the validation split; says why where that cannot be."""
    if SPLIT in loaded.known_splits:
        return Calibration("the run was trained on the validation split", {}, None)
    if not len(loaded.graph.splits.get(SPLIT, ())):
        return Calibration("the graph has no validation split", {}, None)
    note("calibrating on the validation split, once for this run")
    tasks: dict[str, dict[str, float]] = {}
    positions: dict[str, dict[str, dict[str, float]]] = {}
    relations: dict[str, dict[str, Floats]] = {}
    with noted(note) as progress:
        for task in RANKED:
            fitted = _task(loaded, task, device, progress)
            if fitted is not None:
                tasks[task], positions[task], relations[task] = fitted
        radii = _radii(loaded, device, progress)
    return _with_ends(Calibration("", tasks, radii, positions, relations), loaded)


def _with_ends(made: Calibration, loaded: LoadedRun) -> Calibration:
    """With intervals that end where the training numbers say that nothing can be beyond."""
    if made.radii is None:
        return made
    tables = [loaded.graph.split(name) for name in loaded.known_splits]
    scale, known = made.radii.scale, _residual_scale(loaded)
    if scale is not None:
        scale = replace(scale, edges=known.edges, spread=known.spread)
    ends, limits = never_negative(loaded.graph.vocabulary, tables), furthest_ends(loaded.graph, tables, loaded.scaling)
    return replace(made, radii=replace(made.radii, ends_at_zero=ends, scale=scale, limits=limits))


def _task(
    loaded: LoadedRun, task: TaskName, device: torch.device, progress: Progress
) -> tuple[dict[str, float], dict[str, dict[str, float]], dict[str, Floats]] | None:
    """The temperature of a task, those of its positions and what they change, and those beside each relation; None
    where nothing is asked.
    """
    groups = held_out(loaded, SPLIT, task, device, progress=progress)
    if not groups:
        return None
    whole = fit_inverse_temperature(
        lambda beta: FirstAnswers.joined([one.first_answers(beta) for one in groups.values()])
    )
    after = {name: one.first_answers(whole.inverse_temperature) for name, one in groups.items()}
    positions: dict[str, dict[str, float]] = {}
    relations: dict[str, Floats] = {}
    for name, one in groups.items():
        if len(one) < ENOUGH_QUESTIONS:
            continue
        fit = fit_inverse_temperature(one.first_answers)
        after[name], temperature = fit.after, 1.0 / fit.inverse_temperature
        off, after[name] = fit_by_relation(one.first_answers, fit.inverse_temperature, one.relation)
        relations[name] = np.full(loaded.graph.vocabulary.relation_count, temperature)
        relations[name][: len(off)] *= np.exp(-off)
        positions[name] = _measured(fit.before, after[name], temperature) | {"of": one.total}
    own = _measured(whole.before, FirstAnswers.joined([*after.values()]), 1.0 / whole.inverse_temperature)
    return own | {"of": sum(one.total for one in groups.values())}, positions, relations


def _measured(before: FirstAnswers, after: FirstAnswers, temperature: float) -> dict[str, float]:
    return {
        "temperature": temperature,
        "questions": len(after.correct),
        "calibration_error_before": before.calibration_error,
        "calibration_error_after": after.calibration_error,
        "loss_before": before.loss,
        "loss_after": after.loss,
    }


def _radii(loaded: LoadedRun, device: torch.device, progress: Progress) -> Radii | None:
    numbers = read_numbers(loaded, SPLIT, device, progress)
    if numbers is None:
        return None
    relation, true = numbers.questions.relation, numbers.questions.truth
    tables = [loaded.graph.split(name) for name in loaded.known_splits]
    least, most = furthest_ends(loaded.graph, tables, loaded.scaling)[:, relation]
    is_beyond = (true < least) | (true > most)
    return fit_conditional_radii(
        numbers.asked, loaded.scaling.scale(relation, true), _residual_scale(loaded), is_beyond
    )


def _residual_scale(loaded: LoadedRun) -> ResidualScale:
    """What training alone says of the sizes of errors."""
    trained_on = [loaded.graph.split(name) for name in loaded.known_splits]
    return ResidualScale.none(
        loaded.graph.vocabulary,
        training_edges(loaded.graph, trained_on, loaded.scaling),
        training_spread(loaded.graph, trained_on, loaded.scaling),
    )


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


# Held-out questions as calibration sees them: each right answer among the candidates that are not known otherwise.

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
