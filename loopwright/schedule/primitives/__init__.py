"""The primitives, one file each: `split.py` holds `split`, `Schedule.split` calls it, `test_split.py` tests it.

A step is a function `(view, arguments) → Step`; a query gives results and changes nothing; a sample also takes the
random numbers and gives its decision. `PRIMITIVES` is the list of them: adding one adds a row, a file and a thin method
of `Schedule` (in `methods/`). Handles among the arguments arrive as the nodes they stand for (a loop as its `For`, a
block as its `BlockRealize`). Start with `split.py`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, get_type_hints


@dataclass(frozen=True)
class Primitive:
    """A row of the table: the kind as traces name it, the handles and numbers it takes, its settings."""

    kind: str
    inputs: tuple[str, ...]
    attrs: tuple[str, ...] = ()
    is_query: bool = False
    is_sample: bool = False
    gives_list: bool = False
    file: str = ""  # where it is not the method's own
    name: str = ""  # of the method, where it does not follow from the kind: RFactor → rfactor
    takes_marks: bool = False  # a loop may be the mark of the root or of inlining
    is_users: bool = False  # registered by a user: proved whatever it claims
    is_composite: bool = False  # a function of a schedule, which does steps
    given: Callable[..., Any] | None = None  # the function itself, of a user's step

    @cached_property
    def required(self) -> frozenset[str]:
        """The arguments that have no default."""
        parameters = inspect.signature(self.function).parameters.values()
        return frozenset([item.name for item in parameters if item.default is item.empty])

    @cached_property
    def hints(self) -> Mapping[str, Any]:
        """The types of the arguments, as the function declares them; a user's step checks its own."""
        return {} if self.given is not None else get_type_hints(self.function)

    @cached_property
    def method(self) -> str:
        """The name of the method and of the function: CacheRead → cache_read."""
        words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in self.kind)
        return self.name or words.lstrip("_")

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The primitive itself, loaded when first used."""
        if self.given is not None:
            return self.given
        module = importlib.import_module(f"loopwright.schedule.primitives.{self.file or self.method}")
        found: Callable[..., Any] = getattr(module, self.method)
        return found


def _row(kind: str, inputs: str = "", attrs: str = "", **options: Any) -> Primitive:
    return Primitive(kind, tuple(inputs.split()), tuple(attrs.split()), **options)


PRIMITIVES: Final[dict[str, Primitive]] = {
    row.kind: row
    for row in (
        # questions
        _row("GetBlock", "", "name func_name", is_query=True, file="queries"),
        _row("GetLoops", "block", is_query=True, gives_list=True, file="queries"),
        _row("GetChildBlocks", "block_or_loop", is_query=True, gives_list=True, file="queries"),
        _row("GetProducers", "block", is_query=True, gives_list=True, file="queries"),
        _row("GetConsumers", "block", is_query=True, gives_list=True, file="queries"),
        _row("GetOutputBlocks", "scope_block", is_query=True, gives_list=True, file="queries"),
        # loops
        _row("Split", "loop factors", "preserve_unit_iters tail"),
        _row("Fuse", "loops", "preserve_unit_iters"),
        _row("Reorder", "ordered_loops"),
        _row("Merge", "loops"),
        _row("Fission", "loop", "index"),
        _row("AddUnitLoop", "block_or_loop"),
        _row("Specialize", "loops", "condition", gives_list=True),
        _row("Parallel", "loop"),
        _row("Vectorize", "loop"),
        _row("Unroll", "loop"),
        _row("Bind", "loop", "thread_axis"),
        _row("AddThreadLoop", "loop", "thread_axis extent"),
        # moving computation
        _row("ComputeAt", "block loop", "preserve_unit_loops index", takes_marks=True),
        _row("ReverseComputeAt", "block loop", "preserve_unit_loops index", takes_marks=True),
        _row("ComputeInline", "block"),
        _row("ReverseComputeInline", "block"),
        _row("DecomposeReduction", "block loop"),
        _row("RFactor", "loop", "factor_axis", name="rfactor"),
        _row("Winograd", "block", "tile", gives_list=True),
        _row("Blockize", "target", "preserve_unit_iters"),
        _row("Tensorize", "block_or_loop", "tensor_intrin preserve_unit_iters"),
        # memory
        _row("CacheRead", "block consumer_blocks", "read_buffer_index storage_scope"),
        _row("CacheWrite", "block consumer_blocks", "write_buffer_index storage_scope"),
        _row("Stage", "block loop", "buffer storage_scope layout"),
        _row("TransformLayout", "block", "buffer index_map pad_value"),
        _row("SetScope", "block", "buffer_index storage_scope"),
        _row("StorageAlign", "block", "buffer_index axis factor offset"),
        _row("LiftAlloc", "block", "buffer levels"),
        _row("SinkAlloc", "block", "buffer"),
        _row("Prefetch", "block loop", "buffer distance levels lines"),
        # copies by axes, at a loop, of indices; circular and shared buffers
        _row("ReIndex", "block", "buffer", name="reindex"),
        _row("ReindexCacheRead", "block", "read_buffer_index storage_scope index_map"),
        _row("ReindexCacheWrite", "block", "write_buffer_index storage_scope index_map"),
        _row("CacheInplace", "block", "read_buffer_index storage_scope", gives_list=True),
        _row("CacheIndex", "block", "storage_scope cse_thresh", gives_list=True),
        _row("ReadAt", "loop block", "read_buffer_index storage_scope"),
        _row("WriteAt", "loop block", "write_buffer_index storage_scope", file="read_at"),
        _row("RollingBuffer", "block", "write_buffer_index size"),
        _row("ReuseBuffer", "block", "buffer other"),
        # axes
        _row("ReorderBlockIterVar", "block", "new_order"),
        _row("TransformBlockLayout", "block", "index_map"),
        _row("UnrollAndJam", "loop", "factor", gives_list=True),
        # padding and guards
        _row("DecomposePadding", "block loop"),
        _row("PadEinsum", "block", "padding"),
        _row("ExpandProduct", "block", "types"),
        _row("AddGuard", "block", "condition"),
        _row("RemoveGuard", "block", "index", file="add_guard"),
        # storage
        _row("SetAxisSeparator", "block", "buffer axis_separators"),
        _row("UnsafeSetDType", "block", "buffer_index dtype", name="unsafe_set_dtype"),
        _row("UnsafeHideBufferAccess", "block", "buf_type buf_index_array"),
        # notes
        _row("Annotate", "block_or_loop", "ann_key ann_val", file="annotate"),
        _row("Unannotate", "block_or_loop", "ann_key", file="annotate"),
        _row("EnterPostproc", is_query=True, file="queries"),
        # samples
        _row("SamplePerfectTile", "loop", "n max_innermost_factor", is_sample=True, gives_list=True, file="sampling"),
        _row("SampleCategorical", "", "candidates probs", is_sample=True, file="sampling"),
        _row(
            "SamplePartitionedTile",
            "loop",
            "n partition_pos innerpart_factor",
            is_sample=True,
            gives_list=True,
            file="sampling",
        ),
        _row("SampleComputeLocation", "block", is_sample=True, file="sample_compute_location"),
    )
}
