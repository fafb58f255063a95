"""direct_call: a call of a compiled module on tensors of torch as they are; see `model/direct_call.py`.

The compiled function takes tensors through DLPack, and its outputs are tensors from the start: nothing passes through
numpy, and structures are taken apart only where the module has some.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopwright.frontends.pytorch.convert import Imported
from loopwright.frontends.pytorch.element_types import torch_dtype
from loopwright.model.direct_call import DirectCall

if TYPE_CHECKING:
    from loopwright.relay.built import BuiltModule


def direct_call(library: BuiltModule | None, imported: Imported) -> DirectCall | None:
    """The call for arguments that are tensors, all of them by position; None for a module that takes or gives more."""
    import torch
    from torch.utils import _pytree

    given = imported.program.call_spec.in_spec
    in_a_row = _pytree.tree_flatten((tuple(range(len(imported.inputs))), {}))[1]
    if library is None or given != in_a_row or None in imported.inputs or any(imported.outputs):
        return None
    call = library.direct_call_with(
        lambda shape, dtype: torch.empty(shape, dtype=dtype), lambda dtype: torch_dtype(str(dtype))
    )
    tensor = torch.Tensor

    def checked(*args: Any) -> Any:
        for arg in args:
            # Subclasses compute in their own way; a view that is negated when it is read has the numbers unnegated.
            if type(arg) is not tensor or arg.is_neg():
                return None
        return call(*args)

    return checked
