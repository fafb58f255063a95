"""Tensor copies: nests of one thread that copy a box between a tensor and shared memory, as copies of the engine (TMA).

    if thread == begin:                                        →    T.tensor_copy_async(&S[0, 0], A_map, barrier, i, k)
        for r, c in T.grid(128, 64):
            S[r, c] = T.if_then_else(i + r < m, A[i + r, k + c], 0)

    if thread == begin:                                        →    if thread == begin:
        for r, c in T.grid(128, 64):                                    T.tensor_store_async(C_map, &S[0, 0], i, j)
            C[i + r, j + c] = S[r, c]

The loops count through the box, each along a dimension of its own, and the box lies in shared memory row by row.
Conditions ask whether an index is inside the tensor: what is outside arrives as zeros. Loops further out stay: each of
their iterations copies a box. As a copy is there only when its barrier says so, the role touches its target nowhere
else, and the kernel stores nothing to its source. A box is in the tensor at some time after it is stored, so that the
kernel has no other access to that tensor; where iterations may store to one element, they wait for each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import copysign, prod
from typing import Final, NamedTuple

from loopwright.analysis.loop_carried import Loop, carries
from loopwright.analysis.thread_axes import is_of_block, scope_of
from loopwright.arith import Analyzer, linear_coefficients
from loopwright.ir import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    And,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Evaluate,
    Expr,
    FloatImm,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    Not,
    Range,
    Select,
    SeqStmt,
    Stmt,
    Var,
    any_node,
    collect,
    collect_statements,
    const,
    logical_not,
    seq,
    substitute,
    uses_var,
    variables_in,
)
from loopwright.ir.intrinsics import address_of
from loopwright.ir.tensor_copy_intrinsics import (
    MOST_DIMENSIONS,
    bulk_commit_group,
    bulk_wait_group,
    bulk_wait_group_read,
    tensor_copy_async,
    tensor_map,
    tensor_store_async,
    type_of_value,
)
from loopwright.transform.parts.purity import has_data

_LONGEST: Final = 256  # elements along one dimension of a box
_MULTIPLE: Final = 16  # bytes of a row of a box
_LINE: Final = 128  # bytes of shared memory, at a multiple of which a box begins; swizzles repeat after eight of theirs


class TensorCopies(NamedTuple):
    """A role's part with tensor copies, and the maps that the host makes for them."""

    statement: Stmt
    maps: list[tuple[Var, Expr]]


def with_tensor_copies(
    statement: Stmt,
    targets: frozenset[Var],
    stored: frozenset[Var],
    thread: Expr,
    swizzles: Mapping[Var, int],
    barrier: Expr,
) -> TensorCopies:
    """The statement, with tensor copies for the nests of its first thread (whose number `thread` is 0).

    `swizzles` are those of the targets, in bytes. What the kernel has `stored` to is no source of a copy.
    """
    accesses: list[BufferLoad | BufferStore] = [*collect(statement, BufferLoad), *collect(statement, BufferStore)]
    uses = Counter([access.buffer.data for access in accesses])

    def call(box: Box, name: Var) -> Stmt:
        return Evaluate(tensor_copy_async(box.address, name, barrier, *box.coordinates))

    def copied(nest: Stmt) -> Box | None:
        box = _box_of(nest, swizzles)
        if box is None or box.is_stored or box.shared.data not in targets or uses[box.shared.data] != 1:
            return None
        is_apart = _are_apart([box.begin], [prod([_number(extent) for extent in box.extents])], box.outer)
        return box if box.tensor.data not in stored and is_apart else None

    copies = _Copies(thread, swizzles, copied, call)
    return TensorCopies(copies.written(statement, is_of_warp=True), copies.maps)


def with_tensor_stores(
    statement: Stmt,
    sources: frozenset[Var],
    tensors: frozenset[Var],
    thread: Expr,
    swizzles: Mapping[Var, int],
    around: Sequence[For],
) -> TensorCopies:
    """The statement, with stores of boxes for the nests of its first thread that read the sources.

    The kernel has one access to each of the `tensors`; `around` are the loops of a block around the statement. The
    thread goes on when the sources have been read, or when the box is there, where a later one may overwrite it.
    """

    def call(box: Box, name: Var) -> Stmt:
        store = Evaluate(tensor_store_async(name, box.address, *box.coordinates))
        is_alone = _are_apart(box.coordinates, box.extents, [*around, *box.outer])
        wait = bulk_wait_group_read(0) if is_alone else bulk_wait_group(0)
        return seq([store, Evaluate(bulk_commit_group()), Evaluate(wait)])

    def copied(nest: Stmt) -> Box | None:
        box = _box_of(nest, swizzles)
        if box is None or not box.is_stored or box.tensor.data not in tensors:
            return None
        return box if box.shared.data in sources else None

    stores = _Copies(thread, swizzles, copied, call)
    return TensorCopies(stores.written(statement, is_of_warp=False), stores.maps)


