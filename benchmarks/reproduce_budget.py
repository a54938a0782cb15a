"""How `benchmarks.reproduce` changes the presets of models where time is short: larger batches, and rates to suit."""

from __future__ import annotations

from typing import NamedTuple


class Budget(NamedTuple):
    """How a preset is changed where time is short."""

    batch_scale: float = 1.0
    changes: tuple[str, ...] = ()
    validations: int | None = None  # at most, where asking takes long
    validation_facts: int | None = None


CHOSEN = ("optimiser.learning_rate=1e-3", "optimiser.weight_decay=0.3", "model.loss=softmax", "model.negatives=32")
"""For models of facts with negatives."""

BUDGET: dict[str, Budget] = {
    "transea": Budget(2),
    "mt-kgnn": Budget(2),
    "kbln": Budget(2),
    "literale": Budget(2),
    # Rates of 5e-5 are for thousands of epochs of tiny steps: they are raised twentyfold, with batches four times as
    # large. A fact is chosen among negatives, which ranks better and learns in few epochs, and weights decay.
    "nalp": Budget(4, CHOSEN),
    "tnalp": Budget(4, CHOSEN),
    "neuinfer": Budget(4, CHOSEN),
    # The fewest filters of the paper's grid, and fewer negatives: its cost is in proportion to both.
    "hinge": Budget(4, (*CHOSEN, "model.negatives=8", "model.filters=100"), 4, 200),
    "ram": Budget(8),
    "stare": Budget(8, ("optimiser.learning_rate=5e-4",)),
    "hy-transformer": Budget(2, ("optimiser.learning_rate=3e-4",)),
    "gran": Budget(1),
}
