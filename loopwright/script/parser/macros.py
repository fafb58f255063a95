"""Macros: a named body of statements that a script splices in where it calls it."""

from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING, Any

from loopwright.ir import Stmt
from loopwright.runtime.errors import SourceLine
from loopwright.script.parser.directives import MacroCall
from loopwright.script.parser.errors import ExpressionFailed
from loopwright.script.parser.scopes import Scopes

if TYPE_CHECKING:
    from loopwright.script.parser.statements import StatementParser


def splice(parser: StatementParser, call: MacroCall, at: SourceLine) -> Stmt:
    """The macro's body with its parameters bound to the arguments of the call.

    In a hygienic macro other names mean what they mean where the macro is defined, otherwise where it is called.
    """
    macro = call.macro
    try:
        bound = inspect.signature(macro.function).bind(*call.args, **call.kwargs)
    except TypeError as error:
        raise ExpressionFailed(error, at) from error
    bound.apply_defaults()
    source, scopes = parser.source, parser.scopes
    parser.source = macro.source
    if macro.hygienic:
        parser.scopes = Scopes(macro.environment)
    parser.scopes.enter()
    for name, value in bound.arguments.items():
        parser.scopes.define(name, value, lambda: at)
    body = parser.body(_statements(macro.definition))
    parser.scopes.leave()
    parser.source, parser.scopes = source, scopes
    return body


def _statements(definition: ast.FunctionDef) -> list[Any]:
    return list(definition.body)
