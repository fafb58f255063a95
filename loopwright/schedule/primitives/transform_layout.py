"""transform_layout: a buffer is stored in another layout, everywhere it is used.

    B = T.alloc_buffer((64, 64))           →     B = T.alloc_buffer((8, 64, 8))
    … B[vi, vj] …                                … B[vi // 8, vj, vi % 8] …

Here `transform_layout(block, "B", lambda i, j: (i // 8, j, i % 8))`. Loops keep their order. A layout with room left
over needs a `pad_value`: the cells that hold no element are filled with it, in a block of its own before the first use.
A map with an inverse gives every cell another name and keeps the order of everything, so every read sees what it saw;
for any other map that is proved, and one that puts two elements into one cell is refused with a witness.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from loopwright.arith import Analyzer, detect_iter_map, inverse_affine_iter_map
from loopwright.ir import (
    Allocate,
    Block,
    BlockRealize,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Expr,
    For,
    ForKind,
    IntImm,
    IterType,
    IterVar,
    PrimFunc,
    Range,
    Rewriter,
    Stmt,
    Var,
    const,
    deep,
    logical_or,
    seq,
    substitute,
    uses_var,
)
from loopwright.schedule.bindings import TRUE
from loopwright.schedule.buffers import (
    BufferName,
    allocated_extents,
    check_plain_use,
    find_buffer,
    fresh_buffer,
    home_of,
    replaced_regions,
)
from loopwright.schedule.errors import BadStepArgument, NotSupported, ScheduleError
from loopwright.schedule.index_map import IndexMap, is_constant
from loopwright.schedule.step import Proof, Step
from loopwright.schedule.view import View
from loopwright.schedule.windows import region_in


class LayoutLeavesRoom(ScheduleError):
    """The new layout has cells that hold no element of the buffer, and nothing was said about their value.

    For example:

        from loopwright import te, tir

        A = te.placeholder((6,), name="A")
        B = te.compute((6,), lambda i: A[i] + 1, name="B")
        C = te.compute((6,), lambda i: B[i] * 2, name="C")
        sch = tir.Schedule(te.create_prim_func([A, C]))
        sch.transform_layout("B", ("write", 0), lambda i: (i // 4, i % 4))  # 2 × 4 cells for 6 elements
    """

    code = "LW0256"

    def __init__(self, buffer: Buffer, shape: Sequence[Expr], at: BlockRealize) -> None:
        old, new = (", ".join([repr(extent) for extent in extents]) for extents in (buffer.shape, shape))
        super().__init__(
            f"transform_layout: the new layout ({new}) of {buffer.name} has more cells than its shape ({old})",
            at=at,
        )


def transform_layout(
    view: View, block: BlockRealize, buffer: BufferName | list[object], index_map: str, pad_value: object = None
) -> Step:
    """Store a buffer that `block` touches as `index_map` says: element `i` at cell `index_map(i)`."""
    # Check
    old = _chosen(block, buffer)
    mapping = IndexMap.of(index_map, "transform_layout")
    mapping.check_rank("transform_layout", old.ndim, old.name)
    home_of("transform_layout", view, old, block)
    check_plain_use("transform_layout", view.function.body, old)
    if not is_constant(old.shape) or old.strides:
        raise NotSupported("transform_layout", f"{old.name} has a symbolic shape, or strides of its own", block)
    shape = mapping.shape("transform_layout", old.shape)
    leaves_room = _cells(shape) > _cells(old.shape)
    if leaves_room and pad_value is None:
        raise LayoutLeavesRoom(old, shape, block)

    # Build
    new = fresh_buffer(old.name, shape, old, old.scope())
    after = relaid(view.function, old, new, mapping)
    if leaves_room:
        after = _padded(View(after), new, mapping, old.shape, pad_value, block)
    is_renaming = _inverse(mapping, new, [Var("cell") for _ in shape]) is not None
    return Step(after, Proof.GIVEN if is_renaming else Proof.VALUES, at=block, buffers=[old])


def _chosen(block: BlockRealize, given: BufferName | list[object]) -> Buffer:
    if isinstance(given, (list, tuple)):
        if len(given) != 2 or given[0] not in ("read", "write") or not isinstance(given[1], int):
            hint = 'write ("read", 0) or ("write", 0)'
            raise BadStepArgument("transform_layout", f"buffer is {given!r}", block, hint)
        return find_buffer("transform_layout", block, given[1], f"{given[0]}s")
    return find_buffer("transform_layout", block, given, "touches")


def _cells(shape: Sequence[Expr]) -> int:
    return prod([extent.value for extent in shape if isinstance(extent, IntImm)])


def relaid(function: PrimFunc, old: Buffer, new: Buffer, mapping: IndexMap) -> PrimFunc:
    """The function with `new` in place of `old` everywhere, element `i` at cell `mapping(i)`."""
    return _Relaid(old, new, mapping).apply(function)


class _Relaid(Rewriter):
    def __init__(self, old: Buffer, new: Buffer, mapping: IndexMap) -> None:
        self.old, self.new, self.mapping = old, new, mapping
        self.facts = Analyzer()

    @deep
    def apply(self, function: PrimFunc) -> PrimFunc:
        return function.with_(body=self.visit(function.body))

    def _indices(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple([self.facts.simplify(index) for index in self.mapping.at(indices)])

    def visit_BufferLoad(self, load: BufferLoad) -> Expr:
        load = load.with_(indices=tuple([self.visit(index) for index in load.indices]))
        if load.buffer is not self.old:
            return load
        return BufferLoad._make(self.new, self._indices(load.indices), span=load.span)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        value, indices = self.visit(store.value), tuple([self.visit(index) for index in store.indices])
        if store.buffer is not self.old:
            return store.with_(value=value, indices=indices)
        return BufferStore(self.new, value, self._indices(indices), span=store.span)

    def visit_BufferRegion(self, region: BufferRegion) -> BufferRegion:
        return region  # blocks see to their regions

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        return self.new if buffer is self.old else buffer

    def visit_Allocate(self, allocation: Allocate) -> Stmt:
        body = self.visit(allocation.body)
        if allocation.buffer_var is not self.old.data:
            return allocation.with_(body=body)
        return allocation.with_(buffer_var=self.new.data, extents=allocated_extents(self.new), body=body)

    def visit_For(self, loop: For) -> Stmt:
        with self.facts.bound(loop.loop_var, Range.from_min_extent(loop.min, loop.extent)):
            return loop.with_(body=self.visit(loop.body))

    def visit_Block(self, block: Block) -> Block:
        for axis in block.iter_vars:
            if axis.dom is not None:
                self.facts.bind(axis.var, axis.dom, allow_override=True)
        new = block.rebuild(self.visit)
        if not any(region.buffer is self.old for region in (*block.reads, *block.writes)):
            return new
        return new.with_(
            reads=replaced_regions(block.reads, self.old, region_in(new, self.new, writes=False)),
            writes=replaced_regions(block.writes, self.old, region_in(new, self.new, writes=True)),
        )


def _padded(
    view: View, buffer: Buffer, mapping: IndexMap, sizes: Sequence[Expr], value: object, at: BlockRealize
) -> PrimFunc:
    """The function with the cells that hold no element filled, where the buffer is allocated."""
    axes = [Var(f"v{position}") for position in range(buffer.ndim)]
    # The map on whole blocks: with sizes rounded up it is one to one, and its inverse says which cells are outside.
    inverse = _inverse(mapping, buffer, axes)
    if inverse is None:
        raise NotSupported("transform_layout", f"the map {mapping.text} has no inverse that tells padding apart", at)
    outside = [inverse[var] >= size for var, size in zip(mapping.inputs, sizes, strict=True)]
    loops = [Var(f"ax{position}") for position in range(buffer.ndim)]
    facts = Analyzer()
    for var, extent in zip(axes, buffer.shape, strict=True):
        facts.bind(var, Range.from_min_extent(const(0), extent))
    conditions = [facts.simplify(condition) for condition in outside]
    predicate = substitute(logical_or(*conditions), dict(zip(axes, loops, strict=True)))
    store = BufferStore(buffer, const(value, buffer.dtype), axes)
    region = BufferRegion(buffer, tuple([Range.from_min_extent(axis, const(1)) for axis in axes]))
    iter_vars = [
        IterVar(Range.from_min_extent(const(0), extent), axis, IterType.DataPar)
        for axis, extent in zip(axes, buffer.shape, strict=True)
    ]
    name = view.fresh_block_name(f"buffer_{buffer.name}_padding")
    fill: Stmt = BlockRealize(tuple(loops), predicate, Block(tuple(iter_vars), (), (region,), name, store))
    for var, extent in zip(reversed(loops), reversed(buffer.shape), strict=True):
        fill = For(var, const(0), extent, ForKind.SERIAL, fill)
    home = home_of("transform_layout", view, buffer, at)
    path = home.path
    last = path[-1]
    if isinstance(last, BlockRealize):
        return view.replaced(path, last.with_(block=last.block.with_(body=seq([fill, last.block.body]))))
    inner = last.body.body  # type: ignore[attr-defined]
    return view.replaced(path, last.with_(body=last.body.with_(body=seq([fill, inner]))))  # type: ignore[attr-defined]


def _inverse(mapping: IndexMap, buffer: Buffer, axes: Sequence[Var]) -> dict[Var, Expr] | None:
    """The old indices in terms of the new ones, over all cells of the new layout."""
    domains = {var: Range.from_min_extent(const(0), const(_whole(mapping, buffer, var))) for var in mapping.inputs}
    found = detect_iter_map(list(mapping.results), domains, TRUE, "bijective").indices
    if not found:
        return None
    inverse = inverse_affine_iter_map(found, list(axes))
    # An index of one value has no part in the map.
    single = {var: const(0) for var in mapping.inputs if _whole(mapping, buffer, var) == 1}
    inverse = {**single, **inverse}
    return inverse if all(var in inverse for var in mapping.inputs) else None


def _whole(mapping: IndexMap, buffer: Buffer, var: Var) -> int:
    """How far an index may go before the layout has to grow: the product of the dimensions it alone decides."""
    size = 1
    for result, extent in zip(mapping.results, buffer.shape, strict=True):
        if uses_var(result, lambda used: used is var) and isinstance(extent, IntImm):
            size *= extent.value
    return size
