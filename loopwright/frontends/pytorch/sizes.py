"""Sizes of torch that are no numbers, as expressions of ours.

torch names them by symbols of sympy: s0, 2*s0, s0//4. A symbol that is a size of an input is a size variable here; one
that is known only when the model runs (how many elements are not zero) is AnyDim().
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from loopwright.frontends.pytorch.values import Argument
from loopwright.ir import Expr as PrimExpr
from loopwright.ir import SizeVar
from loopwright.ir.intrinsics import maximum, minimum
from loopwright.ir.operators import floordiv, floormod
from loopwright.ir.types import Type
from loopwright.relay.expr import Expr
from loopwright.relay.types import AnyDim, Dim, as_dim, is_any

if TYPE_CHECKING:
    import torch


# A size that is known: a number, or an expression of size variables.
Known: TypeAlias = int | PrimExpr


class Importing(Protocol):
    """The import that is going on, as nodes and numbers ask it; `importer.py` has it."""

    sizes: Sizes

    def type_of(self, expression: Expr) -> Type: ...

    def size_tensor(self, size: int | PrimExpr) -> Expr:
        """A size as a tensor of one int64 number, read from the shape of an input."""

    def convert(self, module: torch.fx.GraphModule, inputs: Sequence[Argument]) -> list[Argument]:
        """The outputs of the graph of a module for these inputs."""


class Sizes:
    """The symbols of one exported program."""

    def __init__(self) -> None:
        self.symbols: dict[str, Dim] = {}  # name of a symbol → what it is here
        self.places: dict[str, tuple[Expr, int]] = {}  # name of a size variable → an input and the axis that has it
        self._taken: set[str] = set()

    def fix(self, size: int | torch.SymInt, number: int) -> None:
        """Let a size that is a symbol be a number."""
        expression = _expression(size)
        if expression is not None and expression.is_Symbol:
            self.symbols[expression.name] = number

    def enter(self, sizes: Sequence[int | torch.SymInt], hints: Sequence[str]) -> list[Dim]:
        """The sizes of an input; symbols that are new become size variables, named by the hints."""
        result: list[Dim] = []
        for size, hint in zip(sizes, hints):
            expression = _expression(size)
            if expression is not None and expression.is_Symbol and expression.name not in self.symbols:
                self.symbols[expression.name] = self.fresh(hint)
            result.append(self.of(size))
        return result

    def enter_derived(self, size: int | torch.SymInt, hint: str) -> Dim:
        """A size such as 2*s of an input where no input has the size s: it is a variable, and s follows from it."""
        expression = _expression(size)
        unknown = [symbol for symbol in expression.free_symbols if symbol.name not in self.symbols]
        if len(unknown) != 1:
            return AnyDim()
        symbol = unknown[0]
        at_zero = expression.subs(symbol, 0)
        slope = (expression - at_zero).expand() / symbol
        if not (slope.is_Integer and at_zero.is_Integer and slope > 0):
            return AnyDim()
        whole = self.fresh(hint)
        self.symbols[symbol.name] = as_dim(floordiv(whole - int(at_zero), int(slope)))
        return whole

    def fresh(self, hint: str) -> SizeVar:
        """A size variable of a name that no other has."""
        plain = re.sub(r"\W", "_", hint) or "n"
        plain = f"n_{plain}" if plain[0].isdigit() else plain
        name, count = plain, 1
        while name in self._taken:
            name, count = f"{plain}_{count}", count + 1
        self._taken.add(name)
        return SizeVar(name, "int32")

    def of(self, size: int | torch.SymInt) -> Dim:
        """A size of torch: a number, an expression of size variables, or AnyDim()."""
        expression = _expression(size)
        return int(size) if expression is None else self._of(expression)

    def _of(self, e: Any) -> Dim:
        if e.is_Integer:
            return int(e)
        if e.is_Symbol:
            return self.symbols.get(e.name, AnyDim())
        parts = [self._of(arg) for arg in e.args]
        known: list[Known] = [part for part in parts if not is_any(part)]
        if len(known) != len(parts):
            return AnyDim()
        match type(e).__name__:
            case "Add":
                return as_dim(reduce(lambda a, b: a + b, known))
            case "Mul":
                return as_dim(reduce(lambda a, b: a * b, known))
            case "Pow" if isinstance(known[1], int) and known[1] > 0:
                return as_dim(reduce(lambda a, b: a * b, [known[0]] * known[1]))
            case "FloorDiv" | "CleanDiv":
                return as_dim(_whole(floordiv, lambda a, b: a // b, *known))
            case "CeilDiv":
                return as_dim(_whole(floordiv, lambda a, b: a // b, known[0] + known[1] - 1, known[1]))
            case "Mod" | "PythonMod":
                return as_dim(_whole(floormod, lambda a, b: a % b, *known))
            case "ModularIndexing":
                inner = _whole(floordiv, lambda a, b: a // b, known[0], known[1])
                return as_dim(_whole(floormod, lambda a, b: a % b, inner, known[2]))
            case "Max":
                return as_dim(reduce(lambda a, b: _whole(maximum, max, a, b), known))
            case "Min":
                return as_dim(reduce(lambda a, b: _whole(minimum, min, a, b), known))
        return AnyDim()


def _whole(
    of_expressions: Callable[[Known, Known], PrimExpr], of_numbers: Callable[[int, int], int], a: Known, b: Known
) -> Known:
    return of_numbers(a, b) if isinstance(a, int) and isinstance(b, int) else of_expressions(a, b)


def _expression(size: int | torch.SymInt) -> Any:
    """The sympy expression of a size; None where it is a number."""
    if isinstance(size, int):
        return None
    result = size.node.expr
    return None if result.is_Integer else result
