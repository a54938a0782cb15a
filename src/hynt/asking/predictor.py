"""A run that can be asked: one question, or many that are scored together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hynt.asking.answers import Answers
from hynt.asking.candidates import CandidateMask, CandidateMasks, candidate_mask
from hynt.asking.columns import AskedFact, AskedFacts
from hynt.asking.opened_run import OpenedRun
from hynt.asking.question import ask, ask_each, asked_parts, parts_of, rules_of
from hynt.calibration.intervals import check_level
from hynt.errors import UsageError, located
from hynt.graph.fact import Fact
from hynt.graph.fact_table import NUMBER_KIND
from hynt.graph.views import GraphViews

if TYPE_CHECKING:
    from hynt.asking.answering import QuestionBatch
    from hynt.asking.answers import SimilarEntity
    from hynt.asking.present import AnswerBuilder

LEVEL = 0.9
"""The nominal coverage of intervals unless another is asked for."""


class Predictor(OpenedRun):
    """A run that can be asked, with what it needs kept between questions."""

    def predict(
        self,
        fact: Fact | Sequence[Any] | Mapping[str, Any] | str | None = None,
        relation: Any = None,
        tail: Any = None,
        qualifiers: Mapping[str, Any] | Sequence[Any] = (),
        *,
        head: Any = None,
        top: int = 10,
        candidates: str | Sequence[str | Iterable[str]] = (),
        level: float = LEVEL,
    ) -> Answers:
        """Answers a fact with one "?" in it, given in parts or as a whole: `(head, relation, tail, qualifiers)`.

        Qualifiers are pairs (relation, value), or a mapping from relation to value. `candidates` restricts the answers:
        "type" to what was seen in that place, "unknown" to answers that the graph does not hold, a list to these names;
        several of them can be given in a list. `level` is the coverage of the interval of a number.

        >>> run.predict("Japan", "capital", "?").kind
        'entity'
        >>> female = {"point in time": 2024, "sex": "female"}
        >>> answer = run.predict("Japan", "life expectancy", "?", female)[0]
        >>> answer.unit, answer.interval[0] <= answer.value <= answer.interval[1]
        ('year', True)
        >>> run.predict(("?", "shares border with", "Brazil"), top=2, candidates="type").candidates < 200
        True
        """
        asked = ask(self.graph, *asked_parts(fact, relation, tail, qualifiers, head), self.names)
        return self.answer(asked, candidate_mask(self.graph, asked, rules_of(candidates), self.names), top, level)

    def predict_many(
        self,
        questions: Iterable[Any],
        *,
        top: int = 10,
        candidates: str | Sequence[str | Iterable[str]] = (),
        level: float = LEVEL,
    ) -> list[Answers]:
        """Answers many facts with one "?" each, scored together; each gets the answers that `predict` gives.

        A question is a tuple `(head, relation, tail, qualifiers)` or a mapping with these keys. `candidates` applies to
        every question that does not ask for a number. An error names the question by its number, from 1.

        >>> found = run.predict_many([("Japan", "capital", "?"), ("Brazil", "capital", "?")], top=1)
        >>> [answers.question for answers in found]
        ['Japan · capital · ?', 'Brazil · capital · ?']
        """
        asked, allowed, given, rules = [], [], [], rules_of(candidates)
        for number, question in enumerate(questions, 1):
            try:
                given.append(parts_of(question))
            except UsageError as problem:
                raise _of_question(problem, number) from None
        for number, one in enumerate(ask_each(self.graph, given, self.names), 1):
            try:
                if isinstance(one, UsageError):
                    raise one
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

        Each gets what it gets when it is asked alone, to the last digit; with `hynt-inductive`, whose products change
        their shape with the questions, up to rounding (4e-6 of it was the most on 60 questions of `world`).
        `candidates` has an entry for each question; None: every answer is allowed. All scores are never held at once,
        so memory grows with `top`, not with the graph. A refusal says which question it is about where there are
        several.
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
        check_level(level)
        from hynt.asking.present import HeldAnswers
        from hynt.asking.refusals import NO_CANDIDATE

        reached = [self._reached(one, number, len(asked)) for number, one in enumerate(asked, 1)]
        allowed = CandidateMasks.all_of(len(asked)) if candidates is None else CandidateMasks.of(candidates)
        answering = self.question_batch(AskedFacts.joined(reached))
        allowed = allowed.without_held(self.stored_facts, answering.asked)
        numeric = np.flatnonzero(answering.asked.kind == NUMBER_KIND).astype(np.int64)
        held = HeldAnswers.find(self.stored_facts, reached)
        named, value = held.named(), np.zeros(len(asked))
        ranked = answering.ranked(allowed, top, named) if len(numeric) < len(asked) else None
        numbers = answering.numbers(numeric, level) if len(numeric) else None
        if numbers is not None:
            value[numeric] = numbers.value
        held.settle(named, value.tolist())
        if self.loaded.observed is not None:
            held.judge_without(answering, allowed, level)
        place = dict(zip(numeric.tolist(), range(len(numeric)), strict=True))
        found = []
        for number, one in enumerate(reached):
            if numbers is not None and number in place:
                self._refuse_non_finite(numbers.is_finite[place[number]], one)
                made = self._builder.number(one, numbers, place[number], level, held.held[number])
            else:
                assert ranked is not None
                self._refuse_non_finite(ranked.is_finite[number], one)
                if not ranked.count[number]:
                    problem = UsageError(NO_CANDIDATE, where="candidates", advice="Allow more of them.")
                    raise problem if len(asked) == 1 else _of_question(problem, number + 1)
                made = self._builder.ranked(one, ranked, number, held.held[number])
            found.append(
                replace(made, stored=held.told(number, self.graph, self._added), stored_total=len(held.held[number]))
            )
        return found

    def question_batch(self, asked: AskedFacts, *, stored: bool = False) -> QuestionBatch:
        """For whoever wants columns: see `QuestionBatch`. Questions must be answerable and within reach.

        `stored`: they were made of facts of the graph, and none of these may be in view when it is asked about.
        """
        from hynt.asking.answering import QuestionBatch
        from hynt.runs.observing import stored_folds

        fold = stored_folds(self.loaded, asked.table) if stored else None
        return QuestionBatch(self.loaded, self.device, self.calibration, self.known, asked, fold)

    def similar(self, entity: str, top: int = 10) -> list[SimilarEntity]:
        """The entities with the most similar vectors, by cosine.

        >>> [other.rank for other in run.similar("Japan", top=2)]
        [1, 2]
        """
        names = self.names
        with located("entity"):
            identity = names.entity(entity)
        from hynt.asking.embeddings import similar_entities

        return similar_entities(self.loaded, identity, top)

    def embeddings(self) -> NDArray[np.float32]:
        """(entities, width) the vectors of the entities, in the order of `graph.entities`.

        >>> len(run.embeddings()) == len(run.graph.entities)
        True
        """
        from hynt.asking.embeddings import entity_vectors

        return entity_vectors(self.loaded)

    # ------------------------------------------------------------------ looking at the graph

    def entities(self, query: str, limit: int = 10) -> list[dict[str, Any]]:
        """The entities that a text may refer to, best match first.

        >>> run.entities("jap", limit=1)[0]["name"]
        'Japan'
        """
        found: list[dict[str, Any]] = self._views.entities(query, limit)["entities"]
        return found

    def entity(self, identity: str, offset: int = 0, limit: int = 50) -> dict[str, Any]:
        """An entity by its id or name, and a page of its facts.

        >>> run.entity("Japan", limit=2)["entity"]["id"]
        'country/Japan'
        """
        return self._views.entity(identity, offset, limit, None)

    def relations(self, query: str = "", offset: int = 0, limit: int = 200) -> list[dict[str, Any]]:
        """A page of the relations, those with the most facts first.

        >>> run.relations("capital", limit=1)[0]["name"]
        'capital'
        """
        found: list[dict[str, Any]] = self._views.relations(query, None, offset, limit)["relations"]
        return found

    @cached_property
    def _views(self) -> GraphViews:
        return GraphViews(self.graph)

    # ------------------------------------------------------------------ how

    def _reached(self, asked: AskedFact, number: int, total: int) -> AskedFact:
        """The question as it is scored; refused where the model cannot answer it."""
        from hynt.asking.refusals import within_reach

        try:
            self._refuse_unanswerable(asked)
            return within_reach(asked, self.loaded.scaling)
        except UsageError as problem:
            if total == 1:
                raise
            raise _of_question(problem, number) from None

    def _refuse_unanswerable(self, asked: AskedFact) -> None:
        from hynt.asking.refusals import too_few_numbers, unanswerable
        from hynt.evaluation.metrics import answerable
        from hynt.models.contract import unpredictable

        position, kind = np.array([asked.position]), np.array([asked.kind])
        if not answerable(self.loaded.model, position, kind)[0]:
            raise unanswerable(self.loaded, asked.position, asked.kind)
        if asked.kind == NUMBER_KIND and unpredictable(self.loaded.model, np.array([asked.relation]))[0]:
            assert asked.relation is not None
            raise too_few_numbers(self.loaded, asked.relation)

    def _refuse_non_finite(self, is_finite: bool, asked: AskedFact) -> None:
        from hynt.asking.refusals import non_finite

        if not is_finite:
            raise non_finite(self.loaded, asked.text)

    @cached_property
    def _builder(self) -> AnswerBuilder:
        from hynt.asking.present import AnswerBuilder

        return AnswerBuilder(self.loaded, self.calibration, self.known)


def _of_question(problem: UsageError, number: int) -> UsageError:
    return problem.at(f"question {number}, {problem.where}" if problem.where else f"question {number}")
