"""use_warpgroups: products are waited for where their results are used, operands of one's own are registers."""

from __future__ import annotations

import re
from textwrap import indent

import numpy as np
import pytest

import loopwright as lw
from loopwright.script import from_source
from loopwright.target import Target
from loopwright.transform.on_request.use_warpgroups import NotForTensorCores
from loopwright.transform.pipeline import lower
from loopwright.transform.warp_roles import CannotSpecialize

EMULATED = "cuda -model=emulated -arch=sm_90a"
ORDERS = ("forwards", "backwards", "random")

# D = (A · Bᵀ rounded) · C, for two tiles of B and C: A comes once. The first product, rounded, is the left operand of
# the second one.
CHAIN = """
@T.prim_func
def chain(A: T.Buffer((64, 64), "float16"), B: T.Buffer((2, 64, 64), "float16"), C: T.Buffer((2, 64, 64), "float16"),
          D: T.Buffer((64, 64), "float32")):
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for tile in T.serial(1, annotations={"warp_role_slots": 2}):
            Q = T.decl_buffer((64, 64), "float16", scope="shared.dyn")
            S = T.decl_buffer((4, 8, 4, 8, 2, 2), scope="local")
            O = T.decl_buffer((4, 8, 4, 8, 2, 2), scope="local")
            P = T.decl_buffer((64, 64), "float16", scope="shared")
            with T.attr("load", "warp_role", 32):
                for r, c in T.grid(64, 64):
                    Q[r, c] = A[r, c]
            with T.attr("multiply", "warp_role", 128):
                BEGIN
            for i in T.serial(2, annotations={"warp_role_stages": 2}):
                K = T.decl_buffer((64, 64), "float16", scope="shared.dyn")
                V = T.decl_buffer((64, 64), "float16", scope="shared.dyn")
                with T.attr("load", "warp_role", 32):
                    for r, c in T.grid(64, 64):
                        K[r, c] = B[i, r, c]
                with T.attr("values", "warp_role", 32):
                    for r, c in T.grid(64, 64):
                        V[r, c] = C[i, r, c]
                with T.attr("multiply", "warp_role", 128):
                    PARTS
            with T.attr("multiply", "warp_role", 128):
                END
"""
THREADS = """for z in T.thread_binding(4, thread="threadIdx.z"):
    for y in T.thread_binding(8, thread="threadIdx.y"):
        for x in T.thread_binding(4, thread="threadIdx.x"):
"""
PRODUCT = """for ks in range(4):
    for j in T.serial(8, annotations={"tensor_core": "wgmma"}):
        for h, e, k in T.grid(2, 2, 16):
            TO[z, y, x, j, h, e] = TO[z, y, x, j, h, e] + T.Cast("float32", LEFT) * T.Cast("float32", RIGHT)
"""
SHARE = "for j, h, e in T.grid(8, 2, 2):\n    "
ROW, COLUMN = "z * 16 + h * 8 + y", "j * 8 + x * 2 + e"


def product(to, left, right):
    return PRODUCT.replace("TO", to).replace("LEFT", left).replace("RIGHT", right)


def parts(fill="0", row=ROW, column=COLUMN):
    """What threads do, by name."""
    return {
        "clear": f"{SHARE}O[z, y, x, j, h, e] = T.float32(0)",
        "ones": f"{SHARE}P[{row}, {column}] = T.float16(1)",
        "scores": f"{SHARE}S[z, y, x, j, h, e] = T.float32({fill})\n"
        + product("S", f"Q[{ROW}, ks * 16 + k]", f"K[{COLUMN}, ks * 16 + k]"),
        "round": f'{SHARE}P[{row}, {column}] = T.Cast("float16", S[z, y, x, j, h, e])',
        "weigh": product("O", f"P[{ROW}, ks * 16 + k]", f"V[ks * 16 + k, {COLUMN}]"),
        "double": f"{SHARE}O[z, y, x, j, h, e] = O[z, y, x, j, h, e] * T.float32(2)",
        "store": f"{SHARE}D[{ROW}, {COLUMN}] = O[z, y, x, j, h, e]",
    }


def chain(inside=("scores", "round", "weigh"), before=("clear",), change=("", ""), **options):
    """The program; each of its parts is a nest of threads of its own."""
    of = parts(**options)
    text = CHAIN
    for name, some in (("BEGIN", before), ("PARTS", inside), ("END", ("store",))):
        place = re.search(rf"^( *){name}$", text, re.MULTILINE)
        nests = "".join([THREADS + indent(of[part], 12 * " ").rstrip() + "\n" for part in some])
        text = text.replace(place.group(), indent(nests, place.group(1)).rstrip())
    assert change[0] in text
    return from_source(text.replace(*change))


def calls_of(program):
    """The calls of wgmma of the role that multiplies, in the order of its text; and that text."""
    text = lower(program, Target(EMULATED), stop_after="use_warpgroups").script()
    text = text[text.index("tvm_storage_sync") : text.index('T.StringImm("load")')]
    return [
        call for call in re.findall(r"T\.(wgmma_wait\(\d|\w+)", text) if call.startswith("wgmma_w") or call == "wgmma"
    ], text


