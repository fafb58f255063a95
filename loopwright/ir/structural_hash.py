"""Structural hash: a number that equal programs share, in every process.

A program is written as text in which bound variables are numbers in the order of their binding; the hash is that of
the text. What is equal is said in `structural.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Final

import numpy as np

from loopwright.ir.buffer import Buffer
from loopwright.ir.deep import deep
from loopwright.ir.expr import Callee, Expr, Producer, Var
from loopwright.ir.function import IRModule, PrimFunc
from loopwright.ir.node import Node
from loopwright.ir.sharing import tree_size
from loopwright.ir.stmt import Block
from loopwright.ir.structural_plan import BUFFER_FIELDS, PLANS, SCOPES, ByClass, Role, elements, float_bits, plain_value
from loopwright.ir.types import PrimType
from loopwright.ir.visitor import has_children, post_order_visit
from loopwright.runtime.dtype import DataType

# Classes that are not written field by field, and the method that writes each.
_SPECIAL: Final[dict[type, str]] = {
    Var: "var",
    Buffer: "buffer",
    Callee: "callee",
    Block: "block",
    PrimFunc: "function",
    IRModule: "module",
}


# The same for classes that later layers define: class → what writes an object of it.
_LATER: Final[dict[type, Callable[[Any, Any], None]]] = {}


class _WritePlans(dict[type, list[tuple[str, Callable[..., None]]]]):
    """Node class → its fields, each with the method of `writer` that writes it: a role has its method's name."""

    def __init__(self, writer: type) -> None:
        super().__init__()
        self.writer = writer
        self[Buffer] = [(name, self.method(role)) for name, role in BUFFER_FIELDS.items()]

    def __missing__(self, cls: type) -> list[tuple[str, Callable[..., None]]]:
        result = self[cls] = [(name, self.method(role)) for name, role in PLANS[cls]]
        return result

    def method(self, role: Role) -> Callable[..., None]:
        result: Callable[..., None] = getattr(self.writer, role.name.lower())
        return result


class Serialization:
    """A program as text in which bound variables are numbers: equal programs, and only they, give equal text."""

    # Looked up once a class instead of once a node; a subclass has those of its own methods.
    plans: ClassVar[_WritePlans]
    special: ClassVar[ByClass]

    def __init_subclass__(cls) -> None:
        _look_up_methods(cls)

    def __init__(self, map_free_vars: bool, block_names: bool = True) -> None:
        self.map_free_vars = map_free_vars
        self.block_names = block_names
        self.numbers: dict[object, int] = {}
        self.count = 0
        self.undo: list[tuple[object, int | None]] = []
        self.parts: list[str] = []

    def digest(self, size: int) -> bytes:
        # surrogatepass: any Python text may stand in an annotation.
        return hashlib.blake2b("\n".join(self.parts).encode("utf-8", "surrogatepass"), digest_size=size).digest()

    def node(self, node: object) -> None:
        cls = type(node)
        special = self.special[cls]
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
        self.fields(node)

    def fields(self, node: Any) -> None:
        cls = type(node)
        depth = len(self.undo)
        for name, write in self.plans[cls]:
            write(self, getattr(node, name))
        if cls in SCOPES:
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

    def nodes(self, nodes: tuple[object, ...]) -> None:
        self.parts.append(f"({len(nodes)}")
        for node in nodes:
            self.node(node)

    def mapping(self, values: Mapping[Any, object]) -> None:
        self.parts.append(f"{{{len(values)}")
        for key in sorted(values, key=str):
            self.data(key)
            self.data(values[key])

    def data(self, value: object) -> None:
        cls = type(value)
        if cls is not str and cls is not int and cls is not DataType:
            value = plain_value(value)
        if isinstance(value, Node):
            self.node(value)
        elif isinstance(value, Enum):
            self.text(value.name)
        elif isinstance(value, str):
            self.text(value)
        elif value is None or isinstance(value, (bool, int)):
            self.parts.append(repr(value))
        elif isinstance(value, float):
            self.parts.append(float_bits(value).hex())
        elif isinstance(value, Sequence) and not isinstance(value, bytes):
            self.parts.append(f"({len(value)}")
            for item in value:
                self.data(item)
        elif isinstance(value, Mapping):
            self.mapping(value)
        elif isinstance(array := elements(value), np.ndarray):
            content = hashlib.blake2b(array.tobytes(), digest_size=16).hexdigest()
            self.text(f"{array.dtype}{array.shape}{content}")
        else:
            self.text(type(value).__name__)

    # --- variables and buffers ---

    def number(self, key: object) -> None:
        self.undo.append((key, self.numbers.get(key)))
        self.numbers[key] = self.count
        self.count += 1

    def bind(self, var: Var) -> None:
        annotation = var.type_annotation
        if type(annotation) is PrimType:
            self.parts.append(f"{type(var).__name__} {annotation.dtype!s}")
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
            self.text(f"free {var.name} {var.dtype!s}")

    def buffer(self, buffer: Buffer) -> None:
        known = self.numbers.get(buffer)
        if known is not None:
            self.parts.append(f"b{known}")
        elif self.map_free_vars or buffer.data in self.numbers:
            self.declare(buffer)
        else:
            self.text(f"free {buffer.name} {buffer.dtype!s}")

    def declare(self, buffer: Buffer) -> None:
        outer, self.map_free_vars = self.map_free_vars, True
        self.parts.append("buffer")
        for name, write in self.plans[Buffer]:
            write(self, getattr(buffer, name))
        self.map_free_vars = outer
        self.number(buffer)

    def declares(self, buffers: tuple[Buffer, ...]) -> None:
        self.parts.append(f"({len(buffers)}")
        for buffer in buffers:
            self.declare(buffer)

    # --- blocks, whole functions and modules ---

    def block(self, block: Block) -> None:
        self.parts.append("Block")
        if self.block_names:
            self.text(block.name_hint)
        self.fields(block)

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
            self.node(functions[name])


