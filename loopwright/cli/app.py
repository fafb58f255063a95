"""The commands and their options; what they do lives in a file of its own each."""

from __future__ import annotations

import json
from importlib import metadata
from typing import Annotated

import typer

from loopwright.cli import doctor as doctor_command
from loopwright.cli import explain as explain_command
from loopwright.cli import model_commands, tune_commands
from loopwright.cli.failures import shown
from loopwright.cli.guessed_commands import Commands
from loopwright.display import progress
from loopwright.display.screen import has_colours

Autosched = Annotated[bool, typer.Option("--autosched", help="Schedule the programs by rule first.")]
AsJson = model_commands.AsJson
_MODELS = "Models"

app = typer.Typer(
    name="loopwright",
    cls=Commands,
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
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """A tensor compiler you can read."""
    if quiet:
        progress.hide()
    else:
        progress.show()


@app.command()
def doctor(
    as_json: AsJson = False,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure this machine's core, caches and memory, and store the result.")
    ] = False,
) -> None:
    """Check this machine: CPU, caches, compilers, packages, and what is missing."""
    facts = doctor_command.examine(version())
    if measure:
        facts += doctor_command.measure()
    if as_json:
        typer.echo(doctor_command.as_json(facts))
    else:
        doctor_command.as_sheet(facts).show()
    if any(fact.state == "broken" for fact in facts):
        raise typer.Exit(1)


@app.command()
def explain(
    code: Annotated[
        str | None,
        typer.Argument(help="An error's code or name, such as LW0113 or ShapeMismatch; without it, all are listed."),
    ] = None,
    run: Annotated[bool, typer.Option("--run", help="Also run the page's example, and show what it raises.")] = False,
    as_json: AsJson = False,
) -> None:
    """Explain an error: what it means, how to fix it, and a program that raises it."""
    with shown(as_json):
        if code is None:
            text = explain_command.listing_json() if as_json else explain_command.listing()
        elif as_json:
            text = explain_command.page_json(code, run)
        else:
            text = explain_command.page(code, coloured=has_colours())
            text += f"\n\nIt raises:\n\n{explain_command.run_example(code)}" if run else ""
        typer.echo(text)


@app.command()
def targets(
    target: Annotated[str | None, typer.Argument(help='A target, such as "llvm -mcpu=core-avx2", or a tag.')] = None,
    as_json: AsJson = False,
) -> None:
    """List the kinds and tags of targets; or show the attributes of one target."""
    from loopwright.cli import targets as command

    with shown(as_json):
        typer.echo(command.listing(as_json) if target is None else command.page(target, as_json))


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
    target: Annotated[str, typer.Option("--target", "-t", help="The target to lower for.")] = "llvm",
    autosched: Autosched = False,
    llvm: Annotated[bool, typer.Option("--llvm", help="Print the optimized LLVM IR instead.")] = False,
    asm: Annotated[bool, typer.Option("--asm", help="Print the assembly instead.")] = False,
    html: Annotated[
        str | None, typer.Option("--html", metavar="OUT", help="Write a page with every stage to OUT.")
    ] = None,
    as_json: AsJson = False,
    stages: Annotated[bool, typer.Option("--stages", help="Only list the stages of lowering.")] = False,
) -> None:
    """Show the programs a Python file defines, and the result of each lowering pass.

    Without --stage, the program as written and every stage that changed it. With --autosched, the program as the rules
    schedule it, and why. The file is executed, except for its `if __name__ == "__main__":` part.
    """
    from loopwright.cli import show as command
    from loopwright.cli.programs import choose, load_file, scheduled, split_name
    from loopwright.runtime.together import require_writable, write_text

    with shown(as_json):
        if html is not None:
            require_writable(html)
        names = command.stage_names(target)
        path, wanted = split_name(file)
        programs = choose(load_file(path), wanted, path)
        if stages:
            typer.echo(json.dumps(names, indent=2) if as_json else "\n".join(names))
            return
        if autosched:
            programs = [scheduled(program, target) for program in programs]
        if llvm or asm:
            form = "ll" if llvm else "asm"
            texts = [(program, command.native_text(program.module, target, form)) for program in programs]
            typer.echo(command.native_json(texts, form) if as_json else "\n".join([text for _, text in texts]))
            return
        result = []
        for program in programs:
            every = command.lowering_stages(program.module, target)
            wish = stage or (["all"] if html or as_json else ["start"] if autosched and not diff else [])
            result.append((program, command.chosen_stages(every, wish, names)))
        if html is not None:
            write_text(html, command.as_html(path, result))
            typer.echo(json.dumps({"wrote": html}, indent=2) if as_json else f"wrote {html}")
        elif as_json:
            typer.echo(command.as_json(result))
        else:
            for program, chosen in result:
                typer.echo(command.as_text(program, chosen, diff, has_colours(), title=len(result) > 1))


app.command("compile")(model_commands.compile_command)
app.command("inspect")(model_commands.inspect_command)
app.command("tune")(tune_commands.tune_command)
app.add_typer(tune_commands.db_app, name="db")