def require(program, meaning):
    """That a program computes what `meaning` says of float64 arrays, whoever comes first."""
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-2, 3, shape).astype("float16") for shape in ((64, 64), (2, 64, 64), (2, 64, 64)))
    wanted = meaning(*[one.astype("float64") for one in (a, b, c)])
    module = lw.build(program, target=EMULATED)
    for order in ORDERS:
        module.set_thread_order(order)
        d = np.zeros((64, 64), "float32")
        module(a, b, c, d)
        np.testing.assert_array_equal(d, wanted)


def test_the_first_product_stores_where_it_would_add_to_zeros():
    require(chain(), lambda a, b, c: sum(a @ b[i].T @ c[i] for i in range(2)))
    _, text = calls_of(chain())
    assert re.search(r"T\.wgmma\(T\.address_of\(S\[.*, ks > 0\)\n", text)
    assert "] = T.float32(0)" not in text[text.index("for i in") : text.index("T.wgmma(")]


def test_other_accumulators_are_added_to():
    require(chain(fill="3"), lambda a, b, c: sum((a @ b[i].T + 3) @ c[i] for i in range(2)))
    _, text = calls_of(chain(fill="3"))
    assert "ks > 0" not in text
    assert "] = T.float32(3)" in text


def test_what_a_thread_multiplies_of_its_own_is_in_registers():
    _, text = calls_of(chain())
    assert 'T.decl_buffer((32,), "float16", scope="local")' in text
    assert "P[j * 4 + h * 2 + e] = " in text
    assert "T.address_of(P[ks * 8]), 0, 0, 0, 0" in text


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ("z * 16 + h * 8 + (y + 1) % 8", COLUMN),  # of another quad
        ("(z + 1) % 4 * 16 + h * 8 + y", COLUMN),  # of another warp
        (ROW, "j * 8 + (3 - x) * 2 + e"),  # of another lane
        (ROW, "j * 8 + x + e * 4"),  # other columns of these
    ],
)
def test_what_another_thread_has_stored_is_not(row, column):
    with pytest.raises(NotForTensorCores, match="P is filled by the role that multiplies"):
        lw.build(chain(row=row, column=column), target=EMULATED)


@pytest.mark.parametrize(
    ("inside", "calls"),
    [
        # Scores are rounded at once; sums are read behind the loop; the tile of values is free by then.
        (("scores", "round", "weigh"), ["wgmma", "wgmma_wait(0", "wgmma", "wgmma_wait(0"]),
        # Both are under way. Rounding needs the scores, and registers that are free when the values are weighed.
        (("scores", "weigh", "round"), ["wgmma", "wgmma", "wgmma_wait(0"]),
        (("weigh", "scores", "double", "round"), ["wgmma", "wgmma", "wgmma_wait(1", "wgmma_wait(0"]),
    ],
)
def test_products_are_waited_for_where_results_are_used(inside, calls):
    program = chain(inside, ("clear", "ones"))
    assert calls_of(program)[0] == calls

    def meaning(a, b, c):
        total, weights = np.zeros((64, 64)), np.ones((64, 64))
        for i in range(2):
            for part in inside:
                weights = a @ b[i].T if part == "round" else weights
                total = total + weights @ c[i] if part == "weigh" else 2 * total if part == "double" else total
        return total

    require(program, meaning)


def test_tiles_are_free_when_the_products_that_read_them_are_done():
    _, text = calls_of(chain(("weigh", "scores", "double", "round"), ("clear", "ones")))
    arrives = [text.count("mbarrier_arrive", 0, text.index(mark)) for mark in ("wgmma_wait(1", "wgmma_wait(0")]
    assert arrives == [0, 1]  # of the values, then of the keys


def test_memory_around_the_loop_of_roles_is_handed_on():
    text = lower(chain(), Target(EMULATED), stop_after="specialize_warps").script()
    assert 'Q = T.allocate([2, 64, 64], "float16", "shared.dyn", annotations={"swizzle": 128})' in text
    assert "T.tensor_copy_async(T.address_of(Q_1[slot, 0, 0])" in text
    loads, multiplies = text.split('T.StringImm("load")')[1], text.split('T.StringImm("load")')[0]
    assert loads.index("mbarrier_wait") < loads.index("tensor_copy_async") < loads.index("mbarrier_arrive")
    assert multiplies.index("mbarrier_wait") < multiplies.index("for i in range(2)")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            (
                "                        K[r, c] = B[i, r, c]",
                "                        K[r, c] = B[i, r, c]\n" + 24 * " " + "Q[r, c] = A[r, c]",
            ),
            "role load writes Q, which other roles touch as well, and it is allocated around the loop of roles",
        ),
        (
            ('"warp_role_stages": 2', '"warp_role_stages": 2, "warp_role_registers": 232'),
            "128 of 256 threads cannot have 232 registers",
        ),
    ],
)
def test_what_cannot_be_handed_on(change, message):
    with pytest.raises(CannotSpecialize, match=message):
        lw.build(chain(change=change), target=EMULATED)
