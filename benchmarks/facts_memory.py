"""What every process of a job holds for each fact: the facts, what may be hidden of them, and the plans of epochs.

    PYTHONPATH=src python3 -m benchmarks.facts_memory --facts 4000000 --out result.json

Sizes are those of the tensors, which are the same on a CPU and on a GPU. `made_with` is the most that the process grew
by while the planner was made.
"""

from __future__ import annotations

import argparse
import json
import resource
from pathlib import Path
from typing import Any

from benchmarks.result_file import write_measured

ENTITIES, BATCH_SIZE, PROCESSES = 200_000, 2048, 4


def tensor_bytes(thing: Any, seen: set[int]) -> int:
    """Of all tensors below an object, none counted twice; `seen` remembers them."""
    import torch

    if isinstance(thing, torch.Tensor):
        storage = thing.untyped_storage()
        is_new = storage.data_ptr() not in seen
        seen.add(storage.data_ptr())
        return storage.nbytes() if is_new else 0
    if isinstance(thing, list | tuple):
        return sum(tensor_bytes(part, seen) for part in thing)
    if isinstance(thing, dict):
        return sum(tensor_bytes(part, seen) for part in thing.values())
    return tensor_bytes(vars(thing), seen) if hasattr(thing, "__dict__") else 0


def measured(facts: int) -> dict[str, Any]:
    """Bytes a fact."""
    import torch

    from benchmarks.large_vocabulary import generated_facts
    from hynt.batches.masked_batch import Masking
    from hynt.objectives.losses import LossSettings
    from hynt.objectives.masked_facts import MaskedFacts

    device, seen = torch.device("cpu"), set[int]()
    MaskedFacts(generated_facts(100, 100, device), 10).epoch(0, 0)  # what is loaded once is not counted
    generated = generated_facts(ENTITIES, facts, device)
    result: dict[str, Any] = {"facts": facts, "qualifiers_a_fact": generated.qualifier_total / facts}
    result["bytes_a_fact"] = sizes = {"facts": tensor_bytes(generated, seen) / facts}
    before = _most_held()
    stream = MaskedFacts(generated, BATCH_SIZE, Masking(), LossSettings(softmax="full"))
    sizes["planner"] = tensor_bytes([stream.components, stream.planner], seen) / facts
    result["made_with"] = (_most_held() - before) / facts
    plan, share = stream.epoch(0, 0), stream.share(0, PROCESSES).epoch(0, 0)
    sizes["plan"] = tensor_bytes(plan, set(seen)) / facts
    sizes[f"share_of_{PROCESSES}"] = tensor_bytes(share, set(seen)) / facts
    return result


def _most_held() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    """One size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=4_000_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    found = measured(given.facts)
    print(json.dumps(found, indent=1))
    if given.out is not None:
        write_measured(given.out, found, str(__doc__))


if __name__ == "__main__":
    main()
