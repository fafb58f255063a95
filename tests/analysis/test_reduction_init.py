"""Where a reduction's init goes, and that reductions stay right whatever was done to their loops."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright.analysis import InitUsesReduction, write_inits
from loopwright.evaluator import evaluate
from loopwright.ir import (
    Block,
    BlockRealize,
    BufferRegion,
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    IterType,
    IterVar,
    LetStmt,
    MatchBufferRegion,
    Node,
    PrimFunc,
    Range,
    Select,
    SeqStmt,
    Stmt,
    Var,
    While,
    const,
    decl_buffer,
    logical_and,
    pre_order_visit,
)
from loopwright.ir.intrinsics import call_pure_extern, maximum
from loopwright.ir.operators import floordiv, floormod
from loopwright.script import from_source

SPATIAL, REDUCE = IterVar.DataPar, IterVar.CommReduce


def loops(variables, extents, body, kinds=None):
    for k in reversed(range(len(variables))):
        kind = (kinds or {}).get(variables[k].name, ForKind.SERIAL)
        body = For(variables[k], const(0), extents[k], kind, body)
    return body


def row_sum(rows, columns, names, extents, bind, predicate=None, kinds=None, domain=None):
    """C[vi] = the sum of A[vi, :], over the given loops with vi, vk = bind(loop variables)."""
    A, C = decl_buffer((rows, columns), name="A"), decl_buffer((rows,), name="C")
    vi, vk = Var("vi"), Var("vk")
    block = Block(
        (IterVar((0, rows), vi, SPATIAL), IterVar((0, columns), vk, REDUCE)),
        (A[vi : vi + 1, vk : vk + 1],),
        (C[vi : vi + 1],),
        "C",
        BufferStore(C, C[vi] + A[vi, vk], [vi]),
        init=BufferStore(C, const(0.0, "float32"), [vi]),
    )
    variables = [Var(name) for name in names]
    values = bind(*variables)
    holds = const(True) if predicate is None else predicate(*variables)
    return PrimFunc([A, C], loops(variables, extents, BlockRealize(values, holds, block), kinds))


def check_row_sum(func, rows, columns):
    a = np.arange(rows * columns, dtype="float32").reshape(rows, columns)
    c = np.full(rows, 99, "float32")
    evaluate(func, a, c)
    np.testing.assert_array_equal(c, a.sum(axis=1))


def shape_of(root):
    """The nest as text: loops by name, blocks by name."""
    if isinstance(root, PrimFunc):
        root = root.body
    if isinstance(root, For):
        inner = shape_of(root.body)
        return f"{root.loop_var.name}({inner})"
    if isinstance(root, SeqStmt):
        return " ".join([shape_of(part) for part in root.seq])
    if isinstance(root, BlockRealize):
        return root.block.name_hint
    if isinstance(root, IfThenElse):
        return f"if({shape_of(root.then_case)})"
    if isinstance(root, (LetStmt, While)):
        return f"{type(root).__name__}({shape_of(root.body)})"
    return type(root).__name__


def written(func):
    return shape_of(write_inits(func.body))


def test_data_loop_outside_reduction_inside():
    func = row_sum(4, 5, "ik", (4, 5), lambda i, k: (i, k))
    assert written(func) == "i(C_init k(C))"
    check_row_sum(func, 4, 5)


def test_reduction_outside_mirrors_the_data_loop():
    func = row_sum(4, 5, "ki", (5, 4), lambda k, i: (i, k), kinds={"i": ForKind.VECTORIZED})
    assert written(func) == "i(C_init) k(i(C))"
    init = write_inits(func.body).seq[0]
    assert init.kind == ForKind.VECTORIZED
    assert init.loop_var is not func.body.body.loop_var
    check_row_sum(func, 4, 5)


def test_no_loop_carries():
    func = row_sum(4, 1, "ik", (4, 1), lambda i, k: (i, k))
    assert written(func) == "i(k(C_init C))"
    check_row_sum(func, 4, 1)


def test_tiled_data_loops_do_not_carry():
    func = row_sum(8, 3, ("io", "ko", "ii"), (2, 3, 4), lambda io, ko, ii: (io * 4 + ii, ko))
    assert written(func) == "io(ii(C_init) ko(ii(C)))"
    check_row_sum(func, 8, 3)


def test_reordered_tile_is_mirrored_by_both_its_loops():
    func = row_sum(8, 3, ("ko", "ii", "io"), (3, 4, 2), lambda ko, ii, io: (io * 4 + ii, ko))
    assert written(func) == "ii(io(C_init)) ko(ii(io(C)))"
    check_row_sum(func, 8, 3)


def test_guard_over_data_loops_is_kept_and_over_reduction_loops_dropped():
    def guard(io, ii, ko, ki):
        return logical_and(io * 4 + ii < 7, ko * 4 + ki < 6)

    func = row_sum(
        7, 6, ("io", "ii", "ko", "ki"), (2, 4, 2, 4), lambda io, ii, ko, ki: (io * 4 + ii, ko * 4 + ki), guard
    )
    assert written(func) == "io(ii(C_init ko(ki(C))))"
    check_row_sum(func, 7, 6)


def test_init_runs_although_every_update_is_guarded_away():
    func = row_sum(3, 4, "ik", (3, 4), lambda i, k: (i, k), lambda i, k: k < 0)
    c = np.full(3, 9, "float32")
    evaluate(func, np.ones((3, 4), "float32"), c)
    assert c.tolist() == [0, 0, 0]


@pytest.mark.parametrize("order", ["ik", "ki"])
def test_empty_reduction_gives_the_start_value(order):
    extents = {"i": 3, "k": 0}
    func = row_sum(3, 0, order, [extents[name] for name in order], lambda a, b: (a, b) if order == "ik" else (b, a))
    c = np.full(3, 9, "float32")
    evaluate(func, np.ones((3, 0), "float32"), c)
    assert c.tolist() == [0, 0, 0]


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows(rows):
    check_row_sum(row_sum(rows, 4, "ki", (4, rows), lambda k, i: (i, k)), rows, 4)


# The rule "init when all reduction axes are at their start" gives wrong sums here.
@pytest.mark.one_in(3)
@pytest.mark.parametrize("rows,columns", [(3, 4), (4, 3), (5, 7), (1, 6), (6, 1)])
@pytest.mark.parametrize("factor", [1, 2, 3, 4, 5, 6, 12, 100])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("reduction_first", [False, True])
def test_fuse_data_with_reduction_then_split_and_reorder(rows, columns, factor, swapped, reduction_first):
    size = rows * columns
    outer = -(-size // factor)

    def bind(a, b):
        fo, fi = (b, a) if swapped else (a, b)
        fused = fo * factor + fi
        if reduction_first:
            return floormod(fused, rows), floordiv(fused, rows)
        return floordiv(fused, columns), floormod(fused, columns)

    def guard(a, b):
        fo, fi = (b, a) if swapped else (a, b)
        return fo * factor + fi < size

    names, extents = (("fi", "fo"), (factor, outer)) if swapped else (("fo", "fi"), (outer, factor))
    check_row_sum(row_sum(rows, columns, names, extents, bind, guard), rows, columns)


def test_fused_data_loops_do_not_carry_and_are_decided_exactly():
    A, C = decl_buffer((6, 5, 4), name="A"), decl_buffer((6, 5), name="C")
    vi, vj, vk, f, k = [Var(name) for name in ("vi", "vj", "vk", "f", "k")]
    axes = (IterVar((0, 6), vi, SPATIAL), IterVar((0, 5), vj, SPATIAL), IterVar((0, 4), vk, REDUCE))
    block = Block(
        axes,
        (),
        (C[vi : vi + 1, vj : vj + 1],),
        "C",
        BufferStore(C, C[vi, vj] + A[vi, vj, vk], [vi, vj]),
        init=BufferStore(C, const(0.0, "float32"), [vi, vj]),
    )
    body = loops((f, k), (30, 4), BlockRealize((floordiv(f, 5), floormod(f, 5), k), const(True), block))
    assert shape_of(write_inits(body)) == "f(C_init k(C))"
    a, c = np.random.default_rng(0).random((6, 5, 4), "float32"), np.zeros((6, 5), "float32")
    evaluate(PrimFunc([A, C], body), a, c)
    np.testing.assert_allclose(c, a.sum(axis=2), rtol=1e-6)


def test_large_fused_loops_are_decided_by_isl():
    func = row_sum(1000, 1000, ("f", "k"), (1000, 1000), lambda f, k: (floordiv(f, 8) * 8 + floormod(f, 8), k))
    assert written(func) == "f(C_init k(C))"
    # 500 · 2000 = 1000 · 1000: an outer step holds two whole rows, so only the inner loop carries.
    fused = lambda fo, fi: (floordiv(fo * 2000 + fi, 1000), floormod(fo * 2000 + fi, 1000))
    assert written(row_sum(1000, 1000, ("fo", "fi"), (500, 2000), fused)) == "fo(fi(C_init) fi(C))"
    # 1500 elements are a row and a half: a row spans two outer steps.
    fused = lambda fo, fi: (floordiv(fo * 1500 + fi, 1000), floormod(fo * 1500 + fi, 1000))
    guard = lambda fo, fi: fo * 1500 + fi < 1000000
    assert written(row_sum(1000, 1000, ("fo", "fi"), (667, 1500), fused, guard)) == "fo(fi(C_init)) fo(fi(C))"


def test_symbolic_extents():
    n, m = Var("n"), Var("m")
    A, C = decl_buffer((n, m), name="A"), decl_buffer((n,), name="C")
    vi, vk, io, ii, k = [Var(name) for name in ("vi", "vk", "io", "ii", "k")]
    block = Block(
        (IterVar(Range(0, n), vi, SPATIAL), IterVar(Range(0, m), vk, REDUCE)),
        (),
        (C[vi : vi + 1],),
        "C",
        BufferStore(C, maximum(C[vi], A[vi, vk]), [vi]),
        init=BufferStore(C, const(float("-inf"), "float32"), [vi]),
    )
    realize = BlockRealize((io * 4 + ii, k), io * 4 + ii < n, block)
    body = loops((io, k, ii), (floordiv(n + 3, 4), m, const(4)), realize)
    assert shape_of(write_inits(body)) == "io(ii(C_init) k(ii(C)))"
    for shape in [(6, 3), (4, 1), (1, 1), (0, 5), (5, 0)]:
        a, c = np.random.default_rng(1).random(shape, "float32"), np.zeros(shape[0], "float32")
        evaluate(PrimFunc([A, C], body), a, c)
        np.testing.assert_array_equal(c, a.max(axis=1, initial=-np.inf))


def test_reduction_axis_bound_to_a_constant():
    func = row_sum(3, 4, ("i", "r"), (3, 5), lambda i, r: (i, const(2)))
    c = np.zeros(3, "float32")
    evaluate(func, np.arange(12, dtype="float32").reshape(3, 4), c)
    assert c.tolist() == [10, 30, 50]


def test_loops_around_the_enclosing_block_do_not_count():
    A, C = decl_buffer((4,), name="A"), decl_buffer((1,), name="C")
    vk, k, o, vo = Var("vk"), Var("k"), Var("o"), Var("vo")
    inner = Block(
        (IterVar((0, 4), vk, REDUCE),),
        (),
        (C[0:1],),
        "C",
        BufferStore(C, C[0] + A[vk], [0]),
        init=BufferStore(C, const(0.0, "float32"), [0]),
    )
    scope = Block((IterVar((0, 3), vo, SPATIAL),), (), (), "scope", loops((k,), (4,), BlockRealize((k,), True, inner)))
    body = loops((o,), (3,), BlockRealize((o,), True, scope))
    again = write_inits(body)
    assert shape_of(again) == "o(scope)"
    assert shape_of(again.body.block.body) == "C_init k(C)"
    c = np.zeros(1, "float32")
    evaluate(PrimFunc([A, C], body), np.array([1, 2, 3, 4], "float32"), c)
    assert c[0] == 10


def test_tuple_reduction_argmax():
    A = decl_buffer((3, 5), "float32", name="A")
    V, I = decl_buffer((3,), "float32", name="V"), decl_buffer((3,), "int32", name="I")
    vi, vk, k, i = Var("vi"), Var("vk"), Var("k"), Var("i")
    value, index = Var("value", "float32"), Var("index", "int32")
    better = V[vi] >= A[vi, vk]
    update = LetStmt(
        value,
        Select(better, V[vi], A[vi, vk]),
        LetStmt(
            index,
            Select(better, I[vi], vk),
            SeqStmt((BufferStore(V, value, [vi]), BufferStore(I, index, [vi]))),
        ),
    )
    start = SeqStmt((BufferStore(V, const(-1.0, "float32"), [vi]), BufferStore(I, const(-1), [vi])))
    block = Block(
        (IterVar((0, 3), vi, SPATIAL), IterVar((0, 5), vk, REDUCE)),
        (A[vi : vi + 1, vk : vk + 1],),
        (V[vi : vi + 1], I[vi : vi + 1]),
        "argmax",
        update,
        init=start,
    )
    body = loops((k, i), (5, 3), BlockRealize((i, k), True, block))
    made = write_inits(body)
    assert shape_of(made) == "i(argmax_init) k(i(argmax))"
    assert len(made.seq[1].body.body.block.reads) == 3
    a = np.random.default_rng(2).random((3, 5), "float32")
    v, at = np.zeros(3, "float32"), np.zeros(3, "int32")
    evaluate(PrimFunc([A, V, I], body), a, v, at)
    np.testing.assert_array_equal(v, a.max(axis=1))
    np.testing.assert_array_equal(at, a.argmax(axis=1))


def test_lets_and_conditions_between_the_loops_and_the_block():
    A, C = decl_buffer((8, 3), name="A"), decl_buffer((8,), name="C")
    vi, vk, i, k, twice = [Var(name) for name in ("vi", "vk", "i", "k", "twice")]
    block = Block(
        (IterVar((0, 8), vi, SPATIAL), IterVar((0, 3), vk, REDUCE)),
        (),
        (C[vi : vi + 1],),
        "C",
        BufferStore(C, C[vi] + A[vi, vk], [vi]),
        init=BufferStore(C, const(0.0, "float32"), [vi]),
    )
    inside = LetStmt(twice, i * 2, IfThenElse(i < 3, BlockRealize((twice, k), True, block)))
    body = loops((k, i), (3, 4), inside)
    assert shape_of(write_inits(body)) == "i(C_init) k(i(LetStmt(if(C))))"
    a, c = np.ones((8, 3), "float32"), np.full(8, 7, "float32")
    evaluate(PrimFunc([A, C], body), a, c)
    assert c.tolist() == [3, 7, 3, 7, 3, 7, 7, 7]


def test_while_carries_everything_in_it():
    C, count = decl_buffer((1,), name="C"), decl_buffer((1,), "int32", name="count")
    vk, k = Var("vk"), Var("k")
    block = Block(
        (IterVar((0, 2), vk, REDUCE),),
        (),
        (C[0:1],),
        "C",
        BufferStore(C, C[0] + 1.0, [0]),
        init=BufferStore(C, const(0.0, "float32"), [0]),
    )
    step = BufferStore(count, count[0] + 1, [0])
    turn = SeqStmt((For(k, 0, 2, ForKind.SERIAL, BlockRealize((k,), True, block)), step))
    body = While(count[0] < 3, turn)
    assert shape_of(write_inits(body)) == "C_init While(k(C) BufferStore)"
    c, n = np.zeros(1, "float32"), np.zeros(1, "int32")
    evaluate(PrimFunc([C, count], body), c, n)
    assert c[0] == 6


def test_sub_buffers_are_declared_again_for_the_init():
    A, C = decl_buffer((8, 4), name="A"), decl_buffer((8,), name="C")
    vo, vk, o, k, j, j2 = [Var(name) for name in ("vo", "vk", "o", "k", "j", "j2")]
    offset = Var("offset")
    part = decl_buffer((4,), name="part", elem_offset=offset)
    block = Block(
        (IterVar((0, 2), vo, SPATIAL), IterVar((0, 4), vk, REDUCE)),
        (),
        (C[vo * 4 : vo * 4 + 4],),
        "C",
        For(j, 0, 4, ForKind.SERIAL, BufferStore(part, part[j] + A[vo * 4 + j, vk], [j])),
        init=For(j2, 0, 4, ForKind.SERIAL, BufferStore(part, const(0.0, "float32"), [j2])),
        match_buffers=(MatchBufferRegion(part, BufferRegion(C, (Range.from_min_extent(vo * 4, 4),))),),
    )
    body = loops((o, k), (2, 4), BlockRealize((o, k), True, block))
    made = write_inits(body)
    assert shape_of(made) == "o(C_init k(C))"
    init = made.body.seq[0].block
    assert init.match_buffers[0].buffer is not part
    assert init.match_buffers[0].buffer.elem_offset is not offset
    check_row_sum(PrimFunc([A, C], body), 8, 4)


def test_the_update_reads_what_it_writes_once():
    func = row_sum(4, 5, "ik", (4, 5), lambda i, k: (i, k))
    made = write_inits(func.body)
    update = made.body.seq[1].body.block
    assert update.init is None
    assert [region.buffer.name for region in update.reads] == ["C", "A"]
    again = update.with_(init=BufferStore(update.writes[0].buffer, const(0.0, "float32"), [update.iter_vars[0].var]))
    i, k = Var("i"), Var("k")
    twice = write_inits(loops((i, k), (4, 5), BlockRealize((i, k), True, again)))
    assert [region.buffer.name for region in twice.body.seq[1].body.block.reads] == ["C", "A"]


def test_calls_with_fewer_arguments_are_other_regions():
    C = decl_buffer((4,), name="C")
    vk, k = Var("vk"), Var("k")

    def reads_of_the_update(written, read):
        regions = [
            BufferRegion(C, (Range.from_min_extent(call_pure_extern("int32", "f", *args), 1),))
            for args in (written, read)
        ]
        block = Block(
            (IterVar((0, 4), vk, REDUCE),),
            (regions[1],),
            (regions[0],),
            "C",
            BufferStore(C, C[0] + 1, [0]),
            init=BufferStore(C, const(0.0, "float32"), [0]),
        )
        made = write_inits(loops((k,), (4,), BlockRealize((k,), True, block)))
        return len(made.seq[1].body.block.reads)

    assert reads_of_the_update((1, 2), (1, 2)) == 1
    assert reads_of_the_update((1, 2), (1,)) == 2
    assert reads_of_the_update((1,), (1, 2)) == 2


def test_a_program_without_init_comes_back_unchanged():
    func = row_sum(4, 5, "ik", (4, 5), lambda i, k: (i, k))
    made = write_inits(func.body)
    assert write_inits(made) is made


def test_init_may_not_use_a_reduction_axis():
    C = decl_buffer((4,), name="C")
    vk, k = Var("vk"), Var("k")
    block = Block(
        (IterVar((0, 4), vk, REDUCE),),
        (),
        (C[0:1],),
        "C",
        BufferStore(C, C[0], [0]),
        init=BufferStore(C, vk.astype("float32"), [0]),
    )
    with pytest.raises(InitUsesReduction, match=r"block 'C': its init uses reduction axis vk .LW0801"):
        write_inits(loops((k,), (4,), BlockRealize((k,), True, block)))


def test_init_may_not_use_memory_of_its_block():
    C, own = decl_buffer((4,), name="C"), decl_buffer((4,), name="own")
    vk, k = Var("vk"), Var("k")
    block = Block(
        (IterVar((0, 4), vk, REDUCE),),
        (),
        (C[0:1],),
        "C",
        BufferStore(C, C[0], [0]),
        init=BufferStore(own, const(0.0, "float32"), [0]),
        alloc_buffers=(own,),
    )
    with pytest.raises(InitUsesReduction, match="uses buffer own, which the block allocates"):
        write_inits(loops((k,), (4,), BlockRealize((k,), True, block)))


def random_nest(seed):
    """Rows and columns fused, split and reordered at random: every schedule of the two loops has this form."""
    rng = np.random.default_rng(seed)
    rows, columns = (int(n) for n in rng.integers(1, 7, 2))
    digits, names, extents = [], [], []
    size = rows * columns
    rest = size
    while rest > 1 and len(digits) < 4:
        factor = int(rng.integers(1, rest + 2))
        digits.append(factor)
        rest = -(-rest // factor)
    digits.append(max(rest, 1))
    order = rng.permutation(len(digits))
    names = [f"d{k}" for k in order]
    extents = [digits[k] for k in order]

    def fused(*variables):
        total, scale = const(0), 1
        for k, digit in enumerate(digits):
            total = total + variables[list(order).index(k)] * scale
            scale *= digit
        return total

    if rng.random() < 0.5:
        bind = lambda *v: (floordiv(fused(*v), columns), floormod(fused(*v), columns))
    else:
        bind = lambda *v: (floormod(fused(*v), rows), floordiv(fused(*v), rows))
    return rows, columns, row_sum(rows, columns, names, extents, bind, lambda *v: fused(*v) < size)


@pytest.mark.parametrize("seed", range(60))
def test_random_fusions_splits_and_orders(seed):
    rows, columns, func = random_nest(seed)
    check_row_sum(func, rows, columns)


def test_deep_nests():
    depth = 2_000
    C = decl_buffer((1,), name="C")
    vk, k = Var("vk"), Var("k")
    block = Block(
        (IterVar((0, 2), vk, REDUCE),),
        (),
        (C[0:1],),
        "C",
        BufferStore(C, C[0] + 1.0, [0]),
        init=BufferStore(C, const(0.0, "float32"), [0]),
    )
    body = For(k, 0, 2, ForKind.SERIAL, BlockRealize((k,), True, block))
    for level in range(depth):
        body = For(Var(f"u{level}"), 0, 1, ForKind.SERIAL, body)
    c = np.zeros(1, "float32")
    evaluate(PrimFunc([C], body), c)
    assert c[0] == 2
    names = []
    pre_order_visit(write_inits(body), lambda node: names.append(node.name_hint) if isinstance(node, Block) else None)
    assert names == ["C_init", "C"]


def test_a_block_that_stands_twice_has_two_inits():
    """What is remembered of one place must not define its variables a second time in another."""
    a = decl_buffer((4,), name="A")
    v, k = Var("v"), Var("k")
    axes = [
        IterVar(Range(const(0), const(4)), v, IterType.DataPar),
        IterVar(Range(const(0), const(1)), k, IterType.CommReduce),
    ]
    region = BufferRegion(a, [Range.from_min_extent(v, 1)])
    block = Block(axes, [], [region], "B", BufferStore(a, a[v] + 1.0, [v]), BufferStore(a, const(0.0), [v]))
    realize = BlockRealize([const(1), const(0)], const(True), block)
    root = Block([], [], [], "root", SeqStmt([realize, realize]))
    for _ in range(2):
        body = BlockRealize([], const(True), root.with_(name_hint="root"))
        nodes: list[Node] = []
        pre_order_visit(write_inits(body), nodes.append)
        one, other = [node for node in nodes if isinstance(node, Block) and node.name_hint == "B_init"]
        assert one is not other and one.iter_vars[0].var is not other.iter_vars[0].var


def test_an_init_follows_its_loops():
    """The same block under other loops, or where its memory lives elsewhere, has another nest."""
    a, b = decl_buffer((4,), name="A"), decl_buffer((4, 6), name="B")
    v, k, i, j = Var("v"), Var("k"), Var("i"), Var("j")
    axes = [
        IterVar(Range(const(0), const(4)), v, IterType.DataPar),
        IterVar(Range(const(0), const(6)), k, IterType.CommReduce),
    ]
    region = BufferRegion(a, [Range.from_min_extent(v, 1)])
    block = Block(axes, [], [region], "A", BufferStore(a, a[v] + b[v, k], [v]), BufferStore(a, const(0.0), [v]))
    realize = BlockRealize([i, j], const(True), block)

    def nest(*loops: tuple[Var, int, ForKind]) -> Stmt:
        body: Stmt = realize
        for var, extent, kind in reversed(loops):
            body = For(var, const(0), const(extent), kind, body)
        return write_inits(body)

    first = nest((i, 4, ForKind.SERIAL), (j, 6, ForKind.SERIAL))
    assert isinstance(first, For) and isinstance(first.body, SeqStmt)  # an init a cell, before the loop of the sum
    other = nest((j, 6, ForKind.SERIAL), (i, 4, ForKind.PARALLEL))
    assert isinstance(other, SeqStmt) and isinstance(other.seq[0], For) and other.seq[0].kind is ForKind.PARALLEL
    shorter = nest((j, 6, ForKind.SERIAL), (i, 3, ForKind.PARALLEL))
    assert isinstance(shorter, SeqStmt) and isinstance(shorter.seq[0], For)
    assert shorter.seq[0].extent.value == 3 and other.seq[0].extent.value == 4


CONDITIONS = {
    "if": """
    for k in range({extent}):
        if N[k] > 0:
            for i in range(2):
                with T.block("C"):
                    vi, vk = T.axis.remap("SR", [i, k])
