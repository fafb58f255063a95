"""footprints and atoms: which elements an access touches, by which thread, and how memory is cut."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.analysis.async_order.atoms import Atoms
from loopwright.analysis.async_order.classes import ThreadClass
from loopwright.analysis.async_order.footprints import MANY, Footprint, Footprints, TooLarge, matrix_bytes
from loopwright.analysis.async_order.sites import plain
from loopwright.analysis.async_order.values import Env
from loopwright.ir import Buffer, BufferLoad, BufferStore, DeclBuffer, Stmt, Var, collect
from loopwright.script import from_source

THREADS = 8


def touched(statement: str, shape: str = "(4, 8)", dtype: str = "float32") -> list[tuple[list[int], list[int], bool]]:
    """Units, threads and exactness of the accesses of S, in order."""
    body, buffer, tx = parsed(statement, shape, dtype)
    env = Env()
    env.vars[tx] = np.arange(THREADS)
    footprints = Footprints(env, THREADS, {buffer.data: 4})
    result = []
    for site in plain(body, frozenset({buffer.data})).sites:
        found = footprints.of_site(site, np.ones(THREADS, bool), True)
        if found is not None:
            assert found.threads is not None
            result.append((list(found.units), list(found.threads), found.is_exact))
    return result


def parsed(statement: str, shape: str, dtype: str) -> tuple[Stmt, Buffer, Var]:
    lines = "\n".join("    " + line for line in statement.splitlines())
    function = from_source(f"""
@T.prim_func
def f(A: T.Buffer(64), n: T.int32):
    tx = T.launch_thread("threadIdx.x", {THREADS})
    S = T.decl_buffer({shape}, "{dtype}", scope="shared")
{lines}
""")
    accesses = [*collect(function.body, BufferStore), *collect(function.body, BufferLoad)]
    buffer = next(access.buffer for access in accesses if access.buffer.name == "S")
    tx = function.body.node.var  # type: ignore[attr-defined]
    body = function.body.body  # type: ignore[attr-defined]
    while hasattr(body, "buffer_var") or isinstance(body, DeclBuffer):
        body = body.body
    return body, buffer, tx


def test_each_thread_has_its_elements():
    ((units, threads, exact),) = touched("S[1, tx] = A[tx]")
    assert (units, threads, exact) == ([8, 9, 10, 11, 12, 13, 14, 15], list(range(8)), True)


def test_loops_and_conditions():
    ((units, threads, exact),) = touched("for k in range(2):\n    if k * 8 + tx < 10:\n        S[k, 7 - tx] = A[tx]")
    assert units == [0, 1, 2, 3, 4, 5, 6, 7, 14, 15] and exact
    assert threads == [7, 6, 5, 4, 3, 2, 1, 0, 1, 0]
    assert touched("for k in range(0):\n    S[k, tx] = A[tx]") == []
    assert touched("if tx > 8:\n    S[0, tx] = A[tx]") == []


def test_a_loop_whose_length_differs():
    ((units, threads, _),) = touched("for k in range(tx - 5):\n    S[k, tx] = A[tx]")
    assert list(zip(units, threads, strict=True)) == [(6, 6), (7, 7), (15, 7)]


def test_what_is_not_known_is_all():
    ((units, _, exact),) = touched('S[1, T.Cast("int32", A[tx])] = A[tx]')
    assert sorted(set(units)) == list(range(8, 16)) and not exact
    ((units, _, exact),) = touched("if A[tx] > T.float32(0):\n    S[1, tx] = A[tx]")
    assert units == list(range(8, 16)) and not exact
    ((units, _, exact),) = touched("for k in range(n):\n    S[k, 0] = A[tx]")
    assert sorted(set(units)) == [0, 8, 16, 24] and not exact


def test_elements_of_several_units():
    ((units, threads, _),) = touched("S[tx] = T.float64(0)", "(8,)", "float64")
    assert units == list(range(16)) and threads == [k // 2 for k in range(16)]


def test_values_that_a_condition_chooses():
    found = touched("A[tx] = T.if_then_else(tx < 2, S[0, tx], S[1, tx])")
    assert [units for units, _, _ in found] == [[0, 1], [10, 11, 12, 13, 14, 15]]


def test_symbolic_sizes_are_too_large():
    with pytest.raises(TooLarge, match="the size of S is not known"):
        touched("S[0, tx] = A[tx]", "(4, n)")


def test_operands_of_wgmma_lie_as_they_are_swizzled():
    row = matrix_bytes(0, 8, 32, 2, 128, (0, 1024), False)
    assert sorted(row[: 16 * 2]) == list(range(32))
    second = sorted(row[16 * 2 : 32 * 2])
    assert second == [*range(128 + 16, 128 + 32), *range(128, 128 + 16)] or set(second) == set(range(128, 160))
    flat = matrix_bytes(64, 64, 32, 2, 0, (128, 256), False)
    assert set(flat) == set(range(64, 64 + 64 * 32))
    transposed = matrix_bytes(0, 64, 32, 2, 128, (1024, 1024), True)
    assert set(transposed) == set(range(2048))


# --- atoms ----------------------------------------------------------------------------------------------------------


def test_memory_is_cut_where_accesses_differ():
    data = Var("S", "handle")
    members = ThreadClass(0, np.ones(4, bool), [0, 1, 2, 3], [], "", False)
    tile = Footprint(data, np.arange(8), None, True)
    by_thread = Footprint(data, np.arange(8), np.arange(8) // 2, True)
    reversed_ = Footprint(data, np.arange(8), 3 - np.arange(8) // 2, True)
    half = Footprint(data, np.arange(4), np.zeros(4, int), True)
    all_read = Footprint(data, np.repeat(np.arange(2), 4), np.tile(np.arange(4), 2), True)
    atoms = Atoms(frozenset({data}))
    regions = [atoms.region(footprint, members) for footprint in (tile, by_thread, reversed_, half, all_read)]
    assert atoms.region(tile, members) is regions[0]
    assert regions[4].owners is not None and list(regions[4].owners) == [MANY, MANY]
    atoms.finish()
    (space,) = atoms.spaces.values()
    assert len(regions[0].atoms) == len(space.first) == 3
    first = next(atom for atom in range(3) if space.first[atom] == 0)
    assert regions[4].many == {first}
    assert regions[1].map != regions[2].map
    for atom in regions[3].atoms:
        assert space.is_same_thread(regions[1], regions[3], atom) is (space.first[atom] == 0)
        assert not space.is_same_thread(regions[1], regions[2], atom)
    assert not space.is_same_thread(regions[1], regions[4], first)
