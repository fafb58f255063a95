"""What can be wrong with the text of a graph; every error shows the line and marks the place."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from loopwright.runtime.errors import DiagnosticError, SourceLine


class BadText(DiagnosticError, ValueError):
    """A text is not written as graphs are: a word or a sign stands where another one is needed.

    The message has the line and the column, and what would fit there.

    For example:

        from loopwright import relay

        relay.parse_expr("(1, 2")
    """

    code = "LW1210"

    def __init__(self, problem: str, at: SourceLine, hint: str | None = None) -> None:
        super().__init__(problem, at=at, hint=hint, fields={"line": at.line, "column": at.column})


class UnboundName(BadText):
    """A text uses a variable, a value or a function that nothing before that place defines.

    For example:

        from loopwright import relay

        relay.parse_expr("fn (%x: float32) { %y }")
    """

    code = "LW1211"

    def __init__(self, name: str, at: SourceLine, known: Sequence[str]) -> None:
        near = get_close_matches(name, known, 2)
        hint = f"did you mean {' or '.join(near)}?" if near else "parameters, let and `%0 = …;` define names"
        super().__init__(f"{name} is not defined here", at, hint)


class UnknownWord(BadText):
    """A text calls an operator that does not exist.

    For example:

        from loopwright import relay

        relay.parse_expr("exq(1f)")
    """

    code = "LW1212"

    def __init__(self, name: str, at: SourceLine, known: Sequence[str]) -> None:
        near = get_close_matches(name, known, 3)
        hint = f"did you mean {', '.join(near)}?" if near else "relay.op.list_op_names() has all operators"
        super().__init__(f"no operator is called {name!r}", at, hint)


class BadCall(BadText):
    """A text gives an operator a number of inputs, or parameters, that it does not take.

    For example:

        from loopwright import relay

        relay.parse_expr("exp(1f, 2f)")
    """

    code = "LW1213"


class BadType(BadText):
    """A text has a word where a type is needed that is none.

    For example:

        from loopwright import relay

        relay.parse_expr("fn (%x: flaot32) { %x }")
    """

    code = "LW1214"


class BadMetadata(BadText):
    """A text refers to metadata that it does not have, or its metadata is damaged.

    A text written without metadata (`str(mod)`) cannot be read back where it has large constants; `mod.astext()` can.

    For example:

        from loopwright import relay

        relay.parse_expr("meta[relay.Constant][0]")
    """

    code = "LW1215"


class DefinedTwice(BadText):
    """A text defines a function, a parameter or a value under a name that is taken.

    For example:

        from loopwright import relay

        relay.parse_expr("fn (%x: float32, %x: float32) { %x }")
    """

    code = "LW1216"


class UnknownVersion(BadText):
    """The header of a text names a version of the text form that is not read.

    For example:

        from loopwright import relay

        relay.parse('#[version = "9.0"] def @main() { 1 }')
    """

    code = "LW1217"
