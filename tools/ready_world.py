"""Makes the run that comes with hynt: `hynt-inductive`, trained on the embedded graph, in src/hynt/world/run.

    PYTHONPATH=src python3 -m tools.ready_world --device cuda --out made          # about a minute on an H200
    PYTHONPATH=src python3 -m tools.ready_world --weigh --out made                # the same model, other statistics
    PYTHONPATH=src python3 -m tools.ready_world --show --out made                 # its calibration, and what pages show

Several settings are trained, and what the validation split likes best is kept: its weights as bfloat16, without a copy
of the graph, which lies beside it in the package. Then it is calibrated, the test split is read once, the graph's facts
are judged, and the run stands in the package; the figures are in made/figures.json. Where the machine with the GPU has
torch and little else, `--only-train` stops before the calibration, and `--trained made/world.tar` goes on from there on
another.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tarfile
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import torch
from safetensors.torch import load_file

from benchmarks.result_file import write_measured
from hynt.asking.examples import EXAMPLES, held_out_examples
from hynt.calibration.calibration import CALIBRATION
from hynt.evaluation.combining import combined, fitted
from hynt.evaluation.evaluator import Evaluator
from hynt.evaluation.results import by_scope
from hynt.files import MANIFEST_NAME, index_text, sha256_of
from hynt.front.auditing import audit
from hynt.front.run import load
from hynt.graph.storage import graph_folder, load_graph
from hynt.kernels.device import chosen_device
from hynt.reporting.report.measurements import measured
from hynt.reporting.report.trust import measurements_path
from hynt.runs import READS, WEIGHTS
from hynt.runs.checkpoint import save_tensors
from hynt.runs.opening import load_run
from hynt.runs.place import SavedRun
from hynt.runs.run_folder import COMBINATION, GRAPH, MEANS, RunFolder, means_text
from hynt.runs.training_data import training_data, training_splits
from hynt.service.pages.doubtful import COLUMNS, DEFAULT, JUDGED, most_doubtful
from hynt.training.resolve_settings import SettingsRequest, resolve_settings
from hynt.training.run import start, train
from hynt.training.validating import evaluator_of, fitted_means

WORLD, ARCHIVE, FIGURES = "world", "world.tar", "figures.json"
PACKAGED = Path(__file__).resolve().parent.parent / "src" / "hynt" / "world" / "run"
LARGEST = 3 * 10**6
"""In bytes, of all files of the run."""

WIDTH = ("model.dimension=64", "model.feedforward=128", "validation.each_task=false")
TRIALS: dict[str, tuple[str, ...]] = {
    "6 layers, dropout .15": ("model.layers=6", "model.dropout=0.15", "model.message_dropout=0.05"),
    "6 layers, dropout .05": ("model.layers=6", "model.dropout=0.05", "model.message_dropout=0.0"),
    "6 layers, dropout .15, decay .3": (
        "model.layers=6",
        "model.dropout=0.15",
        "model.message_dropout=0.05",
        "optimiser.weight_decay=0.3",
    ),
    "6 layers, dropout .25, twice as long": (
        "model.layers=6",
        "model.dropout=0.25",
        "model.message_dropout=0.1",
        "schedule.epochs=40",
    ),
    "8 layers, dropout .15": ("model.layers=8", "model.dropout=0.15", "model.message_dropout=0.05"),
    "6 layers, dropout .15, .85 observed": (
        "model.layers=6",
        "model.dropout=0.15",
        "model.message_dropout=0.05",
        "model.observed_share=0.85",
        "batch_size=4096",
    ),
}
"""What is tried, in this order, while there is time: changes of the settings that hynt-inductive has on a GPU."""


def main() -> None:
    """Trains and chooses, finishes, or both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="an empty folder for what is made on the way")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--seconds", type=float, default=62, help="no further trial is begun after this")
    parser.add_argument("--set", action="append", default=[], help="a change of a setting in all trials, key=value")
    parser.add_argument("--only-train", action="store_true", help=f"stop with {ARCHIVE}")
    parser.add_argument("--trained", type=Path, metavar=ARCHIVE, help="finish this one, and train nothing")
    parser.add_argument("--weigh", action="store_true", help="train nothing: weigh the packaged run anew")
    parser.add_argument("--show", action="store_true", help="only measure and judge the packaged run anew")
    parser.add_argument("--package", type=Path, default=PACKAGED, help="where the finished run goes")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    archive = given.trained
    if archive is None:
        archive = given.out / ARCHIVE
    if given.show:
        show(given.package, given.out / "run")
        return
    if given.weigh:
        weigh(PACKAGED, archive)
    elif given.trained is None:
        choose(given.out, chosen_device(given.device), given.seconds, given.set)
    if not given.only_train:
        finish(archive, given.package, given.out / FIGURES)


