"""The primitives, one file each: `split.py` holds `split`, `Schedule.split` calls it, `test_split.py` tests it.

`loops/`, `compute/`, `memory/`, `layout/` and `sample/` hold them by what they change; `queries.py` holds the
questions. A step is a function `(view, arguments) → Step`; a query gives results and changes nothing; a sample also
takes the random numbers and gives its decision. `PRIMITIVES` is the list of them: adding one adds a row, a file and a
thin method of `Schedule` (in `engine/methods/`). Handles among the arguments arrive as the nodes they stand for (a loop
as its `For`, a block as its `BlockRealize`). Start with `loops/split.py`.
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
    folder: str = ""  # beside this file; none for the queries
    file: str = ""  # where it is not the method's own
    name: str = ""  # of the method, where it does not follow from the kind: RFactor → rfactor
    takes_marks: bool = False  # a loop may be the mark of the root or of inlining
    may_guess: bool = False  # takes `is_owed`: whether the proof comes afterwards, for all steps together
    is_users: bool = False  # registered by a user: proved whatever it claims
    is_composite: bool = False  # a function of a schedule, which does steps
    given: Callable[..., Any] | None = None  # the function itself, of a user's step

    @cached_property
    def required(self) -> frozenset[str]:
        """The arguments that have no default."""
        parameters = inspect.signature(self.function).parameters.values()
        return frozenset([item.name for item in parameters if item.default is item.empty])

    @cached_property
    def hints(self) -> Mapping[str, object]:
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
        module = importlib.import_module(".".join(filter(None, (__name__, self.folder, self.file or self.method))))
        result: Callable[..., Any] = getattr(module, self.method)
        return result


def _row(folder: str, kind: str, inputs: str = "", attrs: str = "", **options: Any) -> Primitive:
    return Primitive(kind, tuple(inputs.split()), tuple(attrs.split()), folder=folder, **options)


def _query(kind: str, inputs: str = "", attrs: str = "", gives_list: bool = False) -> Primitive:
    return _row("", kind, inputs, attrs, gives_list=gives_list, is_query=True, file="queries")


def _sample(kind: str, inputs: str, attrs: str = "", file: str = "sampling", **options: Any) -> Primitive:
    return _row("sample", kind, inputs, attrs, is_sample=True, file=file, **options)


PRIMITIVES: Final[dict[str, Primitive]] = {
    row.kind: row
    for row in (
        # questions
        _query("GetBlock", "", "name func_name"),
        _query("GetLoops", "block", gives_list=True),
        _query("GetChildBlocks", "block_or_loop", gives_list=True),
        _query("GetProducers", "block", gives_list=True),
        _query("GetConsumers", "block", gives_list=True),
        _query("GetOutputBlocks", "scope_block", gives_list=True),
        # loops
        _row("loops", "Split", "loop factors", "preserve_unit_iters tail"),
        _row("loops", "Fuse", "loops", "preserve_unit_iters"),
        _row("loops", "Reorder", "ordered_loops"),
        _row("loops", "Merge", "loops"),
        _row("loops", "Fission", "loop", "index"),
        _row("loops", "AddUnitLoop", "block_or_loop"),
        _row("loops", "Specialize", "loops", "condition", gives_list=True),
        _row("loops", "Parallel", "loop"),
        _row("loops", "Vectorize", "loop"),
        _row("loops", "Unroll", "loop"),
        _row("loops", "Bind", "loop", "thread_axis"),
        _row("loops", "AddThreadLoop", "loop", "thread_axis extent"),
        # moving computation
        _row("compute", "ComputeAt", "block loop", "preserve_unit_loops index", takes_marks=True),
        _row("compute", "ReverseComputeAt", "block loop", "preserve_unit_loops index", takes_marks=True),
        _row("compute", "ComputeInline", "block"),
        _row("compute", "ReverseComputeInline", "block"),
        _row("compute", "DecomposeReduction", "block loop"),
        _row("compute", "RFactor", "loop", "factor_axis", name="rfactor"),
        _row("compute", "Winograd", "block", "tile", gives_list=True),
        _row("compute", "Blockize", "target", "preserve_unit_iters"),
        _row("compute", "Tensorize", "block_or_loop", "tensor_intrin preserve_unit_iters"),
        # memory
        _row("memory", "CacheRead", "block consumer_blocks", "read_buffer_index storage_scope load"),
        _row("memory", "CacheWrite", "block consumer_blocks", "write_buffer_index storage_scope"),
        _row("memory", "Stage", "block loop", "buffer storage_scope layout"),
        _row("layout", "TransformLayout", "block", "buffer index_map pad_value"),
        _row("memory", "SetScope", "block", "buffer_index storage_scope"),
        _row("layout", "StorageAlign", "block", "buffer_index axis factor offset"),
        _row("memory", "LiftAlloc", "block", "buffer levels"),
        _row("memory", "SinkAlloc", "block", "buffer", may_guess=True),
        _row("memory", "Prefetch", "block loop", "buffer distance levels lines"),
        # copies by axes, at a loop, of indices; circular and shared buffers
        _row("memory", "ReIndex", "block", "buffer", name="reindex"),
        _row("memory", "ReindexCacheRead", "block", "read_buffer_index storage_scope index_map"),
        _row("memory", "ReindexCacheWrite", "block", "write_buffer_index storage_scope index_map"),
        _row("memory", "CacheInplace", "block", "read_buffer_index storage_scope", gives_list=True),
        _row("memory", "CacheIndex", "block", "storage_scope cse_thresh", gives_list=True),
        _row("memory", "ReadAt", "loop block", "read_buffer_index storage_scope"),
        _row("memory", "WriteAt", "loop block", "write_buffer_index storage_scope", file="read_at"),
        _row("memory", "RollingBuffer", "block", "write_buffer_index size"),
        _row("memory", "ReuseBuffer", "block", "buffer other"),
        # axes
        _row("compute", "ReorderBlockIterVar", "block", "new_order"),
        _row("layout", "TransformBlockLayout", "block", "index_map"),
        _row("loops", "UnrollAndJam", "loop", "factor", gives_list=True),
        _row("loops", "Skew", "loop outer", "factor modulus"),
        # padding and guards
        _row("compute", "DecomposePadding", "block loop"),
        _row("compute", "PadEinsum", "block", "padding"),
        _row("compute", "ExpandProduct", "block", "types"),
        _row("compute", "AddGuard", "block", "condition"),
        _row("compute", "RemoveGuard", "block", "index", file="add_guard"),
        # storage
        _row("layout", "SetAxisSeparator", "block", "buffer axis_separators"),
        _row("memory", "UnsafeSetDType", "block", "buffer_index dtype", name="unsafe_set_dtype"),
        _row("memory", "UnsafeHideBufferAccess", "block", "buf_type buf_index_array"),
        # notes
        _row("compute", "Annotate", "block_or_loop", "ann_key ann_val", file="annotate"),
        _row("compute", "Unannotate", "block_or_loop", "ann_key", file="annotate"),
        _query("EnterPostproc"),
        # samples
        _sample("SamplePerfectTile", "loop", "n max_innermost_factor", gives_list=True),
        _sample("SampleCategorical", "", "candidates probs"),
        _sample("SamplePartitionedTile", "loop", "n partition_pos innerpart_factor", gives_list=True),
        _sample("SampleComputeLocation", "block", file="sample_compute_location", may_guess=True),
    )
}
