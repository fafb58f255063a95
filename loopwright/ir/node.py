"""The `@node` decorator: plain slotted classes with generated `__init__`, `each_child` and `rebuild`.

    @node(binds="loop_var")
    class For(Stmt):
        loop_var: Var
        extent: Expr
        body: Stmt

Annotations decide what a field is. A field whose type is a node (or a tuple of nodes, or a mapping to nodes) holds
*children*: visitors walk it and rewriters rebuild it. Fields named in `binds` hold variables that the node itself
defines; they are not children, and structural comparison pairs them. All else is plain data.

Generated text is used, rather than loops over field names, because compile time is spent creating and rebuilding
nodes: 0.3 µs a node instead of 1.3.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self, TypeVar, dataclass_transform, overload

from loopwright.ir.wrong_part import check_parts, refuse_part
from loopwright.runtime import errors, ffi

# Set by the test suite before the first import: writing to a finished node then fails.
FROZEN: Final = os.environ.get("LOOPWRIGHT_FREEZE") == "1"


class FieldKind(Enum):
    """What a field holds, as far as generic walks are concerned."""

    NODE = "one node"
    OPTIONAL = "one node or None"
    NODES = "a tuple of nodes"
    MAPPING = "a mapping whose values are nodes"
    DATA = "plain data"


class Field(NamedTuple):
    """One constructor argument of a node class."""

    name: str
    kind: FieldKind
    binds: bool  # the field defines the variables it holds


class ModuleForm(NamedTuple):
    """How modules are written: as text (for `str`, `script` and `astext`), on the screen, in a notebook."""

    text: Callable[..., str]
    show: Callable[..., None]
    html: Callable[..., str]


class Node:
    """The root of all IR classes. Equality is identity; `structural_equal` compares shape."""

    __slots__ = ("span",)

    node_fields: ClassVar[tuple[Field, ...]] = ()
    # How a module is written that holds functions of this class; None: as a script.
    module_form: ClassVar[ModuleForm | None] = None

    span: object

    def each_child(self, visit: Callable[[Node], object]) -> None:
        """Call `visit` on every child, in field order."""

    def rebuild(self, rewrite: Callable[[Any], Any]) -> Self:
        """This node with `rewrite` applied to every child; the same object when nothing changed."""
        return self

    def children(self) -> Iterator[Node]:
        """Every child, in field order."""
        result: list[Node] = []
        self.each_child(result.append)
        return iter(result)

    def with_(self, **changes: object) -> Self:
        """A copy with some fields changed; this object itself when no field really changes."""
        if all(getattr(self, name) is value for name, value in changes.items()):
            return self
        values = [changes.pop(field.name, getattr(self, field.name)) for field in self.node_fields]
        if changes:
            names = ", ".join(field.name for field in self.node_fields)
            raise TypeError(f"{type(self).__name__} has no field {', '.join(changes)}; its fields are {names}")
        copy: Self = type(self)._make(*values, span=self.span)
        return copy

    @classmethod
    def _make(cls, *values: object, span: object = None) -> Self:
        return cls(*values, span=span)  # type: ignore[call-arg]

    def __tvm_ffi_object__(self) -> object:
        # In containers and as an argument of packed functions a node stays itself, also one that can be called.
        return ffi.load().core._convert_to_opaque_object(self)

    def same_as(self, other: object) -> bool:
        """Whether both are one object."""
        return self is other

    def __repr__(self) -> str:
        return render[0](self)

    # Nodes never change, so a copy would only be a second variable or buffer of the same name.
    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return load_node[0], (dump_node[0](self),)

    def __setstate__(self, state: tuple[object, Mapping[str, object]]) -> None:
        """Take over what `__getstate__` of a node of the same class gave."""
        for name, value in state[1].items():
            object.__setattr__(self, name, value)

    def astext(self, show_meta_data: bool = True) -> str:
        """The script, under the name that older programs call."""
        return self.script(show_meta=show_meta_data)

    def script(self, **options: object) -> str:
        """This node as Python text that parses back to it."""
        return script_text[0](self, **options)

    def show(self, style: str | None = None, black_format: bool | None = None, **options: object) -> None:
        """Print the script, highlighted when the terminal or notebook can show colours."""
        script_show[0](self, style, black_format, **options)

    def _repr_html_(self) -> str:
        """What a notebook shows: the script in colours."""
        return script_html[0](self)


def when_used(module: str, name: str) -> Callable[..., Any]:
    """The function `name` of `module`, imported at its first call: ir stands below the printer and cannot import it."""
    result: list[Callable[..., Any]] = []

    def call(*args: object, **options: object) -> Any:
        if not result:
            result.append(getattr(importlib.import_module(module), name))
        return result[0](*args, **options)

    return call


# How nodes become JSON, which is also how they travel between processes.
dump_node: Final[list[Callable[[object], str]]] = [when_used("loopwright.ir.json_form", "save_json")]


def _load_node(text: str) -> object:
    return _load_json(text)


_load_json: Final = when_used("loopwright.ir.json_form", "load_json")
load_node: Final = [_load_node]  # a function of this module, which pickle finds by its name
# How nodes reach the printer of the script layer.
render: Final[list[Callable[[object], str]]] = [when_used("loopwright.script.printer", "render")]
script_text: Final[list[Callable[..., str]]] = [when_used("loopwright.script.printer", "script_text")]
script_show: Final[list[Callable[..., None]]] = [when_used("loopwright.script.highlight", "script_show")]
script_html: Final[list[Callable[[object], str]]] = [when_used("loopwright.script.highlight", "script_html")]
errors.render_node[:] = [when_used("loopwright.script.printer", "render_node")]


class _Derived(NamedTuple):
    expression: str


def derived(expression: str, *, init: Literal[False] = False) -> Any:
    """A slot computed at construction from the constructor's arguments, e.g. `dtype: DataType = derived("a.dtype")`.

    `init` only tells type checkers that the slot is not itself an argument.
    """
    return _Derived(expression)


# Class name → (text of the test, text of the conversion) for a constructor argument `{x}`. Filled by the layers that
# define the classes, so that users may pass numbers, lists and strings where nodes keep expressions, tuples and types.
CONVERSIONS: Final[dict[str, tuple[str, str]]] = {
    "DataType": ("type({x}) is not DataType", "DataType({x})"),
}
# Base classes whose constructors check that parts which are not converted are of their types; and what is checked.
CHECKED_BASES: Final[list[type]] = []
_CHECKED: Final = "Stmt Var Buffer IterVar Block BufferRegion MatchBufferRegion str".split()
_NODE_CLASSES: Final[set[str]] = {"Node"}
NODE_TYPES: Final[dict[str, type[Node]]] = {}  # every class made by `@node`, by name
_CONVERTED_TUPLES: Final[dict[str, str]] = {}
_helpers: Final[dict[str, object]] = {}

N = TypeVar("N", bound=Node)
T = TypeVar("T")
K = TypeVar("K")


def base_node(cls: type[N]) -> type[N]:
    """Declare an abstract node class (`Expr`, `Stmt`), so that fields of that type count as children."""
    _NODE_CLASSES.add(cls.__name__)
    return cls


def convert_arguments(cls: type, convert: Callable[..., object], convert_many: Callable[..., object]) -> None:
    """Have every constructor pass arguments of type `cls` through `convert` unless they are one already."""
    name = cls.__name__
    _helpers[f"_is_{name}"] = cls
    _helpers[f"_to_{name}"] = convert
    _helpers[f"_all_{name}"] = convert_many
    CONVERSIONS[name] = (f"not isinstance({{x}}, _is_{name})", f"_to_{name}({{x}})")
    _CONVERTED_TUPLES[name] = f"_all_{name}"


def convert_with(name: str, test: str, convert: Callable[..., object], *used: type) -> None:
    """Have every constructor pass arguments declared as `name` through `convert` where `test` holds.

    `test` is a condition on `{x}`, the argument; it may name the classes in `used`.
    """
    _helpers[f"_to_{name}"] = convert
    _helpers.update({cls.__name__: cls for cls in used})
    CONVERSIONS[name] = (test, f"_to_{name}({{x}})")


@overload
def node(cls: type[N]) -> type[N]: ...
@overload
def node(*, binds: str | tuple[str, ...] = ()) -> Callable[[type[N]], type[N]]: ...
@dataclass_transform(eq_default=False, field_specifiers=(derived,))
def node(
    cls: type[N] | None = None, *, binds: str | tuple[str, ...] = ()
) -> type[N] | Callable[[type[N]], type[N]]:
    """Make `cls` an IR node class; see the module docstring."""
    bound = (binds,) if isinstance(binds, str) else binds
    if cls is None:
        return lambda decorated: _build_class(decorated, bound)
    return _build_class(cls, bound)


def _build_class(cls: type[N], binds: tuple[str, ...]) -> type[N]:
    # Registered first: a node may hold nodes of its own class.
    _NODE_CLASSES.add(cls.__name__)
    own = {name: text for name, text in cls.__dict__.get("__annotations__", {}).items() if "ClassVar" not in str(text)}
    defaults = {name: cls.__dict__[name] for name in own if name in cls.__dict__}
    computed = {name: value.expression for name, value in defaults.items() if isinstance(value, _Derived)}
    fields = [field for field in cls.node_fields if field.name not in own]
    texts: dict[str, str] = dict(getattr(cls, "_field_types", {}))
    for name, text in own.items():
        if name not in computed:
            fields.append(Field(name, _kind_of(str(text)), name in binds))
            texts[name] = str(text)
    unknown = set(binds) - {field.name for field in fields}
    if unknown:
        raise TypeError(f"@node: {cls.__name__} has no field {sorted(unknown)} to bind")

    inherited = {slot for base in cls.__mro__[1:] for slot in getattr(base, "__slots__", ())}
    namespace = {
        name: value
        for name, value in cls.__dict__.items()
        if name not in ("__dict__", "__weakref__") and name not in own
    }
    namespace["__slots__"] = tuple(name for name in own if name not in inherited)
    namespace["node_fields"] = tuple(fields)
    namespace["_field_types"] = texts
    result: type[N] = type(cls.__name__, cls.__bases__, namespace)

    scope = _globals_for(sys.modules[cls.__module__].__dict__, result)
    _generate(scope, result, fields, texts, computed, {k: v for k, v in defaults.items() if k not in computed})
    NODE_TYPES.setdefault(result.__name__, result)
    return result


def _kind_of(annotation: str) -> FieldKind:
    text = annotation.replace("'", "").replace('"', "")
    optional = text.endswith("| None")
    text = text.removesuffix("| None").strip()
    sequence = re.fullmatch(r"tuple\[(\w+), \.\.\.\]", text)
    if sequence:
        return FieldKind.NODES if sequence[1] in _NODE_CLASSES else FieldKind.DATA
    mapping = re.fullmatch(r"Mapping\[\w+, (\w+)\]", text)
    if mapping:
        return FieldKind.MAPPING if mapping[1] in _NODE_CLASSES else FieldKind.DATA
    if all(part.strip() in _NODE_CLASSES for part in text.split("|")):
        return FieldKind.OPTIONAL if optional else FieldKind.NODE
    return FieldKind.DATA


def _globals_for(module: Mapping[str, object], result: type[Node]) -> dict[str, Any]:
    """Globals of generated code: the names of the declaring module so far, and our helpers."""
    return {
        **module,
        **_helpers,
        "_cls": result,
        "_new": object.__new__,
        "_set": object.__setattr__,
        "_refuse_part": refuse_part,
        "_check_parts": check_parts,
        "_rewrite_tuple": rewrite_tuple,
        "_rewrite_mapping": rewrite_mapping,
    }


def _generate(
    scope: dict[str, Any],
    result: type[Node],
    fields: Sequence[Field],
    texts: Mapping[str, str],
    computed: Mapping[str, str],
    defaults: Mapping[str, object],
) -> None:
    parameters, body = [], []
    unsaid = []  # None for a container that may be left out is the same as leaving it out
    for field in fields:
        name = field.name
        if name in defaults:
            scope[f"_default_{name}"] = defaults[name]
            parameters.append(f"{name}=_default_{name}")
            if isinstance(defaults[name], (tuple, Mapping)):
                unsaid.append(f"if {name} is None: {name} = _default_{name}")
        else:
            parameters.append(name)
        body += _conversion(name, texts[name])
    stores = [(field.name, field.name) for field in fields] + list(computed.items()) + [("span", "span")]
    for name, value in stores:
        body.append(f"_set(self, {name!r}, {value})" if FROZEN else f"self.{name} = {value}")
    signature = ", ".join([*parameters, "span=None"])
    names = [field.name for field in fields]
    visited = [field for field in fields if field.kind is not FieldKind.DATA and not field.binds]

    is_checked = issubclass(result, tuple(CHECKED_BASES))
    checks = [line for field in fields for line in _check(field.name, texts[field.name])] if is_checked else []
    source = [f"def __init__(self, {signature}):", *_indent([*unsaid, *body, *checks])]
    source += [f"def _make(cls, {signature}):", "    self = _new(cls)", *_indent(body), "    return self"]

    source.append("def each_child(self, visit):")
    for field in visited:
        source += _indent(_visit_lines(field))
    if not visited:
        source.append("    pass")

    source.append("def rebuild(self, rewrite):")
    if visited:
        test = []
        for field in visited:
            source.append(f"    old_{field.name} = self.{field.name}")
            source.append(f"    {field.name} = {_rewrite_text(field)}")
            test.append(f"{field.name} is old_{field.name}")
        source.append(f"    if {' and '.join(test)}: return self")
        changed = {field.name for field in visited}
        arguments = ", ".join(name if name in changed else f"self.{name}" for name in names)
        source.append(f"    return _cls._make({arguments}, span=self.span)")
    else:
        source.append("    return self")

    exec(compile("\n".join(source), f"<loopwright node {result.__name__}>", "exec"), scope)
    own_init = "__init__" in result.__dict__
    for name in ("__init__", "each_child", "rebuild"):
        if not (name == "__init__" and own_init) and name not in result.__dict__:
            setattr(result, name, scope[name])
    result._make = classmethod(scope["_make"])  # type: ignore[assignment,method-assign]
    if FROZEN:
        result.__setattr__ = _refuse_write  # type: ignore[assignment,method-assign]


def _refuse_write(self: Node, name: str, value: object) -> None:
    raise AttributeError(f"{type(self).__name__} is immutable: use with_({name}=...) to make a changed copy")


def _conversion(name: str, annotation: str) -> list[str]:
    text = annotation.removesuffix("| None").strip()
    optional = text != annotation.strip()
    guard = f"{name} is not None and " if optional else ""
    sequence = re.fullmatch(r"tuple\[(\w+), \.\.\.\]", text)
    if sequence:
        many = _CONVERTED_TUPLES.get(sequence[1])
        if many:
            return [f"{name} = {many}({name})"]
        return [f"if {guard}type({name}) is not tuple: {name} = tuple({name})"]
    if text in CONVERSIONS:
        test, convert = CONVERSIONS[text]
        return [f"if {guard}{test.format(x=name)}: {name} = {convert.format(x=name)}"]
    return []


def _check(name: str, annotation: str) -> list[str]:
    """The test of an argument in a constructor: not in `_make`, whose arguments come from other nodes."""
    text = annotation.removesuffix("| None").strip()
    guard = f"{name} is not None and " if text != annotation.strip() else ""
    if text in _CHECKED:
        return [f"if {guard}not isinstance({name}, {text}): _refuse_part(_cls, {name!r}, {name}, {text})"]
    sequence = re.fullmatch(r"tuple\[(\w+), \.\.\.\]", text)
    if sequence and sequence[1] in _CHECKED:
        return [f"if {name}: _check_parts(_cls, {name!r}, {name}, {sequence[1]})"]
    return []


def _visit_lines(field: Field) -> list[str]:
    name = field.name
    if field.kind is FieldKind.NODE:
        return [f"visit(self.{name})"]
    if field.kind is FieldKind.OPTIONAL:
        return [f"if self.{name} is not None: visit(self.{name})"]
    values = f"self.{name}.values()" if field.kind is FieldKind.MAPPING else f"self.{name}"
    return [f"for item in {values}: visit(item)"]


def _rewrite_text(field: Field) -> str:
    name = f"old_{field.name}"
    return {
        FieldKind.NODE: f"rewrite({name})",
        FieldKind.OPTIONAL: f"None if {name} is None else rewrite({name})",
        FieldKind.NODES: f"_rewrite_tuple({name}, rewrite)",
        FieldKind.MAPPING: f"_rewrite_mapping({name}, rewrite)",
    }[field.kind]


def rewrite_tuple(items: tuple[T, ...], rewrite: Callable[[T], T]) -> tuple[T, ...]:
    """`rewrite` over every item; the same tuple when no item changed."""
    changed = None
    for index, item in enumerate(items):
        new = rewrite(item)
        if new is not item:
            if changed is None:
                changed = list(items)
            changed[index] = new
    return items if changed is None else tuple(changed)


def rewrite_mapping(items: Mapping[K, T], rewrite: Callable[[T], T]) -> Mapping[K, T]:
    """`rewrite` over every value; the same mapping when no value changed."""
    new = {key: rewrite(value) for key, value in items.items()}
    return items if all(new[key] is value for key, value in items.items()) else new


def _indent(lines: Sequence[str]) -> list[str]:
    return ["    " + line for line in lines]
