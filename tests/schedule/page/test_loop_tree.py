"""loop_tree: loops and blocks, told apart from the version before."""

from __future__ import annotations

from loopwright.schedule import Schedule
from loopwright.schedule.page.loop_tree import loop_tree
from loopwright.script import tir as T
from tests.schedule.steps import chain, matmul


def lines(nodes, depth=0):
    found = []
    for node in nodes:
        mark = f"({node.mark})" if node.mark else ""
        text = " ".join([part for part in (node.what, node.name, node.extent, node.kind, mark) if part])
        found += ["  " * depth + text, *lines(node.children, depth + 1)]
    return found


def after(sch, step):
    before = sch.view()
    step()
    return loop_tree(sch.view(), before)


def test_a_split_makes_new_loops_and_changes_the_block():
    sch = Schedule(matmul())
    tree = after(sch, lambda: sch.split(sch.get_loops("C")[0], [None, 2]))
    assert lines(tree.roots) == [
        "loop i_0 3 (new)",
        "  loop i_1 2 (new)",
        "    loop j 5 (moved)",
        "      loop k 4",
        "        block C reduction (changed)",
    ]
    assert tree.gone == ["loop i"]
    block = tree.roots[0].children[0].children[0].children[0].children[0]
    assert block.detail == "v_i = i_0 * 2 + i_1, v_j = j, v_k = k · A, B → C"


def test_kinds_and_guards():
    sch = Schedule(matmul())
    i, j, _ = sch.get_loops("C")
    assert lines(after(sch, lambda: sch.parallel(i)).roots)[0] == "loop i 6 parallel (changed)"
    sch.bind(j, "threadIdx.x")
    assert lines(loop_tree(sch.view()).roots)[1] == "  loop j 5 threadIdx.x"
    sch = Schedule(matmul())
    sch.split(sch.get_loops("C")[0], [None, 4])
    *_, (block, _) = loop_tree(sch.view()).roots[0].walk()
    assert "where i_0 * 4 + i_1 < 6" in block.detail


def test_reorder_moves_and_inlining_takes_away():
    sch = Schedule(chain())
    m, l, k = sch.get_loops("D")
    assert lines(after(sch, lambda: sch.reorder(l, m, k)).roots)[:3] == [
        "loop l 5 (moved)",
        "  loop m 4 (moved)",
        "    loop k 3 (moved)",
    ]
    tree = after(sch, lambda: sch.compute_inline("E"))
    assert tree.gone == ["loop m", "loop l", "block E"]
    assert tree.allocates == ["D 4 × 5"]


def test_conditions_and_the_same_version():
    @T.prim_func
    def guarded(A: T.Buffer(8), n: T.int32):
        with T.block("root"):
            for i in range(2, 6):
                if n > 3:
                    with T.block("A"):
                        vi = T.axis.spatial(8, i)
                        A[vi] = T.float32(1)
                else:
                    with T.block("B"):
                        vi = T.axis.spatial(8, i)
                        A[vi] = T.float32(2)

    view = Schedule(guarded).view()
    assert lines(loop_tree(view, view).roots) == [
        "loop i 2 … 6",
        "  if if n > 3",
        "    block A",
        "  if else",
        "    block B",
    ]
