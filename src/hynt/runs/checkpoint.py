"""Checkpoints: a folder each, written whole or not at all, refused when a byte of it was changed.

    checkpoints/0-000049-000012/   weights.safetensors  optimiser.safetensors  progress.json  manifest.json

The name says phase, epochs and steps that were done. The last good one and the best one are kept.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from hynt.errors import DataError
from hynt.files import MANIFEST_NAME, RESTORE, check_hash, hashes, index_text, new_folder, read_index, read_json
from hynt.runs.progress import TrainingState

WEIGHTS, OPTIMISER, PROGRESS = "weights.safetensors", "optimiser.safetensors", "progress.json"
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
        raise DataError("the manifest lists no files.", where=str(folder / MANIFEST_NAME))
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
        raise DataError(f"the tensors cannot be read: {problem}.", where=str(path)) from None
    if found.keys() != targets.keys():
        odd = sorted(found.keys() ^ targets.keys())[0]
        raise DataError(f"the tensors are not those of this model: {odd!r} is in one of them only.", where=str(path))
    for name, target in targets.items():
        tensor = found[name]
        narrow = tensor.dtype == torch.bfloat16 and target.dtype == torch.float32
        if tensor.shape != target.shape or not (tensor.dtype == target.dtype or narrow):
            raise DataError(
                f"{name!r} is {tuple(tensor.shape)} {tensor.dtype}, not {tuple(target.shape)} {target.dtype}.",
                where=str(path),
            )
        if not torch.isfinite(tensor).all():
            raise DataError(
                f"{name!r} holds a value that is no finite number, so nothing can be answered with it.",
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
