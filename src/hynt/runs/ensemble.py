"""Several runs on one graph as one run: the same folder as any other, with every member's settings and weights in it.

RUN/config.toml          model_name = "ensemble", and what the members have in common
    members.json         settings and number scaling of each member
    weights.safetensors  the weights of all; those of the second member are named 1.NAME
    combination.json     how much each member counts
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import Task
from hynt.batches.number_scaling import Expectation, NumberScaling
from hynt.config import from_mapping, to_mapping
from hynt.errors import DataError, UsageError
from hynt.evaluation.combining import combined
from hynt.files import RESTORE, index_text, read_index
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.models.combination import Combination, TaskWeights, Weights
from hynt.models.contract import Model
from hynt.runs import SCALING, WEIGHTS
from hynt.runs.checkpoint import fill_tensors, save_tensors, weights_of
from hynt.runs.model_choice import ENSEMBLE, EnsembleSettings, no_larger_than, package_of, settings_class_of_run
from hynt.runs.run_folder import COMBINATION, MEANS, MEMBERS, RunFolder, means_text
from hynt.runs.settings import RunSettings, settings_class
from hynt.runs.training_data import training_data, training_table


@dataclass(frozen=True, eq=False)
class Member:
    """A run within an ensemble."""

    settings: RunSettings
    model: Model
    literals: Any  # pa.StringArray where the model takes literals for entities, else None


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The members of an ensemble on one graph."""

    graph: KnowledgeGraph
    scaling: NumberScaling  # the same for all: the scale of a number whose relation is hidden cannot be changed
    members: Sequence[Member]
    device: torch.device

    @property
    def names(self) -> tuple[str, ...]:
        """The members' models; the second of a kind is `hynt 2`."""
        found: list[str] = []
        for member in self.members:
            kind = member.settings.model_name
            before = sum(one.settings.model_name == kind for one in self.members[: len(found)])
            found.append(kind if not before else f"{kind} {before + 1}")
        return tuple(found)

    @property
    def literals(self) -> Any:
        """Ids for literals, where any member needs them; all that do have the same."""
        return next((one.literals for one in self.members if one.literals is not None), None)

    @property
    def settings(self) -> RunSettings:
        """What the members have in common, as far as a run is asked for it."""
        first = self.members[0].settings
        kind = settings_class(ENSEMBLE, EnsembleSettings)
        return kind(
            seed=first.seed,
            train_on=first.train_on,
            scale_on=first.scale_on,
            log_relations=first.log_relations,
            model=EnsembleSettings(self.names),
        )

    def facts(self) -> FactTensors:
        """The training facts, as the combination reads them."""
        table = training_table(self.graph, self.members[0].settings)
        return FactTensors.from_table(table, self.graph.vocabulary, self.scaling, self.device, self.literals)

    def models(self) -> list[Model]:
        return [one.model for one in self.members]

    def weights(self) -> dict[str, Tensor]:
        """The weights of all members, by the names they have in the file."""
        return {
            f"{index}.{name}": tensor
            for index, one in enumerate(self.members)
            for name, tensor in weights_of(cast(nn.Module, one.model)).items()
        }

    def save(self, folder: RunFolder, weights: Weights, means: Expectation | None) -> RunFolder:
        """Fills a new run folder; `means` are those of numbers on log scales, where there are any."""
        described = [
            {
                "settings": to_mapping(one.settings),
                "package": package_of(one.settings.model_name),
                "tasks": [task.name.lower() for task in one.model.others] if isinstance(one.model, TaskWeights) else [],
            }
            for one in self.members
        ]
        save_tensors(self.weights(), folder.path / f".{WEIGHTS}")
        try:
            files = {MEMBERS: {"members": described}, COMBINATION: weights.to_mapping(self.graph.vocabulary)}
            texts = {name: index_text(content) for name, content in files.items()}
            texts |= {} if means is None else {MEANS: means_text(means, self.graph)}
            return folder.finish(
                folder.path / f".{WEIGHTS}", {"seconds": 0.0, "members": list(self.names)}, texts=texts
            )
        finally:
            (folder.path / f".{WEIGHTS}").unlink(missing_ok=True)


def opened_ensemble(
    run: RunFolder, graph: KnowledgeGraph, device: torch.device, weights: Weights
) -> tuple[Combination, Any]:
    """The members of a saved ensemble with their weights, as one model, and the literals that it has ids for."""
    path = run.checked(MEMBERS)
    described = read_index(path).get("members")
    if not isinstance(described, list) or len(described) < 2:
        raise DataError("the list of members is damaged.", where=str(path), advice=RESTORE)
    scaling = run.scaling(graph)
    members = [_opened(one, run, graph, scaling, device) for one in described]
    made = Ensemble(graph, scaling, members, device)
    fill_tensors(run.checked(WEIGHTS), made.weights())
    return combined(made.models(), made.facts(), weights), made.literals


def _opened(
    described: Mapping[str, Any], run: RunFolder, graph: KnowledgeGraph, scaling: NumberScaling, device: torch.device
) -> Member:
    from hynt.runs.opening import new_model

    try:
        mapping, package = described["settings"], described["package"]
        name, tasks = str(mapping["model_name"]), [Task[task.upper()] for task in described["tasks"]]
    except (KeyError, TypeError, AttributeError):
        raise DataError("the list of members is damaged.", where=str(run.path / MEMBERS), advice=RESTORE) from None
    settings: RunSettings = from_mapping(settings_class_of_run(name, package, str(run.path)), mapping)
    data = training_data(graph, settings, scaling, device)
    with no_larger_than(run.checked(WEIGHTS)):
        first, *others = (cast(Model, new_model(settings, data, device).eval()) for _ in (None, *tasks))
    model = TaskWeights(first, dict(zip(tasks, others, strict=True))).eval() if tasks else first
    return Member(settings, model, data.literals)


def refuse_members(paths: Sequence[Path], runs: Sequence[RunFolder]) -> None:
    """Raises a `UsageError` where runs cannot be one: they must answer for the same graph and leave validation out."""
    where = "ensemble"
    if len(runs) < 2:
        raise UsageError("an ensemble is made of two runs or more.", where=where, advice="Name another run.")
    settings = [run.settings() for run in runs]
    for path, run, one in zip(paths, runs, settings, strict=True):
        if one.model_name == ENSEMBLE:
            raise UsageError(f"{path} is an ensemble itself.", where=where, advice="Name the runs it was made of.")
        if not run.is_finished:
            raise UsageError(f"{path} is not finished.", where=where, advice="Train it to its end first.")
        if run.manifest["graph"]["fingerprints"] != runs[0].manifest["graph"]["fingerprints"]:
            what = f"{path} has another graph than {paths[0]}."
            raise UsageError(what, where=where, advice="Name runs that were trained on one graph.")
        if run.manifest["files"][SCALING] != runs[0].manifest["files"][SCALING]:
            what = f"{path} scales numbers otherwise than {paths[0]}."
            raise UsageError(what, where=where, advice="Train both with the same scale_on and log_relations.")
        if one.train_on != "train" or "valid" not in run.manifest["graph"]["fingerprints"]:
            what = f"{path} leaves no validation split to weigh it on."
            raise UsageError(what, where=where, advice="Name runs that were trained on train alone.")
