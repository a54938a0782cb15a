"""Everything that decides a training run, as frozen data. A run's `config.toml` is exactly this.

What a model itself takes (its width, its layers) is the model's own dataclass; `settings_class` joins it, as the
table `model`, with the settings that every model shares.
"""

from __future__ import annotations

from dataclasses import dataclass, field, make_dataclass
from typing import Annotated, Any, Literal

from hynt.batches.masked_batch import Masking
from hynt.config import flat, to_mapping
from hynt.config.declarations import Count, Positive, Range, Rate
from hynt.files import changes
from hynt.objectives.losses import LossSettings
from hynt.objectives.streams import PhaseSettings
from hynt.runs import LARGEST_SEED

TrainOn = Literal["train", "train+valid"]
ScaleOn = Literal["train", "all-splits"]
Precision = Literal["auto", "bf16", "fp32"]


@dataclass(frozen=True)
class Optimiser:
    """Adam, Muon or plain gradient descent, with a bound on the gradient's norm.

    "muon" moves the matrices of a model's layers by their orthogonalised momentum and all else by Adam.
    """

    learning_rate: Positive = 1e-3
    clip: Positive | None = None  # None: gradients are not clipped
    beta1: Rate = 0.9
    beta2: Rate = 0.999
    epsilon: Positive = 1e-8
    weight_decay: Annotated[float, Range(0)] = 0.0  # decoupled: times the rate, from every weight; "muon": of matrices
    method: Literal["adam", "muon", "sgd"] = "adam"  # "sgd" knows neither moments nor weight decay
    matrix_rate: Positive = 4.5e-3  # highest, of what "muon" moves
    average: Rate = 0.0  # decay of an average of the weights, which is what is validated and kept; 0: no average
    table_rate: Positive = 0.05  # highest, of sharded tables' row-wise Adagrad


@dataclass(frozen=True)
class Schedule:
    """How the learning rate moves. "cosine": annealing with warm restarts, stepped once an epoch; "linear": up from 0
    over the first `warm_up` of all steps, then down to 0 at the end; "warm-cosine": the same, down along half a cosine;
    "steps": times `decay` after each `period`.
    """

    epochs: Count = 350
    period: Count = 50  # epochs of the first cycle; each later one is `growth` times as long
    growth: Count = 2
    lowest_rate: Annotated[float, Range(0)] = 0.0
    shape: Literal["cosine", "linear", "warm-cosine", "steps"] = "cosine"
    warm_up: Rate = 0.1  # of "linear" and "warm-cosine"
    decay: Annotated[float, Range(0, 1, above_minimum=True)] = 0.95  # of "steps"; 1 keeps the rate as it is
    seconds: Positive | None = None  # of training, at most; None: all epochs
    whole: bool = False  # `seconds` are those of the whole command: validation and weighing come out of them
    epoch_steps: Count | None = None  # where each step is drawn anew; None: all facts are asked about once

    def cycle_ends(self) -> tuple[int, ...]:
        """The epochs, counted from 1, after which a cycle ends, up to the last epoch; none without cycles."""
        if self.shape != "cosine":
            return ()
        ends, end, length = [], self.period, self.period
        while end <= self.epochs:
            ends.append(end)
            length *= self.growth
            end += length
        return tuple(ends)


@dataclass(frozen=True)
class TaskEpochs:
    """Where nothing validates, the epochs whose weights answer each task, as a run on train alone chose them; None: the
    last.
    """

    link: Count | None = None
    relation: Count | None = None
    number: Count | None = None

    def of(self, epoch: int) -> list[str]:
        """The tasks that keep the weights of this epoch, counted from 1."""
        return [task for task, chosen in vars(self).items() if chosen == epoch]


@dataclass(frozen=True)
class Validation:
    """When the model is tried on the validation split, and on what it is judged."""

    metric: str = "link.all.mrr"  # task.scope.metric; for a number task rmse or mae, of which less is better
    every: Count | None = None  # epochs; None: at the ends of cosine cycles and after the last epoch
    patience: Count | None = None  # stop after so many validations without a better one; None: never
    keep_best: bool = True  # answer with the best validated weights; false: with those of the last epoch
    seconds: Positive | None = None  # of training, after which it is due as well
    facts: Count | None = None  # how many facts of the split are asked about, drawn once; None: all
    first: Count = 1  # the epoch before which `every` does not count
    each_task: bool = False  # keep the best weights of each task, and answer each with its own
    chosen: TaskEpochs = field(default_factory=TaskEpochs)  # with train_on=train+valid

    def metrics_of_tasks(self) -> dict[str, str]:
        """By which metric each task chooses its own weights; empty where one choice serves all."""
        if not self.each_task:
            return {}
        usual = {task: f"{task}.all.{'rmse' if task == 'number' else 'mrr'}" for task in ("link", "relation", "number")}
        return usual | {self.metric.partition(".")[0]: self.metric}


