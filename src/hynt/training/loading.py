"""A run as something that answers: its model with trained weights, its graph and its scaling."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch

from hynt import __version__
from hynt.batches.number_scaling import NumberScaling
from hynt.errors import DataError
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.models.contract import Model
from hynt.training.checkpoint import WEIGHTS, fill, weights_of
from hynt.training.run import best_name, last_good, new_model
from hynt.training.run_folder import RunFolder
from hynt.training.settings import RunSettings
from hynt.training.training_data import training_data, training_splits


@dataclass(frozen=True, eq=False)
class LoadedRun:
    """A run, ready to be asked."""

    run: RunFolder
    settings: RunSettings
    graph: KnowledgeGraph
    scaling: NumberScaling
    model: Model
    literals: Any  # pa.StringArray where the model takes literals for entities, else None
    epoch: int  # the epoch its weights are of
    is_finished: bool  # false: training goes on, or was stopped

    def described(self) -> dict[str, Any]:
        """What a number of this run needs beside it to be compared with another."""
        return {
            "model": self.settings.model_name, "version": __version__, "seed": self.settings.seed,
            "epoch": self.epoch, "trained_on": "+".join(training_splits(self.settings)),
            "scaled_on": self.settings.scale_on, "finished": self.is_finished,
        }  # fmt: skip


def load_run(path: Path, device: torch.device | str = "cpu") -> LoadedRun:
    """Opens a run and checks every file before it is used. An unfinished run answers with its best weights so far."""
    run, device = RunFolder.open(path), torch.device(device)
    settings, graph = run.settings(), run.graph()
    scaling = run.scaling(graph)
    data = training_data(graph, settings, scaling, device)
    model = new_model(settings, data, device)
    if run.is_finished:
        fill(run.checked(WEIGHTS), weights_of(model))
        epoch = int(run.manifest.get("training", {}).get("weights_of_epoch", 0))
    else:
        progress, folder = last_good(run)
        if folder is None:
            raise DataError(
                "this run has no weights yet.",
                where=str(path),
                advice=f"Go on: hynt train GRAPH --out {path} --resume.",
            )
        epoch = progress.epoch
        if progress.best is not None and settings.validation.keep_best:
            folder, epoch = run.checkpoints / best_name(progress.best), progress.best.epoch
        fill(folder / WEIGHTS, weights_of(model))
    model.eval()
    return LoadedRun(run, settings, graph, scaling, cast(Model, model), data.literals, epoch, run.is_finished)
