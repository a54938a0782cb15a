"""Arguments and options that many verbs share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer


class Device(StrEnum):
    CPU = "cpu"
    CUDA = "cuda"
    AUTO = "auto"


GraphArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="GRAPH", help="A graph folder, or a built-in name such as world.")
]
RunArgument: TypeAlias = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder made by `hynt train`.")]
ScoringDevice: TypeAlias = Annotated[Device, typer.Option("--device", help="Where to score.")]
TrainingDevice: TypeAlias = Annotated[Device, typer.Option("--device", help="Where to train.")]
Level: TypeAlias = Annotated[
    float, typer.Option("--level", help="How sure intervals of numbers are: 0.5, 0.8, 0.9, 0.95 or 0.99.")
]
