"""Passes: functions from program to program.

    @function_pass                                       our own passes: PrimFunc → PrimFunc, callable on modules too
    def remove_nothing(func): return func

    mod = Sequential([remove_nothing, mine])(mod)

Inside a Sequential a pass runs unless the context (`pass_context.py`) disables it, or it stands above the context's
level; called directly it always runs. Instruments (`instrument.py`) may still say no. Users' own passes come from
`pass_decorators.py`; `pass_combinators.py` makes passes of functions and of other passes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Final, overload

from loopwright.display import progress
from loopwright.ir.function import IRModule, PrimFunc
from loopwright.ir.pass_aliases import own_name
from loopwright.ir.pass_context import PassContext, PassInfo, known_passes
from loopwright.runtime.errors import LoopwrightError

# Every pass that was made, by name; the first of a name is kept.
registered_passes: Final[dict[str, Pass]] = {}


class NotAModule(LoopwrightError, TypeError):
    """A pass was called on something that is neither a module nor a function.

    For example:

        from loopwright import te, tir

        tir.transform.Simplify()(te.placeholder((4,)))
    """

    code = "LW0523"

    def __init__(self, name: str, given: object) -> None:
        super().__init__(f"pass {name} runs on an IRModule or a PrimFunc, got {type(given).__name__}")


class BadPassResult(LoopwrightError, TypeError):
    """A pass returned something else than the program it has to return.

    For example:

        from loopwright import ir, tir

        @tir.transform.prim_func_pass(opt_level=0)
        def without_return(func, mod, ctx):
            print(func.attrs)

        without_return(ir.IRModule({"main": tir.PrimFunc([], tir.Evaluate(0))}))
    """

    code = "LW0524"

    def __init__(self, name: str, wanted: str, result: object) -> None:
        super().__init__(
            f"pass {name} returned {type(result).__name__}, not a {wanted}",
            hint="return the given object itself when there is nothing to change" if result is None else None,
        )


class NoSuchPass(LoopwrightError, ValueError):
    """A pass requires another by a name that no pass has. A pass is known by name once it has been made.

    For example:

        from loopwright.ir import IRModule
        from loopwright.ir.transform import Sequential, module_pass

        @module_pass(opt_level=0, required=["unheard_of"])
        def mine(mod, ctx):
            return mod

        Sequential([mine])(IRModule())
    """

    code = "LW0525"

    def __init__(self, name: str, wanted_by: str) -> None:
        near = get_close_matches(name, registered_passes, 3)
        super().__init__(
            f"pass {wanted_by} requires pass {name!r}, which does not exist",
            hint=f"did you mean {', '.join(near)}?" if near else "a pass is known by name once it has been made",
            fields={"name": name, "wanted_by": wanted_by},
        )


class Pass:
    """A named step from module to module; on a PrimFunc it gives the changed PrimFunc."""

    def __init__(self, info: PassInfo) -> None:
        self.info = info
        registered_passes.setdefault(info.name, self)
        known_passes.add(info.name)

    @overload
    def __call__(self, program: PrimFunc) -> PrimFunc: ...
    @overload
    def __call__(self, program: IRModule) -> IRModule: ...
    def __call__(self, program: PrimFunc | IRModule) -> PrimFunc | IRModule:
        if isinstance(program, PrimFunc):
            return self._run(IRModule.from_expr(program))[program.name]
        if not isinstance(program, IRModule):
            raise NotAModule(self.info.name, program)
        return self._run(program)

    def _run(self, mod: IRModule) -> IRModule:
        context = PassContext.current()
        instruments = context.instruments
        # Every instrument is asked, also after one said no: each may be counting.
        answers = [instrument.should_run(mod, self.info) for instrument in instruments]
        if not all(answers):
            return mod
        for instrument in instruments:
            instrument.run_before_pass(mod, self.info)
        result = self.transform(mod, context)
        if not isinstance(result, IRModule):
            raise BadPassResult(self.info.name, "IRModule", result)
        for instrument in instruments:
            instrument.run_after_pass(result, self.info)
        return result

    def transform(self, mod: IRModule, context: PassContext) -> IRModule:
        """The changed module, or `mod` itself."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.info.name!r}, opt_level={self.info.opt_level})"


class ModulePass(Pass):
    """A pass made from a function `(mod, ctx) → mod`."""

    def __init__(self, change: Callable[[IRModule, PassContext], IRModule], info: PassInfo) -> None:
        super().__init__(info)
        self.change = change
        self.__doc__ = change.__doc__

    def transform(self, mod: IRModule, context: PassContext) -> IRModule:
        return self.change(mod, context)


class PrimFuncPass(Pass):
    """A pass made from a function `(func, mod, ctx) → func`, run on every PrimFunc of a module."""

    def __init__(self, change: Callable[[PrimFunc, IRModule, PassContext], PrimFunc], info: PassInfo) -> None:
        super().__init__(info)
        self.change = change
        self.__doc__ = change.__doc__

    def transform(self, mod: IRModule, context: PassContext) -> IRModule:
        def change(function: PrimFunc) -> PrimFunc:
            if not isinstance(function, PrimFunc):
                return function
            result = self.change(function, mod, context)
            if not isinstance(result, PrimFunc):
                raise BadPassResult(self.info.name, "PrimFunc", result)
            return result

        return mod.map_functions(change)


def function_pass(change: Callable[[PrimFunc], PrimFunc]) -> PrimFuncPass:
    """Make a plain function PrimFunc → PrimFunc a pass of the same name: the form of Loopwright's own passes."""
    result = PrimFuncPass(lambda func, mod, context: change(func), PassInfo(0, change.__name__))
    functools.update_wrapper(result, change)
    return result


class Sequential(Pass):
    """Several passes, run in the given order; before each, the passes it requires."""

    def __init__(
        self,
        passes: Sequence[Pass] | None = None,
        opt_level: int = 0,
        name: str = "sequential",
        required: Sequence[str] | None = None,
    ) -> None:
        super().__init__(PassInfo(opt_level, name, tuple(required or ()), is_sequence=True))
        self.passes = list(passes or ())

    def transform(self, mod: IRModule, context: PassContext) -> IRModule:
        context.check_names(each.info.name for each in self.passes)
        with progress.task(self.info.name, len(self.passes)) as task:
            for each in self.passes:
                task.advance(each.info.name)
                if not context.pass_enabled(each.info):
                    continue
                for name in each.info.required:
                    mod = _required(each, name)(mod)
                mod = each(mod)
        return mod


def _required(each: Pass, name: str) -> Pass:
    if own_name(name) not in registered_passes:
        raise NoSuchPass(name, each.info.name)
    return registered_passes[own_name(name)]
