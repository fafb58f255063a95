"""What a module keeps between calls: marks of what runs in the first call alone, and static handles."""

import numpy as np
import pytest

import loopwright
from loopwright import tir
from loopwright.runtime import register_func


def marked(value="TVMBackendRunOnce", loops=0):
    A = tir.decl_buffer((4,), "int64", name="A")
    ib = tir.ir_builder.create()
    a = ib.buffer_ptr(A)
    if loops:
        with ib.for_range(0, loops, name="j"):
            ib.scope_attr(tir.const(0), "coproc_uop_scope", tir.StringImm(value))
            a[0] = a[0] + 1
    else:
        ib.scope_attr(tir.const(0), "coproc_uop_scope", tir.StringImm(value))
        with ib.for_range(0, 4, name="i", kind="parallel") as i:
            a[i] = a[i] + 1
    return tir.PrimFunc([A], ib.get())


def test_a_mark_runs_its_body_in_the_first_call_of_a_module():
    a = np.zeros(4, "int64")
    for _ in range(2):
        built = loopwright.build(marked())
        built(a)
        built(a)
    assert a.tolist() == [2] * 4


def test_a_mark_that_cannot_be_kept_is_refused():
    with pytest.raises(NotImplementedError, match="coproc_uop_scope inside a loop is not built yet"):
        loopwright.lower(marked(loops=2))
    with pytest.raises(NotImplementedError, match='coproc_uop_scope with "Other" is not built yet'):
        loopwright.lower(marked("Other"))
    with pytest.raises(NotImplementedError, match="coproc_uop_scope for the target c is not built yet"):
        loopwright.build(marked(), target="c")


def test_a_static_handle_is_the_same_in_every_call():
    seen = []
    register_func("test.static_handle", lambda handle: seen.append(handle.value), override=True)
    call = tir.call_packed("test.static_handle", tir.tvm_static_handle())
    built = loopwright.build(tir.PrimFunc([], tir.Evaluate(call)))
    built()
    built()
    assert seen[0] is not None and seen == seen[:1] * 2