""",
    "if and a sum inside": """
    for k in range({extent}):
        if N[k] > 0:
            for i, r in T.grid(2, 2):
                with T.block("C"):
                    vi = T.axis.spatial(2, i)
                    vk = T.axis.reduce(2, k)
                    vr = T.axis.reduce(2, r)
""",
    "else": """
    for k in range({extent}):
        if N[k] <= 0:
            T.evaluate(0)
        else:
            for i in range(2):
                with T.block("C"):
                    vi, vk = T.axis.remap("SR", [i, k])
""",
    "where": """
    for k in range({extent}):
        for i in range(2):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.where(N[k] > 0)
""",
}


@pytest.mark.parametrize("extent", [0, 1, 2])
@pytest.mark.parametrize("form", CONDITIONS)
def test_a_condition_on_updates_alone_does_not_guard_the_init(extent, form):
    """However often the loop that it names runs: a sum without members is its start value."""
    nest = CONDITIONS[form].format(extent=extent).strip("\n")
    indent = " " * (len(nest.split("\n")[-1]) - len(nest.split("\n")[-1].lstrip()))
    function = from_source(
        "from loopwright.script import tir as T\n\n@T.prim_func\n"
        'def main(N: T.Buffer(2, "int32"), A: T.Buffer((2, 2), "int32"), C: T.Buffer(2, "int32")):\n'
        f"{nest}\n"
        f"{indent}with T.init():\n{indent}    C[vi] = 5\n{indent}C[vi] = C[vi] + A[vi, vk]\n"
    )
    a = np.array([[1, 2], [3, 4]], "int32")
    times = 2 if "inside" in form else 1
    for n in ([0, 0], [0, 1], [1, 0]):
        c = np.full(2, 9, "int32")
        evaluate(function, np.array(n, "int32"), a, c)
        members = [k for k in range(extent) if n[k] > 0]
        assert c.tolist() == [5 + times * sum(a[i, k] for k in members) for i in range(2)], n


@pytest.mark.parametrize("name", ["n", "1"])
@pytest.mark.parametrize("extent", ["m", "0"])
def test_a_number_and_a_parameter_of_that_value_mean_the_same(name, extent):
    """`i != j` ties the reduction to i, of however few iterations: without a j there is no start."""
    function = from_source(f"""
