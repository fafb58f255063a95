"""Passes: functions from program to program, and the context that says which of them run and who watches.

    @function_pass                                       our own passes: PrimFunc → PrimFunc, callable on modules too
    def remove_nothing(func): return func

    @prim_func_pass(opt_level=1)                         the users' form
    def mine(func, mod, ctx): return func

    with PassContext(disabled_pass=["mine"], instruments=[PassTimingInstrument()]):
        mod = Sequential([remove_nothing, mine])(mod)

Inside a Sequential a pass runs unless it is disabled or above the context's level; called directly it always runs.
Instruments (`instrument.py`) may still say no.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, NamedTuple, overload

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule, PrimFunc
from loopwright.ir.instrument import PassInstrument
from loopwright.ir.pass_config import CONFIG_KEYS, checked_config, register_config
from loopwright.runtime.errors import LoopwrightError


class NoOptLevel(LoopwrightError, ValueError):
    """A pass decorator was used without the level from which on the pass runs."""

    code = "LW0522"

    def __init__(self, decorator: str) -> None:
        super().__init__(
            f"{decorator}: the pass has no opt_level",
            why="the level says in which contexts a Sequential runs the pass",
            hint=f"write @{decorator}(opt_level=0) to have it run always",
        )


class NotAModule(LoopwrightError, TypeError):
    """A pass was called on something that is neither a module nor a function."""

    code = "LW0523"

    def __init__(self, name: str, given: object) -> None:
        super().__init__(f"pass {name} runs on an IRModule or a PrimFunc, got {type(given).__name__}")


class BadPassResult(LoopwrightError, TypeError):
    """A pass returned something else than the program it has to return."""

    code = "LW0524"

    def __init__(self, name: str, wanted: str, result: object) -> None:
        super().__init__(
            f"pass {name} returned {type(result).__name__}, not a {wanted}",
            hint="return the given object itself when there is nothing to change" if result is None else None,
        )


class PassInfo(NamedTuple):
    """What is known of a pass without running it."""

    opt_level: int
    name: str
    required: tuple[str, ...] = ()
    traceable: bool = False
    is_sequence: bool = False  # runs other passes, which are reported by themselves


class PassContext:
    """The settings under which passes run; `with` makes it the current one, and contexts nest."""

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Sequence[str] | None = None,
        disabled_pass: Sequence[str] | None = None,
        instruments: Sequence[PassInstrument] | None = None,
        config: Mapping[str, object] | None = None,
    ) -> None:
        self.opt_level = opt_level
        self.required_pass = _names("required_pass", required_pass)
        self.disabled_pass = _names("disabled_pass", disabled_pass)
        self.instruments = list(instruments or ())
        self.config: dict[str, Any] = checked_config(config)
        self._tokens: list[Token[PassContext | None]] = []

    @staticmethod
    def current() -> PassContext:
        """The innermost context that is open; a plain one when there is none."""
        return _current.get() or PassContext()

    @staticmethod
    def list_configs() -> dict[str, dict[str, object]]:
        """Every setting: its type, default and meaning."""
        return {
            name: {"type": key.type.__name__, "default": key.default, "meaning": key.meaning}
            for name, key in sorted(CONFIG_KEYS.items())
        }

    def setting(self, key: str) -> Any:
        """The value of a setting, or its default."""
        return self.config[key] if key in self.config else CONFIG_KEYS[key].default

    def override_instruments(self, instruments: Sequence[PassInstrument] | None) -> None:
        """Let the present instruments leave, and the given ones enter."""
        self._leave(self.instruments)
        self.instruments = list(instruments or ())
        self._enter()

    def pass_enabled(self, info: PassInfo) -> bool:
        """Whether a Sequential runs the pass in this context."""
        if info.name in self.disabled_pass:
            return False
        return info.name in self.required_pass or info.opt_level <= self.opt_level

    def __enter__(self) -> PassContext:
        self._tokens.append(_current.set(self))
        try:
            self._enter()
        except BaseException:
            _current.reset(self._tokens.pop())
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.reset(self._tokens.pop())
        self._leave(self.instruments)

    def _enter(self) -> None:
        for count, instrument in enumerate(self.instruments):
            try:
                instrument.enter_pass_ctx()
            except BaseException:
                # Those inside already must get their chance to clean up, newest first; none may watch afterwards.
                entered, self.instruments = self.instruments[:count], []
                self._leave(entered[::-1])
                raise

    def _leave(self, instruments: Sequence[PassInstrument]) -> None:
        for instrument in instruments:
            try:
                instrument.exit_pass_ctx()
            except BaseException:
                self.instruments = []
                raise


_current: ContextVar[PassContext | None] = ContextVar("loopwright_pass_context", default=None)


def _names(field: str, names: Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names or ()):
        raise LoopwrightError(f"PassContext: {field} is a list of pass names, got {names!r}")
    return tuple(names or ())


class Pass:
    """A named step from module to module; on a PrimFunc it gives the changed PrimFunc."""

    def __init__(self, info: PassInfo) -> None:
        self.info = info
        registered_passes.setdefault(info.name, self)

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


# By name, for `required`; the first pass of a name is kept.
registered_passes: dict[str, Pass] = {}


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
    made = PrimFuncPass(lambda func, mod, context: change(func), PassInfo(0, change.__name__))
    functools.update_wrapper(made, change)
    return made


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
        for each in self.passes:
            if not context.pass_enabled(each.info):
                continue
            for name in each.info.required:
                mod = _required(each, name)(mod)
            mod = each(mod)
        return mod


def _required(each: Pass, name: str) -> Pass:
    if name not in registered_passes:
        raise LoopwrightError(
            f"pass {each.info.name} requires pass {name!r}, which does not exist",
            hint="a pass is known by name once it has been made",
        )
    return registered_passes[name]


def module_pass(
    pass_func: Any = None, opt_level: int | None = None, name: str | None = None, required: Sequence[str] | None = None
) -> Any:
    """Decorator: a function `(mod, ctx)`, or a class with `transform_module(self, mod, ctx)`, becomes a pass."""
    return _decorate("module_pass", ModulePass, "transform_module", pass_func, opt_level, name, required)


def prim_func_pass(
    pass_func: Any = None, opt_level: int | None = None, name: str | None = None, required: Sequence[str] | None = None
) -> Any:
    """Decorator: a function `(func, mod, ctx)`, or a class with `transform_function(self, …)`, becomes a pass."""
    return _decorate("prim_func_pass", PrimFuncPass, "transform_function", pass_func, opt_level, name, required)


def _decorate(
    decorator: str,
    kind: Any,
    method: str,
    given: Any,
    opt_level: int | None,
    name: str | None,
    required: Sequence[str] | None,
) -> Any:
    if opt_level is None:
        raise NoOptLevel(decorator)
    level = opt_level

    def decorate(body: Any) -> Any:
        info = PassInfo(level, name or body.__name__, tuple(required or ()))
        if not isinstance(body, type):
            return kind(body, info)
        if not hasattr(body, method):
            raise LoopwrightError(f"{decorator}: class {body.__name__} has no method {method}")

        class Made(kind):
            """Making one runs the class's own constructor; calling it runs its method."""

            def __init__(self, *args: object, **kwargs: object) -> None:
                self.instance = body(*args, **kwargs)
                kind.__init__(self, getattr(self.instance, method), info)

            def __getattr__(self, attribute: str) -> object:
                # Only reached for what the pass itself lacks: the user's class keeps its own state.
                if attribute == "instance":
                    raise AttributeError(attribute)
                return getattr(self.instance, attribute)

        Made.__name__, Made.__qualname__, Made.__doc__ = body.__name__, body.__qualname__, body.__doc__
        return Made

    return decorate if given is None else decorate(given)


