"""What the inference process does with its jobs: a run, asked many questions at once.

Each job gets a reply of its own, an answer in the bytes that the client will see or the faults of its question, so
that a wrong question harms nobody else's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from hynt.asking.candidates import CandidateMask, candidate_mask
from hynt.errors import DataError, HyntError, UsageError, located
from hynt.graph.lookup import NameLookup, NameSearch
from hynt.service.http.problems import Fault, code_place, fault_of

if TYPE_CHECKING:
    from hynt.asking.answers import Answers
    from hynt.asking.columns import AskedFact
    from hynt.asking.predictor import Predictor


_STEPS_OF_TOP = (10, 100, 1_000)
"""Questions are answered together with those that want about as many answers; each is then cut to its own number."""


class Reply(NamedTuple):
    """JSON bytes, or what is wrong with the question, or with us."""

    body: bytes
    faults: tuple[Fault, ...] = ()
    broken: str = ""  # what is wrong with the run, whatever is asked
    bug: str = ""  # where hynt itself failed
    version: int = 0  # of the graph that it was answered from


class _AskedJob(NamedTuple):
    number: int  # among the jobs
    fact: AskedFact
    candidates: CandidateMask
    top: int
    level: float


class RunJobs:
    """A run and the kinds of jobs it can do."""

    def __init__(self, predictor: Predictor) -> None:
        self.predictor = predictor
        self.names = NameLookup(predictor.graph, NameSearch(predictor.graph.entity_labels))
        self.kinds: dict[str, Callable[[Sequence[Mapping[str, Any]]], list[Reply]]] = {
            "predict": self._predict,
            "explain": lambda jobs: [_refused_or(self._explain, job) for job in jobs],
            "similar": lambda jobs: [_refused_or(self._similar, job) for job in jobs],
            "trends": lambda jobs: [_refused_or(self._trends, job) for job in jobs],
            "propose": lambda jobs: [_refused_or(self._propose, job) for job in jobs],
        }

    def warm_up(self) -> None:
        """Makes what the first question would else wait for: calibration, known answers, names."""
        predictor = self.predictor
        _ = predictor.calibration, predictor.known
        graph, numeric = predictor.graph, predictor.graph.vocabulary.relation_is_number
        if numeric.all():
            return
        relation, has = int(np.argmin(numeric)), np.zeros(graph.vocabulary.entity_count, dtype=np.bool_)
        for table in graph.splits.values():
            has[table.head[table.relation == relation]] = True
        head = int(np.argmin(has))  # a stored answer would be judged in states of its own, which nobody waits for here
        asked = {"head": graph.vocabulary.entities[head], "relation": graph.relations[relation].name, "tail": "?"}
        self._predict([asked])

    def examples(self) -> list[tuple[int, int]]:
        """Held-out facts of the relations that the run answers best: row and position of each."""
        from hynt.asking.examples import held_out_examples

        return [(one.row, one.position) for one in held_out_examples(self.predictor)]

    def replies(self, kind: str, jobs: Sequence[Mapping[str, Any]]) -> list[Reply]:
        """A reply to each job, in order."""
        try:
            return self.kinds[kind](jobs)
        except Exception as error:  # noqa: BLE001 - a question that meets a bug must not end everybody else's
            if len(jobs) > 1:
                return [reply for job in jobs for reply in self.replies(kind, [job])]
            return [Reply(b"", bug=code_place(error))]

    # ------------------------------------------------------------------ questions

    def _predict(self, questions: Sequence[Mapping[str, Any]]) -> list[Reply]:
        replies: dict[int, Reply] = {}
        groups: dict[tuple[float, int], list[_AskedJob]] = {}
        for index, (question, fact) in enumerate(zip(questions, self._resolved(questions), strict=True)):
            try:
                asked = self._asked(index, question, fact)
            except HyntError as error:
                replies[index] = _refusal(error)
                continue
            step = next(step for step in _STEPS_OF_TOP if asked.top <= step or step == _STEPS_OF_TOP[-1])
            groups.setdefault((asked.level, max(step, asked.top)), []).append(asked)
        for (level, top), group in groups.items():
            replies.update(self._answered(group, top, level))
        return [replies[index] for index in range(len(questions))]

    def _resolved(self, questions: Sequence[Mapping[str, Any]]) -> list[AskedFact | UsageError]:
        """The questions as the library's own `predict` reads them, all at once."""
        from hynt.asking.question import ask_each

        parts = [(question["head"], question["relation"], question["tail"], _pairs(question)) for question in questions]
        return ask_each(self.predictor.graph, parts, self.names)

    def _asked(self, index: int, question: Mapping[str, Any], fact: AskedFact | UsageError) -> _AskedJob:
        from hynt.asking.predictor import LEVEL
        from hynt.calibration.intervals import check_level

        predictor = self.predictor
        level = float(question.get("level", LEVEL))
        check_level(level)
        if isinstance(fact, UsageError):
            raise fact
        rules: list[Any] = list(question.get("candidates", ()))
        if question.get("only"):
            rules.append(question["only"])
        allowed = candidate_mask(predictor.graph, fact, rules, self.names)
        return _AskedJob(index, fact, allowed, int(question.get("top", 10)), level)

    def _answered(self, group: Sequence[_AskedJob], top: int, level: float) -> dict[int, Reply]:
        try:
            found = self.predictor.answer_many(
                [one.fact for one in group], [one.candidates for one in group], top, level
            )
        except HyntError as error:
            if len(group) == 1:
                return {group[0].number: _refusal(error)}
            # One of them cannot be answered: each by itself, so that only that one is refused.
            return {index: reply for one in group for index, reply in self._answered([one], top, level).items()}
        return {one.number: Reply(_encoded(_cut(answers, one.top))) for one, answers in zip(group, found, strict=True)}

    # ------------------------------------------------------------------ other jobs

    def _explain(self, job: Mapping[str, Any]) -> dict[str, Any]:
        from hynt.asking.question import answer_id
        from hynt.explanation.explaining import explain_asked

        asked, answer = self._asked(0, job, *self._resolved([job])), job.get("answer")
        about = None if answer is None else answer_id(asked.fact, answer, self.names)
        return explain_asked(self.predictor, asked.fact, asked.candidates, about, asked.level).to_dict()

    def _trends(self, job: Mapping[str, Any]) -> dict[str, Any]:
        from hynt.asking.predictor import LEVEL
        from hynt.calibration.intervals import check_level
        from hynt.trends.trends import trend

        asked = {**job, "qualifiers": _pairs(job)}
        check_level(asked.get("level", LEVEL))
        try:
            found = trend(self.predictor, names=self.names, **asked)
        except UsageError as problem:
            where = {"head": "heads", "from, to": "start", "qualifier": "over"}.get(problem.where, problem.where)
            raise problem.at(where) from None
        return found.to_dict()

    def _similar(self, job: Mapping[str, Any]) -> dict[str, Any]:
        named = self._named(job["entity"])
        found = self.predictor.similar(named["id"], int(job["top"]))
        return {"entity": named, "similar": [other.to_dict() for other in found]}

    def _propose(self, job: Mapping[str, Any]) -> dict[str, Any]:
        from hynt.completion.missing_facts import ProposalOptions, propose

        named, top = self._named(job["entity"]), int(job["top"])
        found = propose(self.predictor, ProposalOptions(budget=top, heads=(named["id"],)))
        shown = ("rank", "relation", "relation_label", "tail_label", "sentence", "probability", "answer_probability")
        rows = found.proposals.rows(self.predictor.graph).select((*shown, "share", "peers")).to_pylist()
        told = {"below_threshold": found.below, "oversight_rate": found.rate}
        return {"entity": named, "proposals": rows, **told}

    def _named(self, entity: str) -> dict[str, Any]:
        with located("entity"):
            identity = self.names.entity(entity)
        graph = self.predictor.graph
        one = graph.entities[identity]
        return {"id": one.name, "name": graph.entity_labels[identity], "type": one.type}