from loopwright.script import tir as T

@T.prim_func
def main(B: T.Buffer(2, "int32"), n: T.int32, m: T.int32):
    for i in range({name}):
        for j in range({extent}):
            with T.block("B"):
                vi, vj = T.axis.spatial(2, i), T.axis.reduce(2, j)
                T.where(i != j)
                with T.init():
                    B[vi] = 5
                B[vi] = B[vi] + vj
""")
    result = np.full(2, 9, "int32")
    evaluate(function, result, 1, 0)
    assert result.tolist() == [9, 9]


@pytest.mark.parametrize("depth", ["n", "1"])
def test_a_start_over_loops_of_a_reduction_keeps_every_condition_on_them(depth):
    """`j >= i` says for which i there is a start: by the j that there are, whether a bound or a guard says which."""
    bounded = f"for j in range(T.min(n, {depth}))", "j >= i"
    guarded = f"for j in range({depth.replace('n', '5')})", f"j >= i and j < T.min(n, {depth})"
    results = []
    for loop, guard in (bounded, guarded):
        function = from_source(f"""
from loopwright.script import tir as T

@T.prim_func
def main(B: T.Buffer(6, "int32"), n: T.int32):
    for i in range(6):
        {loop}:
            with T.block("B"):
                vi, vj = T.axis.spatial(6, i), T.axis.reduce(6, j)
                T.where({guard})
                with T.init():
                    B[vi] = 5
                B[vi] = B[vi] + vj
""")
        for n in (0, 1, 3, 5):
            result = np.full(6, 9, "int32")
            evaluate(function, result, n)
            results.append(result.tolist())
    assert results[:4] == results[4:]


@pytest.mark.parametrize("extent", [1, 2])
def test_a_let_of_a_loop_of_the_reduction_guards_no_start(extent):
    function = from_source(f"""
from loopwright.script import tir as T

@T.prim_func
def main(C: T.Buffer(2, "int32")):
    for i in range(2):
        for k in range({extent}):
            with T.LetStmt(k + 1) as x:
                with T.block("C"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    T.where(x > 5)
                    with T.init():
                        C[vi] = 5
                    C[vi] = C[vi] + vk
""")
    result = np.full(2, 9, "int32")
    evaluate(function, result)
    assert result.tolist() == [5, 5]