def choose(out: Path, device: torch.device, seconds: float, changes: list[str]) -> None:
    """Trains one trial after another and packs the best so far, so that a call that is cut short leaves a run."""
    graph, began, trials = load_graph(WORLD), time.perf_counter(), dict[str, Any]()
    for name, own in TRIALS.items():
        if trials and time.perf_counter() - began > seconds:
            break
        request = SettingsRequest("hynt-inductive", changes=(*WIDTH, *own, *changes))
        with tempfile.TemporaryDirectory() as place:
            folder, first = Path(place) / "run", time.perf_counter()
            train(start(graph, resolve_settings(request, graph, on_gpu=True), folder, device), device)
            taken = time.perf_counter() - first
            lighten(folder)
            found = asked(folder, "valid", device)
            best = max((one["score"] for one in trials.values()), default=float("-inf"))
            trials[name] = {"changes": list(own), "seconds": taken, "valid": found, "score": score(found)}
            print(f"{name}: {taken:.0f} s, score {score(found):.4f}, {json.dumps(found)}", flush=True)
            if score(found) > best:
                shutil.rmtree(folder / GRAPH)
                with tarfile.open(out / ARCHIVE, "w") as tar:
                    tar.add(folder, arcname="run")
        (out / "trials.json").write_text(json.dumps(trials, indent=1) + "\n", encoding="utf-8")


def lighten(folder: Path) -> None:
    """Keeps the weights as bfloat16, which is about what training in bfloat16 tells apart."""
    run = RunFolder.open(folder)
    narrow = {name: tensor.to(torch.bfloat16) for name, tensor in load_file(run.checked(WEIGHTS)).items()}
    save_tensors(narrow, folder / WEIGHTS)
    files = {**run.manifest["files"], WEIGHTS: sha256_of(folder / WEIGHTS)}
    (folder / MANIFEST_NAME).write_text(index_text({**run.manifest, "files": files}), encoding="utf-8")


