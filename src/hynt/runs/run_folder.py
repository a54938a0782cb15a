"""A run is a folder that can be moved, resumed, evaluated and asked, and that says how it was made:

    RUN/manifest.json        what this is, the graph's fingerprints, the hash of each file below
        config.toml          all settings
        scaling.json         how numbers were scaled
        environment.json     versions and device
        graph/               the graph, when it is small; else the manifest has its relative path
        weights.safetensors  once training is over; weights-relation.safetensors and the like, where a task has its own
        means.json           of numbers on log scales, how means lie to answers; once training is over
        combination.json     how much its model counts beside statistics, where it answers with them
        members.json         of an ensemble: see `runs.ensemble`
        metrics.jsonl        a line per epoch and a line per validation
        reads.json           how often each held-out split was read by an evaluation
        checkpoints/         while training goes on

Every file that decides an answer is hashed, and checked before it is used.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from hynt import __version__
from hynt.batches.number_scaling import Expectation, NumberScaling
from hynt.config import from_mapping, read_toml, to_toml
from hynt.errors import UsageError
from hynt.files import (
    MANIFEST_NAME,
    hashes,
    index_text,
    new_folder,
    read_index,
    read_json,
    remove_partial,
    sha256_of,
    whole_file,
    write_whole,
)
from hynt.graph.content_hash import graph_differences, graph_fingerprints
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.storage import save_graph
from hynt.models.combination import Weights
from hynt.runs import CONFIG, READS, RECORD, SCALING, WEIGHTS
from hynt.runs.checkpoint import task_weights
from hynt.runs.model_choice import package_of, settings_class_of_run
from hynt.runs.place import SCHEMA_VERSION, SavedRun, read_counts, refuse_filled
from hynt.runs.settings import RunSettings, differences

LARGEST_EMBEDDED = 50 * 2**20
"""In bytes: a saved graph up to this size is kept inside the run."""

ENVIRONMENT, MEANS, COMBINATION, MEMBERS = "environment.json", "means.json", "combination.json", "members.json"
GRAPH, CHECKPOINTS = "graph", "checkpoints"
START = "start.safetensors"
"""The weights that training starts from, where they are another run's; gone when it is over."""


