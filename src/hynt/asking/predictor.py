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

from hynt.asking.answering import QuestionBatch
from hynt.asking.answers import Answers
from hynt.asking.candidate_masks import CandidateMasks
from hynt.asking.candidate_rules import CandidateMask, candidate_mask
from hynt.asking.columns import AskedFacts
from hynt.asking.embeddings import SimilarEntity, entity_vectors, similar_entities
from hynt.asking.number_relations import within_reach
from hynt.asking.present import AnswerBuilder
from hynt.asking.question import AskedFact, ask
from hynt.asking.question_forms import parts_of, rules_of
from hynt.asking.refusals import NO_CANDIDATE, answerable, non_finite, unanswerable
from hynt.calibration.calibration import Calibration, calibration_of
from hynt.errors import UsageError
from hynt.graph.components import NUMBER_KIND
from hynt.graph.fact import Fact
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.known_answers import KnownAnswers
from hynt.graph.lookup import NameLookup
from hynt.runs.opening import LoadedRun, load_run
from hynt.runs.place import whole_run
from hynt.training.run import chosen_device

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
            head, relation, tail, qualifiers = parts_of(fact)
        asked = ask(self.graph, head, relation, tail, qualifiers, self.names)
        return self.answer(asked, candidate_mask(self.graph, asked, rules_of(candidates), self.names), top, level)

    def predict_many(
        self,
        questions: Iterable[Any],
        *,
        top: int = 10,
        candidates: str | Sequence[str | Iterable[str]] = (),
        level: float = LEVEL,
    ) -> list[Answers]:
        """Answers to many facts with one "?" each, scored together: the same that `predict` gives to each of them.

        A question is a tuple `(head, relation, tail, qualifiers)` or a mapping with these keys. `candidates` holds for
        every question that does not ask for a number. A refusal says which question it is about, from 1.
        """
        asked, allowed, rules = [], [], rules_of(candidates)
        for number, question in enumerate(questions, 1):
            try:
                one = ask(self.graph, *parts_of(question), self.names)
                allowed.append(candidate_mask(self.graph, one, () if one.kind == NUMBER_KIND else rules, self.names))
            except UsageError as problem:
                raise _of_question(problem, number) from None
            asked.append(one)
        return self.answer_many(asked, allowed, top, level)

    def answer(self, asked: AskedFact, candidates: CandidateMask, top: int = 10, level: float = LEVEL) -> Answers:
        """Answers to a question that was resolved already."""
        return self.answer_many([asked], [candidates], top, level)[0]

    def answer_many(
        self,
        asked: Sequence[AskedFact],
        candidates: Sequence[CandidateMask] | None = None,
        top: int = 10,
        level: float = LEVEL,
    ) -> list[Answers]:
        """Answers to questions that were resolved already, in their order, scored together.

        Each gets what it gets when it is asked alone, to the last digit. `candidates` has an entry for each question;
        None: every answer is allowed. All scores are never held at once, so memory grows with `top`, not with the
        graph. A refusal says which question it is about where there are several.
        """
        if top < 1:
            raise UsageError(f"{top} answers cannot be given.", where="top", advice="Ask for at least 1.")
        if candidates is not None and len(candidates) != len(asked):
            raise UsageError(
                f"there are {len(asked)} questions and {len(candidates)} candidates.",
                where="candidates",
                advice="Give candidates for each question, or none.",
            )
        if not asked:
            return []
        reached = [self._reached(one, number, len(asked)) for number, one in enumerate(asked, 1)]
        allowed = CandidateMasks.all_of(len(asked)) if candidates is None else CandidateMasks.of(candidates)
        answering = self.question_batch(AskedFacts.joined(reached))
        numeric = np.flatnonzero(answering.asked.kind == NUMBER_KIND).astype(np.int64)
        ranked = answering.ranked(allowed, top) if len(numeric) < len(asked) else None
        numbers = answering.numbers(numeric, level) if len(numeric) else None
        place = dict(zip(numeric.tolist(), range(len(numeric)), strict=True))
        found = []
        for number, one in enumerate(reached):
            if numbers is not None and number in place:
                self._refuse_non_finite(numbers.is_finite[place[number]], one)
                found.append(self._builder.number(one, numbers, place[number], level))
            elif ranked is not None:
                self._refuse_non_finite(ranked.is_finite[number], one)
                if not ranked.count[number]:
                    problem = UsageError(NO_CANDIDATE, where="candidates", advice="Allow more of them.")
                    raise problem if len(asked) == 1 else _of_question(problem, number + 1)
                found.append(self._builder.ranked(one, ranked, number))
        return found

    def question_batch(self, asked: AskedFacts) -> QuestionBatch:
        """For whoever wants columns: see `QuestionBatch`. Questions must be answerable and within reach."""
        return QuestionBatch(self.loaded, self.device, self.calibration, self.known, asked)

    def similar(self, entity: str, top: int = 10) -> list[SimilarEntity]:
        """The entities whose vectors are most alike."""
        return similar_entities(self.loaded, self.names.entity(entity), top)

    def embeddings(self) -> NDArray[np.float32]:
        """(entities, width) the entities' vectors, in the order of `graph.entities`."""
        return entity_vectors(self.loaded)

    # ------------------------------------------------------------------ how

    def _reached(self, asked: AskedFact, number: int, total: int) -> AskedFact:
        """The question as it is scored; refused where the model cannot answer it."""
        try:
            self._refuse_unanswerable(asked)
            return within_reach(asked, self.loaded.scaling)
        except UsageError as problem:
            if total == 1:
                raise
            raise _of_question(problem, number) from None

    def _refuse_unanswerable(self, asked: AskedFact) -> None:
        position, kind = np.array([asked.position]), np.array([asked.kind])
        if not answerable(self.loaded, position, kind)[0]:
            raise unanswerable(self.loaded, asked.position, asked.kind)

    def _refuse_non_finite(self, is_finite: bool, asked: AskedFact) -> None:
        if not is_finite:
            raise non_finite(self.loaded, asked.text)

    @cached_property
    def _builder(self) -> AnswerBuilder:
        return AnswerBuilder(self.loaded, self.calibration, self.known)


def _of_question(problem: UsageError, number: int) -> UsageError:
    where = f"question {number}, {problem.where}" if problem.where else f"question {number}"
    return UsageError(problem.what, where=where, advice=problem.advice)
