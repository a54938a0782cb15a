"""Rows of an entity table by candidates, for models that score an entity by a product with its vector."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import embedding

from hynt.models.contract import Candidates, Entities, EntityIds, EntityRange


def candidate_rows(table: Tensor, candidates: Candidates) -> Tensor:
    """(candidates, width) the same for all questions, or (rows, candidates, width); `table` is (entities, width)."""
    match candidates:
        case Entities():
            return table
        case EntityRange(start, end):
            return table[start:end]
        case EntityIds(ids):
            return embedding(ids, table)
    raise ValueError(f"this model scores entities, not {type(candidates).__name__}")


def products(queries: Tensor, rows: Tensor) -> Tensor:
    """(rows, candidates) from queries (rows, width) and what `candidate_rows` gave."""
    if rows.dim() == 2:
        return queries @ rows.t()
    return (rows @ queries.unsqueeze(2)).squeeze(2)