def stored_boxes(statement: Stmt, sources: frozenset[Var], swizzles: Mapping[Var, int]) -> dict[Var, Buffer]:
    """The sources of which the statement stores boxes, by one thread."""
    result: dict[Var, Buffer] = {}
    for choice in collect_statements(statement, IfThenElse):
        for nest in _nests(choice):
            box = _box_of(nest, swizzles)
            if box is not None and box.is_stored and box.shared.data in sources:
                result[box.shared.data] = box.shared
    return result


class Box(NamedTuple):
    """A box of a tensor, and where it lies in shared memory."""

    tensor: Buffer
    shared: Buffer
    is_stored: bool  # from shared memory to the tensor
    extents: tuple[Expr, ...]
    begin: Expr  # in shared memory, in elements
    address: Expr
    coordinates: tuple[Expr, ...]
    outer: tuple[For, ...]  # loops which copy another box in each iteration


class _Copies:
    """Puts calls in the place of nests of one thread."""

    def __init__(
        self,
        thread: Expr,
        swizzles: Mapping[Var, int],
        copied: Callable[[Stmt], Box | None],
        call: Callable[[Box, Var], Stmt],
    ) -> None:
        self.thread, self.swizzles, self.copied, self.call = thread, swizzles, copied, call
        self.maps: list[tuple[Var, Expr]] = []

    def written(self, statement: Stmt, is_of_warp: bool) -> Stmt:
        """The statement; calls are those of all lanes of a warp, or of its first one."""
        if isinstance(statement, SeqStmt):
            return seq([self.written(part, is_of_warp) for part in statement.seq])
        if not isinstance(statement, IfThenElse) or statement.else_case is not None:
            return statement
        if Analyzer().can_prove_equal(_asked(statement.condition, self.thread), const(0)):
            return seq(self._of_first(statement, _nests(statement), is_of_warp))
        if self._is_alike(statement.condition):
            return statement.with_(then_case=self.written(statement.then_case, is_of_warp))
        return statement

    def _of_first(self, choice: IfThenElse, nests: list[Stmt], is_of_warp: bool) -> list[Stmt]:
        """What `choice` leaves to the first thread: copies of the warp, and what other lanes do not do."""
        parts: list[Stmt] = []
        alone: list[Stmt] = []  # what the first lane does, and other ones do not
        for nest in nests:
            if not is_of_warp or not self._has_copies(nest):
                alone.append(self._alone(nest) if not is_of_warp else nest)
                continue
            if alone:
                parts.append(choice.with_(then_case=seq(alone)))
                alone = []
            box = self.copied(nest)
            if box is not None:
                parts.append(self._nest(box))
            else:
                assert isinstance(nest, IfThenElse)
                parts.append(nest.with_(then_case=seq(self._of_first(choice, _nests(nest), is_of_warp))))
        return [*parts, choice.with_(then_case=seq(alone))] if alone else parts

    def _has_copies(self, nest: Stmt) -> bool:
        if self.copied(nest) is not None:
            return True
        return self._is_for_all(nest) and any([self._has_copies(inner) for inner in _nests(nest)])  # type: ignore[arg-type]

    def _alone(self, nest: Stmt) -> Stmt:
        """The nest of a thread that stores boxes itself."""
        box = self.copied(nest)
        if box is not None:
            return self._nest(box)
        if not self._is_for_all(nest):
            return nest
        assert isinstance(nest, IfThenElse)
        return nest.with_(then_case=seq([self._alone(inner) for inner in _nests(nest)]))

    def _is_for_all(self, nest: Stmt) -> bool:
        """Whether it is under a condition that all threads answer alike."""
        return isinstance(nest, IfThenElse) and nest.else_case is None and self._is_alike(nest.condition)

    def _is_alike(self, condition: Expr) -> bool:
        """Whether the condition is the same for all threads."""
        own = set(variables_in(self.thread))
        return not any_node(condition, lambda node: node in own or isinstance(node, (BufferLoad, Call)))

    def _nest(self, box: Box) -> Stmt:
        tensor = box.tensor
        strides = [stride.astype("int64") for stride in tensor.effective_strides()]
        shape = [extent.astype("int64") for extent in tensor.shape]
        swizzle = self.swizzles.get(box.shared.data, 0)
        value = tensor_map(tensor.data, str(tensor.dtype), swizzle, len(shape), *shape, *strides, *box.extents)
        name = Var(f"{tensor.name}_map", type_of_value(value))
        self.maps.append((name, value))
        result = self.call(box, name)
        for loop in reversed(box.outer):
            kind = ForKind.UNROLLED if loop.kind is ForKind.VECTORIZED else loop.kind
            result = loop.with_(body=result, kind=kind)
        return result


