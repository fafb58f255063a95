"""Scripts for GPUs as users of TVM v0.15 write them, untouched: `LOOPWRIGHT_CUDA=emulated` runs them on the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, testing
from loopwright.runtime.nvidia.emulated import UnknownCudaSetting
from tests import warm_python
from tests.campaign import some
from tests.cuda_programs import vector_add

SCRIPTS = sorted((Path(__file__).parent / "cuda_scripts").glob("*.py"))


@pytest.mark.parametrize("path", some(SCRIPTS), ids=lambda path: path.stem)
def test_a_classic_script(path, tmp_path, monkeypatch):
    text = path.read_text(encoding="utf-8")
    assert "import tvm" in text and "loopwright" not in text and "tvm.cuda(0)" in text
    (tmp_path / "door.py").write_text(
        "import runpy, sys\nsys.argv = sys.argv[1:]\nrunpy.run_module('loopwright.compat.tvm', run_name='__main__')\n"
    )
    monkeypatch.setenv("LOOPWRIGHT_CUDA", "emulated")
    done = warm_python.run([tmp_path / "door.py", "-m loopwright.compat.tvm", path], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "ok"
    assert done.stderr == ""


def test_there_are_six():
    assert [path.stem for path in SCRIPTS] == ["convolution", "matmul", "reduction", "scan", "softmax", "tensor_cores"]


def test_the_emulated_device(monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_CUDA", "emulated")
    dev = lw.cuda(0)
    assert dev == lw.cpu(0) == lw.device("cuda", 0) == lw.device("gpu:0")
    assert dev.exist and not lw.cuda(1).exist
    assert (dev.compute_version, dev.max_threads_per_block, dev.warp_size) == ("8.0", 1024, 32)
    assert dev.max_thread_dimensions == (1024, 1024, 64)
    assert testing.device_enabled("cuda")
    assert lw.target.describe_gpu("cuda").arch == "sm_80"
    monkeypatch.delenv("LOOPWRIGHT_CUDA")
    assert lw.cuda(0) != lw.cpu(0)
    assert lw.cpu(0).warp_size is None


def test_what_lies_on_a_gpu_stays_there(monkeypatch):
    """A number says where memory is; read as memory of the host, that of a GPU would be a crash."""
    monkeypatch.setenv("LOOPWRIGHT_CUDA", "emulated")
    assert lw.device(2, 0) != lw.cpu(0)


def test_a_plain_cuda_target_is_emulated(monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_CUDA", "emulated")
    schedule, args = vector_add()
    add = lw.build(schedule, args, target="cuda -arch=sm_90a")
    add.set_thread_order("backwards")
    a, b, c = [lw.nd.array(np.full(300, value, "float32"), lw.cuda(0)) for value in (1, 2, 0)]
    add(a, b, c)
    assert (c.numpy() == 3).all()
    A = te.placeholder((5,), name="A")
    B = te.compute((5,), lambda i: A[i] * 2.0, name="B")
    lw.build([A, B], target="nvidia/nvidia-h100")(a._create_view((300,)).numpy()[:5].copy(), np.zeros(5, "float32"))


def test_a_setting_that_means_nothing_is_named():
    environment = {**os.environ, "LOOPWRIGHT_CUDA": "yes"}
    program = "import loopwright; loopwright.cuda(0)"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert "LOOPWRIGHT_CUDA='yes' means nothing [LW0173]" in done.stderr
    assert UnknownCudaSetting.code == "LW0173"
