"""An entity that a run sees as like another. No torch here: a client has them too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hynt.tables import PlainValues


@dataclass(frozen=True, eq=False)
class SimilarEntity(PlainValues):
    """An entity and how alike it is: the cosine of the angle between the two vectors."""

    rank: int
    id: str
    name: str
    type: str
    similarity: float

    def to_dict(self) -> dict[str, Any]:
        return {"rank": self.rank, "id": self.id, "name": self.name, "type": self.type, "similarity": self.similarity}
