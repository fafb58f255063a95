"""Warpgroups: wgmma of sm_90a as inline PTX, one function for each shape and type, and matrix descriptors.

    lw_wgmma_fence();
    lw_wgmma_m64n128k16_f16(*(float (*)[64])&C[0], lw_matrix(&A[0], 0, 1024, 128), lw_matrix(&B[0], 0, 1024, 128), 1);
    lw_wgmma_commit();
    lw_wgmma_wait<0>();
    lw_keep(*(float (*)[64])&C[0]);

Accumulators are registers that wgmma writes after the call has returned. Compilers know of no such thing: `lw_keep`
after a wait may change them, as far as anybody knows, so nothing that reads them comes before. The emulation has
functions of these names of its own, which `emulated_shapes` tells of the shapes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from loopwright import ir
from loopwright.codegen.source.code import UNARY, Code, call, nested
from loopwright.codegen.source.cuda.block_handoff import define_on_gpu
from loopwright.codegen.source.cuda.places import MemoryWriter
from loopwright.codegen.source.helpers import Helpers
from loopwright.codegen.source.types import value_type
from loopwright.ir.warpgroup_intrinsics import OPERAND_KINDS, addressed, is_in_registers, pattern_bytes
from loopwright.runtime.dtype import FLOAT32, DataType
from loopwright.runtime.errors import InternalError

# All others: that of wgmma.
WARPGROUP_ARCHITECTURES: Final[dict[str, int | str]] = {"fence_proxy_async": 90, "compute_now": 70}
WGMMA_ARCHITECTURE: Final = "sm_90a"
_PTX_TYPES: Final = {
    "float16": "f16",
    "bfloat16": "bf16",
    "tfloat32": "tf32",
    "float8_e4m3": "e4m3",
    "float8_e5m2": "e5m2",
    "int8": "s8",
    "uint8": "u8",
}
_UNUSUAL_NAN: Final = 0x7FC0DEAD
_PER_LINE: Final = 8  # registers in a line of the text
_WORD: Final = DataType("uint32")
_SHAPE: Final = re.compile(
    r"\blw_wgmma_m64n(?P<n>\d+)k\d+_(?P<a>[a-z]+\d+(?:m\d)?)(?:_(?P<b>[a-z]+\d+(?:m\d)?))?(?P<_how>(?:_[ab]_[a-z]+)*)\b"
)


def _constant(expr: ir.Expr) -> int:
    if not isinstance(expr, ir.IntImm):
        raise InternalError(f"{expr} was a constant when the call was built")
    return expr.value


def _text(expr: ir.Expr) -> str:
    if not isinstance(expr, ir.StringImm):
        raise InternalError(f"{expr} was a name when the call was built")
    return expr.value


def _pointer(writer: MemoryWriter, address: ir.Expr) -> tuple[ir.BufferLoad, Code]:
    """The element that an argument is the address of, and `&S[i]`."""
    load = addressed(address)
    if load is None or len(load.indices) != 1:
        raise InternalError("an operand of wgmma is the address of an element of flattened memory", at=address)
    element = writer.element(load.buffer, writer.index(load.indices[0]))
    return load, Code(f"&{element}", UNARY, element.depth + 1)


def _registers(writer: MemoryWriter, address: ir.Expr, dtype: DataType, count: int) -> Code:
    """Local memory from an address on as an array."""
    _, pointer = _pointer(writer, address)
    return Code(f"*({value_type(dtype)} (*)[{count}]){pointer}", UNARY, nested(pointer))


# --- wgmma --------------------------------------------------------------------------------------------------------


def _wgmma(writer: MemoryWriter, node: ir.Call) -> Code:
    accumulators, width, a_kind, a, *a_layout = node.args[:8]
    b_kind, b, *b_layout = node.args[8:14]
    n, kind = _constant(width), OPERAND_KINDS[_text(a_kind)]
    d = _registers(writer, accumulators, kind.accumulator, n // 2)
    in_registers = is_in_registers(a)
    left = _registers(writer, a, _WORD, 4) if in_registers else _matrix(writer, a, a_layout)
    right = _matrix(writer, b, b_layout)
    is_transposed = bool(_constant(a_layout[3])), bool(_constant(b_layout[3]))
    name = _wgmma_helper(writer.helpers, n, _text(a_kind), _text(b_kind), in_registers, is_transposed)
    return writer.effect(node.dtype, call(name, d, left, right, writer.value(node.args[14])))


def _matrix(writer: MemoryWriter, start: ir.Expr, layout: list[ir.Expr]) -> Code:
    """The descriptor of an operand in shared memory."""
    swizzle, leading, stride, _ = map(_constant, layout)
    _, pointer = _pointer(writer, start)
    lines = [
        "const uint64_t address = (uint32_t)__cvta_generic_to_shared(start);",
        "const uint64_t layout = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;",
        "const uint64_t steps = (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32;",
        "return (address & 0x3ffff) >> 4 | steps | layout << 62;",
    ]
    parameters = "const void *start, uint32_t leading, uint32_t stride, uint32_t swizzle"
    name = define_on_gpu(writer.helpers, "matrix", "uint64_t ", parameters, lines)
    return call(name, pointer, *[Code(str(step)) for step in (leading, stride, swizzle)])


def _wgmma_helper(
    helpers: Helpers, n: int, a_kind: str, b_kind: str, in_registers: bool, is_transposed: tuple[bool, bool]
) -> str:
    """The function of one shape, type and layout."""
    kind, a, b = OPERAND_KINDS[a_kind], _PTX_TYPES[a_kind], _PTX_TYPES[b_kind]
    shape, count = f"m64n{n}k{kind.k}", n // 2
    name = f"wgmma_{shape}_{a}" if a == b else f"wgmma_{shape}_{a}_{b}"
    name += "_a_registers" * in_registers + "_a_transposed" * is_transposed[0] + "_b_transposed" * is_transposed[1]
    constraint, result = ("f", "f32") if kind.accumulator is FLOAT32 else ("r", "s32")
    given = ['"l"(a)']
    left = f"%{count}"
    if in_registers:
        given = [f'"r"(a[{k}])' for k in range(4)]
        left = f"{{{', '.join(f'%{count + k}' for k in range(4))}}}"
    right, adds = f"%{count + len(given)}", f"%{count + len(given) + 1}"
    given += ['"l"(b)', '"r"(adds)']
    last = ["p"]
    if kind.family != "int8":
        last += ["1", "1"]  # neither operand is negated
    if kind.family in ("float16", "bfloat16"):  # all others lie along K
        last += [str(int(transposed)) for transposed in is_transposed[in_registers:]]
    places = list(_lines([f"%{k}" for k in range(count)]))
    outputs = list(_lines([f'"+{constraint}"(d[{k}])' for k in range(count)]))
    lines = [
        f'asm volatile("{{.reg .pred p; setp.ne.b32 p, {adds}, 0; "',
        f'             "wgmma.mma_async.sync.aligned.{shape}.{result}.{a}.{b} {{"',
        *[f'             "{line}{", " if line is not places[-1] else "}, "}"' for line in places],
        f'             "{left}, {right}, {", ".join(last)};}}"',
        f"             : {outputs[0]}{',' * (len(outputs) > 1)}",
        *[f"               {line}{',' if line is not outputs[-1] else ''}" for line in outputs[1:]],
        f'             : {", ".join(given)} : "memory");',
    ]
    first = "uint32_t (&a)[4]" if in_registers else "uint64_t a"
    parameters = f"{value_type(kind.accumulator)} (&d)[{count}], {first}, uint64_t b, int32_t adds"
    return define_on_gpu(helpers, name, "void ", parameters, lines)


def _lines(items: list[str]) -> Iterator[str]:
    for first in range(0, len(items), _PER_LINE):
        yield ", ".join(items[first : first + _PER_LINE])


def emulated_shapes(text: str) -> list[str]:
    """What tells the emulation of the shapes, types and layouts of wgmma in the text of kernels: one line for each."""
    result = []
    for name, shape in {found.group(): found for found in _SHAPE.finditer(text)}.items():
        how = shape["_how"]
        flags = [int(flag in how) for flag in ("_a_transposed", "_b_transposed")]
        kinds = f"lw_{shape['a']}, lw_{shape['b'] or shape['a']}"
        form = f"lw_wgmma_form{{{shape['n']}, {kinds}, {flags[0]}, {flags[1]}}}"
        result.append(f"#define {name}(...) lw_wgmma(__LINE__, {form}, __VA_ARGS__)")
    return result


# --- what stands around it ----------------------------------------------------------------------------------------


def _instruction(name: str, text: str) -> Callable[[MemoryWriter, ir.Call], Code]:
    def emit(writer: MemoryWriter, node: ir.Call) -> Code:
        line = f'asm volatile("{text};" : : : "memory");'
        return writer.effect(node.dtype, call(define_on_gpu(writer.helpers, name, "void ", "", [line])))

    return emit


def _define_template(helpers: Helpers, full: str, head: str, lines: list[str]) -> None:
    body = "\n".join([line if line.startswith("#") else f"    {line}" for line in lines])
    text = f"template <int32_t n>\n{helpers.qualifiers} void {head} {{\n{body}\n}}"
    helpers.definitions.setdefault(full, f"#ifdef __CUDACC__\n{text}\n#endif")


def _wait(writer: MemoryWriter, node: ir.Call) -> Code:
    line = 'asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(n) : "memory");'
    _define_template(writer.helpers, "lw_wgmma_wait", "lw_wgmma_wait()", [line])
    writer.effect(node.dtype, call(f"lw_wgmma_wait<{_constant(node.args[0])}>"))
    for address, count in zip(node.args[1::2], node.args[2::2], strict=True):
        load, _ = _pointer(writer, address)
        is_float = load.dtype is FLOAT32
        full, text, constraint = ("lw_keep", "float", "f") if is_float else ("lw_keep_words", "uint32_t", "r")
        # ptxas moves arithmetic on registers before the wait, and knows what two loads behind it give only then.
        read = 'asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"({}) : "r"(where) : "memory");'
        clear = f'asm volatile("mov.b32 %0, 0;" : "={constraint}"(registers[k]));'
        lines = [
            "__shared__ uint32_t any;",
            "const uint32_t where = (uint32_t)__cvta_generic_to_shared(&any);",
            "uint32_t once, again;",
            read.format("once"),
            read.format("again"),
            "if (once != again) {  // never: nobody writes it",
            "    #pragma unroll",
            f"    for (int32_t k = 0; k < n; ++k) {{ {clear} }}",
            "}",
        ]
        _define_template(writer.helpers, full, f"{full}({text} (&registers)[n])", lines)
        kept = _registers(writer, address, FLOAT32 if is_float else _WORD, _constant(count))
        writer.effect(node.dtype, call(full, kept))
    return Code("0")


def _set_max_registers(writer: MemoryWriter, node: ir.Call) -> Code:
    count, how = _constant(node.args[0]), _text(node.args[1])
    line = f'asm volatile("setmaxnreg.{how}.sync.aligned.u32 %0;" : : "n"(n) : "memory");'
    full = f"lw_set_max_registers_{how}"
    _define_template(writer.helpers, full, f"{full}()", [line])
    return writer.effect(node.dtype, call(f"{full}<{count}>"))


def _compute_now(writer: MemoryWriter, node: ir.Call) -> Code:
    # An instruction that needs the value, and that no value lets run but one NaN: then it does nothing.
    text = f"{{.reg .pred p; setp.eq.b32 p, %0, {_UNUSUAL_NAN}; @p nanosleep.u32 0;}}"
    line = f'asm volatile("{text}" : : "f"(x) : "memory");'
    name = define_on_gpu(writer.helpers, "compute_now", "void ", "float x", [line])
    return writer.effect(node.dtype, call(name, writer.value(node.args[0])))


# By intrinsic.
WARPGROUP_CALLS: Final[dict[str, Callable[[MemoryWriter, ir.Call], Code]]] = {
    "wgmma": _wgmma,
    "wgmma_fence": _instruction("wgmma_fence", "wgmma.fence.sync.aligned"),
    "wgmma_commit": _instruction("wgmma_commit", "wgmma.commit_group.sync.aligned"),
    "wgmma_wait": _wait,
    "compute_now": _compute_now,
    "set_max_registers": _set_max_registers,
    "fence_proxy_async": _instruction("fence_proxy_async", "fence.proxy.async.shared::cta"),
}


def operand_alignments(body: ir.Stmt) -> dict[ir.Var, int]:
    """Memory that wgmma reads, and the bytes of which it begins at a multiple: those after which a swizzle repeats."""
    result: dict[ir.Var, int] = {}
    for node in ir.collect(body, ir.Call):
        if node.op.name != "tir.wgmma":
            continue
        for first in (3, 9):
            load = addressed(node.args[first])
            if load is not None:
                data, bytes = load.buffer.data, pattern_bytes(_constant(node.args[first + 1]))
                result[data] = max(result.get(data, 0), bytes)
    return result


def accumulators_of(body: ir.Stmt) -> frozenset[ir.Var]:
    """The local memory that wgmma accumulates in."""
    calls = [node for node in ir.collect(body, ir.Call) if node.op.name == "tir.wgmma"]
    return frozenset(load.buffer.data for node in calls if (load := addressed(node.args[0])) is not None)
