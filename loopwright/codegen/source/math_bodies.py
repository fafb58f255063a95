"""MathBodies: the functions of `codegen/math` that a source brings along, each written on first use."""

from __future__ import annotations

from collections.abc import Callable

from loopwright import ir
from loopwright.codegen.math import body_types, expand
from loopwright.codegen.source.code import Code
from loopwright.codegen.source.helpers import Helpers
from loopwright.codegen.source.names import OWN_PREFIX, Names
from loopwright.codegen.source.statements import SourceStatements, without_unused
from loopwright.codegen.source.types import suffix, value_type
from loopwright.runtime.dtype import DataType


class MathBodies:
    """Gives the name of a function of `codegen/math` for some types; `writer` makes what writes it."""

    def __init__(self, helpers: Helpers, names: Names, writer: Callable[[Names], SourceStatements]) -> None:
        self.helpers, self.names, self.writer = helpers, names, writer

    def __call__(self, name: str, source: DataType, target: DataType, count: int) -> str:
        element = target if name == "encode" else source
        full = f"{OWN_PREFIX}{name}_{suffix(element)}"
        if full in self.helpers.definitions:
            return full
        given, result = body_types(name, source, target)
        params = [ir.Var("x" if count == 1 else f"x{position}", given) for position in range(count)]
        names = Names(self.names)
        writer = self.writer(names)
        writer.values = {param: Code(names.fresh(param.name)) for param in params}
        writer.body_of = name
        body = expand(name, params, source, target)
        writer.start_statement(body)
        writer.line(f"return {writer.value(body)};")
        arguments = ", ".join(f"{value_type(given)} {writer.values[param]}" for param in params)
        lines = without_unused(writer.lines, [], set())
        head = f"{self.helpers.qualifiers} {value_type(result)} {full}({arguments}) {{"
        self.helpers.definitions[full] = "\n".join([head, *self.helpers.on_machine(full, lines), "}"])
        return full
