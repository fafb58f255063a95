from __future__ import annotations

import pytest

from loopwright.runtime.host_features import kernel_features, known_features, missing_features
from loopwright.target import describe


@pytest.mark.parametrize(
    ("cpuinfo", "features", "missing"),
    [
        ("flags\t\t: fpu pni avx avx2\n", ["avx2", "sse3", "avx512f", "not-in-the-table"], ["avx512f"]),
        ("Features\t: fp asimd asimddp\n", ["neon", "dotprod", "sve", "fullfp16"], ["fullfp16", "sve"]),
        ("model name: something\n", ["avx512f"], []),  # the system does not tell
    ],
)
def test_features_by_the_kernels_names(tmp_path, cpuinfo, features, missing):
    path = tmp_path / "cpuinfo"
    path.write_text(cpuinfo)
    assert missing_features(features, path) == missing


@pytest.mark.parametrize(
    ("cpuinfo", "features"),
    [
        ("flags : abm avx512_vnni avx_vnni bmi1 fpu\n", ["avx512vnni", "avxvnni", "bmi", "fpu", "lzcnt"]),
        ("Features : asimd asimddp atomics\n", ["dotprod", "lse", "neon"]),
        ("model name: something\n", []),
    ],
)
def test_the_kernels_features_by_llvms_names(tmp_path, cpuinfo, features):
    path = tmp_path / "cpuinfo"
    path.write_text(cpuinfo)
    assert kernel_features(path) == features


def test_only_features_that_llvm_knows_are_told_to_it(tmp_path):
    path = tmp_path / "cpuinfo"
    path.write_text("Features : asimd asimddp cpuid evtstrm\n")
    known = known_features(path)
    assert known["dotprod"] and known["neon"] and not known["i8mm"]
    assert "cpuid" not in known and "evtstrm" not in known


def test_no_cpuinfo_at_all(tmp_path):
    assert missing_features(["avx2"], tmp_path / "nothing") == []
    assert kernel_features(tmp_path / "nothing") == []
    assert known_features(tmp_path / "nothing") == {}


def test_this_machine_has_what_code_for_it_uses():
    assert missing_features(describe("llvm").features) == []
