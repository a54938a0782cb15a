"""Going on with a run: only with the settings and the graph it began with. Anything else would be another run."""

from __future__ import annotations

from hynt.errors import UsageError
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.runs.graph_identity import fingerprints, graph_differences
from hynt.runs.run_folder import RunFolder
from hynt.runs.settings import RunSettings, differences


def refuse_changes(run: RunFolder, wanted: RunSettings | None, graph: KnowledgeGraph | None) -> None:
    """Raises a `UsageError` that shows what differs; None stands for "as before"."""
    changed = [] if wanted is None else differences(run.settings(), wanted)
    if changed:
        raise UsageError(
            f"the run was made with other settings: {'; '.join(changed)}.",
            where=str(run.path),
            advice="Resume without them, or start a new run with another --out.",
        )
    parts = [] if graph is None else graph_differences(run.manifest["graph"]["fingerprints"], fingerprints(graph))
    if parts:
        raise UsageError(
            f"the run was made with another graph: {'; '.join(parts)}.",
            where=str(run.path),
            advice="Give the graph it was made with, or start a new run with another --out.",
        )
