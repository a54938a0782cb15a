"""Models, and statistics of the facts they were trained on, that answer as one: weights fitted on validation questions,
few of them, and drawn to the mean of the trained members.

A model that was trained for minutes may know less than a count or a mean. Weighed on validation, the two together are
no worse than either, and such a run keeps the weights in `combination.json`; the statistics are made again from its
graph.

Of each question the answer, what each member ranks highest and some candidates at random are kept; known answers are
left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from hynt.batches.epoch_plan import derived_seed
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import Task
from hynt.errors import DataError
from hynt.evaluation.combination_weights import Asked, fit_numbers, fit_ranks
from hynt.evaluation.evaluation_pass import SCORES_AT_ONCE
from hynt.evaluation.evaluator import Evaluator, scoring_conditions
from hynt.evaluation.metrics import KIND_OF_TASK, TaskName, of_task
from hynt.evaluation.tiles import ROWS_ON_CPU, KnownSlots, Tile, Tiling, read_each_tile
from hynt.graph.fact_table import POSITION_GROUPS, Components, position_group
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.vocabulary import Ids
from hynt.kernels.device import give_back_freed_memory
from hynt.models.combination import POSITIONS, Combination, CombinedQuestion, GroupWeights, Weights
from hynt.models.contract import (
    Capability,
    EncodedQuestion,
    Entities,
    Model,
    Part,
    Position,
    Relations,
    ScaledNumber,
    give_observed,
)
from hynt.models.shared_facts import building_bytes
from hynt.models.training_statistics import number_ranges
from hynt.models.trivial import FORMER, STATISTICS, statistic

QUESTIONS, FEW_QUESTIONS, MOST_SCORES = 4_000, 1_000, 200_000_000
"""Questions of each capability when a run is finished. Fewer, down to the second, where so many questions with all
their candidates are more than the third.
"""
MANY_QUESTIONS = 12_000
"""The same for ensembles, which may take their time: so that more relations have enough for weights of their own."""
HIGHEST, AT_RANDOM = 16, 64
"""Candidates kept: the highest of each member, and some of the rest. With 64 of the highest, weights are worse by .004
link MRR on WD50K (validation), and take longer.
"""


def fit_weights(
    names: Sequence[str],
    members: Sequence[Model],
    evaluator: Evaluator,
    answers: frozenset[Capability],
    seed: int = 0,
    ranges: Tensor | None = None,
    trained: int = 1,
    tick: Callable[[int, int], None] = lambda done, total: None,
    questions: int = QUESTIONS,
) -> Weights:
    """The weights of these members, of which the first were `trained`, for the evaluator's split, which none of them
    was trained on; `ranges` are those of the combination. `tick` hears how many scores are weighed, of how many.
    """
    plain, kinds = _to_weigh(names, members, evaluator, answers, ranges, questions)
    groups: dict[Capability, GroupWeights] = {}
    sizes = [one.scores for one in kinds]
    with scoring_conditions(plain):
        for done, one in enumerate(kinds):
            tick(sum(sizes[:done]), sum(sizes))
            groups[one.capability] = one.fitted(_asked(plain, evaluator, one, seed), trained)
    first_alone = (1.0, *(0.0 for _ in names[1:]))
    kept = {one: group for one, group in groups.items() if group.relations or group.everywhere != first_alone}
    return Weights(tuple(names), kept)


def _to_weigh(
    names: Sequence[str],
    members: Sequence[Model],
    evaluator: Evaluator,
    answers: frozenset[Capability],
    ranges: Tensor | None,
    questions: int = QUESTIONS,
) -> tuple[Combination, list[_Kind]]:
    """The members side by side, none of them weighed, and what they are asked for it."""
    plain = Combination(evaluator.facts.sizes, members, Weights(tuple(names), {}), answers, ranges=ranges)
    plain.to(evaluator.device)
    if Part.OBSERVED_FACTS in plain.reads:
        give_observed(plain, evaluator.observed_facts)
    return plain, [one for one in _kinds(evaluator, members, questions) if one.capability in answers]


class _Kind(NamedTuple):
    """The questions of one capability, and who can answer them."""

    task: TaskName
    position: Position
    able: list[bool]
    chosen: Ids  # among the evaluator's questions
    candidates: int
    most: int  # questions
    rows: int = ROWS_ON_CPU  # of a tile, at most

    @property
    def capability(self) -> Capability:
        return Task[self.task.upper()], self.position

    @property
    def questions(self) -> int:
        return min(len(self.chosen), self.most)

    @property
    def scores(self) -> int:
        """That are kept; how long weighing takes goes by them."""
        kept = 1 if self.task == "number" else _kept(self.candidates, sum(self.able))
        return self.questions * kept * sum(self.able)

    def fitted(self, asked: Asked, trained: int) -> GroupWeights:
        """The weights of all members, of which the first were `trained`."""
        fit = fit_numbers if self.task == "number" else fit_ranks
        return _among(self.able, fit(asked, [True] * sum(self.able), sum(self.able[:trained])))

    def tiled(self, evaluator: Evaluator, chance: np.random.Generator) -> tuple[Ids, Tiling]:
        """Which questions are asked, and in which tiles."""
        chosen = self.chosen
        if len(chosen) > self.questions:
            chosen = np.sort(chance.choice(chosen, self.questions, replace=False))
        qualifiers = evaluator.graph.split(evaluator.split).qualifier_counts()[evaluator.questions.row[chosen]]
        rows = max(1, min(self.rows, SCORES_AT_ONCE // (self.candidates * len(self.able))))
        return chosen, Tiling.of(qualifiers, evaluator.device, rows)


def _kinds(evaluator: Evaluator, members: Sequence[Model], questions: int) -> Iterator[_Kind]:
    """Those that the split asks and somebody answers."""
    for task, position in product(evaluator.tasks, POSITIONS):
        able = [(Task[task.upper()], position) in member.answers for member in members]
        chosen = of_task(evaluator.questions, task)
        chosen = chosen[position_group(evaluator.questions.position[chosen]) == POSITION_GROUPS.index(position)]
        if len(chosen) and any(able):
            count = 1 if task == "number" else _candidates(evaluator.graph, task)
            yield _Kind(task, position, able, chosen, count, _most_questions(count, questions))


def _asked(model: Combination, evaluator: Evaluator, kind: _Kind, seed: int) -> Asked:
    """What the members that are able, and they alone, say to questions of one capability."""
    task, able = kind.task, kind.able
    chance = np.random.default_rng(derived_seed(seed, "combination", task, kind.position))
    chosen, tiling = kind.tiled(evaluator, chance)
    parts = evaluator.questions.take(chosen)
    gather = _number_features if task == "number" else _rank_features(evaluator, task, chosen, parts, tiling, chance)
    found: list[tuple[Ids, Tensor, Tensor, Tensor]] = []

    def work(tile: Tile, question: EncodedQuestion) -> None:
        assert isinstance(question, CombinedQuestion)
        features, present = gather(model, question, tile, able)
        always = torch.ones_like(question.relation, dtype=torch.bool)
        answered = torch.stack([always if (one := read.answered()) is None else one for read in question.members], 1)
        at = tiling.question[tile.places][: tile.real]
        found.append((at, features[: tile.real], present[: tile.real], answered[: tile.real, able]))

    read_each_tile(model, evaluator.facts, tiling, parts.row, parts.position, work)
    order = torch.from_numpy(np.argsort(np.concatenate([one[0] for one in found]), kind="stable"))
    features = torch.cat([one[1] for one in found]).cpu()[order]
    present = torch.cat([one[2] for one in found]).cpu()[order]
    answered = torch.cat([one[3] for one in found]).cpu()[order]
    found.clear()
    relation = parts.relation.astype(np.int64)
    scaled = evaluator.scaling.scale(relation, parts.number) if task == "number" else np.zeros(len(chosen))
    if task == "relation":  # beside the answer there is none
        relation = np.full(len(chosen), evaluator.facts.sizes.mask_relation)
    return Asked(features.double(), present, relation, torch.from_numpy(scaled), answered)


def _among(able: Sequence[bool], found: GroupWeights) -> GroupWeights:
    """The same with nothing for members that cannot answer."""

    def whole(few: Sequence[float]) -> tuple[float, ...]:
        rest = iter(few)
        return tuple(next(rest) if one else 0.0 for one in able)

    return GroupWeights(whole(found.everywhere), {one: whole(few) for one, few in found.relations.items()})


def _candidates(graph: KnowledgeGraph, task: TaskName) -> int:
    return graph.vocabulary.entity_count if task == "link" else graph.vocabulary.relation_count


def _kept(candidates: int, able: int) -> int:
    """Of a question's candidates those whose scores are kept, the answer first."""
    return min(candidates, HIGHEST * able + AT_RANDOM) + 1


