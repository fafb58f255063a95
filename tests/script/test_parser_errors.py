"""What the parser says about wrong scripts: the message, the user's own line, and a caret under the culprit."""

from __future__ import annotations

import warnings

import pytest

from loopwright.ir import WrongIndexCount
from loopwright.ir.expr import OperandMismatch
from loopwright.runtime.errors import DiagnosticError
from loopwright.script import from_source
from loopwright.script import ir as I
from loopwright.script import tir as T
from loopwright.script.parser import errors as e

HEAD = "@T.prim_func\ndef f(A: T.Buffer((8, 8)), B: T.Buffer((8,), 'int32'), n: T.int32):\n"


def failure(body: str, head: str = HEAD) -> DiagnosticError:
    """The error of a script; its marked line and carets are checked against `«…»` in `body`."""
    lines = body.strip("\n").splitlines()
    number, marked = next((k, line) for k, line in enumerate(lines) if "«" in line)
    start = marked.index("«")
    end = marked.index("»") - 1
    lines[number] = marked.replace("«", "").replace("»", "")
    text = head + "\n".join("    " + line for line in lines)
    with pytest.raises(DiagnosticError) as caught:
        from_source(text)
    error = caught.value
    message = str(error).splitlines()
    line = head.count("\n") + number + 1
    assert f"  at <script>:{line}:{start + 5}" in message, str(error)
    shown = message.index("  >     " + lines[number])
    assert message[shown + 1] == " " * (8 + start) + "^" * (end - start), str(error)
    return error


