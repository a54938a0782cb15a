"""A run opened as far as it is needed: its graph first, and the model for the first question that stands. So a name
that nobody knows is refused at once, and torch is loaded only to answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from hynt.errors import located
from hynt.graph.fact_table import FactTable
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.known_answers import KnownAnswers, StoredFacts
from hynt.graph.lookup import NameLookup
from hynt.runs.journal import AddedFacts, Journal, Version, changed_share
from hynt.runs.place import SavedRun, run_place, whole_run

if TYPE_CHECKING:
    import torch

    from hynt.calibration.calibration import Calibration
    from hynt.runs.opening import LoadedRun

_KEPT = ("path", "note", "saved", "trained", "_device", "_kept", "_version")
"""What a run keeps of itself when it is asked of another graph."""


class OpenedRun:
    """A run and its graph, each read when it is first needed."""

    _elsewhere = False
    """Whether it is asked about a graph that was given, not about a version of its own."""

    def __init__(
        self,
        run: str | os.PathLike[str] | SavedRun,
        device: str = "auto",
        note: Callable[[str], None] = lambda text: None,
        version: int | None = None,
    ) -> None:
        """`version`: the graph as it was then, 0 for the one that the run was trained on; None for the newest."""
        self.path = run.path if isinstance(run, SavedRun) else run_place(run)
        self.note, self._device, self._version = note, device, version
        if isinstance(run, SavedRun):
            self.__dict__["saved"] = run

    @cached_property
    def saved(self) -> SavedRun:
        """The run on disk, whose manifest is whole."""
        with whole_run():
            return SavedRun.open(self.path)

    @cached_property
    def version(self) -> int:
        """How many updates its graph has seen; 0 is the graph that it was trained on.

        >>> run.version
        0
        """
        return Journal(self.path).latest() if self._version is None else self._version

    @cached_property
    def graph(self) -> KnowledgeGraph:
        """The graph that questions are about: the one it was trained on, with all updates since."""
        with whole_run():
            return Journal(self.path).graph(self.saved.graph(), self.version)

    @cached_property
    def _added(self) -> AddedFacts:
        """Which facts of its graph came with updates."""
        return Journal(self.path).count_added(AddedFacts(), self.version)

    @cached_property
    def device(self) -> torch.device:
        """The device on which questions are scored."""
        from hynt.kernels.device import chosen_device

        return chosen_device(self._device)

    @cached_property
    def loaded(self) -> LoadedRun:
        """The model with all that belongs to it; every file is checked."""
        _ = self.graph  # what can be refused without torch is refused first
        found = self.trained
        if not self.version:
            return found
        from hynt.runs.elsewhere import on_graph

        return replace(
            on_graph(found, self.graph), changed=changed_share(len(found.graph), self._journal(self.version))
        )

    @cached_property
    def trained(self) -> LoadedRun:
        """The same over the graph that it was trained on."""
        from hynt.runs.opening import load_run

        with whole_run():
            return load_run(self.saved, self.device)

    def newest(self) -> Self | None:
        """The run at the newest version of its graph, with the same weights; None if it is at that version already.

        >>> run.newest() is None
        True
        """
        if Journal(self.path).latest() == self.version:
            return None
        return self._fresh_copy(trained=self.trained, _version=None)

    def _journal(self, version: int) -> list[Version]:
        return Journal(self.path).versions()[:version]

    def described(self) -> dict[str, Any]:
        """The model and the graph, by name, and the graph's version where it has changed since training.

        >>> run.described()
        {'model': 'hynt', 'graph': 'world'}
        """
        graph = self.graph.name if self._elsewhere else self.saved.manifest["graph"]["name"]
        version = {"version": self.version} if self.version and not self._elsewhere else {}
        return {"model": self.saved.manifest["model_name"], "graph": graph, **version}

    @cached_property
    def calibration(self) -> Calibration:
        """What makes probabilities and intervals trustworthy; fitted on first use if the run has none."""
        from hynt.calibration.calibration import calibration_of

        with whole_run():
            return calibration_of(self.loaded, self.device, self.note)

    @cached_property
    def known(self) -> KnownAnswers:
        """What all splits of the graph answer."""
        return KnownAnswers.build(self.graph.splits, self.graph.vocabulary.relation_is_number)

    @cached_property
    def stored_facts(self) -> StoredFacts:
        """The graph's facts, to look up which of them answer a question."""
        return StoredFacts(self.graph)

    @cached_property
    def names(self) -> NameLookup:
        """From what people write to ids."""
        return self.graph.names

    def on(self, graph: KnowledgeGraph | str | os.PathLike[str]) -> Self:
        """The same run, asked about another graph: new entities, new relations, other facts. Nothing is trained; the
        model must read observed facts, as hynt-inductive does.

        >>> elsewhere = inductive.on(hynt.graph_from_facts([("Ann", "knows", "Bob"), ("Bob", "knows", "Eve")]))
        >>> elsewhere.predict("Eve", "knows", "?").candidates
        3
        """
        from hynt.runs.elsewhere import on_graph
        from hynt.runs.journal import graph_as_of

        found = graph if isinstance(graph, KnowledgeGraph) else graph_as_of(graph)
        with located("graph"):
            return self.asked_of(found, on_graph(self.loaded, found))

    def asked_of(self, graph: KnowledgeGraph, loaded: LoadedRun) -> Self:
        """A copy that answers from these; what was made of the graph before is left behind."""
        return self._fresh_copy(graph=graph, loaded=loaded, _elsewhere=loaded.home is not None)

    def _fresh_copy(self, **known: Any) -> Self:
        """A copy that knows these, and of the run itself what holds for any graph."""
        other, device = copy(self), self.device
        other.__dict__ = {name: value for name, value in self.__dict__.items() if name in _KEPT}
        other.__dict__ |= {"device": device, **known}
        return other

    def observing(self, facts: FactTable) -> Self:
        """The same run, asked of these facts alone where its model reads observed facts."""
        from hynt.runs.observing import observing

        other = copy(self)
        other.__dict__["loaded"] = observing(self.loaded, facts)
        other.__dict__.pop("_builder", None)
        return other
