"""From what a person asks for to the settings of a run: preset or defaults, then each thing said; later ones win.

Presets are settings worth a name: the authors' for each graph and task, and sensible ones for anybody's graph by its
size. They are plain mappings over the defaults, the same that a `config.toml` holds, so they can be read, printed and
changed by `--set`. In `presets/` is a file for each model; the name of a preset is a table's, and begins with its
model's where that is not hynt: `hynt train GRAPH --model ram --preset ram-paper`.

What cannot be trained is refused here too, before a folder is made and not after hours of training.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any

import torch

from hynt.config import from_mapping, load_toml, read_toml, with_overrides
from hynt.distributed.launch import is_launched
from hynt.distributed.sharded_table import SHARDED
from hynt.errors import UsageError
from hynt.graph.fact_table import concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.log_scales import suited_to_logarithms
from hynt.models.registry import MODELS
from hynt.names import Registry
from hynt.runs.model_choice import settings_class_for
from hynt.runs.settings import RunSettings
from hynt.runs.training_data import training_splits
from hynt.training.default_model import model_for
from hynt.training.optimisation import lasting
from hynt.training.validating import metric_for, validates, worth_a_log_scale

AUTHORS_CLIP = 0.1
GRID = "grid"
"""The table of a file that says what the HyNT paper searched for the model, as changes of `MODEL-paper`."""

PRESETS: Registry[Mapping[str, Any]] = Registry("preset")
_OF_MODEL: dict[str, str] = {}
"""The model that each preset is for."""
GRIDS: dict[str, Sequence[Mapping[str, Any]]] = {}
"""Everything the HyNT paper searched for each baseline; the first is `MODEL-paper`."""


def _read() -> None:
    folder = resources.files("hynt.training") / "presets"
    for file in sorted((one for one in folder.iterdir() if one.name.endswith(".toml")), key=lambda one: one.name):
        model, tables = file.name.removesuffix(".toml"), tomllib.loads(file.read_text(encoding="utf-8"))
        axes = tables.pop(GRID, None)
        for name, preset in tables.items():
            PRESETS.add(name, preset)
            _OF_MODEL[name] = model
        if axes is not None:
            GRIDS[model] = _grid(tables[f"{model}-paper"], axes)


def _grid(first: Mapping[str, Any], axes: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Every choice on each axis with every choice on the others; an axis may move further settings along."""
    found: list[Mapping[str, Any]] = []
    for values in product(*(axis["choices"] for axis in axes.values())):
        changed = {name: dict(value) if isinstance(value, Mapping) else value for name, value in first.items()}
        for (path, axis), value in zip(axes.items(), values, strict=True):
            for one in (path, *axis.get("also", ())):
                group, _, name = one.partition(".")
                changed[group][name] = value
        found.append(changed)
    return found


_read()

PLAIN: Mapping[str, Any] = {
    "batch_size": 256,
    "optimiser": {"learning_rate": 1e-2},
    "schedule": {"epochs": 100, "period": 100},
    "losses": {"smoothing": 0.1},
}
"""For a model of another package, of which nothing is known: what embeddings without a network learn well with."""


SMALL_GRAPH = 50_000
"""Training facts up to which a graph gets the small model below, on a CPU and on a GPU alike."""
SPARSE = 3
"""Facts for each entity below which a small graph counts as sparse."""
FACTS_SEEN = 1_000_000
"""How many facts training goes through in all on a small graph: a minute or two of one core."""


def defaults_for(graph: KnowledgeGraph, *, on_gpu: bool) -> Mapping[str, Any]:
    """Settings for a graph nobody has tuned for, by how many facts it trains on, and for how many entities."""
    facts = len(graph.splits.get("train", ()))
    if facts > SMALL_GRAPH:
        return _for_large(facts, on_gpu=on_gpu)
    return _for_small(facts, is_sparse=facts < SPARSE * graph.vocabulary.entity_count)


