"""The commands and their options; what they do lives in a file of its own each."""

from __future__ import annotations

from importlib import metadata
from typing import Annotated

import typer
from rich.console import Console

from loopwright.cli import doctor as doctor_command
from loopwright.cli import explain as explain_command

app = typer.Typer(
    name="loopwright",
    help="A tensor compiler you can read.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def version() -> str:
    """The installed version, or a word that says it is not installed."""
    try:
        return metadata.version("loopwright")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"loopwright {version()}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """A tensor compiler you can read."""


@app.command()
def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False) -> None:
    """Show what this machine is, what was found on it, and what follows for compiled code."""
    facts = doctor_command.examine(version())
    if as_json:
        typer.echo(doctor_command.as_json(facts))
    else:
        Console().print(doctor_command.as_table(facts))
    if any(fact.state == "broken" for fact in facts):
        raise typer.Exit(1)


@app.command()
def explain(
    code: Annotated[str | None, typer.Argument(help="An error's code, such as LW0113; none lists them all.")] = None,
) -> None:
    """Print the page of an error: what it means and what to do."""
    if code is None:
        typer.echo(explain_command.listing())
        return
    try:
        typer.echo(explain_command.page(code))
    except explain_command.UnknownErrorCode as error:
        typer.echo(f"{error.problem}\nhint: {error.hint}", err=True)
        raise typer.Exit(1) from None


def main() -> None:
    """Run the command line."""
    app()
