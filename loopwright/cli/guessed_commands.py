"""Commands that people guess: where there is none of that name, the error says what to write instead.

$ loopwright build kernel.py
No such command 'build': `loopwright compile MODEL` compiles a model; …
"""

from __future__ import annotations

from typing import Any, Final

from typer.core import TyperGroup

_BUILT: Final = (
    "`loopwright compile MODEL` compiles a model; `loopwright run FILE` builds the programs of a file and calls them; "
    "in Python, loopwright.build(program).export_library(path) writes a library"
)
_TIMED: Final = "`loopwright run FILE` times the programs of a file, `loopwright run MODEL --print-time` a model"
_INSTEAD: Final = {
    "bench": _TIMED,
    "benchmark": _TIMED,
    "build": _BUILT,
    "check": "`loopwright run FILE` compares small programs with the evaluator; `loopwright doctor` checks the machine",
    "convert": "`loopwright compile MODEL` compiles a model",
    "errors": "`loopwright explain` lists the errors",
    "help": "write `loopwright --help`, or `loopwright COMMAND --help`",
    "lower": "`loopwright show FILE --stage last` shows the lowered program",
    "info": "`loopwright inspect MODEL` lists a model's operators, shapes and memory",
    "profile": "`loopwright run MODEL --profile` times each kernel of a model",
    "time": _TIMED,
    "version": "write `loopwright --version`",
}


class Commands(TyperGroup):
    """The commands of `loopwright`, which knows a few names that it does not have."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        message = _INSTEAD.get(args[0]) if args and args[0] not in self.commands else None
        if message is not None:
            ctx.fail(f"No such command {args[0]!r}: {message}.")
        return super().resolve_command(ctx, args)
