"""A model whose scores follow from what it sees by plain arithmetic, so an oracle can repeat them; small graphs."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from torch import nn

from hynt.batches.fact_tensors import Sizes
from hynt.batches.number_scaling import NumberScaling
from hynt.evaluation.evaluator import evaluate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.vocabulary import Entity, Relation, Vocabulary
from hynt.models.contract import EVERYWHERE, EncodedQuestion, Entities, EntityRange, Relations, ScaledNumber
from tests.oracle.plain_facts import random_facts, table_of

PLAIN_NAMES = ("train", "valid", "test")


def random_graph(seed: int, sizes=(30, 5, 8), entities: int = 9, relations: int = 4):
    """(graph, its facts as plain tuples by split)."""
    rng = np.random.default_rng(seed)
    is_number = np.arange(relations) % 2 == 1
    plain = {name: random_facts(rng, size, entities, is_number) for name, size in zip(PLAIN_NAMES, sizes, strict=True)}
    names = tuple(f"e{index}" for index in range(entities))
    kinds = tuple(Relation(f"r{index}", "number" if kind else "entity") for index, kind in enumerate(is_number))
    tables = {name: table_of(facts) for name, facts in plain.items()}
    return KnowledgeGraph(Vocabulary(names, kinds), tables, tuple(Entity(name) for name in names)), plain


def scaling_of(graph: KnowledgeGraph) -> NumberScaling:
    return NumberScaling.fit([graph.split("train")], graph.vocabulary)


def asked(model, graph: KnowledgeGraph, **settings):
    """The evaluation of a model on a small graph."""
    return evaluate(model, graph, scaling_of(graph), **settings)


class ScriptedModel(nn.Module):
    """score = (code of the visible question × 31 + candidate × 17) mod 7: many ties, no pattern."""

    streams: ClassVar[tuple] = ()
    answers = EVERYWHERE
    reads: ClassVar = frozenset()

    def __init__(self, graph: KnowledgeGraph) -> None:
        super().__init__()
        self.sizes = Sizes(graph.vocabulary.entity_count, graph.vocabulary.relation_count)
        self.largest_batch = 0

    def phases(self, train, settings):
        return []

    def read(self, batch):
        self.largest_batch = max(self.largest_batch, len(batch.asked))
        pairs = (batch.qualifier_relation * 5 + batch.qualifier_entity * 3 + 1) * batch.qualifier_present
        code = batch.head * 7 + batch.relation * 11 + batch.tail_entity * 13 + batch.asked * 2
        code = code.index_add(0, batch.places.slot_row, pairs)
        return EncodedQuestion(code[:, None].float(), batch.asked_relation())

    def score(self, question, candidates):
        code = question.encoded[:, 0].long()
        match candidates:
            case Entities():
                first, end = 0, self.sizes.entities
            case EntityRange(start, stop):
                first, end = start, stop
            case Relations():
                first, end = 0, self.sizes.relations
            case ScaledNumber():
                return (code % 11).float() / 10
        return ((code[:, None] * 31 + torch.arange(first, end)[None] * 17) % 7).float()


def scripted_code(graph: KnowledgeGraph, fact, position: int) -> int:
    """The code of a question, worked out from a plain fact alone."""
    entity_blank, relation_blank = graph.vocabulary.entity_count, graph.vocabulary.relation_count

    def entity(value, hidden):
        return entity_blank if hidden or isinstance(value, float) else value

    code = entity(fact[0], position == 0) * 7 + (relation_blank if position == 1 else fact[1]) * 11
    code += entity(fact[2], position == 2) * 13 + position * 2
    for index, (relation, value) in enumerate(fact[3]):
        shown = relation_blank if position == 3 + 2 * index else relation
        code += shown * 5 + entity(value, position == 4 + 2 * index) * 3 + 1
    return code