@app.command(cls=model_commands.FileThenOptions, context_settings={"allow_interspersed_args": False})
def run(
    file: Annotated[str, typer.Argument(help="A Python file (FILE, or FILE:NAME for a program in it), or a model.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="For a script, its arguments; else sizes such as n=128.")
    ] = None,
    script: Annotated[
        bool, typer.Option("--script", help="Run FILE as a script, also when it only defines programs.")
    ] = False,
    target: Annotated[str, typer.Option("--target", "-t", help="The target to compile for.")] = "llvm",
    autosched: Autosched = False,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random inputs.", min=0)] = 0,
    repeat: Annotated[int, typer.Option("--repeat", help="Number of timed samples.", min=1)] = 5,
    inputs: Annotated[
        str | None, typer.Option("--inputs", "-i", metavar="NPZ", help="Read inputs from it.", rich_help_panel=_MODELS)
    ] = None,
    outputs: Annotated[
        str | None, typer.Option("--outputs", "-o", metavar="NPZ", help="Write outputs to it.", rich_help_panel=_MODELS)
    ] = None,
    fill_mode: Annotated[
        str, typer.Option("--fill-mode", help="For other inputs: random, zeros, ones.", rich_help_panel=_MODELS)
    ] = "random",
    print_time: Annotated[
        bool, typer.Option("--print-time", help="Time it: mean, median, max, min, std.", rich_help_panel=_MODELS)
    ] = False,
    number: Annotated[int, typer.Option("--number", help="Calls per sample.", min=1, rich_help_panel=_MODELS)] = 1,
    end_to_end: Annotated[
        bool, typer.Option("--end-to-end", help="Include copying inputs.", rich_help_panel=_MODELS)
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Time and bottleneck of each layer.", rich_help_panel=_MODELS)
    ] = False,
    print_top: Annotated[
        int | None, typer.Option("--print-top", help="Print the N largest outputs.", min=1, rich_help_panel=_MODELS)
    ] = None,
    device: Annotated[str, typer.Option("--device", help="The device: cpu.", rich_help_panel=_MODELS)] = "cpu",
    input_shapes: model_commands.Shapes = None,
    model_format: model_commands.Format = None,
    as_json: AsJson = False,
) -> None:
    """Run a Python script (with our error messages), the programs that a file defines, or a model.

    A file that does more than define programs runs as a script, and gets everything after FILE as its arguments. A
    file that only defines programs, or FILE:NAME, is compiled, called with random inputs that fit its parameters,
    timed, and, if it is small, compared with the evaluator. A model (.onnx, …), or a package or library compiled from
    one, is called with the arrays of --inputs, and random ones for the rest. Options for `run` come before a script;
    otherwise before or after FILE.
    """
    from loopwright.cli import run as command
    from loopwright.cli.model_files import is_model_file
    from loopwright.cli.programs import choose, load_file, split_name

    with shown(as_json):
        if model_format is not None or is_model_file(file):
            model_commands.require_device(device)
            model_commands.run_model_command(
                file,
                arguments or [],
                target,
                as_json,
                inputs=inputs,
                outputs=outputs,
                fill_mode=fill_mode,
                print_time=print_time,
                repeat=repeat,
                number=number,
                end_to_end=end_to_end,
                profile=profile,
                top=print_top,
                seed=seed,
                input_shapes=input_shapes,
                model_format=model_format,
            )
            return
        path, wanted = split_name(file)
        if script or (wanted is None and not command.only_defines(path)):
            command.run_script(path, arguments or [], autosched)
            return
        programs = choose(load_file(path), wanted, path)
        sizes = command.read_sizes(arguments or [])
        results = []
        with progress.task("run", len(programs)) as task:
            for program in programs:
                task.now(program.name)
                results.append(command.run_program(program, target, sizes, seed, repeat, autosched))
                task.advance()
        typer.echo(command.as_json(results) if as_json else "\n".join([command.as_text(one) for one in results]))


cache_app = typer.Typer(no_args_is_help=True, help="The compile cache: inspect it, shrink it, clear it.")
app.add_typer(cache_app, name="cache")


@cache_app.command("info")
def cache_info(as_json: AsJson = False) -> None:
    """Where the cache is, what it holds, and how large it may grow."""
    from loopwright.cli import cache as command

    with shown(as_json):
        typer.echo(command.info(as_json))


@cache_app.command("list")
def cache_list(as_json: AsJson = False) -> None:
    """List the compiled modules, most recently used first."""
    from loopwright.cli import cache as command

    with shown(as_json):
        typer.echo(command.listing(as_json))


@cache_app.command("clear")
def cache_clear(as_json: AsJson = False) -> None:
    """Remove everything."""
    from loopwright.cli import cache as command

    with shown(as_json):
        typer.echo(command.clear(as_json))


@cache_app.command("prune")
def cache_prune(
    size: Annotated[
        str | None,
        typer.Option("--size", "-s", help="The limit, such as 200MB; by default LOOPWRIGHT_CACHE_SIZE or 1GiB."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Remove the least recently used entries until the rest fits the limit."""
    from loopwright.cli import cache as command

    with shown(as_json):
        typer.echo(command.prune(size, as_json))


@cache_app.command("verify")
def cache_verify(
    remove: Annotated[bool, typer.Option("--remove", help="Also remove the damaged entries.")] = False,
    as_json: AsJson = False,
) -> None:
    """Read every entry and check it against its checksum; status 1 when one is damaged."""
    from loopwright.cli import cache as command

    with shown(as_json):
        text, damaged = command.verify(remove, as_json)
        typer.echo(text)
        if damaged:
            raise typer.Exit(1)


def main() -> None:
    """Run the command line."""
    app()
