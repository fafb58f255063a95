"""as_module: the IRModule that a user's program stands for, whatever it is written in."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from types import FunctionType
from typing import Any

from loopwright.ir.expr import Producer, Var
from loopwright.ir.function import IRModule, PrimFunc
from loopwright.runtime.errors import LoopwrightError, NotBuilt, user_stack_level, with_article


class NotBuildable(LoopwrightError, ValueError):
    """`build` or `lower` was given something that is no program.

    For example:

        import loopwright

        loopwright.build("add.py")
    """

    code = "LW0790"

    def __init__(self, given: object) -> None:
        kind = type(given).__name__
        what, why = with_article(kind), None
        if isinstance(given, (list, tuple)):
            what = f"this {kind}" if given else f"an empty {kind}"
            why = next(
                (
                    f"entry {k} of the {kind} is {with_article(type(item).__name__)}"
                    for k, item in enumerate(given)
                    if not isinstance(item, (PrimFunc, IRModule, Producer, Var))
                ),
                "it mixes tensors and functions" if given else None,
            )
        hint = "give a PrimFunc, an IRModule, or a list of te tensors (inputs, then outputs)"
        if isinstance(given, FunctionType):
            call = f"{given.__name__}({'…' * (given.__code__.co_argcount > 0)})"
            what = f"{given.__name__}, which is a Python function"
            hint = f"if it returns a program, give its result: {call}; if it is one, put @T.prim_func above it"
        super().__init__(
            f"cannot build {what}",
            why=why,
            hint=hint,
            fields={"given": kind},
        )


class ArgsWithoutSchedule(LoopwrightError, TypeError):
    """`args` was given for tensors, which are the parameters of their function themselves.

    Only a te schedule leaves them open. A PrimFunc and an IRModule have parameters, too: there, `args` is ignored with
    a warning, as scripts for TVM give it.

    For example:

        import loopwright
        from loopwright import te

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        loopwright.build([A, B], [A, B])  # build([A, B])
    """

    code = "LW0791"

    def __init__(self, args: object) -> None:
        super().__init__(
            f"args belongs to a schedule, and is {type(args).__name__} {args!r} here",
            hint="leave args out: the program says what its parameters are",
        )


class BadFunctionName(LoopwrightError, TypeError):
    """A compiled function is found by its name, which is a text that is not empty.

    For example:

        import loopwright
        from loopwright import te

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        loopwright.build([A, B], name="")
    """

    code = "LW0792"

    def __init__(self, name: object) -> None:
        super().__init__(f"{name!r} cannot name a function", hint='give a text, such as name="main"')


class NameClash(LoopwrightError, ValueError):
    """Two functions of one program would be compiled under the same name.

    For example:

        import loopwright
        from loopwright import ir, te

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        func = te.create_prim_func([A, B]).with_attr("global_symbol", "add")
        loopwright.build(ir.IRModule({"first": func, "second": func}))
    """

    code = "LW0793"

    def __init__(self, symbol: str, first: str, second: str) -> None:
        super().__init__(
            f"functions {first} and {second} would both be compiled as {symbol!r}, their global_symbol",
            hint=f'give one another name: function.with_attr("global_symbol", "{second}_2")',
            fields={"symbol": symbol, "functions": (first, second)},
        )


class NameForSeveral(LoopwrightError, ValueError):
    """`name=` was given for a program of several functions: it can be the name of one.

    For example:

        import loopwright
        from loopwright import ir, te

        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1, name="B")
        add = te.create_prim_func([A, B], name="add")
        other = te.create_prim_func([A, B], name="other")
        loopwright.build(ir.IRModule({"add": add, "other": other}), name="sum")
    """

    code = "LW0794"

    def __init__(self, name: str, names: Sequence[str]) -> None:
        super().__init__(
            f"name={name!r} cannot name {len(names)} functions: {', '.join(names)}",
            hint='leave name out, and name each: te.create_prim_func([A, B], name="add"), or '
            'function.with_attr("global_symbol", "add")',
            fields={"name": name, "functions": list(names)},
        )


def as_module(inputs: Any, args: Any = None, name: str = "main", binds: Any = None) -> IRModule:
    """The IRModule that `inputs` stands for; `args` and `binds` belong to a te schedule.

    `name` is that of its one function; "main" leaves a function that has a name its own.
    """
    if not isinstance(name, str) or not name:
        raise BadFunctionName(name)
    if is_te_schedule(inputs):
        from loopwright.te.schedule.to_module import schedule_to_module

        return schedule_to_module(inputs, args, name, binds)
    if _is_tir_schedule(inputs):
        inputs = inputs.mod
    if args is not None:
        if not isinstance(inputs, (PrimFunc, IRModule)):
            raise ArgsWithoutSchedule(args)
        warnings.warn("args is ignored: the program says what its parameters are", stacklevel=user_stack_level())
    _refuse_binds(binds)
    if isinstance(inputs, IRModule):
        _require_distinct_symbols(inputs.functions_items())
        return _named(inputs, name)
    if isinstance(inputs, PrimFunc):
        # A name that is asked for wins over the function's own; the default does not count.
        symbol = name if name != "main" else inputs.attrs.get("global_symbol", name)
        return IRModule({str(symbol): inputs.with_attr("global_symbol", symbol)})
    from loopwright import te

    if isinstance(inputs, te.Tensor):
        inputs = [inputs]
    if isinstance(inputs, (list, tuple)) and inputs:
        # Variables are parameters too; a list of nothing else computes nothing, and create_prim_func says so.
        if all(isinstance(item, (te.Tensor, Var)) for item in inputs):
            return IRModule({name: te.create_prim_func(inputs).with_attr("global_symbol", name)})
        if all(isinstance(item, (PrimFunc, IRModule)) for item in inputs):
            modules = [as_module(item) for item in inputs]
            _require_distinct_symbols([item for module in modules for item in module.functions_items()])
            merged = IRModule()
            for module in modules:
                merged.update(module)
            return _named(merged, name)
    raise NotBuildable(inputs)


def _named(module: IRModule, name: str) -> IRModule:
    """The module with its function under the name that is asked for; the default asks for none."""
    functions = list(module.functions_items())
    if name == "main":
        return module
    if len(functions) != 1:
        raise NameForSeveral(name, [key for key, _ in functions])
    ((_, function),) = functions
    return IRModule({name: function.with_attr("global_symbol", name)}, attrs=module.attrs)


def is_te_schedule(inputs: object) -> bool:
    """Whether this is a te schedule; te is not loaded to find out."""
    te = sys.modules.get("loopwright.te.schedule.schedule")
    return te is not None and isinstance(inputs, te.Schedule)


def _is_tir_schedule(inputs: object) -> bool:
    schedule = sys.modules.get("loopwright.schedule.engine.schedule")
    return schedule is not None and isinstance(inputs, schedule.Schedule)


def _require_distinct_symbols(functions: Iterable[tuple[str, PrimFunc]]) -> None:
    seen: dict[str, str] = {}
    for key, function in functions:
        symbol = str(function.attrs.get("global_symbol", key))
        if symbol in seen:
            raise NameClash(symbol, seen[symbol], key)
        seen[symbol] = key


def _refuse_binds(binds: object) -> None:
    # Leaving them out in silence would build another program than the one asked for.
    if binds is not None:
        raise NotBuilt("binding tensors to buffers of one's own", "binds belongs to a te schedule: leave it out here")
