"""From what a person asks for to the settings of a run: preset or defaults, then each thing said; later ones win."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hynt.config import from_mapping, load_toml, read_toml, with_overrides
from hynt.errors import UsageError
from hynt.graph.fact_table import concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.number_summary import suited_to_logarithms
from hynt.models.registry import MODELS
from hynt.runs.model_choice import settings_class_for
from hynt.runs.settings import RunSettings
from hynt.runs.training_data import training_splits
from hynt.training.presets import PLAIN, PRESETS, defaults_for
from hynt.training.validating import metric_for


@dataclass(frozen=True)
class SettingsRequest:
    """What was said; None where nothing was."""

    model: str | None = None
    preset: str | None = None
    epochs: int | None = None
    seed: int | None = None
    train_on: str | None = None
    scale_on: str | None = None
    changes: Sequence[str] = ()  # `key=value`, as --set takes them

    @property
    def model_name(self) -> str:
        """The model of a new run: `hynt` where none was named."""
        return self.model or "hynt"

    def says(self, setting: str) -> bool:
        """Whether this one was said outright."""
        return any(change.partition("=")[0].strip() == setting for change in self.changes)

    def overrides(self) -> list[str]:
        """All but model and preset as `key=value`."""
        said: dict[str, Any] = {
            "schedule.epochs": self.epochs,
            "seed": self.seed,
            "train_on": self.train_on,
            "scale_on": self.scale_on,
        }
        return [f"{path}={value}" for path, value in said.items() if value is not None] + list(self.changes)


def resolve_settings(request: SettingsRequest, graph: KnowledgeGraph, *, on_gpu: bool) -> RunSettings:
    """The settings of a new run. Fewer epochs than a cycle has make that cycle shorter, so that it still ends."""
    kind = settings_class_for(request.model_name)
    preset = request.preset or _own_preset(request.model_name, on_gpu=on_gpu)
    if preset is not None:
        mapping = (
            _preset_file(Path(preset), request.model_name) if preset.endswith(".toml") else dict(PRESETS.get(preset))
        )
    else:
        mapping = dict(defaults_for(graph, on_gpu=on_gpu) if request.model_name == "hynt" else PLAIN)
    if request.preset is None and MODELS.get(request.model_name).learns:
        mapping = {"with_statistics": True, **mapping}
    settings: RunSettings = from_mapping(kind, mapping)
    if "metric" not in mapping.get("validation", {}):
        settings = with_overrides(settings, [f"validation.metric={metric_for(request.model_name, graph)}"])
    if (
        preset is None
        and request.model_name == "hynt"
        and with_overrides(settings, request.overrides()).tables == "spread"
    ):
        settings = with_overrides(settings, ["model.tied_output=false"])  # sharded tables are for untied outputs
    settings = with_overrides(settings, request.overrides())
    schedule = settings.schedule
    if request.epochs is not None and schedule.epochs < schedule.period:
        settings = with_overrides(settings, [f"schedule.period={schedule.epochs}"])
    if _finds_scales(request) and "log_relations" not in mapping:
        learned = [graph.splits[name] for name in training_splits(settings) if name in graph.splits]
        if learned:
            others = list(graph.splits.values())
            found = suited_to_logarithms(graph.vocabulary, concatenate(learned), others)
            settings = replace(settings, log_relations=found)
    return settings


def _finds_scales(request: SettingsRequest) -> bool:
    """Whether the numbers decide which relations get a log scale: not where somebody did, and not for the published
    presets, which are compared with figures on linear scales. Models that only count keep their means and medians.
    """
    named = request.preset
    for_any_graph = named is None or named == "world" or named.endswith(("-small", "-gpu", ".toml"))
    return for_any_graph and not request.says("log_relations") and MODELS.get(request.model_name).learns


def _preset_file(path: Path, model: str) -> dict[str, Any]:
    """The settings in a file, such as a sweep's `best.toml` or a run's `config.toml`, if they are this model's."""
    mapping = read_toml(path)
    of_model = mapping.get("model_name", model)
    if of_model != model:
        raise UsageError(
            f"the preset is for the model {of_model!r}, not for {model!r}.",
            where=str(path),
            advice=f"Say --model {of_model}.",
        )
    load_toml(path, settings_class_for(model))  # refuses settings that this model does not have
    return mapping


def _own_preset(model: str, *, on_gpu: bool) -> str | None:
    """A baseline without a preset trains as its paper's comparison has it, and `hynt-inductive` as the device can: the
    sizes of HyNT mean nothing to them.
    """
    names = [] if model == "hynt" else [f"{model}-paper", *([f"{model}-gpu"] if on_gpu else []), f"{model}-small"]
    return next((name for name in names if name in PRESETS), None)


def resumed_settings(
    request: SettingsRequest, before: RunSettings, graph: KnowledgeGraph, *, on_gpu: bool
) -> RunSettings:
    """What a resumed run would have: its own settings where only details were said, so that they can be compared."""
    if request.preset is not None or request.model not in (None, before.model_name):
        settings = resolve_settings(request, graph, on_gpu=on_gpu)
        return settings if request.says("log_relations") else replace(settings, log_relations=before.log_relations)
    return with_overrides(before, request.overrides())
