"""tvm.script.printer.doc: programs as objects, and their text."""

from __future__ import annotations

import ast

import pytest

from loopwright.compat.script_doc import (
    AssignDoc,
    BadDoc,
    CallDoc,
    ClassDoc,
    DictDoc,
    ExprStmtDoc,
    ForDoc,
    FunctionDoc,
    IdDoc,
    IfDoc,
    LambdaDoc,
    LiteralDoc,
    OperationDoc,
    OperationKind,
    ReturnDoc,
    ScopeDoc,
    SliceDoc,
    StmtBlockDoc,
    TupleDoc,
)
from loopwright.compat.script_doc_printer import to_python_script
from loopwright.runtime import ObjectPath

A, B, C = IdDoc("a"), IdDoc("b"), IdDoc("c")


def op(name, *operands):
    return OperationDoc(OperationKind[name], operands)


@pytest.mark.parametrize(
    ("doc", "text"),
    [
        (op("Mult", op("Add", A, B), C), "(a + b) * c"),
        (op("Sub", A, op("Sub", B, C)), "a - (b - c)"),
        (op("Pow", op("USub", A), op("USub", B)), "(-a) ** -b"),
        (op("Lt", op("Lt", A, B), C), "(a < b) < c"),
        (op("Not", op("And", A, op("Or", B, C))), "not (a and (b or c))"),
        (op("IfThenElse", A, B, op("IfThenElse", C, A, B)), "b if a else (a if c else b)"),
        (LambdaDoc([A], op("Add", A, B)).call(C), "(lambda a: a + b)(c)"),
        (A.attr("x")[SliceDoc(LiteralDoc(1)), B].call(C, key=LiteralDoc("t\n")), 'a.x[1:, b](c, key="t\\n")'),
        (TupleDoc([A, DictDoc({LiteralDoc("k"): LiteralDoc(-0.5)})]), '(a, {"k": -0.5})'),
    ],
)
def test_expressions_have_the_parentheses_they_need(doc, text):
    assert to_python_script(doc) == text
    ast.parse(text)


def test_statements():
    loop = ForDoc(TupleDoc([A, B]), CallDoc(IdDoc("grid"), LiteralDoc(2)), [])
    loop.comment = "two loops"
    result = ReturnDoc(A)
    result.comment = "done"
    function = FunctionDoc(
        IdDoc("f"),
        [AssignDoc(A, LiteralDoc(1), IdDoc("int"))],
        [IdDoc("jit")],
        LiteralDoc(None),
        [loop, IfDoc(A, [], [ExprStmtDoc(B)]), ScopeDoc(C, CallDoc(B), [result])],
    )
    function.comment = "What it does."
    text = to_python_script(ClassDoc(IdDoc("M"), [], [function]))
    assert text == '''
class M:
    @jit
    def f(a: int = 1) -> None:
        """
        What it does.
        """
        # two loops
        for a, b in grid(2):
            pass
        if a:
            pass
        else:
            b
        with b() as c:
            return a  # done
'''.strip()
    ast.parse(text)


def test_what_no_statement_has():
    with pytest.raises(BadDoc, match="AssignDoc: give a value, an annotation, or both"):
        AssignDoc(A, None, None)
    with pytest.raises(BadDoc, match="IfDoc: both branches are empty"):
        IfDoc(A, [], [])
    two_lines = ReturnDoc(A)
    two_lines.comment = "1\n2"
    with pytest.raises(ValueError, match="cannot have newline"):
        to_python_script(two_lines)


def test_the_longest_path_is_underlined():
    root = ObjectPath.root()
    total, part = op("Add", A, B), IdDoc("b")
    total = OperationDoc(OperationKind.Add, [A, part])
    total.source_paths, part.source_paths = [root.attr("value")], [root.attr("value").attr("b")]
    block = StmtBlockDoc([ExprStmtDoc(IdDoc(f"x{k}")) for k in range(3)] + [AssignDoc(C, total)])
    below = to_python_script(block, path_to_underline=[root.attr("value").attr("b").attr("value")], num_context_lines=1)
    assert below == "(... 2 lines skipped ...)\nx2\nc = a + b\n        ^"
    whole = to_python_script(block, path_to_underline=[root.attr("value")], print_line_numbers=True)
    assert whole.splitlines()[-2:] == ["4 c = a + b", "      ^^^^^"]
