"""Functions and modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from loopwright.ir.buffer import Buffer
from loopwright.ir.expr import GlobalVar, Var
from loopwright.ir.node import Node, node
from loopwright.ir.stmt import Stmt
from loopwright.ir.types import PointerType, PrimType, TupleType, Type
from loopwright.runtime.errors import LoopwrightError


class NoSuchFunction(LoopwrightError, ValueError):
    """A module was asked for a function it does not hold."""

    code = "LW0506"

    def __init__(self, name: str, names: Sequence[str]) -> None:
        near = get_close_matches(name, names, 1)
        super().__init__(
            f"the module has no function {name!r}; it has {', '.join(sorted(names)) or 'none'}",
            hint=f"did you mean {near[0]!r}?" if near else None,
            fields={"name": name, "candidates": sorted(names)},
        )


@node(binds="params")
class PrimFunc(Node):
    """A function on buffers and scalars. `buffer_map` says which parameters are buffers, and their shapes.

    Well-known attributes: `global_symbol` (its name outside), `tir.noalias`, `target`.
    """

    params: tuple[Var, ...]
    body: Stmt
    ret_type: Type
    buffer_map: Mapping[Var, Buffer]
    attrs: Mapping[str, object]

    def __init__(
        self,
        params: Sequence[Var | Buffer],
        body: Stmt,
        ret_type: Type | None = None,
        buffer_map: Mapping[Var, Buffer] | None = None,
        attrs: Mapping[str, object] | None = None,
        span: object = None,
    ) -> None:
        buffers = dict(buffer_map or {})
        variables = []
        for param in params:
            if isinstance(param, Buffer):
                handle = Var(f"{param.name}_handle", "handle")
                buffers[handle] = param
                variables.append(handle)
            else:
                variables.append(param)
        set_field = object.__setattr__
        set_field(self, "params", tuple(variables))
        set_field(self, "body", body)
        set_field(self, "ret_type", ret_type if ret_type is not None else TupleType(()))
        set_field(self, "buffer_map", buffers)
        set_field(self, "attrs", dict(attrs or {}))
        set_field(self, "span", span)

    @property
    def name(self) -> str:
        """The name callers use, or "main"."""
        return str(self.attrs.get("global_symbol", "main"))

    def argument_buffers(self) -> list[Buffer]:
        """The buffers among the parameters, in order."""
        return [self.buffer_map[param] for param in self.params if param in self.buffer_map]

    def with_body(self, body: Stmt) -> PrimFunc:
        return self.with_(body=body)

    def with_attr(self, key: str | Mapping[str, object], value: object = None) -> PrimFunc:
        """A copy with one attribute (or a dictionary of them) set."""
        added = {key: value} if isinstance(key, str) else dict(key)
        return self.with_(attrs={**self.attrs, **added})

    def without_attr(self, key: str) -> PrimFunc:
        """A copy without that attribute."""
        return self.with_(attrs={name: value for name, value in self.attrs.items() if name != key})


class IRModule:
    """Functions by name. Unlike nodes a module may be changed; passes return new ones."""

    def __init__(
        self,
        functions: Mapping[str | GlobalVar, PrimFunc] | None = None,
        type_definitions: object = None,
        attrs: Mapping[str, object] | None = None,
    ) -> None:
        self._vars: dict[str, GlobalVar] = {}
        self._functions: dict[str, PrimFunc] = {}
        self.attrs: dict[str, object] = dict(attrs or {})
        for key, function in (functions or {}).items():
            self[key] = function

    @staticmethod
    def from_expr(function: PrimFunc) -> IRModule:
        """A module of one function, under its global symbol."""
        return IRModule({function.name: function})

    @property
    def functions(self) -> Mapping[GlobalVar, PrimFunc]:
        return {self._vars[name]: function for name, function in self._functions.items()}

    def functions_items(self) -> Iterator[tuple[str, PrimFunc]]:
        """Every function with its name, in the order they were added."""
        return iter(list(self._functions.items()))

    def __getitem__(self, key: str | GlobalVar) -> PrimFunc:
        name = key if isinstance(key, str) else key.name
        if name not in self._functions:
            raise NoSuchFunction(name, list(self._functions))
        return self._functions[name]

    def __setitem__(self, key: str | GlobalVar, function: PrimFunc) -> None:
        name = key if isinstance(key, str) else key.name
        if isinstance(key, GlobalVar):
            self._vars[name] = key
        else:
            self._vars.setdefault(name, GlobalVar(name))
        self._functions[name] = function

    def __contains__(self, key: object) -> bool:
        return (key.name if isinstance(key, GlobalVar) else key) in self._functions

    def __len__(self) -> int:
        return len(self._functions)

    def update(self, other: IRModule | Mapping[str | GlobalVar, PrimFunc]) -> None:
        """Add the functions of `other`, replacing those of the same name."""
        functions = other.functions if isinstance(other, IRModule) else other
        for key, function in functions.items():
            self[key] = function

    def update_func(self, var: GlobalVar, function: PrimFunc) -> None:
        self[var] = function

    def get_global_var(self, name: str) -> GlobalVar:
        if name not in self._vars:
            raise NoSuchFunction(name, list(self._functions))
        return self._vars[name]

    def get_global_vars(self) -> list[GlobalVar]:
        return list(self._vars.values())

    def get_attr(self, key: str) -> object:
        return self.attrs.get(key)

    def with_attr(self, key: str, value: object) -> IRModule:
        """A copy with one attribute set."""
        copy = self.copy()
        copy.attrs[key] = value
        return copy

    def copy(self) -> IRModule:
        """A module with the same functions, names and attributes."""
        return IRModule(dict(self.functions.items()), attrs=self.attrs)

    def map_functions(self, change: Any) -> IRModule:
        """A module with `change(function)` in place of each function; this one when nothing changed."""
        new: dict[str | GlobalVar, PrimFunc] = {
            self._vars[name]: change(function) for name, function in self._functions.items()
        }
        if all(new[self._vars[name]] is function for name, function in self._functions.items()):
            return self
        return IRModule(new, attrs=self.attrs)

    # Modules print as nodes do, through the hooks the script layer installs.
    __repr__ = Node.__repr__
    script: Callable[..., str] = Node.script
    show: Callable[..., None] = Node.show


def element_type(var: Var) -> PrimType | None:
    """What a pointer variable points to, if its type says so."""
    annotation = var.type_annotation
    if isinstance(annotation, PointerType) and isinstance(annotation.element_type, PrimType):
        return annotation.element_type
    return None
