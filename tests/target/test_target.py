from __future__ import annotations

import json
import pickle
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.runtime.errors import LoopwrightError
from loopwright.target import (
    BadTargetAttribute,
    BadTargetText,
    NoCurrentTarget,
    Target,
    TargetNotBuildable,
    UnknownTargetAttribute,
    UnknownTargetKind,
    describe,
    list_kinds,
    list_tags,
    require_buildable,
)
from loopwright.target.architectures import (
    AARCH64,
    ARM,
    I386,
    RISCV32,
    RISCV64,
    WASM32,
    X86_64,
    architecture_of,
    usual_triple,
)

LONG = "llvm -mcpu=core-avx2 -mattr=+avx512f,+fma -num-cores=4"


def test_the_shortest_target():
    target = Target("llvm")
    assert target.kind == "llvm"
    assert target.kind.name == "llvm"
    assert target.keys == ("cpu",)
    assert dict(target.attrs) == {}
    assert target.host is None
    assert target.tag == ""
    assert str(target) == "llvm -keys=cpu"
    assert repr(target) == "Target('llvm -keys=cpu')"


def test_options_get_their_types():
    target = Target(LONG)
    assert dict(target.attrs) == {"mcpu": "core-avx2", "mattr": ["+avx512f", "+fma"], "num-cores": 4}
    assert target.mcpu == "core-avx2"
    assert target.mattr == ["+avx512f", "+fma"]


@pytest.mark.parametrize(
    "same",
    [
        "llvm --mcpu=core-avx2  --mattr=+avx512f,+fma -num-cores 4",
        "llvm -mcpu core-avx2 -mattr '+avx512f','+fma' -num-cores=\"4\"",
        {"kind": "llvm", "mcpu": "core-avx2", "mattr": ["+avx512f", "+fma"], "num-cores": 4},
        '{"kind": "llvm", "mcpu": "core-avx2", "mattr": ["+avx512f", "+fma"], "num-cores": 4}',
        Target(LONG),
    ],
)
def test_all_ways_to_write_a_target_agree(same):
    assert Target(same) == Target(LONG)
    assert hash(Target(same)) == hash(Target(LONG))


@pytest.mark.parametrize(
    "spec",
    ["llvm", "c", LONG, *list_tags(), "cuda -arch=sm_80 -libs=cublas,cudnn", "test -my_bool -your_names='a b',c"],
)
def test_text_export_json_and_pickle_round_trip(spec):
    target = Target(spec)
    assert Target(str(target)) == target
    assert Target(target.export()) == target
    assert Target(json.dumps(target.export())) == target
    assert pickle.loads(pickle.dumps(target)) == target
    with_host = target.with_host("llvm -mcpu=core-avx2 -mattr=+fma,+avx2")
    assert with_host != target
    assert with_host.host.mcpu == "core-avx2"
    assert Target(str(with_host)) == with_host


