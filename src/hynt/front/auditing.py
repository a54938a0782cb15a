"""Which facts of a graph look wrong, found and written in one call."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hynt.front.jobs import Watching, watched
from hynt.front.training import AnyGraph

if TYPE_CHECKING:
    from hynt.auditing.auditing import Audit


def audit(
    source: AnyGraph,
    out: str | os.PathLike[str] | None = None,
    *,
    splits: Sequence[str] = ("all",),
    folds: int = 5,
    fold_by: str = "fact",
    model: str | None = None,
    preset: str | None = None,
    epochs: int | None = None,
    seed: int | None = None,
    changes: Sequence[str] = (),
    device: str = "auto",
    work: str | os.PathLike[str] | None = None,
    components: bool = False,
    version: int | None = None,
    progress: Watching = None,
    **settings: Any,
) -> Audit:
    """Ranks the facts of a graph, or of the graph of a run with the settings of that run, by how wrong they look to
    models that did not see them. With `out` the ranking is also written as Parquet: a row per fact or, with
    `components`, per component.

    The facts are divided into `folds`, and each fold is judged by a model trained on the others;
    `fold_by="head,relation"` keeps a time series together. A run is asked of its graph with all updates, or with those
    of an earlier `version`; `splits=["added"]` judges what these brought. `work` is a folder that keeps what is done,
    so that an audit can be resumed; with `out` alone it lies beside that file until all is done. Settings are given as
    in `hynt.train`.

    >>> found = hynt.audit(graph, model="transea", splits=["test"], folds=2, epochs=1)
    >>> found.to_arrow().column_names[:3]
    ['rank', 'score', 'split']
    """
    from hynt.auditing.auditing import carried_out, planned
    from hynt.config.overrides import overrides_of
    from hynt.files import check_parquet
    from hynt.interruption import stopping_on_signals
    from hynt.kernels.device import chosen_device
    from hynt.leftovers import discard
    from hynt.training.resolve_settings import SettingsRequest

    target = None if out is None else Path(out)
    if target is not None:
        check_parquet(target, "--out")
    beside = None if target is None or work is not None else target.with_name(f"{target.name}.work")
    request = SettingsRequest(model, preset, epochs, seed, changes=(*changes, *overrides_of(settings)))
    on = chosen_device(device)
    dealing: dict[str, Any] = {"splits": splits, "folds": folds, "fold_by": fold_by}
    with (
        watched(progress) as shown,
        stopping_on_signals() as stopper,
        TemporaryDirectory(prefix="hynt-audit-") as place,
    ):
        stopper.say = shown.say
        plan = planned(source, request, version, **dealing, on_gpu=on.type == "cuda")
        found = carried_out(plan, Path(beside or work or place), on, shown, stopper)
        if target is not None:
            found.write(target, components=components)
    if beside is not None:
        discard(beside)
    return found
