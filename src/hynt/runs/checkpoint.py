"""Where training stands, and checkpoints of it: a folder each, written whole or not at all, refused when a byte of it
was changed.

    checkpoints/0-000049-000012/   weights.safetensors  optimiser.safetensors  progress.json  manifest.json

The name says phase, epochs and steps that were done. The last good one and the best one are kept.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from hynt.config import from_mapping, to_mapping
from hynt.errors import DataError, HyntError, UsageError
from hynt.files import MANIFEST_NAME, RESTORE, check_hash, hashes, index_text, new_folder, read_index, read_json
from hynt.progress import SILENT, Progress
from hynt.runs import WEIGHTS

OPTIMISER, PROGRESS = "optimiser.safetensors", "progress.json"
_NAME = re.compile(r"\d+-\d{6,}-\d{6,}\Z")


def task_weights(task: str) -> str:
    """The file of the weights that a run answers a task with, where they are not those of the other tasks."""
    return f"weights-{task}.safetensors"


def checkpoint_name(progress: TrainingState) -> str:
    """The folder of a checkpoint; later checkpoints sort later."""
    return f"{progress.phase}-{progress.epoch:06d}-{progress.step:06d}"


def save_checkpoint(
    root: Path, progress: TrainingState, weights: Mapping[str, Tensor], optimiser: Mapping[str, Tensor]
) -> Path:
    """Writes a checkpoint. One of the same place in training is there already only if it is the same, and stays."""
    folder = root / checkpoint_name(progress)
    if folder.exists():
        return folder
    with new_folder(folder) as staging:
        save_tensors(weights, staging / WEIGHTS)
        save_tensors(optimiser, staging / OPTIMISER)
        (staging / PROGRESS).write_text(json.dumps(progress.to_mapping()), encoding="utf-8")
        text = index_text({"files": hashes(staging, [WEIGHTS, OPTIMISER, PROGRESS])})
        (staging / MANIFEST_NAME).write_text(text, encoding="utf-8")
    return folder


def checkpoints(root: Path) -> list[Path]:
    """The checkpoints of a run, oldest first."""
    found = [path for path in root.glob("*") if path.is_dir() and _NAME.match(path.name)]
    return sorted(found, key=lambda path: tuple(int(part) for part in path.name.split("-")))


def prune(root: Path, keep: set[str]) -> None:
    """Removes all checkpoints but those named."""
    for path in checkpoints(root):
        if path.name not in keep:
            shutil.rmtree(path, ignore_errors=True)


def read_progress(folder: Path) -> TrainingState:
    """The progress of a checkpoint, once its files are known to be the ones that were written."""
    files = read_index(folder / MANIFEST_NAME).get("files")
    if not isinstance(files, dict):
        raise DataError("the manifest lists no files.", where=str(folder / MANIFEST_NAME), advice=RESTORE)
    for name in (WEIGHTS, OPTIMISER, PROGRESS):
        check_hash(folder, name, files)
    path = folder / PROGRESS
    return TrainingState.from_mapping(read_json(path), str(path))


def save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Writes tensors as safetensors, from whatever device they are on."""
    try:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, path)
    except SafetensorError as problem:  # which names the system's error only in its words
        found = re.search(r"os error (\d+)", str(problem))
        if found is None:
            raise
        raise OSError(int(found[1]), os.strerror(int(found[1])), str(path)) from None


def fill_tensors(path: Path, targets: Mapping[str, Tensor]) -> None:
    """Copies a file's tensors into `targets`. Names and shapes must agree exactly, and so must types, but that float32
    may be kept as bfloat16, as a run that is given away small does.
    """
    try:
        found = load_file(path)
    except (SafetensorError, OSError, ValueError) as problem:
        raise DataError(f"the tensors cannot be read: {problem}.", where=str(path), advice=RESTORE) from None
    if found.keys() != targets.keys():
        odd = sorted(found.keys() ^ targets.keys())[0]
        what = f"the tensors are not those of this model: {odd!r} is in one of them only."
        raise DataError(what, where=str(path), advice=RESTORE)
    for name, target in targets.items():
        tensor = found[name]
        narrow = tensor.dtype == torch.bfloat16 and target.dtype == torch.float32
        if tensor.shape != target.shape or not (tensor.dtype == target.dtype or narrow):
            raise DataError(
                f"{name!r} is {tuple(tensor.shape)} {tensor.dtype}, not {tuple(target.shape)} {target.dtype}.",
                where=str(path),
                advice=RESTORE,
            )
        if not torch.isfinite(tensor).all():
            raise DataError(
                f"{name!r} holds a value that is not a finite number, so nothing can be answered with it.",
                where=str(path),
                advice=RESTORE,
            )
    for name, target in targets.items():
        target.detach().copy_(found[name])


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """The tensors that make a model answer as it does: parameters, tied ones once, and buffers that are saved."""
    parameters: dict[str, Tensor] = dict(model.named_parameters())
    saved = model.state_dict()
    buffers = {name: value for name, value in model.named_buffers() if name in saved}
    return parameters | buffers


@dataclass(frozen=True)
class BestValidation:
    """The best validation so far."""

    phase: int
    epoch: int
    value: float | None = None  # None: the epoch was chosen before training


