"""The commands and their options; what they do lives in a file of its own each."""

from __future__ import annotations

import os
import sys
from importlib import metadata
from pathlib import Path
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
    run: Annotated[bool, typer.Option("--run", help="Also run the page's example, and show what it raises.")] = False,
) -> None:
    """Print the page of an error: what it means, what to do, and a program that raises it."""
    if code is None:
        typer.echo(explain_command.listing())
        return
    try:
        typer.echo(explain_command.page(code, coloured=sys.stdout.isatty() and "NO_COLOR" not in os.environ))
        if run:
            typer.echo(f"\nIt raises:\n\n{explain_command.run_example(code)}")
    except explain_command.UnknownErrorCode as error:
        typer.echo(f"{error.problem}\nhint: {error.hint}", err=True)
        raise typer.Exit(1) from None


@app.command()
def show(
    file: Annotated[str, typer.Argument(help="FILE or FILE:NAME, a Python file and a program in it.")],
    stage: Annotated[
        list[str] | None,
        typer.Option("--stage", "-s", help="Only this stage (repeatable): start, a pass, last or all."),
    ] = None,
    diff: Annotated[
        bool, typer.Option("--diff", "-d", help="After the first stage, only the lines that changed.")
    ] = False,
    target: Annotated[str, typer.Option("--target", "-t", help="What to lower for.")] = "llvm",
    llvm: Annotated[bool, typer.Option("--llvm", help="Print the optimized LLVM text instead.")] = False,
    asm: Annotated[bool, typer.Option("--asm", help="Print the assembly instead.")] = False,
    html: Annotated[
        str | None, typer.Option("--html", metavar="OUT", help="Write a page with every stage to OUT.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    stages: Annotated[bool, typer.Option("--stages", help="Only list the stages of lowering.")] = False,
) -> None:
    """Show the programs a Python file defines, and what each lowering pass makes of them.

    Without --stage, the program as written and every stage that changed it. The file is executed, except for its
    `if __name__ == "__main__":` part.
    """
    from loopwright.cli import show as command
    from loopwright.cli.failures import shown
    from loopwright.cli.programs import choose, load_file, split_name

    with shown():
        names = command.stage_names(target)
        path, wanted = split_name(file)
        programs = choose(load_file(path), wanted, path)
        if stages:
            typer.echo("\n".join(names))
            return
        if llvm or asm:
            for program in programs:
                typer.echo(command.native_text(program.module, target, "ll" if llvm else "asm"))
            return
        result = []
        for program in programs:
            every = list(command.lowering_stages(program.module, target))
            wish = stage or (["all"] if html or as_json else [])
            result.append((program, command.chosen_stages(every, wish, names)))
        if html is not None:
            Path(html).write_text(command.as_html(path, result), encoding="utf-8")
            typer.echo(f"wrote {html}")
        elif as_json:
            typer.echo(command.as_json(result))
        else:
            coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
            for program, chosen in result:
                typer.echo(command.as_text(program, chosen, diff, coloured, title=len(result) > 1))


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def run(
    file: Annotated[str, typer.Argument(help="FILE or FILE:NAME, a Python file and a program in it.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="For a script, its arguments; for programs, sizes such as n=128.")
    ] = None,
    script: Annotated[
        bool, typer.Option("--script", help="Run FILE as a script, also when it only defines programs.")
    ] = False,
    target: Annotated[str, typer.Option("--target", "-t", help="What to compile programs for.")] = "llvm",
    seed: Annotated[int, typer.Option("--seed", help="Of the random inputs.")] = 0,
    repeat: Annotated[int, typer.Option("--repeat", help="How many timed calls.", min=1)] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Run a Python file with our rendering of errors, or the programs it defines on random inputs.

    A file that does something is a script: everything after FILE is its own. A file that only defines programs, or
    FILE:NAME, is compiled, called with random inputs made from the parameters, timed, and checked against the
    evaluator where that is quick. Options come before FILE.
    """
    from loopwright.cli import run as command
    from loopwright.cli.failures import shown
    from loopwright.cli.programs import choose, load_file, split_name

    with shown():
        path, wanted = split_name(file)
        if script or (wanted is None and not command.only_defines(path)):
            command.run_script(path, arguments or [])
            return
        programs = choose(load_file(path), wanted, path)
        sizes = command.read_sizes(arguments or [])
        results = [command.run_program(program, target, sizes, seed, repeat) for program in programs]
        typer.echo(command.as_json(results) if as_json else "\n".join([command.as_text(one) for one in results]))


cache_app = typer.Typer(
    no_args_is_help=True, help="What is kept of compiled programs: look at it, shrink it, clear it."
)
app.add_typer(cache_app, name="cache")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@cache_app.command("info")
def cache_info(as_json: AsJson = False) -> None:
    """Where the cache is, what it holds, and how large it may grow."""
    from loopwright.cli import cache as command
    from loopwright.cli.failures import shown

    with shown():
        typer.echo(command.info(as_json))


@cache_app.command("list")
def cache_list(as_json: AsJson = False) -> None:
    """Every compiled module, the one used last first."""
    from loopwright.cli import cache as command

    typer.echo(command.listing(as_json))


@cache_app.command("clear")
def cache_clear(as_json: AsJson = False) -> None:
    """Remove everything."""
    from loopwright.cli import cache as command

    typer.echo(command.clear(as_json))


@cache_app.command("prune")
def cache_prune(
    size: Annotated[
        str | None,
        typer.Option("--size", "-s", help="What may stay, such as 200MB; else LOOPWRIGHT_CACHE_SIZE or 1GiB."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Remove what was not used for longest, until the rest fits the limit."""
    from loopwright.cli import cache as command
    from loopwright.cli.failures import shown

    with shown():
        typer.echo(command.prune(size, as_json))


@cache_app.command("verify")
def cache_verify(
    remove: Annotated[bool, typer.Option("--remove", help="Also remove the damaged entries.")] = False,
    as_json: AsJson = False,
) -> None:
    """Read every entry and check it against its checksum; status 1 when one is damaged."""
    from loopwright.cli import cache as command

    text, damaged = command.verify(remove, as_json)
    typer.echo(text)
    if damaged:
        raise typer.Exit(1)


def main() -> None:
    """Run the command line."""
    app()
