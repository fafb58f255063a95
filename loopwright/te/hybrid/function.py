"""te.hybrid.script: a Python function of loops over elements, which runs as it is and becomes loops of a program.

@te.hybrid.script
def outer_product(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            c[i, j] = a[i] * b[j]
    return c

outer_product(np.ones(3, "float32"), np.ones(4, "float32"))      runs in Python
C = outer_product(A, B)                                          for te tensors: a tensor
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

from loopwright.ir import (
    Expr,
    For,
    ForKind,
    ProducerLoad,
    ProducerRealize,
    ProducerStore,
    Range,
    Rewriter,
    Stmt,
    Var,
    as_expr,
    const,
    deep,
    seq,
)
from loopwright.runtime.errors import SourceLine
from loopwright.script.parser.source import function_source
from loopwright.te.hybrid.emulation import run_as_python
from loopwright.te.hybrid.errors import HybridCallError, MixedArguments
from loopwright.te.hybrid.expressions import has_load
from loopwright.te.hybrid.operation import HybridOp
from loopwright.te.hybrid.statements import StatementReader
from loopwright.te.hybrid.symbols import Meaning, Reading, Scalar, Scope, Value
from loopwright.te.operation import placeholder
from loopwright.te.tags import resolve_tag
from loopwright.te.tensor import Tensor, TensorSlice


class HybridFunction:
    """A function of hybrid script. On te tensors and variables it gives tensors; on arrays and numbers it runs."""

    def __init__(self, function: types.FunctionType) -> None:
        functools.update_wrapper(self, function)
        self.__name__ = function.__name__
        self.func = function

    def __call__(self, *arguments: object, **keywords: object) -> Any:
        given = [*arguments, *keywords.values()]
        tensors = [value for value in given if _is_symbolic(value)]
        arrays = [value for value in given if _is_array(value)]
        if tensors and arrays:
            raise MixedArguments(
                f"{self.__name__} is called on {_describe(tensors[0])} and on {_describe(arrays[0])}",
                hint="give te tensors to get a tensor, or arrays to run it",
            )
        if not tensors:
            return run_as_python(self.func, arguments, keywords)
        return self._as_operation(arguments, keywords)

    @deep
    def _as_operation(self, arguments: tuple[object, ...], keywords: Mapping[str, object]) -> Tensor | list[Tensor]:
        reading, statements = Reading(), list[Stmt]()
        bound = self._bind(arguments, keywords, None)
        scope = Scope(None, False, False)
        for name, value in bound.items():
            scope.names[name] = Value(_argument(name, value))
        outputs = self._read(reading, scope, statements, False)
        inputs = list(dict.fromkeys([tensor for value in bound.values() for tensor in _tensors_in(value)]))
        body = _on_own_copies(scope.close(statements), inputs)
        op = HybridOp(self.__name__, resolve_tag(self.__name__, ""), None, inputs, outputs, reading.axes, body)
        result = [op.output(k) for k in range(op.num_outputs)]
        return result[0] if len(result) == 1 else result

    def read_into(
        self,
        reading: Reading,
        caller: Scope,
        statements: list[Stmt],
        arguments: Sequence[object],
        keywords: Mapping[str, object],
        location: SourceLine,
    ) -> list[Tensor]:
        """Add this function's statements to those of the function that calls it; what it returns."""
        scope = Scope(None, False, caller.in_threads)
        scope.memory = caller.memory  # what it returns lives as long as the caller's own memory
        for name, value in self._bind(arguments, keywords, location).items():
            if isinstance(value, Expr) and has_load(value):
                # Its value now: the memory may change while the function runs.
                cell = placeholder((1,), value.dtype, name)
                scope.memory.append((cell, "local" if caller.in_threads else "global"))
                statements.append(ProducerStore(cell, value, (const(0),)))
                scope.names[name] = Scalar(cell)
            else:
                scope.names[name] = Value(value)
        return self._read(reading, scope, statements, True)

    def _read(self, reading: Reading, scope: Scope, statements: list[Stmt], is_called: bool) -> list[Tensor]:
        source, tree = function_source(self.func)
        reader = StatementReader(self.func, source, scope, reading, statements, is_called)
        reader.read_function(tree)
        return reader.returned or []

    def _bind(
        self, arguments: Sequence[object], keywords: Mapping[str, object], offset: SourceLine | None
    ) -> dict[str, Any]:
        signature = inspect.signature(self.func)
        for parameter in signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise HybridCallError(
                    f"{self.__name__} collects arguments in {parameter}", offset, "give every argument a name"
                )
        try:
            bound = signature.bind(*arguments, **keywords)
        except TypeError as error:
            count = len(signature.parameters)
            raise HybridCallError(
                f"{self.__name__} takes {count} argument{'s' * (count != 1)} ({', '.join(signature.parameters)}), "
                f"got {len(arguments) + len(keywords)}: {error}",
                offset,
                "give every argument once",
            ) from None
        bound.apply_defaults()
        return dict(bound.arguments)


