"""Draws quality against training time from the validations that `benchmarks/device.py` wrote (measure=train every=N).

    python -m benchmarks.curve_plot --out curve.png "HN-YG=hn-yg-link-curve.json@0.044" "WD50K=wd50k-link.json@0.167"

A curve is NAME=FILE@SECONDS, with the seconds of an epoch measured alone on the card: runs that shared it took longer.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path


def points(file: Path, seconds: float) -> list[tuple[float, float]]:
    """Time and validation metric of the first seed of the first job."""
    (job, *_) = json.loads(file.read_text(encoding="utf-8"))["jobs"].values()
    (run, *_) = job["train"]["seeds"].values()
    return [(point["epoch"] * seconds, point["value"]) for point in run["curve"]]


def main() -> None:
    """Reads, draws, writes."""
    from matplotlib import pyplot

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("curves", nargs="+", metavar="NAME=FILE@SECONDS")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    figure, axes = pyplot.subplots(figsize=(6.4, 3.6), layout="constrained")
    for curve in given.curves:
        name, _, rest = curve.partition("=")
        file, _, seconds = rest.rpartition("@")
        times, values = zip(*points(Path(file), float(seconds)), strict=True)
        axes.plot(times, values, marker="o", markersize=3, label=f"{name}, {float(seconds):g} s an epoch")
    axes.set_xlabel("training time in seconds: epochs times the time of one, alone on the card")
    axes.set_ylabel("link MRR on validation")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(given.out, dpi=160)


if __name__ == "__main__":
    main()
