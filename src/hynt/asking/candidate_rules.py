"""Which answers a question allows: all, those of a list, of the right type, or not known yet. No torch here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hynt.asking.columns import AskedFact
from hynt.errors import UsageError, located
from hynt.graph.fact_table import HEAD, NUMBER_KIND, RELATION_KIND, TAIL
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.lookup import EntityPosition, NameLookup

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
    position: EntityPosition = "head" if asked.position == HEAD else "tail" if asked.position == TAIL else "value"
    for number, name in enumerate(listed, 1):
        with located(f"candidate {number}"):
            allowed[names.relation(name) if of_relations else names.entity(name, position, asked.relation)] = True
    return allowed
