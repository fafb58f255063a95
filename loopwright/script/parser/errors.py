"""What can be wrong with a script. Every error marks the user's own line and column."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from loopwright.runtime.errors import DiagnosticError, LoopwrightError, SourceLine


class ProblemAtPlace(DiagnosticError):
    """Said in one line, where it is found; the subclasses say what it is about."""

    def __init__(self, problem: str, at: SourceLine, hint: str | None = None) -> None:
        super().__init__(problem, at=at, hint=hint)


class NoSource(DiagnosticError, OSError):
    """The text of a decorated function or class cannot be found.

    A script is read from its source, which Python keeps only for files and notebook cells. Give text that was made by
    a program to `loopwright.script.from_source`.

    For example:

        from loopwright.script import tir as T

        exec("@T.prim_func\\ndef f(n: T.int32):\\n    T.evaluate(n)", {"T": T})
    """

    code = "LW0301"

    def __init__(self, what: str, file: str) -> None:
        super().__init__(
            f"the source of {what} cannot be found in {file}",
            hint="define it in a file or a notebook cell, or pass its text to loopwright.script.from_source",
        )


class InvalidSyntax(DiagnosticError, SyntaxError):
    """The text is not Python.

    For example:

        from loopwright.script import from_source

        from_source("@T.prim_func\\ndef f(:")
    """

    code = "LW0302"

    def __init__(self, message: str, at: SourceLine) -> None:
        super().__init__(f"the script is not valid Python: {message}", at=at)


_DEFINE = "define it in the script, around it, or in extra_vars; a loop variable ends with its loop"


class UndefinedName(DiagnosticError, NameError):
    """A name that neither the script nor the code around it defines.

    For example:

        from loopwright.script import from_source

        from_source("@T.prim_func\\ndef f(A: T.Buffer((4, 4))):\\n    A[0, 0] = x")
    """

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
    """A value has no attribute of that name.

    For example:

        from loopwright.script import from_source

        from_source("@T.prim_func\\ndef f(A: T.Buffer((4, 4))):\\n    A[0, 0] = T.expp(A[0, 0])")
    """

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
    """An expression of the script raised an error; the original is its cause.

    For example:

        from loopwright.script import from_source

        from_source("@T.prim_func\\ndef f(A: T.Buffer((4, 4))):\\n    A[0, 0] = T.float32(1 // 0)")
    """

    code = "LW0305"

    def __init__(self, error: BaseException, at: SourceLine) -> None:
        if isinstance(error, LoopwrightError):
            super().__init__(error.problem, at=at, why=error.why, hint=error.hint, fields=error.fields)
        else:
            kind = type(error).__name__
            super().__init__(f"{kind}: {error}", at=at, fields={"error": kind})


class RankMismatch(DiagnosticError, ValueError):
    """A buffer was indexed with too few or too many indices.

    For example:

        from loopwright.script import from_source

        from_source("@T.prim_func\\ndef f(A: T.Buffer((4, 4))):\\n    A[0] = 1.0")
    """

    code = "LW0306"

    def __init__(self, error: LoopwrightError, at: SourceLine) -> None:
        super().__init__(error.problem, at=at, hint=error.hint, fields=error.fields)


class MissingAnnotation(DiagnosticError, TypeError):
    """A parameter does not say what it is.

    For example:

        from loopwright.script import from_source

        from_source("@T.prim_func\\ndef f(n):\\n    T.evaluate(n)")
    """

    code = "LW0307"

    def __init__(self, name: str, at: SourceLine) -> None:
        super().__init__(
            f"parameter {name!r} has no annotation",
            at=at,
            hint=f'write {name}: T.Buffer((16, 16), "float32"), {name}: T.handle, or {name}: T.int32',
        )


class BadParameter(ProblemAtPlace, TypeError):
    """A parameter of a kind that functions of the program do not have.

    For example:

        from loopwright.script import from_source

        from_source("@T.prim_func\\ndef f(*n: T.int32):\\n    T.evaluate(0)")
    """

    code = "LW0308"


class UnsupportedStatement(DiagnosticError):
    """A Python statement that has no meaning in a script.

    For example:

        from loopwright.script import from_source

        from_source("@T.prim_func\\ndef f(A: T.Buffer((4, 4))):\\n    del A")
    """

    code = "LW0309"

    def __init__(self, statement: str, hint: str, at: SourceLine) -> None:
        super().__init__(f"{statement} cannot be used in a script", at=at, hint=hint)


class Rebinding(DiagnosticError):
    """A name was given a second value in one scope. Names in a script are immutable.

    For example:

        from loopwright.script import from_source

        from_source("@T.prim_func\\ndef f(A: T.Buffer((4, 4))):\\n    x = A[0, 0]\\n    x = A[0, 1]")
    """

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
    """A construct stands where it has no meaning: block facts outside a block, function facts inside a loop, …

    For example:

        from loopwright.script import from_source

        from_source("@T.prim_func\\ndef f(A: T.Buffer((4, 4))):\\n    T.reads(A[0, 0])")
    """

    code = "LW0311"

    def __init__(self, what: str, belongs: str, stands: str, at: SourceLine, hint: str | None = None) -> None:
        super().__init__(
            f"{what} belongs {belongs}, but stands {stands}",
            at=at,
            hint=hint or _PLACES.get(belongs),
            fields={"construct": what, "found": stands},
        )


class DuplicateInBlock(DiagnosticError):
    """A block says one thing twice.

    For example:

        from loopwright.script import from_source

        head = "@T.prim_func\\ndef f(A: T.Buffer((4, 4))):\\n"
        from_source(head + "    with T.block('b'):\\n        T.where(True)\\n        T.where(True)")
    """

    code = "LW0312"

    def __init__(self, what: str, owner: str, at: SourceLine) -> None:
        super().__init__(f"{owner} already has {what}", at=at, hint="keep one of them")


class BadAxis(ProblemAtPlace, ValueError):
    """A block axis with an impossible domain, binding or kind.

    For example:

        from loopwright.script import from_source

        head = "@T.prim_func\\ndef f(A: T.Buffer((4, 4))):\\n"
        from_source(head + "    with T.block('b'):\\n        v = T.axis.spatial(4, A[0, 0])")
    """

    code = "LW0313"


class WrongIterator(ProblemAtPlace, TypeError):
    """A for loop over something that is not a loop of the program.

    For example:

        from loopwright.script import from_source

        from_source("@T.prim_func\\ndef f(A: T.Buffer((4, 4))):\\n    for i in [1, 2]:\\n        A[i, i] = 1.0")
    """

    code = "LW0314"

    def __init__(self, problem: str, at: SourceLine, hint: str | None = None) -> None:
        loops = "loop over range(n), T.serial, T.parallel, T.vectorized, T.unroll, T.thread_binding or T.grid"
        super().__init__(problem, at, hint or loops)


class WrongTargets(ProblemAtPlace, ValueError):
    """The names on the left do not match the values on the right.

    For example:

        from loopwright.script import from_source

        head = "@T.prim_func\\ndef f(A: T.Buffer((4, 4))):\\n"
        from_source(head + "    for i, j in T.grid(4, 4, 4):\\n        A[i, j] = 1.0")
    """

    code = "LW0315"


class NotAScope(DiagnosticError, TypeError):
    """A with statement over something that opens no scope.

    For example:

        from loopwright.script import from_source

        from_source("@T.prim_func\\ndef f(A: T.Buffer((4, 4))):\\n    with A[0, 0]:\\n        pass")
    """

    code = "LW0316"

    def __init__(self, value: object, at: SourceLine) -> None:
        super().__init__(
            f"a with statement cannot open {describe(value)}",
            at=at,
            hint='use T.block("name"), T.init(), T.attr, T.allocate, T.decl_buffer, T.launch_thread, T.LetStmt '
            "or T.Assert",
        )


class NotAStatement(DiagnosticError, TypeError):
    """An expression that stands alone and does nothing.

    For example:

        from loopwright.script import from_source

        from_source("@T.prim_func\\ndef f(A: T.Buffer((4, 4))):\\n    [1, 2]")
    """

    code = "LW0317"

    def __init__(self, value: object, at: SourceLine) -> None:
        super().__init__(
            f"{describe(value)} is not a statement",
            at=at,
            hint="store it in a buffer, bind it to a name, or drop it",
        )


class BadValueType(ProblemAtPlace, TypeError):
    """A value of a type that cannot stand here: wrong dtype, wrong lane count, or no expression at all.

    For example:

        from loopwright.script import from_source

        from_source("@T.prim_func\\ndef f(A: T.Buffer((4, 4))):\\n    A['x', 0] = 1.0")
    """

    code = "LW0318"


class BadMatch(ProblemAtPlace, ValueError):
    """A match_buffer that names nothing a buffer can be matched to.

    For example:

        from loopwright.script import from_source

        from_source("@T.prim_func\\ndef f(A: T.Buffer((4, 4))):\\n    B = T.match_buffer(A.data, (4, 4))")
    """

    code = "LW0319"


class OpaqueAccess(DiagnosticError):
    """The regions of a block cannot be inferred, since it touches a buffer through its pointer.

    For example:

        from loopwright.script import from_source

        head = "@T.prim_func\\ndef f(A: T.Buffer((4, 4))):\\n"
        body = "    for i in range(4):\\n        with T.block('b'):\\n            T.call_extern('int32', 'f', A.data)"
        from_source(head + body)
    """

    code = "LW0320"

    def __init__(self, block: str, pointer: str, at: SourceLine) -> None:
        super().__init__(
            f"what block {block!r} reads and writes cannot be inferred: it uses the pointer {pointer} directly",
            at=at,
            why="how far an access through a raw pointer reaches is not known",
            hint="say it by hand with T.reads(...) and T.writes(...)",
        )


class BadModule(ProblemAtPlace):
    """A module whose parts do not fit together.

    For example:

        from loopwright.script import from_source

        from_source("@I.ir_module\\nclass M:\\n    x = 1")
    """

    code = "LW0321"


class BadAttributes(ProblemAtPlace, ValueError):
    """Attributes of a function, block or module that are not a dictionary, or contradict each other.

    For example:

        from loopwright.script import from_source

        from_source("@T.prim_func\\ndef f(A: T.Buffer((4, 4))):\\n    T.func_attr([1])")
    """

    code = "LW0322"


class BadThread(ProblemAtPlace, ValueError):
    """A thread axis launched twice with different extents, or never declared.

    For example:

        from loopwright.script import from_source

        from_source("@T.prim_func\\ndef f(A: T.Buffer((4, 4))):\\n    n = T.int32()\\n    T.launch_thread(n, 4)")
    """

    code = "LW0323"


class NotAFunction(DiagnosticError, TypeError):
    """`@T.prim_func`, `@T.macro` or `@I.ir_module` was applied to something it cannot read.

    For example:

        from loopwright.script import tir as T

        T.prim_func(5)
    """

    code = "LW0324"

    def __init__(self, decorator: str, expected: str, value: object) -> None:
        super().__init__(
            f"{decorator} expects {expected}, got {type(value).__name__}",
            hint=f"put {decorator} directly above {expected}",
        )


class EndlessMacro(DiagnosticError, RecursionError):
    """A macro calls itself, directly or through others, without an end.

    The body of a macro is put in place of the call while the script is read. A call inside it that leads back to the
    same macro would be replaced for ever: no value of the program can stop it, since none exists yet.

    For example:

        from loopwright.script import tir as T, from_source

        @T.macro
        def again(A):
            again(A)

        from_source("@T.prim_func\\ndef f(A: T.Buffer(4)):\\n    again(A)", {"again": again})
    """

    code = "LW0325"

    def __init__(self, name: str, at: SourceLine) -> None:
        super().__init__(
            f"macro {name!r} calls itself without an end",
            at=at,
            hint="use a loop of the program, or call several macros one after the other",
            fields={"macro": name},
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
