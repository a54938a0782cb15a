"""From scores to the first few candidates and their probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def top_places(scores: Floats, allowed: Flags, top: int) -> NDArray[np.int64]:
    """The best `top` of the allowed candidates, best first; of equal ones the one with the smaller id first."""
    places = np.flatnonzero(allowed)
    if len(places) > top:
        least = np.partition(scores[places], len(places) - top)[len(places) - top]
        places = places[scores[places] >= least]
    return places[np.lexsort((places, -scores[places]))][:top].astype(np.int64)


def probabilities(logits: Floats, allowed: Flags) -> Floats:
    """(candidates,) the softmax over the allowed candidates; 0 for the others."""
    found = np.zeros(len(logits))
    found[allowed] = np.exp(logits[allowed] - np.logaddexp.reduce(logits[allowed]))
    return found