@given(
    st.lists(st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"]), max_size=6), max_size=3),
    st.booleans(),
)
def test_any_text_survives_the_round_trip(names, flag):
    names = [name for name in names if name]
    target = Target({"kind": "test", "your_names": names, "my_bool": flag, "model": " ".join(names) or "m"})
    assert Target(str(target)).export() == target.export()


def test_a_flag_alone_means_yes():
    assert Target("test -my_bool").attrs["my_bool"] is True
    assert Target("test -my_bool=0").attrs["my_bool"] is False
    assert Target("test -my_bool -model=x").model == "x"


def test_keys_are_given_then_device_then_default():
    assert Target("llvm -device=arm_cpu").keys == ("arm_cpu", "cpu")
    assert Target("llvm -keys=a,b").keys == ("a", "b")
    assert Target("llvm -keys=a -device=b").keys == ("a", "b")
    assert Target("llvm -device=cpu").keys == ("cpu",)
    assert Target("cuda").keys == ("cuda", "gpu")


def test_defaults_of_a_kind():
    target = Target("cuda", host="llvm")
    assert target.attrs["thread_warp_size"] == 32
    assert target.attrs["max_num_threads"] == 1024
    assert target.get_target_device_type() == 2
    assert target.get_kind_attr("default_keys") == ("cuda", "gpu")
    assert target.host == Target("llvm")
    assert Target(target).host == Target("llvm")


def test_a_tag_stands_for_a_whole_target():
    target = Target("nvidia/nvidia-h100")
    assert target.tag == "nvidia/nvidia-h100"
    assert target.arch == "sm_90a"
    assert Target({"tag": "raspberry-pi/4b-aarch64"}).mcpu == "cortex-a72"
    assert Target("nvidia/jetson-agx-xavier").host.mcpu == "carmel"


def test_the_current_target_nests():
    assert Target.current() is None
    with Target("llvm") as outer:
        assert Target.current() is outer
        with Target("c") as inner, inner:
            assert Target.current() is inner
        assert Target.current() is outer
    assert Target.current() is None
    with pytest.raises(NoCurrentTarget, match="there is no current target"):
        Target.current(allow_none=False)


def test_the_current_target_is_per_thread():
    seen = []
    with Target("llvm"):
        thread = threading.Thread(target=lambda: seen.append(Target.current()))
        thread.start()
        thread.join()
    assert seen == [None]


def test_kinds_are_listed():
    assert {"llvm", "c", "cuda", "hexagon"} <= set(list_kinds())
    assert Target.list_kinds() == list_kinds()


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("lvm", UnknownTargetKind, "unknown target kind 'lvm'"),
        ("", BadTargetText, "cannot read the target '': it is empty"),
        ("nvidia/nvidia-h10", UnknownTargetKind, "unknown target kind 'nvidia/nvidia-h10'"),
        ("nvidia/nvidia-h100 -arch=sm_80", BadTargetText, "a tag stands alone"),
        ("llvm -mcup=skylake", UnknownTargetAttribute, "target kind llvm has no attribute 'mcup'"),
        ("llvm mcpu=skylake", BadTargetText, "'mcpu=skylake' is not an option"),
        ("llvm -=x", BadTargetText, "'-=x' has no name"),
        ("llvm -mcpu='skylake", BadTargetText, "a quote is not closed"),
        ("llvm -num-cores=many", BadTargetAttribute, "num-cores is an integer, but got 'many'"),
        ("llvm -num-cores=0", BadTargetAttribute, "num-cores is a positive integer, but got 0"),
        ("llvm -num-cores", BadTargetAttribute, "num-cores is an integer, but got True"),
        ("llvm -mattr=fma", BadTargetAttribute, r"each with \+ or - before its name, but got \['fma'\]"),
        ("test -my_bool=maybe", BadTargetAttribute, "my_bool is yes or no .*, but got 'maybe'"),
        ({"kind": "llvm", "mcpu": 7}, BadTargetAttribute, "mcpu is a text, but got 7"),
        ({"kind": "llvm", "mattr": "+fma"}, BadTargetAttribute, "mattr is a list of texts, but got '\\+fma'"),
        ({"kind": "llvm", "mattr": [1]}, BadTargetAttribute, "mattr is a text, but got 1"),
        ({"kind": 3}, BadTargetAttribute, "kind is a text, but got 3"),
        ({"mcpu": "skylake"}, BadTargetText, 'it has no "kind"'),
        ('{"kind": ', BadTargetText, "the JSON does not parse"),
        (None, BadTargetText, "a target is text, a dict or a Target, not NoneType"),
    ],
)
def test_bad_targets(spec, error, message):
    with pytest.raises(error, match=message) as caught:
        Target(spec)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, LoopwrightError)
    assert "test_target.py" in str(caught.value)


def test_candidates_are_listed():
    with pytest.raises(UnknownTargetKind) as caught:
        Target("lvm")
    assert "hint: use one of llvm" in str(caught.value)
    with pytest.raises(UnknownTargetAttribute) as caught:
        Target("llvm -mcup=skylake")
    assert "hint: use one of -mcpu" in str(caught.value)
    with pytest.raises(UnknownTargetKind) as caught:
        Target("zzz")
    assert caught.value.hint == "use one of c, cuda, llvm"  # what can be built, since nothing is alike
    with pytest.raises(UnknownTargetKind) as caught:
        Target("cudaa")
    assert caught.value.hint == "use one of cuda"


@pytest.mark.parametrize(
    ("spec", "meant"),
    [
        ("aarch64", "llvm -mtriple=aarch64-linux-gnu"),
        ("ARM64", "llvm -mtriple=aarch64-linux-gnu"),
        ({"kind": "aarch64"}, "llvm -mtriple=aarch64-linux-gnu"),
        ("x86_64 -num-cores=4", "llvm -mtriple=x86_64-linux-gnu"),
        ("riscv64", "llvm -mtriple=riscv64-linux-gnu"),
        ("aarch64-linux-android", "llvm -mtriple=aarch64-linux-android"),
        ("cortex-a72", "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"),
        ("cortex-m0", "llvm -mtriple=thumbv6m-none-eabi -mcpu=cortex-m0"),
        ("haswell", "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell"),
        ("cpu", "llvm"),
    ],
)
def test_a_machine_in_place_of_a_kind(spec, meant):
    with pytest.raises(UnknownTargetKind) as caught:
        Target(spec)
    assert caught.value.hint == f'write "{meant}"'
    describe(Target(meant))


def test_every_architecture_has_a_usual_triple():
    for architecture in (X86_64, I386, AARCH64, ARM, RISCV64, RISCV32, WASM32):
        triple = usual_triple(architecture.name)
        assert triple is not None and architecture_of(triple) is architecture
    assert usual_triple("arm_cpu") is None and usual_triple("cortex-a72") is None


def test_asking_for_rocm_says_what_was_looked_for_and_what_works():
    with pytest.raises(TargetNotBuildable, match="cannot build for target 'rocm'") as caught:
        require_buildable(Target("rocm", host="llvm"))
    message = str(caught.value)
    assert "libamdhip64.so (" in message
    assert "/dev/kfd (" in message
    assert "the ROCm backend (not built in this version)" in message
    assert 'what works here: "llvm"' in message
    assert isinstance(caught.value, ValueError)


def test_what_can_be_built_comes_back():
    assert require_buildable("llvm") == Target("llvm")
    with pytest.raises(TargetNotBuildable, match="'stackvm'"):
        require_buildable(Target("llvm", host="stackvm"))