def _for_small(facts: int, *, is_sparse: bool) -> Mapping[str, Any]:
    """A narrow model of one layer each, and as many epochs as there is time for: what few facts need most is steps.
    Where an entity has few facts the model learns them by heart, so dropout and smoothing are higher and the initial
    gain of the context's norm is lower.

    Found on validation, on parts of four graphs (docs/how-to/training.md, "Settings for your own graph").
    """
    epochs = min(1_000, round(FACTS_SEEN / max(facts, 1)))
    dropout = 0.2 if is_sparse else 0.1 if facts <= 20_000 else 0.05
    return {
        "batch_size": 128 if facts <= 5_000 else 256,
        "optimiser": {"learning_rate": 3e-3, "clip": AUTHORS_CLIP},
        "schedule": {"epochs": epochs, "period": epochs},
        "losses": {"smoothing": 0.4 if is_sparse else 0.2, "number_weight": 5.0},
        "model": {
            "dimension": 64,
            "context_layers": 1,
            "prediction_layers": 1,
            "context_heads": 4,
            "prediction_heads": 4,
            "context_feedforward": 256,
            "prediction_feedforward": 256,
            "dropout": dropout,
            "tied_output": True,
            "position_scale": 0.25,
            "context_scale": 0.1 if is_sparse else 1.0,
        },
    }


def _for_large(facts: int, *, on_gpu: bool) -> Mapping[str, Any]:
    """On a GPU the authors' form, with fewer epochs for larger graphs. On a CPU one layer each, of twice the width
    that a small graph has: in ten minutes on HN-YG it reaches more than two layers do (docs/results/laptop.md).
    """
    if not on_gpu:
        epochs, period = (14, 2) if facts <= 500_000 else (7, 1)
        small = _for_small(facts, is_sparse=False)
        return {
            **small,
            "batch_size": 512,
            "optimiser": {"learning_rate": 2e-3, "clip": AUTHORS_CLIP},
            "schedule": {"epochs": epochs, "period": period},
            "losses": {"smoothing": 0.4, "number_weight": 5.0},
            "model": {**small["model"], "dimension": 128, "dropout": 0.2, "context_scale": 0.3},
        }
    epochs, period = (350, 50) if facts <= 200_000 else (70, 10) if facts <= 2_000_000 else (14, 2)
    return {
        "batch_size": 2048,
        "optimiser": {"learning_rate": 1e-3, "clip": AUTHORS_CLIP},
        "schedule": {"epochs": epochs, "period": period},
        "losses": {"smoothing": 0.4},
        "model": {"dropout": 0.2, "context_scale": 0.3},
    }


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
    minutes: float | None = None  # of training, which the schedule is planned to fill
    until_done: bool = False  # train on while validation improves, where nobody says how long

    @property
    def model_name(self) -> str:
        """The model of a new run: where none was named the preset's, else `hynt`; with minutes, `resolve_settings` may
        name another.
        """
        if self.model or self.preset is None:
            return self.model or "hynt"
        of_file = read_toml(Path(self.preset)).get("model_name") if self.preset.endswith(".toml") else None
        return of_file if isinstance(of_file, str) else _OF_MODEL.get(self.preset, "hynt")

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
    if request.minutes is not None and request.model is None and request.preset is None and not request.changes:
        request = replace(request, model=model_for(graph, request.minutes, on_gpu=on_gpu))
    kind = settings_class_for(request.model_name)
    preset = request.preset or _own_preset(request.model_name, on_gpu=on_gpu)
    if preset is not None:
        mapping = read_toml(Path(preset)) if preset.endswith(".toml") else dict(PRESETS.get(preset))
        of_model = mapping.get("model_name") or _OF_MODEL.get(preset, request.model_name)
        if of_model != request.model_name:
            raise UsageError(
                f"the preset is for the model {of_model!r}, not for {request.model_name!r}.",
                where=preset,
                advice=f"Say --model {of_model}.",
            )
        if preset.endswith(".toml"):
            load_toml(Path(preset), kind)  # refuses settings that this model does not have
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
    said = _NUMBER_SHOWN & set(mapping.get("model", {}))
    if request.model_name == "hynt" and _is_for_any_graph(request) and not said:
        settings = with_overrides(settings, ["model.number_of_hidden_relation=hidden"])
    if preset is None and not on_gpu and graph.vocabulary.entity_count >= MANY_ENTITIES and multiplies_bf16():
        settings = replace(settings, precision="bf16")
    settings = with_overrides(settings, request.overrides())
    schedule = settings.schedule
    if request.epochs is not None and schedule.epochs < schedule.period:
        settings = with_overrides(settings, [f"schedule.period={schedule.epochs}"])
    if _finds_scales(request) and "log_relations" not in mapping:
        learned = [graph.splits[name] for name in training_splits(settings) if name in graph.splits]
        if learned:
            others = list(graph.splits.values())
            table = concatenate(learned)
            found = suited_to_logarithms(graph.vocabulary, table, others)
            if validates(settings, graph):
                found = worth_a_log_scale(found, graph, table)
            settings = replace(settings, log_relations=found)
    return _timed(request, settings, graph, on_gpu=on_gpu)


