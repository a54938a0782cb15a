"""Whether the probabilities of proposed facts keep their word: the test split is hidden, and proposals that it does not
confirm count as wrong.

    python -m benchmarks.missing_quality runs/first --out missing-world.json

Real precision is no lower: a proposal may be true though no split holds it. Numbers that test holds for another
question, such as another year, cannot be compared and are left out. Several runs, each on a split of its own, are
counted together. What is said and what is confirmed differ by chance, too: the standard error takes relations, not
proposals, for what is drawn, since those of one relation are right or wrong together. What a run says itself of how far
it may be off, nine times in ten, stands beside what is confirmed, split by split.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.result_file import write_measured
from hynt.asking.predictor import Predictor
from hynt.completion.missing_facts import ProposalOptions, Proposals, propose
from hynt.front.run import load
from hynt.graph.vocabulary import Flags, Floats

HIDDEN = "test"
LEAST = (0.9, 0.7, 0.5)


class Compared(NamedTuple):
    """`n` proposals that test can confirm, or is right not to."""

    said: Floats  # (n,) the probability
    right: Flags  # (n,) confirmed
    is_number: Flags
    relation: NDArray[np.str_]  # (n,) by name: of one graph, split several times

    @classmethod
    def joined(cls, parts: Sequence[Compared]) -> Compared:
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    @classmethod
    def of(cls, predictor: Predictor, found: Proposals) -> Compared:
        """Those of one run, with test hidden."""
        made, width = found.proposals, predictor.graph.vocabulary.relation_count
        facts = predictor.graph.split(HIDDEN)
        places, filled = (
            table.head.astype(np.int64) * width + table.relation.astype(np.int64) for table in (made.table, facts)
        )
        kept = np.flatnonzero(found.is_checked | ~np.isin(places, filled))
        names = np.array([relation.name for relation in predictor.graph.relations])
        relation = names[made.table.relation[kept]]
        return cls(made.probability[kept], found.is_confirmed[kept], made.is_number[kept], relation)


def measured(predictor: Predictor) -> tuple[dict[str, Any], Compared]:
    """With test hidden, how often proposals are right; with nothing hidden, how many there are."""
    loaded = predictor.loaded
    told: dict[str, Any] = {"run": loaded.run.path.name, **loaded.described(), "reads": loaded.run.count_read(HIDDEN)}
    hidden = propose(predictor, ProposalOptions(threshold=0.0, budget=1_000_000, without=(HIDDEN,)))
    whole = propose(predictor, ProposalOptions(threshold=0.0, budget=1_000_000))
    compared = Compared.of(predictor, hidden)
    return told | {
        "questions": hidden.questions,
        "oversight_rate": hidden.rate,
        "precision": precision(compared),
        "stated": [stated(predictor, compared, least) for least in LEAST],
        "nothing_hidden": {
            "questions": whole.questions,
            "oversight_rate": whole.rate,
            "proposals": int((whole.proposals.probability >= 0.5).sum()),
            "surest": float(whole.proposals.probability.max(initial=0.0)),
        },
    }, compared


def stated(predictor: Predictor, compared: Compared, least: float) -> dict[str, Any]:
    """What the run says of its proposals from this probability on, as a share of them, and what is confirmed."""
    found = propose(predictor, ProposalOptions(threshold=least, budget=1_000_000, without=(HIDDEN,)))
    expected, chosen = found.expected(), compared.said >= least
    row: dict[str, Any] = {"least": least, "proposals": int(chosen.sum())}
    if expected is None or not chosen.any():
        return row
    names = ("said", "low", "high")
    told = {name: round(one / len(found.proposals), 4) for name, one in zip(names, expected, strict=True)}
    return row | told | {"confirmed": round(float(compared.right[chosen].mean()), 4)}


def precision(compared: Compared) -> list[dict[str, Any]]:
    """Of proposals with at least some probability: how many, said on average, confirmed, and how far the two are apart
    by chance.
    """
    rows = []
    for name, kind in (
        ("all", np.ones_like(compared.is_number)),
        ("entities", ~compared.is_number),
        ("numbers", compared.is_number),
    ):
        for least in LEAST:
            chosen = kind & (compared.said >= least)
            row: dict[str, Any] = {"of": name, "least": least, "proposals": int(chosen.sum())}
            if chosen.any():
                said, right = compared.said[chosen], compared.right[chosen]
                apart = np.bincount(np.unique(compared.relation[chosen], return_inverse=True)[1], right - said)
                row |= {"said": round(float(said.mean()), 4), "confirmed": round(float(right.mean()), 4)}
                row["error"] = round(float(np.sqrt((apart**2).sum()) / chosen.sum()), 4)
            rows.append(row)
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """As the documentation shows it."""
    lines = [
        "| proposals | probability | number | said on average | confirmed | standard error |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        shares = (f"{row[key]:.3f}".removeprefix("0") if key in row else "" for key in ("said", "confirmed", "error"))
        lines.append(f"| {row['of']} | at least {row['least']:g} | {row['proposals']} | {' | '.join(shares)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    of_runs: list[dict[str, Any]] = []
    parts: list[Compared] = []
    for path in given.runs:
        told, compared = measured(load(path, given.device))
        print(f"{path.name}: {told['stated']}")
        print(
            f"{path.name}: {told['precision'][: len(LEAST)]}\nwith nothing hidden: {told['nothing_hidden']}", flush=True
        )
        of_runs, parts = [*of_runs, told], [*parts, compared]
    found = {"runs": of_runs, "precision": precision(Compared.joined(parts))}
    print(table(found["precision"]))
    if given.out is not None:
        write_measured(given.out, found, str(__doc__))


if __name__ == "__main__":
    main()
