"""create_executor: a module as something that evaluates.

    relay.create_executor("graph", mod=mod).evaluate()(x)
    relay.create_executor("debug", mod=mod).evaluate()(x)        in numpy, operator by operator

"graph" and "aot" compile the model; "debug" interprets it with the references of the operators, which are the oracle;
"vm" takes any module: it compiles it for the shapes it is called with, and interprets what cannot be compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.ir.types import TupleType, Type
from loopwright.model.given_arrays import TensorLike, array_of
from loopwright.relay.adt import ConstructorValue
from loopwright.relay.arrays import as_tensor_array
from loopwright.relay.build_module import as_constant, bind_params_by_name, build, require_graph
from loopwright.relay.built import BuiltModule, Params
from loopwright.relay.errors import CannotCompile
from loopwright.relay.expr import Constant, Expr, Function, Var, require_expr
from loopwright.relay.infer_type import infer_module
from loopwright.relay.interpreter import RefValue, RunValue, evaluate
from loopwright.relay.nested import Nested, flat
from loopwright.relay.types import FuncType, TensorType, is_dynamic
from loopwright.relay.visitor import bind
from loopwright.target import TargetLike

KINDS = ("debug", "graph", "vm", "aot")


def _results(value: RunValue) -> RunValue:
    if isinstance(value, list):
        return tuple_of(value, _results)
    if isinstance(value, ConstructorValue):
        return ConstructorValue(value.constructor, [_results(field) for field in value.fields])  # type: ignore[arg-type]
    if isinstance(value, RefValue):
        value.value = _results(value.value)
    return as_tensor_array(value) if isinstance(value, np.ndarray) else value


def tuple_of(values: Sequence[RunValue], each: Callable[[RunValue], Any]) -> Any:
    """What a model returns for a tuple: a list that scripts also know as an `ADT`."""
    from loopwright.runtime.containers import ADT  # which loads tvm_ffi

    return ADT(0, [each(value) for value in values])


class ExecutorOfModule:
    """Evaluates expressions and the functions of one module."""

    def __init__(
        self,
        kind: str,
        mod: IRModule,
        device: object,
        target: TargetLike,
        params: Params | None,
    ) -> None:
        self.kind = kind
        self.mod = mod
        self.device = device
        self.target = target
        self.params = dict(params or {})
        # By function and shapes (None: whatever they are). No module: it has to be interpreted.
        self._compiled: dict[tuple[Function, tuple[object, ...] | None], _Structured | None] = {}

    def evaluate(
        self, expr: Expr | GlobalVar | None = None, binds: Mapping[Var, TensorLike | Constant] | None = None
    ) -> Any:
        """A function of arrays for a Function, a GlobalVar or nothing (main); the value for any other expression."""
        if expr is None:
            require_graph(self.mod)
            expr = self.mod.get_global_var("main")
        root = require_expr(self.mod[expr] if isinstance(expr, GlobalVar) else expr, "the body of a function")
        if binds:
            root = bind(root, {var: as_constant(value) for var, value in binds.items()})
        if not isinstance(root, Function):
            return _results(self._run(Function([], root), []))
        function = bind_params_by_name(root, self.params) if self.params else root
        return self._callable(function)

    def _callable(self, function: Function) -> Callable[..., RunValue]:
        names = [param.name_hint for param in function.params]

        def call(*args: object, **named: object) -> RunValue:
            # By position first: parameters may share a name.
            rest = names[len(args) :]
            if len(args) > len(names) or set(rest) != set(named):
                count = len(args) + len(named)
                raise ValueError(f"this function takes {', '.join(names) or 'nothing'}; {count} arguments are given")
            given = [*args, *(named[name] for name in rest)]
            values = [_argument(one, param.type_annotation) for one, param in zip(given, function.params, strict=True)]
            if self.kind == "graph":  # whose memory has the type of the parameter, whatever is copied into it
                values = [_converted(one, param.type_annotation) for one, param in zip(values, function.params)]
            return _results(self._run(function, values))

        return call

    def _run(self, function: Function, values: Sequence[Nested[np.ndarray]]) -> RunValue:
        if self.kind == "debug":
            return self._interpreted(function, values)
        if self.kind == "vm":
            return self._adaptive(function, values)
        module = self._with_main(function)
        infer_module(module)
        result = function.checked_type
        if isinstance(result, FuncType) and _unknown_result(result.ret_type):
            raise ValueError(
                f"the graph executor needs static shapes, and the result is {result.ret_type}: "
                "kind='vm' takes dynamic ones"
            )
        return self._compiled_for(function)(*flat(list(values)))

    def _with_main(self, function: Function) -> IRModule:
        module = self.mod.copy()
        module["main"] = function  # type: ignore[assignment]
        return module

    def _interpreted(self, function: Function, values: Sequence[Nested[np.ndarray]]) -> RunValue:
        module = self._with_main(function)
        infer_module(module)
        return evaluate(function, values, module)

    def _compiled_for(self, function: Function) -> _Structured:
        result = self._compiled.get((function, None))
        if result is None:
            result = _Structured(build(self._with_main(function), self.target), function)
            self._compiled[function, None] = result
        return result

    def _adaptive(self, function: Function, values: Sequence[Nested[np.ndarray]]) -> RunValue:
        """Compiled for the shapes at hand; what depends on values in a way that cannot be compiled is interpreted."""
        shapes = tuple(np.shape(value) for value in flat(list(values)))
        full = (function, shapes)
        if full not in self._compiled:
            static = with_shapes(function, values)
            try:
                module = infer_module(self._with_main(static))
                built: _Structured | None = _Structured(build(module, self.target), static)
            except CannotCompile:
                built = None
            self._compiled[full] = built
        result = self._compiled[full]
        return self._interpreted(function, values) if result is None else result(*flat(list(values)))


class _Structured:
    """A built model whose flat results become the tuples that the function returns."""

    def __init__(self, built: BuiltModule, function: Function) -> None:
        self.built = built
        self.of = function.checked_type.ret_type  # type: ignore[attr-defined]

    def __call__(self, *arrays: np.ndarray) -> Nested[np.ndarray]:
        outputs = self.built(*arrays)
        return _shaped(self.of, iter(outputs if isinstance(outputs, list) else [outputs]))


def run_built(built: BuiltModule, function: Function, given: Mapping[str, object]) -> Nested[np.ndarray]:
    """What a built model returns for the parameters of `function`, in the structure that the function returns."""
    values = [_argument(given[param.name_hint], param.type_annotation) for param in function.params]
    return _Structured(built, function)(*flat(values))


def _shaped(of: Type, arrays: Iterator[np.ndarray]) -> Nested[np.ndarray]:
    if isinstance(of, TupleType):
        return [_shaped(field, arrays) for field in of.fields]
    return next(arrays)


def with_shapes(function: Function, values: Sequence[Nested[np.ndarray]]) -> Function:
    """The function for arguments of exactly these shapes."""
    if not any(is_dynamic(param.type_annotation) for param in function.params if param.type_annotation is not None):
        return function
    params = [
        Var(param.name_hint, _type_of(value), param.span) for param, value in zip(function.params, values, strict=True)
    ]
    body = bind(function.body, dict(zip(function.params, params, strict=True)))
    return function.rebuilt(params, body)


def _type_of(value: Nested[np.ndarray]) -> Type:
    if isinstance(value, list):
        return TupleType(tuple(_type_of(one) for one in value))
    return TensorType(np.shape(value), value.dtype.name)


def _argument(value: object, annotated: Type | None) -> Any:
    if isinstance(value, (ConstructorValue, RefValue)):
        return value
    if isinstance(value, (list, tuple)) and annotated is None and any(hasattr(one, "numpy") for one in value):
        return [_argument(one, None) for one in value]
    if isinstance(value, Constant):
        return value.data
    if isinstance(value, (list, tuple)) and isinstance(annotated, TupleType):
        return [_argument(one, field) for one, field in zip(value, annotated.fields, strict=True)]
    array = array_of(value, "an argument")
    if isinstance(annotated, TensorType) and not isinstance(value, np.ndarray) and not hasattr(value, "numpy"):
        return array.astype(annotated.dtype.numpy())  # a Python number or list has the type that is wanted
    return array


def _converted(value: Any, annotated: Type | None) -> Any:
    if isinstance(value, np.ndarray) and isinstance(annotated, TensorType):
        return value.astype(annotated.dtype.numpy(), copy=False)
    return value


def _unknown_result(of: Type) -> bool:
    if isinstance(of, TupleType):
        return any(_unknown_result(field) for field in of.fields)
    return not isinstance(of, TensorType)


def create_executor(
    kind: str = "debug",
    mod: IRModule | Expr | None = None,
    device: object = None,
    target: TargetLike = "llvm",
    params: Params | None = None,
) -> ExecutorOfModule:
    """What evaluates the functions of `mod`, and expressions that call them."""
    if kind not in KINDS:
        raise RuntimeError(f"unknown execution strategy: {kind!r}; there are {', '.join(KINDS)}")
    module = IRModule() if mod is None else mod
    if isinstance(module, Expr):
        module = IRModule({"main": module if isinstance(module, Function) else Function([], module)})  # type: ignore[dict-item]
    functions = module.values() if isinstance(module, IRModule) else [module]
    if functions and not any(isinstance(function, Function) for function in functions):
        require_graph(module)
    return ExecutorOfModule(kind, module, device, target, params)
