"""compact_thread_memory: memory of a thread loses the cells that belong to the other threads.

    L = T.decl_buffer((1024,), scope="local")          →    L = T.decl_buffer((16,), scope="local")
    for k in range(4):                                      for k in range(4):
        for v in range(4):                                      for v in range(4):
            L[(k * 64 + threadIdx_x) * 4 + v] = …                   L[k * 4 + v] = …

A row that threads share out is one array in a schedule, and each thread uses cells of its own. Where every index has
the number of the thread as a digit, of the same weight, the digit says nothing to the thread: it is dropped, and the
array is as long as the thread's part, which may then be registers.

Needs: threads launched (`launch_threads`), no blocks.  Leaves: the same values. Before `flatten_buffers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopwright.analysis.thread_axes import axis_of, scope_of, tag_of
from loopwright.arith.affine import Form, Part
from loopwright.arith.affine_reader import Affine
from loopwright.ir import (
    Allocate,
    AttrStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Expr,
    For,
    IntImm,
    PrimFunc,
    Rewriter,
    Stmt,
    Var,
    Visitor,
    const,
    deep,
)
from loopwright.ir.passes import function_pass
from loopwright.runtime.dtype import DataType
from loopwright.transform.parts.flat_index import is_literal

_Index = tuple[Buffer, int, Expr]  # what stands in a dimension of an access


class _Use:
    """How an array of a thread is used."""

    def __init__(self) -> None:
        self.buffer: Buffer | None = None
        self.is_plain = True  # one buffer, used by loads and stores alone
        self.accesses: list[tuple[Expr, ...]] = []


class _Collect(Visitor):
    """Finds arrays of threads, and the numbers that variables take."""

    def __init__(self) -> None:
        self.uses: dict[Var, _Use] = {}
        self.threads: dict[Var, int] = {}  # axes of threads, and how many there are along each
        self.most: dict[Var, int] = {}  # the greatest value of each variable that counts from 0

    def visit_AttrStmt(self, node: AttrStmt) -> None:
        if tag_of(node).startswith("threadIdx") and isinstance(node.value, IntImm):
            self.threads[axis_of(node).var] = node.value.value
        self.visit(node.value)
        self.visit(node.body)

    def visit_For(self, loop: For) -> None:
        if is_literal(loop.min, 0) and isinstance(loop.extent, IntImm):
            self.most[loop.loop_var] = max(loop.extent.value - 1, 0)
        self.visit_children(loop)

    def visit_Allocate(self, node: Allocate) -> None:
        if scope_of(node.buffer_var) == "local" and self.threads:
            self.uses[node.buffer_var] = _Use()
        self.visit(node.body)

    def visit_DeclBuffer(self, node: DeclBuffer) -> None:
        use = self.uses.get(node.buffer.data)
        if use is not None:
            buffer = node.buffer
            is_first = use.buffer is None and is_literal(buffer.elem_offset, 0) and not buffer.strides
            use.buffer, use.is_plain = buffer, use.is_plain and is_first
        self.visit(node.body)

    def visit_Var(self, var: Var) -> None:
        if var in self.uses:
            self.uses[var].is_plain = False  # a bare pointer

    def visit_Buffer(self, buffer: Buffer) -> None:
        if buffer.data in self.uses:
            self.uses[buffer.data].is_plain = False

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self._access(load.buffer, load.indices)

    def visit_BufferStore(self, store: BufferStore) -> None:
        self._access(store.buffer, store.indices)
        self.visit(store.value)

    def _access(self, buffer: Buffer, indices: tuple[Expr, ...]) -> None:
        for index in indices:
            self.visit(index)
        use = self.uses.get(buffer.data)
        if use is not None:
            use.is_plain = use.is_plain and buffer is use.buffer
            use.accesses.append(indices)


class _Shrink(Rewriter):
    """Puts the shorter arrays in."""

    def __init__(self, shapes: Mapping[Buffer, Buffer], indices: Mapping[_Index, Expr]) -> None:
        self.shapes, self.indices = shapes, indices
        self.by_data = {old.data: new for old, new in shapes.items()}

    def visit_Allocate(self, node: Allocate) -> Stmt:
        buffer = self.by_data.get(node.buffer_var)
        body = self.visit(node.body)
        return node.with_(body=body) if buffer is None else node.with_(extents=buffer.shape, body=body)

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        return self.shapes.get(buffer, buffer)

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        return load.with_(buffer=self.visit_Buffer(load.buffer), indices=self._own(load.buffer, load.indices))

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        indices = self._own(store.buffer, store.indices)
        return store.with_(buffer=self.visit_Buffer(store.buffer), value=self.visit(store.value), indices=indices)

    def _own(self, buffer: Buffer, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        if buffer in self.shapes:
            return tuple([self.indices.get((buffer, k, index), index) for k, index in enumerate(indices)])
        return tuple([self.visit(index) for index in indices])


def _dropped(size: int, forms: Sequence[Form], thread: Var, count: int, most: Mapping[Var, int]) -> int | None:
    """How long a dimension is without the digit of a thread, whose forms are then without it; None where it stays."""
    weight = forms[0].terms.get(thread, 0)
    if weight <= 0 or any([form.terms.get(thread) != weight for form in forms]):
        return None
    period = weight * count
    for form in forms:
        low = {term: k for term, k in form.terms.items() if term is not thread and k % period}
        if any([term not in most or k < 0 for term, k in low.items()]):
            return None
        greatest = sum([k * most[term] for term, k in low.items() if isinstance(term, Var)])
        if form.const % period + greatest >= weight:
            return None
    for form in forms:
        del form.terms[thread]
        for term, k in form.terms.items():
            if not k % period:
                form.terms[term] = k // count
        form.const = form.const // period * weight + form.const % period
    return -(-size // period) * weight


def _shorter(use: _Use, found: _Collect, replaced: dict[_Index, Expr]) -> Buffer | None:
    """The array of one thread; None where it stays as it is."""
    buffer = use.buffer
    if buffer is None or not use.is_plain or not use.accesses:
        return None
    shape = list(buffer.shape)
    reader = Affine()
    for var in (*found.threads, *found.most):
        reader.own(var)
    for axis, size in enumerate(buffer.shape):
        read = [reader.form(access[axis]) for access in use.accesses]
        forms = [Form(dict(form.terms), form.const) for form in read if form is not None and _can_be_written(form)]
        if not isinstance(size, IntImm) or len(forms) < len(read):
            continue
        length = size.value
        weights = forms[0].terms
        for thread, count in sorted(found.threads.items(), key=lambda item: weights.get(item[0], 0)):
            if count > 1:
                length = _dropped(length, forms, thread, count, found.most) or length
        if length == size.value:
            continue
        shape[axis] = const(length, size.dtype)
        for access, form in zip(use.accesses, forms, strict=True):
            replaced[buffer, axis, access[axis]] = _written(form, access[axis].dtype)
    return (
        buffer.with_(shape=tuple(shape)) if any(a is not b for a, b in zip(shape, buffer.shape, strict=True)) else None
    )


def _written(form: Form, dtype: DataType) -> Expr:
    result: Expr = const(0, dtype)
    for term, factor in form.terms.items():
        value = term.astype(dtype) if isinstance(term, Var) else _part(term, dtype)
        result = result + value * factor
    return result + form.const


def _part(part: Part, dtype: DataType) -> Expr:
    value = _written(part.args[0], dtype)
    return value // part.divisor if part.op == "floor" else value % part.divisor


def _can_be_written(form: Form) -> bool:
    """Whether its parts, such as the number of a block taken apart, are quotients and remainders."""
    return all(
        [part.op in ("floor", "mod") and all([_can_be_written(arg) for arg in part.args]) for part in form.parts()]
    )


@function_pass
@deep
def compact_thread_memory(func: PrimFunc) -> PrimFunc:
    """Memory of a thread loses the cells that belong to the other threads."""
    found = _Collect()
    found.visit(func.body)
    shapes: dict[Buffer, Buffer] = {}
    indices: dict[_Index, Expr] = {}
    for use in found.uses.values():
        shorter = _shorter(use, found, indices)
        if shorter is not None and use.buffer is not None:
            shapes[use.buffer] = shorter
    return func.with_(body=_Shrink(shapes, indices).visit(func.body)) if shapes else func
