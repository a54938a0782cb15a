"""From encoded facts to a graph: duplicates out, splits kept or made, unused names gone.

with Assembler(policy) as assembler:
    for fact in facts: assembler.add(fact)
    assembly = assembler.finish()
    graph = assembly.to_graph()          # or storage.save_assembly(assembly, folder) for more facts than fit in memory
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hynt.errors import DataError, UsageError
from hynt.graph.columns import ChunkStore
from hynt.graph.content_hash import Fingerprints, Hashes, repeats
from hynt.graph.encoding import FactEncoder
from hynt.graph.fact import Fact
from hynt.graph.fact_table import FactTable, concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph, Manifest
from hynt.graph.outlier_rules import OutlierFilter, OutlierRules
from hynt.graph.splitting import (
    ADDED,
    SPLITS,
    AcrossSplits,
    SplitRule,
    bring_into_train,
    draw,
    find_leakage,
    names_used,
    with_rows,
)
from hynt.graph.vocabulary import Entity, Flags, Relation, Vocabulary
from hynt.names import plural


@dataclass(frozen=True)
class AssemblyPolicy:
    """What to do with facts once they are read."""

    split: SplitRule | None = None  # None: keep given splits, or make the default one where none is given
    across_splits: AcrossSplits = "keep"
    remove_leakage: bool = False
    leakage_threshold: float = 0.97
    outlier_rules: OutlierRules | None = None


@dataclass(frozen=True)
class Assembly:
    """A graph whose facts may still be on disk."""

    vocabulary: Vocabulary
    entities: tuple[Entity, ...]
    split_names: tuple[str, ...]
    report: Mapping[str, Any]
    _chunks: ChunkStore
    _split: NDArray[np.int8]  # (n,) index into SPLITS
    _kept: Flags  # (n,) whether the fact is part of the graph
    _entity_ids: NDArray[np.int32]  # (entities met,) new id of each
    _relation_ids: NDArray[np.int32]  # (relations met,) new id of each

    def tables(self, split: str) -> Iterator[FactTable]:
        """The facts of a split in chunks, with the final ids."""
        wanted = self._kept & (self._split == SPLITS.index(split))
        for rows, chunk in with_rows(self._chunks):
            table = chunk.where(wanted[rows])
            if len(table):
                yield table.renumbered(self._entity_ids, self._relation_ids, self.vocabulary.relation_is_number)

    def to_graph(self, manifest: Manifest | None = None) -> KnowledgeGraph:
        """The whole graph in memory."""
        splits = {name: concatenate(list(self.tables(name))) for name in self.split_names}
        return KnowledgeGraph(self.vocabulary, splits, self.entities, manifest or Manifest(importing=self.report))


@dataclass
class Assembler:
    """Collects facts, then settles the graph. A context manager, because what it collects may lie in files."""

    policy: AssemblyPolicy = field(default_factory=AssemblyPolicy)
    encoder_options: Mapping[str, Any] = field(default_factory=dict)
    details: dict[str, Entity] = field(default_factory=dict)  # names and types of entities, by id as written

    def __post_init__(self) -> None:
        self.store = ChunkStore()
        self.encoder = FactEncoder(self.store, **self.encoder_options)

    def __enter__(self) -> Assembler:
        return self

    def __exit__(self, *problem: Any) -> None:
        self.store.__exit__(*problem)

    def add(self, fact: Fact, split: str | None = None) -> None:
        """One more fact; raises RecordProblem, and adds nothing, when it does not fit the others. The split `ADDED` is
        that of facts which join train beside the given splits, unless valid or test holds them."""
        self.encoder.add(fact, None if split is None else (*SPLITS, ADDED).index(split))

    def finish(self, progress: Callable[[str], None] = lambda step: None) -> Assembly:
        """Settle duplicates and splits. The assembly reads from this assembler: use it before leaving the context."""
        relations = self.encoder.finish()
        met = Vocabulary(tuple(self.encoder.entity_ids), relations)
        split = np.concatenate([*self.encoder.split_of, np.zeros(0, dtype=np.int8)])
        if not len(split):
            raise DataError("there are no facts.", advice="Check the source and its format with: hynt data check.")
        report: dict[str, Any] = {}
        progress("finding duplicates")
        added = split == len(SPLITS)
        split[added] = 0
        kept = np.ones(len(split), dtype=np.bool_)
        given = self.encoder.facts_with_split == len(split)
        if not given and self.encoder.facts_with_split:
            raise UsageError("some files belong to a split and others do not.", advice="Name all or none of them.")
        if self.policy.outlier_rules is not None:
            report["outliers"] = self._drop_outliers(self.policy.outlier_rules, relations, kept)
        if self.policy.remove_leakage:
            leaks = find_leakage(self.store, met, threshold=self.policy.leakage_threshold)
            removed = np.isin(
                np.concatenate([chunk.relation for chunk in self.store]), [leak.removed for leak in leaks]
            )
            report["leakage"] = {
                "removed_facts": int(removed.sum()),
                "relations": [leak.to_mapping([relation.name for relation in relations]) for leak in leaks],
            }
            kept[removed] = False
        remake = self.policy.split is not None or not given
        rule = self.policy.split or SplitRule()
        hashes, groups = self._hashes(met.fingerprints, rule.group_by if remake else ())
        twice = repeats(hashes, None if remake else split) & kept
        kept &= ~twice
        report["duplicates"] = int(twice.sum())
        progress("splitting")
        if remake:
            split, moved = bring_into_train(draw(rule, groups), groups, lambda: self.store, met, kept)
            report["split"] = rule.report(moved)
        else:
            report["split"] = {"rule": "given"}
            if added.any():
                report["added"] = self._hold_out(added, split, kept, hashes)
            report["across_splits"] = self._across(split, kept, hashes)
        return self._settled(split, kept, met, report)

    def _hashes(self, fingerprints: Fingerprints, group_by: tuple[str, ...]) -> tuple[Hashes, Hashes]:
        """(n, 2) of each fact and (n, 2) of the group it is split with; the same array without grouping."""
        hashes = np.empty((self.store.fact_count, 2), dtype=np.uint64)
        groups = np.empty_like(hashes) if group_by else hashes
        for rows, chunk in with_rows(self.store):
            hashes[rows] = fingerprints.facts(chunk)
            if group_by:
                groups[rows] = fingerprints.parts(chunk, group_by)
        return hashes, groups

    def _drop_outliers(self, rules: OutlierRules, relations: tuple[Relation, ...], kept: Flags) -> dict[str, Any]:
        """Take facts that break a rule out of `kept`; what went, by rule."""
        labels = ((entity.name, entity.label) for entity in self.details.values())
        outliers = OutlierFilter(rules, relations, self.encoder.entity_ids, labels)
        for rows, chunk in with_rows(self.store):
            kept[rows][outliers.breaking(chunk)] = False
        return outliers.to_mapping()

    def _hold_out(self, added: Flags, split: NDArray[np.int8], kept: Flags, hashes: Hashes) -> dict[str, int]:
        """Take added facts that valid or test asks for out of `kept`: they would give the answers away."""
        rows = np.flatnonzero(kept & (added | (split > 0)))
        rows = rows[np.argsort(added[rows], kind="stable")]
        held_out = rows[repeats(hashes[rows]) & added[rows]]
        kept[held_out] = False
        return {"facts": int((kept & added).sum()), "held_out": len(held_out)}

    def _across(self, split: NDArray[np.int8], kept: Flags, hashes: Hashes) -> dict[str, Any]:
        """Facts that stand in two given splits: counted, and by policy kept, dropped from the later one, or refused."""
        counts: dict[str, Any] = {}
        later_twin = np.zeros(len(split), dtype=np.bool_)
        for first, second in ((0, 1), (0, 2), (1, 2)):
            rows = np.flatnonzero(kept & ((split == first) | (split == second)))
            rows = rows[np.argsort(split[rows], kind="stable")]
            twin = repeats(hashes[rows])
            counts[f"{SPLITS[first]}_and_{SPLITS[second]}"] = int(twin.sum())
            later_twin[rows[twin]] = True
        if self.policy.across_splits == "error" and later_twin.any():
            raise DataError(
                f"in two splits at once: {plural(int(later_twin.sum()), 'fact')} ({counts}).",
                advice="Keep them with --across-splits keep, or drop the later ones with --across-splits drop.",
            )
        if self.policy.across_splits == "drop":
            kept[later_twin] = False
            counts["dropped"] = int(later_twin.sum())
        return {"rule": self.policy.across_splits, **counts}

    def _settled(self, split: NDArray[np.int8], kept: Flags, met: Vocabulary, report: dict[str, Any]) -> Assembly:
        """Give final ids to the names that are still used, and count those that train lacks."""
        if not kept.any():
            raise DataError("no fact is left: every one was removed.", advice="Loosen the rules that remove facts.")
        count = met.entity_count
        used = np.zeros((len(SPLITS), count + met.relation_count), dtype=np.bool_)  # by split, who is named there
        for rows, chunk in with_rows(self.store):
            owner, named = names_used(chunk, met)
            counts = kept[rows][owner]
            used[split[rows][owner][counts], named[counts]] = True
        of_entities, of_relations = used[:, :count], used[:, count:]
        used_entities, used_relations = np.any(of_entities, axis=0), np.any(of_relations, axis=0)
        report["missing_from_train"] = {
            "entities": int((used_entities & ~of_entities[0]).sum()),
            "relations": int((used_relations & ~of_relations[0]).sum()),
        }
        report["unused_entities"] = int((~used_entities).sum())
        report["unused_relations"] = int((~used_relations).sum())
        names = tuple(name for name, used in zip(met.entities, used_entities.tolist(), strict=True) if used)
        left = tuple(relation for relation, used in zip(met.relations, used_relations.tolist(), strict=True) if used)
        present = [name for index, name in enumerate(SPLITS) if bool((kept & (split == index)).any())]
        return Assembly(
            Vocabulary(names, left),
            tuple(self.details.get(name, Entity(name)) for name in names),
            tuple(present),
            report,
            self.store,
            split,
            kept,
            (np.cumsum(used_entities) - 1).astype(np.int32),
            (np.cumsum(used_relations) - 1).astype(np.int32),
        )


def with_new_splits(graph: KnowledgeGraph, rule: SplitRule) -> KnowledgeGraph:
    """The same facts and names in the splits that an import would draw. A fact that stood in two stands in one."""
    vocabulary, table = graph.vocabulary, graph.columns()
    prints = vocabulary.fingerprints
    table = table.where(~repeats(prints.facts(table)))
    groups = prints.parts(table, rule.group_by) if rule.group_by else prints.facts(table)
    split, moved = bring_into_train(draw(rule, groups), groups, lambda: [table], vocabulary)
    splits = {name: table.where(split == place) for place, name in enumerate(SPLITS) if bool((split == place).any())}
    importing = {**graph.manifest.importing, "split": rule.report(moved)}
    manifest = replace(graph.manifest, counts={}, files={}, importing=importing)
    return KnowledgeGraph(vocabulary, splits, graph.entities, manifest)
