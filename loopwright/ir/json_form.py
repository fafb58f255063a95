"""IR as JSON and back: `save_json`, `load_json`; pickling uses the same form.

    {"loopwright": 1, "root": 2, "nodes": [["Var", {"name": "i", …}], ["IntImm", …], ["Add", {"a": {"@": 0}, …}]]}

Every node is one row, after those it holds, so sharing survives and depth costs no recursion when reading. A value is a
JSON value, or an object with one marker: `@` a row, `list`, `tuple`, `dict`, `dtype`, `enum`, `float`, `array`,
`target`, and `items`, `map` and `tensor` for containers and tensors of packed functions.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple, TypeGuard

import numpy as np

from loopwright.ir.buffer import Buffer
from loopwright.ir.deep import deep
from loopwright.ir.expr import GlobalVar, IterType, SizeVar, Var
from loopwright.ir.function import IRModule, PrimFunc
from loopwright.ir.json_fields import wrong_field
from loopwright.ir.node import NODE_TYPES, Node, when_used
from loopwright.ir.op import Op, user_op
from loopwright.ir.stmt import ForKind
from loopwright.runtime import array as tensor
from loopwright.runtime import convert
from loopwright.runtime.dtype import DataType
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.json_text import MOST_LEVELS, JsonObject, NestedTooDeep, read_json
from loopwright.target import Target

VERSION: Final = 1
_MOST_LISTS: Final = (MOST_LEVELS - 10) // 3  # a dict takes three levels of JSON, and its row some more
_ENUMS: Final[dict[str, type[Enum]]] = {cls.__name__: cls for cls in (ForKind, IterType)}


class _Layer(NamedTuple):
    """How a layer above this one saves its nodes: to fields by name, and back."""

    save: Callable[..., JsonObject | None]
    load: Callable[[str, JsonObject], object]


_LATER: Final = {
    layer: _Layer(
        when_used(f"loopwright.{layer}.json_form", "save_fields"),
        when_used(f"loopwright.{layer}.json_form", "load_fields"),
    )
    for layer in ("relay", "te")
}


class NotSaved(LoopwrightError, TypeError):
    """Something in a program has no JSON form: an attribute or annotation holds an object only this process knows.

    For example:

        from loopwright import ir, tir

        ir.save_json(tir.PrimFunc([], tir.Evaluate(0), attrs={"hook": print}))
    """

    code = "LW0544"

    def __init__(self, value: object) -> None:
        super().__init__(
            f"save_json: {type(value).__name__} {value!r} has no JSON form",
            hint="keep numbers, texts, lists, dicts and nodes in attributes and annotations",
        )


class NestedLists(LoopwrightError, ValueError):
    """Lists or dicts in an attribute or annotation stand too many levels deep in each other to be saved.

    The program itself may be as deep as it likes: every node is a row of its own.

    For example:

        from loopwright import ir, tir

        levels = []
        for _ in range(1000):
            levels = [levels]
        ir.save_json(tir.PrimFunc([], tir.Evaluate(0), attrs={"levels": levels}))
    """

    code = "LW0572"

    def __init__(self) -> None:
        super().__init__(
            f"save_json: a list or dict of an attribute nests more than {_MOST_LISTS} levels deep",
            hint="keep plain values and flat lists in attributes and annotations",
        )


class BadJson(LoopwrightError, ValueError):
    """A text that `load_json` cannot read: not JSON, or not a program saved by `save_json`.

    For example:

        from loopwright import ir

        ir.load_json("{}")
    """

    code = "LW0545"

    def __init__(self, why: str) -> None:
        super().__init__(f"load_json: {why}", hint="give the text that ir.save_json wrote")


class _Writer:
    def __init__(self) -> None:
        self.rows: list[tuple[str, JsonObject]] = []
        self.places: dict[object, int] = {}
        self.levels = 0  # of lists and dicts around the value at hand

    def node(self, node: object) -> dict[str, int]:
        location = self.places.get(node)
        if location is None:
            outer, self.levels = self.levels, 0  # a row of its own
            fields = self._fields(node)
            self.levels = outer
            location = self.places[node] = len(self.rows)
            self.rows.append((_name(node), fields))
        return {"@": location}

    def _fields(self, node: object) -> JsonObject:
        if isinstance(node, Op):
            return {"name": node.name}
        if isinstance(node, IRModule):
            functions = [[self.node(var), self.node(func)] for var, func in node.functions.items()]
            fields = {"functions": functions, "attrs": self.value(node.attrs)}
            types = [[self.node(header), self.node(data)] for header, data in node.type_definitions.items()]
            return {**fields, "types": types} if types else fields
        if isinstance(node, Buffer):
            return {name: self.value(getattr(node, name)) for name in Buffer.__slots__}
        if isinstance(node, PrimFunc):
            pairs = [[self.node(var), self.node(buffer)] for var, buffer in node.buffer_map.items()]
            plain = {name: self.value(getattr(node, name)) for name in ("params", "body", "ret_type", "attrs")}
            return {**plain, "buffer_map": pairs}
        if _layer(node) in _LATER:
            later = _LATER[_layer(node)].save(node)
            if later is None:
                raise NotSaved(node)
            return {name: self.value(content) for name, content in later.items()}
        if not isinstance(node, Node) or (type(node).__name__ not in NODE_TYPES and type(node) is not SizeVar):
            raise NotSaved(node)
        return {field.name: self.value(getattr(node, field.name)) for field in node.node_fields}

    def value(self, value: object) -> object:
        if value is None or type(value) in (bool, int, str):
            return value
        if isinstance(value, (Node, IRModule)):
            return self.node(value)
        if isinstance(value, DataType):
            return {"dtype": str(value)}
        if isinstance(value, Enum) and type(value).__name__ in _ENUMS:
            return {"enum": [type(value).__name__, value.value]}
        if isinstance(value, (int, np.integer)):
            return int(value)
        if isinstance(value, (float, np.floating)):
            number = float(value)
            return number if math.isfinite(number) else {"float": repr(number)}
        if isinstance(value, str):
            return str(value)
        if isinstance(value, (list, tuple, Mapping)) or _is_array(value):
            self.levels += 1
            if self.levels > _MOST_LISTS:
                raise NestedLists()
            saved = self._container(value)
            self.levels -= 1
            return saved
        if isinstance(value, Target):
            return {"target": value.export()}
        if _layer(value) in _LATER and not isinstance(value, np.ndarray):
            return self.node(value)
        array = value if isinstance(value, np.ndarray) else value.numpy() if hasattr(value, "numpy") else None
        if isinstance(array, np.ndarray) and not array.dtype.hasobject:
            data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
            kind = "array" if array is value else "tensor"
            return {kind: [str(DataType(array.dtype)), list(array.shape), data]}
        raise NotSaved(value)

    def _container(self, value: Sequence[object] | Mapping[object, object]) -> JsonObject:
        if isinstance(value, Mapping):
            kind = "map" if _is_of_runtime(value) else "dict"
            return {kind: [[self.value(key), self.value(item)] for key, item in value.items()]}
        if _is_array(value):
            return {"items": [self.value(item) for item in value]}
        return {"list" if isinstance(value, list) else "tuple": [self.value(item) for item in value]}


def _is_of_runtime(value: object) -> bool:
    return type(value).__module__.startswith("tvm_ffi")


def _is_array(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and _is_of_runtime(value) and not isinstance(value, (str, bytes, tuple))


def _layer(node: object) -> str:
    return type(node).__module__.partition(".")[2].partition(".")[0]


def _name(node: object) -> str:
    """The name of a node's class; of a later layer, which has a `Var` and a `Call` too, with the layer before it."""
    layer = _layer(node)
    if isinstance(node, Op) and layer in _LATER:
        return f"{layer}.Op"
    return f"{layer}.{type(node).__name__}" if layer in _LATER else type(node).__name__