@dataclass(frozen=True)
class Saving:
    """When a checkpoint is written besides at validations and at the end."""

    minutes: Annotated[float, Range(0)] = 10.0


@dataclass(frozen=True)
class TrainingSettings:
    """The settings that every model shares."""

    seed: Annotated[int, Range(0, LARGEST_SEED)] = 0
    batch_size: Count = 2048
    precision: Precision = "auto"  # bf16 on a GPU that has it, fp32 elsewhere; scores are always fp32
    train_on: TrainOn = "train"
    scale_on: ScaleOn = "train"
    tables: Literal["whole", "spread"] = "whole"  # entity tables whole in every process, or sharded over all
    literals: Literal["given", "shuffled"] = "given"  # training numbers dealt anew within each relation: do they help?
    log_relations: tuple[str, ...] = ()  # number relations that the model sees on a log scale
    with_statistics: bool = False  # once trained, answers are weighed with counts and means of the training facts
    optimiser: Optimiser = field(default_factory=Optimiser)
    schedule: Schedule = field(default_factory=Schedule)
    masking: Masking = field(default_factory=Masking)
    losses: LossSettings = field(default_factory=LossSettings)
    validation: Validation = field(default_factory=Validation)
    saving: Saving = field(default_factory=Saving)

    def __post_init__(self) -> None:
        if self.train_on == "train+valid" and self.validation.patience is not None:
            raise ValueError(
                "training on train+valid leaves no validation split to stop early on: drop validation.patience, "
                "or train on train alone"
            )

        for task, epoch in vars(self.validation.chosen).items():
            if epoch is not None and self.train_on != "train+valid":
                raise ValueError(
                    f"validation.chosen.{task} is for train_on=train+valid: on train alone the validation split chooses"
                )
            if epoch is not None and epoch > self.schedule.epochs:
                raise ValueError(f"validation.chosen.{task} is {epoch}, beyond the {self.schedule.epochs} epochs")

    def for_phases(self) -> PhaseSettings:
        """What a model is told when it makes its phases."""
        schedule = self.schedule
        return PhaseSettings(self.batch_size, schedule.epochs, self.masking, self.losses, schedule.epoch_steps)

    def validation_epochs(self) -> tuple[int, ...]:
        """The epochs, counted from 1, after which the model is validated; none when valid is trained on."""
        if self.train_on == "train+valid":
            return ()
        last, every = self.schedule.epochs, self.validation.every
        points = self.schedule.cycle_ends() if every is None else range(every, last + 1, every)
        return tuple(sorted({*(point for point in points if point >= self.validation.first), last}))


@dataclass(frozen=True)
class RunSettings(TrainingSettings):
    """Shared settings, the model's name and the model's own settings. Made by `settings_class`."""

    model_name: str = ""
    model: Any = None


_MADE: dict[tuple[str, type], type[RunSettings]] = {}


def settings_class(model_name: str, model_settings: type) -> type[RunSettings]:
    """The settings of a run of this model; `model_settings` is the model's own dataclass, all of it with defaults."""
    key = (model_name, model_settings)
    if key not in _MADE:
        _MADE[key] = _made(model_name, model_settings)
    return _MADE[key]


def _made(model_name: str, model_settings: type) -> type[RunSettings]:
    own = [("model_name", str, field(default=model_name)), ("model", model_settings, field(default=model_settings()))]
    return make_dataclass("RunSettings", own, bases=(RunSettings,), frozen=True)


FAR_ABOVE = 10
"""A setting so many times its default is what went wrong, rather than what usually does."""


def furthest_above(
    settings: TrainingSettings, kind: type, groups: tuple[str, ...], times: float = FAR_ABOVE
) -> tuple[str, Any, Any] | None:
    """Of the counts (int) or factors (float) whose paths begin so: the one that is more than so many times its default
    or 1, by most, with its value and its default.
    """
    usual, given = (flat(to_mapping(one)) for one in (type(settings)(), settings))
    ratios = {
        name: value / max(usual[name], 1)
        for name, value in given.items()
        if name.startswith(groups) and type(value) is type(usual.get(name)) is kind and value > usual[name]
    }
    most = max(ratios, key=lambda name: ratios[name], default="")
    return (most, given[most], usual[most]) if most and ratios[most] > times else None


def differences(old: RunSettings, new: RunSettings) -> list[str]:
    """One line per setting that differs, `schedule.epochs: 350 → 700`; empty when they agree.

    Another model has other settings throughout, so it is the only line.
    """
    if old.model_name != new.model_name:
        return [f"model: {old.model_name} → {new.model_name}"]
    return changes(to_mapping(old), to_mapping(new))
