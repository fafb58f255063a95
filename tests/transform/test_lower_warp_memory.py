"""lower_warp_memory: parts of lanes, by constants and by loops; and what gives a lane no part of its own."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright.analysis.thread_races import ThreadRace
from loopwright.script import from_source
from loopwright.transform.on_request.lower_warp_memory import NotThisLane

KERNEL = """
@T.prim_func
def main(A: T.Buffer((2, 32, 4)), B: T.Buffer((2, 32, 4))):
    tx = T.launch_thread("threadIdx.x", 32)
    W = T.decl_buffer((2, 32, 4), scope="warp")
    for i, k in T.grid(2, 4):
        W[i, tx, k] = A[i, tx, k]
    T.mma_fill("float32", 4, W.data, 128 + tx * 4)
    T.tvm_storage_sync("shared")
    for i, k in T.grid(2, 4):
        B[i, tx, k] = W[i, tx, k]
"""


def source_of(text: str) -> str:
    source: str = lw.build(from_source(text), target="cuda -arch=sm_80").get_source("cuda")
    return source[source.index("__global__") :]


@pytest.mark.parametrize("fill", ["128 + tx * 4", "128"])
def test_a_lane_has_its_part(fill: str):
    text = KERNEL.replace("128 + tx * 4", fill)
    assert "float W[8];" in source_of(text) and "W[i * 4 + k] = A[i * 128 + tx * 4 + k];" in source_of(text)
    a, b = np.arange(256, dtype="float32").reshape(2, 32, 4), np.zeros((2, 32, 4), "float32")
    lw.build(from_source(text), target="cuda -model=emulated")(a, b)
    np.testing.assert_array_equal(b[0], a[0])
    assert (b[1] == 0).all()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("= W[i, tx, k]", "= W[i, 31 - tx, k]", r"index .* of W names no lane"),
        ("= W[i, tx, k]", "= W[i, tx // 2, k]", r"index .* of W is not that of one lane"),
        ("= W[i, tx, k]", "= W[i, 0, k]", r"index .* of W names no lane"),
        ("128 + tx * 4", "tx * 8", "a lane has 8 elements of W here, and 4 elsewhere"),
        ("128 + tx * 4", "i * 6 + tx * 4", r"index .* of W, where a lane has 4 elements, may be one of another lane"),
        ('"threadIdx.x", 32', '"threadIdx.x", 16', "the kernel has 16 threads along x"),
        ('"threadIdx.x"', '"threadIdx.y"', "W is used where no threads run along x"),
        (
            "W = T.decl_buffer((2, 32, 4)",
            "W = T.decl_buffer((2, 33, 4)",
            "W has 264 elements, which 32 lanes cannot share",
        ),
    ],
)
def test_what_is_refused(old: str, new: str, message: str):
    text = KERNEL.replace("T.mma_fill", "for i in range(2):\n        T.mma_fill") if "i * 6" in new else KERNEL
    assert old in text
    with pytest.raises(NotThisLane, match=message):
        source_of(text.replace(old, new))


def test_more_threads_than_a_warp_share_no_element():
    text = KERNEL.replace('"threadIdx.x", 32', '"threadIdx.x", 64').replace(
        "T.Buffer((2, 32, 4)", "T.Buffer((2, 64, 4)"
    )
    with pytest.raises(ThreadRace, match=r"both touch W\[0, 0, 0\]"):
        source_of(text.replace("W[i, tx, k]", "W[i, tx % 32, k]").replace("tx * 4", "tx % 32 * 4"))
