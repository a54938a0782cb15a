"""The options that ask a question, the same for `predict` and `explain`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hynt.cli.arguments import Level

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hynt.asking.candidate_rules import Candidates
    from hynt.asking.question import AskedFact
    from hynt.graph.knowledge_graph import KnowledgeGraph
    from hynt.graph.lookup import NameLookup


@dataclass(frozen=True)
class QuestionOptions:
    """A fact with one component written as ?, what may answer it, and how sure an interval is to be."""

    # fmt: off
    head: Annotated[str | None, typer.Option("--head", help="The head's id or name, or ? for what is asked.")] = None
    relation: Annotated[str | None, typer.Option("--relation", help="The relation, or ?.")] = None
    tail: Annotated[str | None, typer.Option("--tail", help="An entity, a number (80 kg), a date, or ?.")] = None
    qualifiers: Annotated[list[str] | None, typer.Option(
        "--qualifier", metavar="R=V", help="A qualifier; one side may be ?. May be said again."
    )] = None
    candidates: Annotated[list[str] | None, typer.Option(
        "--candidates", metavar="type|unknown|FILE",
        help="Only entities seen in that place, only those not known, or only those of a list. May be said again.",
    )] = None
    level: Level = 0.9
    # fmt: on

    def ask(self, graph: KnowledgeGraph, names: NameLookup) -> tuple[AskedFact, Candidates]:
        """The question and what may answer it; whatever cannot be asked is refused here, without a model."""
        from hynt.asking.candidate_rules import candidates_for, read_list
        from hynt.asking.question import ask, pair_from_text
        from hynt.calibration.intervals import check_level

        check_level(self.level)
        wishes: list[str | Iterable[str]] = [
            wish if wish in ("type", "unknown") else read_list(Path(wish)) for wish in self.candidates or ()
        ]
        pairs = [pair_from_text(text, names) for text in self.qualifiers or ()]
        asked = ask(graph, self.head, self.relation, self.tail, pairs, names)
        return asked, candidates_for(graph, asked, wishes, names)
