"""`hynt data`: list, check, import, count, show, export and split graphs."""

from __future__ import annotations

import typer

from hynt.cli.data.folders import clean, split
from hynt.cli.data.importing import check, export, import_source, merge
from hynt.cli.data.showing import list_known, show, stats

data = typer.Typer(help="Check, import, count, show, export, split and clean up graphs.", no_args_is_help=True)
data.command("list")(list_known)
data.command("check")(check)
data.command("import")(import_source)
data.command("merge")(merge)
data.command("stats")(stats)
data.command("show")(show)
data.command("export")(export)
data.command("split")(split)
data.command("clean")(clean)
