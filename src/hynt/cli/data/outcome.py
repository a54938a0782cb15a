"""What a check or an import found, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hynt.cli.output import note_to_person, visible

if TYPE_CHECKING:
    from rich.console import Console

    from hynt.formats.report import ReadReport


def problems_of(report: ReadReport) -> dict[str, Any]:
    """The first rejected records, the first odd ones that were kept, and hints, as plain values."""
    return {
        "problems": [problem._asdict() for problem in report.problems],
        "notes": [note._asdict() for note in report.notes],
        "hints": list(dict.fromkeys(report.hints)),
    }


def tell_hints(result: Mapping[str, Any]) -> None:
    """What the user may have forgotten to say, on standard error."""
    for hint in result["hints"]:
        note_to_person(hint)


def tell_problems(result: Mapping[str, Any], out: Console) -> None:
    """The first problems with place, reason and advice, a count per reason, and the odd things that were kept."""
    rejected: dict[str, int] = result["rejected"]
    if rejected:
        _tell_list(result["problems"], out)
        if sum(rejected.values()) > len(result["problems"]):
            out.print(f"… these are the first {len(result['problems'])}.")
        out.print("By reason: " + _counted(rejected))
    noted: dict[str, int] = result["noted"]
    if noted:
        out.print("Odd, but kept (--strict refuses it): " + _counted(noted))
        _tell_list(result["notes"][:3], out)


def tell_outcome(outcome: Mapping[str, Any], out: Console) -> None:
    """What the graph holds, and what was done or left on the way there."""
    counts = outcome["counts"]
    splits = {split: counts[split] for split in ("train", "valid", "test") if split in counts}
    listed = ", ".join(f"{split} {count:,}" for split, count in splits.items())
    out.print(f"{plural(sum(splits.values()), 'fact')}: {listed}.")
    out.print(
        f"{plural(counts['entities'], 'entity', 'entities')}; {plural(counts['relations'], 'relation')}, "
        f"{counts['number_relations']:,} of them with numbers."
    )
    out.print(f"{plural(outcome['duplicates'], 'duplicate')} dropped.")
    made = outcome["split"]
    if made["rule"] != "given":
        shares = ":".join(f"{share:g}" for share in made["shares"])
        grouped = f", facts with the same {' and '.join(made['group_by'])} together" if made["group_by"] else ""
        out.print(f"Splits made by content, {shares} with seed {made['seed']}{grouped}.")
        if made["brought_into_train"]:
            moved = plural(made["brought_into_train"], "fact")
            out.print(f"{moved} went to train, so that it has every entity and relation.")
    across = outcome.get("across_splits")
    if across:
        pairs = {key.replace("_", " "): count for key, count in across.items() if "_and_" in key}
        dropped = f"; {across['dropped']:,} dropped from the later one" if "dropped" in across else ""
        if any(pairs.values()):
            out.print(f"Facts in two splits: {_counted(pairs)}{dropped}.")
    lacking = outcome["missing_from_train"]
    if any(lacking.values()):
        out.print(f"Train lacks {lacking['entities']:,} entities and {lacking['relations']:,} relations of the others.")
    _tell_removals(outcome, out)


def _tell_removals(outcome: Mapping[str, Any], out: Console) -> None:
    if "outliers" in outcome:
        out.print(f"{plural(outcome['outliers']['removed_facts'], 'fact')} removed by the outlier rules:")
        for rule in outcome["outliers"]["rules"]:
            out.print(f"  {rule['removed_facts']:,}  {visible(rule['rule'])}")
    if "leakage" in outcome:
        if outcome["leakage"]["relations"]:
            removed = plural(outcome["leakage"]["removed_facts"], "fact")
            out.print(f"{removed} removed because the relation gives another away:")
            _tell_leaks(outcome["leakage"]["relations"], out)
        else:
            out.print("No relation gives another away.")
    left = outcome.get("leakage_left")
    if left:
        out.print("Relations that give others away (--remove-leakage removes the first of each two):")
        _tell_leaks(left, out)


def _tell_leaks(leaks: list[dict[str, Any]], out: Console) -> None:
    for leak in leaks:
        kind = "an inverse" if leak["kind"] == "inverse" else "a near-duplicate"
        out.print(
            f"  {visible(leak['removed'])} is {kind} of {visible(leak['kept'])}: {leak['shared']:,} shared pairs "
            f"of {leak['pairs']:,} and {leak['kept_pairs']:,} (overlap {leak['overlap']:.2f})"
        )


def _tell_list(problems: list[dict[str, str]], out: Console) -> None:
    for problem in problems:
        out.print(f"{visible(problem['where'])}: {problem['reason']}: {visible(problem['what'])}", soft_wrap=True)
        if problem["advice"]:
            out.print(f"  what to do: {visible(problem['advice'])}", soft_wrap=True)


def plural(count: int, one: str, many: str = "") -> str:
    """`1 fact`, `2 facts`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {count:,}" for reason, count in sorted(counts.items(), key=lambda item: -item[1]))
