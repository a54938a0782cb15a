"""The figures that the HyNT paper prints for HyNT, to stand beside a run on the graph of the same name.

From the corrected version of the paper (doi:10.1145/3580305.3599490), tables of link, relation and number prediction.
"Tri" there is the scope `triplet` here, "All" is `all`. Figures that the paper does not print are left out.
"""

from __future__ import annotations

from typing import TypeAlias

Figures: TypeAlias = dict[str, dict[str, dict[str, float]]]
"""By task and scope, the metrics."""


def _ranked(mrr: float, ten: float, three: float | None, one: float) -> dict[str, float]:
    found = {"mrr": mrr, "hits@10": ten, "hits@1": one}
    return found if three is None else found | {"hits@3": three}


_TRAINED_ON_TRAIN: dict[str, Figures] = {
    "HN-YG": {
        "link": {"triplet": _ranked(0.2035, 0.3147, 0.2237, 0.1474), "all": _ranked(0.2035, 0.3147, 0.2237, 0.1474)},
        "relation": {
            "triplet": _ranked(0.8797, 0.9851, 0.9379, 0.8135),
            "all": _ranked(0.8944, 0.9869, 0.9455, 0.8363),
        },
        "number": {"triplet": {"rmse": 0.0706}, "all": {"rmse": 0.0694}},
    },
    "HN-WK": {
        "link": {"triplet": _ranked(0.3037, 0.5082, 0.3228, 0.2084), "all": _ranked(0.3254, 0.5261, 0.3459, 0.2314)},
        "relation": {
            "triplet": _ranked(0.9474, 0.9905, 0.9789, 0.9145),
            "all": _ranked(0.9706, 0.9947, 0.9881, 0.9522),
        },
        "number": {"triplet": {"rmse": 0.0548}, "all": {"rmse": 0.0405}},
    },
    "HN-FB-S": {
        "link": {"triplet": _ranked(0.5079, 0.7037, 0.5610, 0.4063), "all": _ranked(0.5796, 0.7586, 0.6323, 0.4857)},
        "relation": {
            "triplet": _ranked(0.9815, 0.9994, 0.9966, 0.9669),
            "all": _ranked(0.9902, 0.9997, 0.9982, 0.9825),
        },
        "number": {"triplet": {"rmse": 0.0532}, "all": {"rmse": 0.0499}},
    },
    "HN-FB": {
        "link": {"triplet": _ranked(0.4544, 0.6571, 0.5036, 0.3520), "all": _ranked(0.5022, 0.7207, 0.5561, 0.3939)},
        "relation": {
            "triplet": _ranked(0.9809, 0.9990, 0.9958, 0.9662),
            "all": _ranked(0.9860, 0.9987, 0.9954, 0.9766),
        },
        "number": {"triplet": {"rmse": 0.0517}, "all": {"rmse": 0.0558}},
    },
    "WD50K": {"link": {"triplet": _ranked(0.3332, 0.4743, None, 0.2594), "all": _ranked(0.3599, 0.4999, None, 0.2867)}},
    "WikiPeople-": {
        "link": {"triplet": _ranked(0.4820, 0.6020, None, 0.4153), "all": _ranked(0.4811, 0.6025, None, 0.4139)}
    },
}

_TRAINED_ON_BOTH: dict[str, Figures] = {
    "WD50K": {"link": {"triplet": _ranked(0.3568, 0.5010, None, 0.2811), "all": _ranked(0.3834, 0.5267, None, 0.3081)}}
}


def paper_figures(graph: str, trained_on: str, split: str) -> Figures:
    """What the paper prints for a graph of this name and the same training splits; empty where it prints nothing.

    The paper speaks of test splits only, so nothing stands beside another split.
    """
    if split != "test":
        return {}
    return (_TRAINED_ON_BOTH if trained_on == "train+valid" else _TRAINED_ON_TRAIN).get(graph, {})
