"""How a run was measured, for the report and for the page of the service. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hynt.reporting.page_html import Content, Markup, element
from hynt.reporting.page_tables import definitions, section


def protocol_section(measured: Mapping[str, Any]) -> Markup:
    """What a number needs beside it to be compared with another."""
    protocol = measured["evaluation"]["protocol"]
    reads, now = int(protocol["reads_of_split"]), int(measured.get("reads_now", protocol["reads_of_split"]))
    pairs: list[tuple[str, Content]] = [
        ("split asked", str(protocol["split"])),
        (
            "times this split was read",
            f"{now:,}" if now == reads else f"{now:,}; these figures are of reading {reads:,}",
        ),
        ("trained on", str(protocol["trained_on"])),
        ("numbers scaled on", str(protocol["scaled_on"])),
        ("known answers left out", str(protocol["filter"]).replace("+", ", ")),
        ("ties", str(protocol["ties"])),
        (
            "candidates",
            f"{protocol['candidates']['entities']:,} entities, {protocol['candidates']['relations']:,} relations",
        ),
        ("number scale", str(protocol["number_scale"])),
        ("precision", str(protocol["precision"])),
        ("seed", str(protocol["seed"])),
        ("epoch", str(protocol["epoch"])),
        ("hynt", str(protocol["hynt_version"])),
    ]
    lead = (
        "Every component of every fact of the split is hidden in turn and asked for. An answer’s rank is one more than "
        "the number of other candidates that score higher, plus half of those that score the same."
    )
    return section("protocol", "How it was measured", element("p", lead, class_="lead"), definitions(pairs))
