"""What a setting's value must satisfy beyond its type, as data beside the type: `Annotated[float, Range(0, 1)]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Constraint(Protocol):
    """Anything that can say what a value ought to be."""

    def admits(self, value: Any) -> bool:
        """Whether the value, already of the declared type, satisfies the constraint."""
        ...

    def __str__(self) -> str:
        """The rule in words, to follow "must be"."""
        ...


@dataclass(frozen=True)
class Range:
    """A number between two bounds, both included unless said otherwise; a bound that is None does not bind."""

    minimum: float | None = None
    maximum: float | None = None
    above_minimum: bool = False
    below_maximum: bool = False

    def admits(self, value: Any) -> bool:
        """Whether the number lies in the range."""
        if self.minimum is not None and (value <= self.minimum if self.above_minimum else value < self.minimum):
            return False
        return self.maximum is None or not (value >= self.maximum if self.below_maximum else value > self.maximum)

    def __str__(self) -> str:
        parts = []
        if self.minimum is not None:
            parts.append(f"{'above' if self.above_minimum else 'at least'} {self.minimum}")
        if self.maximum is not None:
            parts.append(f"{'below' if self.below_maximum else 'at most'} {self.maximum}")
        return " and ".join(parts) or "any number"
