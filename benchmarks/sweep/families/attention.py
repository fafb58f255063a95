"""Attention: softmax(Q · Kᵀ / √d) · V with heads, one query or many, causal or not.

Distribution: 2^18 to 2^27 multiplications (log-uniform); heads 1 to 16, head sizes 16, 32, 40, 64, 80, 96, 128, batch 1
(80 %) or 2; one query 30 %, else as many queries as keys (60 %) or others (log-uniform); causal for 30 % of those with
as many. float32. As a model it is MatMul, Mul, Softmax, MatMul, as exporters write it (never causal).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.bench.case import Bounded
from benchmarks.sweep.case import Case, Input, Output, Step
from benchmarks.sweep.errors import Rounded
from benchmarks.sweep.sizes import Rng, log_uniform, pick

WORK = (2**18, 2**27)


def draw(rng: Rng) -> Case:
    """A case."""
    work = log_uniform(rng, *WORK)
    batch = 1 if rng.random() < 0.8 else 2
    heads, depth = log_uniform(rng, 1, 16), pick(rng, (16, 32, 40, 64, 80, 96, 128))
    pairs = max(work // (2 * batch * heads * depth), 4)
    kind = rng.random()
    if kind < 0.3:
        queries, keys = 1, min(pairs, 8192)
    elif kind < 0.9:
        queries = keys = max(round(pairs**0.5), 2)
    else:
        queries = log_uniform(rng, 2, max(pairs**0.5, 2))
        keys = max(pairs // queries, 1)
    causal = queries == keys and bool(rng.random() < 0.3)
    return attention(batch, heads, queries, keys, depth, causal)


def attention(batch: int, heads: int, queries: int, keys: int, depth: int, causal: bool) -> Case:
    """The case of these sizes."""
    scale = 1 / math.sqrt(depth)
    mask = np.triu(np.full((queries, keys), -1e30), 1) if causal else None  # -∞ has no error bound

    def exact(x: Any) -> list[Bounded]:
        q, k, v = map(Rounded.of, x)
        scores = q.matmul(k.move(lambda value: value.swapaxes(-1, -2))) * scale
        if mask is not None:
            scores = Rounded(scores.exact + mask, scores.error, scores.dtype)
        e = (scores - scores.max(-1)).exp()
        return [(e.matmul(v) / e.sum(-1)).bounded(8)]

    def in_te(q: Any, k: Any, v: Any) -> Any:
        from loopwright import topi

        return topi.nn.attention(q, k, v, causal=causal)

    def with_torch(t: Any, x: Any, out: Any) -> Any:
        return t.nn.functional.scaled_dot_product_attention(*x, is_causal=causal)

    def with_numpy(x: Any, out: Any) -> Any:
        if causal:
            raise NotImplementedError("causal")
        scores = np.matmul(x[0], x[1].swapaxes(-1, -2)) * np.float32(scale)
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return np.matmul(e / e.sum(axis=-1, keepdims=True), x[2], out=out[0])

    model = [
        Step("Transpose", ["x1"], "kt", {"perm": [0, 1, 3, 2]}),
        Step("MatMul", ["x0", "kt"], "s"),
        Step("Mul", ["s", "scale"], "m"),
        Step("Softmax", ["m"], "p", {"axis": -1}),
        Step("MatMul", ["p", "x2"], "y0"),
    ]
    one, other = (batch, heads, queries, depth), (batch, heads, keys, depth)
    return Case(
        "attention",
        [Input(one), Input(other), Input(other)],
        [Output(one)],
        exact,
        "causal" if causal else "",
        in_te,
        () if causal else model,
        {"scale": np.asarray(scale, "float32")},
        with_numpy,
        with_torch,
    )
