"""Executor and Runtime: how a model is to run, as `relay.build(executor=…, runtime=…)` takes it.

    relay.build(mod, "llvm", executor=Executor("aot", {"link-params": True}), runtime=Runtime("cpp"))

A built model is one native function with its memory planned ahead, whatever they say; an executor names the surface
that scripts use on it. Options are checked and kept, and change nothing: a library has its weights inside, and both
kinds of interface.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import ClassVar, Final

from loopwright.runtime.errors import LoopwrightError

_Options = Mapping[str, type]


class UnknownOption(LoopwrightError, ValueError):
    """An executor or a runtime was asked for by a name that there is not, or with an option that it does not have.

    For example:

        from loopwright import relay

        relay.backend.Executor("aot", {"unpacked-api": "yes"})
    """

    code = "LW1227"

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem, hint=hint)


class _Chosen:
    """A kind, by name, and its options."""

    _what: ClassVar[str]
    _kinds: ClassVar[Mapping[str, _Options]]

    def __init__(self, name: str, options: Mapping[str, object] | None = None) -> None:
        name = str(name)
        if name not in self._kinds:
            raise UnknownOption(f'{self._what} "{name}" is not defined', f"there are {', '.join(self._kinds)}")
        self.name = name
        known = self._kinds[name]
        self.attrs: dict[str, object] = {}
        for key, value in dict(options or {}).items():
            if key not in known:
                near = get_close_matches(key, known, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known) or 'none'}"
                raise UnknownOption(f'Attribute "{key}" is not available on this {self._what}', hint)
            if type(value) is not known[key] and not (known[key] is int and type(value) is bool):
                wanted, found = _type_name(known[key]), _type_name(type(value))
                raise UnknownOption(
                    f'Attribute "{key}" should have type "{wanted}" but instead found "{found}": {value!r}',
                    f"give {_EXAMPLES[known[key]]}",
                )
            self.attrs[key] = value

    @classmethod
    def list_registered(cls) -> list[str]:
        """The names there are."""
        return list(cls._kinds)

    @classmethod
    def list_registered_options(cls, name: str) -> dict[str, str]:
        """The options of one of them, and the types of their values."""
        return {key: _type_name(of) for key, of in cls._kinds[cls(str(name)).name].items()}

    def __getitem__(self, key: str) -> object:
        if key not in self._kinds[self.name]:
            raise KeyError(key)
        return self.attrs.get(key)

    def __contains__(self, key: object) -> bool:
        return key in self.attrs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and (self.name, self.attrs) == (other.name, other.attrs)

    def __hash__(self) -> int:
        return hash((self.name, *sorted(self.attrs)))

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}{f', {self.attrs!r}' if self.attrs else ''})"


# The names that scripts know the types of options by.
_TYPE_NAMES: Final = {bool: "IntImm", int: "IntImm", str: "runtime.String", float: "FloatImm"}


def _type_name(of: type) -> str:
    return _TYPE_NAMES.get(of, of.__name__)


_EXAMPLES: Final = {bool: "True or False", int: "a number", str: "a text"}


class Executor(_Chosen):
    """What runs a model: "graph" (inputs set one by one), "aot" (the same, from C as well) or "vm" (any shapes)."""

    flag_registry_name = "executor"
    _what = "Executor"
    _kinds = {
        "graph": {"link-params": bool},
        "aot": {
            "link-params": bool,
            "unpacked-api": bool,
            "interface-api": str,
            "workspace-byte-alignment": int,
            "constant-byte-alignment": int,
        },
        "vm": {},
    }

    def __init__(self, name: str, options: Mapping[str, object] | None = None) -> None:
        super().__init__(name, options)
        if self.attrs.get("interface-api", "packed") not in ("packed", "c"):
            raise UnknownOption(
                f"option 'interface-api' of the executor 'aot' is {self.attrs['interface-api']!r}",
                "it is 'packed' or 'c'; a library made here has both",
            )


class Runtime(_Chosen):
    """Where a model runs: "cpp" (this process, or a program that loads the library) or "crt" (a plain C program)."""

    flag_registry_name = "runtime"
    _what = "Runtime"
    _kinds = {"cpp": {"system-lib": bool}, "crt": {"system-lib": bool}}


def as_executor(given: object) -> Executor:
    """What `relay.build(executor=…)` was given; a text is a name."""
    if isinstance(given, Executor):
        return given
    if given is None or isinstance(given, str):
        return Executor(given or "graph")
    raise TypeError(f'executor is relay.backend.Executor("graph" or "aot") or its name, not {type(given).__name__}')


def as_runtime(given: object) -> Runtime:
    """What `relay.build(runtime=…)` was given."""
    if isinstance(given, Runtime):
        return given
    if given is None or isinstance(given, str):
        return Runtime(given or "cpp")
    raise TypeError(f'runtime is relay.backend.Runtime("cpp" or "crt") or its name, not {type(given).__name__}')


__all__ = ["Executor", "Runtime"]
