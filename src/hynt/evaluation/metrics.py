"""From scores to ranks, and from ranks and errors to the numbers of a table.

A rank is counted on the device: how many other candidates score higher, and how many the same. Known answers are no
candidates: they are counted with all the rest and taken off again by index, so nothing is written into the scores and
no Python looks at a question. Candidates come in chunks; every count is exact, so the chunk changes no rank.

Every metric is a ratio of sums over questions (for RMSE, the root of one). So it can be resampled by fact: sums per
fact are all that a bootstrap needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hynt.graph.vocabulary import Floats

ScoreChunk: TypeAlias = Callable[[int, int], Tensor]
"""(first, end) → (rows, end − first) scores of the candidates first … end − 1."""

KNOWN_AT_ONCE = 1 << 24
"""How many known answers are looked at together; it bounds memory where many questions have long lists."""


@dataclass(frozen=True, eq=False)
class KnownSlots:
    """Where the known answers of each row stand in an index's answers."""

    answers: Tensor  # (a,) int32 the answers of the whole index
    start: Tensor  # (rows,) int64 where each row's answers start in it
    ends: Tensor  # (rows,) int64 running total of the rows' counts
    total: int  # of all rows, known to the host so that the device need not be asked

    def pieces(self) -> Iterator[tuple[Tensor, Tensor]]:
        """(k,) rows and (k,) known answers, in pieces of bounded size."""
        for first in range(0, self.total, KNOWN_AT_ONCE):
            flat = torch.arange(first, min(first + KNOWN_AT_ONCE, self.total), device=self.ends.device)
            row = torch.searchsorted(self.ends, flat, right=True)
            before = torch.where(row > 0, self.ends[row - 1], 0)
            yield row, self.answers[self.start[row] + flat - before].long()


@dataclass(frozen=True, eq=False)
class Tally:
    """How the candidates of each of `rows` questions compare with its answer."""

    better: Tensor  # (rows,) int64 other candidates that score higher
    ties: Tensor  # (rows,) int64 other candidates that score the same
    candidates: Tensor  # (rows,) int64 candidates, the answer among them
    finite: Tensor  # (rows,) bool whether every score was a finite number


def tally(
    score: ScoreChunk, count: int, answer: Tensor, known: KnownSlots, chunk: int, allowed: Tensor | None = None
) -> tuple[Tally, Tally | None]:
    """Counts for `answer` (rows,) int64 among `count` candidates, scored `chunk` at a time.

    With `allowed`, (rows, count) bool, also the counts among the candidates it allows; the answer is always one of
    them.
    """
    chunks = [(first, min(first + chunk, count)) for first in range(0, count, chunk)]
    score = in_one_shape(score, min(chunk, count))
    target = _target(score, chunks, answer) if len(chunks) > 1 else None
    plain = _Counter(answer, None)
    constrained = None if allowed is None else _Counter(answer, allowed)
    finite = torch.ones_like(answer, dtype=torch.bool)
    for first, end in chunks:
        scores = score(first, end)
        if target is None:
            target = scores.gather(1, answer[:, None]).squeeze(1)
        lowest, highest = torch.aminmax(scores, dim=1)  # both are NaN where any score is
        finite &= torch.isfinite(lowest) & torch.isfinite(highest)
        for counter in (plain, constrained):
            if counter is not None:
                counter.add(scores, first, target)
        for row, candidate in known.pieces():
            inside = (candidate >= first) & (candidate < end) & (candidate != answer[row])
            value = scores[row, (candidate - first).clamp(0, end - first - 1)]
            for counter in (plain, constrained):
                if counter is not None:
                    counter.take_off(row, candidate, value, inside, target)
    return plain.tally(finite), None if constrained is None else constrained.tally(finite)


def in_one_shape(score: ScoreChunk, width: int) -> ScoreChunk:
    """Scores the last, short chunk as the end of a full one: products of one shape round alike."""

    def scored(first: int, end: int) -> Tensor:
        return score(end - width, end)[:, first - (end - width) :].float()

    return scored


def _target(score: ScoreChunk, chunks: list[tuple[int, int]], answer: Tensor) -> Tensor:
    """(rows,) the answers' scores, from the very products they are compared with: a tie is a tie to the last bit."""
    found = torch.zeros_like(answer, dtype=torch.float32)
    for first, end in chunks:
        inside = (answer >= first) & (answer < end)
        value = score(first, end).gather(1, (answer - first).clamp(0, end - first - 1)[:, None]).squeeze(1)
        found = torch.where(inside, value, found)
    return found


