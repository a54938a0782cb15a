"""Which answers a question allows: all, those of a list, of the right type, or not known yet; for one question, and for
many in columns, where questions that allow the same share one list. No torch at the top.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hynt.asking.columns import AskedFact, AskedFacts
from hynt.errors import UsageError, located
from hynt.graph.fact_table import NUMBER_KIND, RELATION_KIND
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.known_answers import StoredFacts
from hynt.graph.lookup import NameLookup, entity_position
from hynt.graph.vocabulary import Ids, spread

if TYPE_CHECKING:
    import torch
    from torch import Tensor

TYPE, UNKNOWN = "type", "unknown"


@dataclass(frozen=True, eq=False)
class CandidateMask:
    """Which candidates may answer one question."""

    allowed: NDArray[np.bool_] | None  # (entities,) or (relations,); None: all
    only_unknown: bool


def candidate_mask(
    graph: KnowledgeGraph, asked: AskedFact, rules: Sequence[str | Iterable[str]], names: NameLookup | None = None
) -> CandidateMask:
    """Each rule narrows what may be answered: `"type"`, `"unknown"`, or the names and ids of candidates."""
    allowed: NDArray[np.bool_] | None = None
    if rules and asked.kind == NUMBER_KIND:
        raise UsageError("a number has no candidates.", where="candidates", advice="Leave them out.")
    for rule in rules:
        if rule == UNKNOWN:
            continue
        if isinstance(rule, str) and rule != TYPE:
            raise UsageError(
                f"{rule!r} says nothing about candidates.",
                where="candidates",
                advice="Say 'type', 'unknown', or give a list of names.",
            )
        found = _of_type(graph, asked) if rule == TYPE else _listed(graph, asked, rule, names or NameLookup(graph))
        allowed = found if allowed is None else allowed & found
    if allowed is not None and not allowed.any():
        raise UsageError("no candidate is left.", where="candidates", advice="Allow more of them.")
    return CandidateMask(allowed, UNKNOWN in rules)


def read_list(path: Path) -> list[str]:
    """Names or ids from a text file, one per line."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8 text"
        raise UsageError(
            f"the list of candidates cannot be read: {reason}.",
            where=str(path),
            advice="Say type, unknown, or give a text file with a name or id on each line.",
        ) from None
    found = [line.strip() for line in lines if line.strip()]
    if not found:
        raise UsageError("the list of candidates is empty.", where=str(path), advice="Give a name or id on each line.")
    return found


def _of_type(graph: KnowledgeGraph, asked: AskedFact) -> NDArray[np.bool_]:
    """What train holds at the same position, of the same relation where one is visible."""
    vocabulary = graph.vocabulary
    count = vocabulary.relation_count if asked.kind == RELATION_KIND else vocabulary.entity_count
    seen = np.zeros(count, dtype=np.bool_)
    seen[graph.seen_in_training.at(asked.position, asked.relation or 0)] = True
    return seen


def _listed(graph: KnowledgeGraph, asked: AskedFact, listed: Iterable[str], names: NameLookup) -> NDArray[np.bool_]:
    vocabulary = graph.vocabulary
    of_relations = asked.kind == RELATION_KIND
    allowed = np.zeros(vocabulary.relation_count if of_relations else vocabulary.entity_count, dtype=np.bool_)
    position = entity_position(asked.position)
    for number, name in enumerate(listed, 1):
        with located(f"candidate {number}"):
            allowed[names.relation(name) if of_relations else names.entity(name, position, asked.relation)] = True
    return allowed


@dataclass(frozen=True, eq=False)
class CandidateMasks:
    """Which candidates may answer each of `n` questions."""

    lists: Sequence[Ids]  # distinct lists of candidates, ascending each
    list_of: Ids  # (n,) the list of each question; read only where it is limited
    is_limited: NDArray[np.bool_]  # (n,) whether only candidates of its list are allowed
    only_unknown: NDArray[np.bool_]  # (n,) whether known answers are left out
    held: tuple[Ids, Ids] | None = None  # (p,) questions, ascending, and (p,) candidates that are left out besides

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
        held = None if self.held is None else self.held_by(chosen)
        rest = (self.list_of[chosen], self.is_limited[chosen], self.only_unknown[chosen])
        return CandidateMasks(self.lists, *rest, held)

    def without_held(self, stored: StoredFacts, asked: AskedFacts) -> CandidateMasks:
        """Where only unknown answers are wanted, also without what the graph holds with more qualifiers than the
        question has: `KnownAnswers` has only what answers the very same question.
        """
        found: list[tuple[int, int]] = []
        for number in np.flatnonzero(self.only_unknown & (asked.kind != NUMBER_KIND)).tolist():
            table, position = asked.table.take(asked.rows_of(np.array([number]))), int(asked.position[number])
            facts = stored.answering(table, position, is_tried=bool(asked.is_tried[number]))
            found += [(number, answer) for answer in sorted({int(fact.answer) for fact in facts})]
        pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
        return replace(self, held=(pairs[:, 0], pairs[:, 1])) if found else self

    def is_held(self, question: Ids, candidate: Ids) -> NDArray[np.bool_]:
        """(k,) whether these candidates are held for these questions (k,)."""
        if self.held is None:
            return np.zeros(len(question), dtype=np.bool_)
        width = 1 + max(int(self.held[1].max()), int(candidate.max(initial=0)))
        found: NDArray[np.bool_] = np.isin(question * width + candidate, self.held[0] * width + self.held[1])
        return found

    def held_by(self, which: Ids) -> tuple[Ids, Ids]:
        """(h,) places among the questions `which` (k,), ascending, and (h,) the candidates that are held there."""
        if self.held is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        question, candidate = self.held
        start, end = (np.searchsorted(question, which, side) for side in ("left", "right"))
        row, slot = spread(start, end - start)
        return row, candidate[slot]

    def mask(self, which: Ids, first: int, end: int, device: torch.device) -> Tensor | None:
        """(k, end − first) bool: which of the candidates first … end − 1 the lists of the questions `which` (k,) hold;
        None where all may have all.
        """
        import torch

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
