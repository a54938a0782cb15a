"""How a failure is told: to a person on standard error, and with `--json` to a program on standard output as well."""

from __future__ import annotations

import errno
import json
import os
import sys
from typing import Any

from hynt.cli.output import visible
from hynt.errors import DataError, HyntError, UsageError

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
    print("\n".join(lines), file=sys.stderr)
    if wants_json:
        _print_json(error.what, error.where, error.advice, error.exit_code)


def report_wrong_use(problem: Any, *, wants_json: bool) -> int:
    """What typer says of a wrong command line, in the words of every other failure; returns the exit code."""
    if type(problem).__name__ != "NoArgsIsHelpError":  # the help that stands for it has been printed
        what = problem.format_message().replace("Value error, ", "")
        command = problem.ctx.command_path if getattr(problem, "ctx", None) else "hynt"
        error = UsageError(what[:1].lower() + what[1:], where=command, advice=f"Run {command} --help.")
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
    """What the machine refused: a full disk or a missing right is nobody's bug. None: it may well be one."""
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
