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
from hynt.distributed.worker_group import Alone
from hynt.errors import DataError, UsageError
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.models.contract import ItemStream
from hynt.models.registry import MODELS
from hynt.objectives.streams import Phase
from hynt.runs.graph_identity import fingerprints, graph_differences
from hynt.runs.model_choice import settings_class_for
from hynt.runs.progress import Progress
from hynt.runs.settings import RunSettings


def check_shareable(settings: RunSettings) -> None:
    """Refuses a model whose training cannot be shared, before a folder is made."""
    entry = MODELS.get(settings.model_name)
    streams = (ItemStream.MASKED_FACTS, ItemStream.MASKED_COMPONENTS, ItemStream.GROUPED_QUESTIONS)
    if entry.item_stream not in streams or hasattr(settings.model, "head_epochs"):
        raise UsageError(
            f"the training of {settings.model_name!r} cannot be shared among processes.",
            where="--processes",
            advice="Train it in one process; hynt, gran, ram, stare and hy-transformer can be shared.",
        )


def shared_phases(phases: list[Phase], team: Alone) -> list[Phase]:
    """The phases of one process of a team: in each step its own share of the rows."""
    if team.world == 1:
        return phases
    return [replace(phase, stream=SharedStream(phase.stream, team.rank, team.world)) for phase in phases]


def tell_start(
    team: Alone, settings: RunSettings, graph: Mapping[str, str], progress: Progress, *, resumed: bool
) -> None:
    """Tells the others what `heard_start` needs."""
    team.told(
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


def heard_start(team: Alone, graph: KnowledgeGraph) -> tuple[RunSettings, Progress, bool] | None:
    """Settings, where training stands and whether it is resumed; None: the run is finished. Refuses another graph."""
    said: dict[str, Any] = json.loads(team.told())
    if said["finished"]:
        return None
    changed = graph_differences(said["graph"], fingerprints(graph))
    if changed:
        raise DataError(
            f"the graph of process {team.rank + 1} is not that of the first one: {'; '.join(changed)}.",
            advice="Give all machines the same graph.",
        )
    settings: RunSettings = from_mapping(settings_class_for(said["settings"]["model_name"]), said["settings"])
    progress = Progress.from_mapping(said["progress"], "what the first process said")
    return settings, progress, bool(said["resumed"])
