"""Tensor intrinsics: computations that a machine has instructions for, and programs that use them.

`registry.py` holds them (`TensorIntrin`), `match.py` says whether a block is one,
`transform/passes/use_tensor_intrinsics.py` puts the instructions in when a program is lowered. Those of the machines we
know have a file each: `x86_vnni.py`, `x86_amx.py`, `neon.py`; `check.py` tries them on numbers. Start with
`x86_vnni.py`.
"""

from loopwright.transform.tensor_intrinsics.match import Differs, Match, Pairing, match_intrinsic, pair_accesses
from loopwright.transform.tensor_intrinsics.registry import (
    BadIntrinsic,
    IntrinsicExists,
    TensorIntrin,
    UnknownIntrinsic,
    built_in_names,
)

__all__ = [
    "BadIntrinsic",
    "Differs",
    "IntrinsicExists",
    "Match",
    "Pairing",
    "TensorIntrin",
    "UnknownIntrinsic",
    "built_in_names",
    "match_intrinsic",
    "pair_accesses",
]