@dataclass(frozen=True)
class TrainingState:
    """The next step to run, and what must be carried over to it."""

    phase: int = 0
    epoch: int = 0  # epochs of this phase that are done
    step: int = 0  # steps of the epoch at hand that are done
    sums: tuple[float, ...] = ()  # of the epoch at hand: each part of the loss
    counts: tuple[float, ...] = ()
    best: BestValidation | None = None
    best_of_tasks: dict[str, BestValidation] = field(default_factory=dict)  # where each task keeps weights of its own
    misses: int = 0  # validations since the best one, of any task
    seconds: float = 0.0  # spent training, before and after interruptions
    reserved: float = 0.0  # of `schedule.seconds`, for all that is not the first phase of training
    metrics_bytes: int = 0  # how much of metrics.jsonl belongs to this state
    finished: bool = False

    def kept(self) -> list[BestValidation]:
        """The validations whose weights a run answers with."""
        return [*([] if self.best is None else [self.best]), *self.best_of_tasks.values()]

    def to_mapping(self) -> dict[str, Any]:
        """For JSON. Python writes floats in JSON so that they read back bit for bit."""
        return to_mapping(self)

    @classmethod
    def from_mapping(cls, mapping: Any, where: str) -> TrainingState:
        """What `to_mapping` wrote; anything else is a `DataError`."""
        try:
            return from_mapping(cls, mapping)
        except (UsageError, TypeError, AttributeError) as problem:
            raise DataError(f"the progress is damaged: {problem}.", where=where, advice=RESTORE) from None


@dataclass(frozen=True)
class EpochRecord:
    """One epoch that is done, for the bar and for metrics.jsonl."""

    phase: str
    epoch: int  # from 1
    epochs: int  # of the phase
    rate: float
    losses: dict[str, float]  # mean of each part of the loss over its questions
    counts: dict[str, int]
    items: int  # facts or questions trained on within `seconds`: fewer than the epoch has where only a part was run
    seconds: float  # since the epoch before it was done, validations left out
    time_left: float | None = None  # seconds until `schedule.seconds` are up; None: the clock does not end this phase
    until: int | None = None  # the epoch of the next validation, where it may end training; None: it does not

    @property
    def loss_text(self) -> str:
        """`loss link 5.1, relation 1.2, number 0.03`."""
        return "loss " + ", ".join(f"{name} {value:.4g}" for name, value in self.losses.items())

    def to_mapping(self) -> dict[str, Any]:
        """The record as one line of metrics.jsonl."""
        return {
            "phase": self.phase,
            "epoch": self.epoch,
            "learning_rate": self.rate,
            "loss": self.losses,
            "questions": self.counts,
            "seconds": round(self.seconds, 6),
        }


@dataclass(frozen=True)
class ValidationRecord:
    """One validation, for the bar and for metrics.jsonl."""

    phase: str
    epoch: int
    metric: str
    value: float
    is_best: bool
    seconds: float  # it took
    trained_seconds: float  # training time so far, validations left out
    results: dict[str, Any] = field(default_factory=dict)

    def to_mapping(self) -> dict[str, Any]:
        """The record as one line of metrics.jsonl."""
        return {
            "phase": self.phase,
            "epoch": self.epoch,
            "validation": self.results,
            "metric": self.metric,
            "value": self.value,
            "best": self.is_best,
            "seconds": round(self.seconds, 6),
            "trained_seconds": round(self.trained_seconds, 6),
        }


class Watcher:
    """Who is told how training goes; this one keeps quiet."""

    def epoch_done(self, record: EpochRecord) -> None: ...

    def validated(self, record: ValidationRecord) -> None: ...

    def weighing(self, done: int, total: int) -> None:
        """Statistics are weighed beside the model: so many scores are done."""

    def note(self, text: str) -> None:
        """Something that a person should know, once."""


class TrainingProgress(Watcher):
    """Says in words what it hears of epochs and validations."""

    def __init__(self, progress: Progress = SILENT, afterwards: float = 0.0) -> None:
        """`afterwards`: seconds that the job takes once training is over."""
        self.progress, self.afterwards = progress, afterwards
        self.seconds, self.epochs = 0.0, 0

    def epoch_done(self, record: EpochRecord) -> None:
        """Losses, speed and the time that is left."""
        self.seconds += record.seconds
        self.epochs += 1
        last = record.until or record.epochs
        left, share = (last - record.epoch) * self.seconds / self.epochs, record.epoch / last
        total: int | None = last
        if record.time_left is not None and record.time_left < left:  # the clock ends it before the epochs do
            left, total = max(record.time_left, 0.0), None
            share = self.seconds / (self.seconds + left) if self.seconds else share
        is_last = record.epoch == last or (record.time_left is not None and record.time_left <= 0)
        speed = record.items / record.seconds if record.seconds > 0 else 0.0
        ahead = "" if record.until is None or record.epoch == record.epochs else "; on while validation improves"
        if record.epoch == record.until != record.epochs:  # how much is left is what validation is about to say
            ahead, left = "; validation says whether it goes on", 0.0
        self.progress.update(
            "epoch",
            record.epoch,
            total,
            share=share,
            note=f"{record.loss_text}, {speed:,.0f} facts/s{ahead}",
            seconds_left=left + self.afterwards if left else left,
            always=self.epochs == 1 or is_last,
        )

    def validated(self, record: ValidationRecord) -> None:
        """The metric, and whether it is the best so far."""
        best = " (best so far)" if record.is_best else ""
        words = f"validation {record.metric} {record.value:.4f}{best}, {record.seconds:.1f} s"
        self.progress.say(f"epoch {record.epoch}: {words}")

    def weighing(self, done: int, total: int) -> None:
        self.progress.update("weighing statistics", done, total, "scores")

    def note(self, text: str) -> None:
        self.progress.note(text)


class NotFinite(HyntError):
    """The loss, or a gradient, stopped being a finite number."""


class Interrupted(HyntError):
    """Someone asked training to stop; it was saved."""

    exit_code = 130
