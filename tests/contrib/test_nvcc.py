from __future__ import annotations

import pytest

from loopwright.contrib import nvcc
from loopwright.target import Target


@pytest.fixture
def toolkit(tmp_path, monkeypatch):
    """A toolkit whose compiler writes down how it was called."""
    (tmp_path / "bin").mkdir()
    compiler = tmp_path / "bin" / "nvcc"
    compiler.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = --version ]; then echo "Cuda compilation tools, release 12.4, V12.4.99"; exit; fi\n'
        'all="$*"\nwhile [ "$1" != -o ]; do shift; done\necho "$all" > "$2"; cat "$3" >> "$2"\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CUDA_PATH", str(tmp_path))
    return tmp_path


def test_compile_cuda(toolkit):
    made = nvcc.compile_cuda("__global__ void f() {}", arch="sm_90", options=["-lineinfo"]).decode()
    assert "--ptx" in made and "-arch=sm_90" in made and "-lineinfo" in made
    assert "__global__ void f() {}" in made
    with Target("cuda -arch=sm_80"):
        path = toolkit / "out.cubin"
        assert b"-arch=sm_80" in nvcc.compile_cuda("x", target_format="cubin", path_target=str(path))
        assert path.exists()
    assert b"-gencode=a" in nvcc.compile_cuda("x", "fatbin", arch=["-gencode=a"])


def test_the_version_of_the_toolkit(toolkit):
    assert nvcc.find_cuda_path() == str(toolkit)
    assert nvcc.get_cuda_version() == 12.4
    assert nvcc.have_cudagraph()


def test_no_toolkit(monkeypatch):
    for name in ("PATH", "CUDA_PATH", "CUDA_HOME"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(nvcc, "USUAL_PLACE", "/nowhere")
    with pytest.raises(nvcc.NoCudaToolkit, match="there is no CUDA toolkit here"):
        nvcc.find_cuda_path()
    assert not nvcc.have_cudagraph()


def test_bad_formats_and_versions(toolkit):
    with pytest.raises(nvcc.BadCudaFormat, match="'obj' is no format"):
        nvcc.compile_cuda("x", target_format="obj")
    with pytest.raises(nvcc.BadComputeVersion, match="'eight' is no compute version"):
        nvcc.parse_compute_version("eight")
    with pytest.raises(nvcc.BadComputeVersion, match="'ampere' is no CUDA architecture"):
        nvcc.get_target_compute_version("cuda -arch=ampere")


def test_the_compute_version_of_a_target():
    assert nvcc.get_target_compute_version("cuda -arch=sm_80") == "8.0"
    assert nvcc.get_target_compute_version(Target("cuda -arch=sm_103a")) == "10.3"
    assert nvcc.get_arch("cuda -arch=sm_80") == "sm_80"
    assert nvcc.parse_compute_version("8.6") == (8, 6)


def test_without_a_target_or_a_gpu(monkeypatch):
    from loopwright import runtime

    if runtime.cuda(0).exist:
        pytest.skip("there is a GPU")
    with pytest.raises(nvcc.BadComputeVersion, match="there is no compute version"):
        nvcc.get_target_compute_version()
    assert not nvcc.have_tensorcore()


@pytest.mark.parametrize(
    ("question", "first"),
    [
        (nvcc.have_fp16, "5.3"),
        (nvcc.have_int8, "6.1"),
        (nvcc.have_tensorcore, "7.0"),
        (nvcc.have_bf16, "8.0"),
        (nvcc.have_fp8, "8.9"),
    ],
)
def test_what_a_version_can_do(question, first):
    versions = ["5.2", "5.3", "6.0", "6.1", "6.2", "7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0"]
    assert [v for v in versions if question(v)] == versions[versions.index(first) :]
