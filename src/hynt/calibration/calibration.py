"""What makes a run's answers mean what they say: a temperature for probabilities, radii for intervals of numbers.

Both are fitted on the validation split, once, and kept in the run as `calibration.json`. The run's manifest stays as
it is: the file carries its own hash and that of the weights it was made with, and is refused with any others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from hynt.calibration.held_out import ENOUGH_QUESTIONS, SPLIT, held_out, read_numbers
from hynt.calibration.intervals import (
    Radii,
    fit_conditional_radii,
    furthest_ends,
    never_negative,
    training_edges,
    training_spread,
)
from hynt.calibration.reach import BINS, ResidualScale
from hynt.calibration.temperature import BINS as CONFIDENCE_BINS
from hynt.calibration.temperature import FirstAnswers, fit_by_relation, fit_inverse_temperature
from hynt.errors import DataError
from hynt.evaluation.metrics import TaskName
from hynt.files import RESTORE, index_text, read_index, write_whole
from hynt.graph.fact_table import POSITION_GROUPS, position_group
from hynt.graph.vocabulary import Floats, Ids, Vocabulary
from hynt.progress import Progress, noted
from hynt.runs import WEIGHTS
from hynt.runs.opening import LoadedRun

CALIBRATION = "calibration.json"
SCHEMA_VERSION = 2
OLDER_VERSIONS = (1,)
"""Of 0.1, in which a relation's intervals were all of one width."""
HOTTEST = 1e9
"""No temperature that is fitted is above it, or below one part in it."""
MOST_OFF = 0.03
"""The expected calibration error up to which probabilities are called right."""
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
