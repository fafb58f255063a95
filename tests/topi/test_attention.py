"""topi.nn.attention beyond its samples: what is hidden, blocks of keys, sizes known late, types, targets, mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.autosched import Machine
from loopwright.autosched.attention import tiles as attention_tiles
from loopwright.target import Target
from loopwright.topi.errors import InvalidShapeError, UnsupportedLayout
from loopwright.topi.nn.attention import _attention as meaning
from loopwright.topi.nn.attention import attention
from loopwright.topi.rounding import rounding_of
from loopwright.topi.samples import real_numbers


def built(arrays, target="llvm", **options):
    inputs = [te.placeholder(array.shape, str(array.dtype), f"p{k}") for k, array in enumerate(arrays)]
    with Target(target):
        made = attention(*inputs, **options)
        function = lw.build([*inputs, made], target=target)
    result = np.full([int(size) for size in made.shape], 77, str(made.dtype))
    function(*arrays, result)
    return result


def require_bound(found, arrays, **options):
    wide = [array.astype("float64") for array in arrays]
    exact = meaning(*wide, **options)
    bound = rounding_of(meaning, "float32", **options)(wide, exact)
    kind = np.finfo(found.dtype)
    assert (np.abs(found - exact) <= bound + kind.eps * np.abs(exact) + kind.smallest_subnormal).all()


def small_tiles(monkeypatch, *sizes):
    tiles = attention_tiles.AttentionTiles(*sizes, is_parallel=True)
    monkeypatch.setattr(attention_tiles, "choose_tiles", lambda *_: tiles)


@pytest.mark.parametrize("diagonal", [0, 2])
def test_a_causal_query_sees_what_was_before_it(monkeypatch, diagonal):
    # Blocks of 4 keys in tiles of 2, groups of 4 queries: some blocks are skipped, some cut by the diagonal.
    small_tiles(monkeypatch, 4, 1, 2, 4, 4, 2, 1)
    q, k, v = real_numbers((1, 2, 11, 6)), real_numbers((1, 2, 11, 6)), real_numbers((1, 2, 11, 5))
    found = built([q, k, v], causal=True, diagonal=diagonal)
    for row in range(11):
        seen = row + diagonal + 1
        require_bound(found[:, :, row : row + 1], [q[:, :, row : row + 1], k[:, :, :seen], v[:, :, :seen]])


def test_large_scores_in_later_blocks_shrink_what_was_summed(monkeypatch):
    small_tiles(monkeypatch, 4, 1, 2, 4, 4, 4, 1)
    q, k, v = real_numbers((1, 1, 5, 4)), real_numbers((1, 1, 9, 4)), real_numbers((1, 1, 9, 4))
    k = k * np.float32(1.6) ** np.arange(9, dtype="float32")[:, None]
    require_bound(built([q, k, v]), [q, k, v])


def test_a_query_that_sees_nothing_is_no_number_or_zero():
    q, k, v = real_numbers((1, 1, 3, 4)), real_numbers((1, 1, 5, 4)), real_numbers((1, 1, 5, 4))
    mask = np.zeros((1, 1, 3, 5), "float32")
    mask[0, 0, 1] = -np.inf
    plain, zero = built([q, k, v, mask]), built([q, k, v, mask], hidden_is_zero=True)
    assert np.isnan(plain[0, 0, 1]).all() and (zero[0, 0, 1] == 0).all()
    np.testing.assert_array_equal(plain[0, 0, [0, 2]], zero[0, 0, [0, 2]])
    require_bound(zero[:, :, :1], [q[:, :, :1], k, v])


def test_a_score_that_is_no_number_spoils_its_query_alone():
    q, k, v = (real_numbers((1, 1, 5, 4)) for _ in range(3))
    q[0, 0, 2, 1] = np.nan
    found = built([q, k, v])
    assert np.isnan(found[0, 0, 2]).all() and not np.isnan(found[0, 0, [0, 1, 3, 4]]).any()


def test_sizes_may_be_known_when_it_runs():
    queries, keys = te.size_var("queries"), te.size_var("keys")
    q, k, v = (te.placeholder((1, 2, size, 8), name=name) for name, size in (("q", queries), ("k", keys), ("v", keys)))
    with Target("llvm -num-cores=4"):
        plan = lw.autosched.apply([q, k, v, attention(q, k, v, causal=True)])  # proves that heads run in parallel
        function = lw.build(plan.mod)
    assert "T.parallel" in str(plan.mod)
    for rows, columns in ((1, 1), (5, 13), (37, 130), (3, 0)):
        arrays = [real_numbers((1, 2, size, 8)) for size in (rows, columns, columns)]
        result = np.full((1, 2, rows, 8), 77, "float32")
        function(*arrays, result)
        last = rows - 1
        seen = min(columns, rows)
        require_bound(result[:, :, last:], [arrays[0][:, :, last:], *[array[:, :, :seen] for array in arrays[1:]]])


def test_low_precision_is_computed_in_float32():
    arrays = [real_numbers((1, 1, size, 16), "float16") for size in (3, 7, 7)]
    require_bound(built(arrays), arrays)


def test_c_computes_it_too():
    arrays = [real_numbers((1, 2, size, 6)) for size in (5, 9, 9)]
    require_bound(built(arrays, "c"), arrays)


@pytest.mark.parametrize("target", ["aarch64-linux-gnu", "x86_64-linux-gnu -mcpu=haswell", "x86_64-linux-gnu"])
@pytest.mark.parametrize("queries", [None, 1, 5, 128])
def test_tiles_fit_the_registers_of_the_target(target, queries):
    machine = Machine.of(Target(f"llvm -mtriple={target}"))
    tiles = attention_tiles.choose_tiles(machine, "float32", 12, queries, 128, 64, 64)
    assert tiles.score_rows * tiles.query_vectors < machine.registers
    assert tiles.value_rows * tiles.value_vectors < machine.registers
    assert tiles.queries % tiles.value_rows == 0 and tiles.lanes <= machine.lanes("float32")
    assert tiles.keys * tiles.queries * 4 <= machine.l1


def tensor(*shape, dtype="float32"):
    return te.placeholder(shape, dtype, "x")


MISTAKES = {
    "ranks": ([tensor(2, 3, 4), tensor(1, 2, 3, 4), tensor(1, 2, 3, 4)], {}, "of 3 dimensions"),
    "depths": ([tensor(1, 2, 3, 4), tensor(1, 2, 3, 5), tensor(1, 2, 3, 5)], {}, "numbers of a head: 4 in the query"),
    "keys": ([tensor(1, 2, 3, 4), tensor(1, 2, 3, 4), tensor(1, 2, 5, 4)], {}, "keys: 3 in the key, 5 in the value"),
    "heads": ([tensor(1, 3, 3, 4), tensor(1, 2, 3, 4), tensor(1, 2, 3, 4)], {}, "3 heads of the query cannot share 2"),
    "types": ([tensor(1, 2, 3, 4, dtype="int32")] * 3, {}, "types int32, int32, int32"),
    "mask": ([tensor(1, 2, 3, 4)] * 3 + [tensor(1, 1, 2, 3)], {}, "dimension Q: 2 in the mask, 3 in the scores"),
    "layouts": ([tensor(1, 2, 3, 4)] * 3, {"layouts": "BHSD"}, "layouts 'BHSD' are not those of query"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named(name):
    inputs, options, text = MISTAKES[name]
    with pytest.raises((InvalidShapeError, UnsupportedLayout), match=text):
        attention(*inputs, **options)


# What is hidden, and no number.

SPOILED = [("key", np.nan), ("key", np.inf), ("key", -np.inf), ("key", 3e38), ("value", np.nan), ("value", np.inf)]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("where", "number"), SPOILED)
@pytest.mark.parametrize("causal_by", ["add", "select", "select_first"])
def test_a_later_key_that_is_no_number_counts_as_it_does_op_by_op(monkeypatch, where, number, causal_by):
    small_tiles(monkeypatch, 4, 1, 2, 4, 4, 2, 1)
    q, k, v = np.abs(real_numbers((1, 2, 11, 6))), real_numbers((1, 2, 11, 6)), real_numbers((1, 2, 11, 5))
    q *= 4
    (k if where == "key" else v)[0, 1, 9, 3] = number
    options = {"causal": True, "causal_by": causal_by}
    with np.errstate(all="ignore"):
        wanted = meaning(*(array.astype("float32") for array in (q, k, v)), **options)
        found = built([q, k, v], **options)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    assert np.isfinite(found[0, 0]).all()
    fine = np.isfinite(wanted)
    np.testing.assert_allclose(found[fine], wanted[fine], rtol=1e-4, atol=1e-4)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("causal_by", ["add", "select", "select_first"])
@pytest.mark.parametrize("mask_layout", ["BHQK", "BHKQ"])
def test_a_mask_that_is_no_number_counts_for_later_keys_too(monkeypatch, number, causal_by, mask_layout):
    small_tiles(monkeypatch, 4, 1, 2, 4, 4, 2, 1)
    q, k, v = (real_numbers((1, 2, 11, 4)) for _ in range(3))
    mask = np.zeros((1, 2, 11, 11), "float32")
    mask[0, 1, 2, 9] = number
    if mask_layout == "BHKQ":
        mask = np.ascontiguousarray(mask.transpose(0, 1, 3, 2))
    options = {"causal": True, "causal_by": causal_by, "mask_layout": mask_layout}
    with np.errstate(all="ignore"):
        wanted = meaning(q, k, v, mask, **options)
    found = built([q, k, v, mask], **options)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    assert np.isnan(found[0, 1, 2]).all() == (causal_by != "select" and not number < 0)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("mask_selects", [False, True])
@pytest.mark.parametrize("hidden_is_zero", [False, True])
@pytest.mark.parametrize("queries", [3, 9])
def test_a_masked_key_that_is_no_number_counts_where_the_mask_is_added(mask_selects, hidden_is_zero, queries):
    q, k, v = (real_numbers((1, 1, size, 4)) for size in (queries, 5, 5))
    k[0, 0, 2, 1] = np.nan
    mask = np.zeros((1, 1, queries, 5), "float32")
    mask[..., 2] = -np.inf
    mask[0, 0, 1] = -np.inf
    options = {"mask_selects": mask_selects, "hidden_is_zero": hidden_is_zero}
    with np.errstate(all="ignore"):
        wanted = meaning(q, k, v, mask, **options)
    found = built([q, k, v, mask], **options)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    assert np.isnan(found[0, 0, 0]).all() != mask_selects
    np.testing.assert_array_equal(found[0, 0, 1], 0 if hidden_is_zero else np.nan)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("keys", "depth", "width"),
    [(1, 1, 1), (3, 2, 5), (7, 3, 4), (8, 4, 16), (9, 17, 33), (40, 5, 7), (67, 64, 20), (130, 12, 66)],
)
def test_one_query_has_lanes_along_keys(keys, depth, width):
    q, k = real_numbers((2, 4, 1, depth)), real_numbers((2, 2, keys, depth))
    v, mask = real_numbers((2, 2, keys, width)), real_numbers((2, 1, 1, keys))
    for target in ("llvm", "c"):
        require_bound(built([q, k, v, mask], target), [q, k, v, mask])
    require_bound(built([q, k, v], causal=True, diagonal=2), [q, k[:, :, :3], v[:, :, :3]])
    require_bound(built([q, k, v], layouts="BHSD BHSD BHSD BSHD").transpose(0, 2, 1, 3), [q, k, v])


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_one_query_of_other_types(dtype):
    q, k, v = (real_numbers((1, 3, size, 20), dtype) for size in (1, 21, 21))
    exact = meaning(*[array.astype("float64") for array in (q, k, v)])
    assert np.abs(built([q, k, v]) - exact).max() < (2e-3 if dtype == "float16" else 1e-14)


@pytest.mark.parametrize("ahead", [0, 24])
def test_one_query_and_blocks_of_keys(monkeypatch, ahead):
    tiles = attention_tiles.AttentionTiles(1, 1, 8, 16, 4, 1, 2, is_parallel=True, key_lanes=4, ahead=ahead, line=16)
    monkeypatch.setattr(attention_tiles, "choose_tiles", lambda *_: tiles)
    q, k, v = real_numbers((1, 2, 1, 6)), real_numbers((1, 2, 45, 6)), real_numbers((1, 2, 45, 11))
    k = k * np.float32(1.1) ** np.arange(45, dtype="float32")[:, None]
    require_bound(built([q, k, v]), [q, k, v])
    found = built([q, k, v], causal=True, diagonal=20)
    require_bound(found, [q, k[:, :, :21], v[:, :, :21]])


def test_one_query_and_a_number_of_keys_that_is_known_late():
    n = te.size_var("n")
    shapes = [(1, 2, 1, 9), (1, 2, n, 9), (1, 2, n, 6)]
    inputs = [te.placeholder(shape, "float32", f"p{k}") for k, shape in enumerate(shapes)]
    function = lw.build([*inputs, attention(*inputs)], target="llvm")
    for keys in (1, 5, 8, 31):
        q, k, v = real_numbers((1, 2, 1, 9)), real_numbers((1, 2, keys, 9)), real_numbers((1, 2, keys, 6))
        result = np.empty((1, 2, 1, 6), "float32")
        function(q, k, v, result)
        require_bound(result, [q, k, v])


@pytest.mark.parametrize("cpu", ["skylake-avx512", "znver3", "x86-64"])
def test_one_query_on_other_processors(cpu):
    target = f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu}"
    tiles = attention_tiles.choose_tiles(Machine.of(target), "float32", 8, 1, 50, 64, 64)
    assert tiles.queries == 1 and tiles.key_lanes == Machine.of(target).lanes("float32")
    assert attention_tiles.choose_tiles(Machine.of(target), "float32", 64, 1, 5000, 64, 64).ahead > 0 == tiles.ahead
    inputs = [te.placeholder((1, 8, size, 64), "float32", f"p{k}") for k, size in enumerate((1, 50, 50))]
    with Target(target):
        assert "dots" in lw.lower([*inputs, attention(*inputs)]).script()
