from __future__ import annotations

import pytest

from loopwright.target import (
    GenericBodyExists,
    NoBodyForTarget,
    Target,
    generic_func,
    get_native_generic_func,
    override_native_generic_func,
)


def test_the_first_key_with_a_body_decides():
    @generic_func
    def where(x):
        """Which body ran."""
        return f"default {x}"

    @where.register(["arm_cpu", "mali"])
    def _(x):
        return f"arm {x}"

    where.register(lambda x: f"cpu {x}", ["cpu"])
    assert where(1) == "default 1"
    assert where.__doc__ == "Which body ran."
    with Target("llvm"):
        assert where(2) == "cpu 2"
        with Target("llvm -device=arm_cpu"):
            assert where(3) == "arm 3"
        with Target("cuda"):
            assert where.get_packed_func()(4) == "default 4"


def test_a_body_is_replaced_only_when_asked():
    @generic_func
    def pick():
        return 0

    pick.register(lambda: 1, ["cpu"])
    with pytest.raises(GenericBodyExists, match="pick has a body for cpu already"):
        pick.register(lambda: 2, ["cpu"])
    pick.register(lambda: 3, "cpu", allow_override=True)
    with pytest.raises(GenericBodyExists, match="default"):
        pick.set_default(lambda: 4)
    with Target("llvm"):
        assert pick() == 3


def test_functions_known_by_name():
    named = get_native_generic_func("test_generic.named")
    assert named is get_native_generic_func("test_generic.named")
    named.register(lambda: "gpu", ["gpu"])
    with Target("llvm"), pytest.raises(NoBodyForTarget, match="no body for a target with keys cpu") as caught:
        named()
    assert "it has bodies for gpu" in str(caught.value)
    with pytest.raises(NoBodyForTarget, match="no body to run without a target"):
        named()

    @override_native_generic_func("test_generic.named")
    def fallback():
        return "fallback"

    assert fallback is named
    assert named() == "fallback"
