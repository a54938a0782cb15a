"""Draws quality against training time from the validations that `benchmarks/device.py` wrote (measure=train every=N).

    python -m benchmarks.curve_plot --out curve.png "HN-YG=hn-yg-link-curve.json" "WD50K=wd50k-link-750-epochs.json"

A curve is NAME=FILE. Time is what training took by the clock, compiling and saving included, validating left out: the
runs must have had the card to themselves.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.result_file import read_results


def points(file: Path) -> list[tuple[float, float]]:
    """Time and validation metric of the first seed of the first row."""
    run = read_results(file).rows[0].runs[0]
    return [(seconds, value) for _, seconds, value in run.curve]


def main() -> None:
    """Reads, draws, writes."""
    from matplotlib import pyplot

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("curves", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    figure, axes = pyplot.subplots(figsize=(6.4, 3.6), layout="constrained")
    for curve in given.curves:
        name, _, file = curve.partition("=")
        times, values = zip(*points(Path(file)), strict=True)
        axes.plot(times, values, marker="o", markersize=3, label=name)
    axes.set_xlabel("training time in seconds, compiling and saving included")
    axes.set_ylabel("link MRR on validation")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(given.out, dpi=160)


if __name__ == "__main__":
    main()
