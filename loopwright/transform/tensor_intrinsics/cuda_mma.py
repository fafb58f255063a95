"""mma: tiles of 16 × 16 results in registers, by `ldmatrix` and `mma.sync`.

    mma_fill_16x16_f32                     C = 0
    mma_ldmatrix_f16_a                     A[i, k] = S[i, k], a tile of 16 × 16 in shared memory; _dyn: dynamic
    mma_ldmatrix_f16_b_trans_dyn           B[j, k] = S[j, k]
    mma_f16f16f32, mma_f16f16f32_trans_b   C[i, j] += A[i, k] * B[k, j], or B[j, k], in float32
    mma_store_16x16_f32_global_            D[i, j] = C[i, j]

The tiles have 32 × 8 or 32 × 16 elements in memory of scope "warp": `warp[lane, k]` is element k of a lane. Where the
element (i, j) of a tile goes, `shared_16x16_to_ldmatrix_32x8_layout` and the like say, which `transform_layout` takes.
Of sums that is what the machine has. Operands A and B of some layouts it holds another way than the layout says, so
nothing but these intrinsics may touch them (`lower_warp_memory` sees to that). Operands of int8 and float8 are 16 × 32.
The names are those that TVM gave them.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from loopwright.transform.tensor_intrinsics.declare import from_text
from loopwright.transform.tensor_intrinsics.registry import TensorIntrin

_TYPES: Final = {
    "f16": "float16",
    "bf16": "bfloat16",
    "i8": "int8",
    "e4m3": "e4m3_float8",
    "e5m2": "e5m2_float8",
    "f32": "float32",
    "i32": "int32",
}
# The types as `ptx_mma` calls them.
_WORDS: Final = {
    "f16": "fp16",
    "bf16": "bf16",
    "i8": "int8",
    "e4m3": "e4m3",
    "e5m2": "e5m2",
    "f32": "fp32",
    "i32": "int32",
}
_HALVES: Final = ("f16", "bf16")
_SCOPES: Final = {
    "": "shared",
    "_dyn": "shared.dyn",
    "global": "global",
    "shared": "shared",
    "shared_dyn": "shared.dyn",
}
_SUMS: Final = ("f16f16f32", "f16f16f16", "bf16bf16f32", "i8i8i32", "e4m3e4m3f32", "e5m2e5m2f32")
_FILL: Final = re.compile(r"mma_fill_16x16_(f16|f32|i32)")
_LOAD: Final = re.compile(r"mma_ldmatrix_(f16|bf16|i8|e4m3|e5m2)_(a|b)(_trans)?(_dyn)?")
_SYNC: Final = re.compile(rf"mma_({'|'.join(_SUMS)})(_trans_a)?(_trans_b)?")
_STORE: Final = re.compile(r"mma_store_16x16_(f16|f32|i32)_(global|shared|shared_dyn)_(simple_)?")

# The lane and the number of an element, by the shape of the tile that lies in memory.
_LAYOUTS: Final = {
    (16, 16): ("{i} % 8 * 4 + {j} % 8 // 2", "{j} // 8 * 4 + {i} // 8 * 2 + {j} % 2"),
    (16, 32): ("{i} % 8 * 4 + {j} % 16 // 4", "{j} // 16 * 8 + {i} // 8 * 4 + {j} % 4"),
    (32, 16): ("{i} % 16 // 4 + {j} % 8 * 4", "{j} // 8 * 8 + {i} // 16 * 4 + {i} % 4"),
}


class Tile(NamedTuple):
    """A tile of an operand: its name, its rows and columns as they lie in memory, and its type."""

    name: str
    rows: int
    columns: int
    dtype: str

    @property
    def size(self) -> int:
        """The elements of a lane."""
        return self.rows * self.columns // 32

    def parameter(self) -> str:
        """The declaration of the tile in registers."""
        match = f'T.match_buffer(p_{self.name}, (32, {self.size}), "{_TYPES[self.dtype]}", offset_factor=1'
        return f'{self.name} = {match}, scope="warp")'

    def in_memory(self, name: str, scope: str, has_strides: bool) -> list[str]:
        """The declaration of the same tile in memory."""
        strides = f", strides=[{name}_row, 1]" if has_strides else ""
        shape, dtype = f"({self.rows}, {self.columns})", _TYPES[self.dtype]
        factor = 1 if name == "D" else 8 if self.dtype in _HALVES else 16  # rows of ldmatrix begin at 16 bytes
        match = f'T.match_buffer(p_{name}, {shape}, "{dtype}", offset_factor={factor}, scope="{scope}"{strides})'
        return [f"{name}_row = T.int32()"] * has_strides + [f"{name} = {match}"]

    def element(self, i: str, j: str) -> str:
        """Where element (i, j) of the tile in memory is in registers."""
        lane, number = [text.format(i=i, j=j) for text in _LAYOUTS[self.rows, self.columns]]
        return f"{self.name}[{lane}, {number}]"

    @property
    def region(self) -> str:
        return f"{self.name}[0:32, 0:{self.size}]"

    @property
    def begin(self) -> str:
        """Where the elements of lane tx begin."""
        return f"{self.name}.elem_offset + tx * {self.size}"


def _function(names: list[str], declared: list[str], reads: list[str], writes: str, body: list[str]) -> str:
    lines = ["from loopwright.script import tir as T", "", "@T.prim_func"]
    lines += [f"def main({', '.join([f'p_{name}: T.handle' for name in names])}):"]
    lines += [f"    {line}" for line in declared]
    lines += ['    with T.block("root"):', f"        T.reads({', '.join(reads)})", f"        T.writes({writes})"]
    return "\n".join([*lines, *[f"        {line}" for line in body]]) + "\n"


def _nest(rows: int, columns: int, store: str) -> list[str]:
    lines = [f"for i, j in T.grid({rows}, {columns}):", '    with T.block("update"):']
    return [*lines, '        vi, vj = T.axis.remap("SS", [i, j])', f"        {store}"]


_LANES: Final = 'tx = T.launch_thread("threadIdx.x", 32)'


def _fill(name: str, dtype: str) -> None:
    c = Tile("C", 16, 16, dtype)
    loops = _nest(16, 16, f"{c.element('vi', 'vj')} = T.{_TYPES[dtype]}(0)")
    body = [_LANES, f'T.evaluate(T.mma_fill("{_TYPES[dtype]}", {c.size}, C.data, {c.begin}))']
    texts = [_function(["C"], [c.parameter()], [], c.region, lines) for lines in (loops, body)]
    TensorIntrin.register(name, from_text(texts[0]), from_text(texts[1]))


def _load(name: str, dtype: str, which: str, trans: str | None, dyn: str | None) -> None:
    depth = 16 if dtype in _HALVES else 32
    if which == "a" and trans and depth == 32:
        return  # ldmatrix transposes elements of 16 bits
    rows, columns = (16, depth) if which == "a" else (depth, 16)
    rows, columns = (columns, rows) if trans else (rows, columns)
    tile, scope = Tile("W", rows, columns, dtype), "shared.dyn" if dyn else "shared"
    # Whether the machine has it the other way round than it lies in memory, and which rows of 8 lanes come second.
    transposes = (which == "a") == bool(trans)
    step = 16 // (2 if depth == 16 else 1)  # elements in the 16 bytes of a row
    if transposes and depth == 32:
        offset = "S_row"
    elif bool(trans):
        offset = f"(tx // 16 * 8 + tx % 8) * S_row + tx % 16 // 8 * {step}"
    else:
        offset = f"tx % 16 * S_row + tx // 16 * {step}"
    given = f'{transposes}, 4, ".b16", W.data, {tile.begin}, S.access_ptr("r"), {offset}'
    loops = _nest(rows, columns, f"{tile.element('vi', 'vj')} = S[vi, vj]")
    body = [_LANES, f'T.evaluate(T.ptx_ldmatrix("{_TYPES[dtype]}", {given}))']
    texts = [
        _function(
            ["W", "S"],
            [tile.parameter(), *tile.in_memory("S", scope, has_strides)],
            [f"S[0:{rows}, 0:{columns}]"],
            tile.region,
            lines,
        )
        for lines, has_strides in ((loops, False), (body, True))
    ]
    TensorIntrin.register(name, from_text(texts[0]), from_text(texts[1]))


def _sync(name: str, types: str, trans_a: str | None, trans_b: str | None) -> None:
    operand = next(kind for kind in (*_HALVES, "i8", "e4m3", "e5m2") if types.startswith(kind))
    out = types[2 * len(operand) :]
    depth = 16 if operand in _HALVES else 32
    if trans_a and depth == 32:
        return
    a = Tile("A", *((depth, 16) if trans_a else (16, depth)), operand)
    b = Tile("B", *((16, depth) if trans_b else (depth, 16)), operand)
    c = Tile("C", 16, 16, out)
    values = [a.element("vk", "vi") if trans_a else a.element("vi", "vk")]
    values += [b.element("vj", "vk") if trans_b else b.element("vk", "vj")]
    if operand != out:
        values = [f'T.Cast("{_TYPES[out]}", {value})' for value in values]
    sums = c.element("vi", "vj")
    loops = [
        f"for i, j, k in T.grid(16, 16, {depth}):",
        '    with T.block("update"):',
        '        vi, vj, vk = T.axis.remap("SSR", [i, j, k])',
        f"        {sums} = {sums} + {values[0]} * {values[1]}",
    ]
    words = f'"{_WORDS[operand]}", "{_WORDS[operand]}", "{_WORDS[out]}"'
    body = [_LANES]
    for half in range(2):
        second = [f" + {tile.size // 2}" if half else "" for tile in (b, c)]
        operands = f"A.data, {a.begin}, B.data, {b.begin}{second[0]}, C.data, {c.begin}{second[1]}"
        body.append(
            f'T.evaluate(T.ptx_mma("{_TYPES[out]}", "m16n8k{depth}", "row", "col", {words}, {operands}, False))'
        )
    declared = [tile.parameter() for tile in (a, b, c)]
    reads = [c.region, a.region, b.region]
    texts = [_function(["A", "B", "C"], declared, reads, c.region, lines) for lines in (loops, body)]
    TensorIntrin.register(name, from_text(texts[0]), from_text(texts[1]))


def _store(name: str, dtype: str, scope: str, simple: str | None) -> None:
    c = Tile("C", 16, 16, dtype)
    loops = _nest(16, 16, f"D[vi, vj] = {c.element('vi', 'vj')}")
    if simple:
        row, column = "k % 4 // 2 * 8 + tx // 4", "k // 4 * 8 + tx % 4 * 2 + k % 2"
        body = [_LANES, "for k in range(8):", f"    D[{row}, {column}] = C[tx, k]"]
    else:
        given = f'16, 16, D.access_ptr("w"), C.data, {c.begin}, D_row'
        body = [_LANES, f'T.evaluate(T.mma_store("{_TYPES[dtype]}", {given}))']
    texts = [
        _function(
            ["C", "D"],
            [c.parameter(), *c.in_memory("D", _SCOPES[scope], has_strides)],
            [c.region],
            "D[0:16, 0:16]",
            lines,
        )
        for lines, has_strides in ((loops, False), (body, True))
    ]
    TensorIntrin.register(name, from_text(texts[0]), from_text(texts[1]))


def register_named(name: str) -> None:
    """Declare the intrinsic that the name means, if it means one."""
    for pattern, declare in ((_FILL, _fill), (_LOAD, _load), (_SYNC, _sync), (_STORE, _store)):
        found = pattern.fullmatch(name)
        if found is not None:
            declare(name, *found.groups())
