"""Functions and modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from loopwright.ir.attributes import Attributes, as_attributes
from loopwright.ir.buffer import Buffer
from loopwright.ir.expr import GlobalVar, Var
from loopwright.ir.node import (
    ModuleForm,
    Node,
    dump_node,
    load_node,
    node,
    render,
    script_html,
    script_show,
    script_text,
    when_used,
)
from loopwright.ir.sharing import bind_large
from loopwright.ir.stmt import Stmt
from loopwright.ir.types import TupleType, Type
from loopwright.ir.wrong_part import WrongPart
from loopwright.runtime.errors import LoopwrightError


class NoSuchFunction(LoopwrightError, ValueError):
    """A module was asked for a function it does not hold.

    For example:

        from loopwright import ir, tir

        module = ir.IRModule({"main": tir.PrimFunc([], tir.Evaluate(0))})
        module["mian"]
    """

    code = "LW0506"

    def __init__(self, name: str, names: Sequence[str]) -> None:
        near = get_close_matches(name, names, 1)
        super().__init__(
            f"the module has no function {name!r}; it has {', '.join(sorted(names)) or 'none'}",
            hint=f"did you mean {near[0]!r}?" if near else None,
            fields={"name": name, "candidates": sorted(names)},
        )


class FunctionExists(LoopwrightError, ValueError):
    """A function was added to a module that has one of that name.

    For example:

        from loopwright import ir, tir

        module = ir.IRModule({"main": tir.PrimFunc([], tir.Evaluate(0))})
        module.add("main", tir.PrimFunc([], tir.Evaluate(1)))
    """

    code = "LW0541"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the module has a function {name!r} already", hint="pass update=True to replace it, or use another name"
        )


class NotAFunction(LoopwrightError, TypeError):
    """Something else than a function was put into a module.

    For example:

        from loopwright import ir

        ir.IRModule({"main": "print(1)"})
    """

    code = "LW0542"

    def __init__(self, name: str, given: object) -> None:
        super().__init__(
            f"a module holds functions, but {name!r} is {type(given).__name__} {given!r}",
            hint="give a PrimFunc: @T.prim_func makes one, and so does te.create_prim_func",
        )


class NotAParameter(LoopwrightError, TypeError):
    """Something else than a variable or a buffer was given as a parameter of a function.

    For example:

        from loopwright import te, tir

        A = te.placeholder((4,), name="A")
        tir.PrimFunc([A], tir.Evaluate(0))
    """

    code = "LW0580"

    def __init__(self, given: object) -> None:
        super().__init__(
            f"a PrimFunc takes variables and buffers as parameters, but one is {type(given).__name__} {given!r}",
            hint="give a tir.Var or a Buffer (tir.decl_buffer); te.create_prim_func makes functions of tensors",
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
    attrs: Attributes

    def __init__(
        self,
        params: Sequence[object],
        body: Stmt,
        ret_type: Type | None = None,
        buffer_map: Mapping[Var, Buffer] | None = None,
        attrs: Mapping[str, object] | None = None,
        span: object = None,
    ) -> None:
        buffers = dict(buffer_map or {})
        variables = []
        for given in params:
            as_parameter = getattr(given, "as_parameter", None)  # memory of an ir_builder
            param = given if as_parameter is None else as_parameter()
            if isinstance(param, Buffer):
                handle = Var(f"{param.name}_handle", "handle")
                buffers[handle] = param
                variables.append(handle)
            elif isinstance(param, Var):
                variables.append(param)
            else:
                raise NotAParameter(given)
        set_field = object.__setattr__
        set_field(self, "params", tuple(variables))
        if not isinstance(body, Stmt):
            raise WrongPart("PrimFunc", "body", body, "Stmt")
        set_field(self, "body", bind_large(body))
        set_field(self, "ret_type", ret_type if ret_type is not None else TupleType(()))
        set_field(self, "buffer_map", buffers)
        set_field(self, "attrs", as_attributes(attrs or {}))
        set_field(self, "span", span)

    @property
    def name(self) -> str:
        """The name callers use, or "main"."""
        return str(self.attrs.get("global_symbol", "main"))

    @property
    def __name__(self) -> str:
        """The same, as of the Python function that the script is written as."""
        return self.name

    def argument_buffers(self) -> list[Buffer]:
        """The buffers among the parameters, in order."""
        return [self.buffer_map[param] for param in self.params if param in self.buffer_map]

    def with_body(self, body: Stmt) -> PrimFunc:
        return self.with_(body=body)

    def with_attr(self, key: str | Mapping[str, object], value: object = None) -> PrimFunc:
        """A copy with one attribute (or a dictionary of them) set."""
        added = {key: value} if isinstance(key, str) else dict(key)
        return self.with_(attrs={**self.attrs, **added})

    def with_attrs(self, attrs: Mapping[str, object]) -> PrimFunc:
        """A copy with these attributes set, beside the ones it has."""
        return self.with_attr(attrs)

    def without_attr(self, key: str) -> PrimFunc:
        """A copy without that attribute."""
        return self.with_(attrs={name: value for name, value in self.attrs.items() if name != key})

    def specialize(self, param_map: Mapping[Var, object]) -> PrimFunc:
        """A copy for known arguments: {parameter: a Buffer for a handle, a value for a scalar}; see `specialize.py`."""
        specialized: PrimFunc = specialize[0](self, param_map)
        return specialized


# What functions use and what itself uses functions or walks them.
specialize: Final[list[Callable[..., PrimFunc]]] = [when_used("loopwright.ir.specialize", "specialize")]


# What `import_from_std` adds: graphs stand above this layer.
_standard: Final = when_used("loopwright.relay.prelude", "add_standard")


class IRModule:
    """Functions by name. Unlike nodes a module may be changed; passes return new ones."""

    __name__: str  # of the class in the script language that it was written as

    def __init__(
        self,
        functions: Mapping[str | GlobalVar, PrimFunc] | None = None,
        type_definitions: Mapping[object, object] | None = None,
        attrs: Mapping[str, object] | None = None,
    ) -> None:
        self._vars: dict[str, GlobalVar] = {}
        self._functions: dict[str, PrimFunc] = {}
        self.attrs: dict[str, Any] = as_attributes(attrs or {})
        self.type_definitions: dict[Any, Any] = dict(type_definitions or {})  # data types of graphs, by their names
        for key, function in (functions or {}).items():
            self[key] = function

    # Copies share functions, which never change, and nothing else.
    def __copy__(self) -> IRModule:
        return self.copy()

    def __reduce__(self) -> tuple[object, ...]:
        return load_node[0], (dump_node[0](self),)

    @staticmethod
    def from_expr(function: Any, functions: Mapping[str | GlobalVar, Any] | None = None) -> IRModule:
        """A module of one function, under its global symbol, and of `functions`.

        An expression of a graph becomes a function of the variables that it does not bind.
        """
        whole = function if isinstance(function, PrimFunc) else function.as_function()
        return IRModule({**(functions or {}), whole.name: whole})

    @property
    def functions(self) -> Mapping[GlobalVar, PrimFunc]:
        return {self._vars[name]: function for name, function in self._functions.items()}

    def functions_items(self) -> Iterator[tuple[str, PrimFunc]]:
        """Every function with its name, in the order they were added."""
        return iter(list(self._functions.items()))

    def __getitem__(self, key: str | GlobalVar) -> PrimFunc:
        if key in self.type_definitions:
            result: PrimFunc = self.type_definitions[key]
            return result
        name = key if isinstance(key, str) else key.name
        if name not in self._functions:
            called = self._called_from_outside(name)
            if called is None:
                raise NoSuchFunction(name, list(self._functions))
            name = called
        return self._functions[name]

    def _called_from_outside(self, name: str) -> str | None:
        """The name here of the one function whose `global_symbol` is `name`."""
        attrs = {own: getattr(function, "attrs", None) or {} for own, function in self._functions.items()}
        result = [own for own, said in attrs.items() if said.get("global_symbol") == name]
        return result[0] if len(result) == 1 else None

    def __setitem__(self, key: str | GlobalVar, function: PrimFunc) -> None:
        name = key if isinstance(key, str) else key.name
        if not isinstance(function, Node):
            raise NotAFunction(name, function)
        if hasattr(function, "constructors"):
            self.type_definitions[key] = function
            return
        if isinstance(key, GlobalVar):
            self._vars[name] = key
        else:
            self._vars.setdefault(name, GlobalVar(name))
        self._functions[name] = function

    def __delitem__(self, key: str | GlobalVar) -> None:
        name = key if isinstance(key, str) else key.name
        if name not in self._functions:
            raise NoSuchFunction(name, list(self._functions))
        del self._functions[name], self._vars[name]

    def __contains__(self, key: object) -> bool:
        return (key.name if isinstance(key, GlobalVar) else key) in self._functions

    def __iter__(self) -> Iterator[GlobalVar]:
        return iter([self._vars[name] for name in self._functions])

    def keys(self) -> list[GlobalVar]:
        return list(self)

    def values(self) -> list[PrimFunc]:
        return list(self._functions.values())

    def items(self) -> list[tuple[GlobalVar, PrimFunc]]:
        return list(self.functions.items())

    def get(self, key: str | GlobalVar, default: PrimFunc | None = None) -> PrimFunc | None:
        """The function of that name, or `default`."""
        return self._functions.get(key if isinstance(key, str) else key.name, default)

    def add(self, key: str | GlobalVar, function: PrimFunc, update: bool = False) -> None:
        """Add a function; one of that name must not be there, unless `update` says to replace it."""
        if key in self and not update:
            raise FunctionExists(key if isinstance(key, str) else key.name)
        self[key] = function

    def __len__(self) -> int:
        return len(self._functions)

    def update(self, other: IRModule | Mapping[str | GlobalVar, PrimFunc]) -> None:
        """Add the functions of `other`, replacing those of the same name."""
        functions = other.functions if isinstance(other, IRModule) else other
        for key, function in functions.items():
            self[key] = function
        if isinstance(other, IRModule):
            self.type_definitions.update(other.type_definitions)

    def get_type(self, name: str) -> list[Any]:
        """A data type by its name: the name itself, and its cases."""
        for header, data in self.type_definitions.items():
            if header.name == name:
                return [header, *data.constructors]
        raise NoSuchFunction(name, [header.name for header in self.type_definitions])

    def get_global_type_var(self, name: str) -> Any:
        """The name of a data type as types use it."""
        return self.get_type(name)[0]

    def get_global_type_vars(self) -> list[Any]:
        return list(self.type_definitions)

    def import_from_std(self, file: str) -> None:
        """Add what is known under the name of a file: "prelude.rly" has lists, options and trees."""
        _standard(self, file)

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
        return self.with_attrs({key: value})

    def with_attrs(self, attrs: Mapping[str, object]) -> IRModule:
        """A copy with these attributes set, beside the ones it has."""
        copy = self.copy()
        copy.attrs.update(as_attributes(attrs))
        return copy

    def without_attr(self, key: str) -> IRModule:
        """A copy without that attribute."""
        copy = self.copy()
        copy.attrs.pop(key, None)
        return copy

    def copy(self) -> IRModule:
        """A module with the same functions, names and attributes."""
        return IRModule(dict(self.functions.items()), self.type_definitions, self.attrs)

    def map_functions(self, change: Callable[[Any], Any]) -> IRModule:
        """A module with `change(function)` in place of each function; this one when nothing changed."""
        new: dict[str | GlobalVar, PrimFunc] = {
            self._vars[name]: change(function) for name, function in self._functions.items()
        }
        if all(new[self._vars[name]] is function for name, function in self._functions.items()):
            return self
        return IRModule(new, self.type_definitions, self.attrs)

    same_as: Callable[..., bool] = Node.same_as

    # Modules print as nodes do, through the hooks the script layer installs; but as their functions do, where those
    # have a form of their own.
    def _form(self) -> ModuleForm | None:
        held = (*self._functions.values(), *self.type_definitions.values())
        forms = (type(each).module_form for each in held)
        return next((form for form in forms if form is not None), None)

    def __repr__(self) -> str:
        form = self._form()
        return render[0](self) if form is None else form.text(self)

    def astext(self, show_meta_data: bool = True, annotate: Callable[[Any], str] | None = None) -> str:
        """The text, with the data it refers to at its end unless `show_meta_data` is False."""
        form = self._form()
        if form is None:
            return self.script(show_meta=show_meta_data)
        return form.text(self, header=True, show_meta_data=show_meta_data, annotate=annotate)

    def script(self, **options: object) -> str:
        """The module as text that parses back to it."""
        form = self._form()
        return script_text[0](self, **options) if form is None else form.text(self, **options)

    def show(self, style: str | None = None, black_format: bool | None = None, **options: object) -> None:
        """Print the text, highlighted when the terminal or notebook can show colours."""
        form = self._form()
        if form is None:
            script_show[0](self, style, black_format, **options)
        else:
            form.show(self, style)

    def _repr_html_(self) -> str:
        form = self._form()
        return script_html[0](self) if form is None else form.html(self)