class _Counter:
    """Running counts over the chunks, of all candidates or of the allowed ones."""

    def __init__(self, answer: Tensor, allowed: Tensor | None) -> None:
        self.answer = answer
        self.allowed = allowed
        self.better = torch.zeros_like(answer)
        self.ties = torch.zeros_like(answer)
        self.candidates = torch.zeros_like(answer)

    def add(self, scores: Tensor, first: int, target: Tensor) -> None:
        """Count every candidate of a chunk, the answer and known ones among them."""
        better, ties = scores > target[:, None], scores == target[:, None]
        if self.allowed is None:
            self.candidates += scores.shape[1]
        else:
            allowed = self.allowed[:, first : first + scores.shape[1]]
            better, ties = better & allowed, ties & allowed
            self.candidates += torch.count_nonzero(allowed, dim=1)
        self.better += torch.count_nonzero(better, dim=1)
        self.ties += torch.count_nonzero(ties, dim=1)

    def take_off(self, row: Tensor, candidate: Tensor, value: Tensor, inside: Tensor, target: Tensor) -> None:
        """Uncount known answers; `inside` says which of them this chunk holds."""
        if self.allowed is not None:
            inside = inside & self.allowed[row, candidate]
        self.better.index_add_(0, row, (inside & (value > target[row])).long(), alpha=-1)
        self.ties.index_add_(0, row, (inside & (value == target[row])).long(), alpha=-1)
        self.candidates.index_add_(0, row, inside.long(), alpha=-1)

    def tally(self, finite: Tensor) -> Tally:
        """The counts of the other candidates: the answer ties with itself and is taken off."""
        if self.allowed is None:
            return Tally(self.better, self.ties - 1, self.candidates, finite)
        own = self.allowed.gather(1, self.answer[:, None]).squeeze(1).long()
        return Tally(self.better, self.ties - own, self.candidates + 1 - own, finite)


Metrics: TypeAlias = dict[str, float | int | None]

Ties: TypeAlias = Literal["realistic", "hynt"]
TIES: tuple[Ties, ...] = get_args(Ties)

RANKING_METRICS: tuple[str, ...] = ("mrr", "hits@1", "hits@3", "hits@10", "mean_rank", "amri")
NUMBER_METRICS: tuple[str, ...] = ("rmse", "mae", "vs_median")
LOWER_IS_BETTER = frozenset({"mean_rank", "rmse", "mae", "vs_median"})


def ranks(better: NDArray[np.int64], ties: NDArray[np.int64], rule: Ties = "realistic") -> Floats:
    """(n,) 1 + better + ties / 2 over the other candidates; `hynt` floors the half, as the published script does."""
    half = ties // 2 if rule == "hynt" else ties / 2
    return np.asarray(1.0 + better + half, dtype=np.float64)


def ranking_sums(rank: Floats, candidates: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """(n, metrics) numerators and denominators, question by question, of RANKING_METRICS.

    AMRI, the adjusted mean rank index (Berrendorf et al.), is 1 for perfect ranks, 0 for chance and negative for
    worse. Chance puts the answer in the middle of its `candidates` (n,), which the filter makes differ from question
    to question.
    """
    one = np.ones_like(rank)
    tops = [(rank <= top).astype(np.float64) for top in (1, 3, 10)]
    above = np.stack([1.0 / rank, *tops, rank, rank - 1.0], axis=1)
    below = np.stack([one, one, one, one, one, (candidates - 1) / 2], axis=1)
    return above, below


def number_sums(mean_error: Floats, error: Floats, against: Floats | None = None) -> tuple[Floats, Floats]:
    """(n, metrics) numerators and denominators, question by question, of NUMBER_METRICS: squares of what the means are
    off, sizes of what the answers are off, and `against` (n,), what `against_medians` says; None: it was not asked.
    """
    one = np.ones(len(error))
    known = np.zeros(len(error)) if against is None else one
    above = np.stack([mean_error**2, np.abs(error), np.zeros(len(error)) if against is None else against], axis=1)
    return above, np.stack([one, one, known], axis=1)


ROUNDING = 1e-6
"""What an answer in single precision may be off and still be the number itself."""


def against_medians(predicted: Floats, truth: Floats, median: Floats, scaled_error: Floats) -> Floats:
    """(n,) the answer's share of what it and the relation's training `median` are off together: 0 is perfect, ½ as good
    as the median, 1 infinitely worse. No unit and no scale enters, and no single answer counts for more than 1.
    """
    own, other = np.abs(predicted - truth), np.abs(median - truth)
    rounded = (np.abs(scaled_error) <= ROUNDING) | (own <= ROUNDING * np.abs(truth))
    own = np.where((other == 0) & rounded, 0.0, own)  # many numbers are the median, and so is the answer
    most = np.maximum(own, other)
    share = np.divide(own, most, out=np.ones_like(own), where=most > 0)
    rest = np.divide(other, most, out=np.ones_like(own), where=most > 0)
    return np.asarray(share / (share + rest))


def finish(names: tuple[str, ...], above: Floats, below: Floats) -> Floats:
    """(…, metrics) from summed numerators and denominators; NaN where there is nothing to divide by."""
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.where(below > 0, above / below, np.nan)
    for index, name in enumerate(names):
        if name == "rmse":
            values[..., index] = np.sqrt(values[..., index])
        if name == "amri":
            values[..., index] = 1.0 - values[..., index]
    return values


def ranking_metrics(rank: Floats, candidates: NDArray[np.int64]) -> Metrics:
    """RANKING_METRICS and the count of questions."""
    return _named(RANKING_METRICS, *ranking_sums(rank, candidates))


def number_metrics(mean_error: Floats, error: Floats, against: Floats | None = None) -> Metrics:
    """NUMBER_METRICS and the count of questions."""
    return _named(NUMBER_METRICS, *number_sums(mean_error, error, against))


def _named(names: tuple[str, ...], above: Floats, below: Floats) -> Metrics:
    """Metrics by name; None, JSON's null, where no question gives a value."""
    values = finish(names, above.sum(axis=0), below.sum(axis=0))
    pairs = zip(names, values.tolist(), strict=True)
    found: Metrics = {name: None if np.isnan(value) else value for name, value in pairs}
    return {**found, "count": len(above)}
