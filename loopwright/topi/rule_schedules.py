"""Schedules of operators: te schedules that are filled in by rule when they are lowered.

    with Target("llvm"):
        s = topi.x86.schedule_softmax([out])
        f = loopwright.build(s, [x, out])

`autosched` looks at the program, not at the name of the operator, so every `schedule_*` function answers with the same
kind of schedule. Whoever goes on by hand (`s[out].parallel(…)`, `s.cache_write(…)`) gets just what was asked for: the
rules leave a schedule alone once something was said about one of its stages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from loopwright import te
from loopwright.ir import Buffer, IRModule
from loopwright.runtime.errors import LoopwrightError
from loopwright.target import Target
from loopwright.te.schedule.auto_inline import AutoInlineInjective
from loopwright.topi import tag
from loopwright.topi.types import Arguments

if TYPE_CHECKING:
    from loopwright.schedule import Schedule as Engine

# The operators that have a schedule by their name.
FAMILIES: Final = (
    "adaptive_pool argsort argwhere batch_matmul batch_matmul_cblas batch_matmul_mkl batch_matmul_vnni batch_norm "
    "binarize_pack binary_dense bitserial_conv2d_nchw bitserial_conv2d_nhwc conv2d_gemm_weight_transform "
    "conv2d_winograd_weight_transform conv3d_winograd_weight_transform dense_dynamic dense_vnni "
    "conv2d_nhwc_pack_int8 depthwise_conv2d_backward_input_nhwc depthwise_conv2d_nchw_spatial_pack "
    "depthwise_conv2d_backward_weight_nhwc group_conv1d_transpose_ncw group_conv3d_transpose_ncdhw "
    "bitserial_dense broadcast concatenate conv1d_ncw conv1d_nwc conv1d_transpose_ncw conv2d_NCHWc conv2d_NCHWc_int8 "
    "conv2d_hwcn conv2d_nchw conv2d_nchw_int8 conv2d_nhwc conv2d_nhwc_pack conv2d_transpose_nchw conv2d_winograd_nhwc "
    "conv2d_winograd_without_weight_transform conv3d_ncdhw conv3d_ndhwc conv3d_transpose_ncdhw correlation_nchw "
    "deformable_conv2d_nchw deformable_conv2d_nhwc dense dense_cblas dense_dnnl dense_int8 dense_mkl dense_nopack "
    "dense_pack depthwise_conv2d_NCHWc depthwise_conv2d_nchw depthwise_conv2d_nhwc dilation2d_nchw dilation2d_nhwc "
    "einsum elemwise extern fast_softmax get_valid_counts group_conv1d_ncw group_conv1d_nwc group_conv2d_NCHWc "
    "group_conv2d_nchw group_conv2d_nhwc group_conv2d_transpose_nchw injective lrn lstm matmul matmul_cblas "
    "matmul_dnnl matmul_mkl multibox_detection multibox_prior multibox_transform_loc nms pool pool_grad proposal "
    "reduce reorg roi_align roi_pool scatter softmax sort sparse_conv2d sparse_dense sparse_dense_padded "
    "sparse_fill_empty_rows sparse_reshape sparse_transpose sparse_transpose_add topk unique"
).split()


class NoScheduleForTarget(LoopwrightError, RuntimeError):
    """Operators are scheduled by rule for CPUs and NVIDIA GPUs, and the target is none.

    For example:

        from loopwright import te, topi
        from loopwright.target import Target

        x = te.placeholder((8,), name="x")
        with Target("hexagon"):
            topi.generic.default_schedule([topi.exp(x)], auto_inline=False)
    """

    code = "LW1110"

    def __init__(self, target: Target) -> None:
        super().__init__(
            f"schedule not registered for '{target.kind}'",
            hint="schedule for llvm, c or cuda, or write a schedule of your own with te.create_schedule",
            fields={"target": str(target)},
        )


class RuleSchedule(te.Schedule):
    """A te schedule that is made by rule for `target` when it is lowered, unless somebody changed it."""

    def __init__(self, outputs: Sequence[te.Operation], target: Target) -> None:
        super().__init__(outputs)
        self.target = target
        self._as_made = self._state()

    def _state(self) -> list[bool]:
        return [stage.is_untouched() for stage in self.stages]

    @property
    def is_by_rule(self) -> bool:
        """Whether the rules still decide."""
        return self._state() == self._as_made

    def finish(self, module: IRModule) -> IRModule:
        """The program scheduled by rule."""
        from loopwright.autosched import apply  # the schedule engine loads when it is needed

        return apply(module, self.target).mod if self.is_by_rule else module

    def as_tir_schedule(self, args: Arguments, binds: Mapping[te.Tensor, Buffer] | None = None) -> Engine:
        """The steps, each proved, as a `tir.Schedule`."""
        from loopwright.autosched import apply

        result = super().as_tir_schedule(args, binds)
        return apply(result.mod, self.target).schedule if self.is_by_rule else result


def by_rule(outs: te.Tensor | Sequence[te.Tensor], target: Target | None = None) -> RuleSchedule:
    """The schedule of one tensor, or of several: for `target`, or the current one, or else for this machine."""
    target = target or Target.current(allow_none=True) or Target("llvm")
    if str(target.kind) not in ("llvm", "c", "cuda"):
        raise NoScheduleForTarget(target)
    tensors = [outs] if isinstance(outs, te.Tensor) else list(outs)
    return RuleSchedule(list(dict.fromkeys([tensor.op for tensor in tensors])), target)


@cache
def schedule_function(name: str) -> Callable[..., RuleSchedule]:
    """`schedule_<family>`: the output, or a list of them; what else a family takes (the layout of a pool) is given
    by the tensors."""

    def schedule(outs: te.Tensor | Sequence[te.Tensor], *_: object, **__: object) -> RuleSchedule:
        return by_rule(outs)

    schedule.__name__ = schedule.__qualname__ = name
    schedule.__doc__ = f"A schedule by rule for the results of {name.removeprefix('schedule_')}."
    return schedule


@cache
def gpu_schedule_function(name: str) -> Callable[..., RuleSchedule]:
    """`schedule_<family>` for GPUs: for the current target where it is a cuda target, else for "cuda"."""

    def schedule(outs: te.Tensor | Sequence[te.Tensor], *_: object, **__: object) -> RuleSchedule:
        current = Target.current(allow_none=True)
        return by_rule(outs, current if current is not None and current.kind == "cuda" else Target("cuda"))

    schedule.__name__ = schedule.__qualname__ = name
    schedule.__doc__ = f"A schedule by rule for the results of {name.removeprefix('schedule_')} on a GPU."
    return schedule


def named_schedule(module: str, name: str) -> Callable[..., RuleSchedule]:
    """What a package of schedules has under `name`."""
    if name.startswith("schedule_") and name.removeprefix("schedule_") in FAMILIES:
        return schedule_function(name)
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def default_schedule(outs: te.Tensor | Sequence[te.Tensor], auto_inline: bool) -> te.Schedule:
    """Loops as they stand, in order; with `auto_inline`, cheap stages inside their readers and one loop an output."""
    sch: te.Schedule = te.create_schedule(list(by_rule(outs).outputs))
    if auto_inline:
        AutoInlineInjective(sch)
        for op in sch.outputs:
            if op.axis:  # type: ignore[attr-defined]
                sch[op].fuse(*op.axis)  # type: ignore[attr-defined]
    return sch


def schedule_injective_from_existing(sch: te.Schedule, out: te.Tensor) -> te.Schedule:
    """`sch` with the stage of `out` as one loop."""
    sch[out].fuse(*sch[out].op.axis)  # type: ignore[attr-defined]
    return sch


def fast_injective_from_existing(sch: te.Schedule, out: te.Tensor) -> te.Schedule:
    """`sch` with the first axes of `out` spread over threads, and the last one in vectors of 16."""
    stage, axes = sch[out], list(sch[out].op.axis)  # type: ignore[attr-defined]
    outer = 3 if len(axes) >= 5 else 2 if len(axes) >= 3 else 1
    if not axes:
        return sch
    _, lanes = stage.split(axes[-1], factor=16)
    stage.vectorize(lanes)
    if len(axes) > 1:
        together = stage.fuse(*axes[:outer]) if outer > 1 else axes[0]
        stage.parallel(together)
    return sch


def gpu_injective_from_existing(sch: te.Schedule, out: te.Tensor) -> te.Schedule:
    """`sch` with the elements of `out` over blocks of threads, one for each."""
    stage, axes = sch[out], list(sch[out].op.axis)  # type: ignore[attr-defined]
    if not axes:
        return sch
    block, thread = stage.split(stage.fuse(*axes) if len(axes) > 1 else axes[0], factor=256)
    stage.bind(block, te.thread_axis("blockIdx.x"))
    stage.bind(thread, te.thread_axis("threadIdx.x"))
    return sch


def traverse_inline(sch: te.Schedule, final_op: te.Operation, callback: Callable[[te.Operation], object]) -> None:
    """Inline every injective stage that `final_op` is computed from, and call `callback` on the others, inputs first.

    Outputs are never inlined, and the callback gets every operation once.
    """
    seen: set[te.Operation] = set()

    def visit(op: te.Operation) -> None:
        if op in seen:
            return
        seen.add(op)
        for tensor in op.input_tensors:
            if tensor.op.input_tensors:
                visit(tensor.op)
        if tag.is_injective(op.tag) and op not in sch.outputs:
            sch[op].compute_inline()
        callback(op)

    visit(final_op)


__all__ = [
    "FAMILIES",
    "NoScheduleForTarget",
    "RuleSchedule",
    "by_rule",
    "default_schedule",
    "fast_injective_from_existing",
    "gpu_injective_from_existing",
    "gpu_schedule_function",
    "named_schedule",
    "schedule_function",
    "schedule_injective_from_existing",
    "traverse_inline",
]
