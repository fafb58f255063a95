"""statement_passes: small passes that put attributes around statements or take them apart, by the names of scripts."""

from __future__ import annotations

from loopwright.compat.passes.named_pass import named_pass
from loopwright.ir import AttrStmt, PrimFunc, SeqStmt, Stmt, const, structural_equal
from loopwright.ir.passes import Pass
from loopwright.transform.on_request.make_blocks_opaque import make_blocks_opaque
from loopwright.transform.parts.statements import StmtRewriter


@named_pass("DecorateDeviceScope")
def decorate_device_scope(func: PrimFunc) -> PrimFunc:
    """The whole body runs on the device."""
    return func.with_(body=AttrStmt(const(0), "device_scope", const(0), func.body))


class _Lift(StmtRewriter):
    """Statements in a row under equal attributes share one."""

    def __init__(self, key: str) -> None:
        self.key = key

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        result: list[Stmt] = []
        for part in node.seq:
            statement = self.visit(part)
            last = result[-1] if result else None
            if self._has_key(statement) and last is not None and self._has_key(last) and _is_same(last, statement):
                inner = (*_parts(last.body), *_parts(statement.body))  # type: ignore[attr-defined]
                result[-1] = last.with_(body=SeqStmt(inner))
            else:
                result.append(statement)
        return result[0] if len(result) == 1 else node.with_(seq=tuple(result))

    def _has_key(self, statement: Stmt) -> bool:
        return isinstance(statement, AttrStmt) and statement.attr_key == self.key


def _is_same(a: Stmt, b: Stmt) -> bool:
    assert isinstance(a, AttrStmt) and isinstance(b, AttrStmt)
    about = a.node is b.node or (hasattr(a.node, "var") and getattr(b.node, "var", None) is a.node.var)
    return about and structural_equal(a.value, b.value)


def _parts(statement: Stmt) -> tuple[Stmt, ...]:
    return statement.seq if isinstance(statement, SeqStmt) else (statement,)


def lift_attr_scope(attr_key: str) -> Pass:
    """A pass after which statements in a row under equal attributes of that key share one."""

    @named_pass("LiftAttrScope")
    def run(func: PrimFunc) -> PrimFunc:
        return func.with_(body=_Lift(attr_key).visit(func.body))

    return run


@named_pass("ConvertBlocksToOpaque", skips_te=True)
def convert_blocks_to_opaque(func: PrimFunc) -> PrimFunc:
    """A block's axes are replaced by what they are bound to."""
    result: PrimFunc = make_blocks_opaque.__wrapped__(func)  # type: ignore[attr-defined]  # the function of the pass
    return result


@named_pass("LiftThreadBinding")
def lift_thread_binding(func: PrimFunc) -> PrimFunc:
    """Bound loops stay where they are: `unify_thread_bindings` moves them around their kernel."""
    return func


@named_pass("PointerValueTypeRewrite")
def pointer_value_type_rewrite(func: PrimFunc) -> PrimFunc:
    """Pointers keep the types of their elements: vectors are loaded from them as they are."""
    return func


@named_pass("InstallDebugSpans")
def install_debug_spans(func: PrimFunc) -> PrimFunc:
    """Statements keep the places in the source that they have."""
    return func
