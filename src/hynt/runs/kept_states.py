"""States of observed facts that outlive the process: a fresh one answers without reading the graph again.

They lie in the user's cache folder and never in a run, so no run that was fetched brings any; a folder that others
may write to is not used. A file is named by the hash of all that its states are made from (weights, facts, ranks of
numbers, the code itself), so none is ever stale; it carries the hash of its own content, and one that is damaged is
made again. The oldest go when there are too many.
"""

from __future__ import annotations

import hashlib
import math
import os
from contextlib import suppress
from dataclasses import fields
from functools import cache
from itertools import chain
from pathlib import Path
from typing import cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import nn

import hynt
from hynt.batches.fact_tensors import FactTensors
from hynt.errors import DataError
from hynt.files import check_regular, write_whole
from hynt.leftovers import A_DAY, clean
from hynt.models.contract import Model
from hynt.models.hynt_inductive import HyntInductive, ObservedStates
from hynt.models.layers.message_passing import Nodes

FEWEST_FACTS = 5_000
"""Fewer are encoded sooner than a file is found."""

MOST_BYTES = 2**29
"""Of all files together; the one that was used longest ago goes first."""

_ENDING = ".states"
_DIGEST, _HEADER = 32, 2**16
"""Bytes: the hash comes first, then safetensors, whose header is far smaller than this."""

_CODE = ("batches", "kernels", "models/hynt_inductive.py", "models/layers/message_passing.py")
"""What the states are made by, in the package."""


def keep_states(model: Model, *, wanted: bool = True) -> Model:
    """The same model; what it encodes is looked for in the cache folder from now on, and kept there, or neither where
    it is not `wanted`: a service that follows its graph would write states that the next fact makes useless.
    """
    for part in cast(nn.Module, model).modules():
        if isinstance(part, HyntInductive):
            part.make_states = kept_states if wanted else HyntInductive.encode
    return model


def kept_states(model: HyntInductive, facts: FactTensors) -> ObservedStates:
    """What the model makes of these facts."""
    folder = cache_folder()
    if folder is None or facts.device.type != "cpu" or len(facts) < FEWEST_FACTS or torch.is_autocast_enabled("cpu"):
        return model.encode(facts)
    path = folder / f"{_name(model, facts)}{_ENDING}"
    found = _read(path, model, facts)
    if found is not None:
        return model.states_from(facts, found)
    made = model.encode(facts)
    with suppress(OSError, DataError):  # a full disk, or a home that may only be read: then nothing is kept
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_ours(folder):
            _write(path, made.layers)
    return made


def _is_ours(folder: Path) -> bool:
    """Whether nobody else can write there: states of another's making would be answers of another's making."""
    found = folder.stat()
    return os.name != "posix" or (found.st_uid == os.geteuid() and not found.st_mode & 0o022)


def cache_folder() -> Path | None:
    """`$HYNT_CACHE`, or the usual place; None where that says `off`."""
    said = os.environ.get("HYNT_CACHE", "")
    if said == "off":
        return None
    with suppress(RuntimeError):  # nobody's home is known
        usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hynt"
        return (Path(said) if said else usual) / "states"
    return None


def _name(model: HyntInductive, facts: FactTensors) -> str:
    """The hash of all that decides the states."""
    digest = hashlib.sha256(f"{_code()} {torch.__version__} {model.settings} {facts.sizes}".encode())
    columns = ((one.name, getattr(facts, one.name)) for one in fields(facts) if one.name != "sizes")
    for name, tensor in [*model.named_parameters(), *model.named_buffers(), *columns]:
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
        digest.update(tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


@cache
def _code() -> str:
    """The hash of the code that encodes: two versions of it never share a file."""
    root, digest = Path(hynt.__file__).parent, hashlib.sha256(hynt.__version__.encode())
    for place in _CODE:
        for path in sorted((root / place).glob("*.py")) if (root / place).is_dir() else [root / place]:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _read(path: Path, model: HyntInductive, facts: FactTensors) -> tuple[Nodes, ...] | None:
    """The layers that a file holds; None where there is none, or it is not what was written."""
    d, layers = model.settings.dimension, model.settings.layers + 1
    shapes = [shape for _ in range(layers) for shape in ((facts.sizes.entities, d), (facts.sizes.relations, d))]
    try:
        check_regular(path)
        if not _is_ours(path.parent) or path.stat().st_size > _HEADER + 4 * sum(map(math.prod, shapes)):
            return None
        content = memoryview(path.read_bytes())
        if hashlib.sha256(content[_DIGEST:]).digest() != content[:_DIGEST]:
            return None
        named = load(bytes(content[_DIGEST:]))
        found = [named[str(number)] for number in range(len(shapes))]
        with suppress(OSError):  # a folder that may only be read
            os.utime(path)
    except (OSError, DataError, SafetensorError, KeyError):
        return None
    if any(one.dtype != torch.float32 or one.shape != shape for one, shape in zip(found, shapes, strict=True)):
        return None
    return tuple(Nodes(value, relation) for value, relation in zip(found[::2], found[1::2], strict=True))


def _write(path: Path, layers: tuple[Nodes, ...]) -> None:
    clean(path.parent, A_DAY)
    content = save({str(number): one.contiguous() for number, one in enumerate(chain.from_iterable(layers))})
    if len(content) > MOST_BYTES:
        return
    write_whole(path, hashlib.sha256(content).digest() + content)
    left = MOST_BYTES
    for one in sorted(path.parent.glob(f"*{_ENDING}"), key=lambda one: -one.stat().st_mtime):
        left -= one.stat().st_size
        if left < 0:
            one.unlink(missing_ok=True)
