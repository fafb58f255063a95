"""Seeded bugs: checks and passes broken on purpose, each with the test of the suite that must notice.

A suite proves nothing about itself by passing. Here one function or table entry at a time is made wrong in a way that
a hand might slip; `tests/test_seeded_bugs.py` runs the test named beside it, with and without the bug.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from loopwright import ir
from loopwright.analysis import combiner_laws, commuting_updates, races, ranges, reduction_init
from loopwright.analysis.polyhedral import Polyhedra
from loopwright.arith import Analyzer, divide
from loopwright.arith.index_arithmetic import IndexArithmetic
from loopwright.arith.simplify import Simplifier
from loopwright.codegen.llvm import arithmetic, conversions
from loopwright.codegen.llvm.abi import EntryEmitter
from loopwright.codegen.llvm.emitter import FunctionEmitter
from loopwright.codegen.llvm.loop_hints import LoopHints
from loopwright.codegen.llvm.types import register_type
from loopwright.codegen.math import division, exp, low_precision, table
from loopwright.evaluator import arithmetic as evaluator_arithmetic
from loopwright.ir import structural
from loopwright.ir.verifier import _Verifier
from loopwright.model.program import Part
from loopwright.schedule.engine import prove_step
from loopwright.schedule.primitives.compute import reverse_compute_inline
from loopwright.schedule.primitives.memory import rolling_buffer as rolling
from loopwright.schedule.proof import (
    find_mismatch,
    moved_inits,
    one_to_one,
    reaching_writes,
    speculative_runs,
    unchanged_writers,
)
from loopwright.script import from_source
from loopwright.script.parser import expressions as parser_expressions
from loopwright.script.printer import expressions as printer_expressions
from loopwright.te import block_accesses, reduction
from loopwright.transform.parts import flat_index, vectorize_expr
from loopwright.transform.passes.canonicalize_loops import _CanonicalizeLoops
from loopwright.transform.passes.choose_index_width import _ChooseIndexWidth
from loopwright.transform.passes.compact_buffers import CollectUses as CompactCollect
from loopwright.transform.passes.partition_loops import _PartitionLoops
from loopwright.transform.passes.plan_storage import _Pool
from loopwright.transform.tensor_intrinsics import TensorIntrin
from tests import test_index_arithmetic, test_own_overlap, test_vector_lanes
from tests.analysis import test_bounds, test_guarded_operands, test_races, test_reduction_init, test_uninitialised
from tests.codegen import test_abi, test_emitter, test_loop_hints, test_low_precision, test_math, test_parallel
from tests.evaluator import test_terms
from tests.ir import test_structural, test_verifier
from tests.relay import test_concat_in_place
from tests.schedule import (
    test_add_guard,
    test_bind,
    test_blockize,
    test_bound_programs,
    test_calls_in_bounds,
    test_composites,
    test_decompose_padding,
    test_decompose_reduction,
    test_deferred,
    test_early_return,
    test_effects,
    test_enumeration,
    test_find_mismatch,
    test_fuse,
    test_huge_extents,
    test_merge,
    test_pad_einsum,
    test_ragged_domains,
    test_reuse_buffer,
    test_reverse_compute_inline,
    test_rfactor,
    test_rolling_buffer,
    test_speculative_runs,
    test_split,
    test_tensorize,
    test_theses,
    test_transform_layout,
    test_unchanged_writers,
    test_vectorize,
    test_written_lets,
)
from tests.te import test_create_prim_func, test_values
from tests.te.schedule import test_te_errors
from tests.transform import (
    test_canonicalize_loops,
    test_compact_buffers,
    test_flatten_buffers,
    test_form_fma,
    test_insert_barriers,
    test_interchange_loops,
    test_partition_loops,
    test_plan_storage,
    test_simplify,
    test_software_pipeline,
    test_vectorize_loops,
    test_vectorize_outer_loops,
)


def no_copies(program: Any, joins: Any, places: Any) -> list[Any]:
    """The steps without their concatenations, and without the copies that are left of them."""
    return [step for step in program.body if step not in joins]


class Bug(NamedTuple):
    """One wrong line, and the test that fails with it."""

    name: str
    seed: Callable[[], AbstractContextManager[Any]]
    check: Callable[[], object]


def every_case(test: Callable[..., object]) -> Callable[[], None]:
    """All cases of a test with one list of parameters."""
    (mark,) = [mark for mark in test.pytestmark if mark.name == "parametrize"]  # type: ignore[attr-defined]

    def run() -> None:
        for case in mark.args[1]:
            test(*case) if isinstance(case, tuple) else test(case)

    return run


# --- transform and analysis ---


def init_in_the_innermost_loop() -> AbstractContextManager[Any]:
    return patch.object(reduction_init._Init, "_carrying_depth", lambda self: len(self.loops) - 1)


def stride_of_lanes_is_zero() -> AbstractContextManager[Any]:
    def init(self: Any, lane: ir.Var, lanes: int, memory: Any) -> None:
        self.lanes, self.facts, self.memory, self.sure = lanes, Analyzer(), memory, []
        self.values = {lane: ir.Ramp(ir.const(0, lane.dtype), ir.const(0, lane.dtype), lanes)}

    return patch.object(vectorize_expr.VectorizeExpr, "__init__", init)


def strides_swapped() -> AbstractContextManager[Any]:
    right = flat_index.flat_strides
    return patch.object(flat_index, "flat_strides", lambda buffer: tuple(reversed(right(buffer))))


def cut_one_late() -> AbstractContextManager[Any]:
    right = _PartitionLoops._clamped
    return patch.object(_PartitionLoops, "_clamped", lambda self, point, start, end: right(self, point + 1, start, end))


def first_access_is_all() -> AbstractContextManager[Any]:
    return patch.object(CompactCollect, "_hull", lambda self, a, b: a)


def lives_that_meet_share() -> AbstractContextManager[Any]:
    return patch.object(_Pool, "takes", lambda self, life, statement, buffers: True)


def product_in_32_bits(sizes: Any) -> ir.Expr:
    total = 1
    for size in sizes:
        total *= size.value
    return ir.const((total + 2**31) % 2**32 - 2**31, "int32")


def overlap_unchecked() -> AbstractContextManager[Any]:
    return patch("loopwright.transform.passes.software_pipeline.check_dependences", lambda *_: None)


def greatest_value_one_short() -> AbstractContextManager[Any]:
    right = ranges.Ranges.greatest

    def greatest(self: Any, *args: Any) -> int | None:
        found = right(self, *args)
        return None if found is None else found - 1

    return patch.object(ranges.Ranges, "greatest", greatest)


def guards_forgotten() -> AbstractContextManager[Any]:
    right = Polyhedra.domain
    return patch.object(Polyhedra, "domain", lambda self, loops, guards, names: right(self, loops, (), names))


def only_writes_race() -> AbstractContextManager[Any]:
    right = races._ask_pairs
    return patch.object(
        races, "_ask_pairs", lambda program, loop, found: right(program, loop, [one for one in found if one.writes])
    )


# --- code generation ---


def floor_division_truncates() -> AbstractContextManager[Any]:
    def truncated(emitter: Any, node: ir.BinaryExpr, text: str, a: str, b: str) -> str:
        operation = "sdiv" if isinstance(node, ir.FloorDiv) else "srem"
        return str(emitter.b.value(f"{operation} {text} {a}, {b}"))

    return patch.object(arithmetic, "_floor_division", truncated)


def floors_of_lanes_truncate() -> AbstractContextManager[Any]:
    right = division._divided

    def truncated(body: Any, name: str, x: ir.Expr, y: ir.Expr) -> ir.Expr:
        return right(body, name.replace("floor", "trunc"), x, y)

    return patch.object(division, "_divided", truncated)


def minimum_ignores_nan() -> AbstractContextManager[Any]:
    right = arithmetic._extremum

    def extremum(emitter: Any, least: bool, dtype: ir.DataType, a: str, b: str) -> str:
        if not dtype.is_float:
            return right(emitter, least, dtype, a, b)
        name = f"llvm.{'minnum' if least else 'maxnum'}.{arithmetic.mangled(dtype)}"
        return str(emitter.intrinsic(name, dtype, [(dtype, a), (dtype, b)]))

    return patch.object(arithmetic, "_extremum", extremum)


def float_to_integer_overflows() -> AbstractContextManager[Any]:
    def convert(emitter: Any, value: str, source: ir.DataType, target: ir.DataType) -> str:
        operation = "fptoui" if target.is_unsigned else "fptosi"
        return str(emitter.b.value(f"{operation} {register_type(source)} {value} to {register_type(target)}"))

    return patch.object(conversions, "emit_saturating_cast", convert)


def chunks_begin_at_zero() -> AbstractContextManager[Any]:
    right = FunctionEmitter.counted_loop

    def counted_loop(self: Any, var: ir.Var, low: str, high: str, *rest: Any, **options: Any) -> None:
        right(self, var, "0" if low == "%begin" else low, high, *rest, **options)

    return patch.object(FunctionEmitter, "counted_loop", counted_loop)


def bfloat16_truncates() -> AbstractContextManager[Any]:
    def encode(x: ir.Expr) -> ir.Expr:
        bits = low_precision.bits_of(x, "uint32")
        return (bits >> 16).astype(low_precision.typed("uint16", x))

    return patch.dict(table.BODIES, {("encode", "bfloat16"): encode})


def exp_polynomial_a_little_off() -> AbstractContextManager[Any]:
    first, second, *rest = exp.EXP_TAIL
    return patch.object(exp, "EXP_TAIL", (first, second * (1 + 1e-4), *rest))


# --- ir, script, te, arith ---


def plan_without(cls: type[ir.Node], field: str) -> AbstractContextManager[Any]:
    plan = [(name, compare) for name, compare in structural._COMPARE_PLANS[cls] if name != field]
    return patch.dict(structural._COMPARE_PLANS, {cls: plan})


def no_parentheses_on_the_right_of_minus() -> AbstractContextManager[Any]:
    sign, own, left, _ = printer_expressions._INFIX[ir.Sub]
    return patch.dict(printer_expressions._INFIX, {ir.Sub: (sign, own, left, own)})


def less_means_greater() -> AbstractContextManager[Any]:
    return patch.dict(parser_expressions._COMPARE, {ast.Lt: parser_expressions._COMPARE[ast.Gt]})


def reads_back() -> None:
    """A program of every operator, printed and read."""
    x, y, z = ir.Var("x"), ir.Var("y"), ir.Var("z")
    A = ir.decl_buffer((4,), "int32", "A")
    value = ir.Select((x - (y - z)) < (x - y - z), x // (y * z), (x // y) * z)
    func = ir.PrimFunc([A, x, y, z], ir.BufferStore(A, value, [0]), attrs={"global_symbol": "f"})
    ir.assert_structural_equal(from_source(func.script()), func)


def only_the_first_load_is_read() -> AbstractContextManager[Any]:
    def visit_load(self: Any, load: ir.BufferLoad) -> None:
        if not self.loads:
            self.loads.append(load)
        self.visit_children(load)

    # The class finds its methods by name once, so a fresh table comes with the patch.
    changed = type("BlockAccesses", (block_accesses.BlockAccesses,), {"visit_BufferLoad": visit_load})
    return patch("loopwright.te.lower_compute.BlockAccesses", changed)


def constants_divided_towards_zero() -> AbstractContextManager[Any]:
    right = divide._reduce

    def reduce(n: Any, c: int) -> Any:
        quotient, _, rest, _ = right(n, c)
        q0 = abs(n.const) // c * (1 if n.const >= 0 else -1)
        return quotient, q0, rest, n.const - q0 * c

    return patch.object(divide, "_reduce", reduce)


def division_keeps_its_value() -> None:
    """Simplified quotients and remainders of negative numbers are those of Python."""
    n = ir.Var("n")
    for c in (2, 3, 4):
        for offset in (-5, -1, 0, 1, 7):
            for build in (lambda a, c=c: a // c, lambda a, c=c: a % c):
                simple = Analyzer().simplify(build(n * c + offset))
                for value in range(-4, 5):
                    got = Analyzer().simplify(ir.substitute(simple, {n: ir.const(value)}))
                    assert int(got) == build(value * c + offset), (simple, value)  # type: ignore[call-overload]


def twice_defined_is_fine() -> AbstractContextManager[Any]:
    return patch.object(_Verifier, "_define", lambda self, var, at: self.defined.add(var))


def abi_check(name: str) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: patch.object(EntryEmitter, name, lambda self, *_: None)


def on_2x3(test: Callable[[Any], object]) -> Callable[[], None]:
    return lambda: test(test_abi.built(test_abi.copy_rows(2, 3))) and None


def wrong_argument(kind: str) -> Callable[[], None]:
    """The first case of test_abi that ends in this kind of error; it reads a wrong argument and overwrites nothing."""
    (mark,) = test_abi.test_a_wrong_argument_is_named.pytestmark  # type: ignore[attr-defined]
    cases = [case for case in mark.args[1] if case[1] == kind]

    def run() -> None:
        module = test_abi.built(test_abi.copy_rows(2, 3))
        test_abi.test_a_wrong_argument_is_named(module, *cases[0])

    return run


# --- schedule ---


def a_broken_promise() -> None:
    known = dict(TensorIntrin.known)
    try:
        (mark,) = test_tensorize.test_the_tile_keeps_what_a_parameter_promises.pytestmark  # type: ignore[attr-defined]
        test_tensorize.test_the_tile_keeps_what_a_parameter_promises(*mark.args[1][2])
    finally:
        TensorIntrin.known.clear()
        TensorIntrin.known.update(known)


def every_layout_that_meets() -> None:
    for layout, elements in test_transform_layout.NOT_ONE_TO_ONE:
        test_transform_layout.test_two_elements_in_one_cell_are_refused("B", "B", layout, elements, None)


def inverse_on_whole_blocks(mapping: Any, sizes: Any, axes: Any, shape: Any) -> Any:
    """The sizes are taken from the new layout, not from the buffer."""
    return one_to_one.inverse_on(mapping, list(one_to_one._whole(mapping, shape)), axes, shape)


def all_memory(before: ir.PrimFunc, after: ir.PrimFunc) -> set[ir.Var]:
    found: set[ir.Var] = set()
    ir.post_order_visit(before, lambda node: found.add(node.data) if isinstance(node, ir.Buffer) else None)
    return found


def only_read(self: Any, buffer: ir.Buffer) -> bool:
    accesses = [*self.new.dataflow.by_buffer.get(buffer, ()), *self.old.dataflow.by_buffer.get(buffer, ())]
    return not any([access.writes for access in accesses])


@contextmanager
def forgotten_starts(name: str):
    """A primitive does not ask for starts, and neither does the engine, which finds most of what it forgets."""
    with patch(name, lambda *_: []), patch.object(prove_step, "with_inits_proved", lambda _, __, step: step):
        yield


@contextmanager
def every_update_commutes() -> Iterator[None]:
    """As if `T.axis.reduce` were a promise."""
    with (
        patch("loopwright.analysis.dataflow.update_law", lambda *_: "any"),
        patch("loopwright.schedule.proof.lemmas.update_law", lambda *_: "any"),
    ):
        yield


def forget_laws() -> None:
    """What is known of programs without the bug."""
    commuting_updates._law.cache_clear()
    find_mismatch._kept.reaching.clear()


@contextmanager
def operands_are_not_looked_at() -> Iterator[None]:
    forget_laws()
    with patch.object(commuting_updates, "loads_any", lambda *args: False):
        yield
    forget_laws()


@contextmanager
def operands_are_evaluated_anyway() -> Iterator[None]:
    forget_laws()
    with patch.object(commuting_updates, "guarded_operand", lambda *args: None):
        yield
    forget_laws()


def no_nan() -> AbstractContextManager[Any]:
    right = combiner_laws._Sorts.domain
    return patch.object(combiner_laws._Sorts, "domain", lambda self, *args: [x for x in right(self, *args) if x == x])


@contextmanager
def bounds_name_no_loops() -> Iterator[None]:
    named = patch.object(moved_inits, "_bounds_name_loops", lambda _: False)
    with named, patch.object(moved_inits, "_starts_over_other_loops", lambda *_: False):
        yield


@contextmanager
def conditions_name_loops() -> Iterator[None]:
    real = moved_inits._guard_kinds
    with bounds_name_no_loops(), patch.object(moved_inits, "_guard_kinds", lambda path: real(path) - Counter(none=9)):
        yield


def wrong_step(program: str, kind: str) -> Any:
    """A case of the enumeration whose step changes values."""
    (case,) = [case for case in test_enumeration.WRONG if case[0].source.name == program and case[1].kind == kind]
    return case


def near_miss(cls: type[ir.Node], field: str) -> Callable[[], None]:
    (case,) = [case for case in test_structural.NEAR_MISSES if type(case[0]) is cls and case[1] == field][:1]
    return lambda: test_structural.test_a_changed_field_is_noticed(*case)


BUGS = [
    Bug(
        "a return in the middle of a function is no different from any other statement",
        lambda: patch.object(prove_step, "check_order_kept", lambda *_: None),
        test_early_return.test_steps_that_change_an_order_are_refused,
    ),
    Bug(
        "the init of a reduction is written inside its innermost loop",
        init_in_the_innermost_loop,
        test_reduction_init.test_reduction_outside_mirrors_the_data_loop,
    ),
    Bug(
        "form_fma forgets the sign of what it subtracts",
        lambda: patch("loopwright.transform.passes.form_fma.negated", lambda expr: expr),
        every_case(test_form_fma.test_the_rules),
    ),
    Bug(
        "vectorize_loops lets all lanes read one element",
        stride_of_lanes_is_zero,
        test_vectorize_loops.test_contiguous_and_uniform,
    ),
    Bug(
        "flatten_buffers takes the strides in the other order",
        strides_swapped,
        test_flatten_buffers.test_arguments_keep_their_declaration_and_the_body_sees_flat_memory,
    ),
    Bug(
        "compact_buffers looks at the first access only",
        first_access_is_all,
        test_compact_buffers.test_the_hull_of_several_accesses,
    ),
    Bug(
        "plan_storage shares what is in use together",
        lives_that_meet_share,
        test_plan_storage.test_not_in_place_where_another_cell_is_read,
    ),
    Bug(
        "software_pipeline does not look at dependences",
        overlap_unchecked,
        every_case(test_software_pipeline.test_what_dependences_forbid),
    ),
    Bug("partition_loops cuts one iteration late", cut_one_late, lambda: test_partition_loops.test_boundary_sizes(5)),
    Bug(
        "choose_index_width divides in 32 bits what has left them",
        lambda: patch.object(_ChooseIndexWidth, "_is_narrow", lambda self, expr: True),
        lambda: test_index_arithmetic.test_values_are_low_bits(2**31 - 1),
    ),
    Bug(
        "a product that leaves its type is taken to fit it",
        lambda: patch.object(IndexArithmetic, "fits", lambda self, expr: True),
        lambda: test_index_arithmetic.test_values_are_low_bits(2**31 - 1),
    ),
    Bug(
        "the evaluator wraps index arithmetic",
        lambda: patch.object(IndexArithmetic, "is_index", lambda self, expr: False),
        lambda: test_index_arithmetic.test_comparisons_are_exact(2**31 - 1),
    ),
    Bug(
        "simplification decides comparisons with data by what an index is exactly",
        lambda: patch.object(Simplifier, "are_exact", lambda self, a, b: True),
        test_index_arithmetic.test_comparisons_with_data_are_not_decided_by_exact_indices,
    ),
    Bug(
        "an inlined index keeps what a store would cut off",
        lambda: patch("loopwright.schedule.primitives.compute.compute_inline.as_stored", lambda value, facts: value),
        test_index_arithmetic.test_inlining_keeps_the_low_bits_of_what_was_stored,
    ),
    Bug(
        "sizes at the call are computed in 32 bits",
        lambda: patch("loopwright.codegen.llvm.abi.in_64_bits", lambda size: ir.cast(size, ir.DataType("int64"))),
        lambda: test_index_arithmetic.test_a_size_at_the_call_does_not_wrap("llvm"),
    ),
    Bug(
        "fuse multiplies extents in 32 bits",
        lambda: patch("loopwright.schedule.primitives.loops.fuse.product", product_in_32_bits),
        test_huge_extents.test_fuse,
    ),
    Bug(
        "plan_storage works in place whatever loop bounds read",
        lambda: patch("loopwright.transform.passes.plan_storage._touches", lambda expr, buffers: False),
        test_plan_storage.test_not_in_place_where_a_loop_bound_reads_the_old_buffer,
    ),
    Bug(
        "plan_storage takes sizes loaded from one cell for equal",
        lambda: patch("loopwright.transform.passes.plan_storage.has_data", lambda expr: False),
        test_plan_storage.test_sizes_that_are_read_from_memory_may_differ,
    ),
    Bug(
        "canonicalize_loops reads a bound again in the body",
        lambda: patch.object(_CanonicalizeLoops, "_once", lambda self, name, bound: (bound, [])),
        test_canonicalize_loops.test_bounds_that_read_memory_are_read_once,
    ),
    Bug(
        "split reads a bound again that the body has changed",
        lambda: patch("loopwright.schedule.rewrite.plain_loops.check_bounds_stay", lambda step, loops, path: None),
        test_split.test_split_reads_a_bound_again_only_where_the_body_leaves_it_alone,
    ),
    Bug(
        "FloorDiv is emitted as a truncating division",
        floor_division_truncates,
        lambda: test_emitter.test_integer_division_of_all_signs("int32"),
    ),
    Bug(
        "lanes that are divided as floats are rounded towards zero",
        floors_of_lanes_truncate,
        lambda: test_emitter.test_integer_division_of_all_signs("int8"),
    ),
    Bug(
        "min and max drop NaN",
        minimum_ignores_nan,
        lambda: test_emitter.test_extrema_with_nan_and_signed_zero("float32"),
    ),
    Bug(
        "unsigned integers are compared as signed ones",
        lambda: patch.dict(arithmetic._COMPARE, {ir.LT: ("slt", "slt", "olt")}),
        lambda: test_emitter.test_comparisons("uint8"),
    ),
    Bug(
        "floats become integers without saturation",
        float_to_integer_overflows,
        lambda: test_emitter.test_floats_saturate_to_integers("float32"),
    ),
    Bug(
        "the chunks of a parallel loop begin at 0", chunks_begin_at_zero, test_parallel.test_loops_that_begin_elsewhere
    ),
    Bug(
        "overlapping arguments are not noticed",
        abi_check("_check_overlap"),
        on_2x3(test_abi.test_overlap_with_an_output_is_refused),
    ),
    Bug(
        "strides of arguments are not compared",
        abi_check("_check_strides"),
        on_2x3(test_abi.test_a_stride_error_says_what_to_do),
    ),
    Bug("shapes of arguments are not compared", abi_check("_check_shape"), wrong_argument("ShapeMismatch")),
    Bug("types of arguments are not compared", abi_check("_check_rank_dtype_device"), wrong_argument("DtypeMismatch")),
    Bug(
        "bfloat16 is truncated, not rounded",
        bfloat16_truncates,
        lambda: test_low_precision.test_encode_rounds_to_nearest_even("bfloat16", 1),
    ),
    Bug(
        "one coefficient of exp is off by a ten-thousandth",
        exp_polynomial_a_little_off,
        lambda: test_math.test_error_is_within_the_stated_bound("exp"),
    ),
    Bug(
        "the evaluator does not wrap signed integers",
        lambda: patch.object(evaluator_arithmetic, "wrapping", lambda dtype: lambda x: x),
        test_emitter.test_integers_wrap_around,
    ),
    Bug("bounds of indices are one short", greatest_value_one_short, test_bounds.test_off_by_one),
    Bug(
        "the check for uninitialised reads ignores conditions",
        guards_forgotten,
        test_uninitialised.test_only_even_cells_are_read,
    ),
    Bug("the race check looks at writes only", only_writes_race, test_races.test_reading_a_neighbour),
    Bug(
        "the verifier lets a variable be defined twice",
        twice_defined_is_fine,
        every_case(test_verifier.test_every_rule_is_checked),
    ),
    Bug(
        "structural_equal ignores the value of literals",
        lambda: plan_without(ir.IntImm, "value"),
        test_structural.test_literals,
    ),
    Bug(
        "structural_equal ignores the type of literals",
        lambda: plan_without(ir.IntImm, "dtype"),
        test_structural.test_literals,
    ),
    Bug(
        "structural_equal ignores annotations of blocks",
        lambda: plan_without(ir.Block, "annotations"),
        near_miss(ir.Block, "annotations"),
    ),
    Bug("the printer drops the parentheses of a - (b - c)", no_parentheses_on_the_right_of_minus, reads_back),
    Bug("the parser takes < for >", less_means_greater, reads_back),
    Bug("te lists only the first load among the reads", only_the_first_load_is_read, test_create_prim_func.test_matmul),
    Bug(
        "te drops where=",
        lambda: patch.object(reduction, "_check_where", lambda name, where: ir.const(True)),
        test_values.test_where_and_init,
    ),
    Bug("simplify divides negative constants towards zero", constants_divided_towards_zero, division_keeps_its_value),
    # --- schedule ---
    Bug(
        "pad_einsum pads an axis that says which write comes last",
        lambda: patch("loopwright.schedule.primitives.compute.pad_einsum._check_store", lambda *args: None),
        test_pad_einsum.test_what_is_refused,
    ),
    Bug(
        "pad_einsum multiplies padding with what may be infinite",
        lambda: patch("loopwright.schedule.primitives.compute.pad_einsum._check_sum", lambda *args: None),
        test_pad_einsum.test_what_is_refused,
    ),
    Bug(
        "remove_guard runs past the end of a buffer",
        lambda: patch("loopwright.schedule.primitives.compute.add_guard.check_speculative_runs", lambda *args: None),
        test_add_guard.test_a_guard_of_a_split_goes_when_the_buffer_has_room,
    ),
    Bug(
        "a padded tail reads cells that nobody wrote",
        lambda: patch.object(speculative_runs, "_initialised", lambda step, function, grown: function),
        test_split.test_padding_grows_what_is_ours,
    ),
    Bug(
        "a block may lose a load",
        lambda: patch("loopwright.schedule.proof.find_mismatch._Comparison._check_loads", lambda self: None),
        test_find_mismatch.test_a_block_that_lost_a_load_proves_nothing,
    ),
    Bug(
        "a number beside a choice that drops its data no longer wraps around",
        lambda: patch("loopwright.transform.passes.simplify.SimplifyStatements._wraps_alike", lambda *args: True),
        lambda: test_simplify.test_a_choice_that_drops_data_leaves_the_numbers_beside_it_as_they_count("T.max"),
    ),
    Bug(
        "a load that ends up in a sum counts as part of it",
        lambda: patch("loopwright.schedule.proof.find_mismatch._Comparison._check_updates", lambda self: None),
        test_reuse_buffer.test_a_sum_must_not_read_what_it_sums_into,
    ),
    Bug(
        "a replay is not proved",
        lambda: patch("loopwright.schedule.engine.deferred.find_mismatch", lambda *args: None),
        test_deferred.test_the_culprit_is_found_step_by_step,
    ),
    Bug(
        "a replay does not look for races",
        lambda: patch("loopwright.schedule.engine.deferred.find_race", lambda *args: None),
        test_deferred.test_races_are_looked_for_at_the_end,
    ),
    Bug(
        "steps of users are believed",
        lambda: patch("loopwright.schedule.engine.schedule.check_bodies", lambda *args: None),
        test_composites.test_a_registered_step_cannot_change_what_a_block_computes,
    ),
    Bug(
        "the fill of decompose_padding comes where nothing is proved",
        lambda: patch("loopwright.schedule.engine.prove_step.find_mismatch", lambda *args: None),
        test_decompose_padding.test_what_the_copy_reads_must_not_be_filled_first,
    ),
    Bug(
        "a layout may put two elements into one cell",
        lambda: patch("loopwright.schedule.primitives.layout.transform_layout.find_collision", lambda *args: None),
        every_layout_that_meets,
    ),
    Bug(
        "an inverse on part of the shape is taken for one on all of it",
        lambda: patch("loopwright.schedule.primitives.layout.transform_layout.inverse_on", inverse_on_whole_blocks),
        every_layout_that_meets,
    ),
    Bug(
        "the value proof believes every step",
        lambda: patch("loopwright.schedule.engine.prove_step.find_mismatch", lambda *args: None),
        test_merge.test_merge_refuses_a_reversed_reader_with_the_witness,
    ),
    Bug(
        "no loop ever races",
        lambda: patch("loopwright.schedule.engine.prove_step.find_race", lambda *args: None),
        test_theses.test_parallelising_a_reduction_is_refused,
    ),
    Bug(
        "shared memory allocated in a loop counts as new in each iteration",
        lambda: patch("loopwright.transform.on_request.insert_barriers.hoist_shared_memory", lambda func: func),
        lambda: (
            test_insert_barriers.test_memory_allocated_in_a_loop_is_the_same_in_each_iteration(),
            test_insert_barriers.test_a_schedule_that_stages_in_shared_memory_waits_before_it_writes_again(),
        ),
    ),
    Bug(
        "lanes are believed to keep apart where data decides",
        lambda: patch("loopwright.analysis.races.check_lanes", lambda program: None),
        lambda: test_vector_lanes.test_lanes_that_may_meet_are_refused("a guard by data"),
    ),
    Bug(
        "what an intrinsic's parameters promise is not asked of the tile",
        lambda: patch("loopwright.transform.tensor_intrinsics.match.broken_promise", lambda *args: None),
        a_broken_promise,
    ),
    Bug(
        "a written argument may overlap itself",
        lambda: patch.object(EntryEmitter, "_check_apart", lambda self, buffer: None),
        lambda: test_own_overlap.test_a_written_view_that_overlaps_itself_is_refused(
            lambda: test_own_overlap.lw.build(test_own_overlap.strided_copy), (0, 1)
        ),
    ),
    Bug(
        "elements of an allocated buffer are taken for places of their own",
        lambda: patch("loopwright.analysis.strides.elements_apart", lambda buffer: True),
        lambda: test_own_overlap.test_an_allocated_buffer_that_overlaps_itself_is_refused("[1, 1]"),
    ),
    Bug(
        "calls with effects may be made at once",
        lambda: patch("loopwright.analysis.accesses.reaches_outside", lambda call: False),
        lambda: test_effects.test_iterations_that_call_do_not_run_at_once(
            test_effects.counted, "C", "test.next", "parallel"
        ),
    ),
    Bug(
        "every update over a reduction axis is a reduction",
        every_update_commutes,
        lambda: test_enumeration.test_the_truth_about_wrong_steps(*wrong_step("horner", "Reorder")),
    ),
    Bug(
        "an update may load the cell that it adds to",
        operands_are_not_looked_at,
        lambda: test_enumeration.test_the_truth_about_wrong_steps(*wrong_step("sum_and_gain", "Merge")),
    ),
    Bug(
        "the lemma of free permutations does not ask whether updates commute",
        lambda: patch("loopwright.schedule.proof.lemmas.update_law", lambda *args: "any"),
        lambda: test_enumeration.test_the_truth_about_wrong_steps(*wrong_step("first_of_the_largest", "Reorder")),
    ),
    Bug(
        "rfactor takes every combiner for commutative",
        lambda: patch("loopwright.schedule.rewrite.combiners.is_commutative", lambda combiner: True),
        lambda: test_rfactor.test_an_argmax_of_the_first_keeps_its_order("loose"),
    ),
    Bug(
        "rfactor of te takes every reducer for commutative",
        lambda: patch("loopwright.te.schedule.rfactor.is_commutative", lambda combiner: True),
        test_te_errors.test_rfactor_of_a_reducer_that_keeps_the_first,
    ),
    Bug(
        "laws of combiners forget NaN",
        no_nan,
        lambda: test_rfactor.test_an_argmax_of_floats_that_a_nan_decides_is_refused(),
    ),
    Bug(
        "the evaluator on terms takes every update for a member of a sum",
        lambda: patch("loopwright.evaluator.folds.commute", lambda one, other: True),
        every_case(test_terms.test_updates_that_do_not_commute_are_nested),
    ),
    Bug(
        "every nest counts as freely permutable",
        lambda: patch("loopwright.schedule.primitives.loops.reorder.permutation_is_free", lambda *args: True),
        test_theses.test_reordering_a_recurrence_is_refused_with_both_iterations,
    ),
    Bug(
        "the proof takes all memory for unchanged",
        lambda: patch("loopwright.schedule.proof.find_mismatch.unchanged_memory", all_memory),
        test_merge.test_merge_refuses_a_reversed_reader_with_the_witness,
    ),
    Bug(
        "split forgets the guard of its tail",
        lambda: patch("loopwright.schedule.primitives.loops.split.guard_blocks", lambda body, condition: body),
        test_split.test_split_guards_the_tail,
    ),
    Bug(
        "fuse forgets that a reduction's init can move past another block",
        lambda: patch("loopwright.schedule.primitives.loops.fuse.met_by_inits", lambda loop: []),
        test_fuse.test_fuse_is_refused_where_the_init_would_move_past_another_block,
    ),
    Bug(
        "fuse forgets that cells which start before it may be shared",
        lambda: forgotten_starts("loopwright.schedule.primitives.loops.fuse.inits_moved_out"),
        test_fuse.test_fuse_is_refused_where_cells_would_not_start,
    ),
    Bug(
        "split forgets rows of a reduction without iterations",
        lambda: forgotten_starts("loopwright.schedule.primitives.loops.split.inits_of_rows"),
        lambda: test_split.test_rows_of_a_triangle_without_iterations_start_too(5),
    ),
    Bug(
        "rows that share a cell are taken to have one of their own",
        lambda: patch.multiple(moved_inits, _shares_cells=lambda *_: False, _loop_kinds_changed=lambda *_: False),
        test_enumeration.test_a_loop_that_comes_to_carry_a_reduction_moves_its_starts,
    ),
    Bug(
        "a guard stands behind a predicate that loads",
        lambda: patch("loopwright.schedule.rewrite.bindings.could_fail", lambda _: False),
        lambda: test_split.test_what_only_iterations_of_the_loop_may_load_is_behind_the_guard(
            test_split.BY_DATA["predicate"]
        ),
    ),
    Bug(
        "threads of a reduction all start its cells",
        lambda: patch("loopwright.analysis.races._counters", lambda _, var: {var}),
        lambda: test_bind.test_threads_of_a_reduction_do_not_all_start_a_cell("i + j < 3", True),
    ),
    Bug(
        "a copy beside a reduction over threads changes whose turn it is",
        lambda: patch("loopwright.schedule.engine.prove_step.with_turns_proved", lambda _, view, step: step),
        every_case(test_enumeration.test_what_stands_beside_a_reduction_over_threads_changes_whose_turn_it_is),
    ),
    Bug(
        "fuse lets a reduction start in a loop that may have no iterations",
        lambda: patch("loopwright.schedule.primitives.loops.fuse._check_empty", lambda *_: None),
        test_fuse.test_every_block_in_a_loop_that_may_have_no_iterations_is_looked_at,
    ),
    Bug(
        "decompose_reduction forgets conditions between the loop and the block",
        lambda: patch("loopwright.schedule.primitives.compute.decompose_reduction._check_between", lambda *_: None),
        test_decompose_reduction.test_a_condition_between_the_loop_and_the_block_is_refused,
    ),
    Bug(
        "decompose_reduction forgets what the init reads",
        lambda: patch("loopwright.schedule.primitives.compute.decompose_reduction._read_by", lambda _: []),
        test_decompose_reduction.test_an_init_is_not_moved_before_what_it_reads,
    ),
    Bug(
        "lanes that begin elsewhere are taken to be at one place",
        lambda: patch("loopwright.analysis.races._begins_by_lane", lambda *_: False),
        test_vectorize.test_a_loop_that_begins_elsewhere_in_each_lane_does_not_tell_the_time,
    ),
    Bug(
        "loops beside a reduction that it shapes are taken for a box",
        bounds_name_no_loops,
        every_case(test_ragged_domains.test_a_loop_that_begins_where_the_reduction_says_is_not_split_without_proof),
    ),
    Bug(
        "what is inlined is exact, although what was loaded wraps",
        lambda: patch("loopwright.arith.stored_values._fits", lambda *_: True),
        lambda: test_index_arithmetic.test_what_is_inlined_wraps_as_what_was_loaded("int32", "n", "B[v] * 3 % 3"),
    ),
    Bug(
        "that updates commute is taken to say that their operands can be evaluated in any order",
        operands_are_evaluated_anyway,
        lambda: test_guarded_operands.test_an_operand_that_may_fail_is_evaluated_where_it_was("and", "A[I[0]] > 0"),
    ),
    Bug(
        "calls in bounds and conditions are not counted",
        lambda: patch("loopwright.schedule.engine.prove_step.check_calls_kept", lambda *_: None),
        test_calls_in_bounds.test_a_guard_that_calls_is_not_copied,
    ),
    Bug(
        "runs that a step adds are taken to stay in bounds where parameters decide it",
        lambda: patch("loopwright.schedule.proof.speculative_runs.check_bounds_in", lambda _: []),
        test_speculative_runs.test_a_guard_is_not_removed_where_a_parameter_says_how_far_a_loop_runs,
    ),
    Bug(
        "bounds of loops are taken to be readable wherever they are asked for",
        lambda: patch("loopwright.schedule.rewrite.plain_loops.is_safe", lambda *_: True),
        lambda: test_ragged_domains.test_a_bound_is_not_read_where_the_loop_around_has_no_iterations(
            "fuse", "T.min(N[s], 3)", r"N\[s\]"
        ),
    ),
    Bug(
        "loops without iterations are taken to run where no axis shows it",
        lambda: patch("loopwright.schedule.rewrite.iteration_domain._may_be_kept_away", lambda *_: False),
        every_case(test_ragged_domains.test_a_block_that_never_runs_is_not_made_to_run_out_of_bounds),
    ),
    Bug(
        "a start that is written out runs over loops of data axes alone",
        lambda: patch("loopwright.schedule.primitives.compute.decompose_reduction.is_one", lambda _: True),
        test_ragged_domains.test_a_start_that_is_written_out_runs_over_loops_that_no_axis_is_bound_to,
    ),
    Bug(
        "conditions of a reduction that name no loop are forgotten",
        conditions_name_loops,
        test_ragged_domains.test_a_condition_on_updates_that_comes_to_name_no_loop_is_proved_or_refused,
    ),
    Bug(
        "rfactor takes no two iterations to reach one cell",
        lambda: patch("loopwright.schedule.primitives.compute.rfactor.carries", lambda *_: False),
        test_rfactor.test_cells_that_iterations_without_members_reach,
    ),
    Bug(
        "memory that moves takes no init with it",
        lambda: patch.object(
            moved_inits, "_init_key", lambda path: [node.loop_var for node in path if isinstance(node, ir.For)]
        ),
        every_case(
            test_ragged_domains.test_memory_is_not_lifted_out_of_a_loop_where_the_init_reads_what_the_loop_writes
        ),
    ),
    Bug(
        "a condition on the only iteration of a reduction guards its start",
        lambda: patch.object(reduction_init._Init, "_depth_of_conditions", lambda self: None),
        lambda: test_reduction_init.test_a_condition_on_updates_alone_does_not_guard_the_init(1, "if"),
    ),
    Bug(
        "the proof believes every load of an input",
        lambda: patch("loopwright.schedule.proof.find_mismatch._Comparison._is_plain_input", only_read),
        test_find_mismatch.test_a_load_that_stays_in_a_block_that_stands_for_other_iterations,
    ),
    Bug(
        "names of instances are taken for unique",
        lambda: patch.object(reaching_writes.ReachingWrites, "check_names", lambda self, buffer: None),
        test_theses.test_a_block_whose_axes_do_not_tell_its_iterations_apart_stays,
    ),
    Bug(
        "bindings are not rewritten for the new loops",
        lambda: patch("loopwright.schedule.primitives.loops.split.rebind", lambda body, *_: body),
        test_split.test_split_guards_the_tail,
    ),
    Bug(
        "parts of a concatenation all begin where it begins",
        lambda: patch.object(Part, "offset", lambda self, value: 0),
        test_concat_in_place.test_branches_write_into_the_whole,
    ),
    Bug(
        "a value may be a part of two wholes at once",
        lambda: patch("loopwright.relay.lower.concat_in_place._without_joins", no_copies),
        test_concat_in_place.test_a_value_of_two_wholes,
    ),
    Bug(
        "outer loops are vectorized although iterations share cells",
        lambda: patch("loopwright.transform.passes.vectorize_outer_loops.is_parallelizable", lambda *_: True),
        test_vectorize_outer_loops.test_no_vectors_where_iterations_share_a_cell,
    ),
    Bug(
        "loops are interchanged although values flow between tiles",
        lambda: patch("loopwright.transform.passes.interchange_loops.is_parallelizable", lambda *_: True),
        test_interchange_loops.test_values_that_flow_between_tiles_keep_them,
    ),
    Bug(
        "LLVM is told that every innermost loop of unit stride is free of dependences",
        lambda: patch.object(LoopHints, "_is_independent", lambda *_: True),
        test_loop_hints.test_a_value_that_flows_to_the_next_iteration_is_no_vector,
    ),
    Bug(
        "what a rolled block writes besides its circular buffer is not compared",
        lambda: patch.object(rolling._Circular, "left_out", property(lambda *_: {}, lambda *_: None), create=True),
        test_rolling_buffer.test_what_else_the_block_writes_counts,
    ),
    Bug(
        "a start that did not run before may write anywhere",
        lambda: patch.object(find_mismatch._Comparison, "_check_new_starts", lambda *_: None),
        test_find_mismatch.test_a_start_that_did_not_run_before_stays_within_its_buffer,
    ),
    Bug(
        "loops may change sides between data and reduction",
        lambda: patch.object(moved_inits, "_loop_kinds_changed", lambda *_: False),
        test_ragged_domains.test_a_loop_that_simplifying_takes_out_of_the_data_axes,
    ),
    Bug(
        "partial results are compared as if they had not wrapped",
        lambda: patch("loopwright.schedule.primitives.compute.rfactor._check_stored", lambda *_: None),
        test_rfactor.test_members_that_are_compared_before_they_wrap,
    ),
    Bug(
        "the block around a tile runs with its axes anywhere",
        lambda: patch("loopwright.schedule.primitives.compute.blockize._runs_always", lambda *_: True),
        test_blockize.test_an_axis_stays_in_its_domain_where_no_loop_inside_runs,
    ),
    Bug(
        "bounds that a let names depend on no loop",
        lambda: patch.object(moved_inits, "_lets_written_out", lambda path: path),
        lambda: test_written_lets.test_rows_without_members_start_after_a_split("N[u]", "u"),
    ),
    Bug(
        "a replay does not ask for calls in bounds",
        lambda: patch("loopwright.schedule.engine.deferred.check_calls_kept", lambda *_: None),
        lambda: test_calls_in_bounds.test_a_replay_moves_no_guard_that_calls("split"),
    ),
    Bug(
        "a start that did not run before may load anywhere",
        lambda: patch.object(find_mismatch._Comparison, "_risk", lambda *_: None),
        lambda: test_written_lets.test_a_new_start_loads_nothing_outside_and_divides_by_no_zero("B[0] = D[m]", ""),
    ),
    Bug(
        "a cell that several iterations make is folded all the same",
        lambda: patch.object(reverse_compute_inline, "_check_made_once", lambda *_: None),
        lambda: test_reverse_compute_inline.test_a_cell_that_several_iterations_make_is_not_theirs_alone("t"),
    ),
    Bug(
        "only the loop that a step names is asked for races",
        lambda: patch.object(prove_step, "to_prove_again", lambda before, after, step: list(step.concurrent)),
        lambda: test_bound_programs.test_the_inner_of_two_loops_of_one_axis_stays_alone("unroll", ()),
    ),
    Bug(
        "shared memory that is allocated under threads is that of each",
        lambda: patch("loopwright.analysis.instances.is_shared_along", lambda *_: False),
        test_bound_programs.test_shared_memory_under_a_condition_that_names_a_thread_is_one_for_all,
    ),
    Bug(
        "what is read between its writers is taken for unchanged",
        lambda: patch.object(
            unchanged_writers, "_first_writers", lambda users: [statement for statement, writes in users if writes]
        ),
        every_case(test_unchanged_writers.test_a_reader_before_a_writer_sees_something_else),
    ),
    Bug(
        "a writer that runs several times is taken for one that runs once",
        lambda: patch.object(unchanged_writers, "_one_value_a_name", lambda version, writer: True),
        test_unchanged_writers.test_a_writer_whose_loops_are_open_may_write_several_values,
    ),
]
