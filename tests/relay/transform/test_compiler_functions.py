"""Functions for other compilers: out of the graph, marked as linked, back into it."""

from __future__ import annotations

import pytest

from loopwright import relay
from loopwright.relay.transform import (
    InlineCompilerFunctionsBoundTo,
    MarkCompilerFunctionsAsExtern,
    OutlineCompilerFunctionsWithExistingGlobalSymbols,
)

_HEAD = '#[version = "0.0.5"]\n'
_GRAPH = """
def @main(%x: Tensor[(2), float32]) -> Tensor[(2), float32] {
  BIND fn (%y: Tensor[(2), float32], Compiler="mine", global_symbol="mine_0") -> Tensor[(2), float32] {
    %1 = fn (%z: Tensor[(2), float32], Composite="mine.exp") -> Tensor[(2), float32] { exp(%z) };
    %1(%y)
  };
  USE(%x)
}
"""


@pytest.mark.parametrize("bind, use", [("%0 =", "%0"), ("let %f =", "%f")])
def test_out_and_back(bind, use):
    mod = relay.fromtext(_HEAD + _GRAPH.replace("BIND", bind).replace("USE", use))
    assert len(OutlineCompilerFunctionsWithExistingGlobalSymbols("other")(mod).get_global_vars()) == 1
    outlined = OutlineCompilerFunctionsWithExistingGlobalSymbols("mine")(mod)
    assert "@mine_0(%x)" in str(outlined["main"]) and outlined["mine_0"].attrs["Compiler"] == "mine"
    extern = MarkCompilerFunctionsAsExtern()(outlined)
    assert extern["mine_0"].attrs == {"Extern": 1} and "Compiler" in outlined["mine_0"].attrs
    inlined = InlineCompilerFunctionsBoundTo([outlined.get_global_var("mine_0")])(outlined)
    assert inlined.get_global_vars() == [mod.get_global_var("main")]
    assert inlined["main"].body.op.name == "exp"
