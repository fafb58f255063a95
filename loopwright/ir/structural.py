"""Structural equality and hashing: the same program up to the names of its variables.

Two variables are equal when they are bound at the same place: a loop, a let, a parameter, a block's axis. A buffer,
where it is declared, binds its pointer and those variables of its sizes, strides and offset that are new there. Free variables are
equal only when they are one object, or, with `map_free_vars`, when they correspond one to one. Names of variables and
buffers, and places in the source, do not matter; names of blocks, annotations and attributes do. In annotations and
attributes a Python number and the literal of its natural type (`1` and `T.int32(1)`) count as the same.

`PLANS` says in which order the fields of a class are met and which of them bind; equality and hash both follow it.
The hash is the same in every process.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, Final

import numpy as np

from loopwright.ir.buffer import Buffer, MatchBufferRegion
from loopwright.ir.deep import deep
from loopwright.ir.expr import Callee, CommReducer, Expr, FloatImm, IntImm, Let, Producer, Reduce, StringImm, Var
from loopwright.ir.function import IRModule, PrimFunc
from loopwright.ir.node import FieldKind, Node, script_text
from loopwright.ir.stmt import (
    Allocate,
    AllocateConst,
    AttrStmt,
    Block,
    BufferRealize,
    DeclBuffer,
    For,
    LetStmt,
    Stmt,
)
from loopwright.ir.types import PrimType
from loopwright.runtime.dtype import BOOL, INT32, DataType
from loopwright.runtime.errors import LoopwrightError


class Role(Enum):
    """How a field takes part in a comparison."""

    NODE = "one node, or None"
    NODES = "a tuple of nodes"
    MAPPING = "a mapping to nodes"
    DATA = "plain data"
    BIND = "a variable that is bound here"
    BINDS = "variables that are bound here"
    DECLARE = "a buffer that is declared here"
    DECLARES = "buffers that are declared here"


_ROLES: Final = {
    FieldKind.NODE: Role.NODE,
    FieldKind.OPTIONAL: Role.NODE,
    FieldKind.NODES: Role.NODES,
    FieldKind.MAPPING: Role.MAPPING,
    FieldKind.DATA: Role.DATA,
}
# What is evaluated outside a binding comes before it, what sees it after it.
_ORDER: Final[dict[type[Node], str]] = {
    For: "min extent kind annotations loop_var thread_binding body",
    LetStmt: "value var body",
    Let: "value var body",
    Allocate: "dtype extents condition annotations buffer_var body",
    AllocateConst: "dtype extents data annotations buffer_var body",
    Block: "name_hint iter_vars alloc_buffers match_buffers reads writes annotations init body",
    MatchBufferRegion: "source buffer",
    Reduce: "combiner axis source condition value_index init",
}
_DECLARES: Final[dict[type[Node], str]] = {
    DeclBuffer: "buffer",
    BufferRealize: "buffer",
    MatchBufferRegion: "buffer",
    Block: "alloc_buffers",
}
# Classes at whose end the bindings made inside them end.
_SCOPES: Final = (
    For,
    LetStmt,
    Let,
    Allocate,
    AllocateConst,
    AttrStmt,
    Block,
    BufferRealize,
    CommReducer,
    DeclBuffer,
    PrimFunc,
    Reduce,
)


class _Plans(dict[type, tuple[tuple[str, Role], ...]]):
    """Node class → its fields in the order they are met, with their roles."""

    def __missing__(self, cls: type[Node]) -> tuple[tuple[str, Role], ...]:
        fields = {field.name: field for field in cls.node_fields}
        made = []
        for name in _ORDER[cls].split() if cls in _ORDER else fields:
            role = _ROLES[fields[name].kind]
            if _DECLARES.get(cls) == name:
                role = Role.DECLARES if role is Role.NODES else Role.DECLARE
            # A block binds its axes through the IterVar nodes themselves.
            elif fields[name].binds and not (cls is Block and name == "iter_vars"):
                role = Role.BINDS if role is Role.NODES else Role.BIND
            made.append((name, role))
        self[cls] = tuple(made)
        return self[cls]


PLANS: Final = _Plans()


def _plain(value: object) -> object:
    """A literal inside annotations as the Python value that stands for it."""
    if isinstance(value, IntImm):
        if value.dtype is INT32:
            return value.value
        if value.dtype is BOOL:
            return bool(value.value)
    if isinstance(value, StringImm):
        return value.value
    if isinstance(value, np.generic):
        return value.item()
    return value


def _float_bits(value: float) -> bytes:
    return b"nan" if math.isnan(value) else struct.pack("<d", value)


# --- equality -----------------------------------------------------------------------------------------------------


class _Comparison:
    """Walk two programs side by side; after a mismatch `path` holds the way to it, innermost step first."""

    def __init__(self, map_free_vars: bool) -> None:
        self.map_free_vars = map_free_vars
        self.forward: dict[Any, Any] = {}
        self.backward: dict[Any, Any] = {}
        self.undo: list[tuple[dict[Any, Any], Any, Any]] = []
        self.path: list[str] = []
        self.values: tuple[object, object] = (None, None)  # what differs
        self.shown: tuple[Node, Node] | None = None  # the nodes to show for it

    def differ(self, a: object, b: object) -> bool:
        self.values = (a, b)
        return False

    def node(self, a: Any, b: Any) -> bool:
        cls = type(a)
        if cls is not type(b):
            return self.differ(a, b)
        special = _COMPARE_CLASS.get(cls)
        if special is not None:
            return special(self, a, b)
        if a is None:
            return True
        if isinstance(a, Producer):
            return a is b or self.differ(a, b)
        depth = len(self.undo)
        for name, compare in _COMPARE_PLANS[cls]:
            if not compare(self, getattr(a, name), getattr(b, name)):
                self.path.append(f".{name}")
                # Literals may be shared all over the program: what holds them is marked instead.
                if self.shown is None and isinstance(a, (Expr, Stmt)) and not isinstance(a, (IntImm, FloatImm)):
                    self.shown = (a, b)
                return False
        if cls in _SCOPES:
            self.restore(depth)
        return True

    def restore(self, depth: int) -> None:
        undo = self.undo
        while len(undo) > depth:
            table, key, old = undo.pop()
            if old is None:
                del table[key]
            else:
                table[key] = old

    def nodes(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
        return self._each(a, b, self.node)

    def _each(self, a: Any, b: Any, same: Callable[[Any, Any], bool]) -> bool:
        if len(a) != len(b):
            self.path.append(".length")
            return self.differ(len(a), len(b))
        for k, item in enumerate(a):
            if not same(item, b[k]):
                self.path.append(f"[{k}]")
                return False
        return True

    def mapping(self, a: Mapping[Any, Any], b: Mapping[Any, Any]) -> bool:
        if a.keys() != b.keys():
            self.path.append(".keys")
            return self.differ(sorted(map(str, a)), sorted(map(str, b)))
        for key, value in a.items():
            if not self.data(value, b[key]):
                self.path.append(f"[{key!r}]")
                return False
        return True

    def data(self, a: Any, b: Any) -> bool:
        cls = type(a)
        if cls is str or cls is int or cls is DataType:
            if cls is type(b):
                return a == b or self.differ(a, b)
        a, b = _plain(a), _plain(b)
        if isinstance(a, Node) and isinstance(b, Node):
            return self.node(a, b)
        if isinstance(a, (bool, float)) or isinstance(b, (bool, float)):
            if type(a) is not type(b):
                return self.differ(a, b)
            same = _float_bits(a) == _float_bits(b) if isinstance(a, float) else a is b
            return same or self.differ(a, b)
        if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
            return self._each(a, b, self.data)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            return self.mapping(a, b)
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            same = a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
            return same or self.differ(a, b)
        return (a is b or _equal_values(a, b)) or self.differ(a, b)

    # --- variables and buffers ---

    def is_known(self, a: Any, b: Any) -> bool:
        return a in self.forward or b in self.backward

    def pair(self, a: Any, b: Any) -> None:
        """From here on, `a` and `b` are the same variable or buffer."""
        self.undo.append((self.forward, a, self.forward.get(a)))
        self.undo.append((self.backward, b, self.backward.get(b)))
        self.forward[a], self.backward[b] = b, a

    def bind(self, a: Var, b: Var) -> bool:
        if type(a) is not type(b):
            return self.differ(a, b)
        if not self._same_type(a, b):
            return False
        self.pair(a, b)
        return True

    def _same_type(self, a: Var, b: Var) -> bool:
        left, right = a.type_annotation, b.type_annotation
        if type(left) is PrimType and type(right) is PrimType and left.dtype is right.dtype:
            return True
        if self.node(left, right):
            return True
        self.path.append(".type_annotation")
        return False

    def binds(self, a: tuple[Var, ...], b: tuple[Var, ...]) -> bool:
        return self._each(a, b, self.bind)

    def var(self, a: Var, b: Var) -> bool:
        if self.is_known(a, b):
            return (self.forward.get(a) is b and self.backward.get(b) is a) or self.differ(a, b)
        if self.map_free_vars:
            return self.bind(a, b)
        return a is b or self.differ(a, b)

    def buffer(self, a: Buffer, b: Buffer) -> bool:
        if self.is_known(a, b):
            return (self.forward.get(a) is b and self.backward.get(b) is a) or self.differ(a, b)
        # A buffer over a pointer that is bound here is as good as declared at its first use.
        if self.map_free_vars or self.is_known(a.data, b.data):
            return self.declare(a, b)
        return a is b or self.differ(a, b)

    def declare(self, a: Buffer, b: Buffer) -> bool:
        # Variables that are new here are sizes, strides, an offset or a pointer, which the buffer binds.
        outer, self.map_free_vars = self.map_free_vars, True
        for name, same in _COMPARE_BUFFER:
            if not same(self, getattr(a, name), getattr(b, name)):
                self.path.append(f".{name}")
                return False
        self.map_free_vars = outer
        self.pair(a, b)
        return True

    def declares(self, a: tuple[Buffer, ...], b: tuple[Buffer, ...]) -> bool:
        return self._each(a, b, self.declare)

    # --- whole functions and modules ---

    def callee(self, a: Callee, b: Callee) -> bool:
        return a is b or a.name == b.name or self.differ(a.name, b.name)

    def function(self, a: PrimFunc, b: PrimFunc) -> bool:
        depth = len(self.undo)
        steps: list[tuple[str, Callable[[], bool]]] = [
            (".params", lambda: self.binds(a.params, b.params)),
            (".buffer_map", lambda: self._buffer_map(a, b)),
            (".attrs", lambda: self.mapping(a.attrs, b.attrs)),
            (".ret_type", lambda: self.node(a.ret_type, b.ret_type)),
            (".body", lambda: self.node(a.body, b.body)),
        ]
        for name, same in steps:
            if not same():
                self.path.append(name)
                return False
        self.restore(depth)
        return True

    def _buffer_map(self, a: PrimFunc, b: PrimFunc) -> bool:
        for k, (left, right) in enumerate(zip(a.params, b.params)):
            buffer, other = a.buffer_map.get(left), b.buffer_map.get(right)
            if buffer is None or other is None:
                if buffer is not other:
                    self.path.append(f"[params[{k}]]")
                    return self.differ(buffer, other)
            elif not self.declare(buffer, other):
                self.path.append(f"[params[{k}]]")
                return False
        return True

    def module(self, a: IRModule, b: IRModule) -> bool:
        left, right = dict(a.functions_items()), dict(b.functions_items())
        if left.keys() != right.keys():
            self.path.append(".functions")
            return self.differ(sorted(left), sorted(right))
        if not self.mapping(a.attrs, b.attrs):
            self.path.append(".attrs")
            return False
        for name in sorted(left):
            if not self.function(left[name], right[name]):
                self.path.append(f'["{name}"]')
                return False
        return True


_COMPARE_ROLE: Final[dict[Role, Callable[..., bool]]] = {
    Role.NODE: _Comparison.node,
    Role.NODES: _Comparison.nodes,
    Role.MAPPING: _Comparison.mapping,
    Role.DATA: _Comparison.data,
    Role.BIND: _Comparison.bind,
    Role.BINDS: _Comparison.binds,
    Role.DECLARE: _Comparison.declare,
    Role.DECLARES: _Comparison.declares,
}
_COMPARE_BUFFER: Final[tuple[tuple[str, Callable[..., bool]], ...]] = (
    ("dtype", _Comparison.data),
    ("shape", _Comparison.nodes),
    ("strides", _Comparison.nodes),
    ("elem_offset", _Comparison.node),
    ("data", _Comparison.node),
    ("data_alignment", _Comparison.data),
    ("offset_factor", _Comparison.data),
    ("buffer_type", _Comparison.data),
    ("axis_separators", _Comparison.data),
)


class _ComparePlans(dict[type, list[tuple[str, Callable[..., bool]]]]):
    def __missing__(self, cls: type) -> list[tuple[str, Callable[..., bool]]]:
        made = self[cls] = [(name, _COMPARE_ROLE[role]) for name, role in PLANS[cls]]
        return made


class _ByClass(dict[type, Any]):
    """Class → how to treat it, also for subclasses; None for classes without special treatment."""

    def __missing__(self, cls: type) -> Any:
        made = self[cls] = next((self[base] for base in cls.__mro__[1:] if base in self), None)
        return made

    def get(self, cls: type, default: Any = None) -> Any:
        return self[cls]


_COMPARE_PLANS: Final = _ComparePlans()
_COMPARE_CLASS: Final = _ByClass(
    {
        Var: _Comparison.var,
        Buffer: _Comparison.buffer,
        Callee: _Comparison.callee,
        PrimFunc: _Comparison.function,
        IRModule: _Comparison.module,
    }
)


def _equal_values(a: object, b: object) -> bool:
    return type(a) is type(b) and bool(a == b)


# --- hash ---------------------------------------------------------------------------------------------------------


class _Serialization:
    """A program as text in which bound variables are numbers: equal programs, and only they, give equal text."""

    def __init__(self, map_free_vars: bool) -> None:
        self.map_free_vars = map_free_vars
        self.numbers: dict[Any, int] = {}
        self.count = 0
        self.undo: list[tuple[Any, int | None]] = []
        self.parts: list[str] = []

    def digest(self, size: int) -> bytes:
        # surrogatepass: any Python text may stand in an annotation.
        return hashlib.blake2b("\n".join(self.parts).encode("utf-8", "surrogatepass"), digest_size=size).digest()

    def node(self, node: Any) -> None:
        cls = type(node)
        special = _WRITE_CLASS[cls]
        if special is not None:
            special(self, node)
            return
        if node is None:
            self.parts.append("none")
            return
        self.parts.append(cls.__name__)
        if isinstance(node, Producer):
            self.text(node.name)
            return
        depth = len(self.undo)
        for name, write in _WRITE_PLANS[cls]:
            write(self, getattr(node, name))
        if cls in _SCOPES:
            self.restore(depth)

    def restore(self, depth: int) -> None:
        while len(self.undo) > depth:
            key, old = self.undo.pop()
            if old is None:
                del self.numbers[key]
            else:
                self.numbers[key] = old

    def text(self, value: str) -> None:
        self.parts.append(f"{len(value)}:{value}")

    def nodes(self, nodes: tuple[Any, ...]) -> None:
        self.parts.append(f"({len(nodes)}")
        for node in nodes:
            self.node(node)

    def mapping(self, values: Mapping[Any, Any]) -> None:
        self.parts.append(f"{{{len(values)}")
        for key in sorted(values, key=str):
            self.data(key)
            self.data(values[key])

    def data(self, value: Any) -> None:
        cls = type(value)
        if cls is not str and cls is not int and cls is not DataType:
            value = _plain(value)
        if isinstance(value, Node):
            self.node(value)
        elif isinstance(value, Enum):
            self.text(value.name)
        elif isinstance(value, str):
            self.text(value)
        elif value is None or isinstance(value, (bool, int)):
            self.parts.append(repr(value))
        elif isinstance(value, float):
            self.parts.append(_float_bits(value).hex())
        elif isinstance(value, (list, tuple)):
            self.parts.append(f"({len(value)}")
            for item in value:
                self.data(item)
        elif isinstance(value, Mapping):
            self.mapping(value)
        elif isinstance(value, np.ndarray):
            content = hashlib.blake2b(value.tobytes(), digest_size=16).hexdigest()
            self.text(f"{value.dtype}{value.shape}{content}")
        else:
            self.text(type(value).__name__)

    # --- variables and buffers ---

    def number(self, key: Any) -> None:
        self.undo.append((key, self.numbers.get(key)))
        self.numbers[key] = self.count
        self.count += 1

    def bind(self, var: Var) -> None:
        annotation = var.type_annotation
        if type(annotation) is PrimType:
            self.parts.append(f"{type(var).__name__} {str(annotation.dtype)}")
        else:
            self.parts.append(type(var).__name__)
            self.node(annotation)
        self.number(var)

    def binds(self, variables: tuple[Var, ...]) -> None:
        self.parts.append(f"({len(variables)}")
        for var in variables:
            self.bind(var)

    def var(self, var: Var) -> None:
        known = self.numbers.get(var)
        if known is not None:
            self.parts.append(f"v{known}")
        elif self.map_free_vars:
            self.bind(var)
        else:
            self.text(f"free {var.name} {str(var.dtype)}")

    def buffer(self, buffer: Buffer) -> None:
        known = self.numbers.get(buffer)
        if known is not None:
            self.parts.append(f"b{known}")
        elif self.map_free_vars or buffer.data in self.numbers:
            self.declare(buffer)
        else:
            self.text(f"free {buffer.name} {str(buffer.dtype)}")

    def declare(self, buffer: Buffer) -> None:
        outer, self.map_free_vars = self.map_free_vars, True
        self.parts.append("buffer")
        for name, write in _WRITE_BUFFER:
            write(self, getattr(buffer, name))
        self.map_free_vars = outer
        self.number(buffer)

    def declares(self, buffers: tuple[Buffer, ...]) -> None:
        self.parts.append(f"({len(buffers)}")
        for buffer in buffers:
            self.declare(buffer)

    # --- whole functions and modules ---

    def callee(self, callee: Callee) -> None:
        self.text(f"{type(callee).__name__} {callee.name}")

    def function(self, func: PrimFunc) -> None:
        depth = len(self.undo)
        self.parts.append("PrimFunc")
        self.binds(func.params)
        for param in func.params:
            buffer = func.buffer_map.get(param)
            if buffer is None:
                self.parts.append("none")
            else:
                self.declare(buffer)
        self.mapping(func.attrs)
        self.node(func.ret_type)
        self.node(func.body)
        self.restore(depth)

    def module(self, module: IRModule) -> None:
        functions = dict(module.functions_items())
        self.parts.append(f"IRModule {len(functions)}")
        self.mapping(module.attrs)
        for name in sorted(functions):
            self.text(name)
            self.function(functions[name])


_WRITE_ROLE: Final[dict[Role, Callable[..., None]]] = {
    Role.NODE: _Serialization.node,
    Role.NODES: _Serialization.nodes,
    Role.MAPPING: _Serialization.mapping,
    Role.DATA: _Serialization.data,
    Role.BIND: _Serialization.bind,
    Role.BINDS: _Serialization.binds,
    Role.DECLARE: _Serialization.declare,
    Role.DECLARES: _Serialization.declares,
}
_WRITE_BUFFER: Final[tuple[tuple[str, Callable[..., None]], ...]] = (
    ("dtype", _Serialization.data),
    ("shape", _Serialization.nodes),
    ("strides", _Serialization.nodes),
    ("elem_offset", _Serialization.node),
    ("data", _Serialization.node),
    ("data_alignment", _Serialization.data),
    ("offset_factor", _Serialization.data),
    ("buffer_type", _Serialization.data),
    ("axis_separators", _Serialization.data),
)


class _WritePlans(dict[type, list[tuple[str, Callable[..., None]]]]):
    def __missing__(self, cls: type) -> list[tuple[str, Callable[..., None]]]:
        made = self[cls] = [(name, _WRITE_ROLE[role]) for name, role in PLANS[cls]]
        return made


_WRITE_PLANS: Final = _WritePlans()
_WRITE_CLASS: Final = _ByClass(
    {
        Var: _Serialization.var,
        Buffer: _Serialization.buffer,
        Callee: _Serialization.callee,
        PrimFunc: _Serialization.function,
        IRModule: _Serialization.module,
    }
)


# --- what callers use ---------------------------------------------------------------------------------------------


class StructuralMismatch(LoopwrightError, AssertionError, ValueError):
    """Two programs that should be the same differ.

    The message names the way from the root to the first difference, field by field, with both values, and shows the
    text of both programs around it. Names of variables are no difference; names of blocks, annotations, attributes,
    data types and the order of statements are.
    """

    code = "LW0510"

    def __init__(self, a: object, b: object, found: _Comparison) -> None:
        path = _path_text(found)
        super().__init__(
            lambda: f"the programs differ at {path}: {_value_text(found.values[0])} != {_value_text(found.values[1])}",
            why=lambda: "".join(
                [
                    f"\n    {side}:" + "".join([f"\n    {line}" for line in _excerpt(root, found, k)])
                    for k, (side, root) in enumerate((("left", a), ("right", b)))
                ]
            ),
            fields={"path": path, "left": found.values[0], "right": found.values[1]},
        )


def _path_text(found: _Comparison) -> str:
    return "".join(reversed(found.path)).removeprefix(".") or "the root"


def _value_text(value: object) -> str:
    """A value in one line; of a larger node, its first line."""
    lines = repr(value).splitlines() or [""]
    return lines[0] if len(lines) == 1 else f"{lines[0]} …"


def _excerpt(root: Any, found: _Comparison, side: int) -> Iterator[str]:
    """A few lines of the program around the difference."""
    if not isinstance(root, (Node, IRModule)):
        yield repr(root)
        return
    marked = [] if found.shown is None else [found.shown[side]]
    text = script_text[0](root, obj_to_underline=marked, num_context_lines=3)
    lines = text.splitlines()
    yield from lines if "^" in text else lines[:12]


@deep
def _compare(a: Any, b: Any, map_free_vars: bool) -> tuple[bool, _Comparison]:
    comparison = _Comparison(map_free_vars)
    same = comparison.node if isinstance(a, (Node, IRModule)) else comparison.data
    return a is b or same(a, b), comparison


def structural_equal(a: Any, b: Any, map_free_vars: bool = False) -> bool:
    """Whether `a` and `b` are the same program up to the names of variables; see the module docstring."""
    return _compare(a, b, map_free_vars)[0]


def assert_structural_equal(a: Any, b: Any, map_free_vars: bool = False) -> None:
    """Raise `StructuralMismatch`, which names and shows the first difference, unless the programs are the same."""
    same, found = _compare(a, b, map_free_vars)
    if not same:
        raise StructuralMismatch(a, b, found)


def get_first_structural_mismatch(a: Any, b: Any, map_free_vars: bool = False) -> tuple[str, str] | None:
    """The paths in `a` and in `b` to the first difference, or None."""
    same, found = _compare(a, b, map_free_vars)
    return None if same else (_path_text(found), _path_text(found))


@deep
def _digest(root: Any, map_free_vars: bool, size: int) -> bytes:
    serialization = _Serialization(map_free_vars)
    if isinstance(root, (Node, IRModule)):
        serialization.node(root)
    else:
        serialization.data(root)
    return serialization.digest(size)


def structural_hash(root: Any, map_free_vars: bool = False) -> int:
    """A 64-bit hash, the same for structurally equal programs and in every process."""
    return int.from_bytes(_digest(root, map_free_vars, 8), "little")


def structural_digest(root: Any, map_free_vars: bool = False) -> str:
    """128 bits of hash in hexadecimal, for the keys of caches."""
    return _digest(root, map_free_vars, 16).hex()
