"""Small tensor intrinsics for the enumerating harness: what nests of tiny programs compute, done by plain loops.

Their implementation is their description: the harness asks whether blocks are matched and moved rightly, not what a
machine does.
"""

from __future__ import annotations

from functools import cache

from loopwright.ir import PrimFunc
from loopwright.script import from_source
from loopwright.transform.tensor_intrinsics import TensorIntrin

_TEXT = """
from loopwright.script import tir as T

@T.prim_func
def desc({arguments}):
    with T.block("root"):
        for {loops}:
            with T.block("work"):
                {axes}
                {store}
"""

# name → arguments, loops, axes, store; {n} and {m} are sizes
_FORMS = {
    "copy": (
        'A: T.Buffer({n}, "int32"), B: T.Buffer({n}, "int32")',
        "i in range({n})",
        "v = T.axis.spatial({n}, i)",
        "B[v] = A[v]",
    ),
    "scale": (
        'A: T.Buffer({n}, "int32"), B: T.Buffer({n}, "int32")',
        "i in range({n})",
        "v = T.axis.spatial({n}, i)",
        "B[v] = A[v] * 2",
    ),
    "next": (
        'A: T.Buffer({n}, "int32"), B: T.Buffer({n}, "int32")',
        "i in range({n})",
        "v = T.axis.spatial({n}, i)",
        "B[v] = A[v] + 1",
    ),
    "greater": (
        'A: T.Buffer({n}, "int32"), B: T.Buffer(1, "int32")',
        "k in range({n})",
        "v = T.axis.reduce({n}, k)",
        "B[0] = T.max(B[0], A[v])",
    ),
    "sum": (
        'A: T.Buffer({n}, "int32"), B: T.Buffer(1, "int32")',
        "k in range({n})",
        "v = T.axis.reduce({n}, k)",
        "B[0] = B[0] + A[v]",
    ),
    "dot": (
        'A: T.Buffer({n}, "int32"), B: T.Buffer({n}, "int32"), C: T.Buffer(1, "int32")',
        "k in range({n})",
        "v = T.axis.reduce({n}, k)",
        "C[0] = C[0] + A[v] * B[v]",
    ),
    "rows": (
        'A: T.Buffer(({n}, {m}), "int32"), B: T.Buffer({n}, "int32")',
        "i, k in T.grid({n}, {m})",
        'v, w = T.axis.remap("SR", [i, k])',
        "B[v] = B[v] + A[v, w]",
    ),
}


@cache
def small_intrinsics() -> dict[str, int]:
    """The names of the intrinsics and the extent of their first loop; registered when first asked for."""
    names = {}
    for form, parts in _FORMS.items():
        for n in (1, 2, 3, 4, 5):
            name = f"small_{form}_{n}"
            texts = [part.format(n=n, m=2) for part in parts]
            text = _TEXT.format(arguments=texts[0], loops=texts[1], axes=texts[2], store=texts[3])
            desc = from_source(text)
            assert isinstance(desc, PrimFunc)
            TensorIntrin.register(name, desc, desc, override=True)
            names[name] = n
    return names
