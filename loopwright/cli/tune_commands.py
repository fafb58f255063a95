"""tune_commands: `tune` and `db` with their options; what they do lives in `tune.py`, `tune_table.py` and `db.py`."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loopwright.cli import model_commands
from loopwright.cli.failures import shown
from loopwright.cli.model_commands import AsJson
from loopwright.display import progress

if TYPE_CHECKING:
    from loopwright.cli.tune import Tuning, Wishes
    from loopwright.tune import Database

_MODELS = "Models"
_SEARCH = "The search"

Records = Annotated[
    str | None,
    typer.Option("--database", "-d", help="A file or a URL; by default tuning.db in the cache folder."),
]


def tune_command(
    context: typer.Context,
    file: Annotated[str, typer.Argument(help="A model (.onnx, .pt2, .relay), or FILE or FILE:NAME, a Python file.")],
    minutes: Annotated[
        float | None,
        typer.Option("--minutes", "-m", help="Time to spend; by default 10 for a model, 1 for programs."),
    ] = None,
    trials: Annotated[
        int | None, typer.Option("--trials", help="Measurements to spend, of all tasks together.")
    ] = None,
    database: Records = None,
    threads: Annotated[
        int | None, typer.Option("--threads", help="Threads that a kernel runs on; all by default.", min=1)
    ] = None,
    target: model_commands.Target = "llvm",
    cache: Annotated[
        str,
        typer.Option("--cache", help="Before each call: warm, model (no L2), cold, or auto.", rich_help_panel=_SEARCH),
    ] = "auto",
    seed: Annotated[int, typer.Option("--seed", help="Of all that is random.", min=0, rich_help_panel=_SEARCH)] = 0,
    model: Annotated[
        str, typer.Option("--model", help="Of cost: auto, xgb, ridge, prior, random.", rich_help_panel=_SEARCH)
    ] = "auto",
    strategy: Annotated[
        str, typer.Option("--strategy", help="evolutionary, best-first or random.", rich_help_panel=_SEARCH)
    ] = "evolutionary",
    scheduler: Annotated[
        str, typer.Option("--scheduler", help="Whose turn it is: gain or round-robin.", rich_help_panel=_SEARCH)
    ] = "gain",
    report: Annotated[
        str | None, typer.Option("--report", metavar="HTML", help="Also write a page: curves, choices, roofline.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Then compile the model, as `compile -o` does.", rich_help_panel=_MODELS),
    ] = None,
    input_shapes: Annotated[
        str | None,
        typer.Option("--input-shapes", help='Shapes of inputs: "x:[1,3,224,224]".', rich_help_panel=_MODELS),
    ] = None,
    model_format: Annotated[
        str | None, typer.Option("--model-format", help="onnx, pytorch or relay.", rich_help_panel=_MODELS)
    ] = None,
    winograd: Annotated[
        bool,
        typer.Option(
            "--winograd/--no-winograd",
            help="Allow winograd convolutions, which round differently.",
            rich_help_panel=_MODELS,
        ),
    ] = True,
    quiet: model_commands.Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Search for schedules that are faster than those of the rules, and keep what was measured in a database.

    It begins with the rule's own schedule of each kernel, and keeps only what won races against it.
    Ctrl-C ends it; the same command goes on from there. `compile --database` takes what was found.
    """
    from loopwright.cli import tune as command

    is_watched = not (quiet or context.find_root().params.get("quiet"))
    if not is_watched:
        progress.hide()
    wishes = command.Wishes(trials, minutes, target, threads, cache, seed, model, strategy, scheduler, winograd)
    try:
        with shown(as_json):
            tuning, wrote = _tuned(file, wishes, database, report, output, input_shapes, model_format, is_watched)
            if as_json:
                typer.echo(command.as_json(tuning, wrote))
            elif not quiet:
                typer.echo(command.as_text(tuning, wrote))
            if tuning.is_interrupted:
                raise typer.Exit(command.INTERRUPTED)
    except KeyboardInterrupt:
        typer.echo(command.GO_ON, err=True)
        raise typer.Exit(command.INTERRUPTED) from None