def _array(parts: tuple[str, list[int], str]) -> np.ndarray:
    dtype, shape, data = parts
    return np.frombuffer(base64.b64decode(data), DataType(dtype).numpy()).reshape(shape).copy()


class _Reader:
    def __init__(self, rows: list[tuple[str, JsonObject]]) -> None:
        self.made: list[object] = []
        self.marked: dict[str, Callable[[Any], Any]] = {
            "@": self.made.__getitem__,
            "dtype": DataType,
            "float": float,
            "list": lambda items: [self.value(item) for item in items],
            "tuple": lambda items: tuple([self.value(item) for item in items]),
            "dict": lambda items: {self.value(key): self.value(item) for key, item in items},
            "items": lambda items: convert([self.value(item) for item in items]),
            "map": lambda items: convert({self.value(key): self.value(item) for key, item in items}),
            "enum": lambda parts: _ENUMS[parts[0]](parts[1]),
            "array": _array,
            "tensor": lambda parts: tensor(_array(parts)),
            "target": Target,
        }
        for name, fields in rows:
            self.made.append(self._node(name, fields))

    def value(self, value: object) -> Any:
        if not isinstance(value, dict):
            return value
        ((marker, content),) = value.items()
        return self.marked[marker](content)

    def _node(self, name: str, fields: JsonObject) -> object:
        if name == "Op":
            return user_op(fields["name"])
        if name == "IRModule":
            functions = {self.value(var): self.value(func) for var, func in fields["functions"]}
            types = {self.value(header): self.value(data) for header, data in fields.get("types", [])}
            attrs = self.value(fields["attrs"])
            _check_module(functions, types, attrs)
            return IRModule(functions, types, attrs)
        if name == "PrimFunc":
            buffers = {self.value(var): self.value(buffer) for var, buffer in fields["buffer_map"]}
            params, body, ret_type, attrs = [self.value(fields[key]) for key in ("params", "body", "ret_type", "attrs")]
            given = {"params": params, "body": body, "ret_type": ret_type, "attrs": attrs, "buffer_map": buffers}
            _check(PrimFunc, given)
            return PrimFunc(params, body, ret_type, buffers, attrs)
        values = {key: self.value(item) for key, item in fields.items()}
        layer, _, later = name.partition(".")
        if later:
            return _LATER[layer].load(later, values)
        if name in ("Var", "SizeVar"):
            _check(Var, values)
            return {"Var": Var, "SizeVar": SizeVar}[name](values["name"], values["type_annotation"])
        if name == "Buffer":
            _check(Buffer, values)
            return Buffer(**values)
        cls = NODE_TYPES[name]
        _check(cls, values)
        return cls._make(*[values[field.name] for field in cls.node_fields])


