"""Which relations deserve a log scale: those whose numbers crowd at the low end of their range.

After linear min-max scaling such numbers all lie near 0, and an error measured there says little.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from tools.world.statement import Quantity, Statement

FEWEST = 20
CROWDED = 0.1


def numbers_by_relation(statements: Iterable[Statement]) -> dict[str, list[float]]:
    """All numbers that each relation carries, in tails and in qualifiers."""
    found: dict[str, list[float]] = {}
    for statement in statements:
        for relation, value in ((statement.relation, statement.tail), *statement.qualifiers):
            if isinstance(value, Quantity):
                found.setdefault(relation, []).append(float(value.value))
    return found


def scale(numbers: list[float], unit: str) -> str:
    """'log' for at least 20 numbers, all above 0, whose median lies in the lowest tenth of their range.

    Percentages are bounded on both sides and stay linear.
    """
    low, high = min(numbers), max(numbers)
    if unit == "percent" or len(numbers) < FEWEST or low <= 0 or low == high:
        return "linear"
    return "log" if (median(numbers) - low) / (high - low) < CROWDED else "linear"
