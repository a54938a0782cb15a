"""The work of an audit on disk, so that one that was stopped goes on where it was:

WORK/plan.json                   what is audited and how; another audit is refused
WORK/fold-1/                     the run that learns from all but the first fold
WORK/sharpness-fold-1.json       how sure that run may be
WORK/judged-fold-1.link.parquet  what it says of the fold's facts, listed in judged-fold-1.json
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hynt.auditing.judging import NumberJudgement, RankedJudgement
from hynt.files import WorkFolder, whole_file

_NAMES = ("link", "relation", "number")

J = TypeVar("J", RankedJudgement, NumberJudgement)


@dataclass(frozen=True, eq=False)
class Judged:
    """What one part's model says of its facts."""

    link: RankedJudgement
    relation: RankedJudgement
    number: NumberJudgement


class AuditFolder(WorkFolder):
    """Where an audit keeps what it has done."""

    def run(self, name: str) -> Path:
        """Where the run of a fold is."""
        return self.path / name

    def inverse_temperature(self, name: str) -> dict[str, float] | None:
        """What was fitted on a part; None where that is still to do."""
        found = self.kept(f"sharpness-{name}")
        return None if found is None else {task: float(value) for task, value in found["fitted"].items()}

    def keep_inverse_temperature(self, name: str, found: Mapping[str, float]) -> None:
        self.keep(f"sharpness-{name}", {"fitted": found})

    def keep_judged(self, name: str, judged: Judged) -> None:
        for task in _NAMES:
            one = getattr(judged, task)
            columns = {field.name: getattr(one, field.name) for field in dataclasses.fields(one)}
            with whole_file(self.file(f"judged-{name}", f"{task}.parquet")) as file:
                pq.write_table(pa.table(columns), file, compression="zstd")
        self.keep(f"judged-{name}", {}, [f"{task}.parquet" for task in _NAMES])

    def judged(self, name: str) -> Judged | None:
        """What the judge of a part says; None where that is still to do."""
        part = f"judged-{name}"
        if self.kept(part) is None:
            return None
        link, relation = (_read(self.file(part, f"{task}.parquet"), RankedJudgement) for task in ("link", "relation"))
        return Judged(link, relation, _read(self.file(part, "number.parquet"), NumberJudgement))


def _read(path: Path, kind: type[J]) -> J:
    table = pq.read_table(path)
    return kind(**{field.name: np.array(table[field.name].to_numpy()) for field in dataclasses.fields(kind)})
