"""Matrix products: all four transposes, thin and odd ones, batches, a matrix by itself, with bias and activation.

Distribution: 2^18 to 2^28 multiplications (log-uniform). M is 1 (20 %), 2 to 17 (20 %), by `sizes.extent` (30 %) or
log-uniform (30 %); K by `sizes.extent` or log-uniform, N is what is left. Types: float32 60 %, float64 15, int8 → int32
12 (uint8 × int8 for a third of them), int32 8, float16 5. Forms: a product with either operand transposed 45 %, batched
(2 to 64) 20, X·Xᵀ and its batched form 10, with bias and perhaps an activation (constant weights in models) 20, one of
the contractions of `EINSUMS` 10 (2^17 to 2^25 multiplications, float32).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.bench.bounds import gamma
from benchmarks.bench.case import Bounded
from benchmarks.sweep.activations import ACTIVATIONS
from benchmarks.sweep.case import Case, Input, Output, Step
from benchmarks.sweep.errors import Rounded, exactly
from benchmarks.sweep.sizes import Rng, extent, log_uniform, pick

WORK = (2**18, 2**28)
EINSUMS = (
    "ij,kj->ik", "bij,bkj->bik", "bhid,bhjd->bhij", "ijk,kl->ijl", "ij,ij->i", "i,j->ij", "bi,bj->bij", "bij,bj->bi",
    "ij,ikj->ik", "ijk,ijl->kl", "ij,jk->ki", "bijc,cd->bijd",
)  # fmt: skip
TYPES = {"float32": 60, "float64": 15, "int8": 12, "int32": 8, "float16": 5}


def draw(rng: Rng) -> Case:
    """A case."""
    form = pick(rng, ("plain", "batched", "itself", "fused", "einsum"), (40, 20, 10, 20, 10))
    if form == "einsum":
        return einsum(rng)
    dtype = pick(rng, list(TYPES), list(TYPES.values()))
    if form in ("fused", "itself"):
        dtype = pick(rng, ("float32", "float64"), (85, 15))
    work = log_uniform(rng, WORK[0], WORK[1] if dtype in ("float32", "int8") else WORK[1] // 4)
    batch = log_uniform(rng, 2, 64) if form == "batched" or (form == "itself" and rng.random() < 0.5) else 0
    m, k, n = sizes(rng, max(work // max(batch, 1), 1))
    batch = fitting(batch, m, k, n)
    if form == "fused":
        return fused(rng, m, k, n, dtype)
    if form == "itself":
        n, k = m, max(min(work // max(batch, 1) // (m * m), 8192), 1)
        return product(batch, m, k, n, (False, True), dtype, dtype, itself=True)
    turned = (bool(rng.integers(2)), bool(rng.integers(2)))
    left = "uint8" if dtype == "int8" and rng.random() < 1 / 3 else dtype
    return product(batch, m, k, n, turned, left, dtype)


def sizes(rng: Rng, work: int) -> tuple[int, int, int]:
    """M, K and N of about as many multiplications."""
    most = max(round(work ** (1 / 2)), 1)
    kind = rng.random()
    if kind < 0.2:
        m = 1
    elif kind < 0.4:
        m = int(rng.integers(2, 18))
    else:
        m = extent(rng, min(most, 2048)) if kind < 0.7 else log_uniform(rng, 1, min(most, 2048))
    rest = max(work // m, 1)
    k = min(extent(rng, 4096, 2) if rng.random() < 0.5 else log_uniform(rng, 2, 4096), rest)
    return m, k, min(max(rest // k, 1), 16384)


def fitting(batch: int, m: int, k: int, n: int) -> int:
    """The batch, or as much of it as leaves 2^22 elements to each matrix."""
    return max(min(batch, 2**22 // max(m * k, k * n, m * n)), 1) if batch else 0


def product(
    batch: int, m: int, k: int, n: int, turned: tuple[bool, bool], left: str, right: str, itself: bool = False
) -> Case:
    """A product; `turned` says which operands are stored transposed."""
    lead = (batch,) if batch else ()
    a_shape = (*lead, k, m) if turned[0] else (*lead, m, k)
    b_shape = (*lead, n, k) if turned[1] else (*lead, k, n)
    is_small = right == "int8"
    is_float = np.dtype(right).kind == "f"
    low, high = (-1, 1) if is_float else (-100, 100)
    inputs = [Input(a_shape, left, 0 if left == "uint8" else low, high), Input(b_shape, right, low, high)]
    if itself:
        inputs = inputs[:1]
    out = "int32" if is_small else right

    def operands(x: Any) -> tuple[Any, Any]:
        one, other = x[0], x[0] if itself else x[1]
        return (one.swapaxes(-1, -2) if turned[0] else one), (other.swapaxes(-1, -2) if turned[1] else other)

    def exact(x: Any) -> list[Bounded]:
        a, b = operands(x)
        if is_float:
            # Products of float16 may be summed in float16, as everyone's are allowed to.
            return [Rounded.of(a).matmul(Rounded.of(b)).bounded()]
        return [exactly((a.astype("float64") @ b.astype("float64")).astype("int64").astype(out))]

    def in_te(x: Any, y: Any = None) -> Any:
        from loopwright import topi

        made = topi.nn.batch_matmul if batch else topi.nn.matmul
        return made(x, x if y is None else y, None, out, turned[0], turned[1])

    def with_torch(t: Any, x: Any, out_: Any) -> Any:
        a, b = operands(x)
        if is_small:
            if left != right or batch:
                raise NotImplementedError("int8 by int8 only")
            return t._int_mm(a, b)
        return t.matmul(a, b, out=out_[0])

    def with_numpy(x: Any, out_: Any) -> Any:
        a, b = operands(x)
        if is_small:
            return np.matmul(a, b, dtype="int32")
        return np.matmul(a, b, out=out_[0])

    letters = "".join(["t" if one else "n" for one in turned])
    name = ("bmm" if batch else "matmul") + (" of itself" if itself else "")
    model: list[Step] = []
    names = ["x0", "x0" if itself else "x1"]
    order = [*range(len(lead)), len(lead) + 1, len(lead)]
    for at, is_turned in enumerate(turned):
        if is_turned:
            model.append(Step("Transpose", [names[at]], f"t{at}", {"perm": order}))
            names[at] = f"t{at}"
    model.append(Step("MatMulInteger" if is_small else "MatMul", names, "y0"))
    return Case(
        name, inputs, [Output((*lead, m, n), out)], exact, letters, in_te, model, numpy=with_numpy, torch=with_torch
    )


def einsum(rng: Rng) -> Case:
    """A contraction in Einstein's notation, each letter a size of its own."""
    text = pick(rng, EINSUMS)
    terms, out = text.split("->")
    letters = sorted(set(terms) - {","})
    left = log_uniform(rng, 2**17, 2**25)
    named = {}
    for number, letter in enumerate(rng.permutation(letters)):
        share = left ** (1 / (len(letters) - number))
        named[str(letter)] = min(extent(rng, 1024) if rng.random() < 0.5 else round(share), max(left, 1))
        left = max(left // named[str(letter)], 1)
    shapes = [tuple([named[letter] for letter in term]) for term in terms.split(",")]
    count = int(np.prod([named[letter] for letter in letters if letter not in out]))

    def exact(x: Any) -> list[Bounded]:
        a, b = (value.astype("float64") for value in x)
        size = np.einsum(text, np.abs(a), np.abs(b), optimize=True)
        return [Rounded(np.einsum(text, a, b, optimize=True), gamma(count + 1) * size, "float32").bounded()]

    def in_te(x: Any, y: Any) -> Any:
        from loopwright import topi

        return topi.einsum(text, x, y)

    return Case(
        "einsum",
        [Input(shape) for shape in shapes],
        [Output(tuple([named[letter] for letter in out]))],
        exact,
        text,
        in_te,
        [Step("Einsum", ["x0", "x1"], "y0", {"equation": text})],
        numpy=lambda x, out_: np.einsum(text, x[0], x[1], optimize=True),
        torch=lambda t, x, out_: t.einsum(text, x[0], x[1]),
    )


def fused(rng: Rng, m: int, k: int, n: int, dtype: str) -> Case:
    """x · w (or x · wᵀ) + b, and for two of three an activation."""
    turned = bool(rng.integers(2))
    activation = pick(rng, ACTIVATIONS) if rng.random() < 2 / 3 else None
    inputs = [
        Input((m, k), dtype),
        Input((n, k) if turned else (k, n), dtype, constant=True),
        Input((n,), dtype, constant=True),
    ]

    def exact(x: Any) -> list[Bounded]:
        weight = x[1].T if turned else x[1]
        made = Rounded.of(x[0]).matmul(Rounded.of(weight)) + Rounded.of(x[2])
        return [(made if activation is None else activation.exact(made)).bounded(2)]

    def in_te(x: Any, w: Any, b: Any) -> Any:
        from loopwright import topi

        made = topi.nn.dense(x, w, b) if turned else topi.nn.matmul(x, w, b)
        return made if activation is None else activation.te(made)

    def with_torch(t: Any, x: Any, out: Any) -> Any:
        made = t.nn.functional.linear(*x) if turned else t.addmm(x[2], x[0], x[1])
        return made if activation is None else activation.torch(t, made)

    def with_numpy(x: Any, out: Any) -> Any:
        made = np.add(np.matmul(x[0], x[1].T if turned else x[1], out=out[0]), x[2], out=out[0])
        if activation is None:
            return made
        if activation.numpy is None:
            raise NotImplementedError(activation.name)
        return activation.numpy(made)

    target = "y0" if activation is None else "g"
    model = [Step("Gemm", ["x0", "x1", "x2"], target, {"transB": int(turned)})]
    return Case(
        "linear" if activation is None else f"linear {activation.name}",
        inputs,
        [Output((m, n), dtype)],
        exact,
        "nt" if turned else "nn",
        in_te,
        [*model, *(activation.onnx("g", "y0") if activation else [])],
        activation.constants(dtype) if activation else {},
        with_numpy,
        with_torch,
    )
