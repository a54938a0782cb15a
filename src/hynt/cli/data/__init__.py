"""`hynt data`: list, check, import, count, show and export graphs. One file per command."""

from __future__ import annotations

import typer

from hynt.cli.data.checking import check
from hynt.cli.data.exporting import export
from hynt.cli.data.importing import import_source
from hynt.cli.data.listing import list_known
from hynt.cli.data.showing import show
from hynt.cli.data.statistics import stats

app = typer.Typer(
    name="data",
    help="Check, import, count, show and export graphs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("list")(list_known)
app.command("check")(check)
app.command("import")(import_source)
app.command("stats")(stats)
app.command("show")(show)
app.command("export")(export)
