"""The files of a comparison: the whole of it, its tables as a page, and the picture where it can be drawn."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hynt.comparison.table import cost_table, markdown, minutes_text, quality_table
from hynt.files import write_whole


def write_comparison(out: Path, result: Mapping[str, Any]) -> list[str]:
    """Writes them all, and says which they are."""
    write_whole(out / "comparison.json", (json.dumps(result, ensure_ascii=False, indent=1) + "\n").encode())
    page = f"{markdown(quality_table(result))}\n{markdown(cost_table(result))}"
    write_whole(out / "comparison.md", page.encode())
    files = ["comparison.json", "comparison.md"]
    if find_spec("matplotlib") is not None and result["rows"]:
        from hynt.comparison.table import compare_figure
        from hynt.reporting.chart_style import picture

        time_of = "processor time" if result["clock"] == "processor" else "training"
        title = f"{result['graph'] or 'the graph'}: {minutes_text(result['minutes_per_model'])} of {time_of} each"
        for suffix in (".png", ".svg"):
            write_whole(out / f"comparison{suffix}", picture(compare_figure(result, title), suffix))
            files.append(f"comparison{suffix}")
    return [str(out / name) for name in files]
