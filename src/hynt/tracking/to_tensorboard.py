"""Scalars as TensorBoard's event files: `tensorboard --logdir FOLDER/tensorboard`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hynt.tracking.tracker import Ending, Tracked, missing


class ToTensorBoard:
    """A folder of event files a run."""

    def __init__(self) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise missing("TensorBoard", "tensorboard") from None
        self._make: Any = SummaryWriter

    def begin(self, run: Tracked) -> None:
        self._writer = self._make(str(run.folder / "tensorboard" / run.key))
        rows = "\n".join(f"| {path} | {value} |" for path, value in {**run.tags, **run.settings}.items())
        self._writer.add_text("settings", f"| setting | value |\n|---|---|\n{rows}")

    def log(self, values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def end(self, how: Ending) -> None:  # noqa: ARG002 - an event file has no ending
        self._writer.close()
