"""How soon a run counts a new fact, and how fast it answers meanwhile.

python benchmarks/following_updates.py RUN [--updates 5]

RUN is a run of hynt-inductive; a copy of it is updated. A thread asks without pause, as the service does; for each
update it prints when the fact was on disk, when the first answer counted it, and the questions answered in between
beside those that are answered while nothing changes.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import torch

from hynt.asking.graph_updates import GivenChange
from hynt.asking.predictor import load
from hynt.runs.journal import Journal
from hynt.service.inference.answering import FollowingJobs

AT_ONCE = 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--updates", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as place:
        run = Path(shutil.copytree(given.run, Path(place) / "run"))
        predictor = load(run, "cpu")
        following, graph = FollowingJobs(predictor), predictor.graph
        following.now.warm_up()
        relation = next(one.name for one in graph.relations if one.kind == "entity")
        questions = [{"head": graph.vocabulary.entities[i], "relation": relation, "tail": "?"} for i in range(AT_ONCE)]

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
        print(f"{len(graph):,} facts; {quiet:,.0f} questions a second while nothing changes")
        for number in range(given.updates):
            fact = (f"new {number}", relation, graph.vocabulary.entities[number])
            change, began = GivenChange(facts=[fact], source="benchmark"), time.perf_counter()
            version, after = change.written(run, lambda journal, at: journal.graph(predictor.saved.graph(), at))
            assert version is not None
            assert after is not None
            on_disk = time.perf_counter() - began
            following.follow()
            busy, seconds = rate(0.0, version.version)
            share = busy / quiet
            print(f"on disk after {on_disk:.2f} s, counted {seconds:.2f} s later; {share:.0%} of the rate meanwhile")
        assert Journal(run).latest() == given.updates


if __name__ == "__main__":
    main()
