"""All that a worker must know to take part in a sweep: plain data, so that it can be sent to another process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hynt.config import to_mapping, with_overrides
from hynt.errors import UsageError
from hynt.evaluation.metrics import LOWER_IS_BETTER
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.runs.settings import RunSettings
from hynt.sweeping.space import Space
from hynt.sweeping.study_storage import StudyStorage
from hynt.training.validating import check_metric

Pruning = Literal["hyperband", "none"]
Sampling = Literal["tpe", "random", "grid"]

GRAPH, TRIALS, DATABASE, BEST = "graph", "trials", "sweep.db", "best.toml"
"""What a sweep's folder holds."""


@dataclass(frozen=True)
class Plan:
    """A sweep, before its first trial."""

    out: Path
    name: str
    model: str
    base: dict[str, Any]  # the settings that the space varies
    space: Space
    trials: int
    storage: StudyStorage
    pruning: Pruning = "hyperband"
    sampling: Sampling = "tpe"
    seed: int = 0  # of the sampler; the seed of training is a setting
    device: str = "cpu"
    threads: int | None = None  # of each worker; None: as torch likes
    heartbeat: int = 15  # seconds
    grace: int = 60

    @property
    def metric(self) -> str:
        return str(self.base["validation"]["metric"])

    @property
    def lower_is_better(self) -> bool:
        return self.metric.rpartition(".")[2] in LOWER_IS_BETTER

    @property
    def graph(self) -> Path:
        """The copy without its test split."""
        return self.out / GRAPH

    def describe(self) -> dict[str, Any]:
        """What all workers of a sweep must agree on, for the storage to hold."""
        return {
            "model": self.model,
            "metric": self.metric,
            "base": self.base,
            "sampling": self.sampling,
            "pruning": self.pruning,
            "space": {one.path: one.to_mapping() for one in self.space.varied},
        }

    def epochs(self) -> tuple[int, int]:
        """The first epoch that is validated and the last there can be, over the whole space: what pruning goes by."""
        schedule, every = self.base["schedule"], self.base["validation"].get("every")
        periods, lengths, everies = [schedule["period"]], [schedule["epochs"]], [every] if every else []
        for one in self.space.varied:
            for path in (one.path, *one.also):
                if path == "schedule.epochs":
                    lengths = list(one.samples())
                elif path == "schedule.period":
                    periods = list(one.samples())
                elif path == "validation.every":
                    everies = list(one.samples())
        last = int(max(lengths))
        return min(int(min(everies or periods)), last), last


def settled(settings: RunSettings, metric: str, space: Space, graph: KnowledgeGraph) -> tuple[RunSettings, Space]:
    """The settings that every trial starts from, and the space fitted to them; what a sweep cannot do is refused."""
    settings = with_overrides(settings, [f"validation.metric={metric}"])
    for path, wrong, why in (
        ("train_on", "train+valid", "a sweep judges by the validation split, so it cannot be trained on."),
        ("scale_on", "all-splits", "scaling on all splits would look at the test split."),
    ):
        varied = [one for one in space.varied if path in (one.path, *one.also) and wrong in one.choices]
        if to_mapping(settings)[path] == wrong or varied:
            raise UsageError(why, where=path, advice="Leave it at train.")
    if any("validation.metric" in (one.path, *one.also) for one in space.varied):
        raise UsageError("the metric is what trials are compared by, so it cannot vary.", where="validation.metric")
    check_metric(settings, graph)
    return settings, space.fitted(settings)
