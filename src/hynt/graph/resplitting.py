"""New splits for a graph in memory, the same that an import of its facts would draw."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hynt.graph.content_hash import Fingerprints, repeats
from hynt.graph.fact_table import concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.splitting import SPLITS, SplitRule, bring_into_train, draw


def with_new_splits(graph: KnowledgeGraph, rule: SplitRule) -> KnowledgeGraph:
    """A graph with the same facts and names. A fact that stood in two splits stands in one."""
    vocabulary, table = graph.vocabulary, concatenate(list(graph.splits.values()))
    is_number = vocabulary.relation_is_number
    prints = Fingerprints(vocabulary.entities, [relation.name for relation in vocabulary.relations], is_number)
    table = table.where(~repeats(np.zeros(len(table), dtype=np.int8), prints.facts(table)))
    groups = prints.parts(table, rule.group_by) if rule.group_by else prints.facts(table)
    counts = (vocabulary.entity_count, vocabulary.relation_count)
    split, moved = bring_into_train(draw(rule, groups), groups, lambda: iter([table]), *counts, is_number)
    splits = {name: table.where(split == place) for place, name in enumerate(SPLITS) if bool((split == place).any())}
    made = {
        "rule": "made by content",
        "shares": list(rule.shares),
        "seed": rule.seed,
        "group_by": list(rule.group_by),
        "brought_into_train": moved,
    }
    manifest = replace(graph.manifest, counts={}, files={}, importing={**graph.manifest.importing, "split": made})
    return KnowledgeGraph(vocabulary, splits, graph.entities, manifest)