CASES = [
    # undefined names and attributes
    ("A[0, 0] = «Aa»[0, 1]", e.UndefinedName, "name 'Aa' is not defined [LW0303]"),
    ("lenght = n\nA[0, 0] = T.Cast('float32', «lenghth»)", e.UndefinedName, "did you mean 'lenght'?"),
    ("for i in range(8):\n    x = i\nB[0] = «x»", e.UndefinedName, "name 'x' is not defined"),
    ("B[0] = sum([k + «q» for k in range(2)])", e.UndefinedName, "name 'q' is not defined"),
    ("for i in «T.seriall»(8):\n    pass", e.UnknownAttribute, "T has no attribute 'seriall'"),
    ("for i in «T.seriall»(8):\n    pass", e.UnknownAttribute, "did you mean 'serial'?"),
    ("B[0] = «B.sape»", e.UnknownAttribute, "did you mean 'shape'?"),
    # expressions
    ("B[0] = «n / 2»", e.ExpressionFailed, "operator / is not defined for int32 and int32"),
    ("B[0] = «n // 0»", e.ExpressionFailed, "the divisor is the literal 0"),
    ("B[0] = n + «T.Add(n, T.int64(1))»", e.ExpressionFailed, "Add: operands have different types, int32 and int64"),
    ("B[0] = «T.int8(300)»", e.ExpressionFailed, "literal 300 does not fit int8, which holds -128 to 127"),
    ("B[0] = «n << 40»", e.ExpressionFailed, "the shift by 40 leaves 0 to 31"),
    ("x = «T.call_intrin('int32', 'tir.expp', n)»", e.ExpressionFailed, "no operator is called 'tir.expp'"),
    ("B[0] = «T.exp()»", e.ExpressionFailed, "TypeError: "),
    ("B[0] = «[1, 2][5]»", e.ExpressionFailed, "IndexError: list index out of range"),
    ("x = «T.match_bufer»", e.UnknownAttribute, "did you mean 'match_buffer'?"),
    # indices
    ("A[0, 0] = «A[0]»", e.RankMismatch, "A has 2 dimensions, but 1 index was given"),
    ("A[0, 0] = «A[0]»", e.RankMismatch, "hint: write A[i, j]"),
    ("«B[0, n]» = 1", e.RankMismatch, "B has 1 dimension, but 2 indices were given"),
    ("B[0] = «B[1.5]»", e.BadValueType, "index 0 of B must be an integer, got float32"),
    ("B[0] = «B[0:n]» + 1", e.BadValueType, "a slice of B that is used as a vector needs a constant length"),
    ("B[0] = «B[0:4]»", e.BadValueType, "a vector of 4 lanes cannot be stored where 1 lane of B is addressed"),
    ("B[0:4] = «B[0:2]»", e.BadValueType, "a vector of 2 lanes cannot be stored where 4 lanes of B are addressed"),
    # statements without meaning
    ("«return»", e.UnsupportedStatement, "return without a value, or in a macro, cannot be used in a script"),
    ("«return A»", e.NotAStatement, ""),
    ("«del n»", e.UnsupportedStatement, "del cannot be used in a script"),
    ("«x = y = n»", e.UnsupportedStatement, "a chained assignment cannot be used in a script"),
    ("«import numpy»", e.UnsupportedStatement, "import cannot be used in a script"),
    ("for i in range(8):\n    «break»", e.UnsupportedStatement, "break cannot be used in a script"),
    ("for i in range(8):\n    pass\nelse:\n    «pass»", e.UnsupportedStatement, "else after for"),
    ("«n.x» = 1", e.UnsupportedStatement, "assignment to an attribute"),
    ("«[1, 2]»", e.NotAStatement, "list [1, 2] is not a statement"),
    ("«A»", e.NotAStatement, "is not a statement"),
    # names
    ("x = n\n«x» = n + 1", e.Rebinding, "name 'x' is already defined in this scope, in line 3"),
    ("x = n\n«x» += 1", e.Rebinding, "name 'x' is already defined"),
    ("«x, y» = n", e.WrongTargets, "cannot be unpacked"),
    ("«x, y» = (1, 2, 3)", e.WrongTargets, "3 values for 2 names"),
    # loops
    ("for i in «[1, 2]»:\n    pass", e.WrongIterator, "a for loop cannot run over list [1, 2]"),
    (
        "for i in «range(0, 8, 2)»:\n    pass",
        e.WrongIterator,
        "range takes an extent, or begin and end, got 3 arguments",
    ),
    ("for i in «T.serial(2.5)»:\n    pass", e.BadValueType, "the extent of a loop must be an integer, got float32"),
    (
        "for «i, j» in T.grid(2, 2, 2):\n    pass",
        e.WrongTargets,
        "T.grid makes 3 loops, but there are 2 names for them",
    ),
    ("for «i, j» in range(8):\n    pass", e.WrongTargets, "the variable of a loop must be one name"),
    ("for i in «T.thread_binding(8)»:\n    pass", e.ExpressionFailed, "say which threads"),
    # blocks
    (
        "«T.reads(A[0, 0])»",
        e.Misplaced,
        "T.reads belongs directly inside a block, but stands directly inside the function",
    ),
    ("v = «T.axis.spatial(8, n)»", e.Misplaced, "T.axis.spatial belongs directly inside a block"),
    ("for i in range(8):\n    «T.where(i < 3)»", e.Misplaced, "but stands inside a loop"),
    ("with T.block('b'):\n    if n > 0:\n        «T.writes(B[0])»", e.Misplaced, "but stands inside an if"),
    ("with T.block('b'):\n    T.reads()\n    «T.reads(B[0])»", e.DuplicateInBlock, "block 'b' already has T.reads"),
    (
        "with T.block('b'):\n    T.where(True)\n    «T.where(n > 0)»",
        e.DuplicateInBlock,
        "block 'b' already has T.where",
    ),
    (
        "with T.block('b'):\n    T.block_attr({})\n    «T.block_attr({})»",
        e.DuplicateInBlock,
        "already has T.block_attr",
    ),
    ("with T.block('b') as «v»:\n    pass", e.WrongTargets, "this scope gives no value for `as`"),
    ("with T.block('b'):\n    v = «T.axis.S(8, 1.5)»", e.BadAxis, "axis v is bound to a float32 value"),
    ("with T.block('b'):\n    v = «T.axis.remap('S', [n])»", e.BadAxis, "binding 0 is"),
    (
        "for i in range(8):\n    with T.block('b'):\n        v = «T.axis.remap('X', [i])»",
        e.BadAxis,
        "T.axis.remap: 'X' does not only hold S and R",
    ),
    (
        "for i in range(8):\n    with T.block('b'):\n        v = «T.axis.remap('SS', [i])»",
        e.BadAxis,
        "T.axis.remap: 2 kinds for 1 loops",
    ),
    (
        "for i in range(8):\n    with T.block('b'):\n        a, b = «T.axis.remap('S', [i])»",
        e.BadAxis,
        "T.axis.remap: 1 axes for 2 names",
    ),
    (
        "for i in range(8):\n    with T.block('b'):\n        v = T.axis.S(8, i)\n        «T.where(v < 3)»",
        e.BadAxis,
        "T.where uses an axis of block 'b' itself",
    ),
    (
        "for i in range(8):\n    with T.block('b'):\n        v = T.axis.S(8, i)\n        w = «T.axis.S(8, v + 1)»",
        e.BadAxis,
        "the binding of axis w uses an axis of block 'b' itself",
    ),
    ("with T.block('b'):\n    «T.reads(A)»", e.BadValueType, "T.reads takes regions of buffers, got"),
    ("with «n»:\n    pass", e.NotAScope, "a with statement cannot open"),
    # buffers, threads, attributes
    (
        "for i in range(8):\n    C = «T.alloc_buffer((8,))»",
        e.Misplaced,
        "T.alloc_buffer belongs inside a block or directly",
    ),
    ("C = «T.match_buffer(n, (8,))»", e.BadMatch, "parameter n is int32, not a handle"),
    (
        "C = «T.match_buffer(A[0, 0:8], (8,))»",
        e.Misplaced,
        "T.match_buffer of a region belongs directly inside a block",
    ),
    ("C = «T.alloc_buffer((8,), 'flaot32')»", e.ExpressionFailed, "unknown data type 'flaot32'"),
    ("with «T.launch_thread(n, 8)»:\n    pass", e.BadThread, "n is not a thread axis"),
    ("T.func_attr({})\n«T.func_attr({})»", e.DuplicateInBlock, "function 'f' already has T.func_attr"),
    ("for i in range(8):\n    «T.func_attr({})»", e.Misplaced, "T.func_attr belongs directly inside the function"),
    ("«T.func_attr(3)»", e.BadAttributes, "T.func_attr takes a dictionary with text keys, got int 3"),
    ("x: T.int64 = «n»", e.BadValueType, "x is annotated as int64, but its value is int32"),
    ("x: «3» = n", e.BadValueType, "int 3 is not a type"),
]


