"""What is known of a function while it is being made from tensors: buffers, names, and variables still to be given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from loopwright.ir import Buffer, Expr, Node, Var, const, decl_buffer
from loopwright.te.block_accesses import BlockAccesses
from loopwright.te.lower_body import IndexTypes
from loopwright.te.tensor import Operation, Tensor


class Names:
    """Fresh identifiers: X, X_1, X_2, …"""

    def __init__(self, used: Iterable[str] = ()) -> None:
        self.taken = set(used)
        self.next: dict[str, int] = {}

    def fresh(self, name: str) -> str:
        if name not in self.taken:
            self.taken.add(name)
            return name
        k = self.next.get(name, 1)
        while f"{name}_{k}" in self.taken:
            k += 1
        self.next[name] = k + 1
        self.taken.add(f"{name}_{k}")
        return f"{name}_{k}"


def identifier(name: str) -> str:
    """`name` as Python and the script can write it."""
    text = re.sub(r"\W", "_", name) or "_"
    return f"_{text}" if text[0].isdigit() else text


class BlockMade(NamedTuple):
    """A block of an operation. `given` is the axis, by position, whose loop was there already: time, in a scan."""

    name: str
    given: int | None = None


class FunctionInMaking:
    """The state that the operations of one function share while they become statements."""

    one_block = False  # whether the outputs of a compute are stored in one block

    def __init__(self, index: IndexTypes) -> None:
        self.index = index
        self.names = Names()
        self.block_names = Names(["root"])
        self.buffers: dict[Tensor, Buffer] = {}
        self.allocated: list[Buffer] = []  # what lives inside the function
        self.one_step: dict[Tensor, int] = {}  # stages of a scan of which one step is kept, and their time axis
        self.used: dict[Var, str] = {}  # free variables, and who uses them first
        self.blocks: dict[Operation, list[BlockMade]] = {}  # the blocks of each operation, in order
        self.stored_by: dict[Operation, dict[str, int]] = {}  # of a reduction over threads: the one that stores it
        self.loops: dict[Operation, dict[Var, Var]] = {}  # loop variables a user wrote → those of the function

    def declare(self, tensor: Tensor, called: str | None = None) -> Buffer:
        """A buffer for `tensor`, by its name unless it is `called` another."""
        name = self.names.fresh(identifier(called or tensor.name))
        shape = [self.index.convert(size) for size in tensor.shape]
        if tensor in self.one_step:
            shape[self.one_step[tensor]] = const(1, shape[self.one_step[tensor]].dtype)
        self.use(shape, tensor.name)
        self.buffers[tensor] = buffer = self.new_buffer(tensor, shape, name)
        return buffer

    def new_buffer(self, tensor: Tensor, shape: Sequence[Expr], name: str) -> Buffer:
        """The buffer of a tensor that has none yet."""
        return decl_buffer(shape, tensor.dtype, name)

    def block_name(self, op: Operation, name: str, given: int | None = None) -> str:
        """A name for a new block of `op`."""
        fresh = self.block_names.fresh(name)
        self.blocks.setdefault(op, []).append(BlockMade(fresh, given))
        return fresh

    def may_fold(self, op: Operation) -> bool:
        """Whether one step of memory may do for a stage of a scan that needs no more."""
        return True

    def store_condition(self, op: Operation) -> Expr | None:
        """Where the results of a compute are stored, in terms of its axes; None: everywhere."""
        return None

    def indices(self, tensor: Tensor, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """Where the element of `tensor` at `indices` lies in its buffer."""
        time = self.one_step.get(tensor)
        return tuple([const(0, index.dtype) if k == time else index for k, index in enumerate(indices)])

    def buffer_of(self, tensor: Tensor) -> Buffer:
        """The buffer of `tensor`; one inside the function unless it is a parameter or has one already."""
        result = self.buffers.get(tensor)
        if result is None:
            result = self.declare(tensor)
            self.allocated.append(result)
        return result

    def use(self, values: Sequence[Node], user: str, bound: Sequence[Var] = ()) -> None:
        """Note the variables that `values` need from outside."""
        result = BlockAccesses(bound)
        for value in values:
            result.visit(value)
        self.use_all(result.free, user)

    def use_all(self, variables: Iterable[Var], user: str) -> None:
        """Note variables that must come from outside."""
        for var in variables:
            self.used.setdefault(var, user)

    def annotation(self, value: object) -> object:
        """An attribute of an operation as an annotation of its block: tensors become their buffers."""
        if isinstance(value, Tensor):
            return self.buffers.get(value, value)
        if isinstance(value, (list, tuple)):
            return [self.annotation(item) for item in value]
        return value

    def size(self, extent: Expr) -> Expr:
        """A size in the type of indices."""
        return self.index.convert(extent)
