"""What cannot be trained is refused here, before a folder is made and not after hours of training."""

from __future__ import annotations

from hynt.distributed.launch import is_launched
from hynt.distributed.sharded_hynt import SHARDED
from hynt.errors import UsageError
from hynt.models.registry import MODELS
from hynt.runs.settings import RunSettings


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