def apply(change: Callable[[PrimFunc], PrimFunc]) -> Pass:
    """A pass that runs `change` on every function."""
    return PrimFuncPass(lambda func, mod, context: change(func), PassInfo(0, "Apply"))


def filter_functions(keep: Callable[[PrimFunc], bool]) -> Pass:
    """A pass that drops the functions for which `keep` is false."""

    def change(mod: IRModule, context: PassContext) -> IRModule:
        kept: dict[str | GlobalVar, PrimFunc] = {var: func for var, func in mod.functions.items() if keep(func)}
        return mod if len(kept) == len(mod) else IRModule(kept, attrs=mod.attrs)

    return ModulePass(change, PassInfo(0, "Filter"))


def PrintIR(header: str = "", show_meta_data: bool = False) -> Pass:
    """A pass that changes nothing and prints the module's script."""

    def change(mod: IRModule, context: PassContext) -> IRModule:
        print(f"# {header}\n{mod.script()}" if header else mod.script())
        return mod

    return ModulePass(change, PassInfo(0, "PrintIR"))


Apply = apply
Filter = filter_functions

__all__ = [
    "Apply",
    "Filter",
    "Pass",
    "PassContext",
    "PassInfo",
    "PrintIR",
    "Sequential",
    "function_pass",
    "module_pass",
    "prim_func_pass",
    "register_config",
]
