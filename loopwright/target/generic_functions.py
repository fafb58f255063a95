"""Generic functions: one function, another body for each kind of machine, chosen by the keys of the current target.

    @generic_func
    def schedule(x): ...                        what runs unless a better one is registered

    @schedule.register(["arm_cpu"])
    def schedule_for_arm(x): ...                runs under `with Target("llvm -device=arm_cpu"):`

The first key of the target that has a body decides; keys are in order of preference, most specific first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from loopwright.runtime.errors import LoopwrightError
from loopwright.target.target import Target

Function = Callable[..., Any]


class NoBodyForTarget(LoopwrightError, ValueError):
    """A generic function was called, but nothing is registered for the current target, and it has no default either.

    For example:

        from loopwright import target

        lookup = target.get_native_generic_func("no_body_at_all")
        lookup(1)
    """

    code = "LW0609"

    def __init__(self, name: str, keys: Iterable[str], registered: Iterable[str]) -> None:
        wanted, known = list(keys), sorted(registered)
        case = f"for a target with keys {', '.join(wanted)}" if wanted else "to run without a target"
        super().__init__(
            f"the generic function {name} has no body {case}",
            why=f"it has bodies for {', '.join(known)}" if known else "nothing was registered for it",
            hint=f'give it one with set_default(...) or register(..., ["{wanted[0] if wanted else "cpu"}"])',
            fields={"function": name, "keys": wanted, "registered": known},
        )


class GenericBodyExists(LoopwrightError, ValueError):
    """A generic function has a body for that key (or a default) already; `allow_override=True` replaces it.

    For example:

        from loopwright import target

        @target.generic_func
        def pick(x):
            return x

        pick.register(lambda x: x + 1, ["cpu"])
        pick.register(lambda x: x + 2, ["cpu"])
    """

    code = "LW0610"

    def __init__(self, name: str, key: str) -> None:
        super().__init__(
            f"the generic function {name} has a body for {key} already",
            hint="pass allow_override=True to replace it",
            fields={"function": name, "key": key},
        )


class GenericFunc:
    """A function with one body for each target key, and a default."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._default: Function | None = None
        self._bodies: dict[str, Function] = {}

    def __call__(self, *args: object) -> Any:
        return self.get_packed_func()(*args)

    def set_default(self, func: Function, allow_override: bool = False) -> GenericFunc:
        """Run `func` where no key fits."""
        if self._default is not None and not allow_override:
            raise GenericBodyExists(self.name, "default")
        self._default = func
        return self

    def register(self, func: Any, key_list: Iterable[str] | None = None, allow_override: bool = False) -> Any:
        """Run `func` for targets with one of `key_list`; `register(keys)` alone is a decorator."""
        if key_list is None:
            keys = [func] if isinstance(func, str) else list(func)

            def decorate(body: Function) -> Function:
                self.register(body, keys, allow_override)
                return body

            return decorate
        for key in [key_list] if isinstance(key_list, str) else list(key_list):
            if key in self._bodies and not allow_override:
                raise GenericBodyExists(self.name, key)
            self._bodies[key] = func
        return self

    def get_packed_func(self) -> Function:
        """The body that the current target chooses."""
        target = Target.current(allow_none=True)
        keys = target.keys if target is not None else ()
        for key in keys:
            if key in self._bodies:
                return self._bodies[key]
        if self._default is None:
            raise NoBodyForTarget(self.name, keys, self._bodies)
        return self._default

    def __repr__(self) -> str:
        return f"GenericFunc({self.name}: {', '.join(['default', *self._bodies])})"


_BY_NAME: Final[dict[str, GenericFunc]] = {}


def get_native_generic_func(name: str) -> GenericFunc:
    """The generic function known by `name`, made when it is first asked for."""
    return _BY_NAME.setdefault(name, GenericFunc(name))


def generic_func(fdefault: Function) -> GenericFunc:
    """`fdefault` as a generic function: the default body of one with its name."""
    result = GenericFunc(getattr(fdefault, "__name__", "generic"))
    result.__doc__ = fdefault.__doc__
    return result.set_default(fdefault)


def override_native_generic_func(func_name: str) -> Callable[[Function], GenericFunc]:
    """A decorator that makes a function the default of the generic function known by `func_name`."""

    def decorate(fdefault: Function) -> GenericFunc:
        return get_native_generic_func(func_name).set_default(fdefault, allow_override=True)

    return decorate
