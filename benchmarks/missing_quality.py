"""Whether the probabilities of proposed facts keep their word, from proposals that a hidden split could confirm.

hynt complete runs/first --missing --without test --threshold 0.3 --out checked.parquet
python -m benchmarks.missing_quality checked.parquet
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet

BOUNDS = ((0.9, 1.0), (0.7, 0.9), (0.5, 0.7), (0.3, 0.5))


def by_probability(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Proposed entities by how sure they were, surest first, then numbers: how many, said, and confirmed."""
    entities = [row for row in rows if row["tail_number"] is None]
    found = []
    for low, high in BOUNDS:
        inside = [row for row in entities if low <= row["probability"] < high or row["probability"] == high == 1.0]
        found.append(_share_row(f"{low:g} - {high:g}", inside))
    return [*found, _share_row("numbers", [row for row in rows if row["tail_number"] is not None])]


def _share_row(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    checked = [row for row in rows if row["confirmed"] is not None]
    said, right = (sum(float(row[key]) for row in checked) for key in ("probability", "confirmed"))
    shares = {"said": round(said / len(checked), 4), "confirmed": round(right / len(checked), 4)} if checked else {}
    return {"probability": name, "proposals": len(rows), "checked": len(checked), **shares}


def table(found: list[dict[str, Any]]) -> str:
    """As the documentation shows it."""
    lines = [
        "| probability | proposals | of which test knows head and relation | said on average | confirmed |",
        "|---|---|---|---|---|",
    ]
    for row in found:
        shares = (f"{row[key]:.3f}".removeprefix("0") if key in row else "" for key in ("said", "confirmed"))
        name = row["probability"].replace(" - ", " – ")
        lines.append(f"| {name} | {row['proposals']} | {row['checked']} | {' | '.join(shares)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("proposals", type=Path)
    print(table(by_probability(parquet.read_table(parser.parse_args().proposals).to_pylist())))


if __name__ == "__main__":
    main()
