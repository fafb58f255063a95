"""extract_constants: the module lists the constant arrays that its functions hold.

    with T.allocate_const([1, 2], "int32", [2]) as K: …    →    mod.attrs["constants"] == [array([1, 2])]

Arrays of equal contents are listed once; an allocation notes its place in the list under `irmod_storage_idx`. It keeps
its values as well, so a function still means the same alone.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from loopwright.ir import AllocateConst, GlobalVar, IRModule, PrimFunc, Stmt, deep
from loopwright.ir.pass_context import PassContext
from loopwright.ir.pass_decorators import module_pass
from loopwright.transform.parts.statements import StmtRewriter

PLACE: Final = "irmod_storage_idx"


class _Extract(StmtRewriter):
    def __init__(self, constants: list[np.ndarray]) -> None:
        self.constants = constants
        self.places = {_key(array): index for index, array in enumerate(constants)}

    def visit_AllocateConst(self, node: AllocateConst) -> Stmt:
        node = self.rebuild(node)
        array = np.asarray(node.data)
        key = _key(array)
        if key not in self.places:
            self.places[key] = len(self.constants)
            self.constants.append(array)
        location = self.places[key]
        if node.annotations.get(PLACE) == location:
            return node
        return node.with_(annotations={**node.annotations, PLACE: location})


def _key(array: np.ndarray) -> tuple[str, tuple[int, ...], bytes]:
    return str(array.dtype), array.shape, array.tobytes()


@module_pass(opt_level=0, name="extract_constants")
@deep
def extract_constants(mod: IRModule, context: PassContext) -> IRModule:
    """The module lists the constant arrays that its functions hold."""
    known: Any = mod.attrs.get("constants", ()) if mod.attrs else ()
    extract = _Extract(list(known))
    functions: dict[str | GlobalVar, PrimFunc] = {}
    for var, func in mod.functions.items():
        functions[var] = func.with_(body=extract.visit(func.body))
    if not extract.constants:
        return mod
    return IRModule(functions, attrs={**(mod.attrs or {}), "constants": extract.constants})
