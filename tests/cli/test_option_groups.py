"""A command that takes a group of options is, to typer, a command with each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from hynt.cli.options import option, with_option_groups


@dataclass(frozen=True)
class Drink:
    cups: Annotated[int, typer.Option("--cups", help="How many.")]
    milk: Annotated[bool, typer.Option("--milk")] = False


@with_option_groups
def brew(
    leaf: Annotated[str, typer.Argument(metavar="LEAF")], drink: Drink, sugar: Annotated[int, typer.Option()] = 0
) -> None:
    """Makes tea."""
    print(leaf, drink, sugar)


def test_a_group_is_filled_from_its_options():
    app = typer.Typer()
    app.command()(brew)
    done = CliRunner().invoke(app, ["assam", "--cups", "2", "--milk", "--sugar", "1"])
    assert done.output == "assam Drink(cups=2, milk=True) 1\n"
    told = CliRunner().invoke(app, ["--help"]).output
    assert "Makes tea." in told
    assert all(word in told for word in ("LEAF", "--cups", "How many.", "--milk", "--sugar"))


def test_an_option_without_default_is_required():
    app = typer.Typer()
    app.command()(brew)
    done = CliRunner().invoke(app, ["assam"])
    assert done.exit_code == 2
    assert "Missing option '--cups'" in done.output


@dataclass(frozen=True)
class Oven:
    degrees: int = option(..., "How hot.", min=50)
    with_steam: bool = option(False, "Moist air.")
    shelf: str = option("middle", "Where.", "--on", "-o")


@with_option_groups
def bake(oven: Oven, pieces: int = option(12, "How many.")) -> None:
    print(oven, pieces)


def test_an_option_is_called_as_its_parameter_unless_by_other_names():
    app = typer.Typer()
    app.command()(bake)
    done = CliRunner().invoke(app, ["--degrees", "180", "--with-steam", "-o", "top"])
    assert done.output == "Oven(degrees=180, with_steam=True, shelf='top') 12\n"
    assert (
        CliRunner().invoke(app, ["--degrees", "180"]).output
        == "Oven(degrees=180, with_steam=False, shelf='middle') 12\n"
    )
    assert "Missing option '--degrees'" in CliRunner().invoke(app, []).output
    assert "--no-with-steam" not in CliRunner().invoke(app, ["--help"]).output
