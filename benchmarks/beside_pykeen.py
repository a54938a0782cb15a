"""The same task with PyKEEN and with hynt: links between the entities of `world`, without qualifiers and numbers.

    python -m benchmarks.beside_pykeen triples --out triples                     # train.tsv, valid.tsv, test.tsv
    python benchmarks/beside_pykeen.py pykeen --triples triples --model ComplEx --out beside.json
    python -m benchmarks.beside_pykeen hynt --triples triples --out beside.json

PyKEEN is no dependency of hynt: the second command runs in an environment that has it, and needs nothing of hynt. Both
train on one thread for the same processor time, rank every head and tail of the test split among all entities,
filtered by all splits, and count ties by half. Rows join those that the file has.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from benchmarks.result_file import read_measured, write_measured

SPLITS = ("train", "valid", "test")
METRICS = ("mrr", "hits@1", "hits@10")


def write_triples(out: Path) -> None:
    """The triplets of `world` that link entities; a later split has none of an earlier one's, and no name that train
    lacks.
    """
    import hynt

    graph, seen, names = hynt.read_graph("world"), set[tuple[str, str, str]](), set[str]()
    out.mkdir(exist_ok=True)
    for split in SPLITS:
        found = [(fact.head, fact.relation, fact.tail) for fact in graph.facts(split) if isinstance(fact.tail, str)]
        names.update(name for triple in found for name in triple if split == "train")
        new = [triple for triple in dict.fromkeys(found) if triple not in seen and names.issuperset(triple)]
        seen.update(new)
        text = "".join("\t".join(triple) + "\n" for triple in new)
        (out / f"{split}.tsv").write_text(text, encoding="utf-8")


def with_pykeen(triples: Path, model: str, seconds: float, *, chosen: bool) -> dict[str, Any]:
    """PyKEEN's own pipeline; as many epochs as there is processor time for. Its own settings, or chosen ones: all
    candidates scored, with inverse triples, cross entropy and batches of 256.
    """
    import torch
    from pykeen.pipeline import pipeline  # type: ignore[import-not-found,unused-ignore]
    from pykeen.triples import TriplesFactory  # type: ignore[import-not-found,unused-ignore]

    torch.set_num_threads(1)
    train = TriplesFactory.from_path(triples / "train.tsv", create_inverse_triples=chosen)
    ids = {"entity_to_id": train.entity_to_id, "relation_to_id": train.relation_to_id}
    valid, test = (TriplesFactory.from_path(triples / f"{split}.tsv", **ids) for split in SPLITS[1:])
    given: dict[str, Any] = {"training": train, "validation": valid, "testing": test, "model": model}
    given |= {"random_seed": 0, "device": "cpu"}
    quiet: dict[str, Any] = {"training_kwargs": {"use_tqdm": False}, "evaluation_kwargs": {"use_tqdm": False}}
    if chosen:
        given |= {"training_loop": "LCWA", "loss": "crossentropy", "model_kwargs": {"embedding_dim": 64}}
        given |= {"optimizer": "Adam", "optimizer_kwargs": {"lr": 0.005}}
        quiet["training_kwargs"] |= {"batch_size": 256, "label_smoothing": 0.1}
    times = []
    for epochs in (2, 12):
        begun = time.process_time()
        pipeline(**given, epochs=epochs, **quiet)
        times.append(time.process_time() - begun)
    epochs = max(1, int(seconds / ((times[1] - times[0]) / 10)))
    begun = time.process_time()
    found = pipeline(**given, epochs=epochs, **quiet)
    spent = time.process_time() - begun - (times[0] - 2 * (times[1] - times[0]) / 10)
    names = ("inverse_harmonic_mean_rank", "hits_at_1", "hits_at_10")
    told = {ours: found.get_metric(f"both.realistic.{name}") for ours, name in zip(METRICS, names, strict=True)}
    sizes = sum(one.numel() for one in found.model.parameters())
    name = f"PyKEEN {model}, chosen settings" if chosen else f"PyKEEN {model}"
    return {"name": name, "epochs": epochs, "train_seconds": spent, "parameters": sizes, **told}


def with_hynt(triples: Path, model: str, seconds: float, work: Path) -> dict[str, Any]:
    """`hynt compare GRAPH --models MODEL --minutes-per-model N --processor-time`, on one thread."""
    import torch

    import hynt

    torch.set_num_threads(1)
    graph = hynt.import_graph(triples, "triples")
    options: dict[str, Any] = {"minutes_per_model": seconds / 60, "processor_time": True, "device": "cpu"}
    (row,) = hynt.compare(graph, models=[model], out=work / model, tasks=["link"], **options)["rows"]
    found = row["test"]["realistic"]["link"]["triplet"]
    told = {metric: found[metric] for metric in METRICS}
    kept = {name: row[name] for name in ("epochs", "train_seconds", "parameters")}
    return {"name": f"hynt {model}", **kept, **told}


def main() -> None:
    """Writes the triples, or adds a row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("side", choices=("triples", "pykeen", "hynt"))
    parser.add_argument("--triples", type=Path, default=Path("triples"))
    parser.add_argument("--model", default="")
    parser.add_argument("--chosen", action="store_true", help="PyKEEN: chosen settings instead of its own")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--work", type=Path, default=Path("beside-pykeen"))
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    if given.side == "triples":
        write_triples(given.out)
        return
    if given.side == "pykeen":
        row = with_pykeen(given.triples, given.model or "ComplEx", given.seconds, chosen=given.chosen)
    else:
        row = with_hynt(given.triples, given.model or "hynt", given.seconds, given.work)
    rows = read_measured(given.out, "rows")["rows"] if given.out.exists() else []
    rows = [one for one in rows if one["name"] != row["name"]] + [row]
    found = {"graph": "world, links between entities", "seconds": given.seconds, "rows": rows}
    write_measured(given.out, found, str(__doc__))
    print(json.dumps(row))


if __name__ == "__main__":
    main()
