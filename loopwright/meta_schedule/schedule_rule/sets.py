"""The sets of rules for kinds of targets, in the order in which rules are applied."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopwright.meta_schedule.schedule_rule.add_rfactor import AddRFactor
from loopwright.meta_schedule.schedule_rule.apply_custom_rule import ApplyCustomRule
from loopwright.meta_schedule.schedule_rule.for_gpus import AutoBind, CrossThreadReduction
from loopwright.meta_schedule.schedule_rule.inline import AutoInline, InlineConstantScalars
from loopwright.meta_schedule.schedule_rule.multi_level_tiling import MultiLevelTiling, ReuseType
from loopwright.meta_schedule.schedule_rule.parallelize_vectorize_unroll import ParallelizeVectorizeUnroll
from loopwright.meta_schedule.schedule_rule.random_compute_location import RandomComputeLocation
from loopwright.meta_schedule.schedule_rule.schedule_rule import ScheduleRule
from loopwright.meta_schedule.schedule_rule.with_intrin import MultiLevelTilingWithIntrin

_UNROLL = (0, 16, 64, 512)
_THREADS = (4, 8, 16, 32, 64, 128, 256, 512)
_MAY_COPY = ReuseType("may", [1, 2], "global")


def for_cpu(intrinsics: Sequence[str] = ()) -> list[ScheduleRule]:
    """For CPUs; blocks that an intrinsic fits are tiled for it."""
    tensorized = [
        MultiLevelTilingWithIntrin(name, "SSRSRS", max_innermost_factor=64, reuse_write=_MAY_COPY)
        for name in intrinsics
    ]
    return [
        ApplyCustomRule(),
        InlineConstantScalars(),
        AutoInline(False, True, True, True, True, True, ["tir.exp"]),
        AddRFactor(16, 64),
        *tensorized,
        MultiLevelTiling("SSRSRS", None, 64, None, None, _MAY_COPY),
        ParallelizeVectorizeUnroll(16, 64, _UNROLL, True),
        RandomComputeLocation(),
    ]


def for_gpu() -> list[ScheduleRule]:
    """For GPUs."""
    return [
        ApplyCustomRule(),
        MultiLevelTiling(
            "SSSRRSRS",
            ["blockIdx.x", "vthread.x", "threadIdx.x"],
            64,
            [1, 2, 3, 4, 8, 16],
            ReuseType("must", [4], "shared"),
            ReuseType("must", [3], "local"),
        ),
        InlineConstantScalars(),
        AutoInline(True, True, True, False, False, False, []),
        CrossThreadReduction(_THREADS),
        ParallelizeVectorizeUnroll(-1, -1, [*_UNROLL, 1024], True),
        AutoBind(256, [32, 64, 128, 256, 512, 1024]),
    ]


SETS: dict[str, Callable[[], list[ScheduleRule]]] = {
    "llvm": for_cpu,
    "vnni": lambda: for_cpu(["dot_16x4_vnni"]),
    "avx512": lambda: for_cpu(["dot_16x4_avx512"]),
    "asimd": lambda: for_cpu(["dot_4x4_i8i8s32_neon"]),
    "dotprod": lambda: for_cpu(["dot_4x4_i8i8s32_sdot", "dot_4x4_u8u8u32_udot", "dot_4x4_u8u8i32_hdot"]),
    "cuda": for_gpu,
    "cuda-tensorcore": for_gpu,
}
