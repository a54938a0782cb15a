"""What `hynt create` says when a graph is made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hynt.cli.output import visible

if TYPE_CHECKING:
    from rich.console import Console

    from hynt.creation.building import CreationResult


def result_mapping(result: CreationResult, out: Path) -> dict[str, Any]:
    return {
        "graph": str(out),
        "counts": dict(result.manifest.counts),
        **result.manifest.importing,
        "rejected_lines": result.rejected,
        "rejects": None if result.rejects is None else str(result.rejects),
    }


def print_result(told: dict[str, Any], console: Console) -> None:
    counts = told["counts"]
    splits = ", ".join(f"{name} {counts[name]:,}" for name in ("train", "valid", "test") if name in counts)
    console.print(
        f"{visible(told['graph'])}: {counts['entities']:,} entities, {counts['relations']:,} relations "
        f"({counts['number_relations']:,} with numbers); facts: {splits}"
    )
    for name in ("lines", "facts", "qualifiers"):
        account = told[name]
        console.print(f"{name}: {account['read']:,} read = {account['kept']:,} kept", end="")
        for reason, number in sorted(account["dropped"].items(), key=lambda pair: (-pair[1], pair[0])):
            console.print(f" + {number:,} {reason}", end="")
        console.print()
    for leak in told.get("leakage", {}).get("relations", []):
        console.print(
            f"removed {visible(leak['removed'])}: {leak['kind']} of {visible(leak['kept'])}, "
            f"{leak['shared']:,} of {leak['pairs']:,} pairs shared"
        )
    unknown = told["units"]["not_convertible"]
    if unknown:
        console.print(f"units not in the table: {', '.join(map(visible, unknown))}")
    if told["rejects"]:
        console.print(f"{told['rejected_lines']:,} lines could not be read: see {visible(told['rejects'])}")
    statistics = told.get("statistics")
    if statistics:
        console.print(
            "statistics: " + ", ".join(f"{key.replace('_', ' ')} {value:,}" for key, value in statistics.items())
        )
    else:
        console.print(f"statistics: hynt data stats {visible(told['graph'])}")
