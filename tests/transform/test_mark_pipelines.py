"""mark_pipelines: the statements of a software pipeline keep their numbers through lowering."""

from __future__ import annotations

from loopwright.script import from_source
from loopwright.transform import mark_pipelines
from tests.transform.before_after import unchanged

TWO_STATEMENTS = """
@T.prim_func
def main(A: T.Buffer((8,)), C: T.Buffer((1,))):
    B = T.alloc_buffer((8,))
    for i in T.serial(8{annotations}):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * 2.0
        with T.block("C"):
            vi = T.axis.reduce(8, i)
            with T.init():
                C[0] = 0.0
            C[0] = C[0] + B[vi]
"""
STAGES = ', annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}'


def test_each_statement_is_under_its_number():
    marked = mark_pipelines(from_source(TWO_STATEMENTS.format(annotations=STAGES))).script()
    assert marked.count('"pipeline_statement"') == 2
    parts = ['"pipeline_statement", 0', 'T.block("B")', '"pipeline_statement", 1', 'T.block("C")']
    assert parts == sorted(parts, key=marked.index)


def test_marked_once():
    once = mark_pipelines(from_source(TWO_STATEMENTS.format(annotations=STAGES)))
    unchanged(mark_pipelines, once)


def test_other_loops_stay():
    unchanged(mark_pipelines, from_source(TWO_STATEMENTS.format(annotations="")))
