"""Small programs to schedule: templates over a few sizes, each with one way to go wrong, and random chains of stages.

Everything is int32: sums come out the same in any order, so that two schedules can be compared bit for bit.
Convolutions are float64, of numbers that are exact there.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

from loopwright.ir import PrimFunc
from loopwright.script import from_source

_HEAD = "from loopwright.script import tir as T\n\n@T.prim_func\ndef main({arguments}):\n{body}"


@dataclass(frozen=True)
class Program:
    """A program in a shape that can be made smaller: a template at some sizes, or a sketch."""

    source: Template | Sketch
    sizes: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.source.name}({', '.join([str(size) for size in self.sizes])})"

    @property
    def function(self) -> PrimFunc:
        return _parsed(self.source.text(self.sizes))

    def smaller(self) -> Iterator[Program]:
        """Programs one notch simpler, the simplest first."""
        for source in self.source.smaller():
            yield replace(self, source=source)
        for position, size in enumerate(self.sizes):
            for less in sorted({1, 2, 3, size // 2, size - 1}):
                if 0 < less < size:
                    yield replace(self, sizes=(*self.sizes[:position], less, *self.sizes[position + 1 :]))


@lru_cache(maxsize=4096)
def _parsed(text: str) -> PrimFunc:
    function = from_source(text)
    assert isinstance(function, PrimFunc)
    return function


# --- templates ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Template:
    """A program as text; `n`, `m` and `k` in braces are its sizes, and braces may hold arithmetic with them."""

    name: str
    arguments: str  # "A: n, n+1; B: n as float64"
    body: str
    rank: int  # how many of n, m, k it uses

    def text(self, sizes: Sequence[int]) -> str:
        values = dict(zip("nmk", sizes, strict=False))
        arguments = []
        for argument in self.arguments.split(";"):
            name, shape = argument.split(":")
            shape, _, dtype = shape.partition(" as ")
            extents = ", ".join([str(eval(extent, {}, values)) for extent in shape.split(",")])
            arguments.append(f'{name.strip()}: T.Buffer(({extents},), "{dtype.strip() or "int32"}")')
        body = eval("f" + repr(self.body), {}, values)
        return _HEAD.format(arguments=", ".join(arguments), body=body.rstrip() + "\n")

    def smaller(self) -> Iterator[Template]:
        return iter(())

    def programs(self, choices: Sequence[int]) -> Iterator[Program]:
        """The template at every combination of sizes."""
        for sizes in product(choices, repeat=self.rank):
            yield Program(self, sizes)


def _read(text: str) -> list[Template]:
    """Templates as they stand below: `== name | sizes | arguments`, then the body."""
    found = []
    for part in text.split("\n== ")[1:]:
        head, _, body = part.partition("\n")
        name, sizes, arguments = head.split("|")
        indented = "\n".join(["    " + line for line in body.rstrip().split("\n")])
        found.append(Template(name.strip(), arguments.strip(), indented, len(sizes.split())))
    return found


TEMPLATES = _read(
    """
== chain | n | A: n; C: n
B = T.alloc_buffer(({n},), "int32")
for i in range({n}):
    with T.block("B"):
        vi = T.axis.spatial({n}, i)
        B[vi] = A[vi] + 1
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = B[vi] * 2

== chain_of_three | n m | A: n, m; D: n, m
B = T.alloc_buffer(({n}, {m}), "int32")
C = T.alloc_buffer(({n}, {m}), "int32")
for i, j in T.grid({n}, {m}):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = A[vi, vj] + 1
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = B[vi, vj] * 2
for i, j in T.grid({n}, {m}):
    with T.block("D"):
        vi, vj = T.axis.remap("SS", [i, j])
        D[vi, vj] = C[vi, vj] - B[vi, vj]

== shifted_reader | n | A: n+1; C: n
B = T.alloc_buffer(({n+1},), "int32")
for i in range({n+1}):
    with T.block("B"):
        vi = T.axis.spatial({n+1}, i)
        B[vi] = A[vi] + 1
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = B[vi + 1] * 2

== reversed_reader | n | A: n; C: n
B = T.alloc_buffer(({n},), "int32")
for i in range({n}):
    with T.block("B"):
        vi = T.axis.spatial({n}, i)
        B[vi] = A[vi] + 1
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = B[{n-1} - vi] * 2

== strided_reader | n | A: 2*n; C: n
B = T.alloc_buffer(({2*n},), "int32")
for i in range({2*n}):
    with T.block("B"):
        vi = T.axis.spatial({2*n}, i)
        B[vi] = A[vi] + 1
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = B[vi * 2] * B[vi * 2 + 1]

== even_and_odd_writers | n | A: n; C: 2*n
B = T.alloc_buffer(({2*n},), "int32")
for i in range({n}):
    with T.block("even"):
        vi = T.axis.spatial({n}, i)
        B[vi * 2] = A[vi] + 1
for i in range({n}):
    with T.block("odd"):
        vi = T.axis.spatial({n}, i)
        B[vi * 2 + 1] = A[vi] * 3
for i in range({2*n}):
    with T.block("C"):
        vi = T.axis.spatial({2*n}, i)
        C[vi] = B[vi] * 2