MANY_ENTITIES = 5_000
"""From so many on the products that score entities take most of a step's time."""


def multiplies_bf16() -> bool:
    """Whether this processor has instructions for products of half precision, which are about twice as fast."""
    found = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return bool(found)


def _timed(request: SettingsRequest, settings: RunSettings, graph: KnowledgeGraph, *, on_gpu: bool) -> RunSettings:
    """How long it trains where nobody counts epochs: the minutes that were said, or while validation improves."""
    schedule, validation = settings.schedule, settings.validation
    own = request.preset is None
    sampled = validation.facts or (VALIDATED if len(graph.splits.get("valid", ())) > VALIDATED else None)
    if request.minutes is not None:
        if request.epochs is not None:
            raise UsageError("minutes and epochs were both given.", where="--minutes", advice="Leave one out.")
        seconds = 60 * request.minutes
        if (own or str(request.preset).endswith("-small")) and schedule.shape == "cosine":
            schedule = replace(schedule, period=schedule.epochs)  # one fall of the rate, which ends with the time
        schedule = replace(lasting(schedule, seconds), whole=True)
        validation = replace(validation, seconds=seconds / CHECKS, every=schedule.epochs, facts=sampled, patience=None)
        return replace(settings, schedule=schedule, validation=validation)
    if not request.until_done or not own or request.epochs is not None:
        return settings
    if any(change.partition("=")[0].strip().startswith(("schedule.", "validation.")) for change in request.changes):
        return settings
    is_hynt, minutes = request.model_name == "hynt", LONGEST_ON_GPU if on_gpu else LONGEST_MINUTES
    if is_hynt and not (on_gpu and len(graph.split("train")) > SMALL_GRAPH) and validates(settings, graph):
        first = max(1, schedule.period if schedule.period < schedule.epochs else schedule.epochs // 3)
        epochs = first * (schedule.growth**CYCLES - 1) // max(1, schedule.growth - 1)
        schedule, validation = replace(schedule, period=first, epochs=epochs), replace(validation, patience=1)
    elif not is_hynt and not on_gpu:
        minutes, validation = LONGEST_OF_PAPERS, replace(validation, facts=sampled)
    limit = min(60.0 * minutes, schedule.seconds or math.inf)
    return replace(settings, schedule=replace(schedule, seconds=limit), validation=validation)


VALIDATED, CHECKS = 500, 3
"""Where minutes are counted: facts that a validation asks about, and how often it is done. All facts of WD50K's take
`transea` nine minutes, and models that score fact by fact hours.
"""
CYCLES = 6
"""Where validation ends it: falls of the rate, each twice as long as the one before, before it ends anyway."""
LONGEST_MINUTES, LONGEST_ON_GPU = 30, 60
"""Where nobody says how long: what is left of a schedule after this time is cut."""
LONGEST_OF_PAPERS = 10
"""The same of a model with its paper's schedule on a CPU: it was made for GPUs and days."""


def _finds_scales(request: SettingsRequest) -> bool:
    """Whether the numbers decide which relations get a log scale: not where somebody did, and not for the published
    presets, which are compared with figures on linear scales. Models that only count keep their means and medians.
    """
    return _is_for_any_graph(request) and not request.says("log_relations") and MODELS.get(request.model_name).learns


def _is_for_any_graph(request: SettingsRequest) -> bool:
    """Whether the settings are nobody's published ones."""
    named = request.preset
    return named is None or named == "world" or named.endswith(("-small", "-gpu", ".toml"))


_NUMBER_SHOWN = {"number_of_hidden_relation", "numbers"}
"""Settings of hynt that say how a number beside a hidden relation is read; where they are said, they hold."""


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
        if before.model_name == settings.model_name == "hynt" and not request.says("model.number_of_hidden_relation"):
            shown = before.model.number_of_hidden_relation  # a run that began before the default changed
            settings = replace(settings, model=replace(settings.model, number_of_hidden_relation=shown))
        return settings if request.says("log_relations") else replace(settings, log_relations=before.log_relations)
    settings = with_overrides(before, request.overrides())
    if request.minutes is None:
        return settings
    if not settings.schedule.whole:
        return _timed(request, settings, graph, on_gpu=on_gpu)
    seconds = 60 * request.minutes  # which its schedule is stretched to fill already
    validation = replace(settings.validation, seconds=seconds / CHECKS)
    return replace(settings, schedule=replace(settings.schedule, seconds=seconds), validation=validation)


def check_softmax(settings: RunSettings) -> None:
    """Refuses to sample for a model that cannot: its loss, or its literals, need all scores."""
    if settings.losses.softmax != "sampled":
        return
    entry = MODELS.get(settings.model_name)
    if not any(stream.can_sample for stream in entry.streams) or entry.needs_literals(settings.model):
        raise UsageError(
            f"the model {settings.model_name!r} is trained on the scores of all entities, with these settings.",
            where="losses.softmax",
            advice="Leave it at auto, or train hynt with numbers as numbers.",
        )


def check_schedule(settings: RunSettings) -> None:
    """Refuses a number of steps for epochs that have one of their own."""
    if settings.schedule.epoch_steps is None:
        return
    if not any(stream.draws_steps for stream in MODELS.get(settings.model_name).streams):
        raise UsageError(
            f"an epoch of {settings.model_name!r} goes through all its training items.",
            where="schedule.epoch_steps",
            advice="Leave it out, and set schedule.epochs.",
        )


def check_moments(settings: RunSettings) -> None:
    """Refuses squared gradients that are forgotten faster than gradients: where gradients fade, the mean of them is
    divided by what fades faster still, so that steps grow without end (Reddi and others, 2018).
    """
    beta1, beta2 = settings.optimiser.beta1, settings.optimiser.beta2
    if settings.optimiser.method != "sgd" and beta2 < beta1**2:
        raise UsageError(
            f"squared gradients are forgotten faster than gradients: {beta2:g} is below {beta1:g} squared, so steps "
            f"would grow without end.",
            where="optimiser.beta2",
            advice="Set it to 0.98 or 0.999, as usual, or lower optimiser.beta1 with it.",
        )


def check_shareable(settings: RunSettings) -> None:
    """Refuses a model whose training cannot be shared among processes."""
    if not MODELS.get(settings.model_name).can_be_shared:
        able = [name for name, entry in MODELS.items() if entry.can_be_shared]
        raise UsageError(
            f"the training of {settings.model_name!r} cannot be shared among processes.",
            where="--processes",
            advice=f"Train it in one process; {', '.join(able[:-1])} and {able[-1]} can be shared.",
        )


def check_tables(settings: RunSettings) -> None:
    """Refuses sharded tables where they cannot be."""
    if settings.tables == "whole":
        return
    if not is_launched():
        raise UsageError(
            "sharded tables need several processes to be sharded over.",
            where="tables",
            advice="Say --processes 2, or more, or start it by torchrun.",
        )
    problem = ""
    sharded = SHARDED.get(settings.model_name)
    if sharded is None or not sharded.can_be_made(settings.model):
        problem = "only hynt, with untied outputs and numbers as numbers, can have sharded tables"
    elif settings.losses.softmax == "full":
        problem = "sharded tables are trained with a sampled softmax"
    elif settings.optimiser.average:
        problem = "sharded tables are not averaged (optimiser.average)"
    if problem:
        raise UsageError(f"{problem}.", where="tables", advice="Change that, or say whole.")
    check_softmax(settings)
