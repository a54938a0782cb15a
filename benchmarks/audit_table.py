"""The results of `benchmarks.audit_quality` as the tables of the documentation.

python -m benchmarks.audit_table docs/results/raw/audit-world.json
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchmarks.result_file import read_measured

NAMES = {
    "audit": "**audit**",
    "robust z-score": "robust z-score of numbers",
    "both": "both, by rank",
    "frequency": "frequency of entities and relations",
}
KINDS = {
    "entity": "entity swapped",
    "number": "number of the same relation",
    "magnitude": "number off by ten",
    "relation": "relation swapped",
}


def tables(result: dict[str, Any]) -> str:
    """One table for all kinds together, and one for each kind with ROC-AUC, average precision, and the share found."""
    quality, kinds = result["quality"], list(result["quality"]["audit"]["kinds"])
    lines = ["| detector | precision at 2 % | ROC-AUC | average precision |", "|---|---|---|---|"]
    for name, found in quality.items():
        marks = (found[mark] for mark in ("precision_at_share", "roc_auc", "average_precision"))
        lines.append(f"| {NAMES[name]} | {' | '.join(f'{mark:.3f}' for mark in marks)} |")
    heads = " | ".join(f"{KINDS[kind]} ({quality['audit']['kinds'][kind]['planted']})" for kind in kinds)
    lines += ["", f"| ROC-AUC / average precision / found in the first 2 % | {heads} |", "|---|" + "---|" * len(kinds)]
    for name, found in quality.items():
        cells = (found["kinds"][kind] for kind in kinds)
        told = " | ".join(
            f"{cell['roc_auc']:.3f} / {cell['average_precision']:.3f} / {cell['found_at_share']:.0%}" for cell in cells
        )
        lines.append(f"| {NAMES[name]} | {told} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+")
    for path in parser.parse_args().results:
        print(tables(read_measured(path, "quality")), end="\n\n")


if __name__ == "__main__":
    main()
