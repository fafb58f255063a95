"""What to write for names that te does not have, and that people look for in it."""

from __future__ import annotations

from typing import Final

INSTEAD: Final = {
    "argmax": "write a reducer over (index, value), as in examples/argmax.py",
    "argmin": "write a reducer over (index, value), as in examples/argmax.py",
    "cast": 'write x.astype("float16")',
    "clip": "write te.min(te.max(x, low), high)",
    "gelu": "write 0.5 * x * (1 + te.erf(x * 0.7071067811865476))",
    "matmul": "write te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k)) over a te.reduce_axis k",
    "maximum": "write te.max(a, b)",
    "mean": "write te.sum(x, axis=k), and divide by n in a compute of its own (in the same one: te.sum(x / n, axis=k))",
    "minimum": "write te.min(a, b)",
    "pow": "write te.power(x, y), or x ** y",
    "prod": "write product = te.comm_reducer(lambda a, b: a * b, lambda dtype: te.const(1, dtype)), then "
    "product(x, axis=k)",
    "relu": "write te.max(x, 0.0)",
    "select": "write te.if_then_else(condition, a, b)",
    "softmax": "it is four computes: the maximum of a row, te.exp(x - maximum), their sum, and the quotient",
    "square": "write x * x",
    "where": "write te.if_then_else(condition, a, b)",
}
