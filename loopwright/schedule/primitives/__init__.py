"""The primitives, one file each: `split.py` holds `split`, `Schedule.split` calls it, `test_split.py` tests it.

A step is a function `(view, arguments) → Step`; a query gives results and changes nothing; a sample also takes the
random numbers and gives its decision. `PRIMITIVES` is the list of them: adding one adds a row, a file and a thin method
of `Schedule`. Handles among the arguments arrive as the nodes they stand for (a loop as its `For`, a block as its
`BlockRealize`). Start with `split.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final


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

    @cached_property
    def method(self) -> str:
        """The name of the method and of the function: CacheRead → cache_read."""
        return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in self.kind).lstrip("_")

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The primitive itself, loaded when first used."""
        module = importlib.import_module(f"loopwright.schedule.primitives.{self.file or self.method}")
        found: Callable[..., Any] = getattr(module, self.method)
        return found


def _row(kind: str, inputs: str = "", attrs: str = "", **options: Any) -> Primitive:
    return Primitive(kind, tuple(inputs.split()), tuple(attrs.split()), **options)


PRIMITIVES: Final = {
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
        _row("Parallel", "loop", file="loop_kinds"),
        _row("Vectorize", "loop", file="loop_kinds"),
        _row("Unroll", "loop", file="loop_kinds"),
        _row("Bind", "loop", "thread_axis", file="loop_kinds"),
        # moving computation
        _row("ComputeAt", "block loop", "preserve_unit_loops index"),
        _row("ReverseComputeAt", "block loop", "preserve_unit_loops index"),
        _row("ComputeInline", "block"),
        _row("ReverseComputeInline", "block"),
        _row("DecomposeReduction", "block loop"),
        # memory
        _row("CacheRead", "block consumer_blocks", "read_buffer_index storage_scope"),
        _row("CacheWrite", "block consumer_blocks", "write_buffer_index storage_scope"),
        _row("Stage", "block loop", "buffer storage_scope layout"),
        _row("TransformLayout", "block", "buffer index_map pad_value"),
        _row("SetScope", "block", "buffer_index storage_scope"),
        _row("StorageAlign", "block", "buffer_index axis factor offset"),
        _row("LiftAlloc", "block", "buffer levels"),
        _row("SinkAlloc", "block", "buffer"),
        _row("Prefetch", "block loop", "buffer distance"),
        # notes
        _row("Annotate", "block_or_loop", "ann_key ann_val", file="annotate"),
        _row("Unannotate", "block_or_loop", "ann_key", file="annotate"),
        # samples
        _row("SamplePerfectTile", "loop", "n max_innermost_factor", is_sample=True, gives_list=True, file="sampling"),
        _row("SampleCategorical", "", "candidates probs", is_sample=True, file="sampling"),
    )
}
