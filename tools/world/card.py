"""Prints the counts and the relation table of a built folder as Markdown, for the data card
`docs/background/world.md`.

python -m tools.world.card world-source
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from tools.world.splits import SPLITS


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def card(folder: Path) -> str:
    """Two tables: what the graph holds, and every relation with its uses, kind, unit and scale."""
    splits = {name: _lines(folder / f"{name}.jsonl") for name in SPLITS}
    facts = [fact for name in SPLITS for fact in splits[name]]
    relations = _lines(folder / "relations.jsonl")
    tails = Counter(fact["relation"] for fact in facts)
    uses = Counter(relation for fact in facts for relation, _ in fact["qualifiers"])
    numbers = {json.dumps(value) for fact in facts for value in _values(fact) if isinstance(value, dict)}
    qualified = sum(1 for fact in facts if fact["qualifiers"])
    longest = max(len(fact["qualifiers"]) for fact in facts)
    trained = {(fact["head"], fact["relation"]) for fact in splits["train"]}
    tested = [fact for fact in splits["test"] if isinstance(fact["tail"], dict)]
    series = sum((fact["head"], fact["relation"]) in trained for fact in tested)
    rows = [
        ("facts (train / valid / test)", f"{len(facts):,} ({' / '.join(f'{len(splits[name]):,}' for name in SPLITS)})"),
        ("with qualifiers", f"{qualified:,} ({qualified / len(facts):.0%})"),
        ("with three or more", f"{sum(1 for fact in facts if len(fact['qualifiers']) > 2):,} (at most {longest})"),
        ("entities", f"{len(_lines(folder / 'entities.jsonl')):,}"),
        ("distinct numbers and dates", f"{len(numbers):,}"),
        (
            "relations (with numbers or dates)",
            f"{len(relations)} ({sum(row['kind'] == 'number' for row in relations)})",
        ),
        ("tails: entities / numbers", _kinds(fact["tail"] for fact in facts)),
        ("qualifiers: entities / numbers", _kinds(value for fact in facts for _, value in fact["qualifiers"])),
        ("number tails in test", f"{len(tested):,}"),
        ("of these, head and relation also in train", f"{series:,}"),
    ]
    table = ["| what | how many |", "|---|---|", *(f"| {what} | {count} |" for what, count in rows), ""]
    table += ["| relation | as tail | as qualifier | unit | scale | what it says |", "|---|---:|---:|---|---|---|"]
    for row in relations:
        scale = row["scale"] if row["kind"] == "number" else ""
        counts = f"{tails[row['id']] or ''} | {uses[row['id']] or ''}"
        table.append(f"| {row['label']} | {counts} | {row['unit']} | {scale} | {row['description']} |")
    return "\n".join(table)


def _values(fact: dict[str, Any]) -> list[Any]:
    return [fact["tail"], *(value for _, value in fact["qualifiers"])]


def _kinds(values: Any) -> str:
    counts = Counter(isinstance(value, dict) for value in values)
    return f"{counts[False]:,} / {counts[True]:,}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the counts and relations of a built folder as Markdown.")
    parser.add_argument("folder", type=Path)
    print(card(parser.parse_args().folder))


if __name__ == "__main__":
    main()
