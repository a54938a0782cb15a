"""Random facts with the lengths and sizes of known graphs, or any others, to measure the speed of training on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hynt.batches.fact_tensors import FactTensors
from hynt.batches.number_scaling import NumberScaling
from hynt.graph.fact_table import FactTable
from hynt.graph.vocabulary import Relation, Vocabulary
from hynt.models.hynt import HyntSettings


@dataclass(frozen=True)
class Problem:
    """What decides the time of a step."""

    facts: int
    entities: int
    lengths: dict[int, int]  # how many of the graph's facts have so many qualifiers
    settings: HyntSettings
    relations: int = 500
    number_relations: int = 0  # the first so many; low numbers are the frequent ones
    batch_size: int = 512

    def tensors(self, seed: int = 0) -> FactTensors:
        """Facts drawn at random in the proportions of `lengths`; the longest is always among them."""
        random = np.random.default_rng(seed)
        sizes = np.array(list(self.lengths), dtype=np.int64)
        shares = np.array(list(self.lengths.values()), dtype=np.float64)
        counts = random.choice(sizes, self.facts, p=shares / shares.sum())
        counts[0] = sizes.max()
        total = self.facts + int(counts.sum())
        kinds = ["number" if index < self.number_relations else "entity" for index in range(self.relations)]
        vocabulary = Vocabulary(
            tuple(f"e{index}" for index in range(self.entities)),
            tuple(
                Relation(f"r{index}", "number" if kind == "number" else "entity") for index, kind in enumerate(kinds)
            ),
        )
        relation = (self.relations * random.random(total) ** 2).astype(np.int32)
        is_number = vocabulary.relation_is_number[relation]
        entity = np.where(is_number, 0, random.integers(0, self.entities, total)).astype(np.int32)
        number = np.where(is_number, random.random(total), 0.0)
        literal = pa.array(["1" if kind else None for kind in is_number], type=pa.string())
        n, offsets = self.facts, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        table = FactTable(
            random.integers(0, self.entities, n).astype(np.int32),
            relation[:n],
            entity[:n],
            number[:n],
            literal[:n],
            offsets,
            relation[n:],
            entity[n:],
            number[n:],
            literal[n:],
        )
        return FactTensors.from_table(table, vocabulary, NumberScaling.fit([table], vocabulary))


def settings(width: int, layers: int, heads: int, feedforward: int, dropout: float = 0.2) -> HyntSettings:
    """Both transformers alike."""
    return HyntSettings(
        dimension=width,
        context_layers=layers,
        prediction_layers=layers,
        context_heads=heads,
        prediction_heads=heads,
        context_feedforward=feedforward,
        prediction_feedforward=feedforward,
        dropout=dropout,
    )


WD50K_LENGTHS = {
    0: 143545,
    1: 14931,
    2: 6797,
    3: 654,
    4: 236,
    5: 188,
    6: 24,
    7: 7,
    8: 5,
    9: 6,
    10: 8,
    11: 5,
    12: 4,
    13: 6,
    15: 2,
    16: 2,
    17: 3,
    19: 2,
    20: 7,
    21: 1,
    30: 1,
    65: 1,
}
HN_YG_LENGTHS = {0: 52976, 1: 6816, 2: 1311, 3: 1, 4: 1}


def like_wd50k(facts: int, batch_size: int) -> Problem:
    """The authors' sizes for WD50K."""
    return Problem(facts, 47_155, WD50K_LENGTHS, settings(256, 3, 4, 1024), relations=531, batch_size=batch_size)


def like_hn_yg(facts: int, batch_size: int) -> Problem:
    """The authors' sizes for links in HN-YG. As there, two facts in five are about a number."""
    sizes = settings(256, 2, 64, 1536, dropout=0.4)
    return Problem(facts, 12_439, HN_YG_LENGTHS, sizes, relations=57, number_relations=9, batch_size=batch_size)
