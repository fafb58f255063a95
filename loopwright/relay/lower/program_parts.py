"""What all bodies of a program share while it is written: its kernels, its constants, and fresh values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from loopwright.ir import Expr as PrimExpr
from loopwright.ir import Var as PrimVar
from loopwright.ir.function import IRModule
from loopwright.ir.structural_hash import structural_digest
from loopwright.ir.types import TupleType, Type
from loopwright.ir.visitor import variables_in
from loopwright.model.program import Bind, Launch, Require, Step, Value
from loopwright.relay.errors import CannotCompile
from loopwright.relay.expr import Function
from loopwright.relay.external import symbol_of
from loopwright.relay.index_checks import Sizes
from loopwright.relay.lower.external_function import lower_external
from loopwright.relay.lower.lower_function import Lowered, lower_function
from loopwright.relay.nested import Nested
from loopwright.relay.size_checks import SizeCheck, distinct
from loopwright.relay.structural import size_variables
from loopwright.relay.types import TensorType, is_any, known_sizes, type_text


class Kernels:
    """Kernels by what they compute: two calls of equal functions share one.

    One that gets sizes by name is shared only by functions of the same size variables.
    """

    def __init__(self) -> None:
        self.known: dict[object, Lowered] = {}
        self.names: dict[str, int] = {}

    def of(self, function: Function) -> Lowered:
        digest = structural_digest(function)
        result = self.known.get(digest)
        if result is not None:
            return result
        by_name = (digest, *size_variables(function))
        result = self.known.get(by_name)
        if result is None:
            result = self._named(lower_function(function))
            self.known[by_name if result.named else digest] = result
        return result

    def _named(self, kernel: Lowered) -> Lowered:
        """A name of its own, and not a long one."""
        name = kernel.name if len(kernel.name) <= 80 else kernel.name[:80]
        count = self.names.get(name, 0)
        self.names[name] = count + 1
        own = f"{name}_{count}" if count else name
        return replace(kernel, func=kernel.func.with_attr("global_symbol", own), name=own)


class Shared:
    """What all bodies of a program have in common."""

    def __init__(self, module: IRModule | None, checks: Sequence[SizeCheck] = ()) -> None:
        self.module = module
        self.checks = list(checks)  # those that the program begins with
        self.checked: dict[Require, SizeCheck] = {}
        self.in_range: dict[Value, Sizes] = {}  # index tensors → the sizes that they were checked to lie in
        self.kernels = Kernels()
        self.constants: dict[Value, np.ndarray] = {}
        self.functions: dict[Launch, Function] = {}  # what each launch computes, as a graph
        self.decided: dict[PrimVar, tuple[Value, int | PrimExpr]] = {}  # where a size's value is, and its most
        self.by_memory: dict[tuple[object, ...], Value] = {}  # `constants` keeps the memory alive
        self.externals: dict[str, Function] = {}  # functions that other compilers take over, by symbol
        self._external_kernels: dict[str, Lowered] = {}
        self.count = 0

    def external(self, function: Function) -> Lowered:
        """The kernel that calls what another compiler makes of a function."""
        symbol = symbol_of(function)
        if symbol not in self.externals:
            self.externals[symbol] = function
            self._external_kernels[symbol] = lower_external(function)
        elif self.externals[symbol] is not function and structural_digest(self.externals[symbol]) != structural_digest(
            function
        ):
            raise CannotCompile(f"two functions for other compilers have the same global_symbol {symbol!r}")
        return self._external_kernels[symbol]

    def constant(self, array: np.ndarray) -> Value:
        key = (array.ctypes.data, array.shape, array.strides, array.dtype.str)
        result = self.by_memory.get(key)
        if result is None:
            result = Value(f"constant_{len(self.constants)}", array.shape, array.dtype.name)
            self.constants[result] = array
            self.by_memory[key] = result
        return result

    def required(self, checks: Iterable[SizeCheck], kind: str = "SizesDoNotFit") -> list[Require]:
        """The checks as steps; each ends the call with an error of class `kind`."""
        result = {Require(check.condition, check.message, check.values, kind=kind): check for check in checks}
        self.checked.update(result)
        return list(result)

    def checked_early(self, steps: Sequence[Step]) -> list[Step]:
        """The steps of a body with each check of sizes once, and as early as they are known."""
        bound = {step.var: index for index, step in enumerate(steps) if isinstance(step, Bind)}
        waiting: dict[int, dict[SizeCheck, Require]] = {}
        for step in steps:
            if isinstance(step, Require) and step in self.checked:
                behind = max((bound.get(var, -1) for var in variables_in(step.condition)), default=-1)
                waiting.setdefault(behind, {})[self.checked[step]] = step
        known = list(self.checks)
        result: list[Step] = []
        for index in range(-1, len(steps)):
            if index >= 0 and steps[index] not in self.checked:
                result.append(steps[index])
            here = waiting.get(index, {})
            now = distinct(here, known)
            known += now
            result += [here[check] for check in now]
        return result

    def values_of(self, of: Type, name: str) -> Nested[Value]:
        """New values for a type: one, or a list for a tuple."""
        if isinstance(of, TupleType):
            return [self.values_of(field, name) for field in of.fields]
        if not isinstance(of, TensorType):
            raise CannotCompile(f"a compiled model holds tensors, and not {type_text(of)}")
        if any(is_any(size) for size in of.shape):
            raise CannotCompile(
                f"the sizes of {type_text(of)} are not known before the model runs",
                hint="relay.create_executor('vm') finds them as it runs",
            )
        self.count += 1
        return Value(f"{name}{self.count}", known_sizes(of), str(of.dtype))
