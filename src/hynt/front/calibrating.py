"""How far a run's probabilities and intervals can be trusted, fitted once and measured where asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hynt.errors import UsageError
from hynt.notebook import box, quiet, table
from hynt.tables import PlainValues

if TYPE_CHECKING:
    from hynt.asking.predictor import Predictor


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationReport(PlainValues):
    """What was fitted on the validation split, and what was measured on another."""

    found: Mapping[str, Any]  # as JSON has it: calibration, and measured where a split was named

    @property
    def calibrated(self) -> bool:
        """Whether there was something to fit on."""
        return bool(self.found["calibration"]["calibrated"])

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values that JSON can hold."""
        return dict(self.found)

    def rows(self) -> list[list[str]]:
        """Task, split, temperature, calibration error before and after, and questions, as text."""
        fitted, measured = self.found["calibration"], self.found.get("measured")
        found = []
        for task in ("link", "relation"):
            for split, part in (("valid", fitted), (measured["split"] if measured else "", measured or {})):
                if task in part:
                    temperature = f"{fitted[task]['temperature']:.3f}" if part is fitted else ""
                    errors = [f"{part[task][f'calibration_error_{when}']:.4f}" for when in ("before", "after")]
                    found.append([task, split, temperature, *errors, f"{part[task]['questions']:,}"])
        return found

    def __repr__(self) -> str:
        if not self.calibrated:
            return f"<not calibrated: {self.found['calibration']['reason']}>"
        told = (f"{row[0]} on {row[1]}: error {row[3]} before, {row[4]} after" for row in self.rows())
        return f"<calibration: {'; '.join(told)}>"

    def _repr_html_(self) -> str:
        if not self.calibrated:
            return box("not calibrated", quiet(self.found["calibration"]["reason"]))
        columns = ["task", "split", "temperature", "calibration error before", "after", "questions"]
        return box("calibration", table(columns, self.rows(), numbers=range(2, 6)))


def calibrated(run: Predictor, split: str | None) -> CalibrationReport:
    """See `Run.calibrate`."""
    found: dict[str, Any] = {**run.described(), "calibration": run.calibration.to_mapping(run.graph.vocabulary)}
    return CalibrationReport(found if split is None else found | {"measured": _measured(run, split)})


def _measured(run: Predictor, split: str) -> dict[str, Any]:
    from hynt.calibration.measuring import measure
    from hynt.runs.place import whole_run

    run.graph.split(split)  # refuses an unknown split before it is counted
    if run.calibration.missing:
        what = f"the run is not calibrated: {run.calibration.missing}."
        raise UsageError(what, where="split", advice="Leave it out, or train on train alone.")
    if split == "train":
        raise UsageError("the run was trained on train, so its answers there say nothing.", where="split")
    with whole_run():
        reads = run.loaded.run.count_read(split)
    found = measure(run.loaded, run.calibration, split, run.device)
    return {"split": split, "reads_of_split": reads, **found}
