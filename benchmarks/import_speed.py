"""How fast sources become graphs, and in how much memory.

    python -m benchmarks.import_speed [--data ../shared/data] [--facts 10000000] [--save FILE]

Each line is a fresh process: import time, facts a second, peak resident memory, then the load time of the saved folder.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.generated_graph import write
from benchmarks.result_file import write_measured

GOALS = {"HN-YG": "import under 3 s", "WD50K": "import under 5 s, load under 0.5 s", "generated": "under 1,500 MB"}


def measure(source: Path, format_name: str) -> dict[str, Any]:
    """Import and load one source in this process."""
    start = time.perf_counter()
    from hynt.formats.importing import import_graph
    from hynt.graph.storage import load_graph

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "graph"
        manifest = import_graph(source, format_name, out).manifest
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        start = time.perf_counter()
        graph = load_graph(out)
        load = time.perf_counter() - start
        size = sum(path.stat().st_size for path in out.iterdir()) / 2**20
    facts = len(graph)
    return {
        "facts": facts,
        "entities": manifest.counts["entities"],
        "import_seconds": round(seconds, 2),
        "facts_per_second": round(facts / seconds),
        "peak_import_mb": round(peak),
        "load_seconds": round(load, 3),
        "folder_mb": round(size, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--facts", type=int, default=10_000_000, help="size of the generated graph; 0 leaves it out")
    parser.add_argument("--save", type=Path, help="write the figures as JSON")
    parser.add_argument("--one", nargs=2, metavar=("SOURCE", "FORMAT"), help="measure one source and print JSON")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(Path(arguments.one[0]), arguments.one[1])))
        return
    sources = {"HN-YG": (arguments.data / "HN-YG" / "raw", "hynt"), "WD50K": (arguments.data / "WD50K", "stare")}
    sources = {name: source for name, source in sources.items() if source[0].exists()}
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        if arguments.facts:
            path = Path(folder) / "generated.tsv"
            write(path, arguments.facts, max(1000, arguments.facts // 10))
            sources["generated"] = (path, "tsv")
        for name, (source, format_name) in sources.items():
            command = [sys.executable, "-m", "benchmarks.import_speed", "--one", str(source), format_name]
            figures[name] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            print(f"{name}: {figures[name]} (goal: {GOALS[name]})", flush=True)
    if arguments.save:
        write_measured(arguments.save, figures, str(__doc__))


if __name__ == "__main__":
    main()