@pytest.mark.parametrize(("body", "kind", "text"), CASES, ids=[case[0][:40] for case in CASES])
def test_errors_mark_the_place(body, kind, text):
    error = failure(body)
    assert type(error) is kind, str(error)
    assert text in str(error)


def test_init_errors():
    error = failure("«with T.init():»\n    A[0, 0] = 1.0")
    assert "T.init belongs directly inside a block, but stands directly inside the function" in str(error)
    body = "with T.block('b'):\n    with T.init():\n        B[0] = 0\n    «with T.init():»\n        B[0] = 1"
    assert "block 'b' already has T.init" in str(failure(body))


def test_opaque_access_needs_regions():
    body = "«with T.block('b'):»\n    v = T.axis.spatial(1, 0)\n    T.call_extern('int32', 'f', A.data)"
    error = failure(body)
    assert "what block 'b' reads and writes cannot be inferred: it uses the pointer A directly" in str(error)
    assert "T.reads(...) and T.writes(...)" in str(error)


def test_the_whole_message():
    with pytest.raises(e.UndefinedName) as caught:
        from_source(HEAD + "    for i in range(8):\n        B[i] = B[i] + nn")
    assert str(caught.value) == (
        "name 'nn' is not defined [LW0303]\n"
        "  at <script>:4:23\n"
        "  >         B[i] = B[i] + nn\n"
        "                          ^^\n"
        "  hint: did you mean 'n'?"
    )


def test_errors_in_decorated_functions_point_into_the_file():
    with pytest.raises(e.UndefinedName) as caught:

        @T.prim_func
        def func(A: T.Buffer(4)):
            A[0] = missing

    first = test_errors_in_decorated_functions_point_into_the_file.__code__.co_firstlineno
    message = str(caught.value).splitlines()
    assert message[1] == f"  at {__file__}:{first + 5}:20"
    assert message[2] == "  >             A[0] = missing"
    assert message[3] == "                       ^^^^^^^"


def test_columns_count_characters_not_bytes():
    with pytest.raises(e.UndefinedName) as caught:
        from_source("@T.prim_func\ndef f(n: T.int32):\n    T.evaluate('αβγ' == missing)")
    assert str(caught.value).splitlines()[3] == " " * (4 + 24) + "^" * 7


def test_the_original_error_is_the_cause():
    with pytest.raises(e.ExpressionFailed) as caught:
        from_source(HEAD + "    B[0] = T.Add(n, T.int64(1))")
    assert isinstance(caught.value.__cause__, OperandMismatch)
    with pytest.raises(ValueError, match="A has 2 dimensions") as caught:
        from_source(HEAD + "    B[0] = T.Cast('int32', A[1])")
    assert isinstance(caught.value.__cause__, WrongIndexCount)


def test_helper_functions_that_fail_are_reported_at_their_call():
    def helper(value):
        raise KeyError("no such table")

    with pytest.raises(e.ExpressionFailed, match="KeyError: 'no such table'") as caught:

        @T.prim_func
        def func(A: T.Buffer(4)):
            A[0] = helper(A[1])

    assert isinstance(caught.value.__cause__, KeyError)


