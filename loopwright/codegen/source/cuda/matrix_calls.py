"""Matrix instructions: `mma.sync` and `ldmatrix` as inline PTX, and where their operands go.

    T.ptx_mma("float32", "m16n8k16", "row", "col", "fp16", "fp16", "fp32", A.data, 0, B.data, 0, C.data, 0, False)
    T.ptx_ldmatrix("float16", False, 4, ".b16", A.data, 0, S.data, offset_of_this_lane)
    T.mma_fill("float32", 8, C.data, 0)                                 8 elements of this lane are 0
    T.mma_store("float32", 16, 16, D.access_ptr("w"), C.data, 0, n)     8 elements of each lane, to rows n apart

All 32 lanes of a warp come to a call together. Each of them has a part of every matrix in memory of its own, as the
section of PTX on warp-level matrix instructions lays it out; compilers keep such memory in registers. C is what is
added to, and the result.

The emulation has functions for them (`emulation/matrices.h`); helpers name these, with the line of the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopwright import ir
from loopwright.codegen.source.code import Code, call
from loopwright.codegen.source.cuda.errors import NoSuchInstruction
from loopwright.codegen.source.cuda.mma_shapes import NoSuchShape, Shape, shape_of
from loopwright.codegen.source.cuda.places import MemoryWriter, Place, place
from loopwright.codegen.source.helpers import Helpers
from loopwright.runtime.dtype import VOID

LDMATRIX_ARCHITECTURE: Final = 75
_COUNTS: Final = (1, 2, 4)
_SHARED: Final = "(uint32_t)__cvta_generic_to_shared"
_REGISTERS: Final = {"f32": ("float", "f"), "f64": ("double", "d")}  # the others are words


def _mma(writer: MemoryWriter, node: ir.Call) -> tuple[Code, int]:
    if len(node.args) == 14:
        raise NoSuchInstruction(node, "ptx_mma of bits, with an operator, is not supported")
    if len(node.args) != 13:
        wanted = "a shape, two layouts, three types, three pointers with an offset each, and whether sums saturate"
        raise NoSuchInstruction(node, f"ptx_mma takes {wanted} after the type; got {len(node.args)} arguments")
    words = [arg.value if isinstance(arg, ir.StringImm) else "" for arg in node.args[:6]]
    if "" in words:
        raise NoSuchInstruction(node, "ptx_mma takes a shape, two layouts and three types as texts")
    layouts, saturates = (words[1], words[2]), node.args[12]
    try:
        shape = shape_of(words[0], *words[3:])
    except NoSuchShape as reason:
        raise NoSuchInstruction(node, f"ptx_mma: {reason}") from None
    allowed = ("row", "col") if shape.is_of_quads else ("row",), ("row", "col") if shape.is_of_quads else ("col",)
    if layouts[0] not in allowed[0] or layouts[1] not in allowed[1]:
        raise NoSuchInstruction(node, f"ptx_mma of {shape.name} has A by row and B by col; got {' and '.join(layouts)}")
    if not isinstance(saturates, ir.IntImm) or (saturates.value and shape.c != "s32"):
        raise NoSuchInstruction(node, f"ptx_mma of {shape.c} sums does not saturate; only int32 sums do")
    pointers = [_operand(node, node.args[k], node.args[k + 1]) for k in (6, 8, 10)]
    name = mma_helper(writer.helpers, shape, layouts, bool(saturates.value))
    writer.start_statement(*[pointer.at for pointer in pointers])
    a, b, c = [pointer.code(writer) for pointer in pointers]
    return writer.effect(VOID, call(name, c, a, b)), shape.architecture


def _operand(node: ir.Call, pointer: ir.Expr, offset: ir.Expr) -> Place:
    """An operand in a lane's own memory; offsets count elements of that memory's type."""
    annotation = pointer.type_annotation if isinstance(pointer, ir.Var) else None
    kind = annotation.element_type if isinstance(annotation, ir.PointerType) else None
    dtype = kind.dtype if isinstance(kind, ir.PrimType) else node.dtype
    result = place(pointer, offset, dtype)
    if result.scope not in ("local", "warp", ""):
        name = node.op.name.removeprefix("tir.")
        raise NoSuchInstruction(node, f"{name} has its operands in local memory; {result.memory} is {result.scope}")
    return result


def mma_helper(
    helpers: Helpers, shape: Shape, layouts: tuple[str, str] = ("row", "col"), saturates: bool = False
) -> str:
    """The function c += a @ b for a part of each matrix: `lw_mma_…(void *c, const void *a, const void *b)`."""
    same = layouts == ("row", "col")
    marks = [shape.name, *([] if same else ["_".join(layouts)]), shape.a, shape.b, shape.c, *["sat"] * saturates]
    full = f"lw_mma_{'_'.join(marks)}"
    if full in helpers.definitions:
        return full
    sums, mark = _REGISTERS.get(shape.c, ("uint32_t", "r"))
    given, given_mark = _REGISTERS.get(shape.a, ("uint32_t", "r"))
    counts = [shape.words(operand) for operand in (2, 0, 1)]
    firsts = [0, counts[0], counts[0] + counts[1]]
    places = [
        "{" + ", ".join([f"%{first + k}" for k in range(count)]) + "}"
        for first, count in zip(firsts, counts, strict=True)
    ]
    types = f"{shape.c}.{shape.a}.{shape.b}.{shape.c}"
    text = f"mma.sync.aligned.{shape.name}.{'.'.join(layouts)}{'.satfinite' * saturates}.{types}"
    results = ", ".join([f'"+{mark}"(sums[{k}])' for k in range(counts[0])])
    words = [f"{name}[{k}]" for name, count in zip("xy", counts[1:], strict=True) for k in range(count)]
    operands = ", ".join([f'"{given_mark}"({word})' for word in words])
    if shape.is_of_quads:
        flags = ", ".join([str(layout == "row").lower() for layout in layouts])
        emulated = f"lw_mma_quads<{flags}, lw_of_{shape.c}>"
    else:
        sum_type = f"lw_of_{shape.c}{'_satfinite' * saturates}"
        emulated = f"lw_mma<{shape.m}, {shape.k}, lw_of_{shape.a}, lw_of_{shape.b}, lw_of_{shape.c}, {sum_type}>"
    lines = [
        "#ifdef __CUDACC__",
        f"{helpers.qualifiers} void {full}(void *c, const void *a, const void *b) {{",
        f"    {sums} *const sums = ({sums} *)c;",
        f"    const {given} *const x = (const {given} *)a, *const y = (const {given} *)b;",
        f'    asm volatile("{text} {places[0]}, {places[1]}, {places[2]}, {places[0]};"',
        f"                 : {results} : {operands});",
        "}",
        "#else",
        f"#define {full}(...) {emulated}(__LINE__, __VA_ARGS__)",
        "#endif",
    ]
    helpers.definitions[full] = "\n".join(lines)
    return full


def _ldmatrix(writer: MemoryWriter, node: ir.Call) -> tuple[Code, int]:
    if len(node.args) != 7:
        wanted = "whether to transpose, a count, a type, a pointer and an offset, a shared pointer and an offset"
        raise NoSuchInstruction(node, f"ptx_ldmatrix takes {wanted} after the type; got {len(node.args)} arguments")
    transposed, count, kind = node.args[:3]
    if not isinstance(count, ir.IntImm) or count.value not in _COUNTS:
        raise NoSuchInstruction(node, f"ptx_ldmatrix loads 1, 2 or 4 matrices, a constant; got {count}")
    if not isinstance(transposed, ir.IntImm):
        raise NoSuchInstruction(node, f"whether ptx_ldmatrix transposes is a constant; got {transposed}")
    if not isinstance(kind, ir.StringImm) or kind.value not in (".b16", ".b8"):
        raise NoSuchInstruction(node, f'ptx_ldmatrix loads matrices of ".b16"; got {kind}')
    if transposed.value and node.dtype.bits == 8 and count.value == 4:
        return _load_bytes(writer, node), 0
    if transposed.value and node.dtype.bits != 16:
        problem = f"ptx_ldmatrix transposes elements of 16 bits; those of {node.dtype} have {node.dtype.bits}"
        raise NoSuchInstruction(node, problem)
    to = _operand(node, node.args[3], node.args[4])
    row = place(node.args[5], node.args[6], node.dtype)
    if row.scope not in ("shared", "shared.dyn", ""):
        problem = f"ptx_ldmatrix loads from shared memory; {row.memory} lies in {row.scope} memory"
        raise NoSuchInstruction(node, problem)
    name = ldmatrix_helper(writer.helpers, count.value, bool(transposed.value))
    writer.start_statement(to.at, row.at)
    return writer.effect(VOID, call(name, to.code(writer), row.code(writer))), LDMATRIX_ARCHITECTURE


def _load_bytes(writer: MemoryWriter, node: ir.Call) -> Code:
    """Bytes of a tile of 32 × 16 as B wants them; ldmatrix does not transpose them. The last argument is the stride."""
    to, out_of = _operand(node, node.args[3], node.args[4]), place(node.args[5], ir.const(0), node.dtype)
    full, lane = "lw_load_bytes_trans", lane_helper(writer.helpers)
    lines = [
        "template <typename T>",
        f"{writer.helpers.qualifiers} void {full}(T *to, const T *from, int64_t stride) {{",
        f"    const uint32_t lane = {lane}();",
        "    #pragma unroll",
        "    for (uint32_t k = 0; k < 16; ++k) {",
        "        to[k] = from[(k % 8 / 4 * 16 + lane % 4 * 4 + k % 4) * stride + k / 8 * 8 + lane / 4];",
        "    }",
        "}",
    ]
    writer.helpers.definitions.setdefault(full, "\n".join(lines))
    writer.start_statement(to.at, out_of.at, node.args[6])
    stride = writer.index(node.args[6])
    return writer.effect(VOID, call(full, to.code(writer), out_of.code(writer), stride))


def ldmatrix_helper(helpers: Helpers, count: int, is_transposed: bool) -> str:
    """The function that loads `count` matrices: `lw_ldmatrix_…(void *target, const void *row)`."""
    full = f"lw_ldmatrix_x{count}{'_trans' * is_transposed}"
    if full not in helpers.definitions:
        places = ", ".join([f"%{k}" for k in range(count)])
        results = ", ".join([f'"=r"(words[{k}])' for k in range(count)])
        text = f"ldmatrix.sync.aligned.m8n8.x{count}{'.trans' * is_transposed}.shared.b16"
        lines = [
            "#ifdef __CUDACC__",
            f"{helpers.qualifiers} void {full}(void *target, const void *row) {{",
            "    uint32_t *const words = (uint32_t *)target;",
            f'    asm volatile("{text} {{{places}}}, [%{count}];"',
            f'                 : {results} : "r"({_SHARED}(row)) : "memory");',
            "}",
            "#else",
            f"#define {full}(...) lw_ldmatrix(__LINE__, {count}, {str(is_transposed).lower()}, __VA_ARGS__)",
            "#endif",
        ]
        helpers.definitions[full] = "\n".join(lines)
    return full


def _fill(writer: MemoryWriter, node: ir.Call) -> tuple[Code, int]:
    if len(node.args) != 3:
        wanted = "a number of elements, a pointer and an offset"
        raise NoSuchInstruction(node, f"mma_fill takes {wanted} after the type; got {len(node.args)} arguments")
    count, pointer, offset = node.args
    if not isinstance(count, ir.IntImm):
        raise NoSuchInstruction(node, f"mma_fill fills a constant number of elements; got {count}")
    to = _operand(node, pointer, offset)
    fill(writer, node, to, count.value, ir.const(0, node.dtype))
    return Code("0"), 0


def fill(writer: MemoryWriter, node: ir.Call, to: Place, count: int, value: ir.Expr) -> None:
    """Write the loop that stores a value to `count` elements of a lane."""
    if to.memory is None:
        raise NoSuchInstruction(node, f"{node.op.name.removeprefix('tir.')} takes a pointer to memory of the kernel")
    k = ir.Var("k", to.at.dtype)
    buffer = ir.decl_buffer((count,), to.dtype, to.memory.name, data=to.memory)
    first = to.at
    index = k if isinstance(first, ir.IntImm) and first.value == 0 else first + k
    store = ir.BufferStore(buffer, value, (index,))
    writer.run(ir.For(k, ir.const(0, k.dtype), ir.const(count, k.dtype), ir.ForKind.UNROLLED, store))


def _store(writer: MemoryWriter, node: ir.Call) -> tuple[Code, int]:
    if len(node.args) != 6:
        wanted = "two sizes, a pointer, a pointer and an offset, and how far rows are apart"
        raise NoSuchInstruction(node, f"mma_store takes {wanted} after the type; got {len(node.args)} arguments")
    sizes = [size.value if isinstance(size, ir.IntImm) else 0 for size in node.args[:2]]
    if sizes != [16, 16]:
        raise NoSuchInstruction(node, f"mma_store stores 16 x 16 elements; got {node.args[0]} x {node.args[1]}")
    to, out_of = place(node.args[2], ir.const(0), node.dtype), _operand(node, node.args[3], node.args[4])
    writer.start_statement(to.at, out_of.at, node.args[5])
    stride = writer.index(node.args[5])
    name = _store_helper(writer.helpers)
    return writer.effect(VOID, call(name, to.code(writer), out_of.code(writer), stride)), 0


def _store_helper(helpers: Helpers) -> str:
    full, lane = "lw_store_16x16", lane_helper(helpers)
    lines = [
        "template <typename T>",
        f"{helpers.qualifiers} void {full}(T *to, const T *from, int64_t stride) {{",
        f"    const uint32_t lane = {lane}();",
        "    #pragma unroll",
        "    for (uint32_t k = 0; k < 8; ++k) {",
        "        to[(k % 4 / 2 * 8 + lane / 4) * stride + k / 4 * 8 + lane % 4 * 2 + k % 2] = from[k];",
        "    }",
        "}",
    ]
    helpers.definitions.setdefault(full, "\n".join(lines))
    return full


def lane_helper(helpers: Helpers) -> str:
    """The function that gives the number of this lane in its warp."""
    full = "lw_lane_index"
    lines = [
        "#ifdef __CUDACC__",
        f"{helpers.qualifiers} uint32_t {full}() {{",
        "    uint32_t lane;",
        '    asm("mov.u32 %0, %%laneid;" : "=r"(lane));',
        "    return lane;",
        "}",
        "#else",
        f"#define {full}() lw_own_lane()",
        "#endif",
    ]
    helpers.definitions.setdefault(full, "\n".join(lines))
    return full


# By intrinsic: writes the call, and says which architecture it needs.
MATRIX_CALLS: Final[dict[str, Callable[[MemoryWriter, ir.Call], tuple[Code, int]]]] = {
    "ptx_mma": _mma,
    "ptx_ldmatrix": _ldmatrix,
    "mma_fill": _fill,
    "mma_store": _store,
}
# The arguments that point to memory whose beginning has to be aligned for words, or rows of 16 bytes.
MATRIX_POINTERS: Final = {"tir.ptx_mma": (6, 8, 10), "tir.ptx_ldmatrix": (3, 5), "tir.tvm_load_matrix_sync": (5,)}


def uses_matrices(text: str) -> bool:
    """Whether a text of kernels calls for the functions that `emulation/matrices.h` has."""
    return "lw_mma_" in text or "lw_ldmatrix_" in text
