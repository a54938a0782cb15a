"""How soon a run counts a new fact, and how fast it answers meanwhile.

    python -m benchmarks.following_updates world
    python -m benchmarks.following_updates graphs/WD50K --set model.dimension=128 --set model.layers=8

RUN is a run of hynt-inductive, or `world`; a copy of it is updated. Instead of a run a saved GRAPH can be given: then a
model that has learned nothing is asked, of the settings that `--set` names, which takes the same time. A thread asks
without pause, as the service does. For each update it prints when the fact was on disk and listed, when the first
answer counted it, and the questions answered in between beside those that are answered while nothing changes. A stored
answer is judged without its fact: the first of each tenth of the graph then takes one more reading of the graph.

The bound beside them is arithmetic: the products of all layers over all facts, at the speed of one large product on
this machine just now. Processor seconds are given too, since they hardly change where others use the machine.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import torch

from hynt.asking.graph_updates import GivenChange
from hynt.asking.predictor import Predictor
from hynt.front.run import load
from hynt.graph.fact_table import concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.storage import is_graph, load_graph
from hynt.graph.views import GraphViews
from hynt.runs.checkpoint import save_tensors, weights_of
from hynt.runs.journal import Journal, Version
from hynt.runs.opening import new_model
from hynt.runs.place import SavedRun
from hynt.runs.training_data import fit_scaling, training_data
from hynt.service.inference.answering import FollowingJobs
from hynt.training.resolve_settings import SettingsRequest, resolve_settings
from hynt.training.run import start

AT_ONCE = 16
CPU = torch.device("cpu")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="a run folder, world, or a saved graph")
    parser.add_argument("--updates", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--set", action="append", default=[], help="of a graph: a setting of the model, key=value")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / "run"
        if is_graph(Path(given.run)):
            untrained(load_graph(given.run), run, given.set)
        else:
            SavedRun.open(Path(given.run)).copy(run)
            shutil.rmtree(run / "updates", ignore_errors=True)
        measure(run, given.updates)


def untrained(graph: KnowledgeGraph, folder: Path, changes: list[str]) -> None:
    """A run that has learned nothing. It has no validation split, so nothing is calibrated either."""
    whole = replace(graph, splits={"train": concatenate(list(graph.splits.values()))})
    settings = resolve_settings(SettingsRequest("hynt-inductive", changes=tuple(changes)), whole, on_gpu=False)
    run = start(whole, settings, folder, CPU)
    model = new_model(settings, training_data(whole, settings, fit_scaling(whole, settings), CPU), CPU)
    save_tensors(weights_of(model), folder.with_name("weights"))
    run.finish(folder.with_name("weights"), {"seconds": 0.0, "weights_of_epoch": 0})


def measure(run: Path, updates: int) -> None:
    """Updates a run and prints how long everything takes."""
    predictor = load(run, "cpu")
    following, graph = FollowingJobs(predictor), predictor.graph
    following.now.warm_up()
    relation, lacking, having = heads_of(graph)

    def about(head: str) -> dict[str, str]:
        return {"head": head, "relation": relation, "tail": "?"}

    questions = [about(head) for head in lacking]
    following.replies("predict", questions)

    def rate(until: float, version: int | None = None) -> tuple[float, float]:
        """Questions a second, and the seconds until `version` answers, or until so many are over."""
        began, answered = time.perf_counter(), 0
        while True:
            reply = following.replies("predict", questions)[0]
            answered += len(questions)
            passed = time.perf_counter() - began
            if (reply.version >= version) if version is not None else passed > until:
                return answered / passed, passed

    quiet, _ = rate(3.0)
    print(f"{len(graph):,} facts; {quiet:,.0f} questions a second while nothing changes; {bound(predictor)}")

    def added(number: int) -> tuple[Version, KnowledgeGraph]:
        fact = (f"new {number}", relation, graph.vocabulary.entities[number])
        change = GivenChange(facts=[fact], source="benchmark")
        version, graph_then, _ = change.written(run, lambda journal, at: journal.graph(predictor.saved.graph(), at))
        assert version is not None
        assert graph_then is not None
        return version, graph_then

    added(updates)
    before = time.process_time()
    following._catch_up()
    print(f"a new fact is counted after {time.process_time() - before:.1f} s of processors, while nothing is asked")
    counted, listed, shares = [], [], []
    for number in range(updates):
        began = time.perf_counter()
        version, graph_then = added(number)
        GraphViews(graph_then).entity(f"new {number}", 0, 10, None)
        listed.append(time.perf_counter() - began)
        following.follow()
        before = time.process_time()
        busy, seconds = rate(0.0, version.version)
        counted.append(seconds)
        shares.append(busy / quiet)
        processor = time.process_time() - before
        began = time.perf_counter()
        following.replies("predict", [about(having)])
        stored = time.perf_counter() - began
        print(
            f"listed after {listed[-1]:.2f} s, counted {seconds:.2f} s later ({processor:.1f} s of processors, the "
            f"questions among them); {shares[-1]:.0%} of the rate meanwhile; first stored answer "
            f"judged in {stored:.2f} s",
            flush=True,
        )
    print(f"medians: listed {median(listed):.2f} s, counted {median(counted):.2f} s, rate {median(shares):.0%}")
    assert Journal(run).latest() == updates + 1


def heads_of(graph: KnowledgeGraph) -> tuple[str, list[str], str]:
    """A common relation of entities, heads that lack it, so that no stored answer is judged, and one that has it."""
    table = concatenate(list(graph.splits.values()))
    common = np.bincount(table.relation, minlength=graph.vocabulary.relation_count)
    relation = int(np.argmax(np.where(graph.vocabulary.relation_is_number, 0, common)))
    has = np.unique(table.head[table.relation == relation])
    lacks = np.setdiff1d(np.unique(table.head), has)[:AT_ONCE]
    names = graph.vocabulary.entities
    return graph.relations[relation].name, [names[one] for one in lacks.tolist()], names[int(has[0])]


def bound(predictor: Predictor) -> str:
    """What the products of the layers take at least, from how fast one large product is here."""
    loaded = predictor.loaded
    assert loaded.observed is not None
    d, layers = loaded.settings.model.dimension, loaded.settings.model.layers
    table = loaded.observed.table
    slots = 2 * len(table) + table.qualifier_total
    # A slot: its pair of value and relation, the two products of its net, key and value of its message.
    products = 2.0 * d * d * 6 * slots * layers
    large = torch.randn(2048, 2048)
    began = time.perf_counter()
    for _ in range(5):
        large @ large
    speed = 5 * 2.0 * 2048**3 / (time.perf_counter() - began)
    return f"{products / 1e9:,.0f} Gflop of products, {products / speed:.1f} s at {speed / 1e9:,.0f} Gflop/s"


if __name__ == "__main__":
    main()