def weigh(package: Path, archive: Path) -> None:
    """Packs a run whose model stays and is weighed anew, on validation, with the statistics there are now."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        SavedRun.open(package).copy(folder)
        run, loaded = RunFolder.open(folder), load_run(folder)
        settings, graph, cpu = loaded.settings, loaded.graph, torch.device("cpu")
        data = training_data(graph, settings, loaded.scaling, cpu)
        evaluator = evaluator_of(settings, graph, loaded.scaling, data.literals, cpu)
        weights = fitted([settings.model_name], [loaded.trained], data.facts, evaluator, settings.seed)
        texts = {COMBINATION: index_text(weights.to_mapping(graph.vocabulary))}
        if loaded.scaling.is_log.any():
            answering = combined([loaded.trained], data.facts, weights)
            found = fitted_means(settings, replace(evaluator, tasks=("number",)), answering)
            texts[MEANS] = means_text(found, graph)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        files = {**run.manifest["files"], **{name: sha256_of(folder / name) for name in texts}}
        (folder / MANIFEST_NAME).write_text(index_text({**run.manifest, "files": files}), encoding="utf-8")
        for made in ("calibration.json", "examples.json"):
            (folder / made).unlink(missing_ok=True)
        shutil.rmtree(folder / GRAPH)
        with tarfile.open(archive, "w") as tar:
            tar.add(folder, arcname="run")


def asked(folder: Path, split: str, device: torch.device) -> dict[str, float]:
    """The usual figures of a split, as the run answers with all that it has."""
    loaded = load_run(folder, device)
    evaluator = Evaluator(loaded.graph, loaded.scaling, split, device=device, observed=training_splits(loaded.settings))
    found = evaluator.evaluate(loaded.model)
    told: dict[str, float] = {}
    for task, questions in found.per_question.items():
        for scope, metrics in by_scope(questions, "realistic").items():
            told |= {f"{task}.{scope}.{name}": float(value) for name, value in metrics.items() if value is not None}
    return told


def score(found: dict[str, float]) -> float:
    """What the trials are compared by: all three tasks count the same."""
    return found["link.all.mrr"] + found["relation.all.mrr"] - found["number.all.rmse"]


def finish(archive: Path, package: Path, figures: Path) -> None:
    """Puts the run into the package, beside the graph; calibrates it there, and reads the test split once."""
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(archive) as tar:
            tar.extractall(place, filter="data")
        folder = Path(place) / "run"
        manifest = RunFolder.open(folder).manifest
        manifest["graph"]["path"] = f"../{GRAPH}"
        (folder / MANIFEST_NAME).write_text(index_text(manifest), encoding="utf-8")
        shutil.copytree(graph_folder(WORLD), Path(place) / GRAPH)
        load_run(folder)
        _calibrate(folder)
        told = {split: asked(folder, split, torch.device("cpu")) for split in ("valid", "test")}
        measured(load(folder, "cpu"), "test")  # the same reading, and counted: what the pages show of the run
        _judge(folder)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        assert size <= LARGEST, f"the run has {size:,} bytes"
        shutil.rmtree(package, ignore_errors=True)
        shutil.copytree(folder, package)
    write_measured(figures, {"bytes": size, **told}, "The run that comes with hynt.")
    print(f"{package}: {size:,} bytes; test {json.dumps(told['test'])}")


def show(package: Path, copy: Path) -> None:
    """Makes again what is fitted and shown of a run whose weights stay: calibration, questions to begin with, figures
    of the test split, read once more, and the most doubtful facts.
    """
    SavedRun.open(package).copy(copy)
    made = (EXAMPLES, READS, CALIBRATION, measurements_path(copy, "test").name, str(DEFAULT))
    for name in (EXAMPLES, *made[2:]):
        (copy / name).unlink(missing_ok=True)
    _calibrate(copy)
    measured(load(copy, "cpu"), "test")
    _judge(copy)
    (package / DEFAULT).parent.mkdir(exist_ok=True)
    for name in made:
        shutil.copyfile(copy / name, package / name)


def _calibrate(folder: Path) -> None:
    """Adds what a run else makes when it is first asked: its calibration, and questions to begin with."""
    held_out_examples(load(folder, "cpu", print))


def _judge(folder: Path) -> None:
    """Adds the most doubtful facts of the graph, so that the page about them has something to show."""
    with tempfile.TemporaryDirectory() as place:
        audit(folder, Path(place) / DEFAULT.name, device="cpu")
        keep_most_doubtful(Path(place) / DEFAULT.name, folder / DEFAULT)


def keep_most_doubtful(found: Path, out: Path) -> None:
    """The first rows of an audit's file, and in the metadata how many facts were judged."""
    table = pq.read_table(found, columns=[*COLUMNS, "low_text", "high_text", "reason"])
    judged = len(table) - table["rank"].null_count
    kept = table.slice(0, most_doubtful(judged)).replace_schema_metadata({JUDGED: str(judged)})
    out.parent.mkdir(exist_ok=True)
    pq.write_table(kept, out, compression="zstd", compression_level=19)


if __name__ == "__main__":
    main()
