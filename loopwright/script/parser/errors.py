"""What can be wrong with a script. Every error marks the user's own line and column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from loopwright.runtime.errors import DiagnosticError, LoopwrightError, SourceLine


class NoSource(DiagnosticError, OSError):
    """The text of a decorated function or class cannot be found.

    A script is read from its source, which Python keeps only for files and notebook cells. Give text that was made by
    a program to `loopwright.script.from_source`.
    """

    code = "LW0301"

    def __init__(self, what: str, file: str) -> None:
        super().__init__(
            f"the source of {what} cannot be found in {file}",
            hint="define it in a file or a notebook cell, or pass its text to loopwright.script.from_source",
        )


class InvalidSyntax(DiagnosticError, SyntaxError):
    """The text is not Python."""

    code = "LW0302"

    def __init__(self, message: str, at: SourceLine) -> None:
        super().__init__(f"the script is not valid Python: {message}", at=at)


_DEFINE = "define it in the script, around it, or in extra_vars; a loop variable ends with its loop"


class UndefinedName(DiagnosticError, NameError):
    """A name that neither the script nor the code around it defines."""

    code = "LW0303"

    def __init__(self, name: str, known: Iterable[str], at: SourceLine) -> None:
        # One letter is close to every name that begins with it.
        near = get_close_matches(name, [str(k) for k in known], 1) if len(name) > 1 else []
        super().__init__(
            f"name {name!r} is not defined",
            at=at,
            hint=f"did you mean {near[0]!r}?" if near else _DEFINE,
            fields={"name": name, "candidates": near},
        )


class UnknownAttribute(DiagnosticError, AttributeError):
    """A value has no attribute of that name."""

    code = "LW0304"

    def __init__(self, owner: str, name: str, known: Iterable[str], at: SourceLine) -> None:
        near = get_close_matches(name, [k for k in known if not k.startswith("_")], 1)
        super().__init__(
            f"{owner} has no attribute {name!r}",
            at=at,
            hint=f"did you mean {near[0]!r}?" if near else None,
            fields={"name": name, "candidates": near},
        )


class ExpressionFailed(DiagnosticError):
    """An expression of the script raised an error; the original is its cause."""

    code = "LW0305"

    def __init__(self, error: BaseException, at: SourceLine) -> None:
        ours = isinstance(error, LoopwrightError)
        text = error.problem if isinstance(error, LoopwrightError) else str(error)
        super().__init__(
            text if ours else f"{type(error).__name__}: {text}",
            at=at,
            why=error.why if isinstance(error, LoopwrightError) else None,
            hint=error.hint if isinstance(error, LoopwrightError) else None,
            fields=error.fields if isinstance(error, LoopwrightError) else {"error": type(error).__name__},
        )


class RankMismatch(DiagnosticError, ValueError):
    """A buffer was indexed with too few or too many indices."""

    code = "LW0306"

    def __init__(self, error: LoopwrightError, at: SourceLine) -> None:
        super().__init__(error.problem, at=at, hint=error.hint, fields=error.fields)


class MissingAnnotation(DiagnosticError, TypeError):
    """A parameter does not say what it is."""

    code = "LW0307"

    def __init__(self, name: str, at: SourceLine) -> None:
        super().__init__(
            f"parameter {name!r} has no annotation",
            at=at,
            hint=f'write {name}: T.Buffer((16, 16), "float32"), {name}: T.handle, or {name}: T.int32',
        )


class BadParameter(DiagnosticError, TypeError):
    """A parameter of a kind that functions of the program do not have."""

    code = "LW0308"

    def __init__(self, problem: str, at: SourceLine, hint: str | None = None) -> None:
        super().__init__(problem, at=at, hint=hint)


class UnsupportedStatement(DiagnosticError):
    """A Python statement that has no meaning in a script."""

    code = "LW0309"

    def __init__(self, statement: str, hint: str, at: SourceLine) -> None:
        super().__init__(f"{statement} cannot be used in a script", at=at, hint=hint)


class Rebinding(DiagnosticError):
    """A name was given a second value in one scope. Names in a script are immutable."""

    code = "LW0310"

    def __init__(self, name: str, first: SourceLine | None, at: SourceLine, hint: str | None = None) -> None:
        super().__init__(
            f"name {name!r} is already defined in this scope" + (f", in line {first.line}" if first else ""),
            at=at,
            why="a name stands for one value; only buffers change while the program runs",
            hint=hint or "use another name, or store the value in a buffer",
            fields={"name": name},
        )


_PLACES = {
    "directly inside a block": 'put it under with T.block("name"):, before the statements of the block',
    "directly inside the function": "move it out, to the level of the function's own statements",
}


class Misplaced(DiagnosticError):
    """A construct stands where it has no meaning: block facts outside a block, function facts inside a loop, …"""

    code = "LW0311"

    def __init__(self, what: str, belongs: str, stands: str, at: SourceLine, hint: str | None = None) -> None:
        super().__init__(
            f"{what} belongs {belongs}, but stands {stands}",
            at=at,
            hint=hint or _PLACES.get(belongs),
            fields={"construct": what, "found": stands},
        )


class DuplicateInBlock(DiagnosticError):
    """A block says one thing twice."""

    code = "LW0312"

    def __init__(self, what: str, owner: str, at: SourceLine) -> None:
        super().__init__(f"{owner} already has {what}", at=at, hint="keep one of them")


class BadAxis(DiagnosticError, ValueError):
    """A block axis with an impossible domain, binding or kind."""

    code = "LW0313"

    def __init__(self, problem: str, at: SourceLine, hint: str | None = None) -> None:
        super().__init__(problem, at=at, hint=hint)


class WrongIterator(DiagnosticError, TypeError):
    """A for loop over something that is not a loop of the program."""

    code = "LW0314"

    def __init__(self, problem: str, at: SourceLine, hint: str | None = None) -> None:
        loops = "loop over range(n), T.serial, T.parallel, T.vectorized, T.unroll, T.thread_binding or T.grid"
        super().__init__(problem, at=at, hint=hint or loops)


class WrongTargets(DiagnosticError, ValueError):
    """The names on the left do not match the values on the right."""

    code = "LW0315"

    def __init__(self, problem: str, at: SourceLine, hint: str | None = None) -> None:
        super().__init__(problem, at=at, hint=hint)


class NotAScope(DiagnosticError, TypeError):
    """A with statement over something that opens no scope."""

    code = "LW0316"

    def __init__(self, value: object, at: SourceLine) -> None:
        super().__init__(
            f"a with statement cannot open {describe(value)}",
            at=at,
            hint='use T.block("name"), T.init(), T.attr, T.allocate, T.decl_buffer, T.launch_thread, T.LetStmt '
            "or T.Assert",
        )


class NotAStatement(DiagnosticError, TypeError):
    """An expression that stands alone and does nothing."""

    code = "LW0317"

    def __init__(self, value: object, at: SourceLine) -> None:
        super().__init__(
            f"{describe(value)} is not a statement",
            at=at,
            hint="store it in a buffer, bind it to a name, or drop it",
        )


class BadValueType(DiagnosticError, TypeError):
    """A value of a type that cannot stand here: wrong dtype, wrong lane count, or no expression at all."""

    code = "LW0318"

    def __init__(self, problem: str, at: SourceLine, hint: str | None = None) -> None:
        super().__init__(problem, at=at, hint=hint)


class BadMatch(DiagnosticError, ValueError):
    """A match_buffer that names nothing a buffer can be matched to."""

    code = "LW0319"

    def __init__(self, problem: str, at: SourceLine, hint: str | None = None) -> None:
        super().__init__(problem, at=at, hint=hint)


class OpaqueAccess(DiagnosticError):
    """The regions of a block cannot be inferred, since it touches a buffer through its pointer."""

    code = "LW0320"

    def __init__(self, block: str, pointer: str, at: SourceLine) -> None:
        super().__init__(
            f"what block {block!r} reads and writes cannot be inferred: it uses the pointer {pointer} directly",
            at=at,
            why="how far an access through a raw pointer reaches is not known",
            hint="say it by hand with T.reads(...) and T.writes(...)",
        )


class BadModule(DiagnosticError):
    """A module whose parts do not fit together."""

    code = "LW0321"

    def __init__(self, problem: str, at: SourceLine, hint: str | None = None) -> None:
        super().__init__(problem, at=at, hint=hint)


class BadAttributes(DiagnosticError, ValueError):
    """Attributes of a function, block or module that are not a dictionary, or contradict each other."""

    code = "LW0322"

    def __init__(self, problem: str, at: SourceLine, hint: str | None = None) -> None:
        super().__init__(problem, at=at, hint=hint)


class BadThread(DiagnosticError, ValueError):
    """A thread axis launched twice with different extents, or never declared."""

    code = "LW0323"

    def __init__(self, problem: str, at: SourceLine, hint: str | None = None) -> None:
        super().__init__(problem, at=at, hint=hint)


class NotAFunction(DiagnosticError, TypeError):
    """`@T.prim_func`, `@T.macro` or `@I.ir_module` was applied to something it cannot read."""

    code = "LW0324"

    def __init__(self, decorator: str, expected: str, value: object) -> None:
        super().__init__(
            f"{decorator} expects {expected}, got {type(value).__name__}",
            hint=f"put {decorator} directly above {expected}",
        )


class LossyStore(UserWarning):
    """A value loses its fraction, or its meaning, when it is stored."""


def describe(value: object) -> str:
    """A value in an error message: its kind, and its text when that is short."""
    kind = type(value).__name__
    text = repr(value)
    return (
        f"{kind} {text}" if len(text) <= 40 and "\n" not in text and " at 0x" not in text else f"a value of type {kind}"
    )


def count(number: int, noun: str) -> str:
    """ "1 name", "2 names"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listing(names: Sequence[str]) -> str:
    """Names joined for a message."""
    return ", ".join(names) if names else "none"
