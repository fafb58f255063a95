"""Macros: a named body of statements that a script splices in where it calls it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from typing import Final, Protocol

from loopwright.ir import Stmt
from loopwright.runtime.errors import DiagnosticError, SourceLine
from loopwright.script.parser.directives import MacroCall
from loopwright.script.parser.errors import EndlessMacro, ExpressionFailed
from loopwright.script.parser.scopes import Environment, Scopes, closure_of
from loopwright.script.parser.source import Source

_DEEPEST: Final = 100  # macros that call each other: more than this has no end


class BodyParser(Protocol):
    """Who parses the body: `statements.py`."""

    source: Source
    scopes: Scopes
    macro_depth: int

    def body(self, nodes: Sequence[ast.stmt]) -> Stmt: ...


def splice(parser: BodyParser, call: MacroCall, at: SourceLine) -> Stmt:
    """The macro's body with its parameters bound to the arguments of the call.

    In a hygienic macro other names mean what they mean where the macro is defined, otherwise where it is called.
    """
    macro = call.macro
    try:
        bound = inspect.signature(macro.function).bind(*call.args, **call.kwargs)
    except TypeError as error:
        raise ExpressionFailed(error, at) from error
    bound.apply_defaults()
    name = macro.definition.name
    if parser.macro_depth >= _DEEPEST:
        raise EndlessMacro(name, at)
    source, scopes = parser.source, parser.scopes
    parser.source = macro.source
    if macro.hygienic:
        # Last, what enclosing functions have assigned since the definition: a macro may call itself or a later one.
        late = closure_of(macro.function)
        parser.scopes = Scopes(Environment(*macro.environment.layers[:-1], late))
    parser.macro_depth += 1
    parser.scopes.enter()
    try:
        for parameter, value in bound.arguments.items():
            parser.scopes.define(parameter, value, lambda: at)
        body = parser.body(macro.definition.body)
    except DiagnosticError as error:
        if parser.macro_depth == 1:  # the outermost call is the one in the user's function
            error.add_note(f"in macro {name}, called at {at.file}:{at.line}")
        raise
    parser.scopes.leave()
    parser.macro_depth -= 1
    parser.source, parser.scopes = source, scopes
    return body