def _most_questions(candidates: int, questions: int) -> int:
    return min(questions, max(FEW_QUESTIONS, MOST_SCORES * questions // QUESTIONS // candidates))


_COPIES, _STATISTICS = 3, 20_000_000
"""Of the scores of one kind of questions, while weights are fitted to them; and bytes beside them. Measured."""


def weighing_bytes(answers: frozenset[Capability], graph: KnowledgeGraph, split: str, facts: FactTensors) -> int:
    """About how much memory it takes to weigh statistics of these facts beside a model that answers so much, on a split
    of the graph.
    """
    table, most = graph.split(split), 0
    members = [answers, *(kind.answers for kind, _ in STATISTICS.values())]
    tasks: tuple[TaskName, ...] = ("link", "relation")
    for task, position in product(tasks, POSITIONS):
        able, count = sum((Task[task.upper()], position) in one for one in members), _candidates(graph, task)
        questions = min(max(len(table), table.qualifier_total), _most_questions(count, QUESTIONS))
        most = max(most, questions * _kept(count, able) * able)
    return max(_COPIES * 8 * most + _STATISTICS, building_bytes(facts))


Gather = Callable[[Combination, CombinedQuestion, Tile, Sequence[bool]], tuple[Tensor, Tensor]]


def _number_features(
    model: Combination, question: CombinedQuestion, tile: Tile, able: Sequence[bool]
) -> tuple[Tensor, Tensor]:
    found = torch.stack([one.float() for _, one in model.each(question, ScaledNumber(), able)], 1).unsqueeze(1)
    return found, torch.ones(tile.layout.rows, 1, dtype=torch.bool, device=found.device)


def _rank_features(
    evaluator: Evaluator, task: TaskName, chosen: Ids, parts: Components, tiling: Tiling, chance: np.random.Generator
) -> Gather:
    index = evaluator.known.of_kind(KIND_OF_TASK[task])
    start, known = index.spans(evaluator.keys[chosen])
    known = np.where(tiling.is_real, known[tiling.question], 0)
    answer = (parts.entity if task == "link" else parts.relation).astype(np.int64)[tiling.question]
    device, count = evaluator.device, _candidates(evaluator.graph, task)
    answers, starts, counts, target = (
        torch.from_numpy(np.ascontiguousarray(one)).to(device)
        for one in (index.known.answers, start[tiling.question], known, answer)
    )
    candidates: Entities | Relations = Entities() if task == "link" else Relations()

    def gather(
        model: Combination, question: CombinedQuestion, tile: Tile, able: Sequence[bool]
    ) -> tuple[Tensor, Tensor]:
        at, rows = tile.places, tile.layout.rows
        drawn = torch.from_numpy(chance.integers(count, size=(rows, AT_RANDOM))).to(device)
        keep = torch.zeros(rows, count, dtype=torch.bool, device=device).scatter_(1, drawn, True)
        scores = [one.float() for _, one in model.each(question, candidates, able)]
        for one in scores:
            keep.scatter_(1, one.topk(min(HIGHEST, count), dim=1).indices, True)
        slots = KnownSlots(answers, starts[at], counts[at].cumsum(0), int(known[at].sum()))
        for row, candidate in slots.pieces():
            keep[row, candidate] = False
        keep.scatter_(1, target[at].unsqueeze(1), False)
        present, ids = keep.to(torch.uint8).topk(_kept(count, sum(able)) - 1, dim=1)
        ids = torch.cat([target[at].unsqueeze(1), ids], dim=1)
        present = torch.cat([torch.ones_like(present[:, :1]), present], dim=1).bool()
        return torch.stack([one.gather(1, ids) for one in scores], dim=2), present

    return gather


def combined(models: Sequence[Model], facts: FactTensors, weights: Weights) -> Combination:
    """Trained models, in the order of the weights' first members, and the statistics that the others name."""
    strange = [name for name in weights.members[len(models) :] if name not in {*STATISTICS, *FORMER}]
    if strange or len(weights.members) < len(models):
        said = (
            f"{strange[0]!r} is not a statistic" if strange else f"{len(models)} models, {len(weights.members)} members"
        )
        raise _unfit(said)
    used = weights.only(weights.used(), len(models))
    members = [*models, *(cast(Model, statistic(name, facts)) for name in used.members[len(models) :])]
    for capability, group in used.groups.items():
        for name, member, *counts in zip(
            used.members, members, group.everywhere, *group.relations.values(), strict=True
        ):
            if any(counts) and capability not in member.answers:
                raise _unfit(f"{name!r} answers no {capability[0].name.lower()} at a {capability[1]}")
    answers = frozenset().union(*(model.answers for model in models))
    made = Combination(facts.sizes, members, used, answers, len(models), number_ranges(facts))
    return made.to(facts.device).eval()


def _unfit(said: str) -> DataError:
    return DataError(f"the weights do not fit the models they are of: {said}.", advice="Take the run again.")


def fitted(
    names: Sequence[str],
    models: Sequence[Model],
    facts: FactTensors,
    evaluator: Evaluator,
    seed: int = 0,
    tick: Callable[[int, int], None] = lambda done, total: None,
    questions: int = QUESTIONS,
) -> Weights:
    """The weights of trained models and of all statistics, fitted on the evaluator's split."""
    members, answers = _with_statistics(models, facts)
    every = [*names, *STATISTICS]
    return fit_weights(every, members, evaluator, answers, seed, number_ranges(facts), len(models), tick, questions)


def _with_statistics(models: Sequence[Model], facts: FactTensors) -> tuple[list[Model], frozenset[Capability]]:
    give_back_freed_memory()
    others = [cast(Model, statistic(name, facts)) for name in STATISTICS]
    give_back_freed_memory()  # rules are made in up to a gigabyte
    for model in models:
        cast(nn.Module, model).eval()
    return [*models, *others], frozenset().union(*(model.answers for model in models))


FEW, TIMED, SLOW = 8, 256, 0.25
"""Questions of each capability that are asked to tell how long all of them take: few, and where these took no more than
so many seconds, as many as tell it well.
"""


def weighing_seconds(
    name: str, model: Model, facts: FactTensors, evaluator: Evaluator, clock: Callable[[], float]
) -> tuple[float, float]:
    """About how long it takes to make all statistics, and to weigh them beside this model: told by a few questions of
    each kind, which are asked and then forgotten.
    """
    began = clock()
    members, answers = _with_statistics([model], facts)
    made, weighed = clock() - began, 0.0
    plain, kinds = _to_weigh([name, *STATISTICS], members, evaluator, answers, number_ranges(facts))
    with scoring_conditions(plain):
        for kind in kinds:
            weighed += _kind_seconds(plain, kind, evaluator, clock)
    return made, weighed


def _kind_seconds(model: Combination, kind: _Kind, evaluator: Evaluator, clock: Callable[[], float]) -> float:
    chance = np.random.default_rng(0)
    qualifiers = evaluator.graph.split(evaluator.split).qualifier_counts()[evaluator.questions.row[kind.chosen]]
    usual = kind.chosen[qualifiers == np.bincount(qualifiers).argmax()]  # these share tiles
    seconds = 0.0
    for count in (FEW, FEW, TIMED):  # at first, what all questions share is made
        few = kind._replace(chosen=chance.permutation(usual)[:count], rows=min(count, kind.rows))
        began = clock()
        asked = _asked(model, evaluator, few, 0)
        told = clock()
        few.fitted(asked, 1)
        fitting, reading = clock() - told, told - began
        every, of_few = (len(one.tiled(evaluator, chance)[1].question) for one in (kind, few))
        is_slow = seconds > 0 and reading + fitting > SLOW
        seconds = reading * every / of_few + fitting * kind.questions / few.questions
        if is_slow:
            break
    return seconds
