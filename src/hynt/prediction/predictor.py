"""A run that can be asked.

predictor = hynt.load("runs/first")
predictor.predict(head="Japan", relation="capital", tail="?").to_pandas()
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hynt.errors import DataError, UsageError
from hynt.evaluation.questions import POSITION_GROUPS, position_group
from hynt.graph.components import (
    ENTITY_KIND,
    KIND_NAMES,
    NUMBER_KIND,
    RELATION_KIND,
    component_starts,
)
from hynt.graph.fact import Fact
from hynt.graph.fact_table import concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.known_answers import AnswerLists, KnownAnswers
from hynt.graph.lookup import NameLookup
from hynt.graph.number_summary import sorted_numbers
from hynt.models.contract import Part
from hynt.prediction.answers import Answers, KnownNumber, NumberAnswer, RankedAnswer
from hynt.prediction.asking import AskedFact, ask
from hynt.prediction.calibration import Calibration, calibration_of
from hynt.prediction.candidates import Candidates, candidates_for
from hynt.prediction.embeddings import SimilarEntity, entity_vectors, similar_entities
from hynt.prediction.number_relations import within_reach
from hynt.prediction.ranking import probabilities, top_places
from hynt.prediction.run_graph import whole_run
from hynt.prediction.scoring import ReadTile, read_tiles
from hynt.prediction.stored_literals import with_stored_literals
from hynt.training.loading import LoadedRun, load_run
from hynt.training.run import chosen_device
from hynt.training.training_data import training_splits

LEVEL = 0.9
"""The nominal coverage of intervals unless another is asked for."""


def load(
    run: str | os.PathLike[str], device: str = "auto", note: Callable[[str], None] = lambda text: None
) -> Predictor:
    """Opens a run to ask it. Every file is checked first; one that was changed is a `UsageError` that names it.

    `note` hears what takes a while, such as the calibration on first use.
    """
    target = chosen_device(device)
    with whole_run():
        return Predictor(load_run(Path(run), target), target, note)


class Predictor:
    """A run that can be asked, with what it needs kept between questions."""

    def __init__(
        self, loaded: LoadedRun, device: torch.device, note: Callable[[str], None] = lambda text: None
    ) -> None:
        self.loaded, self.device, self._note = loaded, device, note

    @property
    def graph(self) -> KnowledgeGraph:
        """The graph the run was made with."""
        return self.loaded.graph

    def described(self) -> dict[str, Any]:
        """The model and the graph, by name."""
        return {"model": self.loaded.settings.model_name, "graph": self.graph.name}

    @cached_property
    def calibration(self) -> Calibration:
        """What makes probabilities and intervals mean what they say; made on first use where the run has none."""
        with whole_run():
            return calibration_of(self.loaded, self.device, self._note)

    @cached_property
    def known(self) -> KnownAnswers:
        """What all splits of the graph answer."""
        return KnownAnswers.build(self.graph.splits, self.graph.vocabulary.relation_is_number)

    @cached_property
    def names(self) -> NameLookup:
        """From what people write to ids."""
        return NameLookup(self.graph)

    def predict(
        self,
        fact: Fact | Sequence[Any] | None = None,
        *,
        head: Any = None,
        relation: Any = None,
        tail: Any = None,
        qualifiers: Sequence[Any] = (),
        top: int = 10,
        candidates: str | Sequence[str | Iterable[str]] = (),
        level: float = LEVEL,
    ) -> Answers:
        """Answers to a fact with one "?" in it, given whole, as `(head, relation, tail, qualifiers)`, or by its parts.

        `candidates` narrows what may be answered: "type", "unknown", a list of names, or several of these in a list.
        """
        if fact is not None:
            if (head, relation, tail) != (None, None, None) or qualifiers:
                raise UsageError("the question was given twice.", advice="Give the fact, or its parts.")
            if isinstance(fact, str) or not isinstance(fact, Sequence) or len(fact) not in (3, 4):
                raise UsageError(
                    f"{fact!r:.60} is no fact.",
                    advice="Give (head, relation, tail) or (head, relation, tail, qualifiers).",
                )
            head, relation, tail = fact[:3]
            qualifiers = fact[3] if len(fact) == 4 else ()
        wishes: list[str | Iterable[str]] = [candidates] if isinstance(candidates, str) else list(candidates)
        if wishes and all(isinstance(wish, str) and wish not in ("type", "unknown") for wish in wishes):
            wishes = [[str(wish) for wish in wishes]]  # a plain list of names
        asked = ask(self.graph, head, relation, tail, qualifiers, self.names)
        return self.answer(asked, candidates_for(self.graph, asked, wishes, self.names), top, level)

    def answer(self, asked: AskedFact, candidates: Candidates, top: int = 10, level: float = LEVEL) -> Answers:
        """Answers to a question that was resolved already."""
        if top < 1:
            raise UsageError(f"{top} answers cannot be given.", where="top", advice="Ask for at least 1.")
        self._refuse_unanswerable(asked)
        asked = within_reach(asked, self.loaded.scaling)
        if asked.kind == NUMBER_KIND:
            number = self._number(asked, level)
            return self._told(asked, (number,), 0, "number")
        place, probability, score, splits, count = self._ranked(asked, candidates, top)
        ids, labels = self._names_of(asked.kind)
        found = tuple(
            RankedAnswer(rank, ids[one], labels[one], float(probability[rank - 1]), float(score[rank - 1]), known)
            for rank, (one, known) in enumerate(zip(place.tolist(), splits, strict=True), 1)
        )
        return self._told(asked, found, count, "relation" if asked.kind == RELATION_KIND else "link")

    def similar(self, entity: str, top: int = 10) -> list[SimilarEntity]:
        """The entities whose vectors are most alike."""
        return similar_entities(self.loaded, self.names.entity(entity), top)

    def embeddings(self) -> NDArray[np.float32]:
        """(entities, width) the entities' vectors, in the order of `graph.entities`."""
        return entity_vectors(self.loaded)

    # ------------------------------------------------------------------ how

    def _refuse_unanswerable(self, asked: AskedFact) -> None:
        model = self.loaded.model
        group = POSITION_GROUPS[int(position_group(np.array([asked.position]))[0])]
        if any(int(task) == asked.kind and position == group for task, position in model.answers):
            return
        offers = sorted({f"{KIND_NAMES[int(task)]} at {position}" for task, position in model.answers})
        article = "an" if asked.kind == ENTITY_KIND else "a"
        model_name, kind = self.loaded.settings.model_name, KIND_NAMES[asked.kind]
        raise UsageError(
            f"the model {model_name!r} cannot answer {article} {kind} as {group}.", where=asked.place,
            advice=f"It answers: {', '.join(offers)}.",
        )  # fmt: skip

    def _scores(self, asked: AskedFact) -> NDArray[np.float32]:
        """(rows, candidates) scores, or (rows,) numbers on the model's scale."""
        rows = len(asked.table)
        found: dict[int, NDArray[np.float32]] = {}

        def work(tile: ReadTile) -> None:
            made = {ENTITY_KIND: tile.entities, RELATION_KIND: tile.relations, NUMBER_KIND: tile.numbers}[asked.kind]()
            found.update(zip(tile.which.tolist(), made.cpu().numpy(), strict=True))

        table = with_stored_literals(asked.table, self.loaded)
        with whole_run():  # a number that the run's scale cannot take is the question's fault, not the data's
            read_tiles(
                self.loaded, table, np.arange(rows, dtype=np.int64),
                np.full(rows, asked.position, dtype=np.int64), self.device, work,
            )  # fmt: skip
        scores = np.stack([found[row] for row in range(rows)])
        self._refuse_non_finite(scores, asked)
        return scores

    def _refuse_non_finite(self, found: NDArray[Any], asked: AskedFact) -> None:
        if not np.isfinite(found).all():
            raise DataError(
                f"the model's answer to {asked.text} is not a finite number.", where=str(self.loaded.run.path),
                advice="Take an earlier checkpoint, or train again with a lower learning rate.",
            )  # fmt: skip

    def _known(self, asked: AskedFact) -> AnswerLists:
        """The known answers of each row."""
        components = component_starts(asked.table)[:-1] + asked.position
        return self.known.lookup(asked.table, components, asked.kind)

    def _ranked(
        self, asked: AskedFact, candidates: Candidates, top: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], list[tuple[str, ...]], int]:
        """The first `top` candidates: ids, probabilities, scores, splits that hold them; and how many there were."""
        scores, sharpness = self._scores(asked), self.calibration.sharpness(_task(asked.kind))
        lists = self._known(asked)
        bits = np.zeros(scores.shape[1], dtype=np.uint8)
        allowed = np.ones(scores.shape[1], np.bool_) if candidates.allowed is None else candidates.allowed.copy()
        if asked.tried is None:
            bits[lists.answers] = lists.splits
            logits, shown = scores[0].astype(np.float64) * sharpness, scores[0].astype(np.float64)
        else:
            # Each relation is judged by the row that has the number on its own scale.
            own = lists.answers == asked.tried[lists.question()]
            bits[lists.answers[own]] = lists.splits[own]
            sharp = scores.astype(np.float64) * sharpness
            rows = np.arange(len(asked.tried))
            logits, shown = np.full(scores.shape[1], -np.inf), np.zeros(scores.shape[1])
            logits[asked.tried] = sharp[rows, asked.tried] - np.logaddexp.reduce(sharp, axis=1)
            shown[asked.tried] = scores[rows, asked.tried]
            tried = np.zeros(scores.shape[1], np.bool_)
            tried[asked.tried] = True
            allowed &= tried
        if candidates.only_unknown:
            allowed &= bits == 0
        if not allowed.any():
            raise UsageError("no candidate is left.", where="candidates", advice="Allow more of them.")
        place = top_places(logits, allowed, top)
        probability = probabilities(logits, allowed)[place]
        splits = [self.known.split_names(int(one)) for one in bits[place]]
        return place, probability, shown[place], splits, int(allowed.sum())

    def _number(self, asked: AskedFact, level: float) -> NumberAnswer:
        assert asked.relation is not None
        relation, scaling = np.array([asked.relation], dtype=np.int64), self.loaded.scaling
        scaled = self._scores(asked).astype(np.float64)
        with np.errstate(over="ignore"):
            value = float(scaling.unscale(relation, scaled)[0])
        self._refuse_non_finite(np.array([value]), asked)
        interval, source, radii = None, "", self.calibration.radii
        if radii is not None:
            row = radii.at(level)
            low, high = (float(end[0]) for end in radii.interval(scaling, relation, scaled, level))
            if np.isfinite(radii.radius[row, asked.relation]) and np.isfinite([low, high]).all():
                interval = (low, high)
                source = "this relation" if radii.is_own[row, asked.relation] else "all relations with few values"
        lists = self._known(asked)
        known = [
            KnownNumber(float(one), self.known.split_names(int(bits)))
            for one, bits in zip(lists.answers, lists.splits, strict=True)
        ]
        unit = self.graph.relations[asked.relation].unit
        return NumberAnswer(value, unit, interval, level, source, self._ranges.get(asked.relation), tuple(known))

    @cached_property
    def _ranges(self) -> dict[int, tuple[float, float]]:
        """The least and greatest training number of each relation."""
        trained_on = concatenate([self.graph.split(name) for name in training_splits(self.loaded.settings)])
        numbers = sorted_numbers(trained_on, self.graph.vocabulary.relation_is_number)
        least, most = numbers.value[numbers.start], numbers.value[numbers.start + numbers.size - 1]
        return dict(zip(numbers.present.tolist(), zip(least.tolist(), most.tolist(), strict=True), strict=True))

    def _names_of(self, kind: int) -> tuple[Sequence[str], Sequence[str]]:
        if kind == ENTITY_KIND:
            return self.graph.vocabulary.entities, self.graph.entity_labels
        return [relation.name for relation in self.graph.relations], self.graph.relation_labels

    def _told(self, asked: AskedFact, answers: tuple[Any, ...], count: int, task: str) -> Answers:
        calibration, notes = self.calibration, []
        fitted = calibration.radii is not None if task == "number" else task in calibration.tasks
        if not fitted:
            reason = calibration.missing or "the validation split asks nothing of the kind"
            what = "there is no interval" if task == "number" else "probabilities are not calibrated"
            notes.append(f"{what}: {reason}")
        if not self.loaded.is_finished:
            notes.append(f"training is not finished; these are the weights of epoch {self.loaded.epoch}")
        if asked.table.qualifier_total and Part.QUALIFIERS not in self.loaded.model.reads:
            notes.append("this model does not look at qualifiers")
        return Answers(asked.text, asked.place, KIND_NAMES[asked.kind], answers, count, fitted, tuple(notes))


def _task(kind: int) -> str:
    return "relation" if kind == RELATION_KIND else "link"
