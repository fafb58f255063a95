"""collect_imports: LLVM code that a loop or block imports becomes an attribute of the function.

    for i in T.serial(8, annotations={"pragma_import_llvm": text}):    →    for i in range(8):
        B[i] = T.call_extern("float32", "twice", A[i])                          B[i] = T.call_extern(…)

and `text` is one of the function's `loopwright.llvm_imports`. Files are read here.

Needs: nothing.  Leaves: no such pragma.
"""

from __future__ import annotations

from typing import Any

from loopwright.codegen.llvm.imports import imported_by, read_import
from loopwright.ir import AttrStmt, Block, For, PrimFunc, Stmt, deep
from loopwright.ir.annotations import IMPORT_LLVM, IMPORTS
from loopwright.ir.passes import function_pass
from loopwright.ir.structural_plan import plain_value
from loopwright.transform.parts.statements import StmtRewriter


class _CollectImports(StmtRewriter):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def _import(self, value: object) -> None:
        text = read_import(plain_value(value))
        if text not in self.texts:
            self.texts.append(text)

    def _annotated(self, node: Any) -> Any:
        if IMPORT_LLVM in node.annotations:
            self._import(node.annotations[IMPORT_LLVM])
            kept = {key: value for key, value in node.annotations.items() if key != IMPORT_LLVM}
            node = node.with_(annotations=kept)
        return self.rebuild(node)

    def visit_For(self, loop: For) -> Stmt:
        return self._annotated(loop)

    def visit_Block(self, block: Block) -> Block:
        return self._annotated(block)

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key != IMPORT_LLVM:
            return self.rebuild(node)
        self._import(node.value)
        body: Stmt = self.visit(node.body)
        return body


@function_pass
@deep
def collect_imports(func: PrimFunc) -> PrimFunc:
    """LLVM code that a loop or block imports becomes an attribute of the function."""
    found = _CollectImports()
    body = found.visit(func.body)
    if not found.texts:
        return func
    return func.with_(body=body).with_attr(IMPORTS, list(dict.fromkeys([*imported_by(func), *found.texts])))
