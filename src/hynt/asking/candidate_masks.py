"""Which answers each of many questions allows, in columns. Questions that allow the same share one list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hynt.asking.candidate_rules import CandidateMask
from hynt.graph.vocabulary import Ids


@dataclass(frozen=True, eq=False)
class CandidateMasks:
    """Which candidates may answer each of `n` questions."""

    lists: Sequence[Ids]  # distinct lists of candidates, ascending each
    list_of: Ids  # (n,) the list of each question; read only where it is limited
    is_limited: NDArray[np.bool_]  # (n,) whether only candidates of its list are allowed
    only_unknown: NDArray[np.bool_]  # (n,) whether known answers are left out

    @classmethod
    def all_of(cls, count: int) -> CandidateMasks:
        """Every answer, known or not, for `count` questions."""
        none = np.zeros(count, dtype=np.bool_)
        return cls((), np.zeros(count, dtype=np.int64), none, none)

    @classmethod
    def of(cls, candidates: Sequence[CandidateMask]) -> CandidateMasks:
        """As each question says; a mask that several questions share is looked at once."""
        lists: list[Ids] = []
        known: dict[int, int] = {}  # the identity of a mask → its list
        list_of = np.zeros(len(candidates), dtype=np.int64)
        for number, one in enumerate(candidates):
            if one.allowed is None:
                continue
            if id(one.allowed) not in known:
                known[id(one.allowed)] = len(lists)
                lists.append(np.flatnonzero(one.allowed).astype(np.int64))
            list_of[number] = known[id(one.allowed)]
        return cls(
            lists,
            list_of,
            np.array([one.allowed is not None for one in candidates], dtype=np.bool_),
            np.array([one.only_unknown for one in candidates], dtype=np.bool_),
        )

    def take(self, chosen: Ids) -> CandidateMasks:
        """For these questions, in this order."""
        return CandidateMasks(self.lists, self.list_of[chosen], self.is_limited[chosen], self.only_unknown[chosen])

    def mask(self, which: Ids, first: int, end: int, device: torch.device) -> Tensor | None:
        """(k, end − first) bool: which of the candidates first … end − 1 the lists of the questions `which` (k,) hold;
        None where all may have all.
        """
        limited = self.is_limited[which]
        if not limited.any():
            return None
        distinct, inverse = np.unique(np.where(limited, self.list_of[which], -1), return_inverse=True)
        spans = []
        for number in distinct[distinct >= 0].tolist():
            low, high = np.searchsorted(self.lists[number], (first, end))
            spans.append(self.lists[number][low:high] - first)
        row = np.repeat(np.flatnonzero(distinct >= 0), [len(span) for span in spans])
        at = torch.from_numpy(np.stack([row, np.concatenate(spans)])).to(device)  # one transfer for all lists
        mask = torch.zeros(len(distinct), end - first, dtype=torch.bool, device=device)
        mask[at[0], at[1]] = True
        wide = mask[torch.from_numpy(inverse.astype(np.int64)).to(device)]
        return wide | torch.from_numpy(~limited).to(device)[:, None]

    def holds(self, question: Ids, candidate: Ids) -> NDArray[np.bool_]:
        """(k,) whether the lists of the questions (k,) hold these candidates (k,)."""
        found = ~self.is_limited[question]
        for number in np.unique(self.list_of[question[~found]]).tolist():
            chosen = self.is_limited[question] & (self.list_of[question] == number)
            found[chosen] = np.isin(candidate[chosen], self.lists[number])
        return found
