"""wmma: tiles of matrices that a warp holds as fragments: fill, load, multiply and add, store.

    wmma_fill_16x16x16_f32                       C[i, j] = 0
    wmma_load_16x16x16_f16_a_shared              A[i, k] = S[i, k], S in shared memory
    wmma_load_16x16x16_f16_b_trans_shared_dyn    B[j, k] = S[j, k], S in dynamic shared memory
    wmma_sync_16x16x16_f16f16f32                 C[i, j] += A[i, k] * B[k, j], in float32; with _trans B[j, k]
    wmma_store_16x16x16_f32_global               D[i, j] = C[i, j]

Operands are f16, bf16, s8 and u8, sums f16, f32 and s32; the sizes m × n × k are 16x16x16, 32x8x16 and 8x32x16. A
fragment is described as the tile that it holds, row by row; which lane has which element only the instructions know, so
nothing else may touch the memory. The names are those that TVM gave them.
"""

from __future__ import annotations

import re
from typing import Final

from loopwright.transform.tensor_intrinsics.declare import from_text
from loopwright.transform.tensor_intrinsics.registry import TensorIntrin

_TYPES: Final = {
    "f16": "float16",
    "bf16": "bfloat16",
    "s8": "int8",
    "u8": "uint8",
    "f32": "float32",
    "s32": "int32",
}
_SCOPES: Final = {"global": "global", "shared": "shared", "shared_dyn": "shared.dyn"}
_SIZES: Final = "16x16x16|32x8x16|8x32x16"
_SUMS: Final = {"f16f16f32", "f16f16f16", "bf16bf16f32", "s8s8s32", "u8u8s32"}
_FILL: Final = re.compile(rf"wmma_fill_({_SIZES})_(f16|f32|s32)")
_LOAD: Final = re.compile(rf"wmma_load_({_SIZES})_(f16|bf16|s8|u8)_(a|b)(_trans)?_(shared|shared_dyn)")
_SYNC: Final = re.compile(rf"wmma_sync_({_SIZES})_(f16|bf16|s8|u8)(f16|bf16|s8|u8)(f16|f32|s32)(_trans)?")
_STORE: Final = re.compile(rf"wmma_store_({_SIZES})_(f16|f32|s32)_(global|shared|shared_dyn)")

# The fragment that the tile at the beginning of a parameter is: rows of tiles first, tiles of a row side by side.
_INDEX: Final = (
    "{name}.elem_offset // {name}_row // {rows} * ({name}_row // {columns}) "
    "+ {name}.elem_offset % {name}_row // {columns}"
)


class Part:
    """A parameter: its name, shape, type and scope."""

    def __init__(self, name: str, rows: int, columns: int, dtype: str, scope: str) -> None:
        self.name, self.rows, self.columns, self.dtype, self.scope = name, rows, columns, _TYPES[dtype], scope

    def declared(self, has_strides: bool) -> list[str]:
        """The lines that declare it; `has_strides`: the rows may be any distance apart."""
        strides = f", strides=[{self.name}_row, 1]" if has_strides else ""
        shape = f"({self.rows}, {self.columns})"
        match = f'T.match_buffer(p_{self.name}, {shape}, "{self.dtype}", offset_factor={self.factor}'
        lines = [f"{self.name}_row = T.int32()"] if has_strides else []
        return [*lines, f'{self.name} = {match}, scope="{self.scope}"{strides})']

    @property
    def factor(self) -> int:
        """Of what its beginning is a multiple: a fragment is a whole tile, rows for ldmatrix begin at 16 bytes."""
        if self.scope.startswith("wmma"):
            return self.columns
        return 1 if self.name == "D" else 8 if self.dtype.endswith("16") else 16

    @property
    def region(self) -> str:
        return f"{self.name}[0:{self.rows}, 0:{self.columns}]"

    @property
    def index(self) -> str:
        """The number of its fragment."""
        return _INDEX.format(name=self.name, rows=self.rows, columns=self.columns)


def function_text(parts: list[Part], reads: list[str], writes: str, body: list[str], has_strides: bool) -> str:
    """A function of the parameters with these lines in its block."""
    lines = ["from loopwright.script import tir as T", "", "@T.prim_func"]
    lines += [f"def main({', '.join([f'p_{part.name}: T.handle' for part in parts])}):"]
    lines += [f"    {line}" for part in parts for line in part.declared(has_strides)]
    lines += ['    with T.block("root"):', f"        T.reads({', '.join(reads)})", f"        T.writes({writes})"]
    return "\n".join([*lines, *[f"        {line}" for line in body]]) + "\n"


