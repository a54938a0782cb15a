"""The `hynt` command: finds the verb, runs it, and turns every failure into a clear word and a documented exit code.

The codes stand in `docs/reference/exit-codes.md`. Verbs live in their own files and are imported when asked for; they
keep heavy imports inside their functions, so that `hynt --help` answers at once.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hynt import __version__, _let_threads_sleep
from hynt.cli.help import command_meant, offer_values, show_plain_help
from hynt.cli.options import name_options, offer_si, with_option_groups
from hynt.cli.output import wrapped
from hynt.errors import DataError, HyntError, UsageError
from hynt.names import advice_on
from hynt.progress import visible

VERBS = (
    "demo",
    "data",
    "create",
    "models",
    "train",
    "sweep",
    "evaluate",
    "ensemble",
    "compare",
    "predict",
    "complete",
    "audit",
    "trends",
    "update",
    "explain",
    "calibrate",
    "similar",
    "embeddings",
    "push",
    "pull",
    "export",
    "report",
    "serve",
    "mcp",
)
"""In the order that `hynt --help` lists them. Each is a function or a group in a module of its name, but for these."""

_SHARED_MODULES = {
    "ensemble": "train",
    "mcp": "serve",
    "calibrate": "evaluate",
    **dict.fromkeys(("models", "compare", "sweep"), "choosing"),
    **dict.fromkeys(("predict", "explain", "trends", "similar", "embeddings"), "asking"),
    **dict.fromkeys(("report", "export", "push", "pull"), "publishing"),
}

_COMPLETION_OPTIONS = ("install_completion", "show_completion")


class Verbs(TyperGroup):
    """A group that imports a verb's module only when the verb is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer's signature
        """The verbs, in the order of the table."""
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - typer's signature
        """The verb's command; an unknown verb is refused with the nearest one."""
        if cmd_name not in VERBS:
            raise UsageError(f"no such command {cmd_name!r}.", where="hynt", advice=advice_on(cmd_name, VERBS))
        verb = getattr(import_module(f"hynt.cli.{_SHARED_MODULES.get(cmd_name, cmd_name)}"), cmd_name)
        if not isinstance(verb, typer.Typer):
            function, verb = verb, typer.Typer()
            verb.command()(with_option_groups(function))
        command = typer.main.get_command(verb)
        command.name = cmd_name
        # typer takes each verb for a program of its own and offers to install its shell completion: `hynt` does that.
        command.params = [option for option in command.params if option.name not in _COMPLETION_OPTIONS]
        for one in (command, *getattr(command, "commands", {}).values()):
            for dress in (offer_si, name_options, offer_values, show_plain_help):
                dress(one)
        return command


app = typer.Typer(
    name="hynt",
    cls=Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"hynt {__version__}")
        raise typer.Exit


