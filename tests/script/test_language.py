from __future__ import annotations

import textwrap
import warnings

import numpy as np
import pytest

import loopwright
from loopwright import ir
from loopwright.evaluator import evaluate
from loopwright.runtime.errors import InternalError, LoopwrightError
from loopwright.script import from_source
from tests.script import language_cases as cases

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

_HEADERS = {
    "FLOATS": '@T.prim_func\ndef main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):\n',
    "INTS": '@T.prim_func\ndef main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):\n',
}


def _function(header: str, body: str) -> str:
    return _HEADERS[header] + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")


PROGRAMS = {
    **{name: _function("FLOATS", body) for name, body in cases.FLOATS.items()},
    **{name: _function("INTS", body) for name, body in cases.INTS.items()},
    **{name: textwrap.dedent(text).strip("\n") for name, text in cases.OTHERS.items()},
    "float functions": _function(
        "FLOATS",
        "\n".join(
            [f"A[{k % 16}] = A[{k % 16}] + T.{name}(B[0])" for k, name in enumerate(cases.INTRINSICS_OF_FLOATS)]
            + [f"A[{k}] = T.{name}(B[0], B[1])" for k, name in enumerate(cases.INTRINSICS_OF_TWO_FLOATS)]
            + ["A[14] = T.ldexp(B[0], 3)"]
            + [f"if T.{name}(B[0]):\n    A[15] = B[1]" for name in ("isnan", "isinf", "isfinite")]
        ),
    ),
    "integer functions": _function(
        "INTS",
        "\n".join(
            [f"A[{k}] = T.{name}(B[0])" for k, name in enumerate(cases.INTRINSICS_OF_INTS)]
            + [f"A[{k + 4}] = T.{name}(B[0], B[1])" for k, name in enumerate(cases.INTRINSICS_OF_TWO_INTS)]
            + ["A[0] = T.q_multiply_shift(B[0], B[1], 31, 2)"]
            + ["A[1] = T.q_multiply_shift_per_axis(B[0], B[1], B[2], 3, 31, T.bool(True), T.bool(False))"]
        ),
    ),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_reads_back_as_itself(name):
    program = from_source(PROGRAMS[name])
    for options in ({}, {"syntax_sugar": False}):
        again = from_source(program.script(**options))
        ir.assert_structural_equal(program, again, map_free_vars=True, block_names=True)


COMPARED = [name for name in PROGRAMS if name not in cases.REFUSED and name not in cases.NOT_COMPARED]


@pytest.fixture(scope="module")
def built():
    """All functions that run, compiled together: one object is made much faster than a hundred."""
    functions = {}
    for k, name in enumerate(COMPARED):
        program = from_source(PROGRAMS[name])
        if isinstance(program, ir.PrimFunc):
            functions[f"program_{k}"] = program.with_attr("global_symbol", f"program_{k}")
    return loopwright.build(ir.IRModule(functions))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", COMPARED)
def test_evaluator_and_native_code_agree(name, built):
    program = from_source(PROGRAMS[name])
    is_module = isinstance(program, ir.IRModule)
    func = program["main"] if is_module else program
    native = loopwright.build(program)["main"] if is_module else built[f"program_{COMPARED.index(name)}"]
    expected, found = _arguments(func), _arguments(func)
    returned, result = evaluate(program, *expected), native(*found)
    assert (returned is None and result is None) or result == pytest.approx(returned, rel=1e-6)
    for a, b in zip(expected, found, strict=True):
        if isinstance(a, np.ndarray):
            np.testing.assert_allclose(b, a, rtol=2e-6)  # the bound of the float32 functions in docs/math.md


@pytest.mark.parametrize("name", cases.REFUSED)
def test_what_cannot_run_is_refused_by_name(name):
    program = from_source(PROGRAMS[name])
    in_evaluator, in_build = cases.REFUSED[name]
    func = program["main"] if isinstance(program, ir.IRModule) else program
    _attempt(lambda: evaluate(program, *_arguments(func)), in_evaluator)
    _attempt(lambda: loopwright.build(program), in_build)


def _attempt(action, refusal):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if refusal is None:
            return action()
        with pytest.raises(LoopwrightError, match=refusal) as caught:
            action()
    assert not isinstance(caught.value, InternalError)
    return None


def _arguments(func):
    random = np.random.default_rng(7)
    made = []
    for param in func.params:
        buffer = func.buffer_map.get(param)
        if buffer is not None:
            shape = [extent.value if isinstance(extent, ir.IntImm) else 16 for extent in buffer.shape]
            made.append((random.random(shape) * 8 + 1).astype(buffer.dtype.numpy()))
        else:
            made.append(None if param.dtype.kind == "handle" else 3)
    return made