def test_parameters():
    with pytest.raises(e.MissingAnnotation, match="parameter 'A' has no annotation"):
        from_source("@T.prim_func\ndef f(A):\n    pass")
    with pytest.raises(e.BadParameter, match="parameter 'rest' must be an ordinary one"):
        from_source("@T.prim_func\ndef f(*rest: T.handle):\n    pass")
    with pytest.raises(e.BadParameter, match="parameters have no default values"):
        from_source("@T.prim_func\ndef f(n: T.int32 = 3):\n    pass")
    with pytest.raises(e.BadValueType, match="int 5 is not a type"):
        from_source("@T.prim_func\ndef f(n: 5):\n    pass")


def test_matches():
    head = "@T.prim_func\ndef f(a: T.handle, b: T.handle):\n"
    error = failure("A = T.match_buffer(a, (4,))\nC = «T.match_buffer(a, (4,))»", head)
    assert "parameter a is matched to a buffer already" in str(error)
    assert "needs a shape" in str(failure("A = «T.match_buffer(a)»", head))
    error = failure("c = T.handle()\nA = «T.match_buffer(c, (4,))»", head)
    assert "c is not a parameter of the function" in str(error)
    error = failure("for i in range(4):\n    A = «T.match_buffer(a, (4,))»", head)
    assert "T.match_buffer of a parameter belongs directly inside the function, but stands inside a loop" in str(error)


def test_threads_launched_twice_have_one_extent():
    body = "t = T.env_thread('threadIdx.x')\nwith T.launch_thread(t, 8):\n    pass\n"
    body += "with «T.launch_thread(t, 4)»:\n    pass"
    assert "thread axis t is launched with 4 threads after 8" in str(failure(body))


def test_private_functions_cannot_have_a_symbol():
    with pytest.raises(e.BadAttributes, match="function 'f' is private, but has the global symbol 'g'"):
        from_source("@T.prim_func(private=True)\ndef f():\n    T.func_attr({'global_symbol': 'g'})")


def test_syntax_errors_point_at_the_text():
    with pytest.raises(e.InvalidSyntax) as caught:
        from_source("@T.prim_func\ndef f(n: T.int32):\n    for i range(8):\n        pass")
    assert "  at <script>:3:11\n  >     for i range(8):\n              ^" in str(caught.value)


def test_decorators_on_other_things():
    with pytest.raises(TypeError, match=r"@T\.prim_func expects a function, got int"):
        T.prim_func(3)
    with pytest.raises(TypeError, match=r"@I\.ir_module expects a class, got str"):
        I.ir_module("text")
    with pytest.raises(TypeError, match="from_source expects a text, a function or a class, got float"):
        from_source(2.5)


def test_source_that_is_nowhere():
    space = {"T": T}
    with pytest.raises(e.NoSource, match="the source of function 'f' cannot be found in <string>"):
        exec("@T.prim_func\ndef f(n: T.int32):\n    pass", space)


def test_modules():
    with pytest.raises(e.BadModule, match="module 'M' already has a function 'f'"):
        from_source("@I.ir_module\nclass M:\n    @T.prim_func\n    def f(): pass\n    @T.prim_func\n    def f(): pass")
    with pytest.raises(e.UnknownAttribute, match="M has no attribute 'gg'") as caught:
        from_source(
            "@I.ir_module\nclass M:\n    @T.prim_func\n    def g(): pass\n"
            "    @T.prim_func\n    def f():\n        M.gg()"
        )
    assert "did you mean 'g'?" in str(caught.value)
    with pytest.raises(e.BadModule, match=r"a module holds functions and I\.module_attrs"):
        from_source("@I.ir_module\nclass M:\n    x = 3")
    with pytest.raises(e.BadModule, match="function 'f' has no decorator"):
        from_source("@I.ir_module\nclass M:\n    def f(): pass")
    with pytest.raises(e.BadModule, match="the text defines no function and no class"):
        from_source("# nothing")


def test_lossy_stores_warn_at_the_users_line():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")

        @T.prim_func
        def func(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "float32")):
            A[0] = B[0]

    first = test_lossy_stores_warn_at_the_users_line.__code__.co_firstlineno
    assert [(w.category, w.lineno, w.filename) for w in caught] == [(e.LossyStore, first + 6, __file__)]
    assert "a float32 value is stored in A, which holds int32" in str(caught[0].message)
