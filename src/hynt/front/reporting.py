"""The page about a run, made and written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hynt.errors import UsageError, located
from hynt.files import check_place, write_whole

if TYPE_CHECKING:
    from hynt.asking.predictor import Predictor
    from hynt.front.watching import Watching
    from hynt.reporting.report.page import Report

SPLITS = ("valid", "test")


def reported(
    run: Predictor,
    out: str | os.PathLike[str] | None,
    split: str,
    entity: str | None,
    *,
    again: bool,
    progress: Watching,
) -> Report:
    """See `Run.report`. What cannot be written or measured is refused before any work."""
    if split not in SPLITS:
        raise UsageError(f"no report is made of {split!r}.", where="split", advice=f"Choose {' or '.join(SPLITS)}.")
    if out is not None and Path(out).suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{Path(out).name} is no page.", where="out", advice="Give a file that ends in .html.")
    if out is not None:
        check_place(Path(out), "out")
    run.graph.split(split)
    with located("entity"):
        drawn = None if entity is None else run.names.entity(entity)

    from hynt.front.watching import watched
    from hynt.reporting.report.page import make_report
    from hynt.runs.place import whole_run

    _ = run.loaded
    with whole_run(), watched(progress) as shown:
        asking = shown.counting("evaluating")
        made = make_report(run, split, entity=drawn, again=again, asking=asking, note=run.note)
    if out is not None:
        write_whole(Path(out), made.page.encode("utf-8", "backslashreplace"))
    return made
