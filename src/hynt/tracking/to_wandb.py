"""Settings and metrics to Weights & Biases: offline unless WANDB_MODE says otherwise; `wandb sync` sends them later."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from hynt.tracking.tracker import Ending, Tracked, missing

PROJECT = "hynt"
_EXIT_CODE = {"finished": 0, "stopped": 130, "failed": 1}


class ToWandb:
    """One run in the project `hynt`. Neither source code nor the output of the terminal is sent."""

    def __init__(self) -> None:
        try:
            import wandb
        except ImportError:
            raise missing("Weights & Biases", "wandb") from None
        self._wandb: Any = wandb

    def begin(self, run: Tracked) -> None:
        folder = run.folder / "wandb"
        folder.mkdir(parents=True, exist_ok=True)
        self._run = self._wandb.init(
            project=PROJECT,
            id=run.key,
            name=run.name,
            dir=str(folder),
            resume="allow",
            mode=os.environ.get("WANDB_MODE", "offline"),
            config={**run.tags, **run.settings},
            settings=self._wandb.Settings(
                silent=True, console="off", save_code=False, disable_git=True, disable_code=True, x_disable_stats=True
            ),
        )

    def log(self, values: Mapping[str, float], step: int) -> None:
        # Validation comes after the epoch's losses, with the same step: both belong to one row.
        self._run.log(dict(values), step=step)

    def end(self, how: Ending) -> None:
        self._run.finish(exit_code=_EXIT_CODE[how])
