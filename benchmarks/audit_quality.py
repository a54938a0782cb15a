"""How well `hynt audit` finds facts that were made wrong on purpose, beside detectors that need no model.

    PYTHONPATH=src python3 -m benchmarks.audit_quality --graph world --preset world --epochs 15 --out quality.json
    PYTHONPATH=src python3 -m benchmarks.audit_quality --graph carried/HN-WK-resplit --device cuda --limit-seconds 400 \
        --epochs 300 --out quality.json

`--limit-seconds` shortens the schedule to what fits: a few epochs are timed first.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.corrupted_copy import KINDS, SHARE, Change, corrupted
from benchmarks.result_file import write_measured
from benchmarks.trivial_detectors import trivial_scores
from hynt import __version__
from hynt.auditing.auditing import Audit, carried_out
from hynt.auditing.plan import AuditPlan, plan_audit
from hynt.config import with_overrides
from hynt.files import MANIFEST_NAME
from hynt.graph.storage import load_graph
from hynt.graph.vocabulary import Floats
from hynt.interruption import Stopper
from hynt.kernels.device import chosen_device
from hynt.progress import SILENT, Progress
from hynt.runs.checkpoint import EpochRecord, TrainingProgress
from hynt.training.resolve_settings import SettingsRequest
from hynt.training.run import start, train

_TIMED_EPOCHS = 6
_FOR_TRAINING = 0.8
"""Of the time: the rest is for judging."""


class SpokenAudit(Progress):
    """Says on standard error what the audit begins, and when."""

    def __init__(self) -> None:
        self.started = time.monotonic()

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self.started:7.0f} s  {text}", file=sys.stderr, flush=True)


class TimedEpochs(TrainingProgress):
    """Says nothing, and keeps the seconds of each epoch."""

    def __init__(self) -> None:
        super().__init__(SILENT)
        self.each: list[float] = []

    def epoch_done(self, record: EpochRecord) -> None:
        self.each.append(record.seconds)


def roc_auc(score: Floats, wrong: NDArray[np.bool_]) -> float:
    """The chance that a wrong fact scores higher than a right one; equal scores count half."""
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    ends = np.cumsum(count)
    rank = ((ends - count + 1 + ends) / 2)[place]
    positive = int(wrong.sum())
    return float((rank[wrong].sum() - positive * (positive + 1) / 2) / (positive * (len(score) - positive)))


def average_precision(score: Floats, wrong: NDArray[np.bool_]) -> float:
    """The mean over the wrong facts of the precision down to each; among equal scores the right facts come first."""
    found = wrong[np.lexsort((wrong, -score))]
    return float((np.cumsum(found) / np.arange(1, len(found) + 1))[found].mean())


def quality(score: Floats, changes: Sequence[Change], share: float) -> dict[str, Any]:
    """Precision in the first `share` of all facts, and for each kind how well it is told from the unchanged facts."""
    kind = np.full(len(score), "", dtype=object)
    for change in changes:
        kind[change.fact] = change.kind
    wrong = kind != ""
    first = np.lexsort((wrong, -score))[: round(share * len(score))]
    found: dict[str, Any] = {
        "precision_at_share": float(wrong[first].mean()),
        "roc_auc": roc_auc(score, wrong),
        "average_precision": average_precision(score, wrong),
        "kinds": {},
    }
    for one in KINDS:
        chosen = kind == one
        beside = chosen | ~wrong
        planted = int(chosen.sum())
        if planted:
            own = np.lexsort((chosen[beside], -score[beside]))[:planted]
            found["kinds"][one] = {
                "planted": planted,
                "found_at_share": float(chosen[first].sum() / planted),
                "precision_at_planted": float(chosen[beside][own].mean()),
                "roc_auc": roc_auc(score[beside], chosen[beside]),
                "average_precision": average_precision(score[beside], chosen[beside]),
            }
    return found


def audit_scores(audit: Audit) -> Floats:
    """(facts,) of all facts of the graph; those that could not be judged come last."""
    score = np.full(len(audit.plan.table), -1e18)
    score[audit.fact] = audit.score
    return score


def right_component(audit: Audit, changes: Sequence[Change], share: float) -> float | None:
    """Of the changed facts in the first `share`: how often the changed component is the one named."""
    position = {change.fact: change.position for change in changes}
    first = range(min(round(share * len(audit.plan.table)), len(audit)))
    named = audit.found.stored.position[audit.worst]
    hits = [named[place] == position[fact] for place in first if (fact := int(audit.fact[place])) in position]
    return float(np.mean(hits)) if hits else None


def fitting(plan: AuditPlan, seconds: float, device: torch.device, work: Path, compiled: bool) -> AuditPlan:
    """The same plan with as many epochs as fit into the time that is left."""
    timed = TimedEpochs()
    short = replace(plan.settings, schedule=replace(plan.settings.schedule, epochs=_TIMED_EPOCHS, period=_TIMED_EPOCHS))
    began = time.monotonic()
    train(start(plan.fold_graph(0), short, work / "timing", device), device, timed, compiled=compiled)
    # On a GPU an epoch is heard of while the next one runs, and the last one comes at once: one fewer is divided by.
    took, epoch = time.monotonic() - began, sum(timed.each[-_TIMED_EPOCHS + 1 :]) / (_TIMED_EPOCHS - 2)
    folds = sum(not part.by_run for part in plan.parts())
    once = max(0.0, took - _TIMED_EPOCHS * epoch)
    left = _FOR_TRAINING * (seconds - took) / folds - once
    epochs = max(1, min(plan.settings.schedule.epochs, int(left / max(epoch, 1e-3))))
    SpokenAudit().say(f"an epoch takes {epoch:.2f} s and a fold {once:.1f} s besides: {epochs} epochs")
    changes = [f"schedule.epochs={epochs}", f"schedule.period={epochs}"]
    return replace(plan, settings=with_overrides(plan.settings, changes))


def measured(arguments: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Makes the copy, audits it and compares."""
    began, device = time.monotonic(), chosen_device(arguments.device)
    copy, changes, passed_over = corrupted(load_graph(arguments.graph), arguments.share, arguments.seed)
    request = SettingsRequest(preset=arguments.preset, epochs=arguments.epochs, changes=tuple(arguments.set))
    plan = plan_audit(
        copy, folds=arguments.folds, fold_by=arguments.fold_by, request=request, on_gpu=device.type == "cuda"
    )
    if arguments.limit_seconds is not None:
        left = arguments.limit_seconds - (time.monotonic() - began)
        plan = fitting(plan, left, device, work, arguments.compile)
    found_trained = sum((work / "audit" / part.name / MANIFEST_NAME).is_file() for part in plan.parts())
    audit = carried_out(plan, work / "audit", device, SpokenAudit(), Stopper(), compiled=arguments.compile)
    rows = {"audit": audit_scores(audit), **trivial_scores(copy)}
    schedule = plan.settings.schedule
    return {
        "graph": copy.name,
        "facts": len(copy),
        "share": arguments.share,
        "seed": arguments.seed,
        "folds": arguments.folds,
        "fold_by": arguments.fold_by,
        "preset": arguments.preset,
        "set": arguments.set,
        "epochs": schedule.epochs,
        "period": schedule.period,
        "judged": len(audit),
        "not_judged": audit.reasons(),
        "hynt": __version__,
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "seconds": round(time.monotonic() - began, 1),
        "folds_trained_before": found_trained,
        "passed_over": passed_over,
        "right_component": right_component(audit, changes, arguments.share),
        "quality": {name: quality(score, changes, arguments.share) for name, score in rows.items()},
        "first": [_shown(row, changes, audit) for row in audit.top(20)],
    }


