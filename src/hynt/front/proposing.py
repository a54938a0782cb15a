"""Facts that a graph lacks, proposed by a run, as a table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hynt.errors import UsageError, located
from hynt.notebook import SHOWN, box, more, table
from hynt.tables import Table

if TYPE_CHECKING:
    import pyarrow as pa

    from hynt.asking.predictor import Predictor
    from hynt.completion.missing_facts import Proposals
    from hynt.front.watching import Watching

Limits = tuple[int, float, float, int | None, float, float, int]


@dataclass(frozen=True, eq=False, repr=False)
class ProposalReport(Table):
    """Proposals, most probable first, and how many questions they come from."""

    found: Proposals
    table: pa.Table

    def __len__(self) -> int:
        return len(self.table)

    def to_arrow(self) -> pa.Table:
        """An Arrow table, a row a proposal."""
        return self.table

    def counts(self) -> dict[str, Any]:
        """What was asked, and what became of it."""
        found = self.found
        return {
            "proposals": len(self.table),
            "of_entities": int((~found.proposals.is_number).sum()),
            "of_numbers": int(found.proposals.is_number.sum()),
            "relations_lacked": found.relations,
            "questions": found.questions,
            "not_answerable": found.unasked,
            "without_interval": found.without_interval,
            "below_threshold": found.below,
            "oversight_rate": found.rate,
            "beyond_budget": found.left_out,
            "checked": int(found.is_checked.sum()),
            "confirmed": int(found.is_confirmed.sum()),
        }

    def __repr__(self) -> str:
        lines = [f"<{len(self):,} proposed facts>"]
        return "\n".join([*lines, *(f"{row[2]}  {row[1]}" for row in self._rows(10))])

    def _repr_html_(self) -> str:
        shown = table(["rank", "proposed fact", "probability", "peers"], self._rows(SHOWN), numbers=(0, 2, 3))
        return box(f"{len(self):,} proposed facts", shown, more(len(self) - SHOWN, "proposals"))

    def _rows(self, count: int) -> list[list[str]]:
        return [
            [str(row["rank"]), row["sentence"], f"{row['probability']:.3f}", f"{row['share']:.0%}"]
            for row in self.table.slice(0, count).to_pylist()
        ]


def proposed(
    run: Predictor,
    relations: Sequence[str],
    limits: Limits,
    without: tuple[str, ...],
    heads: Sequence[str],
    out: str | os.PathLike[str] | None,
    progress: Watching,
) -> ProposalReport:
    """See `Run.propose`."""
    from hynt.files import check_parquet, whole_file

    for name, given in (("relations", relations), ("heads", heads)):
        if isinstance(given, str):
            raise UsageError(f"{name} are a list of names.", where=name, advice="Give a list.")
    if out is not None:
        check_parquet(Path(out), "out")
    graph = run.graph
    with located("relations"):
        for name in relations:
            graph.names.relation(name)
    with located("heads"):
        for name in heads:
            graph.names.entity(name)
    with located("without"):
        for name in without:
            graph.split(name)
    from hynt.completion.missing_facts import ProposalOptions, propose
    from hynt.front.watching import watched
    from hynt.interruption import interruptible

    wanted = ProposalOptions(tuple(relations), *limits, without, tuple(heads))
    wanted.check()
    _ = run.loaded
    with interruptible(), watched(progress) as shown:
        found = propose(run, wanted, shown)
    made: Any = found.rows(run.graph)
    if out is not None:
        import pyarrow.parquet as parquet

        with whole_file(Path(out)) as file:
            parquet.write_table(made, file, compression="zstd")
    return ProposalReport(found, made)
