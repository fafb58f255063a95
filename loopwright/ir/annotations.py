"""Annotations: notes on functions, blocks and loops that mean something to more than one layer."""

from __future__ import annotations

from typing import Final

ASSUMED_SIZES: Final = "loopwright.assumed_sizes"  # of a function: conditions on sizes that every caller has checked
# Of a function: names of arguments whose elements are indices that every caller has checked.
CHECKED_INDICES: Final = "loopwright.checked_indices"
CONSTANT_PARAMS: Final = "constant_params"  # of a kernel: positions of parameters whose content never changes
IMPORTS: Final = "loopwright.llvm_imports"  # of a function: LLVM texts that define functions it calls (call_extern)
IMPORT_LLVM: Final = "pragma_import_llvm"  # of a loop or block: such a text, or the path of a .ll or .bc file
# Of a kernel: the axes whose extents a call passes after the parameters, in order. The name is that of TVM.
LAUNCH_PARAMS: Final = "tir.kernel_launch_params"
ONCE_SCOPE: Final = "coproc_uop_scope"  # around what is to run in the first call of the module alone, if it is ONCE
ONCE: Final = "TVMBackendRunOnce"
# Of a block that is reduced over threads: {tag: number} of the one that stores the result, which they all have.
STORED_BY: Final = "loopwright.stored_by"
TENSORIZED: Final = "tensor_intrin"  # names the tensor intrinsic that computes the block
TOUCHED: Final = "touched_regions"  # what the calls in a statement do through pointers (`ir/matrix_intrinsics.py`)
UNPROVED_ACCESSES: Final = "loopwright.unproved_accesses"  # of a function: lowering writes checks of some indices
VECTOR_LANES: Final = "vector_lanes"  # a vectorized loop that is longer than this runs in vectors of so many lanes
# Of an unrolled loop: it is written out before loops are cut, so that guards inside compare with numbers.
WRITTEN_OUT_FIRST: Final = "written_out_first"
