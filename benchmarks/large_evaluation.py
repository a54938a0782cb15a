"""Ranking and answering among very many entities: time and memory beside the tables, and whether answers are exact.

    PYTHONPATH=src python3 -m benchmarks.large_evaluation --entities 1e5,1e6,1e7 --out result.json
    PYTHONPATH=src python3 -m benchmarks.large_evaluation --device cuda --dimension 256 --rows 1024 --out result.json

A HyNT with random weights is asked questions in one of the evaluator's tiles. `rank` counts the candidates above the
right answer as the evaluator does, `answer` finds the ten best and the sum of all as `predict` and `complete` do, both
in chunks of candidates. For a few rows both are compared with one look at all scores. Each size has a process of its
own; memory is what was added to what the process held once model and facts were there. On a GPU everything is done
twice and the second time is told, because the first one loads kernels.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.result_file import write_measured

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

TOP = 10
COMPARED = 4
"""Rows that are compared with all scores at once."""


def measured(given: argparse.Namespace) -> dict[str, Any]:
    """One size, in this process."""
    import numpy as np
    import torch

    from benchmarks.large_vocabulary import generated_facts
    from hynt.asking.answering import best_candidates
    from hynt.batches.buckets import layout_of
    from hynt.batches.masked_batch import mask
    from hynt.evaluation.evaluation_pass import SCORES_AT_ONCE
    from hynt.evaluation.evaluator import scoring_conditions
    from hynt.evaluation.tiles import KnownSlots, tally
    from hynt.models.contract import EntityRange
    from hynt.models.hynt import Hynt, HyntSettings
    from hynt.runs.scoring import ReadTile

    device, entities = torch.device(given.device), int(given.point)
    torch.manual_seed(0)
    facts = generated_facts(entities, 10_000, device)
    wide = given.dimension
    with device:  # billions of random numbers take a CPU long
        model = Hynt(
            facts.sizes,
            HyntSettings(
                dimension=wide,
                context_heads=4,
                prediction_heads=4,
                context_feedforward=2 * wide,
                prediction_feedforward=2 * wide,
                tied_output=True,
            ),
        )
    is_cuda = device.type == "cuda"
    chosen = torch.nonzero((~facts.tail_is_number) & (facts.qualifier_counts() == 0)).squeeze(1)[: given.rows]
    chunk = max(1, SCORES_AT_ONCE // given.rows)
    nothing = torch.zeros(given.rows, dtype=torch.int64, device=device)
    known = KnownSlots(torch.zeros(1, dtype=torch.int32, device=device), nothing, nothing, 0)
    result: dict[str, Any] = {"entities": entities, "rows": given.rows, "candidates_a_chunk": min(chunk, entities)}
    held = _held(is_cuda)
    with scoring_conditions(model):
        batch, answers = mask(facts, chosen, torch.full_like(chosen, 2), layout_of([(given.rows, 0)]))
        question = model.read(batch)

        def score(first: int, end: int) -> Any:
            return model.score(question, EntityRange(first, end))

        def timed(work: Any) -> tuple[Any, dict[str, float]]:
            if is_cuda:
                work()
                torch.cuda.synchronize()
                torch.cuda.reset_peak_memory_stats()
            before = held if not is_cuda else torch.cuda.memory_allocated()
            began, worked = time.perf_counter(), time.process_time()
            found = work()
            if is_cuda:
                torch.cuda.synchronize()
            seconds, busy = time.perf_counter() - began, time.process_time() - worked
            return found, {"seconds": seconds, "processor_seconds": busy, "added_bytes": _held(is_cuda) - before}

        (counts, _), result["rank"] = timed(lambda: tally(score, entities, answers.entity, known, chunk))
        numbers = np.arange(given.rows)
        tile = ReadTile(model, question, numbers, numbers, chunk)
        found, result["answer"] = timed(
            lambda: best_candidates(tile.entity_chunks(), lambda first, end: None, 1.0, TOP)
        )
        whole = torch.cat([scores[:COMPARED].clone() for _, scores in tile.entity_chunks()], 1)
        order = torch.argsort(whole, dim=1, descending=True, stable=True)[:, :TOP]
        target = whole.gather(1, answers.entity[:COMPARED, None])
        result["exact"] = {
            "top": bool(torch.equal(order, found.candidate[:COMPARED])),
            "rank": bool(torch.equal((whole > target).sum(1), counts.better[:COMPARED])),
            "sum": bool(torch.allclose(whole.double().logsumexp(1), found.total[:COMPARED], rtol=1e-12)),
        }
    result["table_bytes"] = model.entity.numel() * 4
    return result


def _held(is_cuda: bool) -> int:
    """The most bytes that were held so far."""
    if is_cuda:
        import torch

        return int(torch.cuda.max_memory_allocated())
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    """Each size in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--entities", default="1e5,1e6,1e7")
    parser.add_argument("--dimension", type=int, default=32)
    parser.add_argument("--rows", type=int, default=64, help="questions a tile: 64 on a CPU, 1024 on a GPU")
    parser.add_argument("--limit-seconds", type=float, default=600.0, help="for all sizes together")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--point", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.point is not None:
        print(json.dumps(measured(given)))
        return
    began = time.perf_counter()
    result: dict[str, Any] = {"device": given.device, "dimension": given.dimension, "points": []}
    if given.device == "cuda":
        import torch

        result["device"] = torch.cuda.get_device_name()
    for entities in given.entities.split(","):
        command = [
            sys.executable,
            "-m",
            "benchmarks.large_evaluation",
            "--device",
            given.device,
            "--dimension",
            str(given.dimension),
            "--rows",
            str(given.rows),
            "--point",
            entities,
        ]
        try:
            left = max(1.0, given.limit_seconds - (time.perf_counter() - began))
            done = subprocess.run(command, capture_output=True, text=True, timeout=left, check=False)
            last = (done.stdout if not done.returncode else done.stderr).strip().splitlines()[-1:]
            point = json.loads(last[0]) if not done.returncode else {"entities": entities, "failed": last}
        except subprocess.TimeoutExpired:
            point = {"entities": entities, "skipped": "the time limit was reached"}
        print(json.dumps(point), file=sys.stderr)
        result["points"].append(point)
        result["seconds"] = time.perf_counter() - began
        if given.out is not None:
            write_measured(given.out, result, str(__doc__))


if __name__ == "__main__":
    main()
