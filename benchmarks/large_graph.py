"""What a graph of a million facts asks of a laptop: each command in a process of its own, with its most memory.

    python -m benchmarks.large_graph [--facts 1000000] [--minutes 0.3] [--save FILE]

The graph is generated (`benchmarks.generated_graph`), with an entity for every five facts and, beside its skewed
entities, a hub that stands in a fifth of the facts. Seconds are those of processors, of all threads, which other
programs hardly change. With `--minutes` a run is trained for so long and asked twice: the first question calibrates it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.generated_graph import lines
from benchmarks.result_file import write_measured

HUB = "hub"


def write_graph(path: Path, facts: int) -> None:
    """The generated facts, a fifth of them with the hub as their head or their tail."""
    entities = max(1000, facts // 5)
    with path.open("w", encoding="utf-8", buffering=1 << 20) as file:
        file.writelines(f"{line}\n" for line in lines(facts - facts // 5, entities, seed=0))
        for index in range(facts // 5):
            other, relation = f"e{index * 7919 % entities}", f"r{index % 97}"
            file.write(f"{HUB}\t{relation}\t{other}\n" if index % 2 else f"{other}\t{relation}\t{HUB}\n")


def measure(*arguments: str | Path) -> dict[str, float]:
    """Processor seconds and the most memory of one command."""
    command = [sys.executable, "-m", "hynt", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return {"seconds": round(used.ru_utime + used.ru_stime, 1), "peak_mb": round(used.ru_maxrss / 1024)}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=0.0, help="train a run for so long and ask it; 0: no run")
    parser.add_argument("--save", type=Path, help="write the figures as JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, graph, run = folder / "facts.tsv", folder / "graph", folder / "run"
        write_graph(source, given.facts)
        commands: dict[str, list[str | Path]] = {
            "import": ["data", "import", source, "--out", graph],
            "stats": ["data", "stats", graph],
            "show an entity of a fifth of the facts": ["data", "show", graph, HUB],
            "show a relation": ["data", "show", graph, "r0"],
            "hold entities out": ["data", "split", graph, "--out", folder / "held-out"],
        }
        if given.minutes:
            question: list[str | Path] = ["predict", run, "--head", HUB, "--relation", "r1", "--tail", "?"]
            commands["train"] = ["train", graph, "--out", run, "--minutes", str(given.minutes)]
            commands |= {"the first question": question, "another question": question}
        figures: dict[str, Any] = {"facts": given.facts, "minutes": given.minutes, "commands": {}}
        for what, command in commands.items():
            figures["commands"][what] = measure(*command)
            print(f"{what}: {figures['commands'][what]}", flush=True)
    if given.save:
        write_measured(given.save, figures, str(__doc__))


if __name__ == "__main__":
    main()
