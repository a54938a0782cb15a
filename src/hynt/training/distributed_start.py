"""How several processes begin: the first one tells the others what the run is and gives them its weights.

Only the first process needs the run folder. The others need the graph, which each reads for itself, so machines need
not share a file system.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hynt.config import from_mapping, to_mapping
from hynt.distributed.plan import SharedStream
from hynt.distributed.worker_group import SingleProcess
from hynt.errors import DataError, UsageError
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.models.contract import StreamKind
from hynt.models.registry import MODELS
from hynt.objectives.streams import Phase
from hynt.runs.graph_identity import fingerprints, graph_differences
from hynt.runs.model_choice import settings_class_for
from hynt.runs.progress import TrainingState
from hynt.runs.settings import RunSettings


def check_shareable(settings: RunSettings) -> None:
    """Refuses a model whose training cannot be shared, before a folder is made."""
    entry = MODELS.get(settings.model_name)
    streams = (StreamKind.MASKED_FACTS, StreamKind.MASKED_COMPONENTS, StreamKind.GROUPED_QUESTIONS)
    if entry.item_stream not in streams or hasattr(settings.model, "head_epochs"):
        raise UsageError(
            f"the training of {settings.model_name!r} cannot be shared among processes.",
            where="--processes",
            advice="Train it in one process; hynt, gran, ram, stare and hy-transformer can be shared.",
        )


def shared_phases(phases: list[Phase], workers: SingleProcess) -> list[Phase]:
    """The phases of one process of a team: in each step its own share of the rows."""
    if workers.world == 1:
        return phases
    return [replace(phase, stream=SharedStream(phase.stream, workers.rank, workers.world)) for phase in phases]


def broadcast_start(
    workers: SingleProcess, settings: RunSettings, graph: Mapping[str, str], progress: TrainingState, *, resumed: bool
) -> None:
    """Tells the others what `receive_start` needs."""
    workers.broadcast_text(
        json.dumps(
            {
                "finished": False,
                "settings": to_mapping(settings),
                "graph": dict(graph),
                "progress": progress.to_mapping(),
                "resumed": resumed,
            }
        )
    )


def receive_start(workers: SingleProcess, graph: KnowledgeGraph) -> tuple[RunSettings, TrainingState, bool] | None:
    """Settings, where training stands and whether it is resumed; None: the run is finished. Refuses another graph."""
    said: dict[str, Any] = json.loads(workers.broadcast_text())
    if said["finished"]:
        return None
    changed = graph_differences(said["graph"], fingerprints(graph))
    if changed:
        raise DataError(
            f"the graph of process {workers.rank + 1} is not that of the first one: {'; '.join(changed)}.",
            advice="Give all machines the same graph.",
        )
    settings: RunSettings = from_mapping(settings_class_for(said["settings"]["model_name"]), said["settings"])
    progress = TrainingState.from_mapping(said["progress"], "what the first process said")
    return settings, progress, bool(said["resumed"])