def _check(cls: type, values: dict[str, object]) -> None:
    problem = wrong_field(cls, values)
    if problem is not None:
        raise BadJson(f"the program is damaged ({problem})")


def _check_module(functions: dict[object, object], types: dict[object, object], attrs: object) -> None:
    for header, data in types.items():
        if not hasattr(header, "name_hint") or not hasattr(data, "type_vars"):
            kinds = f"{type(header).__name__} and {type(data).__name__}"
            raise BadJson(f"the program is damaged (a type is defined by its name and its cases, not by {kinds})")
    for var, function in functions.items():
        if not isinstance(var, GlobalVar) or not hasattr(function, "attrs") or not isinstance(function, Node):
            kinds = f"{type(var).__name__} and {type(function).__name__}"
            raise BadJson(f"the program is damaged (a module has functions by GlobalVar; this one has {kinds})")
    if not isinstance(attrs, Mapping):
        raise BadJson(f"the program is damaged (the attributes of a module are a dict, not {type(attrs).__name__})")


@deep
def save_json(node: object) -> str:
    """The program, or any node, module, list or dict of them, as JSON text."""
    writer = _Writer()
    root = writer.value(node)
    return json.dumps({"loopwright": VERSION, "root": root, "nodes": writer.rows}, separators=(",", ":"))


@deep
def load_json(json_str: str) -> Any:
    """What `save_json` wrote, with variables and buffers of its own."""
    try:
        document = read_json(json_str)
    except NestedTooDeep as error:
        raise BadJson(error.problem) from None
    except (TypeError, AttributeError, ValueError) as error:
        raise BadJson(f"the text is no JSON ({error})") from None
    if not isinstance(document, dict) or "loopwright" not in document:
        raise BadJson("the JSON is no program")
    if document["loopwright"] != VERSION:
        raise BadJson(f"the program has format {document['loopwright']}, this version reads {VERSION}")
    try:
        reader = _Reader(document["nodes"])
        return reader.value(document["root"])
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, LoopwrightError):
            raise
        raise BadJson(f"the program is damaged ({type(error).__name__}: {error})") from None


__all__ = ["BadJson", "NestedLists", "NotSaved", "load_json", "save_json"]