def _register(name: str, parts: list[Part], reads: list[Part], written: Part, loops: list[str], call: str) -> None:
    regions = [part.region for part in reads]
    desc = function_text(parts, regions, written.region, loops, has_strides=False)
    impl = function_text(parts, regions, written.region, [f"T.evaluate({call})"], has_strides=True)
    TensorIntrin.register(name, from_text(desc), from_text(impl))


def _nest(rows: int, columns: int, store: str) -> list[str]:
    return [
        f"for i, j in T.grid({rows}, {columns}):",
        '    with T.block("update"):',
        '        vi, vj = T.axis.remap("SS", [i, j])',
        f"        {store}",
    ]


def _numbers(sizes: str) -> tuple[int, int, int]:
    m, n, k = [int(size) for size in sizes.split("x")]
    return m, n, k


def _fill(name: str, sizes: str, dtype: str) -> None:
    m, n, k = _numbers(sizes)
    c = Part("C", m, n, dtype, "wmma.accumulator")
    loops = _nest(m, n, f"C[vi, vj] = T.{_TYPES[dtype]}(0)")
    _register(name, [c], [], c, loops, f"T.tvm_fill_fragment(C.data, {m}, {n}, {k}, {c.index}, T.float32(0))")


def _load(name: str, sizes: str, dtype: str, which: str, trans: str | None, scope: str) -> None:
    m, n, k = _numbers(sizes)
    rows, columns = (m, k) if which == "a" else (k, n)
    rows, columns = (columns, rows) if trans else (rows, columns)
    s = Part("S", rows, columns, dtype, _SCOPES[scope])
    f = Part("F", rows, columns, dtype, f"wmma.matrix_{which}")
    layout = "col_major" if trans else "row_major"
    given = f'F.data, {m}, {n}, {k}, {f.index}, S.access_ptr("r"), S_row, "{layout}"'
    loops = _nest(rows, columns, "F[vi, vj] = S[vi, vj]")
    _register(name, [s, f], [s], f, loops, f"T.tvm_load_matrix_sync({given})")


def _sync(name: str, sizes: str, a_type: str, b_type: str, c_type: str, trans: str | None) -> None:
    if f"{a_type}{b_type}{c_type}" not in _SUMS:
        return
    m, n, k = _numbers(sizes)
    a = Part("A", m, k, a_type, "wmma.matrix_a")
    b = Part("B", *((n, k) if trans else (k, n)), b_type, "wmma.matrix_b")
    c = Part("C", m, n, c_type, "wmma.accumulator")
    values = ["A[vi, vk]", "B[vj, vk]" if trans else "B[vk, vj]"]
    if a_type != c_type:
        values = [f'T.Cast("{c.dtype}", {value})' for value in values]
    loops = [
        f"for i, j, k in T.grid({m}, {n}, {k}):",
        '    with T.block("update"):',
        '        vi, vj, vk = T.axis.remap("SSR", [i, j, k])',
        f"        C[vi, vj] = C[vi, vj] + {values[0]} * {values[1]}",
    ]
    given = f"C.data, {c.index}, A.data, {a.index}, B.data, {b.index}, C.data, {c.index}"
    _register(name, [a, b, c], [c, a, b], c, loops, f"T.tvm_mma_sync({given})")


def _store(name: str, sizes: str, dtype: str, scope: str) -> None:
    m, n, k = _numbers(sizes)
    c = Part("C", m, n, dtype, "wmma.accumulator")
    d = Part("D", m, n, dtype, _SCOPES[scope])
    given = f'C.data, {m}, {n}, {k}, {c.index}, D.access_ptr("w"), D_row, "row_major"'
    _register(name, [c, d], [c], d, _nest(m, n, "D[vi, vj] = C[vi, vj]"), f"T.tvm_store_matrix_sync({given})")


def register_named(name: str) -> None:
    """Declare the intrinsic that the name means, if it means one."""
    for pattern, declare in ((_FILL, _fill), (_LOAD, _load), (_SYNC, _sync), (_STORE, _store)):
        found = pattern.fullmatch(name)
        if found is not None:
            declare(name, *found.groups())