def _are_apart(begins: Sequence[Expr], extents: Sequence[Expr | int], loops: Sequence[For]) -> bool:
    """Whether the boxes that begin there are apart from each other in all iterations of the loops."""
    facts = Analyzer()
    for loop in loops:
        facts.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
    variables = {loop.loop_var for loop in loops}
    numbers: list[Expr] = []  # of the boxes, where they tile their memory
    for begin, extent in zip(begins, extents, strict=True):
        if uses_var(facts.simplify(begin % extent), variables.__contains__):
            return False
        numbers.append(facts.simplify(begin // extent))
    around = [Loop(loop.loop_var, loop.min, loop.extent) for loop in loops]
    return not any([carries(around, depth, numbers, []) for depth in range(len(around))])


def _nests(choice: IfThenElse) -> list[Stmt]:
    body = choice.then_case
    return list(body.seq) if isinstance(body, SeqStmt) else [body]


def _box_of(nest: Stmt, swizzles: Mapping[Var, int]) -> Box | None:
    """The box that a nest copies; None where it is no such copy."""
    loops: list[For] = []
    conditions: list[Expr] = []
    statement = nest
    while True:
        if isinstance(statement, For) and statement.kind in (ForKind.SERIAL, ForKind.UNROLLED, ForKind.VECTORIZED):
            if not isinstance(statement.extent, IntImm) or not isinstance(statement.min, IntImm):
                return None
            loops.append(statement)
            statement = statement.body
        elif isinstance(statement, IfThenElse) and statement.else_case is None:
            conditions += _terms(statement.condition)
            statement = statement.then_case
        else:
            break
    if not isinstance(statement, BufferStore):
        return None
    value: Expr = statement.value
    is_stored = scope_of(statement.buffer.data) == "global"
    while not isinstance(value, BufferLoad):
        chosen = _choice(value)
        if chosen is None or is_stored:
            return None
        conditions += _terms(chosen[0])
        value = chosen[1]
    tensor, shared = (statement, value) if is_stored else (value, statement)
    scopes = scope_of(tensor.buffer.data), scope_of(shared.buffer.data)
    if scopes[0] != "global" or not is_of_block(scopes[1]) or value.dtype is not statement.value.dtype:
        return None
    if len(tensor.buffer.shape) > MOST_DIMENSIONS or not _is_tensor(tensor.buffer):
        return None
    facts = Analyzer()
    for loop in loops:
        facts.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
    indices = [facts.simplify(index) for index in tensor.indices]
    if any([has_data(index) for index in indices]):
        return None
    if not all([_is_inside(condition, indices, tensor.buffer.shape, facts) for condition in conditions]):
        return None
    swizzle = swizzles.get(shared.buffer.data, 0)
    along = _box_loops(loops, indices, shared, facts, swizzle)
    if along is None:
        return None
    first = {loop.loop_var: loop.min for loop in along.values()}
    outside = Analyzer()
    at = tuple([outside.simplify(substitute(index, first)) for index in shared.indices])
    if not _is_aligned(shared.buffer, at, max(_LINE, 8 * swizzle), facts):
        return None
    return Box(
        tensor.buffer,
        shared.buffer,
        is_stored,
        tuple([along[dim].extent if dim in along else const(1) for dim in range(len(indices))]),
        _flat(shared.buffer, at),
        address_of(BufferLoad(shared.buffer, at)),
        tuple([outside.simplify(substitute(index, first)).astype("int32") for index in indices]),
        tuple([loop for loop in loops if loop not in along.values()]),
    )


def _box_loops(
    loops: list[For], indices: list[Expr], shared: BufferLoad | BufferStore, facts: Analyzer, swizzle: int
) -> dict[int, For] | None:
    """The loops of a box whose elements lie row by row in shared memory, by dimension of the tensor."""
    variables = [loop.loop_var for loop in loops]
    moves = [_steps(index, variables, facts) for index in indices]
    there = _steps(_flat(shared.buffer, shared.indices), variables, facts)
    steps = [move for move in moves if move is not None]
    if there is None or len(steps) < len(moves):
        return None
    result: dict[int, For] = {}
    for at, loop in enumerate(loops):
        moved = [dim for dim, step in enumerate(steps) if step[at] != 0]
        if _count(loop) != 1 and len(moved) == 1 and steps[moved[0]][at] == 1 and moved[0] not in result:
            result[moved[0]] = loop
    size = 1
    for dim in sorted(result, reverse=True):
        if there[loops.index(result[dim])] != size or _count(result[dim]) > _LONGEST:
            return None
        size *= _count(result[dim])
    row = result.get(len(indices) - 1)
    width = 0 if row is None else _count(row) * shared.buffer.dtype.nbytes
    return None if width % _MULTIPLE or width == 0 or (swizzle and width != swizzle) else result


def _is_aligned(buffer: Buffer, at: tuple[Expr, ...], bytes: int, facts: Analyzer) -> bool:
    """Whether an element of each slot of the memory lies at a multiple of so many bytes."""
    slot = prod([extent.value if isinstance(extent, IntImm) else 1 for extent in buffer.shape]) * buffer.dtype.nbytes
    begin = facts.simplify(_flat(buffer, at) * buffer.dtype.nbytes % bytes)
    return slot % bytes == 0 and facts.can_prove_equal(begin, 0)


def _count(loop: For) -> int:
    return _number(loop.extent)


def _number(extent: Expr) -> int:
    return extent.value if isinstance(extent, IntImm) else 0


def _asked(condition: Expr, thread: Expr) -> Expr:
    """What is 0 where the condition asks whether the thread is the first one."""
    if isinstance(condition, EQ):
        return (condition.a - condition.b) - thread
    return const(1)


def _choice(value: Expr) -> tuple[Expr, Expr] | None:
    """A condition, and the value where it holds; elsewhere it is 0."""
    if isinstance(value, Call) and value.op.name == "tir.if_then_else":
        condition, then, otherwise = value.args
    elif isinstance(value, Select):
        condition, then, otherwise = value.condition, value.true_value, value.false_value
    else:
        return None
    if _is_zero(otherwise):
        return condition, then
    return (logical_not(condition), otherwise) if _is_zero(then) else None


def _is_zero(value: Expr) -> bool:
    return isinstance(value, (IntImm, FloatImm)) and value.value == 0 and copysign(1, value.value) > 0


def _terms(condition: Expr) -> list[Expr]:
    return [*_terms(condition.a), *_terms(condition.b)] if isinstance(condition, And) else [condition]


def _is_inside(condition: Expr, indices: list[Expr], shape: tuple[Expr, ...], facts: Analyzer) -> bool:
    """Whether the condition asks no more than that an index is at least 0, or less than the extent."""
    if isinstance(condition, Not):
        condition = facts.simplify(condition)
    if isinstance(condition, (GT, GE)):
        condition = LT(condition.b, condition.a) if isinstance(condition, GT) else LE(condition.b, condition.a)
    if not isinstance(condition, (LT, LE)):
        return False
    room = condition.b - condition.a - (1 if isinstance(condition, LT) else 0)  # it asks for 0 or more
    for index, extent in zip(indices, shape, strict=True):
        for wanted in (index, extent - 1 - index):
            if facts.can_prove_equal(room, wanted.astype(room.dtype)):
                return True
    return False


def _steps(index: Expr, variables: list[Var], facts: Analyzer) -> list[int] | None:
    """How far an index moves with each of the variables; None where that is no constant."""
    linear = linear_coefficients(index, variables, facts)
    if linear is None or not all([isinstance(step, IntImm) for step in linear[0]]):
        return None
    if uses_var(linear[1], lambda var: var in variables):
        return None
    return [step.value for step in linear[0] if isinstance(step, IntImm)]


def _flat(buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
    strides = buffer.effective_strides()
    result: Expr = const(0)
    for index, stride in zip(indices, strides, strict=True):
        result = result + index * stride
    return result


def _is_tensor(buffer: Buffer) -> bool:
    """Whether elements lie side by side along the last dimension, from where the memory begins."""
    last = buffer.effective_strides()[-1]
    begins = buffer.elem_offset
    return isinstance(last, IntImm) and last.value == 1 and isinstance(begins, IntImm) and begins.value == 0


__all__ = ["TensorCopies", "stored_boxes", "with_tensor_copies", "with_tensor_stores"]
