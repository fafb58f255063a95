from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import types
import weakref
from pathlib import Path

import numpy as np
import pytest
from native_call import SAFE_CALL, native

from loopwright.runtime import ffi


def run_python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        env=environment or None,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_native_address_becomes_a_callable():
    seen = []
    function = native(lambda values: seen.append([v.type_index for v in values]))
    assert function(1, 2.5, np.zeros(3)) is None
    assert seen == [[1, 3, 70]]


def test_a_null_address_is_refused():
    with pytest.raises(ValueError, match="the address is null"):
        ffi.function_from_address(0)


def test_the_engine_lives_as_long_as_the_function():
    class Engine:
        pass

    engine = Engine()
    engine.entry = SAFE_CALL(lambda *_: 0)
    import ctypes

    function = ffi.function_from_address(ctypes.cast(engine.entry, ctypes.c_void_p).value, keep_alive=engine)
    alive = weakref.ref(engine)
    del engine
    gc.collect()
    assert alive() is not None
    function()
    del function
    gc.collect()
    assert alive() is None


def test_torch_is_not_imported_and_can_be_imported_later(tmp_path: Path):
    (tmp_path / "torch.py").write_text("loaded = True\n")
    out = run_python(
        f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        from loopwright import nd
        nd.empty((2,))
        before = "torch" in sys.modules
        import torch
        print(before, torch.loaded)
        """
    )
    assert out == "False True"


def test_torch_that_is_already_there_stays(monkeypatch: pytest.MonkeyPatch):
    torch = types.ModuleType("torch")
    monkeypatch.setitem(sys.modules, "torch", torch)
    ffi._import_without_torch()
    assert sys.modules["torch"] is torch


def test_importing_the_runtime_loads_neither_tvm_ffi_nor_numpy():
    out = run_python(
        """
        import sys, loopwright.runtime, loopwright.nd, loopwright.error
        print([name for name in ("tvm_ffi", "numpy", "torch") if name in sys.modules])
        """
    )
    assert out == "[]"


def test_a_missing_package_says_what_to_install():
    out = run_python(
        """
        import sys
        sys.modules["tvm_ffi"] = None
        from loopwright.runtime.errors import LoopwrightError
        from loopwright import nd
        try:
            nd.empty((2,))
        except LoopwrightError as error:
            print(error.code, error)
        """
    )
    assert "LW0104" in out
    assert "pip install apache-tvm-ffi" in out
