"""Everything a report says about how good a run is, measured once and kept in the run as `measurements-SPLIT.json`.

A held-out split is read, and counted as read, only when nothing is kept: a report can be made again, and a page can
show the figures, without another look at the test split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hynt.asking.predictor import Predictor
from hynt.calibration.calibration import RANKED
from hynt.calibration.held_out import MOST_QUESTIONS, read_numbers
from hynt.calibration.measuring import coverage
from hynt.calibration.temperature import expected_calibration_error, first_answers
from hynt.errors import DataError, UsageError
from hynt.evaluation import results as breakdowns
from hynt.evaluation.bootstrap import intervals
from hynt.evaluation.evaluator import reference_rows
from hynt.evaluation.metrics import KIND_OF_TASK, SCOPES, TaskName, answerable_components
from hynt.evaluation.results import Evaluation
from hynt.files import index_text, write_whole
from hynt.graph.changes import seen_triplets
from hynt.graph.content_hash import question_keys
from hynt.graph.fact_table import FIRST_QUALIFIER, Components, components, concatenate
from hynt.graph.known_answers import AnswerLists
from hynt.graph.sentences import Sentences
from hynt.graph.vocabulary import Floats, Ids, spaced
from hynt.reporting.report.metrics import GROUPINGS
from hynt.reporting.report.trust import SCHEMA_VERSION, Measurements, kept_measurements, measurements_path
from hynt.runs import WEIGHTS
from hynt.runs.observing import stored_folds
from hynt.runs.opening import LoadedRun
from hynt.runs.place import whole_run
from hynt.runs.scoring import ReadTile, evaluator_of_run, read_tiles
from hynt.runs.training_data import training_table

Asking = Callable[[int, int], None]


def measured(
    predictor: Predictor,
    split: str,
    *,
    again: bool = False,
    asking: Asking | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> tuple[Measurements, bool]:
    """The measurements of a split, and whether they were kept ones. New ones count as one reading of the split."""
    loaded = predictor.loaded
    refuse_split(loaded, split)
    weights = loaded.run.manifest["files"].get(WEIGHTS)
    kept = None if again else kept_measurements(loaded.run.path, split, weights)
    if kept is not None:
        return kept, True
    predictor.calibration  # noqa: B018 - made on first use, from valid: before the split asked for is touched
    with whole_run():
        reads = loaded.run.count_read(split)
    found: Measurements = {
        "schema_version": SCHEMA_VERSION,
        "weights": weights,
        "split": split,
        "reads_of_split": reads,
        **measure_all(predictor, split, reads, asking),
    }
    if weights is not None and not loaded.run.is_packaged:
        try:
            write_whole(measurements_path(loaded.run.path, split), index_text(found))
        except DataError as problem:
            note(f"the measurements cannot be kept in the run: {problem.what} The next report reads again.")
    return found, False


def refuse_split(loaded: LoadedRun, split: str) -> None:
    """Refuses a split that the graph lacks, that is empty, or that the run was trained on."""
    loaded.refuse_known(split, "--split")
    if not len(loaded.graph.split(split)):
        raise UsageError(f"the split {split} has no facts.", where="--split", advice="Choose another split.")


def measure_all(predictor: Predictor, split: str, reads: int, asking: Asking | None) -> Measurements:
    """Metrics with intervals, trivial rows, breakdowns, reliability, coverage, and the surest answers."""
    loaded = predictor.loaded
    described = loaded.described() | {"reads_of_split": reads}
    evaluator = evaluator_of_run(loaded, split, predictor.device, described=described)
    evaluation = evaluator.evaluate(loaded.model, asking)
    if not evaluation.per_question:
        raise DataError(
            f"the split {split} asks nothing that the model {loaded.settings.model_name!r} answers.",
            where=str(loaded.run.path),
            advice="Choose another split, or train a model that answers more.",
        )
    calibration, firsts = predictor.calibration, first_ones(predictor, split)
    numbers = None if calibration.radii is None else read_numbers(loaded, split, predictor.device)
    covered = None
    if numbers is not None and calibration.radii is not None:
        covered = coverage(loaded, calibration.radii, numbers)
    return {
        "evaluation": evaluation.to_mapping(),
        "intervals": intervals_of(evaluation),
        "references": reference_rows(evaluator, training_table(loaded.graph, loaded.settings)),
        "breakdowns": _labelled(breakdowns_of(evaluation, loaded, GROUPINGS), loaded),
        "not_calibrated": calibration.missing,
        "reliability": {
            one.task: one.to_mapping(calibration.tasks.get(one.task, {}).get("temperature")) for one in firsts
        },
        "coverage": covered,
        "answers": surest_and_least(predictor, split, firsts[0]) if firsts else None,
    }


def intervals_of(found: Evaluation) -> dict[str, Any]:
    """By task and scope, the bootstrap interval of each metric."""
    return {
        task: {scope: intervals(questions, scope, found.ties) for scope in SCOPES}
        for task, questions in found.per_question.items()
    }


def breakdowns_of(found: Evaluation, loaded: LoadedRun, groupings: Iterable[str]) -> dict[str, Any]:
    """By task and grouping, a list of groups with their metrics."""
    vocabulary = loaded.graph.vocabulary
    home = loaded.home or loaded
    trained_on = training_table(home.graph, home.settings)
    met = breakdowns.NameCounts.of(trained_on, home.graph.vocabulary, vocabulary)
    table = loaded.graph.split(found.protocol["split"])

    def seen() -> NDArray[np.bool_]:
        return seen_triplets(table, concatenate([loaded.graph.split(name) for name in loaded.known_splits]), vocabulary)

    ways: dict[str, Callable[[Any], Any]] = {
        "relation": lambda questions: breakdowns.by_relation(questions, found.ties, vocabulary),
        "position": lambda questions: breakdowns.by_position(questions, found.ties),
        "qualifiers": lambda questions: breakdowns.by_qualifier_count(questions, found.ties),
        "frequency": lambda questions: breakdowns.by_entity_frequency(questions, found.ties, met.entity),
        "seen": lambda questions: breakdowns.by_seen(questions, found.ties, table, met, vocabulary),
        "leakage": lambda questions: breakdowns.by_leakage(questions, found.ties, seen()),
    }
    return {
        task: {name: ways[name](questions) for name in groupings if (task, name) != ("relation", "frequency")}
        for task, questions in found.per_question.items()
    }


def _labelled(found: dict[str, Any], loaded: LoadedRun) -> dict[str, Any]:
    """With the names that people know relations by."""
    relations, labels = loaded.graph.relations, loaded.graph.relation_labels
    called = dict(zip((one.name for one in relations), labels, strict=True))
    for groups in found.values():
        groups["relation"] = [{**row, "label": called[row["group"]]} for row in groups["relation"]]
    return found


# How sure a run is of its first answers on a held-out split, whether it is right to be, and the surest and least sure
# of them in words.

BINS = 10
SHOWN = 10
A_RELATION = 2
"""How many answers of one relation and position are shown at most: ten times the same kind of answer say little."""


@dataclass(frozen=True, eq=False)
class FirstOnes:
    """The first answers to `n` held-out questions of one task, other known answers left out."""

    task: TaskName
    questions: Components  # (n,)
    first: Ids  # (n,) the entity or relation answered
    before: Floats  # (n,) its probability without calibration
    after: Floats  # (n,) its probability with calibration
    correct: NDArray[np.bool_]  # (n,)
    total: int  # questions of the split; more than `n` where some were left out

    def to_mapping(self, temperature: float | None) -> dict[str, Any]:
        """The reliability of the probabilities, bin by bin."""
        return {
            "questions": len(self.first),
            "of": self.total,
            "temperature": temperature,
            "calibration_error_before": expected_calibration_error(self.before, self.correct),
            "calibration_error_after": expected_calibration_error(self.after, self.correct),
            "bins_before": reliability(self.before, self.correct),
            "bins_after": reliability(self.after, self.correct),
        }


def reliability(confidence: Floats, correct: NDArray[np.bool_]) -> list[dict[str, float | int]]:
    """Of each tenth of the probabilities that has answers: how many, how sure they are, and how often right."""
    place = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    return [
        {
            "low": index / BINS,
            "high": (index + 1) / BINS,
            "count": int((place == index).sum()),
            "confidence": float(confidence[place == index].mean()),
            "accuracy": float(correct[place == index].mean()),
        }
        for index in np.unique(place).tolist()
    ]


def first_ones(predictor: Predictor, split: str) -> list[FirstOnes]:
    """The first answers of links and relations, as far as the model answers them."""
    found = (_of_task(predictor, split, task) for task in RANKED)
    return [one for one in found if one is not None]


def _of_task(predictor: Predictor, split: str, task: TaskName) -> FirstOnes | None:
    loaded, table = predictor.loaded, predictor.graph.split(split)
    is_number = predictor.graph.vocabulary.relation_is_number
    parts = components(table, is_number)
    chosen = answerable_components(loaded.model, parts, task)
    if not len(chosen):
        return None
    few = spaced(chosen, MOST_QUESTIONS)
    taken = parts.take(few)
    answer = (taken.entity if task == "link" else taken.relation).astype(np.int64)
    known = predictor.known.of_kind(KIND_OF_TASK[task]).lookup(question_keys(table, is_number)[few])
    first = np.zeros(len(few), dtype=np.int64)
    before, after = np.zeros(len(few)), np.zeros(len(few))

    def work(tile: ReadTile) -> None:
        scores = (tile.entities() if task == "link" else tile.relations()).clone()
        own = torch.from_numpy(answer[tile.which]).to(scores.device)
        for row, others in enumerate(_others(known, tile.which)):
            kept = scores[row, own[row]].clone()
            scores[row, torch.from_numpy(others).to(scores.device)] = -torch.inf
            scores[row, own[row]] = kept
        first[tile.which] = scores.argmax(1).cpu().numpy()
        before[tile.which] = first_answers(scores, own, 1.0).confidence
        beside = taken.relation[tile.which].astype(np.int64) if task == "link" else first[tile.which]
        sharpened = predictor.calibration.inverse_temperatures(task, taken.position[tile.which], beside)
        after[tile.which] = first_answers(scores, own, sharpened).confidence

    fold = stored_folds(loaded, table)
    read_tiles(loaded, table, taken.row, taken.position, predictor.device, work, fold=fold)
    return FirstOnes(task, taken, first, before, after, first == answer, len(chosen))


def _others(known: AnswerLists, which: Ids) -> Iterator[Ids]:
    """The known answers of each of these questions."""
    for question in which.tolist():
        yield known.answers[known.offsets[question] : known.offsets[question + 1]].astype(np.int64)


def surest_and_least(predictor: Predictor, split: str, found: FirstOnes) -> dict[str, Any]:
    """The ten first answers with the highest probability, and the ten with the lowest, in words."""
    order = np.lexsort((np.arange(len(found.after)), -found.after))
    return {
        "task": found.task,
        "questions": len(found.first),
        "of": found.total,
        "a_relation": A_RELATION,
        "most": _answer_rows(predictor, split, found, order),
        "least": _answer_rows(predictor, split, found, order[::-1]),
    }


def _answer_rows(predictor: Predictor, split: str, found: FirstOnes, order: Ids) -> list[dict[str, Any]]:
    graph, parts = predictor.graph, found.questions
    labels = graph.entity_labels if found.task == "link" else graph.relation_labels
    table, words = graph.split(split), Sentences(graph)
    seen_facts: set[int] = set()
    seen_places: Counter[tuple[int, int]] = Counter()
    told: list[dict[str, Any]] = []
    for index in order.tolist():
        row, position = int(parts.row[index]), int(parts.position[index])
        place = (int(parts.relation[index]), min(position, FIRST_QUALIFIER + position % 2))
        if row in seen_facts or seen_places[place] >= A_RELATION:
            continue
        seen_facts.add(row)
        seen_places[place] += 1
        (fact,) = table.take(np.array([row], dtype=np.int64)).facts(graph.vocabulary)
        truth = parts.entity[index] if found.task == "link" else parts.relation[index]
        told.append(
            {
                "question": words.question(fact, position),
                "answer": labels[int(found.first[index])],
                "truth": labels[int(truth)],
                "correct": bool(found.correct[index]),
                "probability": float(found.after[index]),
            }
        )
        if len(told) == SHOWN:
            break
    return told
