"""build: from a graph to one native function.

    lib = relay.build(mod, target="llvm", params=params)
    out = lib(x)                                        the outputs, as tensors
    lib.export_library("model.so")                      and graph_executor.GraphModule(lib["default"](lw.cpu()))

Parameters given by `params` become constants of the model. Sizes of inputs that are not known (`relay.AnyDim()`) become
size variables: the function reads them from the tensors it is called with. Passes run as `transform/pipeline.py` lists
them, kernels are scheduled by rule and compiled once each, memory is planned (`model/`).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from loopwright.ir import Var as SizeVariable
from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.ir.rare_collections import rare_collections
from loopwright.ir.types import TupleType, Type
from loopwright.model import compile_program
from loopwright.model.errors import BadModelInput
from loopwright.model.given_arrays import TensorLike, array_of
from loopwright.model.program import Program
from loopwright.relay.adt import Constructor, Match
from loopwright.relay.backend.options import Executor, Runtime, as_executor, as_runtime
from loopwright.relay.built import BuiltModule, Params
from loopwright.relay.errors import CannotCompile, NameOfSeveral, NotAGraph
from loopwright.relay.expr import Constant, Function, Var
from loopwright.relay.external import compile_external
from loopwright.relay.graph_functions import graph_function
from loopwright.relay.lower.lower_to_program import lower_to_program, name_outputs
from loopwright.relay.size_checks import graph_checks
from loopwright.relay.transform.devices.require_cpu import require_cpu
from loopwright.relay.transform.pipeline import optimize as run_passes
from loopwright.relay.transform.types.infer_type import InferType
from loopwright.relay.types import TensorType, is_any
from loopwright.relay.unify_dims import unify_dims
from loopwright.relay.visitor import bind, post_order
from loopwright.runtime.module import Module
from loopwright.target import Target, TargetLike
from loopwright.te import size_var

# A target, one by the device that it is for, or a list of one; none: the current one, or this machine.
Targets: TypeAlias = TargetLike | Mapping[object, TargetLike] | Sequence[TargetLike] | None


@rare_collections
def build(
    ir_mod: IRModule | Function,
    target: Targets = None,
    target_host: object = None,
    executor: Executor | str | None = None,
    runtime: Runtime | str | None = None,
    workspace_memory_pools: object = None,
    constant_memory_pools: object = None,
    params: Params | None = None,
    mod_name: str = "default",
    winograd: bool | int = False,
    output_names: Sequence[str] = (),
) -> BuiltModule:
    """One native function that computes what `main` of the module does; `params` are bound by name as constants.

    Without `target`, for the current one or else this machine. `executor` and `runtime` are those of `relay.backend`,
    or their names; the function is the same for all. It is called `mod_name`, and its results in C `output_names`.
    `winograd=True` allows convolutions to be rounded otherwise (see "Winograd" in the documentation).
    """
    if target_host is not None:
        warnings.warn("target_host is deprecated: use Target(target, host=...)", DeprecationWarning, stacklevel=2)
    if isinstance(ir_mod, Function):
        warnings.warn(
            "relay.build of a Function is deprecated: give IRModule.from_expr(f)", DeprecationWarning, stacklevel=2
        )
        ir_mod = IRModule.from_expr(ir_mod)
    require_graph(ir_mod)
    chosen, how = _one_target(target), as_executor(executor)
    as_runtime(runtime)
    with chosen:
        typed, left = _typed(ir_mod, params)
        checks = graph_checks(graph_function(typed))
        fused = run_passes(typed)
        main = graph_function(fused)
        program = lower_to_program(main, mod_name, fused, checks)
        name_outputs(program, output_names)
        external = link_external(program)
        compiled = compile_program(program, chosen, winograd=winograd)
    names = [param.name_hint for param in main.params]
    return BuiltModule(fused, program, compiled, names, mod_name, how, left, external)


def link_external(program: Program) -> dict[str, np.ndarray]:
    """Compile what other compilers take over of a program; the constants that they have by name."""
    functions: Mapping[str, Function] = program.attrs["externals"]  # type: ignore[assignment]
    modules: dict[Module, None] = {}
    constants: dict[str, np.ndarray] = {}
    for function in functions.values():
        module, given = compile_external(function)
        modules[module] = None
        constants |= given
    program.modules = tuple(modules)
    return constants


def optimize(
    mod: IRModule, target: Targets = None, params: Params | None = None
) -> tuple[IRModule, dict[str, TensorLike | Constant]]:
    """The module after the passes of `build`, and those of `params` that no parameter has the name of."""
    typed, left = _typed(mod, params)
    return run_passes(typed), left


def _typed(mod: IRModule, params: Params | None) -> tuple[IRModule, dict[str, TensorLike | Constant]]:
    """The module with `params` bound, its open sizes named and its types inferred, and what is left of `params`."""
    require_graph(mod)
    mod = require_cpu(mod)
    if mod.type_definitions:
        require_tensors(mod)
    if len(mod.functions) > 1:
        require_no_recursion(mod)
    used = {param.name_hint for param in mod["main"].params}
    require_params(params or {})
    left = {name: value for name, value in (params or {}).items() if name not in used}
    bound = mod.copy()
    main = bind_params_by_name(graph_function(bound), params or {})
    named, open_sizes = _named_sizes(main)
    bound["main"] = named  # type: ignore[assignment]
    return InferType()(unify_dims(bound, open_sizes)), left


def require_tensors(mod: IRModule) -> None:
    """Refuse what has values other than tensors and tuples of them: data types (`adt.py`)."""
    waiting: list[object] = [mod["main"]]
    seen = {"main"}
    while waiting:
        function = waiting.pop()
        for part in post_order(function) if isinstance(function, Function) else ():
            if isinstance(part, (Match, Constructor)):
                what = part.belong_to.name_hint if isinstance(part, Constructor) else "a match"
                raise CannotCompile(
                    f"the graph holds values of data types ({what}), and a native function holds tensors",
                    hint='relay.create_executor("vm", mod) interprets it; loops of tensors (relay.loops) compile',
                )
            if isinstance(part, GlobalVar) and part.name not in seen and part.name in mod:
                seen.add(part.name)
                waiting.append(mod[part])


def require_no_recursion(mod: IRModule) -> None:
    """Refuse functions of the module that call themselves, or each other in a circle: calls are inlined."""
    done: set[str] = set()

    def look(name: str, callers: tuple[str, ...]) -> None:
        if name in callers:
            circle = " → ".join([f"@{one}" for one in (*callers[callers.index(name) :], name)])
            raise CannotCompile(
                f"the module has a function that calls itself ({circle}), and a native function has no stack of calls",
                hint='relay.create_executor("vm", mod) interprets it; loops of tensors (relay.loops) compile',
            )
        function = mod[name] if name not in done else None
        if isinstance(function, Function):
            for part in post_order(function):
                if isinstance(part, GlobalVar) and part.name in mod:
                    look(part.name, (*callers, name))
        done.add(name)

    look("main", ())


def require_params(params: object) -> None:
    """Refuse parameters that are no dict by name."""
    if not isinstance(params, Mapping):
        raise BadModelInput(f"the parameters are a dict of arrays by name, not {type(params).__name__}")


def bind_params_by_name(function: Function, params: Params) -> Function:
    """The function with the parameters of these names replaced by constants."""
    require_params(params)
    names = [param.name_hint for param in function.params if param.name_hint in params]
    if len(set(names)) < len(names):
        double = next(name for name in names if names.count(name) > 1)
        raise NameOfSeveral(double)
    values = {param: as_constant(params[param.name_hint]) for param in function.params if param.name_hint in params}
    return bind(function, values) if values else function


def as_constant(value: TensorLike | Constant) -> Constant:
    """A tensor or an array as a constant; its memory is not copied where numpy can share it."""
    if isinstance(value, Constant):
        return value
    return Constant(array_of(value, "a parameter"))


def name_sizes(function: Function) -> Function:
    """The function with a size variable for each size of its parameters that is not known."""
    return _named_sizes(function)[0]


def _named_sizes(function: Function) -> tuple[Function, set[SizeVariable]]:
    """The same, and the variables."""
    result: set[SizeVariable] = set()

    def named(of: Type | None, hint: str) -> Type | None:
        if isinstance(of, TupleType):
            return TupleType(tuple(named(field, hint) or field for field in of.fields))
        if not isinstance(of, TensorType) or not any(is_any(size) for size in of.shape):
            return of
        sizes = []
        for index, size in enumerate(of.shape):
            if is_any(size):
                size = size_var(f"{_word(hint)}_{index}")
                result.add(size)
            sizes.append(size)
        return TensorType(sizes, str(of.dtype))

    values: dict[Var, Var] = {}
    params = []
    for param in function.params:
        of = named(param.type_annotation, param.name_hint)
        fresh = param if of is param.type_annotation else Var(param.name_hint, of, param.span)
        if fresh is not param:
            values[param] = fresh
        params.append(fresh)
    if not values:
        return function, result
    body = bind(function.body, values)
    return function.rebuilt(params, body), result


def _word(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name) or "size"


def require_graph(mod: object) -> None:
    """Refuse what is no module with a graph function `main`."""
    if not isinstance(mod, IRModule) or "main" not in mod or not isinstance(mod["main"], Function):
        raise NotAGraph(mod)


def _one_target(targets: Targets) -> Target:
    target: Any = targets
    if isinstance(target, Mapping):
        if len(target) != 1:
            raise ValueError(f"a model is built for one target, and {len(target)} are given")
        target = next(iter(target.values()))
    if isinstance(target, (list, tuple)) and len(target) == 1:
        target = target[0]
    return Target(target) if target is not None else Target.current(allow_none=True) or Target("llvm")