def script(function: Callable[..., object]) -> HybridFunction:
    """The function as hybrid script; a decorator."""
    if isinstance(function, HybridFunction):
        return function
    if not isinstance(function, types.FunctionType):
        raise HybridCallError(
            f"{function!r} is no function written in Python", hint="decorate a function: @te.hybrid.script"
        )
    return HybridFunction(function)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Whether it holds arguments; `runtime.convert` makes an Array of a list."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _is_symbolic(value: object) -> bool:
    if _is_list(value):
        return any(_is_symbolic(item) for item in value)
    return isinstance(value, (Tensor, TensorSlice, Expr))


def _is_array(value: object) -> bool:
    if _is_list(value):
        return any(_is_array(item) for item in value)
    return isinstance(value, np.ndarray) or (hasattr(value, "__dlpack__") and not isinstance(value, Tensor))


def _describe(value: object) -> str:
    return f"te tensor {value.name}" if isinstance(value, Tensor) else f"{type(value).__name__}"


def _argument(name: str, value: object) -> Meaning:
    """An argument of the call as what its name stands for."""
    if isinstance(value, (Tensor, str)):
        return value
    if _is_list(value):
        return tuple([_argument(name, item) for item in value])
    if isinstance(value, (Expr, bool, int, float, np.generic)):
        return as_expr(value)
    raise HybridCallError(
        f"argument {name} is {type(value).__name__} {value!r}",
        hint="give te tensors, variables, numbers, or tuples of them",
    )


def _tensors_in(value: object) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [tensor for item in value for tensor in _tensors_in(item)] if _is_list(value) else []


class _Stored(Rewriter):
    """Finds the inputs that are stored to, and then puts their copies in their place."""

    def __init__(self, inputs: Sequence[Tensor], copies: Mapping[Tensor, Tensor] | None = None) -> None:
        self.inputs = set(inputs)
        self.copies = copies
        self.stored: dict[Tensor, None] = {}

    def visit_ProducerStore(self, store: ProducerStore) -> Stmt:
        tensor = store.producer
        assert isinstance(tensor, Tensor)
        if tensor in self.inputs:
            self.stored[tensor] = None
        store = self.rebuild(store)
        return store if not self.copies else store.with_(producer=self.copies.get(tensor, tensor))

    def visit_ProducerLoad(self, load: ProducerLoad) -> Expr:
        load = self.rebuild(load)
        tensor = load.producer
        assert isinstance(tensor, Tensor)
        return load if not self.copies else load.with_(producer=self.copies.get(tensor, tensor))


def _on_own_copies(body: Stmt, inputs: Sequence[Tensor]) -> Stmt:
    """The body, storing to copies of those inputs that it stores to: tensors keep their values."""
    result = _Stored(inputs)
    result.visit(body)
    if not result.stored:
        return body
    copies = {tensor: placeholder(tensor.shape, tensor.dtype, f"{tensor.name}_own") for tensor in result.stored}
    body = _Stored(inputs, copies).visit(body)
    body = seq([*[_copy(tensor, copy) for tensor, copy in copies.items()], body])
    for copy in copies.values():
        bounds = tuple([Range.from_min_extent(const(0, size.dtype), size) for size in copy.shape])
        body = ProducerRealize(copy, bounds, const(True), body, "global")
    return body


def _copy(source: Tensor, target: Tensor) -> Stmt:
    loops = [Var(f"i{k}", size.dtype) for k, size in enumerate(source.shape)]
    body: Stmt = ProducerStore(target, ProducerLoad(source, tuple(loops)), tuple(loops))
    for loop, size in zip(reversed(loops), reversed(source.shape), strict=True):
        body = For(loop, const(0, size.dtype), size, ForKind.SERIAL, body)
    return body