def _tuned(
    file: str,
    wishes: Wishes,
    database: str | None,
    report: str | None,
    output: str | None,
    input_shapes: str | None,
    model_format: str | None,
    is_watched: bool,
) -> tuple[Tuning, list[str]]:
    """The search, and the files that were written."""
    from loopwright.cli import tune as command
    from loopwright.cli.compile import read_output
    from loopwright.cli.compiled_model import BadOption, Options
    from loopwright.cli.model_files import read_model, read_shapes
    from loopwright.cli.tune_table import watcher
    from loopwright.frontends.tuning import on_threads
    from loopwright.runtime.c_header import identifier
    from loopwright.runtime.together import require_writable

    is_model = command.is_model(file, model_format)
    # Everything that can be refused is refused before the work begins.
    budget = command.budget_of(wishes, is_model)
    command.check(wishes)
    if not is_model and (output is not None or input_shapes is not None):
        option, given = ("--output", output) if output is not None else ("--input-shapes", input_shapes)
        raise BadOption(option, str(given), f"it is for models, and {file} is none", "leave it out")
    for path in (report, output):
        if path is not None:
            require_writable(path)
    if output is not None:
        read_output(output, target=wishes.target)
    chosen = on_threads(wishes.target, wishes.threads)
    options = Options(target=str(chosen), name=identifier(Path(output or "module.tar").stem), winograd=wishes.winograd)
    read = read_model(file, model_format, read_shapes(input_shapes)) if is_model else None
    tasks = command.tasks_of_programs(file, chosen) if read is None else command.tasks_of_model(read, options)
    tuning = command.search(file, tasks, budget, wishes, database, [watcher()] if is_watched else [])
    wrote = []
    if report is not None:
        command.write_report(report, tuning)
        wrote.append(report)
    if output is not None and read is not None and not tuning.is_interrupted:
        wrote += command.compile_tuned(read, options, output, tuning.database).files
    return tuning, wrote


db_app = typer.Typer(no_args_is_help=True, help="Databases of tuning records: list them, show, prune, merge, move.")


@db_app.command("list")
def db_list(database: Records = None, as_json: AsJson = False) -> None:
    """List the programs: the best, its speed-up against the rule, and how many records there are."""
    from loopwright.cli import db as command

    with shown(as_json), _opened(database, read_only=True) as opened:
        typer.echo(command.listing(opened, as_json))


@db_app.command("show")
def db_show(
    key: Annotated[str, typer.Argument(help="The key of a program, or how it begins.")],
    database: Records = None,
    as_json: AsJson = False,
) -> None:
    """Show a program, its records and the trace of the best."""
    from loopwright.cli import db as command

    with shown(as_json), _opened(database, read_only=True) as opened:
        typer.echo(command.page(opened, key, as_json))


@db_app.command("prune")
def db_prune(
    keep: Annotated[int, typer.Option("--keep", help="Records of a program and setting that stay.", min=1)] = 16,
    database: Records = None,
    as_json: AsJson = False,
) -> None:
    """Drop failures, and all but the best records of each program and setting, its winner and the rule's own."""
    from loopwright.cli import db as command

    with shown(as_json), _opened(database) as opened:
        typer.echo(command.prune(opened, keep, as_json))


@db_app.command("merge")
def db_merge(
    others: Annotated[list[str], typer.Argument(metavar="OTHER…", help="Databases whose records are taken in.")],
    database: Records = None,
    as_json: AsJson = False,
) -> None:
    """Take in the records of other databases; it may be repeated."""
    from loopwright.cli import db as command

    with shown(as_json), ExitStack() as stack:
        sources = [stack.enter_context(_opened(other, read_only=True)) for other in others]
        opened = stack.enter_context(_opened(database, is_new=True))
        typer.echo(command.merge(opened, sources, as_json))


@db_app.command("export")
def db_export(
    folder: Annotated[str, typer.Argument(help="Where database_workload.json and database_tuning_record.json go.")],
    target: Annotated[str, typer.Option("--target", "-t", help="The target whose records are written.")] = "llvm",
    database: Records = None,
    as_json: AsJson = False,
) -> None:
    """Write the two files in which meta_schedule keeps records."""
    from loopwright.cli import db as command

    with shown(as_json), _opened(database, read_only=True) as opened:
        typer.echo(command.export(opened, folder, target, as_json))


@db_app.command("import")
def db_import(
    folder: Annotated[str, typer.Argument(help="With database_workload.json and database_tuning_record.json.")],
    database: Records = None,
    as_json: AsJson = False,
) -> None:
    """Take in the records of the two files of meta_schedule; it may be repeated."""
    from loopwright.cli import db as command

    with shown(as_json), _opened(database, is_new=True) as opened:
        typer.echo(command.take_in(opened, folder, as_json))


@db_app.command("verify")
def db_verify(database: Records = None, as_json: AsJson = False) -> None:
    """Read everything, and check it; status 1 when something is damaged."""
    from loopwright.cli import db as command

    with shown(as_json), _opened(database, read_only=True) as opened:
        text, is_damaged = command.verify(opened, as_json)
        typer.echo(text)
        if is_damaged:
            raise typer.Exit(1)


def _opened(database: str | None, *, read_only: bool = False, is_new: bool = False) -> closing[Database]:
    """The database that is meant; unless `is_new`, one that is there."""
    from loopwright.cli.tune import default_database, require_there
    from loopwright.tune import open_database

    where = default_database() if database is None else database
    if not is_new:
        require_there(where)
    return closing(open_database(where, read_only=read_only))