@app.callback()
def hynt(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Knowledge graphs whose facts carry qualifiers and numbers."""


def run(arguments: Sequence[str]) -> int:
    """Runs one command line and returns its exit code. Never raises: every failure is reported and has a code."""
    wants_json = "--json" in arguments
    try:
        whole = typer.main.get_command(app)
        show_plain_help(whole)
        code = whole.main(args=list(arguments), prog_name="hynt", standalone_mode=False)
    except SystemExit as leaving:
        return _left(leaving)
    except HyntError as error:
        report_error(error, wants_json=wants_json)
        return error.exit_code
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except Exception as error:  # the last line of defence: a bug is told in one line, not as a traceback
        if hasattr(error, "format_message"):  # typer's word on a command line that it does not understand
            return report_wrong_use(error, arguments, wants_json=wants_json)
        if os.environ.get("HYNT_DEBUG") == "1":
            raise
        refused = of_the_machine(error) if isinstance(error, OSError) else None
        if refused is not None:
            report_error(refused, wants_json=wants_json)
            return refused.exit_code
        report_bug(error, wants_json=wants_json)
        return EXIT_BUG
    if code == EXIT_INTERRUPTED:  # typer leaves with it, without a word
        report_interruption(wants_json=wants_json)
    return code or 0


def _left(leaving: SystemExit) -> int:
    """The exit code typer, or a verb, left with; what made typer leave is the context of its `SystemExit`."""
    if isinstance(leaving.__context__, BrokenPipeError):  # typer answers a closed pipe with 1, as if the job had failed
        silence_output()
        return EXIT_READER_GONE
    if isinstance(leaving.code, str):
        print(leaving.code, file=sys.stderr)
        return 1
    return leaving.code or 0


def main() -> None:
    """The entry point of the `hynt` script."""
    _let_threads_sleep()
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        silence_output()
        code = EXIT_READER_GONE
    sys.exit(code)


# How a failure is told: to a person on standard error, and with `--json` to a program on standard output as well.

EXIT_BUG = 70
EXIT_INTERRUPTED = 130
EXIT_READER_GONE = 141


def report_error(error: HyntError, *, wants_json: bool) -> None:
    """Says what happened, where, and what to do, each on its own line."""
    lines = [f"error: {_shown(error.what)}"]
    if error.where:
        lines.append(f"  where: {_shown(error.where)}")
    if error.advice:
        lines.append(f"  what to do: {_shown(error.advice)}")
    print(wrapped("\n".join(lines), sys.stderr), file=sys.stderr)
    if wants_json:
        _print_json(error.what, error.where, error.advice, error.exit_code)


def report_wrong_use(problem: Any, typed: Sequence[str], *, wants_json: bool) -> int:
    """What typer says of a wrong command line, in the words of every other failure; returns the exit code."""
    if type(problem).__name__ == "NoArgsIsHelpError":
        typer.echo(problem.ctx.get_help(), err=True)
    else:
        what = problem.format_message().replace("Value error, ", "")
        command = problem.ctx.command_path if getattr(problem, "ctx", None) else "hynt"
        line = command_meant(problem.ctx, typed) if what.startswith(("Missing", "Got unexpected extra")) else ""
        what = re.sub(r"^Got unexpected extra argument(?:s|\(s\))? \((.*)\)\.?$", r"unexpected words: \1.", what)
        told = command if line.startswith(command) else " ".join(line.split()[:2])  # another verb was meant
        advice = f"Say {line}; {told} --help tells the rest." if line else f"Run {command} --help."
        error = UsageError(what[:1].lower() + what[1:], where=command, advice=advice)
        report_error(error, wants_json=wants_json)
    return UsageError.exit_code


def report_bug(error: Exception, *, wants_json: bool) -> None:
    """One line for a failure that hynt did not foresee."""
    what = f"this is a bug in hynt: {type(error).__name__}: {error}".splitlines()[0]
    advice = "Please report it with the output of the same command run with HYNT_DEBUG=1."
    print(f"error: {what} ({advice})", file=sys.stderr)
    if wants_json:
        _print_json(what, "", advice, EXIT_BUG)


def report_interruption(*, wants_json: bool) -> None:
    """Ctrl-C, where the verb has nothing to add."""
    what = "interrupted: nothing half-written is left"
    print(what, file=sys.stderr)
    if wants_json:
        _print_json(what, "", "", EXIT_INTERRUPTED)


def of_the_machine(error: OSError) -> HyntError | None:
    """What the machine refused: a full disk or a missing right is no bug of hynt. None: it may be one."""
    if error.errno not in _REFUSALS:
        return None
    what = f"the machine refused: {(error.strerror or str(error)).lower()}."
    where = "" if error.filename is None else os.fsdecode(error.filename)
    return DataError(what, where=where, advice="Check the path, its rights, and the room there.")


_REFUSALS = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EFBIG,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENAMETOOLONG,
        errno.ELOOP,
        errno.ESTALE,
    }
)


def _shown(text: str) -> str:
    """Text that may quote data, without anything that a terminal would obey; line ends of our own stay."""
    return "\n".join(visible(line) for line in text.split("\n"))


def _print_json(what: str, where: str, advice: str, exit_code: int) -> None:
    print(json.dumps({"error": {"what": what, "where": where, "advice": advice, "exit_code": exit_code}}))


def silence_output() -> None:
    """Points standard output nowhere, so that Python's own flush at the end does not complain about a closed pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