class RunFolder(SavedRun):
    """A run on disk, to be trained, loaded and evaluated."""

    @classmethod
    def create(
        cls,
        path: Path,
        settings: RunSettings,
        graph: KnowledgeGraph,
        scaling: NumberScaling,
        environment: dict[str, Any],
        graph_source: Path | None = None,
        weights: Path | None = None,
    ) -> RunFolder:
        """A new run, before its first step. `graph_source` is where the graph lies, for one too large to embed;
        `weights` are those that training starts from.
        """
        refuse_filled(path, "Resume it with --resume, or choose another --out.")
        if path.is_dir():
            path.rmdir()  # an empty folder was made beforehand
        with new_folder(path) as staging:
            texts = {
                CONFIG: to_toml(settings),
                SCALING: _json(scaling.to_mapping(graph.vocabulary)),
                ENVIRONMENT: _json(dict(sorted(environment.items()))),
                RECORD: "",
                READS: index_text({"valid": 0, "test": 0}),
            }
            for name, text in texts.items():
                (staging / name).write_text(text, encoding="utf-8", newline="\n")
            where = _place_graph(graph, staging, path, graph_source)
            if weights is not None:
                shutil.copyfile(weights, staging / START)
            manifest = {
                "schema_version": SCHEMA_VERSION,
                "hynt": __version__,
                "model_name": settings.model_name,
                "graph": {"name": graph.name, "path": where, "fingerprints": graph_fingerprints(graph)},
                "files": hashes(staging, [CONFIG, SCALING, ENVIRONMENT, *([] if weights is None else [START])]),
            }
            package = package_of(settings.model_name)
            manifest |= {} if package is None else {"model_package": package}
            (staging / MANIFEST_NAME).write_text(index_text(manifest), encoding="utf-8")
        return cls.open(path)

    @property
    def is_finished(self) -> bool:
        """Whether training came to its end."""
        return WEIGHTS in self.manifest["files"]

    @property
    def checkpoints(self) -> Path:
        return self.path / CHECKPOINTS

    @property
    def metrics(self) -> Path:
        return self.path / RECORD

    def settings(self) -> RunSettings:
        """The settings it was made with."""
        path = self.checked(CONFIG)
        mapping = read_toml(path)
        name, package = str(mapping.get("model_name")), self.manifest.get("model_package")
        kind = settings_class_of_run(name, package, str(self.path))
        try:
            settings: RunSettings = from_mapping(kind, mapping)
        except UsageError as problem:
            raise problem.at(f"{path}: {problem.where}") from None
        return settings

    def scaling(self, graph: KnowledgeGraph) -> NumberScaling:
        """How this run scales numbers."""
        path = self.checked(SCALING)
        found = NumberScaling.from_mapping(read_json(path), graph.vocabulary, str(path))
        if MEANS not in self.manifest["files"]:
            return found
        path = self.checked(MEANS)
        means = Expectation.from_mapping(read_json(path), graph.vocabulary, str(path))
        return replace(found, expectation=means)

    def combination(self, graph: KnowledgeGraph) -> Weights | None:
        """How much its model counts beside other members; None where it answers alone."""
        if COMBINATION not in self.manifest["files"]:
            return None
        path = self.checked(COMBINATION)
        return Weights.from_mapping(read_index(path), graph.vocabulary, str(path))

    def finish(
        self,
        weights: Path,
        summary: dict[str, Any],
        of_tasks: Mapping[str, Path] | None = None,
        texts: Mapping[str, str] | None = None,
    ) -> RunFolder:
        """Takes the chosen checkpoint's weights as the run's own, those of tasks that have others, and `texts` as
        further files. Until the manifest lists them, they are not.
        """
        files = {name: digest for name, digest in self.manifest["files"].items() if name != START}
        chosen = {task_weights(task): path for task, path in (of_tasks or {}).items()}
        for name, path in {**chosen, WEIGHTS: weights}.items():
            with path.open("rb") as source, whole_file(self.path / name) as file:
                shutil.copyfileobj(source, file, 2**20)
            files[name] = sha256_of(self.path / name)
        files |= self._written(texts or {})
        manifest = {**self.manifest, "files": files, "training": summary}
        write_whole(self.path / MANIFEST_NAME, index_text(manifest))
        self.tidy()
        return RunFolder.open(self.path)

    def beside(self, texts: Mapping[str, str]) -> RunFolder:
        """Takes these as what a run that is not finished answers with besides its weights, for what it had before."""
        files = {name: digest for name, digest in self.manifest["files"].items() if name not in (COMBINATION, MEANS)}
        files |= self._written(texts)
        if files == self.manifest["files"]:
            return self
        write_whole(self.path / MANIFEST_NAME, index_text({**self.manifest, "files": files}))
        for name in self.manifest["files"].keys() - files.keys():
            (self.path / name).unlink(missing_ok=True)
        return RunFolder.open(self.path)

    def _written(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Writes further files; the hash of each."""
        for name, text in texts.items():
            write_whole(self.path / name, text)
        return hashes(self.path, texts)

    def tidy(self) -> None:
        """Removes what only training needed; called again for a run that was killed just before this."""
        shutil.rmtree(self.checkpoints, ignore_errors=True)
        (self.path / START).unlink(missing_ok=True)
        remove_partial(self.path)

    def reads(self, split: str) -> int:
        """How often a held-out split was read to evaluate this run."""
        return read_counts(self.path).get(split, 0)

    def count_read(self, split: str) -> int:
        """Counts one more reading of a split, and says how many there were; in what is installed the count stays."""
        counts = read_counts(self.path)
        counts[split] = counts.get(split, 0) + 1
        if not self.is_packaged:
            write_whole(self.path / READS, index_text(counts))
        return counts[split]


def means_text(means: Expectation, graph: KnowledgeGraph) -> str:
    """How means lie to answers, as the file holds it."""
    return _json(means.to_mapping(graph.vocabulary))


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _place_graph(graph: KnowledgeGraph, staging: Path, run: Path, source: Path | None) -> str:
    """Where the run finds its graph, relative to itself."""
    known = sum(record.bytes for record in graph.manifest.files.values())
    if source is None or known <= LARGEST_EMBEDDED:
        save_graph(graph, staging / GRAPH)
        size = sum(file.stat().st_size for file in (staging / GRAPH).iterdir())
        if source is None or size <= LARGEST_EMBEDDED:
            return GRAPH
        shutil.rmtree(staging / GRAPH)
    return Path(os.path.relpath(source.resolve(), run.resolve())).as_posix()


# What a run was made with, as far as it bears on the numbers. Never a path, a user or a host.

_PACKAGES = ("torch", "numpy", "pyarrow", "safetensors", "triton")


def describe_environment(device: torch.device) -> dict[str, Any]:
    """Versions and the kind of machine, for environment.json."""
    found: dict[str, Any] = {
        "hynt": __version__,
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "device": device.type,
        "threads": torch.get_num_threads(),
    }
    found |= {name: installed for name in _PACKAGES if (installed := _version(name))}
    if device.type == "cuda":
        found["gpu"] = torch.cuda.get_device_name(device)
        found["cuda"] = torch.version.cuda
    return found


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


# Going on with a run: only with the settings and the graph it began with. Anything else would be another run.


def refuse_changes(run: RunFolder, wanted: RunSettings | None, graph: KnowledgeGraph | None) -> None:
    """Raises a `UsageError` that shows what differs; None stands for "as before"."""
    changed = [] if wanted is None else differences(run.settings(), wanted)
    if changed:
        raise UsageError(
            f"the run was made with other settings: {'; '.join(changed)}.",
            where=str(run.path),
            advice="Resume without them, or start a new run with another --out.",
        )
    parts = [] if graph is None else graph_differences(run.manifest["graph"]["fingerprints"], graph_fingerprints(graph))
    if parts:
        raise UsageError(
            f"the run was made with another graph: {'; '.join(parts)}.",
            where=str(run.path),
            advice="Give the graph it was made with, or start a new run with another --out.",
        )
