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
import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from difflib import get_close_matches
from types import TracebackType
from typing import Any, NamedTuple, overload

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule, PrimFunc
from loopwright.ir.instrument import PassInstrument
from loopwright.ir.pass_config import CONFIG_KEYS, checked_config, register_config
from loopwright.ir.pass_names import PEER_PASSES, is_peer_name, own_name
from loopwright.runtime.errors import LoopwrightError


class NoOptLevel(LoopwrightError, ValueError):
    """A pass decorator was used without the level from which on the pass runs.

    For example:

        from loopwright.tir.transform import prim_func_pass

        @prim_func_pass
        def tidy(func, mod, ctx):
            return func
    """

    code = "LW0522"

    def __init__(self, decorator: str) -> None:
        super().__init__(
            f"{decorator}: the pass has no opt_level",
            why="the level says in which contexts a Sequential runs the pass",
            hint=f"write @{decorator}(opt_level=0) to have it run always",
        )


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


class BadPassNames(LoopwrightError, TypeError):
    """The passes to require or to disable were not given as a list of names.

    For example:

        from loopwright import PassContext

        PassContext(disabled_pass="simplify")
    """

    code = "LW0526"

    def __init__(self, field: str, names: object) -> None:
        super().__init__(
            f"PassContext: {field} is a list of pass names, got {names!r}",
            hint=f"write {field}=[{names!r}]" if isinstance(names, str) else None,
        )


class NotAPassClass(LoopwrightError, TypeError):
    """A class under a pass decorator lacks the method that does the work.

    For example:

        from loopwright.ir.transform import module_pass

        @module_pass(opt_level=0)
        class Tidy:
            def run(self, mod, ctx):
                return mod
    """

    code = "LW0527"

    def __init__(self, decorator: str, cls: type, method: str) -> None:
        near = get_close_matches(method, [name for name in dir(cls) if not name.startswith("__")], 1)
        super().__init__(
            f"{decorator}: class {cls.__name__} has no method {method}",
            hint=f"rename {near[0]} to {method}" if near else f"give it a method {method}",
        )


class UnknownPassWarning(UserWarning):
    """A PassContext requires or disables a pass that does not exist: it was perhaps meant by another name."""


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
        self._disabled = frozenset([own_name(name) for name in self.disabled_pass])
        self._required = frozenset([own_name(name) for name in self.required_pass])
        self._names_checked = not (self.disabled_pass or self.required_pass)
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
        if info.name in self._disabled:
            return False
        return info.name in self._required or info.opt_level <= self.opt_level

    def check_names(self, present: Sequence[Pass]) -> None:
        """Warn of names that are no pass's: a misspelt one would change nothing, in silence.

        Asked when passes first run, since users' passes may be made after the context.
        """
        if self._names_checked:
            return
        self._names_checked = True
        known = {*registered_passes, *[each.info.name for each in present]}
        for field in ("disabled_pass", "required_pass"):
            for name in getattr(self, field):
                if own_name(name) not in known and not is_peer_name(name):
                    near = get_close_matches(name, [*known, *PEER_PASSES], 3)
                    hint = f"; did you mean {', '.join(near)}?" if near else ""
                    message = f"PassContext: {field} names {name!r}, but no pass is called that{hint}"
                    warnings.warn(message, UnknownPassWarning, stacklevel=_stack_level())

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
    if names is not None and not isinstance(names, (list, tuple, set, frozenset)):
        raise BadPassNames(field, names)
    if not all(isinstance(name, str) for name in names or ()):
        raise BadPassNames(field, names)
    return tuple(names or ())


def _stack_level() -> int:
    """How many frames up the user's own call stands."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("loopwright"):
        frame, level = frame.f_back, level + 1
    return level


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
        context.check_names(self.passes)
        for each in self.passes:
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


def module_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Any:
    """Decorator: a function `(mod, ctx)`, or a class with `transform_module(self, mod, ctx)`, becomes a pass."""
    return _decorate("module_pass", ModulePass, "transform_module", pass_func, opt_level, name, required, traceable)


def prim_func_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Any:
    """Decorator: a function `(func, mod, ctx)`, or a class with `transform_function(self, …)`, becomes a pass."""
    return _decorate(
        "prim_func_pass", PrimFuncPass, "transform_function", pass_func, opt_level, name, required, traceable
    )


def _decorate(
    decorator: str,
    kind: Any,
    method: str,
    given: Any,
    opt_level: int | None,
    name: str | None,
    required: Sequence[str] | None,
    traceable: bool,
) -> Any:
    if opt_level is None:
        raise NoOptLevel(decorator)
    level = opt_level

    def decorate(body: Any) -> Any:
        info = PassInfo(level, name or body.__name__, tuple(required or ()), traceable)
        if not isinstance(body, type):
            return kind(body, info)
        if not hasattr(body, method):
            raise NotAPassClass(decorator, body, method)

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


class NoFunctionMatches(LoopwrightError, ValueError):
    """ApplyPassToFunction was given a pattern that no function of the module has as its name.

    For example:

        from loopwright.ir import IRModule
        from loopwright.ir.transform import ApplyPassToFunction, PrintIR

        ApplyPassToFunction(PrintIR(), "mian", error_if_no_function_matches_regex=True)(IRModule())
    """

    code = "LW0528"

    def __init__(self, pattern: str, names: Sequence[str]) -> None:
        near = get_close_matches(pattern, names, 1)
        super().__init__(
            f"no function matches {pattern!r}; the module has {', '.join(sorted(names)) or 'none'}",
            hint=f"did you mean {near[0]!r}?" if near else None,
        )


def ApplyPassToFunction(
    transform: Pass, func_name_regex: str, error_if_no_function_matches_regex: bool = False
) -> Pass:
    """A pass that runs `transform` on those functions whose whole name matches the pattern, and keeps the others."""
    pattern = re.compile(func_name_regex)

    def change(mod: IRModule, context: PassContext) -> IRModule:
        matching = {name: func for name, func in mod.functions_items() if pattern.fullmatch(name)}
        if not matching:
            if error_if_no_function_matches_regex:
                raise NoFunctionMatches(func_name_regex, [name for name, _ in mod.functions_items()])
            return mod
        part = IRModule({mod.get_global_var(name): func for name, func in matching.items()}, attrs=mod.attrs)
        changed = transform(part)
        if changed is part:
            return mod
        result = IRModule(attrs=changed.attrs)
        result.update({var: func for var, func in mod.functions.items() if var.name not in matching})
        result.update(changed)
        return result

    return ModulePass(change, PassInfo(0, f"ApplyPassTo_{func_name_regex}"))


Apply = apply
Filter = filter_functions

__all__ = [
    "Apply",
    "ApplyPassToFunction",
    "Filter",
    "ModulePass",
    "Pass",
    "PassContext",
    "PassInfo",
    "PrimFuncPass",
    "PrintIR",
    "Sequential",
    "UnknownPassWarning",
    "function_pass",
    "module_pass",
    "prim_func_pass",
    "register_config",
]