def _shown(row: dict[str, Any], changes: Sequence[Change], audit: Audit) -> dict[str, Any]:
    fact = int(audit.fact[row["rank"] - 1])
    planted = next((change.kind for change in changes if change.fact == fact), "")
    return {name: row[name] for name in ("rank", "score", "fact", "component", "stored", "said")} | {"planted": planted}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="world")
    parser.add_argument("--share", type=float, default=SHARE)
    parser.add_argument("--seed", type=int, default=0, help="of the changes; the audit's own is its settings'")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--fold-by", default="fact")
    parser.add_argument("--preset")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--compile", action="store_true", help="compile steps on a GPU: pays for long schedules")
    parser.add_argument("--limit-seconds", type=float)
    parser.add_argument("--work", type=Path, help="keep the work here, and go on with what is there")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = measured(arguments, arguments.work or Path(folder))
    write_measured(arguments.out, result, str(__doc__))
    for name, found in result["quality"].items():
        kinds = "  ".join(
            f"{kind} {one['roc_auc']:.3f}/{one['average_precision']:.3f}/{one['found_at_share']:.2f}"
            for kind, one in found["kinds"].items()
        )
        print(
            f"{name:15s} precision {found['precision_at_share']:.3f}  ROC-AUC {found['roc_auc']:.3f}  "
            f"AP {found['average_precision']:.3f}  {kinds}"
        )


if __name__ == "__main__":
    main()
