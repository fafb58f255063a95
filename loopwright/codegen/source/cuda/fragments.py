"""Fragments: the wmma intrinsics, on `mma.sync` and `ldmatrix`.

    T.tvm_fill_fragment(C.data, 16, 16, 16, 0, T.float32(0))
    T.tvm_load_matrix_sync(A.data, 16, 16, 16, 0, S.access_ptr("r"), 24, "row_major")
    T.tvm_mma_sync(C.data, 0, A.data, 0, B.data, 0, C.data, 0)                  fragment 0 of each
    T.tvm_store_matrix_sync(C.data, 16, 16, 16, 0, D.access_ptr("w"), n, "row_major")

A fragment is a tile that the 32 lanes of a warp hold together, each of them 1/32 of it; which elements a lane has is
not for programs to know. Here it is what `mma.sync` wants: tiles of 16 rows on the left, of 8 columns on the right, and
of 16 × 8 sums. An 8 × 32 tile of sums is computed transposed, from B on the left and A on the right.

Tiles in shared memory are loaded by `ldmatrix`, as wmma has rows begin at multiples of 16 bytes in any case; others,
and bytes that have to be transposed, element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from loopwright import ir
from loopwright.analysis.thread_axes import scope_of
from loopwright.codegen.source.code import Code, call
from loopwright.codegen.source.cuda.errors import NoSuchInstruction
from loopwright.codegen.source.cuda.matrix_calls import (
    LDMATRIX_ARCHITECTURE,
    fill,
    lane_helper,
    ldmatrix_helper,
    mma_helper,
)
from loopwright.codegen.source.cuda.mma_shapes import NoSuchShape, bytes_of, ptx_type, shape_of
from loopwright.codegen.source.cuda.places import MemoryWriter, Place, place
from loopwright.codegen.source.helpers import Helpers
from loopwright.ir.machine_intrinsics import tvm_storage_sync
from loopwright.runtime.dtype import VOID, DataType

WARP: Final = 32
ACCUMULATOR: Final = "wmma.accumulator"
_SCOPES: Final = ("wmma.matrix_a", "wmma.matrix_b", ACCUMULATOR)
_SHAPES: Final = ((16, 16, 16), (32, 8, 16), (8, 32, 16))
_LAYOUTS: Final = ("row_major", "col_major")
Sizes = tuple[int, int, int]


class Tiles(NamedTuple):
    """How a fragment of one operand is held: `tiles` of `rows` × `depth` elements, `depth` along k."""

    is_left: bool
    tiles: int
    depth: int
    size: int  # bytes of an element

    @property
    def rows(self) -> int:
        """Rows of a tile on the left, columns of one on the right."""
        return 16 if self.is_left else 8

    @property
    def elements(self) -> int:
        """Elements of a tile that a lane has."""
        return self.rows * self.depth // WARP

    @property
    def matrices(self) -> int:
        """How many matrices of 8 rows of 16 bytes a tile is."""
        return self.rows // 8 * (self.depth * self.size // 16)


def is_fragment(scope: str) -> bool:
    """Whether memory of a scope holds fragments."""
    return scope in _SCOPES


def fragment_sizes(body: ir.Stmt) -> Mapping[ir.Var, Sizes]:
    """The sizes m, n and k of the fragments in each memory, as fills, loads and stores have them."""
    result: dict[ir.Var, Sizes] = {}
    for node in ir.collect(body, ir.Call):
        if node.op.name in _SIZED and isinstance(node.args[0], ir.Var):
            numbers = [arg.value if isinstance(arg, ir.IntImm) else 0 for arg in node.args[1:4]]
            sizes = numbers[0], numbers[1], numbers[2]
            if sizes not in _SHAPES:
                known = ", ".join([" x ".join(map(str, shape)) for shape in _SHAPES])
                given = " x ".join([str(arg) for arg in node.args[1:4]])
                raise NoSuchInstruction(node, f"{_name(node)} of {given}: fragments are those of m x n x k = {known}")
            if result.setdefault(node.args[0], sizes) != sizes:
                one, other = [" x ".join(map(str, shape)) for shape in (result[node.args[0]], sizes)]
                raise NoSuchInstruction(node, f"the fragments in {node.args[0].name} are of {one}, and of {other} here")
    return result


_SIZED: Final = ("tir.tvm_fill_fragment", "tir.tvm_load_matrix_sync", "tir.tvm_store_matrix_sync")


def _name(node: ir.Call) -> str:
    return node.op.name.removeprefix("tir.")


class _Fragment(NamedTuple):
    """A fragment in an argument of a call."""

    where: Place
    sizes: Sizes
    scope: str
    dtype: DataType

    @property
    def elements(self) -> int:
        """Elements that a lane has."""
        m, n, k = self.sizes
        return {"wmma.matrix_a": m * k, "wmma.matrix_b": k * n}.get(self.scope, m * n) // WARP

    @property
    def is_transposed(self) -> bool:
        """Whether the sums are held transposed."""
        return self.sizes[0] == 8

    @property
    def tiles(self) -> Tiles:
        """How an operand is held."""
        is_left = (self.scope == "wmma.matrix_a") != self.is_transposed
        m, n, k = self.sizes
        length = m if self.scope == "wmma.matrix_a" else n
        return Tiles(is_left, length // (16 if is_left else 8), k, self.dtype.nbytes)

    @property
    def sums(self) -> tuple[int, int]:
        """How many tiles of 16 × 8 sums there are, along the rows and along the columns of what is held."""
        m, n, _ = self.sizes
        rows, columns = (n, m) if self.is_transposed else (m, n)
        return rows // 16, columns // 8

    def part(self, writer: MemoryWriter, tile: int, elements: int) -> Code:
        """The address of a tile."""
        at = self.where.at if tile == 0 else self.where.at + ir.const(tile * elements, self.where.at.dtype)
        return self.where._replace(at=at).code(writer)


def _fragment(writer: FragmentWriter, node: ir.Call, memory: ir.Expr, index: ir.Expr) -> _Fragment:
    if not isinstance(memory, ir.Var) or not is_fragment(scope_of(memory)):
        where = f"{memory} lies in {scope_of(memory)} memory" if isinstance(memory, ir.Var) else f"got {memory}"
        raise NoSuchInstruction(node, f"{_name(node)} works on memory of a scope wmma.…; {where}")
    sizes = writer.fragments.get(memory)
    if sizes is None:
        problem = f"{_name(node)}: nothing fills, loads or stores a fragment in {memory.name}, which says its sizes"
        raise NoSuchInstruction(node, problem)
    annotation = memory.type_annotation
    assert isinstance(annotation, ir.PointerType) and isinstance(annotation.element_type, ir.PrimType)
    result = _Fragment(place(memory, index, node.dtype), sizes, scope_of(memory), annotation.element_type.dtype)
    at = index * ir.const(result.elements, index.dtype)
    if isinstance(index, ir.IntImm):
        at = ir.const(index.value * result.elements, index.dtype)
    return result._replace(where=Place(memory, at, memory, result.dtype))


class FragmentWriter(MemoryWriter):
    """Writes kernels whose warps hold fragments."""

    fragments: Mapping[ir.Var, Sizes]


def _fill(writer: FragmentWriter, node: ir.Call) -> int:
    memory, _, _, _, index, value = node.args
    fragment = _fragment(writer, node, memory, index)
    fill(writer, node, fragment.where, fragment.elements, ir.cast(value, fragment.dtype))
    return 0


def _load(writer: FragmentWriter, node: ir.Call) -> int:
    memory, _, _, _, index, pointer, stride, layout = node.args
    fragment = _fragment(writer, node, memory, index)
    out_of = place(pointer, ir.const(0), fragment.dtype)
    along_rows = _is_row_major(node, layout)
    tiles = fragment.tiles
    # Whether what lies side by side in memory runs along k.
    is_deep = along_rows == (fragment.scope == "wmma.matrix_a")
    is_in_rows = out_of.scope in ("shared", "shared.dyn") and (is_deep or tiles.size == 2)
    by_matrices = fragment.scope != ACCUMULATOR and is_in_rows
    if not by_matrices:
        _meet(writer)
    writer.start_statement(fragment.where.at, out_of.at, stride)
    distance = writer.index(stride)
    if by_matrices:
        _load_matrices(writer, fragment, out_of, distance, is_deep)
        return LDMATRIX_ARCHITECTURE
    if fragment.scope == ACCUMULATOR:
        name = _sums_helper(writer.helpers, fragment, along_rows, is_load=True)
    else:
        name = _load_helper(writer.helpers, tiles, is_deep)
    writer.effect(VOID, call(name, fragment.part(writer, 0, 0), out_of.code(writer), distance))
    return 0


def _load_matrices(writer: FragmentWriter, fragment: _Fragment, out_of: Place, distance: Code, is_deep: bool) -> None:
    """By ldmatrix, up to four matrices at a time, in the order of their registers.

    On the left the halves of the rows come before those of k, and on the right k before the tiles.
    """
    tiles = fragment.tiles
    at_once = 1 if tiles.is_left else tiles.tiles  # tiles
    count = tiles.matrices * at_once
    lines_first = (tiles.is_left or tiles.size == 1) == is_deep
    row = _row_helper(writer.helpers, count, lines_first)
    load = ldmatrix_helper(writer.helpers, count, not is_deep)
    for tile in range(0, tiles.tiles, at_once):
        begin, step = out_of.code(writer), tile * tiles.rows
        given = [begin, distance, Code(str(step if is_deep else 0)), Code(str(0 if is_deep else step))]
        writer.effect(VOID, call(load, fragment.part(writer, tile, tiles.elements), call(row, *given)))


def _row_helper(helpers: Helpers, count: int, lines_first: bool) -> str:
    """The row that a lane points ldmatrix to: lines of matrices before columns of them, or the other way round."""
    full, lane = f"lw_matrix_row_{count}{'_lines' if lines_first else '_columns'}", lane_helper(helpers)
    line, column = ("matrix & 1", "matrix >> 1") if lines_first else ("matrix >> 1", "matrix & 1")
    lines = [
        "template <typename T>",
        f"{helpers.qualifiers} const T *{full}(const T *from, int64_t distance, int32_t line, int32_t column) {{",
        f"    const uint32_t lane = {lane}(), matrix = lane / 8 & {count - 1};",
        f"    return from + (line + (int32_t)(lane % 8 + 8 * ({line}))) * distance",
        f"        + (column + (int32_t)(16 / sizeof(T) * ({column})));",
        "}",
    ]
    helpers.definitions.setdefault(full, "\n".join(lines))
    return full


def _load_helper(helpers: Helpers, tiles: Tiles, is_deep: bool) -> str:
    side = f"{'left' if tiles.is_left else 'right'}_{tiles.tiles}x{tiles.rows}x{tiles.depth}_{tiles.size}"
    full, lane = f"lw_load_{side}{'' if is_deep else '_trans'}", lane_helper(helpers)
    word = 4 // tiles.size
    halves = tiles.rows // 8
    lines = [
        "template <typename T>",
        f"{helpers.qualifiers} void {full}(T *to, const T *from, int64_t distance) {{",
        f"    const uint32_t lane = {lane}();",
        "    #pragma unroll",
        f"    for (uint32_t k = 0; k < {tiles.tiles * tiles.elements}; ++k) {{",
        f"        const uint32_t tile = k / {tiles.elements}, word = k % {tiles.elements} / {word};",
        f"        const uint32_t row = tile * {tiles.rows} + word % {halves} * 8 + lane / 4;",
        f"        const uint32_t column = word / {halves} * {4 * word} + lane % 4 * {word} + k % {word};",
        f"        to[k] = from[{'row * distance + column' if is_deep else 'column * distance + row'}];",
        "    }",
        "}",
    ]
    helpers.definitions.setdefault(full, "\n".join(lines))
    return full


def _store(writer: FragmentWriter, node: ir.Call) -> int:
    memory, _, _, _, index, pointer, stride, layout = node.args
    fragment = _fragment(writer, node, memory, index)
    if fragment.scope != ACCUMULATOR:
        problem = (
            f"tvm_store_matrix_sync stores sums, of scope {ACCUMULATOR}; {fragment.where.memory} is {fragment.scope}"
        )
        raise NoSuchInstruction(node, problem)
    to = place(pointer, ir.const(0), fragment.dtype)
    name = _sums_helper(writer.helpers, fragment, _is_row_major(node, layout), is_load=False)
    _meet(writer)
    writer.start_statement(fragment.where.at, to.at, stride)
    distance = writer.index(stride)
    writer.effect(VOID, call(name, fragment.part(writer, 0, 0), to.code(writer), distance))
    return 0


def _sums_helper(helpers: Helpers, fragment: _Fragment, along_rows: bool, is_load: bool) -> str:
    """The function that loads or stores sums; those that are held transposed lie the other way."""
    rows, columns = fragment.sums
    is_plain = along_rows != fragment.is_transposed
    marks = f"{'load' if is_load else 'store'}_sums_{rows * 16}x{columns * 8}{'' if is_plain else '_trans'}"
    full, lane = f"lw_{marks}", lane_helper(helpers)
    parameters = "T *held, const T *at" if is_load else "const T *held, T *at"
    where = f"at[{'row * distance + column' if is_plain else 'column * distance + row'}]"
    lines = [
        "template <typename T>",
        f"{helpers.qualifiers} void {full}({parameters}, int64_t distance) {{",
        f"    const uint32_t lane = {lane}();",
        "    #pragma unroll",
        f"    for (uint32_t k = 0; k < {rows * columns * 4}; ++k) {{",
        f"        const uint32_t row = k / {columns * 4} * 16 + k % 4 / 2 * 8 + lane / 4;",
        f"        const uint32_t column = k / 4 % {columns} * 8 + lane % 4 * 2 + k % 2;",
        f"        {f'held[k] = {where};' if is_load else f'{where} = held[k];'}",
        "    }",
        "}",
    ]
    helpers.definitions.setdefault(full, "\n".join(lines))
    return full


def _mma(writer: FragmentWriter, node: ir.Call) -> int:
    d, a, b, c = [_fragment(writer, node, node.args[k], node.args[k + 1]) for k in (0, 2, 4, 6)]
    wanted = (ACCUMULATOR, "wmma.matrix_a", "wmma.matrix_b", ACCUMULATOR)
    if tuple([fragment.scope for fragment in (d, a, b, c)]) != wanted:
        raise NoSuchInstruction(node, f"tvm_mma_sync takes fragments of the scopes {', '.join(wanted)}")
    if not d.sizes == a.sizes == b.sizes == c.sizes or c.dtype is not d.dtype:
        raise NoSuchInstruction(node, "tvm_mma_sync takes fragments of the same sizes, and sums of one type")
    try:
        kinds = [ptx_type(str(fragment.dtype)) for fragment in (a, b, d)]
        left, right = (b, a) if d.is_transposed else (a, b)
        shape = shape_of("m16n8k16", *[ptx_type(str(fragment.dtype)) for fragment in (left, right, d)])
    except NoSuchShape as reason:
        raise NoSuchInstruction(node, f"tvm_mma_sync: {reason}") from None
    if bytes_of(kinds[0]) != bytes_of(kinds[1]):
        raise NoSuchInstruction(node, f"tvm_mma_sync takes operands of one size; got {kinds[0]} and {kinds[1]}")
    name = mma_helper(writer.helpers, shape)
    writer.start_statement(*[fragment.where.at for fragment in (d, a, b, c)])
    if c.where.memory is not d.where.memory or not ir.structural_equal(c.where.at, d.where.at):
        _copy(writer, d, c)
    rows, columns = d.sums
    for row in range(rows):
        for column in range(columns):
            sums = d.part(writer, row * columns + column, 4)
            x, y = left.part(writer, row, left.tiles.elements), right.part(writer, column, right.tiles.elements)
            writer.effect(VOID, call(name, sums, x, y))
    return shape.architecture


def _copy(writer: FragmentWriter, to: _Fragment, out_of: _Fragment) -> None:
    assert to.where.memory is not None and out_of.where.memory is not None
    k = ir.Var("k", to.where.at.dtype)
    target, source = [
        ir.decl_buffer((fragment.elements,), fragment.dtype, data=fragment.where.memory) for fragment in (to, out_of)
    ]
    load = ir.BufferLoad(source, (out_of.where.at + ir.cast(k, out_of.where.at.dtype),))
    store = ir.BufferStore(target, load, (to.where.at + k,))
    zero, count = ir.const(0, k.dtype), ir.const(to.elements, k.dtype)
    writer.run(ir.For(k, zero, count, ir.ForKind.UNROLLED, store))


def _meet(writer: FragmentWriter) -> None:
    """All lanes come to what each does with memory for itself."""
    writer.run(ir.Evaluate(tvm_storage_sync(ir.StringImm("warp"))))


def _is_row_major(node: ir.Call, layout: ir.Expr) -> bool:
    if not isinstance(layout, ir.StringImm) or layout.value not in _LAYOUTS:
        raise NoSuchInstruction(node, f'{_name(node)} has tiles that are "row_major" or "col_major"; got {layout}')
    return layout.value == "row_major"


# By intrinsic: writes the call, and says which architecture it needs.
FRAGMENT_CALLS: Final[dict[str, Callable[[FragmentWriter, ir.Call], int]]] = {
    "tvm_fill_fragment": _fill,
    "tvm_load_matrix_sync": _load,
    "tvm_mma_sync": _mma,
    "tvm_store_matrix_sync": _store,
}