def _pairs(question: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    return [(pair["relation"], pair["value"]) for pair in question.get("qualifiers", ())]


def _cut(answers: Answers, top: int) -> Answers:
    """The first `top` answers; probabilities are over all candidates, so the rest changes nothing about them."""
    return answers if len(answers) <= top else replace(answers, answers=answers.answers[:top])


def _refused_or(work: Callable[[Mapping[str, Any]], dict[str, Any]], job: Mapping[str, Any]) -> Reply:
    try:
        return Reply(json.dumps(work(job), ensure_ascii=False, allow_nan=False).encode())
    except HyntError as error:
        return _refusal(error)


def _refusal(error: HyntError) -> Reply:
    """The question's fault; or the run's, where its own data is refused."""
    return Reply(b"", broken=error.what) if isinstance(error, DataError) else Reply(b"", (fault_of(error),))


def _encoded(answers: Answers) -> bytes:
    return json.dumps(answers.to_dict(), ensure_ascii=False, allow_nan=False).encode()


# Whoever answers jobs: the inference process in a service, the same code in a thread where one process is enough.


@dataclass
class EngineState:
    """Whether jobs can be done, told in /ready, /metrics and the log."""

    ready: bool = False
    reason: str = "the model is being loaded"  # why not, where it is not
    restarts: int = 0
    follows: bool = False  # whether the model counts facts that come after training
    described: dict[str, Any] = field(default_factory=dict)  # the run's model, graph, epoch, …
    examples: list[tuple[int, int]] = field(default_factory=list)  # held-out facts to ask about: row and position


class EngineDown(Exception):
    """The jobs at hand will get no answer: the process died, or was stopped because it took too long."""


class InferenceEngine(Protocol):
    """Does jobs of one kind, in order."""

    state: EngineState

    async def start(self) -> None:
        """Begins to load the model; `state` says when it is there."""

    async def exchange(self, kind: str, jobs: Sequence[Mapping[str, Any]]) -> list[Reply]:
        """A reply to each job; `EngineDown` where there will be none."""

    async def follow(self) -> None:
        """Begins to count what was written to the run's journal; answers come from the version before until then."""

    async def stop(self) -> None:
        """Ends the engine at once, whatever it is doing."""


class FollowingJobs:
    """The jobs of a run at the newest version whose states are made. Others are made beside it and swapped whole, so
    that whoever asks never waits for whoever writes.
    """

    def __init__(self, predictor: Predictor, swapped: Callable[[int], None] = lambda version: None) -> None:
        self.now = RunJobs(predictor)
        self._swapped = swapped
        self._maker = ThreadPoolExecutor(1, "following")

    def replies(self, kind: str, jobs: Sequence[Mapping[str, Any]]) -> list[Reply]:
        """A reply to each job, all from one version."""
        answering = self.now
        return [reply._replace(version=answering.predictor.version) for reply in answering.replies(kind, jobs)]

    def follow(self) -> None:
        """Makes the newest version ready, in a thread; several updates in a row may become one step."""
        self._maker.submit(self._catch_up)

    def _catch_up(self) -> None:
        from hynt.runs.kept_states import keep_states

        while (newest := self.now.predictor.newest()) is not None:
            keep_states(newest.loaded.model, wanted=False)
            made = RunJobs(newest)
            made.warm_up()
            self.now = made
            self._swapped(newest.version)
