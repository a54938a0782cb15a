"""`hynt data`: list, check, import, count, show, export and split graphs."""

from __future__ import annotations

from collections.abc import Callable

import typer

from hynt.cli.data.folders import clean, split
from hynt.cli.data.importing import check, export, import_source, merge
from hynt.cli.data.showing import list_known, show, stats
from hynt.cli.options import with_option_groups

data = typer.Typer(help="Check, import, count, show, export, split and clean up graphs.", no_args_is_help=True)
_VERBS: dict[str, Callable[..., None]] = {
    "list": list_known,
    "check": check,
    "import": import_source,
    "merge": merge,
    "stats": stats,
    "show": show,
    "export": export,
    "split": split,
    "clean": clean,
}
for _name, _verb in _VERBS.items():
    data.command(_name)(with_option_groups(_verb))
