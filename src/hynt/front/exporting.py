"""A run's scoring model for programs that have no torch."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hynt.errors import UsageError
from hynt.files import check_place
from hynt.names import advice_on

if TYPE_CHECKING:
    from hynt.asking.predictor import Predictor

FORMATS = ("onnx",)


def exported(
    run: Predictor, out: str | os.PathLike[str], form: str, qualifiers: int | None, *, overwrite: bool
) -> dict[str, Any]:
    """See `Run.export`."""
    path = Path(out)
    if form not in FORMATS:
        raise UsageError(f"a run cannot be exported as {form!r}.", where="format", advice=advice_on(form, FORMATS))
    check_place(path, "out")
    if path.exists() and not overwrite:
        raise UsageError(f"{path} exists already.", where="out", advice="Say --overwrite to replace it.")
    from hynt.asking.predictor import Predictor
    from hynt.exporting import export_onnx

    loaded = run.loaded if run.device.type == "cpu" else Predictor(run.saved, "cpu").loaded
    if not loaded.run.is_finished:
        advice = f"Go on: hynt train GRAPH --out {run.path} --resume."
        raise UsageError("the run is not finished.", where=str(run.path), advice=advice)
    return {"run": str(run.path), **export_onnx(loaded, path, qualifiers)}
