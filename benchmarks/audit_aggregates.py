"""Ways to make one score per fact from its components, compared on an altered copy made for choosing (another seed than
the one that results are reported from).

    python -m benchmarks.audit_quality --preset world --epochs 15 --seed 101 --device cpu --work WORK --out one.json
    python -m benchmarks.audit_aggregates --preset world --epochs 15 --seed 101 --work WORK --out ways.json
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benchmarks.audit_quality import quality
from benchmarks.corrupted_copy import SHARE, corrupted
from benchmarks.result_file import write_measured
from hynt.auditing.auditing import Audit, carried_out
from hynt.auditing.plan import plan_audit
from hynt.graph.fact_table import NUMBER_KIND, position_group
from hynt.graph.storage import load_graph
from hynt.graph.vocabulary import Floats, Ids
from hynt.interruption import Stopper
from hynt.kernels.device import chosen_device
from hynt.progress import SILENT
from hynt.training.resolve_settings import SettingsRequest


def ways(audit: Audit) -> dict[str, Floats]:
    """(facts,) scores of all facts, by the way in which they are joined."""
    found, rows = audit.found, len(audit.plan.table)
    stored = found.stored
    group = position_group(stored.position)
    numbers = stored.kind == NUMBER_KIND
    signal = np.log(np.maximum(found.residual, 1e-3))
    named = np.flatnonzero(~numbers)
    signal[named] = -(found.log_probability[named] + np.log(found.values[named]))
    by_relation = -np.log(p_values(signal, 8 * stored.relation.astype(np.int64) + group))
    by_position = -np.log(p_values(signal, np.where(numbers, 5, group)))
    by_kind = -np.log(p_values(signal, stored.kind.astype(np.int64)))
    mean = np.full(rows, -1e18)
    mean[audit.fact] = audit.score
    return {
        "least p-value among the same relation and position": _highest(by_relation, stored.row, rows),
        "least p-value among the same position": _highest(by_position, stored.row, rows),
        "least p-value among the same kind": _highest(by_kind, stored.row, rows),
        "product of the p-values among the same kind": _sum(by_kind, stored.row, rows),
        "signals as they are, highest": _highest(signal, stored.row, rows),
        "product of the ratios to decoys": _sum(found.score, stored.row, rows),
        "highest ratio to decoys": _highest(found.score, stored.row, rows),
        "mean ratio to decoys": mean,
    }


def p_values(signal: Floats, group: Ids) -> Floats:
    """(n,) the share of signals of the same group that are at least as high."""
    order = np.lexsort((-signal, group))
    _, start, size = np.unique(group[order], return_index=True, return_counts=True)
    found = np.empty(len(signal))
    found[order] = (np.arange(len(order)) - np.repeat(start, size) + 1) / np.repeat(size + 1, size)
    return found


def _highest(score: Floats, row: Ids, rows: int) -> Floats:
    found = np.full(rows, -1e18)
    np.maximum.at(found, row, score)
    return found


def _sum(score: Floats, row: Ids, rows: int) -> Floats:
    return np.asarray(np.bincount(row, score, rows), dtype=np.float64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="world")
    parser.add_argument("--preset")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--seed", type=int, default=101)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--work", type=Path, required=True, help="what audit_quality kept")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    copy, changes, _ = corrupted(load_graph(arguments.graph), SHARE, arguments.seed)
    request = SettingsRequest(preset=arguments.preset, epochs=arguments.epochs, changes=tuple(arguments.set))
    plan = plan_audit(copy, folds=arguments.folds, request=request)
    audit = carried_out(plan, arguments.work / "audit", chosen_device("cpu"), SILENT, Stopper())
    marks = {name: quality(score, changes, SHARE) for name, score in ways(audit).items()}
    settings = {name: value for name, value in vars(arguments).items() if name not in ("work", "out")}
    write_measured(arguments.out, {**settings, "ways": marks}, str(__doc__))
    for name, found in marks.items():
        entity = found["kinds"]["entity"]["roc_auc"]
        told = f"{found['precision_at_share']:.3f} | {found['roc_auc']:.3f} | {found['average_precision']:.3f}"
        print(f"| {name} | {told} | {entity:.3f} |")


if __name__ == "__main__":
    main()
