"""Whether the probabilities of proposed facts keep their word: the test split is hidden, and proposals that it does not
confirm count as wrong.

    python -m benchmarks.missing_quality runs/first --out missing-world.json

Real precision is no lower: a proposal may be true though no split holds it. Numbers that test holds for another
question, such as another year, cannot be compared and are left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.result_file import write_measured
from hynt.asking.predictor import Predictor
from hynt.completion.missing_facts import ProposalOptions, Proposals, propose
from hynt.front.run import load

HIDDEN = "test"
LEAST = (0.9, 0.7, 0.5)


def measured(predictor: Predictor) -> dict[str, Any]:
    """With test hidden, how often proposals are right; with nothing hidden, how many there are."""
    loaded = predictor.loaded
    told: dict[str, Any] = {"run": loaded.run.path.name, **loaded.described(), "reads": loaded.run.count_read(HIDDEN)}
    hidden = propose(predictor, ProposalOptions(threshold=0.0, budget=1_000_000, without=(HIDDEN,)))
    whole = propose(predictor, ProposalOptions(threshold=0.0, budget=1_000_000))
    surest = float(whole.proposals.probability.max(initial=0.0))
    return told | {
        "questions": hidden.questions,
        "oversight_rate": hidden.rate,
        "precision": precision(predictor, hidden),
        "nothing_hidden": {
            "questions": whole.questions,
            "oversight_rate": whole.rate,
            "proposals": int((whole.proposals.probability >= 0.5).sum()),
            "surest": surest,
        },
    }


def precision(predictor: Predictor, found: Proposals) -> list[dict[str, Any]]:
    """Of proposals with at least some probability: how many, said on average, and confirmed."""
    made, width = found.proposals, predictor.graph.vocabulary.relation_count
    facts = predictor.graph.split(HIDDEN)
    places, filled = (
        table.head.astype(np.int64) * width + table.relation.astype(np.int64) for table in (made.table, facts)
    )
    comparable = found.is_checked | ~np.isin(places, filled)
    rows = []
    for name, kind in (
        ("all", np.ones(len(made), np.bool_)),
        ("entities", ~made.is_number),
        ("numbers", made.is_number),
    ):
        for least in LEAST:
            chosen = comparable & kind & (made.probability >= least)
            row: dict[str, Any] = {"of": name, "least": least, "proposals": int(chosen.sum())}
            if chosen.any():
                said, right = made.probability[chosen].mean(), found.is_confirmed[chosen].mean()
                row |= {"said": round(float(said), 4), "confirmed": round(float(right), 4)}
            rows.append(row)
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """As the documentation shows it."""
    lines = ["| proposals | probability | number | said on average | confirmed |", "|---|---|---|---|---|"]
    for row in rows:
        shares = (f"{row[key]:.3f}".removeprefix("0") if key in row else "" for key in ("said", "confirmed"))
        lines.append(f"| {row['of']} | at least {row['least']:g} | {row['proposals']} | {' | '.join(shares)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    found = measured(load(given.run, given.device))
    print(table(found["precision"]))
    print(f"with nothing hidden: {found['nothing_hidden']}")
    if given.out is not None:
        write_measured(given.out, found, str(__doc__))


if __name__ == "__main__":
    main()