== around_and_halved | n | A: n; C: n; D: n
B = T.alloc_buffer(({n},), "int32")
for i in range({n}):
    with T.block("B"):
        vi = T.axis.spatial({n}, i)
        B[vi] = A[vi] + 1
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = B[(vi + 1) % {n}] * 2
for i in range({n}):
    with T.block("D"):
        vi = T.axis.spatial({n}, i)
        D[vi] = B[vi // 2] * 3

== recurrence | n | A: n+1; X: n
for i in range({n}):
    with T.block("A"):
        vi = T.axis.opaque({n}, i)
        A[vi + 1] = A[vi] * 3 + X[vi]

== recurrence_that_looks_spatial | n | A: n+1; C: n+1
for i in range({n}):
    with T.block("A"):
        vi = T.axis.spatial({n}, i)
        A[vi + 1] = A[vi] * 3
for i in range({n+1}):
    with T.block("C"):
        vi = T.axis.spatial({n+1}, i)
        C[vi] = A[vi] + 1

== from_the_right | n | A: n+1
for i in range({n}):
    with T.block("A"):
        vi = T.axis.spatial({n}, i)
        A[vi] = A[vi + 1] * 3

== skewed_recurrence | n m | A: n+1, m+1
for i, j in T.grid({n}, {m}):
    with T.block("A"):
        vi, vj = T.axis.remap("SS", [i, j])
        A[vi + 1, vj] = A[vi, vj + 1] * 3

== diagonal_recurrence | n m | A: n+1, m+1
for i, j in T.grid({n}, {m}):
    with T.block("A"):
        vi, vj = T.axis.remap("SS", [i, j])
        A[vi + 1, vj + 1] = A[vi, vj] * 3

== stencil_with_halo | n m | A: n+2, m+1; C: n, m
B = T.alloc_buffer(({n+2}, {m+1}), "int32")
for i, j in T.grid({n+2}, {m+1}):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = A[vi, vj] + 1
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = B[vi, vj] + B[vi + 1, vj] * 2 + B[vi + 2, vj + 1] * 3

== stencil_in_place | n m | A: n+1, m+1
for i, j in T.grid({n}, {m}):
    with T.block("A"):
        vi, vj = T.axis.remap("SS", [i, j])
        A[vi + 1, vj + 1] = A[vi, vj + 1] + A[vi + 1, vj] * 2

== matmul | n m k | A: n, k; B: k, m; C: n, m
for i, j, l in T.grid({n}, {m}, {k}):
    with T.block("C"):
        vi, vj, vl = T.axis.remap("SSR", [i, j, l])
        with T.init():
            C[vi, vj] = 0
        C[vi, vj] = C[vi, vj] + A[vi, vl] * B[vl, vj]

== matmul_of_a_map | n m k | X: n, k; B: k, m; D: n, m
A = T.alloc_buffer(({n}, {k}), "int32")
C = T.alloc_buffer(({n}, {m}), "int32")
for i, j in T.grid({n}, {k}):
    with T.block("A"):
        vi, vj = T.axis.remap("SS", [i, j])
        A[vi, vj] = X[vi, vj] + 1
for i, j, l in T.grid({n}, {m}, {k}):
    with T.block("C"):
        vi, vj, vl = T.axis.remap("SSR", [i, j, l])
        with T.init():
            C[vi, vj] = 0
        C[vi, vj] = C[vi, vj] + A[vi, vl] * B[vl, vj]
for i, j in T.grid({n}, {m}):
    with T.block("D"):
        vi, vj = T.axis.remap("SS", [i, j])
        D[vi, vj] = T.max(C[vi, vj], 0)

== matmul_map_matmul | n m | A: n, m; B: m, m; F: m, n; E: n, n
C = T.alloc_buffer(({n}, {m}), "int32")
D = T.alloc_buffer(({n}, {m}), "int32")
for i, j, l in T.grid({n}, {m}, {m}):
    with T.block("C"):
        vi, vj, vl = T.axis.remap("SSR", [i, j, l])
        with T.init():
            C[vi, vj] = 0
        C[vi, vj] = C[vi, vj] + A[vi, vl] * B[vl, vj]
for i, j in T.grid({n}, {m}):
    with T.block("D"):
        vi, vj = T.axis.remap("SS", [i, j])
        D[vi, vj] = C[vi, vj] * 5 + 1
for i, j, l in T.grid({n}, {n}, {m}):
    with T.block("E"):
        vi, vj, vl = T.axis.remap("SSR", [i, j, l])
        with T.init():
            E[vi, vj] = 0
        E[vi, vj] = E[vi, vj] + D[vi, vl] * F[vl, vj]

== row_and_column_sums | n m | A: n, m; R: n; S: m
B = T.alloc_buffer(({n}, {m}), "int32")
for i, j in T.grid({n}, {m}):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = A[vi, vj] * 2
for i, j in T.grid({n}, {m}):
    with T.block("R"):
        vi, vj = T.axis.remap("SR", [i, j])
        with T.init():
            R[vi] = 0
        R[vi] = R[vi] + B[vi, vj]
for i, j in T.grid({n}, {m}):
    with T.block("S"):
        vi, vj = T.axis.remap("RS", [i, j])
        with T.init():
            S[vj] = 1
        S[vj] = S[vj] + B[vi, vj]

== normalised_rows | n m | A: n, m; C: n, m
S = T.alloc_buffer(({n},), "int32")
for i, j in T.grid({n}, {m}):
    with T.block("S"):
        vi, vj = T.axis.remap("SR", [i, j])
        with T.init():
            S[vi] = -1000
        S[vi] = T.max(S[vi], A[vi, vj])
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = A[vi, vj] - S[vi]

== first_largest | n m | A: n, m; I: n; V: n
for i, j in T.grid({n}, {m}):
    with T.block("V"):
        vi, vj = T.axis.remap("SR", [i, j])
        with T.init():
            I[vi] = -1
            V[vi] = -1000
        x: T.int32 = T.Select(V[vi] > A[vi, vj] or (V[vi] == A[vi, vj] and I[vi] <= vj), I[vi], vj)
        y: T.int32 = T.max(V[vi], A[vi, vj])
        I[vi] = x
        V[vi] = y

== sum_without_init | n m | A: n, m; S: n; C: n
for i, j in T.grid({n}, {m}):
    with T.block("S"):
        vi, vj = T.axis.remap("SR", [i, j])
        S[vi] = S[vi] + A[vi, vj]
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = S[vi] * 2

== sliding_sum | n m | A: n+m-1; W: m; C: n
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SR", [i, j])
        with T.init():
            C[vi] = 0
        C[vi] = C[vi] + A[vi + vj] * W[vj]

== overwritten_half | n | A: n; X: n; C: n
B = T.alloc_buffer(({n},), "int32")
for i in range({n}):
    with T.block("B"):
        vi = T.axis.spatial({n}, i)
        B[vi] = A[vi] + 1
for i in range({n}):
    with T.block("half"):
        vi = T.axis.spatial({n}, i)
        T.where(i < {(n+1)//2})
        B[vi] = X[vi] * 3
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = B[vi] * 2

== written_twice | n | A: n; C: n
for i in range({n}):
    with T.block("first"):
        vi = T.axis.spatial({n}, i)
        C[vi] = A[vi] + 1
for i in range({n}):
    with T.block("again"):
        vi = T.axis.spatial({n}, i)
        C[vi] = C[vi] * A[{n-1} - vi]

== read_then_overwritten | n | A: n+1; X: n+1; C: n
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = A[vi + 1] * 2
for i in range({n+1}):
    with T.block("A"):
        vi = T.axis.spatial({n+1}, i)
        A[vi] = X[vi] + 1

== last_writer_wins | n m | A: n, m; C: n
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi] = A[vi, vj] + 1

== guarded_tail | n | A: n; C: n
B = T.alloc_buffer(({n},), "int32")
for i, j in T.grid({(n+1)//2}, 2):
    with T.block("B"):
        vi = T.axis.spatial({n}, i * 2 + j)
        T.where(i * 2 + j < {n})
        B[vi] = A[vi] + 1
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = B[vi] * 2

== triangle | n | A: n, n; C: n, n
for i, j in T.grid({n}, {n}):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        T.where(j < i + 1)
        C[vi, vj] = A[vj, vi] + C[vj, vi]

== transpose | n m | A: n, m; C: m, n
B = T.alloc_buffer(({n}, {m}), "int32")
for i, j in T.grid({n}, {m}):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = A[vi, vj] + 1
for i, j in T.grid({m}, {n}):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = B[vj, vi] * 2

== diagonal_reader | n | A: n, n; C: n
B = T.alloc_buffer(({n}, {n}), "int32")
for i, j in T.grid({n}, {n}):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = A[vi, vj] + 1
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = B[vi, vi] * 2

== broadcast | n m | X: n; A: n, m; C: n, m
B = T.alloc_buffer(({n},), "int32")
for i in range({n}):
    with T.block("B"):
        vi = T.axis.spatial({n}, i)
        B[vi] = X[vi] + 1
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = B[vi] * A[vi, vj]

== output_read_again | n | A: n; B: n; C: n
for i in range({n}):
    with T.block("B"):
        vi = T.axis.spatial({n}, i)
        B[vi] = A[vi] + 1
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = B[vi] * B[0]

== two_statements_in_a_loop | n m | A: n, m; B: n; C: n, m
for i in range({n}):
    with T.block("B"):
        vi = T.axis.spatial({n}, i)
        B[vi] = A[vi, 0] + 1
    for j in range({m}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi] * A[vi, vj]

== statements_that_need_each_other | n | A: n+1; B: n
for i in range({n}):
    with T.block("B"):
        vi = T.axis.spatial({n}, i)
        B[vi] = A[vi] * 2
    with T.block("A"):
        vi = T.axis.spatial({n}, i)
        A[vi + 1] = B[vi] + 1

== reused_scratch | n m | A: n, m; C: n, m
B = T.alloc_buffer(({m},), "int32")
for i in range({n}):
    for j in range({m}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vj] = A[vi, vj] + 1
    for j in range({m}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[{m-1} - vj] * 2

== running_total | n | A: n; C: n
B = T.alloc_buffer(({n+1},), "int32")
with T.block("start"):
    B[0] = 0
for i in range({n}):
    with T.block("B"):
        vi = T.axis.opaque({n}, i)
        B[vi + 1] = B[vi] + A[vi]
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = B[vi + 1] * 2

== padded_reader | n | A: n; C: n+1
B = T.alloc_buffer(({n},), "int32")
for i in range({n}):
    with T.block("B"):
        vi = T.axis.spatial({n}, i)
        B[vi] = A[vi] + 1
for i in range({n+1}):
    with T.block("C"):
        vi = T.axis.spatial({n+1}, i)
        C[vi] = T.if_then_else(vi > 0, B[vi - 1], 0) * 2

== padding | n m | A: n, m; C: n, m
B = T.alloc_buffer(({n+2}, {m+1}), "int32")
for i, j in T.grid({n+2}, {m+1}):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = T.if_then_else(vi >= 1 and vi < {n+1} and vj < {m}, A[vi - 1, vj], 0)
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = B[vi, vj] + B[vi + 2, vj + 1]

== padding_of_itself | n | A: n+1
for i in range({n+1}):
    with T.block("A"):
        vi = T.axis.spatial({n+1}, i)
        A[vi] = T.if_then_else(vi < {n}, A[vi + 1] * 2, 7)

== padding_and_more | n | A: n; C: n+2; D: n+2
for i in range({n+2}):
    with T.block("C"):
        vi = T.axis.spatial({n+2}, i)
        C[vi] = T.Select(vi != 1, 3, 5)
    with T.block("D"):
        vi = T.axis.spatial({n+2}, i)
        D[vi] = T.if_then_else(1 <= vi and vi <= {n}, A[vi - 1] + C[vi], 1)

== tiled_halo | n | A: 2*n+2; C: 2*n
B = T.alloc_buffer(({2*n+2},), "int32")
for i0 in range({n}):
    for ax in range(4):
        with T.block("B"):
            vi = T.axis.spatial({2*n+2}, i0 * 2 + ax)
            B[vi] = A[vi] + 1
    for i1 in range(2):
        with T.block("C"):
            vi = T.axis.spatial({2*n}, i0 * 2 + i1)
            C[vi] = B[vi] + B[vi + 2]

== tiled_halo_2d | n m | A: n+1, 2*m+1; C: n, 2*m
B = T.alloc_buffer(({n+1}, {2*m+1}), "int32")
for i, j0 in T.grid({n}, {m}):
    for ax0, ax1 in T.grid(2, 3):
        with T.block("B"):
            vi = T.axis.spatial({n+1}, i + ax0)
            vj = T.axis.spatial({2*m+1}, j0 * 2 + ax1)
            B[vi, vj] = A[vi, vj] + 1
    for j1 in range(2):
        with T.block("C"):
            vi = T.axis.spatial({n}, i)
            vj = T.axis.spatial({2*m}, j0 * 2 + j1)
            C[vi, vj] = B[vi, vj] + B[vi + 1, vj + 1]

== resized | n m | A: n, m; C: 2*n, m
for i, j in T.grid({2*n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = A[vi // 2, vj] + A[vi // 2, {m-1} - vj]

== two_dead_buffers | n | A: n; E: n
B = T.alloc_buffer(({n},), "int32")
C = T.alloc_buffer(({n},), "int32")
D = T.alloc_buffer(({n+1}, 1), "int32")
for i in range({n}):
    with T.block("B"):
        vi = T.axis.spatial({n}, i)
        B[vi] = A[vi] + 1
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = B[{n-1} - vi] * 2
for i in range({n}):
    with T.block("D"):
        vi = T.axis.spatial({n}, i)
        D[vi, 0] = C[vi] - 3
for i in range({n}):
    with T.block("E"):
        vi = T.axis.spatial({n}, i)
        E[vi] = D[vi, 0] + C[vi]

== if_around_a_block | n m | A: n, m; C: n, m
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = A[vi, vj] + 1
for i, j in T.grid({n}, {m}):
    if i != j:
        with T.block("C2"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = C[vi, vj] * 3

== squared_reader | n | A: n; C: n
B = T.alloc_buffer(({n},), "int32")
for i in range({n}):
    with T.block("B"):
        vi = T.axis.spatial({n}, i)
        B[vi] = A[vi] + 1
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = B[vi * vi % {n}] * B[T.min(vi + 1, {n-1})]

== squared_writer | n | A: n; X: n; C: n
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = A[vi] + 1
for i in range({n}):
    with T.block("again"):
        vi = T.axis.spatial({n}, i)
        C[vi * vi % {n}] = X[vi] * 3

== gather | n | A: n; I: n; C: n
B = T.alloc_buffer(({n},), "int32")
for i in range({n}):
    with T.block("B"):
        vi = T.axis.spatial({n}, i)
        B[vi] = A[vi] + 1
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = B[I[vi] % {n}] * 2

== scatter | n | A: n; I: n; C: n
B = T.alloc_buffer(({n},), "int32")
for i in range({n}):
    with T.block("zero"):
        vi = T.axis.spatial({n}, i)
        B[vi] = 0
for i in range({n}):
    with T.block("B"):
        vi = T.axis.spatial({n}, i)
        B[I[vi] % {n}] = A[vi] + 1
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = B[vi] * 2

== written_where_positive | n | A: n; C: n; D: n
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = A[vi] + 1
for i in range({n}):
    with T.block("again"):
        vi = T.axis.spatial({n}, i)
        if A[vi] > 0:
            C[vi] = A[{n-1} - vi] * 3
for i in range({n}):
    with T.block("D"):
        vi = T.axis.spatial({n}, i)
        D[vi] = C[vi] * 2

== same_axes_other_values | n | A: n; C: n
S = T.alloc_buffer((1,), "int32")
R = T.alloc_buffer((1,), "int32")
for i in range({n}):
    with T.block("S"):
        vi = T.axis.spatial({n}, i)
        S[0] = A[vi] + 1
    with T.block("R"):
        v0 = T.axis.spatial(1, 0)
        R[v0] = S[v0] * 2
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = R[0] * 3

== repeated_sum | n m | A: m; B: m; C: n
S = T.alloc_buffer((1,), "int32")
for i in range({n}):
    for j in range({m}):
        with T.block("S"):
            v0 = T.axis.spatial(1, 0)
            vj = T.axis.reduce({m}, j)
            with T.init():
                S[v0] = 0
            S[v0] = S[v0] + A[vj]
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = S[0] * 3
    for j in range({m}):
        with T.block("A"):
            vj = T.axis.spatial({m}, j)
            A[vj] = A[vj] + B[vj]

== private_sum | n m | A: n, m; D: n
C = T.alloc_buffer(({n},), "int32", scope="local")
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SR", [i, j])
        with T.init():
            C[vi] = 0
        C[vi] = C[vi] + A[vi, vj]
for i in range({n}):
    with T.block("D"):
        vi = T.axis.spatial({n}, i)
        D[vi] = C[vi] * 2

== flat_sum | n m | A: n, m; C: n
for f in range({n*m}):
    with T.block("C"):
        vi = T.axis.spatial({n}, f // {m})
        vj = T.axis.reduce({m}, f % {m})
        with T.init():
            C[vi] = 0
        C[vi] = C[vi] + A[vi, vj]

== minus | n m k | A: n, m, k; C: n
for i, j, l in T.grid({n}, {m}, {k}):
    with T.block("C"):
        vi, vj, vl = T.axis.remap("SRR", [i, j, l])
        with T.init():
            C[vi] = 1
        C[vi] = C[vi] - A[vi, vj, vl]

== sum_of_several | n m | A: n, m; B: n, m; C: n
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SR", [i, j])
        with T.init():
            C[vi] = 0
        C[vi] = A[vi, vj] + (C[vi] + B[vi, vj]) - 3

== sum_where_positive | n m | A: n, m; C: n
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SR", [i, j])
        with T.init():
            C[vi] = 0
        C[vi] = T.Select(A[vi, vj] > 0, C[vi] + A[vi, vj], C[vi])

== product_by_gains | n m | A: n, m; C: n
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SR", [i, j])
        with T.init():
            C[vi] = 1
        C[vi] = C[vi] + C[vi] * A[vi, vj]

== parity | n m | A: n, m; C: n
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SR", [i, j])
        with T.init():
            C[vi] = 0
        C[vi] = T.bitwise_xor(C[vi], A[vi, vj])

== narrow_sum | n m | A: n, m; C: n as int8
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SR", [i, j])
        with T.init():
            C[vi] = T.int8(0)
        C[vi] = T.Cast("int8", T.Cast("int32", C[vi]) + A[vi, vj] * 100)

== largest_by_hand | n m k | A: n, m, k; C: n
for i, j, l in T.grid({n}, {m}, {k}):
    with T.block("C"):
        vi, vj, vl = T.axis.remap("SRR", [i, j, l])
        with T.init():
            C[vi] = -1000
        C[vi] = T.Select(C[vi] > A[vi, vj, vl], C[vi], A[vi, vj, vl])

== two_sums_of_one_cell | n m | A: n, m; B: n, m; C: n
for i, j in T.grid({n}, {m}):
    with T.block("first"):
        vi, vj = T.axis.remap("SR", [i, j])
        with T.init():
            C[vi] = 0
        C[vi] = C[vi] + A[vi, vj]
for i, j in T.grid({n}, {m}):
    with T.block("second"):
        vi, vj = T.axis.remap("SR", [i, j])
        C[vi] = B[vi, vj] + C[vi]

== horner | n m k | A: n, m, k; C: n
for i, j, l in T.grid({n}, {m}, {k}):
    with T.block("C"):
        vi, vj, vl = T.axis.remap("SRR", [i, j, l])
        with T.init():
            C[vi] = 0
        C[vi] = C[vi] * 2 + A[vi, vj, vl]

== alternating_sum | n m k | A: n, m, k; C: n
for i, j, l in T.grid({n}, {m}, {k}):
    with T.block("C"):
        vi, vj, vl = T.axis.remap("SRR", [i, j, l])
        with T.init():
            C[vi] = 0
        C[vi] = A[vi, vj, vl] - C[vi]

== last_positive | n m k | A: n, m, k; C: n
for i, j, l in T.grid({n}, {m}, {k}):
    with T.block("C"):
        vi, vj, vl = T.axis.remap("SRR", [i, j, l])
        with T.init():
            C[vi] = 0
        C[vi] = T.Select(A[vi, vj, vl] > 0, A[vi, vj, vl], C[vi])

== last_of_a_row | n m k | A: n, m, k; C: n
for i, j, l in T.grid({n}, {m}, {k}):
    with T.block("C"):
        vi, vj, vl = T.axis.remap("SRR", [i, j, l])
        with T.init():
            C[vi] = 0
        C[vi] = A[vi, vj, vl]

== decay_of_a_map | n m | X: n, m; D: n
A = T.alloc_buffer(({n}, {m}), "int32")
C = T.alloc_buffer(({n},), "int32")
for i, j in T.grid({n}, {m}):
    with T.block("A"):
        vi, vj = T.axis.remap("SS", [i, j])
        A[vi, vj] = X[vi, vj] + 1
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SR", [i, j])
        with T.init():
            C[vi] = 1
        old: T.int32 = C[vi] * 3
        C[vi] = C[vi] - old + A[vi, vj]
for i in range({n}):
    with T.block("D"):
        vi = T.axis.spatial({n}, i)
        D[vi] = C[vi] + 1

== saturating_sum | n m k | A: n, m, k; C: n
for i, j, l in T.grid({n}, {m}, {k}):
    with T.block("C"):
        vi, vj, vl = T.axis.remap("SRR", [i, j, l])
        with T.init():
            C[vi] = 0
        C[vi] = T.min(T.max(C[vi] + A[vi, vj, vl], -2), 2)

== narrow_largest | n m k | A: n, m, k; C: n as int8
for i, j, l in T.grid({n}, {m}, {k}):
    with T.block("C"):
        vi, vj, vl = T.axis.remap("SRR", [i, j, l])
        with T.init():
            C[vi] = T.int8(-128)
        C[vi] = T.Cast("int8", T.max(T.Cast("int32", C[vi]), A[vi, vj, vl] * 100))

== sum_up_to_a_limit | n m k | A: n, m, k; C: n
for i, j, l in T.grid({n}, {m}, {k}):
    with T.block("C"):
        vi, vj, vl = T.axis.remap("SRR", [i, j, l])
        with T.init():
            C[vi] = 0
        C[vi] = T.if_then_else(C[vi] < 2, C[vi] + A[vi, vj, vl], C[vi])

== sum_of_what_it_points_to | n m k | A: n, m, k; C: n
for i, j, l in T.grid({n}, {m}, {k}):
    with T.block("C"):
        vi, vj, vl = T.axis.remap("SRR", [i, j, l])
        with T.init():
            C[vi] = 0
        C[vi] = C[vi] + A[vi, vj, (C[vi] + vl) % {k}]

== start_from_its_own_cell | n m | A: n, m; C: n
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SR", [i, j])
        with T.init():
            C[vi] = C[vi] * 2
        C[vi] = C[vi] + A[vi, vj]

== starts_in_one_cell | n m | A: n, m; C: n
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SR", [i, j])
        with T.init():
            C[vi // 2] = 7
        C[vi // 2] = C[vi // 2] + A[vi, vj]

== one_start_for_all_rows | n m | A: n, m; C: n
for j, i in T.grid({m}, {n}):
    with T.block("C"):
        vi, vj = T.axis.remap("SR", [i, j])
        with T.init():
            C[vi // 2] = vi
        C[vi // 2] = C[vi // 2] + A[vi, vj]

== rows_start_from_what_is_there | n m | A: n, m; C: n
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SR", [i, j])
        with T.init():
            C[vi // 2] = C[0] + 7
        C[vi // 2] = C[vi // 2] + A[vi, vj]

== filled_again_and_one_cell_read | n m | A: n, n+m; C: n+m
B = T.alloc_buffer(({n + m},), "int32")
for t in range({n}):
    for i in range({n + m}):
        with T.block("B"):
            vi, vt = T.axis.remap("SS", [i, t])
            B[vi] = A[vt, vi] + vt
    with T.block("C"):
        v = T.axis.spatial({n + m}, t)
        C[v] = B[v] * 2

== filled_again_and_read_backwards | n m | C: n, n
B = T.alloc_buffer(({n},), "int32")
for t in range({n}):
    for i in range({n}):
        with T.block("B"):
            vi, vt = T.axis.remap("SS", [i, t])
            B[vi] = vi * 5 + vt
    for i in range({n}):
        with T.block("C"):
            vi = T.axis.spatial({n}, i)
            vt = T.axis.spatial({n}, {n - 1} - t)
            C[vt, vi] = B[{n - 1} - vi]

== filled_again_with_the_same | n m | A: n+m; C: n+m
B = T.alloc_buffer(({n + m},), "int32")
for t in range({n}):
    for i in range({n + m}):
        with T.block("B"):
            vi = T.axis.spatial({n + m}, i)
            B[vi] = A[vi] + 1
    with T.block("C"):
        v = T.axis.spatial({n + m}, t)
        C[v] = B[v]

== what_the_last_iteration_left | n m | A: n, m; C: n, m
B = T.alloc_buffer(({m},), "int32")
for j in range({m}):
    with T.block("start"):
        vj = T.axis.spatial({m}, j)
        B[vj] = 3
for t in range({n}):
    for j in range({m}):
        with T.block("C"):
            vt, vj = T.axis.remap("SS", [t, j])
            C[vt, vj] = B[vj]
    for j in range({m}):
        with T.block("B"):
            vt, vj = T.axis.remap("SS", [t, j])
            B[vj] = A[vt, vj] - vt

== two_rows_in_turn | n m | A: n, m; C: n, m
B = T.alloc_buffer((2, {m}), "int32")
for t in range({n}):
    for j in range({m}):
        with T.block("B"):
            vt, vj = T.axis.remap("SS", [t, j])
            B[vt % 2, vj] = A[vt, vj] + 1
    for j in range({m}):
        with T.block("C"):
            vt, vj = T.axis.remap("SS", [t, j])
            C[vt, vj] = B[vt % 2, vj] * 2

== start_from_a_neighbour | n m | A: n, m; C: n
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SR", [i, j])
        with T.init():
            C[vi] = C[(vi + 1) % {n}] + 1
        C[vi] = C[vi] + A[vi, vj]

== sums_of_a_triangle | n | A: n; C: n
for i in range({n}):
    for j in range(i):
        with T.block("C"):
            vi = T.axis.spatial({n}, i)
            vj = T.axis.reduce({n}, j)
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vj]

== cells_of_negative_extents | n m | A: n, n, n; C: n, n, n
for i in range({n}):
    for j, k in T.grid(i - 1, i - {m}):
        with T.block("C"):
            vi, vj, vk = T.axis.spatial({n}, i), T.axis.spatial({n}, j), T.axis.spatial({n}, k)
            C[vi, vj, vk] = A[vi, vj, vk] + 4

== sums_of_negative_extents | n m | A: n, n, n; C: n, n
for i in range({n}):
    for j, k in T.grid(i - 1, i - {m}):
        with T.block("C"):
            vi, vj, vk = T.axis.spatial({n}, i), T.axis.spatial({n}, j), T.axis.reduce({n}, k)
            with T.init():
                C[vi, vj] = 5
            C[vi, vj] = C[vi, vj] + A[vi, vj, vk] + 4

== rows_of_negative_extents | n m | A: n, n, n; C: n; D: n, n
B = T.alloc_buffer(({n}, {n}, {n}), "int32")
for i in range({n}):
    for j, k in T.grid(i - 1, i - {m}):
        with T.block("B"):
            vi, vj, vk = T.axis.spatial({n}, i), T.axis.spatial({n}, j), T.axis.spatial({n}, k)
            B[vi, vj, vk] = A[vi, vj, vk] * 3
    for j, k in T.grid(i - 1, i - {m}):
        with T.block("C"):
            vi, vj, vk = T.axis.spatial({n}, i), T.axis.reduce({n}, j), T.axis.reduce({n}, k)
            with T.init():
                C[vi] = 5
            C[vi] = C[vi] + B[vi, vj, vk] + 4
    for j in range({n} - 1 - i - i):
        with T.block("D"):
            vi, vj = T.axis.spatial({n}, i), T.axis.spatial({n}, j)
            D[vi, vj] = vi * 7 + vj

== triangle_that_reads_within_bounds | n | A: n; C: n, n
B = T.alloc_buffer(({n}, {n}), "int32")
for i in range({n}):
    for j in range(i):
        with T.block("B"):
            vi, vj = T.axis.spatial({n}, i), T.axis.spatial({n}, j)
            B[vi, vj] = A[vi - vj - 1]
for i, j in T.grid({n}, {n}):
    with T.block("C"):
        vi, vj = T.axis.spatial({n}, i), T.axis.spatial({n}, j)
        C[vi, vj] = T.if_then_else(vj < vi, B[vi, vj], 0)

== upper_triangles | n | A: n, n; C: n, n; D: n
B = T.alloc_buffer(({n}, {n}), "int32")
for i in range({n}):
    for j in range(i, {n}):
        with T.block("B"):
            vi, vj = T.axis.spatial({n}, i), T.axis.spatial({n}, j)
            B[vi, vj] = A[vi, vj - vi]
for i in range({n}):
    for j in range(i, {n}):
        with T.block("C"):
            vi, vj = T.axis.spatial({n}, i), T.axis.spatial({n}, j)
            C[vj, vi] = B[vi, vj] * 2
for i in range({n}):
    for j in range(1, i):
        with T.block("D"):
            vi, vj = T.axis.spatial({n}, i), T.axis.reduce({n}, j)
            with T.init():
                D[vi] = 1
            D[vi] = D[vi] + A[vi - vj, vj]

== every_other_cell | n | A: n; C: 2*n; D: n
B = T.alloc_buffer(({2*n},), "int32")
for i in range({n}):
    with T.block("B"):
        vi = T.axis.spatial({2*n}, i * 2)
        B[vi] = T.if_then_else(vi % 2 == 0, A[vi // 2], 0)
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({2*n}, i * 2)
        C[vi] = B[vi] + 1
for i in range({n}):
    with T.block("D"):
        vi = T.axis.spatial({n}, i)
        D[vi] = B[vi * 2] // (vi + 1)

== band_of_a_matrix | n m | A: m; C: n, n+m-1
B = T.alloc_buffer(({n}, {n+m-1}), "int32")
for i, j in T.grid({n}, {m}):
    with T.block("B"):
        vi, vj = T.axis.spatial({n}, i), T.axis.spatial({n+m-1}, i + j)
        B[vi, vj] = A[vj - vi] * 2
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.spatial({n}, i), T.axis.spatial({n+m-1}, i + j)
        C[vi, vj] = B[vi, vj] + 1

== sums_of_two_kinds_in_one_block | n m | C: n; D: n
for j in range({m}):
    for i in range({n}):
        with T.block("first"):
            vi, vj = T.axis.spatial({n}, i), T.axis.opaque({m}, j)
            C[vi] = vj * 3 + vi
            D[vi] = vi - vj
    for i in range({n}):
        with T.block("second"):
            vi, vj = T.axis.spatial({n}, i), T.axis.opaque({m}, j)
            C[vi] = C[vi] + D[vi]
            D[vi] = C[vi] - vj

== no_update_at_all | n m | A: n, m; C: n
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SR", [i, j])
        T.where(j >= {m})
        with T.init():
            C[vi] = 5
        C[vi] = C[vi] + A[vi, vj]

== updates_of_some_rows | n m | A: n, m; C: n
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SR", [i, j])
        T.where(i >= 1 and (j + 1) % 2 == 2)
        with T.init():
            C[vi] = 5
        C[vi] = C[vi] + A[vi, vj]

== updates_below_a_line | n m k | A: n, m, k; C: n
for i, j, l in T.grid({n}, {m}, {k}):
    with T.block("C"):
        vi, vj, vl = T.axis.remap("SRR", [i, j, l])
        T.where(i * {m} + j < {n} and l >= i)
        with T.init():
            C[vi] = 5
        C[vi] = C[vi] + A[vi, vj, vl]

== start_that_reads | n m | A: n, m; B: n; C: n
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SR", [i, j])
        with T.init():
            C[vi] = B[vi] * 2
        C[vi] = C[vi] + A[vi, vj]

== starts_from_what_the_row_computes | n m | A: n, m; S: n; C: n; D: n
B = T.alloc_buffer(({n},), "int32")
for i in range({n}):
    with T.block("B"):
        vi = T.axis.spatial({n}, i)
        B[vi] = S[vi] + 1
    for j in range({m}):
        with T.block("C"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                C[vi] = B[vi] * 2
            C[vi] = C[vi] + A[vi, vj]
    with T.block("D"):
        vi = T.axis.spatial({n}, i)
        D[vi] = C[vi] + B[vi]

== starts_from_the_sum_before | n m | A: n, m; C: n; D: n
for i in range({n}):
    for j in range({m}):
        with T.block("C"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                C[vi] = vi
            C[vi] = C[vi] + A[vi, vj]
    for j in range({m}):
        with T.block("D"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                D[vi] = C[vi] * 3
            D[vi] = D[vi] + A[vi, vj] * A[vi, vj]

== starts_from_a_neighbour | n m | A: n, m; C: n+1
for i in range({n}):
    for j in range({m}):
        with T.block("C"):
            vi, vj = T.axis.opaque({n}, i), T.axis.reduce({m}, j)
            with T.init():
                C[vi + 1] = C[vi] * 3
            C[vi + 1] = C[vi + 1] + A[vi, vj]

== sums_under_a_diagonal | n m | A: n, m; C: n
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SR", [i, j])
        T.where(i + j < {m})
        with T.init():
            C[vi] = 0
        C[vi] = C[vi] + A[vi, vj]

== axes_below_zero | n | A: n; B: n+2
for i in T.serial(-2, {n}):
    with T.block("B"):
        vi = T.axis.spatial((-2, {n}), i)
        B[vi + 2] = A[T.max(vi, 0)] + 1

== sum_and_gain | n m | A: n, m; B: n, m; C: n
for i, j in T.grid({n}, {m}):
    with T.block("sum"):
        vi, vj = T.axis.remap("SR", [i, j])
        with T.init():
            C[vi] = 0
        C[vi] = C[vi] + A[vi, vj]
for i, j in T.grid({n}, {m}):
    with T.block("gain"):
        vi, vj = T.axis.remap("SR", [i, j])
        C[vi] = C[vi] + C[vi] * B[vi, vj]

== sum_and_largest | n m | A: n, m; B: n, m; C: n
for i, j in T.grid({n}, {m}):
    with T.block("sum"):
        vi, vj = T.axis.remap("SR", [i, j])
        with T.init():
            C[vi] = 0
        C[vi] = C[vi] + A[vi, vj]
for i, j in T.grid({n}, {m}):
    with T.block("largest"):
        vi, vj = T.axis.remap("SR", [i, j])
        C[vi] = T.max(C[vi], B[vi, vj])

== first_of_the_largest | n m k | A: n, m, k; I: n; V: n
for i, j, l in T.grid({n}, {m}, {k}):
    with T.block("V"):
        vi, vj, vl = T.axis.remap("SRR", [i, j, l])
        with T.init():
            I[vi] = -1
            V[vi] = -1000
        x: T.int32 = T.Select(V[vi] >= A[vi, vj, vl], I[vi], vj * {k} + vl)
        y: T.int32 = T.Select(V[vi] >= A[vi, vj, vl], V[vi], A[vi, vj, vl])
        I[vi] = x
        V[vi] = y

== last_of_the_smallest | n m k | A: n, m, k; I: n; V: n
for i, j, l in T.grid({n}, {m}, {k}):
    with T.block("V"):
        vi, vj, vl = T.axis.remap("SRR", [i, j, l])
        with T.init():
            I[vi] = -1
            V[vi] = 1000
        x: T.int32 = T.Select(V[vi] < A[vi, vj, vl], I[vi], vj * {k} + vl)
        I[vi] = x
        V[vi] = T.min(V[vi], A[vi, vj, vl])

== value_before_its_place | n m k | A: n, m, k; I: n; V: n
for i, j, l in T.grid({n}, {m}, {k}):
    with T.block("V"):
        vi, vj, vl = T.axis.remap("SRR", [i, j, l])
        with T.init():
            I[vi] = -1
            V[vi] = -1000
        V[vi] = T.max(V[vi], A[vi, vj, vl])
        I[vi] = T.Select(V[vi] == A[vi, vj, vl], vj * {k} + vl, I[vi])

== any_of_the_largest_two | n m k | A: n, m, k; V: n; W: n
for i, j, l in T.grid({n}, {m}, {k}):
    with T.block("V"):
        vi, vj, vl = T.axis.remap("SRR", [i, j, l])
        with T.init():
            V[vi] = -1000
            W[vi] = -1000
        x: T.int32 = T.max(V[vi], A[vi, vj, vl])
        y: T.int32 = T.max(W[vi], T.min(V[vi], A[vi, vj, vl]))
        V[vi] = x
        W[vi] = y

== complex_product | n m | A: n, m; B: n, m; X: n; Y: n
for i, j in T.grid({n}, {m}):
    with T.block("X"):
        vi, vj = T.axis.remap("SR", [i, j])
        with T.init():
            X[vi] = 1
            Y[vi] = 0
        x: T.int32 = X[vi] * A[vi, vj] - Y[vi] * B[vi, vj]
        y: T.int32 = X[vi] * B[vi, vj] + Y[vi] * A[vi, vj]
        X[vi] = x
        Y[vi] = y

== composed_maps | n m k | A: n, m, k; B: n, m, k; X: n; Y: n
for i, j, l in T.grid({n}, {m}, {k}):
    with T.block("X"):
        vi, vj, vl = T.axis.remap("SRR", [i, j, l])
        with T.init():
            X[vi] = 1
            Y[vi] = 0
        x: T.int32 = X[vi] * A[vi, vj, vl]
        y: T.int32 = Y[vi] * A[vi, vj, vl] + B[vi, vj, vl]
        X[vi] = x
        Y[vi] = y

== sum_of_running_sums | n m k | A: n, m, k; S: n; D: n
for i, j, l in T.grid({n}, {m}, {k}):
    with T.block("S"):
        vi, vj, vl = T.axis.remap("SRR", [i, j, l])
        with T.init():
            S[vi] = 0
            D[vi] = 0
        S[vi] = S[vi] + A[vi, vj, vl]
        D[vi] = D[vi] + S[vi]
"""
)


# Sums that `winograd` computes from other sums: equal over the real numbers, not bit by bit.
CONVOLUTIONS = _read(
    """
== convolution | n m | X: n+1, m+2 as float64; W: 2, 3 as float64; C: n, m as float64
for i, j, p, q in T.grid({n}, {m}, 2, 3):
    with T.block("C"):
        vi, vj, vp, vq = T.axis.remap("SSRR", [i, j, p, q])
        with T.init():
            C[vi, vj] = T.float64(0)
        C[vi, vj] = C[vi, vj] + X[vi + vp, vj + vq] * W[vp, vq]

== channels | n m | X: m, n+2 as float64; W: 2, 3, m as float64; D: 2, n as float64
C = T.alloc_buffer((2, {n}), "float64")
for f, i, c, p in T.grid(2, {n}, {m}, 3):
    with T.block("C"):
        vf, vi, vc, vp = T.axis.remap("SSRR", [f, i, c, p])
        with T.init():
            C[vf, vi] = T.float64(0)
        C[vf, vi] = C[vf, vi] + W[vf, vp, vc] * X[vc, vi + vp]
for f, i in T.grid(2, {n}):
    with T.block("D"):
        vf, vi = T.axis.remap("SS", [f, i])
        D[vf, vi] = C[vf, vi] + T.float64(1)
"""
)

# Calls with effects: whoever is called may see how often, with what, and in which order.
EFFECTS = _read(
    """
== counted | n | A: n; C: n
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = A[vi] + T.call_packed("harness.next", vi)

== counted_in_two_loops | n m | A: n, m; C: n, m
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = T.call_packed("harness.next", A[vi, vj])

== counted_for_two_readers | n | A: n+1; C: n
B = T.alloc_buffer(({n+1},), "int32")
for i in range({n+1}):
    with T.block("B"):
        vi = T.axis.spatial({n+1}, i)
        B[vi] = T.call_packed("harness.next", A[vi])
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = B[vi] + B[vi + 1]

== announced | n | A: n; C: n
B = T.alloc_buffer(({n},), "int32")
for i in range({n}):
    with T.block("B"):
        vi = T.axis.spatial({n}, i)
        B[vi] = A[vi] + 1
for i in range({n}):
    with T.block("told"):
        vi = T.axis.spatial({n}, i)
        T.evaluate(T.call_packed("harness.tell", vi, B[vi]))
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = B[vi] * 2

== announced_beside | n m | A: n, m; C: n, m
for i in range({n}):
    for j in range({m}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + 1
    with T.block("told"):
        vi = T.axis.spatial({n}, i)
        T.evaluate(T.call_packed("harness.tell", vi))

== announced_twice | n | A: n; C: n
for i in range({n}):
    with T.block("first"):
        vi = T.axis.spatial({n}, i)
        T.evaluate(T.call_extern("int32", "harness_tell", vi))
        C[vi] = A[vi]
for i in range({n}):
    with T.block("second"):
        vi = T.axis.spatial({n}, i)
        T.evaluate(T.call_extern("int32", "harness_tell", C[vi]))

== announced_sum | n m | A: n, m; C: n
for i, l in T.grid({n}, {m}):
    with T.block("C"):
        vi, vl = T.axis.remap("SR", [i, l])
        with T.init():
            C[vi] = 0
        C[vi] = C[vi] + T.call_packed("harness.next", A[vi, vl])

== counted_start | n m | A: n, m; C: n
for i, l in T.grid({n}, {m}):
    with T.block("C"):
        vi, vl = T.axis.remap("SR", [i, l])
        with T.init():
            C[vi] = T.call_packed("harness.next", vi)
        C[vi] = C[vi] + A[vi, vl]

== announced_under_a_condition | n | A: n; C: n
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        T.where(i < {max(n-1, 1)})
        C[vi] = T.if_then_else(vi > 0, T.call_packed("harness.next", vi), A[vi])

== never_read | n | A: n; C: n
B = T.alloc_buffer(({n},), "int32")
for i in range({n}):
    with T.block("B"):
        vi = T.axis.spatial({n}, i)
        B[vi] = T.call_packed("harness.next", A[vi])
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = A[vi] * 2

== pure_call | n | A: n+1; C: n
B = T.alloc_buffer(({n+1},), "int32")
for i in range({n+1}):
    with T.block("B"):
        vi = T.axis.spatial({n+1}, i)
        B[vi] = T.call_pure_extern("int32", "harness_value", A[vi])
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = B[vi] + B[vi + 1]
"""
)

# Calls that get pointers: such programs run on numbers, not on terms, and have a test of their own (test_pointers.py).
POINTERS = _read(
    """
== copied_rows | n m | A: n, m; C: n, m; D: n, m
B = T.alloc_buffer(({n}, {m}), "int32")
for i, j in T.grid({n}, {m}):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = A[vi, vj] + 1
for i in range({n}):
    with T.block("call"):
        vi = T.axis.spatial({n}, i)
        T.reads(B[vi, 0:{m}])
        T.writes(C[vi, 0:{m}])
        T.evaluate(T.call_extern("handle", "memcpy", T.address_of(C[vi, 0]), T.address_of(B[vi, 0]), T.int64({4*m})))
for i, j in T.grid({n}, {m}):
    with T.block("D"):
        vi, vj = T.axis.remap("SS", [i, j])
        D[vi, vj] = C[vi, {m-1} - vj] * 2

== copied_on | n m | A: n+1, m; C: n, m
for i in range({n}):
    with T.block("call"):
        vi = T.axis.opaque({n}, i)
        T.reads(A[vi, 0:{m}])
        T.writes(A[vi + 1, 0:{m}])
        T.evaluate(
            T.call_extern(
                "handle",
                "memcpy",
                A.access_ptr("w", offset=(vi + 1) * {m}, extent={m}),
                A.access_ptr("r", offset=vi * {m}, extent={m}),
                T.int64({4*m}),
            )
        )
    for j in range({m}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + A[vi + 1, vj]

== copied_whole | n | A: n; C: n; D: n
B = T.alloc_buffer(({n},), "int32")
for i in range({n}):
    with T.block("B"):
        vi = T.axis.spatial({n}, i)
        B[vi] = A[vi] * 3
with T.block("call"):
    T.reads(B[0:{n}])
    T.writes(C[0:{n}])
    T.evaluate(T.call_extern("handle", "memcpy", C.data, B.data, T.int64({4*n})))
for i in range({n}):
    with T.block("D"):
        vi = T.axis.spatial({n}, i)
        D[vi] = C[vi] + B[{n-1} - vi]

== copied_by_a_view | n m | A: n, m; C: n, m; D: n
for i in range({n}):
    with T.block("call"):
        vi = T.axis.spatial({n}, i)
        T.reads(A[vi, 0:{m}])
        T.writes(C[vi, 0:{m}])
        X = T.match_buffer(A[vi, 0:{m}], ({m},), "int32", offset_factor=1)
        Y = T.match_buffer(C[vi, 0:{m}], ({m},), "int32", offset_factor=1)
        T.evaluate(T.call_extern("handle", "memcpy", Y.access_ptr("w"), X.access_ptr("r"), T.int64({4*m})))
    with T.block("D"):
        vi = T.axis.spatial({n}, i)
        D[vi] = C[vi, {m-1}] + A[{n-1} - vi, 0]
"""
)

# Data decides whether something runs, and where.
BY_DATA = _read(
    """
== as_many_as_the_data_say | n m | N: n; A: n, m; C: n; D: n, m
for i in range({n}):
    for j in range(T.min(N[i], {m})):
        with T.block("C"):
            vi, vj = T.axis.spatial({n}, i), T.axis.reduce({m}, j)
            with T.init():
                C[vi] = 5
            C[vi] = C[vi] + A[vi, vj] + 4
    for j in range(T.min(N[i], {m})):
        with T.block("D"):
            vi, vj = T.axis.spatial({n}, i), T.axis.spatial({m}, j)
            D[vi, vj] = A[vi, vj] * 7 + vj

== shifted_if | n | S: 1; A: n; B: n+1
if S[0] > 0:
    for i in range({n}):
        with T.block("B"):
            vi = T.axis.opaque({n}, i)
            B[vi + 1] = B[vi] * 10 + A[vi]

== where_told | n | S: n; A: n; B: n
for i in range({n}):
    with T.block("B"):
        vi = T.axis.spatial({n}, i)
        T.where(S[i] > 0)
        B[vi] = A[vi] + 7

== as_often_as_told | n | S: n; B: n
for i in range({n}):
    for j in range(S[i] % 3):
        with T.block("B"):
            vi = T.axis.opaque({n}, i)
            B[vi] = B[vi] + 1

== shifted_where_told | n | S: n; A: n; B: n+1
for i in range({n}):
    if S[i] > 0:
        with T.block("B"):
            vi = T.axis.opaque({n}, i)
            B[vi + 1] = B[vi] + A[vi]

== own_cell_where_told | n | S: n; A: n; B: n
for i in range({n}):
    if S[i] > 0:
        with T.block("B"):
            vi = T.axis.spatial({n}, i)
            B[vi] = B[vi] + A[vi]

== scattered | n | I: n; A: n; B: 5
for i in range({n}):
    with T.block("B"):
        vi = T.axis.opaque({n}, i)
        B[I[vi] + 2] = A[vi]

== counted_by_value | n | I: n; B: 5
for i in range({n}):
    with T.block("B"):
        vi = T.axis.opaque({n}, i)
        B[I[vi] + 2] = B[I[vi] + 2] + 1

== index_without_effect | n | A: n; C: n
B = T.alloc_buffer(({n},), "int32")
D = T.alloc_buffer(({n},), "int32")
for i in range({n}):
    with T.block("B"):
        vi = T.axis.spatial({n}, i)
        B[vi] = A[vi] + 1
for i in range({n}):
    with T.block("D"):
        vi = T.axis.spatial({n}, i)
        D[vi] = A[vi] * 3
for i in range({n}):
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = B[D[vi] % 1] * 2

== gathered_from_itself | n | I: n; B: n+5
for i in range({n}):
    with T.block("B"):
        vi = T.axis.opaque({n}, i)
        B[vi] = B[I[vi] + 2] + 1

== as_often_as_told | n m | S: n; A: n; B: n
for i in range({n}):
    for j in range(T.min(T.max(S[i], 0), {m})):
        with T.block("B"):
            vi = T.axis.spatial({n}, i)
            vj = T.axis.opaque({m}, j)
            B[vi] = B[vi] * 2 + A[vi] + vj

== either_branch | n | S: 1; A: n; B: n+1
for i in range({n}):
    if S[0] > 0:
        with T.block("B"):
            vi = T.axis.opaque({n}, i)
            B[vi + 1] = A[vi]
    else:
        with T.block("C"):
            vi = T.axis.opaque({n}, i)
            B[vi] = B[vi + 1] + 1
"""
)


# Blocks in blocks, blocks without axes, producers and consumers in one loop, memory that one iteration needs.
BLOCKS = _read(
    """
== nested_tiles | n m | A: 2*n, 2*m; C: 2*n, 2*m
B = T.alloc_buffer(({2*n}, {2*m}), "int32")
for io, jo in T.grid({n}, {m}):
    with T.block("B_o"):
        vio, vjo = T.axis.remap("SS", [io, jo])
        for i, j in T.grid(2, 2):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vio * 2 + vi, vjo * 2 + vj] = A[vio * 2 + vi, vjo * 2 + vj] + 1
for io, jo in T.grid({n}, {m}):
    with T.block("C_o"):
        wio, wjo = T.axis.remap("SS", [io, jo])
        for i, j in T.grid(2, 2):
            with T.block("C"):
                wi, wj = T.axis.remap("SS", [i, j])
                C[wio * 2 + wi, wjo * 2 + wj] = B[wio * 2 + wi, wjo * 2 + wj] * 2

== nested_sum | n m | A: n, 2*m; C: n
for i, ko in T.grid({n}, {m}):
    with T.block("C_o"):
        vi, vko = T.axis.remap("SR", [i, ko])
        with T.init():
            C[vi] = 0
        for k in range(2):
            with T.block("C"):
                vk = T.axis.reduce({2*m}, vko * 2 + k)
                C[vi] = C[vi] + A[vi, vk]

== inner_rows | n m | A: n, m; C: n, m
for i in range({n}):
    with T.block("row"):
        vi = T.axis.spatial({n}, i)
        R = T.alloc_buffer(({m},), "int32")
        for j in range({m}):
            with T.block("R"):
                vj = T.axis.spatial({m}, j)
                R[vj] = A[vi, vj] + 1
        for j in range({m}):
            with T.block("C"):
                vj = T.axis.spatial({m}, j)
                C[vi, vj] = R[{m-1} - vj] * 2

== nested_scan | n m | A: n+1, m; X: n, m
for i in range({n}):
    with T.block("step"):
        vi = T.axis.opaque({n}, i)
        for j in range({m}):
            with T.block("A"):
                vj = T.axis.spatial({m}, j)
                A[vi + 1, vj] = A[vi, {m-1} - vj] + X[vi, vj]

== nested_twice | n m | A: n, m; C: n, m; D: n, m
for i in range({n}):
    with T.block("both"):
        vi = T.axis.spatial({n}, i)
        for j in range({m}):
            with T.block("C"):
                vj = T.axis.spatial({m}, j)
                C[vi, vj] = A[vi, vj] + vi
        for j in range({m}):
            with T.block("D"):
                vj = T.axis.spatial({m}, j)
                D[vi, vj] = C[vi, vj // 2] * 3

== without_axes | n m | A: n, m; C: n, m
B = T.alloc_buffer(({n}, {m}), "int32")
for i, j in T.grid({n}, {m}):
    with T.block("B"):
        B[i, j] = A[i, j] + 1
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        C[i, j] = B[i, {m-1} - j] * 2

== without_axes_last_wins | n m | A: n, m; C: n
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        C[(i + j) % {n}] = A[i, j] + 1

== without_axes_summed | n m | A: n, m; C: n
for i in range({n}):
    with T.block("zero"):
        C[i] = 0
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        C[i] = C[i] + A[i, j] * j

== without_axes_values | n m | A: n; C: n; D: n
for i, j in T.grid({n}, {m}):
    with T.block("C"):
        C[i] = A[i] + j
for i in range({n}):
    with T.block("D"):
        D[i] = C[i] + i

== in_one_loop | n m | A: n, m; C: n, m
B = T.alloc_buffer(({n}, {m}), "int32")
for i, j in T.grid({n}, {m}):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = A[vi, vj] + 1
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = B[vi, vj] * 2

== in_one_loop_with_the_row_before | n m | A: n, m; C: n, m
B = T.alloc_buffer(({n}, {m}), "int32")
for i in range({n}):
    for j in range({m}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1
    for j in range({m}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + B[T.max(vi - 1, 0), vj]

== halo_in_a_loop | n | A: n+2; C: n
B = T.alloc_buffer(({n+2},), "int32")
for i in range({n}):
    for j in range(3):
        with T.block("B"):
            v = T.axis.spatial({n+2}, i + j)
            B[v] = A[v] + 1
    with T.block("C"):
        v = T.axis.spatial({n}, i)
        C[v] = B[v] + B[v + 2]

== halo_in_a_parallel_loop | n m | A: n+2, m; C: n, m
B = T.alloc_buffer(({n+2}, {m}), "int32")
for i in T.parallel({n}):
    for k, j in T.grid(3, {m}):
        with T.block("B"):
            v, vj = T.axis.spatial({n+2}, i + k), T.axis.spatial({m}, j)
            B[v, vj] = A[v, vj] + 1
    for j in range({m}):
        with T.block("C"):
            v, vj = T.axis.remap("SS", [i, j])
            C[v, vj] = B[v, vj] + B[v + 2, vj]

== row_in_a_loop | n m | A: n, m; C: n, m
R = T.alloc_buffer(({m},), "int32")
for i in range({n}):
    for j in range({m}):
        with T.block("R"):
            vi, vj = T.axis.remap("SS", [i, j])
            R[vj] = A[vi, vj] + 1
    for j in range({m}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = R[{m-1} - vj] * 2

== row_carried_on | n m | A: n, m; C: n, m
R = T.alloc_buffer(({m+1},), "int32")
for j in range({m+1}):
    with T.block("zero"):
        vj = T.axis.spatial({m+1}, j)
        R[vj] = 0
for i in range({n}):
    for j in range({m}):
        with T.block("R"):
            vi, vj = T.axis.remap("SS", [i, j])
            R[vj] = A[vi, vj] + R[vj + 1]
    for j in range({m}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = R[vj] * 2
"""
)


# Memory that goes by two names: a buffer and a window of it, or a pointer made from another.
NAMES = _read(
    """
== window_beside_its_buffer | n m | A: n, m; C: n, m
with T.block("o"):
    T.reads(A[0:{n}, 0:{m}])
    T.writes(A[0:{n}, 0:{m}], C[0:{n}, 0:{m}])
    W = T.match_buffer(A[0:{n}, 0:{m}], ({n}, {m}), "int32")
    for i, j in T.grid({n}, {m}):
        with T.block("W"):
            vi, vj = T.axis.remap("SS", [i, j])
            W[vi, vj] = vi * 10 + vj
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[{n-1} - vi, vj]

== window_then_its_buffer | n | A: n+1; C: n
with T.block("o"):
    T.reads(A[0:{n+1}])
    T.writes(A[0:{n+1}], C[0:{n}])
    W = T.match_buffer(A[1:{n+1}], ({n},), "int32", offset_factor=1)
    for i in range({n}):
        with T.block("W"):
            vi = T.axis.spatial({n}, i)
            W[vi] = vi + 5
    for i in range({n}):
        with T.block("C"):
            vi = T.axis.spatial({n}, i)
            C[vi] = A[vi] * 2

== sum_in_a_window | n m | A: n, m; S: n; C: n
with T.block("o"):
    T.reads(A[0:{n}, 0:{m}], S[0:{n}])
    T.writes(S[0:{n}], C[0:{n}])
    W = T.match_buffer(S[0:{n}], ({n},), "int32")
    for i in range({n}):
        for j in range({m}):
            with T.block("W"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    W[vi] = 0
                W[vi] = W[vi] + A[vi, vj]
        with T.block("C"):
            vi = T.axis.spatial({n}, i)
            C[vi] = S[{n-1} - vi]

== overlapping_windows | n | A: n+1; C: n
with T.block("o"):
    T.reads(A[0:{n+1}])
    T.writes(A[0:{n+1}], C[0:{n}])
    X = T.match_buffer(A[0:{n}], ({n},), "int32", offset_factor=1)
    Y = T.match_buffer(A[1:{n+1}], ({n},), "int32", offset_factor=1)
    for i in range({n}):
        with T.block("X"):
            vi = T.axis.spatial({n}, i)
            X[vi] = vi + 3
        with T.block("C"):
            vi = T.axis.spatial({n}, i)
            C[vi] = Y[vi]

== own_buffer_and_its_window | n | A: n; C: n
B = T.alloc_buffer(({n},), "int32")
with T.block("o"):
    T.reads(A[0:{n}], B[0:{n}])
    T.writes(B[0:{n}], C[0:{n}])
    W = T.match_buffer(B[0:{n}], ({n},), "int32")
    for i in range({n}):
        with T.block("B"):
            vi = T.axis.spatial({n}, i)
            B[vi] = A[vi] + 1
    for i in range({n}):
        with T.block("C"):
            vi = T.axis.spatial({n}, i)
            C[vi] = W[{n-1} - vi]

== two_names_of_a_pointer | n | A: n; C: n
p: T.handle = A.data
B = T.Buffer(({n},), "int32", data=p)
for i in range({n}):
    with T.block("B"):
        vi = T.axis.spatial({n}, i)
        B[vi] = vi + 5
    with T.block("C"):
        vi = T.axis.spatial({n}, i)
        C[vi] = A[{n-1} - vi]
"""
)


def template_programs(choices: Sequence[int], limit: int = 64) -> list[Program]:
    """Every template at every combination of sizes; the largest cubes left out."""
    found = []
    for template in (*TEMPLATES, *CONVOLUTIONS, *EFFECTS, *BY_DATA, *BLOCKS, *NAMES):
        for program in template.programs(choices):
            cells = 1
            for size in program.sizes:
                cells *= size
            if cells <= limit:
                found.append(program)
    return found


# --- sketches -----------------------------------------------------------------------------------------------------


UPDATES = (
    "{c} + {x}",
    "{c} - ({x})",
    "T.Select({c} > {x}, {c}, {x})",
    "T.Select({x} > 0, {c} + {x}, {c})",
    "{c} * 2 + {x}",
    "{x} - {c}",
    "T.Select({x} > 0, {x}, {c})",
    "{c} + {c} * ({x})",
    "T.max({c}, {x}) * 3",
)


@dataclass(frozen=True)
class Read:
    """A read of an earlier buffer: for each of its dimensions, how the index is made."""

    buffer: int
    indices: tuple[str, ...]  # "same", "back", "next", "half", "first"


@dataclass(frozen=True)
class Stage:
    """One block: it fills a buffer over `shape` from its reads, perhaps summing over `over`."""

    shape: tuple[int, ...]  # which size each dimension has
    over: int | None  # the size of the reduction, if it is one
    reads: tuple[Read, ...]
    form: int
    is_output: bool
    dropped: bool = False  # its buffer is an argument instead
    update: int = 0  # of a reduction: another update than a sum or the largest, most of which depend on the order


@dataclass(frozen=True)
class Sketch:
    """A random chain of stages over three sizes."""

    seed: int
    inputs: tuple[tuple[int, ...], ...]
    stages: tuple[Stage, ...]

    @property
    def name(self) -> str:
        return f"sketch_{self.seed}"

    def smaller(self) -> Iterator[Sketch]:
        for position in reversed(range(len(self.stages))):
            stage = self.stages[position]
            changes: list[Stage] = []
            if not stage.dropped and sum(not s.dropped for s in self.stages) > 1:
                changes.append(replace(stage, dropped=True))
            if len(stage.reads) > 1 and not stage.dropped:
                changes += [replace(stage, reads=(read,)) for read in stage.reads]
            plain = tuple([replace(read, indices=("same",) * len(read.indices)) for read in stage.reads])
            if plain != stage.reads and not stage.dropped:
                changes.append(replace(stage, reads=plain))
            if stage.update and not stage.dropped:
                changes.append(replace(stage, update=0))
            for change in changes:
                yield replace(self, stages=(*self.stages[:position], change, *self.stages[position + 1 :]))

    def text(self, sizes: Sequence[int]) -> str:
        shapes = [*self.inputs, *[stage.shape for stage in self.stages]]
        names = [f"A{k}" for k in range(len(self.inputs))] + [f"B{k}" for k in range(len(self.stages))]
        live = [stage for stage in self.stages if not stage.dropped]
        used = {read.buffer for stage in live for read in stage.reads}
        arguments, body = [], []
        for number, (name, shape) in enumerate(zip(names, shapes, strict=True)):
            stage = self.stages[number - len(self.inputs)] if number >= len(self.inputs) else None
            extents = ", ".join([str(sizes[size]) for size in shape])
            if stage is None or stage.dropped:
                if number in used or stage is None:
                    arguments.append(f'{name}: T.Buffer(({extents},), "int32")')
            elif stage.is_output or number not in used:
                arguments.append(f'{name}: T.Buffer(({extents},), "int32")')
            else:
                body.append(f'    {name} = T.alloc_buffer(({extents},), "int32")')
        for number, stage in enumerate(self.stages):
            if not stage.dropped:
                body += self._stage(names[len(self.inputs) + number], stage, names, shapes, sizes)
        return _HEAD.format(arguments=", ".join(arguments), body="\n".join(body) + "\n")

    def _stage(
        self, name: str, stage: Stage, names: list[str], shapes: list[tuple[int, ...]], sizes: Sequence[int]
    ) -> list[str]:
        axes = [(f"v{'ijkl'[position]}", size) for position, size in enumerate(stage.shape)]
        target = f"{name}[{', '.join([axis for axis, _ in axes])}]"
        kinds = "S" * len(axes)
        if stage.over is not None:
            axes.append(("vr", stage.over))
            kinds += "R"
        loops = [axis[1:] for axis, _ in axes]
        values = []
        for read in stage.reads:
            indices = [
                _index(how, size, axes, sizes) for how, size in zip(read.indices, shapes[read.buffer], strict=True)
            ]
            values.append(f"{names[read.buffer]}[{', '.join(indices)}]")
        value = values[0]
        for position, other in enumerate(values[1:]):
            forms = (f"{value} * {other}", f"{value} - {other}", f"T.max({value}, {other})")
            value = forms[(stage.form + position) % 3]
        extents = ", ".join([str(sizes[size]) for _, size in axes])
        lines = [f"for {', '.join(loops)} in T.grid({extents}):"]
        lines += [f'    with T.block("{name}"):']
        targets = ", ".join([axis for axis, _ in axes]) + ("," if len(axes) == 1 else "")
        if len(axes) == 1:
            lines += [f"        {axes[0][0]} = T.axis.spatial({sizes[axes[0][1]]}, {loops[0]})"]
        else:
            lines += [f'        {targets} = T.axis.remap("{kinds}", [{", ".join(loops)}])']
        if stage.over is None:
            lines += [f"        {target} = {value} * {stage.form + 2} + {stage.form}"]
        elif stage.update:
            lines += ["        with T.init():", f"            {target} = {stage.form}"]
            lines += [f"        {target} = {UPDATES[stage.update].format(c=target, x=value)}"]
        elif stage.form % 2:
            lines += ["        with T.init():", f"            {target} = -100000"]
            lines += [f"        {target} = T.max({target}, {value})"]
        else:
            lines += ["        with T.init():", f"            {target} = {stage.form}"]
            lines += [f"        {target} = {target} + {value}"]
        return ["    " + line for line in lines]


def _index(how: str, size: int, axes: Sequence[tuple[str, int]], sizes: Sequence[int]) -> str:
    fitting = [axis for axis, other in axes if other == size]
    extent = sizes[size]
    if not fitting or how == "first":
        return "0"
    axis = fitting[-1] if how == "last" else fitting[0]
    forms = {"back": f"{extent - 1} - {axis}", "next": f"({axis} + 1) % {extent}", "half": f"{axis} // 2"}
    return forms.get(how, axis)


def random_sketch(seed: int) -> Sketch:
    """Two to five stages; most read neighbours of what an earlier one wrote, some from another place."""
    rng = random.Random(seed)
    inputs = tuple([tuple([rng.randrange(3) for _ in range(rng.choice((1, 2, 2)))]) for _ in range(rng.choice((1, 2)))])
    shapes = list(inputs)
    stages = []
    count = rng.choice((2, 3, 3, 4, 5))
    for position in range(count):
        latest = shapes[-1]
        shape = latest if rng.random() < 0.6 else tuple([rng.randrange(3) for _ in range(rng.choice((1, 2)))])
        over = rng.randrange(3) if rng.random() < 0.35 else None
        chosen = [len(shapes) - 1]
        chosen += [rng.randrange(len(shapes)) for _ in range(rng.choice((0, 1, 1, 2)))]
        reads = []
        for buffer in chosen:
            hows = ["same", "same", "same", "same", "last", "back", "next", "half", "first"]
            reads.append(Read(buffer, tuple([rng.choice(hows) for _ in shapes[buffer]])))
        is_output = position == count - 1 or rng.random() < 0.15
        # Of its own, so that the other choices of a seed are what they were before there were such updates.
        odd = random.Random(f"{seed} {position}")
        update = odd.randrange(len(UPDATES)) if over is not None and odd.random() < 0.4 else 0
        stages.append(Stage(shape, over, tuple(reads), rng.randrange(4), is_output, update=update))
        shapes.append(shape)
    return Sketch(seed, inputs, tuple(stages))
