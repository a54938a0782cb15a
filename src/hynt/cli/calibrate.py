"""`hynt calibrate`: how far a run's probabilities and intervals can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hynt.cli.options import Device, RunArgument, ScoringDevice
from hynt.cli.output import JsonFlag, SaveFile, check_save, deliver, note_to_person
from hynt.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console


def calibrate(
    run: RunArgument,
    split: Annotated[
        str | None, typer.Option("--split", help="Measure on this split as well, such as test; the reading is counted.")
    ] = None,
    device: ScoringDevice = Device.AUTO,
    as_json: JsonFlag = False,
    save: SaveFile = None,
) -> None:
    """Fit RUN's probabilities and intervals on the validation split, once, and say how well they fit."""
    from hynt.asking.predictor import load

    check_save(save)
    predictor = load(run, device.value, note_to_person)
    calibration, graph = predictor.calibration, predictor.graph
    result: dict[str, Any] = {
        "run": str(run),
        **predictor.described(),
        "calibration": calibration.to_mapping(graph.vocabulary),
    }
    if split is not None:
        result["measured"] = _measured(predictor, split)
    deliver(result, as_json=as_json, save=save, text=lambda console: _print(console, result))


def _measured(predictor: Any, split: str) -> dict[str, Any]:
    from hynt.calibration.measuring import measure
    from hynt.runs.place import whole_run

    predictor.graph.split(split)  # refuses an unknown split before it is counted
    if predictor.calibration.missing:
        raise UsageError(
            f"the run is not calibrated: {predictor.calibration.missing}.",
            where="--split",
            advice="Leave it out, or train on train alone.",
        )
    if split == "train":
        raise UsageError("the run was trained on train, so its answers there say nothing.", where="--split")
    with whole_run():
        reads = predictor.loaded.run.count_read(split)
    found = measure(predictor.loaded, predictor.calibration, split, predictor.device)
    return {"split": split, "reads_of_split": reads, **found}


def _print(console: Console, result: dict[str, Any]) -> None:
    from rich.table import Table

    found, measured = result["calibration"], result.get("measured")
    if not found["calibrated"]:
        console.print(f"not calibrated: {found['reason']}")
        return
    table = Table("task", "split", "temperature", "calibration error before", "after", "questions")
    for task in ("link", "relation"):
        for split, part in (("valid", found), (measured["split"] if measured else "", measured or {})):
            if task in part:
                temperature = f"{found[task]['temperature']:.3f}" if part is found else ""
                errors = (f"{part[task][f'calibration_error_{when}']:.4f}" for when in ("before", "after"))
                table.add_row(task, split, temperature, *errors, f"{part[task]['questions']:,}")
    console.print(table)
    if "number" in found:
        own = sum("0.9" in entry["own"] for entry in found["number"].values())
        console.print(f"intervals: {own} of {len(found['number'])} relations have their own at 90%, the others share")
    if measured and "number" in measured:
        table = Table("level", "coverage", "mean width (scaled)", "median width", "questions")
        for level, part in measured["number"]["levels"].items():
            cells = ("-" if part[name] is None else f"{part[name]:.4f}" for name in _COLUMNS)
            table.add_row(f"{float(level):.0%}", *cells, f"{measured['number']['questions']:,}")
        console.print(table)


_COLUMNS = ("coverage", "mean_width", "median_width")
