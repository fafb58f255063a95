"""Calls: the events of the calls by which threads wait, tell each other something, and begin asynchronous operations.

Threads for which the arguments of a call differ have events of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from loopwright.analysis.async_order.block import Block
from loopwright.analysis.async_order.errors import NotByWholeWarps
from loopwright.analysis.async_order.events import Event, Mask, NotKnown, Touch
from loopwright.analysis.async_order.footprints import Footprint, TooLarge, matrix_bytes
from loopwright.analysis.async_order.kernels import addressed_load
from loopwright.analysis.async_order.values import Value, upper_bound
from loopwright.ir import BufferLoad, Call, Expr, IntImm, Stmt, StringImm, Var
from loopwright.ir.warpgroup_intrinsics import OPERAND_KINDS
from loopwright.runtime.dtype import DataType

WARP: Final = 32
WARPGROUP: Final = 128
_TILE: Final = 64  # rows of A that a warpgroup multiplies


class _Operand(NamedTuple):
    """A or B of `wgmma` in shared memory, by its arguments."""

    load: BufferLoad
    rows: int
    swizzle: int
    steps: tuple[int, int]
    is_transposed: bool


class Calls:
    """Writes the events of calls."""

    def __init__(self, block: Block, reads: Callable[[Expr, Stmt, Mask], None]) -> None:
        self.block, self.reads = block, reads
        self.known: dict[tuple[object, ...], Footprint] = {}
        self.split: dict[tuple[object, ...], list[tuple[Mask, tuple[int, ...]]]] = {}
        self.whole: set[tuple[int, int]] = set()  # masks of whole warps
        self.handlers: dict[str, Callable[[Stmt, Call, Mask], None]] = {
            "mbarrier_init": self.barrier_with_number,
            "mbarrier_wait": self.barrier_with_number,
            "mbarrier_arrive": self.barrier_with_number,
            "bulk_copy_async": self.bulk_copy,
            "tensor_copy_async": self.tensor_copy,
            "tensor_store_async": self.tensor_store,
            "role_barrier": self.role_barrier,
            "tvm_storage_sync": self.storage_sync,
            "wgmma": self.wgmma,
            "ptx_cp_async": self.group_copy,
            "set_max_registers": lambda statement, call, mask: None,
            **dict.fromkeys(("wgmma_fence", "wgmma_commit", "wgmma_wait"), self.of_warpgroup),
            **dict.fromkeys(("fence_proxy_async", "bulk_commit_group", "bulk_wait_group"), self.of_thread),
            **dict.fromkeys(("bulk_wait_group_read", "ptx_commit_group", "ptx_wait_group"), self.of_thread),
        }

    def call(self, statement: Stmt, call: Call, mask: Mask) -> None:
        """The events of a call."""
        handler = self.handlers.get(call.op.name.removeprefix("tir."))
        if handler is None:
            raise NotKnown(f"synchronisation stands inside of {call}")
        for argument in call.args:
            load = addressed_load(argument)
            for part in (argument,) if load is None else load.indices:
                self.reads(part, statement, mask)
        handler(statement, call, mask)

    # --- what waits and arrives -------------------------------------------------------------------------------------

    def barrier_with_number(self, statement: Stmt, call: Call, mask: Mask) -> None:
        kind = call.op.name.removeprefix("tir.mbarrier_")
        number = self.block.number(call.args[1], call.op.name.removeprefix("tir.")) if len(call.args) > 1 else 0
        for part, (at, given) in self.alike(mask, self.element(call.args[0]), number):
            barrier = self.data(call.args[0]), at
            self.emit(Event(kind, part, self.block.where, statement, barrier=barrier, number=given))

    def role_barrier(self, statement: Stmt, call: Call, mask: Mask) -> None:
        number, threads = [self.block.number(argument, "a role_barrier") for argument in call.args]
        for part, (name, count) in self.alike(mask, number, threads):
            kind = "meet_warp" if count == WARP else "meet"
            self.emit(Event(kind, part, self.block.where, statement, number=name, threads=count))

    def storage_sync(self, statement: Stmt, call: Call, mask: Mask) -> None:
        scope = call.args[0].value if call.args and isinstance(call.args[0], StringImm) else "shared"
        if scope == "warp":
            self.emit(Event("meet_warp", mask, self.block.where, statement, threads=WARP))
        else:
            self.emit(Event("meet", mask, self.block.where, statement, threads=self.block.threads))

    def of_thread(self, statement: Stmt, call: Call, mask: Mask) -> None:
        """A fence, or groups of what a thread has begun."""
        if call.args and not isinstance(call.args[0], IntImm):
            raise NotKnown(f"{call} waits for a number of groups that is no constant")
        groups = _constant(call.args[0]) if call.args else 0
        self.emit(Event(call.op.name.removeprefix("tir."), mask, self.block.where, statement, number=groups))

    def of_warpgroup(self, statement: Stmt, call: Call, mask: Mask) -> None:
        self.check_whole(mask, WARPGROUP, statement, call)
        groups = call.args[0].value if call.args and isinstance(call.args[0], IntImm) else 0
        self.emit(Event(call.op.name.removeprefix("tir."), mask, self.block.where, statement, number=groups))

    # --- copies -----------------------------------------------------------------------------------------------------

    def bulk_copy(self, statement: Stmt, call: Call, mask: Mask) -> None:
        target, bytes = call.args[0], self.block.env.value(call.args[2])
        is_exact = bytes is not None
        if bytes is None:
            bytes = upper_bound(call.args[2], self.block.env)
        if bytes is None:
            self.block.doubts[f"how many bytes are copied, {call.args[2]}, is not known"] = None
            is_exact, bytes = False, self.size(target)
        source = addressed_load(call.args[1])
        places = [] if source is None else [self.block.env.value(index) for index in source.indices]
        self.copies(statement, call, mask, target, [bytes, *places], call.args[3], is_exact)

    def tensor_copy(self, statement: Stmt, call: Call, mask: Mask) -> None:
        places = [self.block.env.value(coordinate) for coordinate in call.args[3:]]
        self.copies(statement, call, mask, call.args[0], [self.box_bytes(call.args[1]), *places], call.args[2], True)

    def copies(
        self, statement: Stmt, call: Call, mask: Mask, target: Expr, given: list[Value], barrier: Expr, is_exact: bool
    ) -> None:
        """Copies to shared memory, one of each warp, of so many bytes and from one place."""
        known = [0 if value is None else value for value in given]
        for part, (begin, at, size, *_) in self.alike(mask, self.byte(target), self.element(barrier), *known):
            self.check_whole(part, WARP, statement, call)
            if size <= 0:
                self.emit(Event("meet_warp", part, self.block.where, statement, threads=WARP))
            else:
                is_certain = is_exact and self.block.is_certain
                touch = Touch(self.row(self.data(target), begin, size, is_certain), True, call)
                of = self.data(barrier), at
                self.emit(Event("copy", part, self.block.where, statement, (touch,), of))

    def tensor_store(self, statement: Stmt, call: Call, mask: Mask) -> None:
        for part, (begin, size) in self.alike(mask, self.byte(call.args[1]), self.box_bytes(call.args[0])):
            touch = Touch(self.row(self.data(call.args[1]), begin, size, True), False, call)
            self.emit(Event("store", part, self.block.where, statement, (touch,)))

    def group_copy(self, statement: Stmt, call: Call, mask: Mask) -> None:
        """A copy of each thread, 4, 8 or 16 bytes."""
        if len(call.args) != 5:
            raise NotKnown(f"{call} is not a copy of a group as it is known")
        pointer, offset, _, _, size = call.args
        data = pointer if isinstance(pointer, Var) else self.data(pointer)
        bytes = self.block.number(size, "the bytes of a copy")
        if data not in self.block.memory.unit_bytes or not isinstance(bytes, int):
            raise NotKnown(f"where {call} copies to is not known")
        begin = 0 if isinstance(pointer, Var) else self.byte(pointer)
        step = self.block.number(offset, "where a copy begins")
        at = np.broadcast_to(np.asarray(begin + step * call.dtype.nbytes), mask.bits.shape)[mask.bits]
        unit = self.block.memory.unit_bytes[data]
        units = (at[:, None] // unit + np.arange(-(-bytes // unit))).reshape(-1)
        threads = np.repeat(np.flatnonzero(mask.bits), len(units) // max(1, len(at)))
        touch = Touch(Footprint(data, units.astype("int64"), threads, True), True, call)
        self.emit(Event("group_copy", mask, self.block.where, statement, (touch,)))

    # --- tensor cores -----------------------------------------------------------------------------------------------

    def wgmma(self, statement: Stmt, call: Call, mask: Mask) -> None:
        args = call.args
        loads = [addressed_load(args[k]) for k in (0, 3, 9)]
        bytes: list[Value] = [self.byte(args[k]) for k in (0, 3, 9)]
        columns = _constant(args[1])
        for part, (d, a, b) in self.alike(mask, *bytes):
            self.check_whole(part, WARPGROUP, statement, call)
            first, left, right = loads
            assert first is not None and left is not None and right is not None
            size = columns // 2 * first.buffer.dtype.nbytes
            touches = [Touch(self.row(first.buffer.data, d, size, True), True, args[0])]
            if left.buffer.scope() == "local":
                touches.append(Touch(self.row(left.buffer.data, a, 16, True), False, args[3]))
            else:
                touches.append(Touch(self.matrix(_operand(left, _TILE, args[4:8]), args[2], a), False, args[3]))
            touches.append(Touch(self.matrix(_operand(right, columns, args[10:14]), args[8], b), False, args[9]))
            self.emit(Event("wgmma", part, self.block.where, statement, tuple(touches)))

    def matrix(self, operand: _Operand, kind: Expr, begin: int) -> Footprint:
        assert isinstance(kind, StringImm)
        key = (operand.load.buffer.data, begin, *operand[1:], kind.value)
        result = self.known.get(key)
        if result is None:
            size = OPERAND_KINDS[kind.value].dtype.nbytes
            read = matrix_bytes(begin, operand.rows, 32, size, operand.swizzle, operand.steps, operand.is_transposed)
            result = self.known[key] = self.block.footprints.of_bytes(operand.load.buffer.data, 0, read)
        return result

    # --- arguments --------------------------------------------------------------------------------------------------

    def emit(self, event: Event) -> None:
        self.block.emit(event)

    def alike(self, mask: Mask, *values: Value) -> list[tuple[Mask, tuple[int, ...]]]:
        """The threads of the mask that have the same values."""
        if not any([isinstance(value, np.ndarray) for value in values]):
            return [(mask, tuple([int(value) for value in values if value is not None]))]
        key = mask.number, *[value.tobytes() if isinstance(value, np.ndarray) else value for value in values]
        result = self.split.get(key)
        if result is None:
            result = self.split[key] = self.parts(mask, values)
        return result

    def parts(self, mask: Mask, values: tuple[Value, ...]) -> list[tuple[Mask, tuple[int, ...]]]:
        chosen = np.flatnonzero(mask.bits)
        columns = [np.broadcast_to(np.asarray(value), mask.bits.shape)[chosen] for value in values]
        found, which = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        result = []
        for k, row in enumerate(found):
            bits = np.zeros_like(mask.bits)
            bits[chosen[which.reshape(-1) == k]] = True
            result.append((self.block.mask(bits), tuple([int(value) for value in row])))
        return result

    def check_whole(self, mask: Mask, size: int, statement: Stmt, call: Call) -> None:
        """Raise NotByWholeWarps where a warp, or a warpgroup, has the call only in part, or with other arguments."""
        if (mask.number, size) in self.whole:
            return
        counts = np.add.reduceat(mask.bits, np.arange(0, len(mask.bits), size))
        partly = np.flatnonzero((counts > 0) & (counts < size))
        if len(partly):
            raise NotByWholeWarps(statement, call, int(partly[0]), int(counts[partly[0]]), size, self.block.where)
        self.whole.add((mask.number, size))

    def data(self, pointer: Expr) -> Var:
        load = addressed_load(pointer)
        if load is None:
            raise NotKnown(f"what {pointer} points to is not known")
        return load.buffer.data

    def element(self, pointer: Expr) -> Value:
        """The number of an mbarrier in its memory."""
        return self.byte(pointer) // DataType("uint64").nbytes

    def byte(self, pointer: Expr) -> int | np.ndarray:
        load = addressed_load(pointer)
        if load is None:
            raise NotKnown(f"what {pointer} points to is not known")
        try:
            result = self.block.footprints.byte_of(load.buffer, load.indices)
        except TooLarge as error:
            raise NotKnown(str(error)) from None
        if result is None:
            raise NotKnown(f"where {load} is, is not known before the kernel runs")
        return result

    def size(self, pointer: Expr) -> int:
        load = addressed_load(pointer)
        assert load is not None
        shape, strides, _ = self.block.footprints.layout(load.buffer)
        last = sum([(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)])
        return (last + 1) * load.buffer.dtype.nbytes

    def box_bytes(self, tensor: Expr) -> int:
        fields = self.block.kernel.maps.get(tensor) if isinstance(tensor, Var) else None
        if fields is None:
            raise NotKnown(f"the box of {tensor} is not known")
        return int(np.prod(fields.box)) * fields.dtype.nbytes

    def row(self, data: Var, begin: int, size: int, is_exact: bool) -> Footprint:
        """Bytes side by side."""
        key = (data, begin, size, is_exact)
        result = self.known.get(key)
        if result is None:
            unit = self.block.memory.unit_bytes.get(data)
            if unit is None:
                raise NotKnown(f"the memory {data.name} is not known")
            units = np.arange(begin // unit, -(-(begin + size) // unit))
            result = self.known[key] = Footprint(data, units, None, is_exact)
        return result


def _operand(load: BufferLoad, rows: int, args: tuple[Expr, ...]) -> _Operand:
    swizzle, leading, stride, is_transposed = [_constant(argument) for argument in args]
    return _Operand(load, rows, swizzle, (leading, stride), bool(is_transposed))


def _constant(expr: Expr) -> int:
    assert isinstance(expr, IntImm)
    return expr.value