def _look_up_methods(cls: type[Serialization]) -> None:
    cls.plans = _WritePlans(cls)
    cls.special = ByClass({**{of: getattr(cls, name) for of, name in _SPECIAL.items()}, **_LATER})


_look_up_methods(Serialization)


def hash_with(of: type, write: Callable[[Any, Any], None]) -> None:
    """Have objects of the class `of`, which a later layer defines, written by `write(serialization, object)`."""
    _LATER[of] = write
    kinds: list[type[Serialization]] = [Serialization, *Serialization.__subclasses__()]
    for cls in kinds:
        cls.special[of] = write


class _ByObject(Serialization):
    """The same for an expression that repeats its objects so often that no text can hold it: digests of digests.

    Equal expressions have equal tree sizes, so they are all written this way, however much each of them shares.
    """

    def __init__(self, map_free_vars: bool, block_names: bool, root: Expr) -> None:
        super().__init__(map_free_vars, block_names)
        self.digests: dict[Node, str] = {}
        if map_free_vars:
            # Whether a variable is met for the first time must not depend on the place it is met in.
            post_order_visit(root, lambda node: self.bind(node) if isinstance(node, Var) else None)

    def node(self, node: object) -> None:
        if not isinstance(node, Expr) or not has_children(type(node)):
            super().node(node)
            return
        known = self.digests.get(node)
        if known is None:
            outer, self.parts = self.parts, [type(node).__name__]
            depth = len(self.undo)
            for name, write in self.plans[type(node)]:
                write(self, getattr(node, name))
            self.restore(depth)
            known = self.digests[node] = self.digest(16).hex()
            self.parts = outer
        self.parts.append(known)


_WRITTEN_OUT: Final = 200_000  # places of an expression beyond which it is not written out


@deep
def _digest(root: object, map_free_vars: bool, block_names: bool, size: int) -> bytes:
    serialization = Serialization(map_free_vars, block_names)
    if isinstance(root, Expr) and has_children(type(root)) and tree_size(root) > _WRITTEN_OUT:
        serialization = _ByObject(map_free_vars, block_names, root)
    if isinstance(root, (Node, IRModule)):
        serialization.node(root)
    else:
        serialization.data(root)
    return serialization.digest(size)


def structural_hash(root: object, map_free_vars: bool = False) -> int:
    """A 64-bit hash, the same for structurally equal programs and in every process."""
    return int.from_bytes(_digest(root, map_free_vars, False, 8), "little")


def structural_digest(root: object, map_free_vars: bool = False) -> str:
    """128 bits of hash in hexadecimal, for the keys of caches: names of blocks count, since results show them."""
    return _digest(root, map_free_vars, True, 16).hex()
