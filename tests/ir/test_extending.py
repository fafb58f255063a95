"""The examples of passes and intrinsic rules run, and every error of this layer has an example that raises it."""

from __future__ import annotations

import runpy
import textwrap
from pathlib import Path

import pytest

from loopwright import ir
from loopwright.runtime.errors import LoopwrightError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def fresh_operators():
    registry, users = dict(ir.Op.registry), set(ir.Op.of_users)
    attributes = {key: dict(table) for key, table in ir.Op.attribute_tables.items()}
    yield
    ir.Op.registry.clear()
    ir.Op.registry.update(registry)
    ir.Op.of_users.clear()
    ir.Op.of_users.update(users)
    ir.Op.attribute_tables.clear()
    ir.Op.attribute_tables.update(attributes)


def test_the_custom_pass(capsys):
    runpy.run_path(str(EXAMPLES / "custom_pass.py"), run_name="__main__")
    shown = capsys.readouterr().out
    assert "A[v_i] * T.float32(0.125) + A[v_i] / T.float32(3)" in shown
    assert shown.count("divisions left: 1") == 2


def test_the_intrinsic_rule(capsys, fresh_operators):
    runpy.run_path(str(EXAMPLES / "intrinsic_rule.py"), run_name="__main__")
    shown = capsys.readouterr().out
    assert shown.count("units of the last place") == 2 and 'T.call_pure_extern("float32", "cbrtf"' in shown
    assert 'T.exp(A[i])  →  B[i] = T.call_pure_extern("float32", "expf", A[i])' in shown


MINE = [
    error
    for code, error in sorted(LoopwrightError.codes.items())
    if "LW0525" <= code <= "LW0559" or "LW0906" <= code <= "LW0929"
]


@pytest.mark.parametrize("error", MINE, ids=lambda error: error.code)
def test_the_example_of_an_error_raises_it(error, tmp_path, fresh_operators):
    text, _, example = (error.__doc__ or "").partition("For example:")
    assert text.strip() and example.strip(), f"{error.__name__} has no example"
    script = tmp_path / "example.py"
    script.write_text(textwrap.dedent(example), encoding="utf-8")
    with pytest.raises(error):
        runpy.run_path(str(script), run_name="__main__")
