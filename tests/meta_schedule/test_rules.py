"""Rules, postprocs and mutators: design spaces of small programs, and what finishes them."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright import meta_schedule as ms
from loopwright.ir import ForKind
from loopwright.meta_schedule.testing.space_generation import generate_design_space, get_rules
from loopwright.meta_schedule.testing.te_workload import CONFIGS, create_te_workload
from loopwright.target import Target
from tests.meta_schedule.programs import gemm

TARGET = Target("llvm -num-cores=4")


def kinds(sch: lw.Schedule) -> list[str]:
    return [sch.trace.insts[position].kind.name for position in sorted(sch.trace.decisions)]


def test_tiling_of_a_gemm_has_three_alternatives():
    spaces = generate_design_space("llvm", gemm(64, 64, 64), TARGET, ms.schedule_rule.MultiLevelTiling)
    assert len(spaces) == 3
    assert all(kinds(sch) == ["SamplePerfectTile"] * 3 and sch.is_proved for sch in spaces)
    copied = ["C_global" in sch.mod.script() for sch in spaces]
    assert sorted(copied) == [False, True, True]


def test_an_epilogue_takes_the_place_of_a_copy():
    spaces = generate_design_space("llvm", gemm(64, 64, 64, relu=True), TARGET, ms.schedule_rule.MultiLevelTiling)
    assert len(spaces) == 3 and not any("C_global" in sch.mod.script() for sch in spaces)


def test_few_results_are_split_into_partial_ones():
    spaces = generate_design_space("llvm", gemm(4, 4, 512), TARGET, ms.schedule_rule.AddRFactor)
    assert sorted("C_rf" in sch.mod.script() for sch in spaces) == [False, True, True]


def test_notes_become_parallel_vectorized_and_unrolled_loops():
    sch = lw.Schedule(gemm(32, 32, 32))
    root = sch.get_block("root")
    for key, value in (("parallel", 16), ("vectorize", 32), ("unroll_explicit", 16)):
        sch.annotate(root, f"meta_schedule.{key}", value)
    sch.reorder(*[sch.get_loops("C")[number] for number in (0, 2, 1)])
    assert ms.postproc.RewriteParallelVectorizeUnroll().apply(sch)
    loops = [sch.get(loop) for loop in sch.get_loops("C")]
    assert [loop.kind for loop in loops] == [ForKind.PARALLEL, ForKind.SERIAL, ForKind.VECTORIZED]
    assert "pragma_auto_unroll_max_step" in loops[0].annotations
    assert ms.postproc.RewriteReductionBlock().apply(sch)
    assert "C_init" in sch.mod.script() and sch.is_proved


def test_a_replayed_candidate_computes_the_same():
    mod = gemm(48, 32, 24)
    context = ms.TuneContext(
        mod, target=TARGET, space_generator="post-order-apply", search_strategy="replay-trace", rand_state=7
    )
    context.pre_tuning(max_trials=3, num_trials_per_iter=3)
    a, b = np.random.rand(48, 24).astype("float32"), np.random.rand(24, 32).astype("float32")
    candidates = context.generate_measure_candidates()
    assert len(candidates) == 3
    for candidate in candidates:
        assert candidate.sch.is_proved
        c = lw.nd.array(np.zeros((48, 32), "float32"))
        lw.build(candidate.sch.mod, target=TARGET)(lw.nd.array(a), lw.nd.array(b), c)
        np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-4)
    context.notify_runner_results(candidates, [])
    assert context.generate_measure_candidates() is None


def test_the_same_seed_draws_the_same():
    traces = []
    for _ in range(2):
        context = ms.TuneContext(
            gemm(), target=TARGET, space_generator="llvm", search_strategy="evolutionary", rand_state=3
        )
        model = ms.CostModel.create("random", seed=1)
        context.pre_tuning(max_trials=4, num_trials_per_iter=4, cost_model=model)
        traces.append([str(one.sch.trace) for one in context.generate_measure_candidates()])
    assert traces[0] == traces[1] and len(traces[0]) == 4


def test_mutators_change_one_decision():
    (sch, *_) = generate_design_space("llvm", gemm(64, 64, 64), TARGET, ms.ScheduleRule)
    context = ms.TuneContext(gemm(64, 64, 64), target=TARGET, rand_state=1)
    for mutator in (ms.mutator.MutateTileSize(), ms.mutator.MutateUnroll()):
        mutator.initialize_with_tune_context(context)
        changed = mutator.apply(sch.trace)
        differing = [key for key in sch.trace.decisions if sch.trace.decisions[key] != changed.decisions[key]]
        assert len(differing) == 1
    assert ms.mutator.MutateParallel(-1).apply(sch.trace) is None


def test_rules_are_cloned_and_chosen_by_type():
    (rule,) = get_rules("llvm", ms.schedule_rule.AddRFactor)
    assert rule.clone() is not rule and rule.clone().max_innermost_factor == 64
    with pytest.raises(ValueError, match="there are no schedule rules for 'abacus'"):
        ms.ScheduleRule.create("abacus")


@pytest.mark.parametrize("name", CONFIGS)
def test_workloads_have_design_spaces(name: str):
    assert create_te_workload(name, 0).buffer_map


def test_another_limit_of_tasks_is_one_that_makes_a_difference():
    mod = gemm(64, 64, 64)
    mutator = ms.mutator.MutateParallel(16)
    mutator.initialize_with_tune_context(ms.TuneContext(mod, target=TARGET, rand_state=1))
    sch = lw.Schedule(ms.tune_context._normalize_mod(mod))
    i, j, _ = sch.get_loops("C")
    sch.reorder(*sch.split(i, [4, 16])[:1], j)
    sch.annotate(sch.get_block("root"), "meta_schedule.parallel", 8)
    limits = {mutator.apply(sch.trace).insts[-1].attrs["ann_val"] for _ in range(10)}
    assert limits == {4}  # 4 · 64 is made now, and more are too many
