"""What the service can do, in one place: the JSON endpoints and the pages both call this.

Every method is a coroutine that gives plain values and raises `HttpProblem`. What is about the graph is answered here;
what needs the model goes through the queue.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from typing import Any, ParamSpec, TypeVar

from fastapi import Request

from hynt import __version__
from hynt.asking.graph_updates import GivenChange
from hynt.errors import HyntError, UsageError
from hynt.graph.fact import Fact, Number
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.lookup import EntityPosition
from hynt.graph.views import GraphViews
from hynt.runs.journal import AddedFacts, Journal
from hynt.runs.place import open_run
from hynt.service.http.metrics import ServiceMetrics
from hynt.service.http.problems import VERSION, HttpProblem, fault_of, invalid, unavailable
from hynt.service.inference.answering import InferenceEngine
from hynt.service.inference.question_queue import QuestionQueue
from hynt.service.settings import ServiceSettings

LOG = logging.getLogger("hynt.service")

Given = ParamSpec("Given")
Got = TypeVar("Got")

_LOOK_EVERY = 1.0
"""Seconds between two looks at whether another process has updated the run."""
_LOOKERS = 2
"""Threads that look things up in the graph, so that a long look does not hold up /health."""


def opened_graph(settings: ServiceSettings) -> KnowledgeGraph:
    """The graph that is served, as the run has it now or had it at a version."""
    return Journal(settings.run).graph(open_run(settings.run).graph(), settings.version)


class JsonReplies(list[bytes]):
    """Replies in JSON, and the version of the graph that they were made from."""

    def __init__(self, bodies: Sequence[bytes], version: int) -> None:
        super().__init__(bodies)
        self.version = version


class ServedRun:
    """One run, ready to be asked by many."""

    def __init__(self, graph: KnowledgeGraph, engine: InferenceEngine, settings: ServiceSettings) -> None:
        self.graph, self.engine, self.settings = graph, engine, settings
        self.metrics = ServiceMetrics()
        self.added = Journal(settings.run).count_added(AddedFacts(), settings.version)
        self.views = GraphViews(graph, self.added.source)
        self.queue = QuestionQueue(
            engine,
            limit=settings.queue,
            together=settings.together if settings.batching else 1,
            window=settings.window,
            metrics=self.metrics,
        )
        self.draining = False
        self.version = self.added.version
        self._writing = asyncio.Lock()
        self._watching: asyncio.Task[None] | None = None
        self._lookers = ThreadPoolExecutor(_LOOKERS, "graph")
        self.metrics.gauge("hynt_queue_length", "Jobs that wait or are being done.", lambda: len(self.queue))
        self.metrics.gauge("hynt_ready", "1 when the model is loaded.", lambda: float(engine.state.ready))
        self.metrics.gauge(
            "hynt_inference_restarts", "How often inference was started again.", lambda: engine.state.restarts
        )

    async def start(self) -> None:
        """Begins to load the model."""
        await self.engine.start()
        await self.queue.start()
        if self.settings.version is None:
            self._watching = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """Refuses what is left and ends the inference process."""
        if self._watching is not None:
            self._watching.cancel()
        await self.queue.stop()
        await self.engine.stop()
        self._lookers.shutdown(wait=False, cancel_futures=True)

    # ------------------------------------------------------------------ asking the model

    async def predict(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The answers to a question: {"head": …, "relation": …, "tail": "?", "qualifiers": [{"relation", "value"}],
        "top": 10, "candidates": ["type", "unknown"], "only": [names], "level": 0.9}; only the first three are needed.
        """
        return _read((await self.asked("predict", [question]))[0])

    async def explain(self, question: Mapping[str, Any], answer: str | None = None) -> dict[str, Any]:
        """What mattered to the first answer, or to the one that is named."""
        return _read((await self.asked("explain", [{**question, "answer": answer}]))[0])

    async def trends(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """How a number moves along a qualifier: {"heads": […], "relation": …} and what else `Run.trends` takes, its
        qualifiers as in a question.
        """
        return _read((await self.asked("trends", [question]))[0])

    async def similar(self, entity: str, top: int = 10) -> dict[str, Any]:
        """The entities whose vectors are most alike."""
        return _read((await self.asked("similar", [{"entity": entity, "top": top}]))[0])

    async def propose(self, entity: str, top: int = 10) -> dict[str, Any]:
        """Facts that the graph lacks about an entity, most probable first; see `hynt.Run.propose`."""
        return _read((await self.asked("propose", [{"entity": entity, "top": top}]))[0])

    # ------------------------------------------------------------------ changing the graph

    async def update(self, change: GivenChange) -> dict[str, Any]:
        """Writes a change to the run's journal. The graph lists it when this returns; the model counts it soon after,
        and until then answers from the version before.
        """
        if not self.settings.accept_updates:
            detail = "this service only reads its graph. Whoever runs it can start it so that it takes facts too."
            raise HttpProblem(403, detail)
        if not self.engine.state.follows:
            detail = f"the model {self.engine.state.described.get('model')!r} cannot follow its graph."
            raise HttpProblem(409, detail if self.engine.state.ready else "the model is not there yet.")
        async with self._writing:
            try:
                loop = asyncio.get_running_loop()
                written, graph, _ = await loop.run_in_executor(
                    self._lookers, lambda: change.written(self.settings.run, self._graph_at)
                )
            except HyntError as problem:
                if problem.where.startswith(str(self.settings.run)):  # somebody else writes, or the disk is full
                    raise unavailable(problem.sentences, 1) from None
                raise invalid([fault_of(problem)]) from None
            if written is not None and graph is not None:
                await self._take_over(graph, written.version)
        told = {"version": self.version, "facts": len(self.graph)} if written is None else asdict(written)
        names = ("version", "added", "removed", "new_entities", "gone_entities", "facts")
        return {name: told.get(name, 0) for name in names} | {"changed": graph is not None}

    async def _take_over(self, graph: KnowledgeGraph, version: int) -> None:
        """Lists the graph of a version, and has the model read it."""
        Journal(self.settings.run).count_added(self.added, version)
        self.graph, self.views, self.version = graph, GraphViews(graph, self.added.source), version
        await self.engine.follow()

    async def _watch(self) -> None:
        """Takes over what other processes write to the run's journal."""
        loop, journal = asyncio.get_running_loop(), Journal(self.settings.run)
        seen = (0, 0)  # what was written since the graph was read counts too
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            if not self.engine.state.follows or (mark := journal.mark()) == seen:
                continue
            seen = mark
            async with self._writing:
                try:
                    version = await loop.run_in_executor(self._lookers, journal.latest)
                    if version > self.version:
                        graph = await loop.run_in_executor(self._lookers, self._graph_at, journal, version)
                        await self._take_over(graph, version)
                except HyntError as problem:
                    LOG.warning("an update by another process cannot be read: %s", problem.sentences)

    def _graph_at(self, journal: Journal, version: int) -> KnowledgeGraph:
        """The graph at the newest version, read again only where another process has written."""
        if version == self.version:
            return self.graph
        return journal.graph(open_run(self.settings.run).graph(), version)

    # ------------------------------------------------------------------ how

    async def asked(self, kind: str, jobs: Sequence[Mapping[str, Any]], listed_in: str = "") -> JsonReplies:
        """JSON in bytes for each job; where one is refused, all are, with every fault and where it is.

        `listed_in` names the list of the body that holds the jobs, where it is a list.
        """
        replies = await self.queue.ask(kind, jobs, self.settings.answer_within)
        for reply in replies:
            if reply.broken:
                LOG.error("%s: the run cannot answer", kind)
                raise unavailable(reply.broken, 60)
            if reply.bug:
                LOG.error("%s met a bug in hynt: %s", kind, reply.bug)
                raise HttpProblem(500, "this is a bug in hynt; its log says more.")
        faults = [
            fault.under(f"/{listed_in}/{index}") if listed_in else fault
            for index, reply in enumerate(replies)
            for fault in reply.faults
        ]
        version = min((reply.version for reply in replies), default=0)
        if faults:
            if version < self.version:  # what is unknown may be what it is about to read
                wait = f"The model answers from version {version} until it has read version {self.version}"
                faults = [replace(one, advice=f"{one.advice} {wait}: ask again then.".lstrip()) for one in faults]
            refused = invalid(faults)
            raise HttpProblem(refused.status, refused.detail, refused.faults, {VERSION: str(version)})
        return JsonReplies([reply.body for reply in replies], version)

    # ------------------------------------------------------------------ looking at the graph

    async def entities(self, query: str, limit: int = 10) -> dict[str, Any]:
        """The entities that a query may mean."""
        return await self._look(self.views.entities, query, limit)

    async def entity(
        self, name: str, offset: int = 0, limit: int = 50, position: EntityPosition | None = None
    ) -> dict[str, Any]:
        """An entity by its id or name, and a page of its facts."""
        return await self._look(self.views.entity, name, offset, limit, position)

    async def entity_by_relation(self, name: str, **narrowed: Any) -> dict[str, Any]:
        """An entity by its id or name, and its facts in groups; see `GraphViews.entity_by_relation`."""
        return await self._look(self.views.entity_by_relation, name, **narrowed)

    async def fact_place(self, split: str, row: int) -> dict[str, Any] | None:
        """The fact at a row of a split, and which one of its head's it is."""
        return await self._look(self.views.fact_place, split, row)

    async def judged_fact(self, judged: Mapping[str, Any]) -> dict[str, str]:
        """A fact that an audit judged: its `line`, as JSON lines have it, and the doubtful `part` in words. The line is
        "" where the graph has another fact in its place by now.
        """
        from hynt.formats.jsonl import write_fact

        fact = await self._look(self.views.stored_fact, judged["split"], judged["row"])
        component = str(judged["component"])
        if fact is None or not _is_of(judged, fact):
            return {"line": "", "part": component}
        side, _, place = component.partition(" of qualifier ")
        if side == "value":
            component = self.views.relation_called(fact.qualifiers[int(place) - 1].relation)
        elif component == "tail" and judged["kind"] == "number":
            component = self.views.relation_called(fact.relation)
        return {"line": write_fact(fact), "part": component}

    async def neighbourhood(self, name: str, leads: Callable[[str], str], *, narrow: bool = False) -> dict[str, Any]:
        """Some facts around an entity, drawn; `leads` says where the entities of the drawing lead."""
        return await self._look(self._drawn, name, leads, narrow=narrow)

    def _drawn(self, name: str, leads: Callable[[str], str], *, narrow: bool) -> dict[str, Any]:
        from hynt.reporting.neighbourhood import PICTURED_FACTS
        from hynt.reporting.report.graph import neighbourhood_drawing

        graph, views = self.graph, self.views
        identity = views.names.entity(name)
        facts = views.telling_facts(identity, PICTURED_FACTS)
        return {
            "id": graph.vocabulary.entities[identity],
            "name": graph.entity_labels[identity],
            "drawing": neighbourhood_drawing(graph, facts, leads, narrow=narrow),
        }

    async def relations(
        self, query: str = "", kind: str | None = None, offset: int = 0, limit: int = 200
    ) -> dict[str, Any]:
        """A page of the relations."""
        return await self._look(self.views.relations, query, kind, offset, limit)

    async def relation(self, name: str) -> dict[str, Any]:
        """A relation with the distribution of its numbers."""
        return await self._look(self.views.relation, name)

    async def relation_in_use(self, name: str) -> dict[str, Any]:
        """The same with usual qualifiers, common tails and examples, for its page."""
        return await self._look(self.views.relation_in_use, name)

    async def suggested(self, wanted: str, head: str, relation: str, *, numbers: bool = False) -> dict[str, Any]:
        """What an empty field of a question may hold, commonest first."""
        return {"items": await self._look(self.views.suggested, wanted, head, relation, numbers=numbers)}

    async def about(self) -> dict[str, Any]:
        """The run, the graph and the state of the service."""
        state, graph = self.engine.state, self.graph
        return {
            "hynt": __version__,
            "ready": state.ready,
            "run": state.described,
            "graph": {
                "name": graph.name,
                "entities": graph.vocabulary.entity_count,
                "relations": graph.vocabulary.relation_count,
                "splits": {name: len(table) for name, table in graph.splits.items()},
                "licence": graph.manifest.licence,
                "source": graph.manifest.source,
            },
        }

    async def _look(self, work: Callable[Given, Got], /, *given: Given.args, **named: Given.kwargs) -> Got:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self.settings.answer_within):
                return await loop.run_in_executor(self._lookers, lambda: work(*given, **named))
        except UsageError as problem:  # only a name that nobody has can be wrong here
            raise HttpProblem(404, problem.what, [fault_of(problem)]) from None


def served_by(request: Request) -> ServedRun:
    """The run that the application was made with."""
    served: ServedRun = request.app.state.served
    return served


def _is_of(judged: Mapping[str, Any], fact: Fact) -> bool:
    """Whether a row of an audit is about this fact, and about a part that it has."""
    tail = fact.tail.literal if isinstance(fact.tail, Number) else fact.tail
    place = str(judged["component"]).partition(" of qualifier ")[2]
    same = (fact.head, fact.relation, tail) == tuple(judged[name] for name in ("head", "relation", "tail"))
    return same and (not place or place in map(str, range(1, len(fact.qualifiers) + 1)))


def _read(body: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(body)
    return found
