"""PlanDevices: a device for every value, copies between devices, and what runs where all devices are CPUs."""

from __future__ import annotations

import random

import numpy as np
import pytest

import loopwright as lw
from loopwright import relay
from loopwright.ir.json_form import load_json, save_json
from loopwright.relay.errors import DevicesDisagree, NeedsOtherDevice
from loopwright.relay.text.errors import BadText
from loopwright.target import NoTargetForDevice, Target, VirtualDevice, make_compilation_config

CPU, CUDA = VirtualDevice.of(1), VirtualDevice.of(2)
CONTEXT = relay.transform.PassContext()
BOTH = make_compilation_config(CONTEXT, ["llvm", "cuda"])  # CPUs by default
DEVICES = {"VirtualDevice": [CPU, CUDA, VirtualDevice.of(1, 0, None, "small"), VirtualDevice.of(1, 1)]}


def parsed(text: str) -> relay.IRModule:
    """A text in which D0 is a CPU, D1 CUDA, D2 a small memory of the CPU, D3 another CPU."""
    for index in range(4):
        text = text.replace(f"D{index}", f"meta[VirtualDevice][{index}]")
    return relay.parse(text, init_meta_table=DEVICES)


def planned(text: str, config: object = BOTH) -> relay.IRModule:
    """The plan; planning it again, or after it was written and read, changes nothing."""
    result = relay.transform.PlanDevices(config)(parsed(text))
    again = relay.transform.PlanDevices(config)(relay.parse(result.astext()))
    lw.ir.assert_structural_equal(result, again)
    return result


def kinds(mod: relay.IRModule, name: str = "main") -> tuple[list[int], int]:
    """The kinds of devices of the parameters and of the result of a function."""
    function = mod[name]
    return [param.virtual_device_.device_type for param in function.params], function.virtual_device_.device_type


def copies(mod: relay.IRModule) -> list[tuple[int, int]]:
    """From which kind of device to which the copies of a module go."""
    return [
        (one.attrs.src_virtual_device.device_type, one.attrs.dst_virtual_device.device_type)
        for function in mod.functions.values()
        for one in relay.visitor.post_order(function)
        if isinstance(one, relay.Call) and getattr(one.op, "name", "") == "device_copy"
    ]


def test_what_is_open_is_where_kernels_are_compiled_for():
    text = "def @main(%x: Tensor[(2), float32]) { exp(%x) }"
    assert kinds(planned(text)) == ([1], 1)
    fallback = relay.transform.PassContext(config={"relay.fallback_device_type": 2})
    for config in (make_compilation_config(CONTEXT, "cuda"), make_compilation_config(fallback, ["llvm", "cuda"])):
        assert kinds(planned(text, config)) == ([2], 2)
    assert copies(planned(text)) == []


def test_a_value_used_elsewhere_is_copied():
    mod = planned(
        """def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) {
             %0 = exp(%x);
             add(on_device(%0, virtual_device=D1), %y) }"""
    )
    assert kinds(mod) == ([2, 1], 1) and copies(mod) == [(2, 1)]
    (copy, _) = mod["main"].body.args
    (mark,) = copy.args
    assert mark.attrs.constrain_result and mark.args[0].op.name == "exp"
    assert mark.attrs.virtual_device.target.kind.name == "cuda"  # found by the kind of device


def test_the_last_value_of_a_function_is_its_result():
    assert kinds(planned("def @main(%x: Tensor[(2), float32]) { on_device(exp(%x), virtual_device=D1) }")) == ([2], 2)
    mod = planned(
        "def @main(%x: Tensor[(2), float32]) { let %y = exp(%x); on_device(negative(%y), virtual_device=D1) }"
    )
    assert kinds(mod) == ([2], 2)
    assert mod["main"].body.value.op.name == "on_device"  # a let says where its value is


def test_an_input_of_two_devices_is_copied_to_the_second():
    mod = planned(
        """def @main(%x: Tensor[(2), float32]) {
             %0 = on_device(exp(%x), virtual_device=D1);
             %1 = on_device(negative(%x), virtual_device=D0);
             add(%0, %1) }"""
    )
    assert kinds(mod) == ([2], 1) and sorted(copies(mod)) == [(2, 1), (2, 1)]


def test_functions_take_values_where_their_parameters_are():
    mod = planned(
        """def @f(%a: Tensor[(2), float32]) -> Tensor[(2), float32] {
             %0 = on_device(%a, virtual_device=D1); exp(%0) }
           def @main(%x: Tensor[(2), float32]) { let %g = fn (%v: Tensor[(2), float32]) { @f(%v) }; %g(%x) }"""
    )
    assert kinds(mod, "f") == kinds(mod) == ([2], 1)
    assert kinds(relay.IRModule.from_expr(mod["main"].body.value)) == ([2], 1)


def test_tuples_branches_cells_and_data_types_are_in_one_place():
    mod = planned(
        """def @main(%c: bool, %x: Tensor[(2), float32], %y: Tensor[(2), float32]) {
             let %r = ref(%x);
             let %t = (%y, if (%c) { ref_read(%r) } else { exp(%y) });
             %0 = on_device(%t, virtual_device=D1);
             negative(%0.1) }"""
    )
    assert kinds(mod) == ([2, 2, 2], 1) and copies(mod) == [(2, 1)]
    (copy,) = mod["main"].body.body.body.args
    assert isinstance(copy.args[0].args[0], relay.TupleGetItem)  # a field is copied, and not the tuple
    mod = planned(
        """type Pair[A] { Two(A, A) }
           def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) {
             %0 = on_device(%y, virtual_device=D1, constrain_result=True);
             match (Two(%x, %0)) { Two(%a, _) => exp(%a) } }"""
    )
    assert kinds(mod) == ([2, 2], 2)


def test_memories_differ_as_devices_do():
    mod = planned(
        """def @f(%a {virtual_device=D2}: Tensor[(2), float32], virtual_device=D2) -> Tensor[(2), float32] { exp(%a) }
           def @main(%x: Tensor[(2), float32], virtual_device=D0) {
             on_device(@f(%x), virtual_device=D0, constrain_body=False) }"""
    )
    assert mod["main"].params[0].virtual_device_.memory_scope == "small"


def test_shapes_are_on_the_host():
    fallback = relay.transform.PassContext(config={"relay.fallback_device_type": 2})
    config = make_compilation_config(fallback, ["llvm", "cuda"], "llvm")
    mod = planned(
        """def @main(%x: Tensor[(2, 4), float32]) {
             %0 = on_device(%x, virtual_device=D1, constrain_result=True);
             vm.shape_of(%0, dtype="int64") }""",
        config,
    )
    assert kinds(mod) == ([2], 1) and copies(mod) == []
    mod = planned(
        "def @main(%x: Tensor[(2, 4), float32], %s: Tensor[(1), int64]) { vm.reshape_tensor(%x, %s, newshape=[8]) }",
        config,
    )
    assert kinds(mod) == ([2, 1], 2) and copies(mod) == []


def test_storage_is_where_it_says_and_its_size_on_the_host():
    fallback = relay.transform.PassContext(config={"relay.fallback_device_type": 2})
    config = make_compilation_config(fallback, ["llvm", "cuda"], "llvm")
    mod = relay.IRModule()
    mod.import_from_std("core.rly")
    size, shape = relay.var("size", shape=(), dtype="int64"), relay.const([2, 4], "int64")
    storage = relay.memory.alloc_storage(size, shape, relay.const(64, "int64"), "cuda")
    tensor = relay.memory.alloc_tensor(storage, relay.const(0, "int64"), shape)
    mod["main"] = relay.Function([size], relay.exp(tensor))
    plan = relay.transform.PlanDevices(config)(mod)
    assert kinds(plan) == ([1], 2) and copies(plan) == []
    value = relay.create_executor("debug", mod=mod).evaluate()(np.int64(32))
    np.testing.assert_array_equal(value.numpy(), np.ones((2, 4), "float32"))
    with pytest.raises(ValueError, match="a tensor at bytes 0 to 32 of storage that has 16"):
        relay.create_executor("debug", mod=mod).evaluate()(np.int64(16))


def test_kernels_keep_their_devices():
    mod = planned(
        """def @main(%x: Tensor[(2), float32]) {
             %0 = fn (%a: Tensor[(2), float32], virtual_device=D1, Primitive=1) { exp(%a) };
             %0(%x) }"""
    )
    assert kinds(mod) == ([2], 2)


def test_plans_that_cannot_be():
    with pytest.raises(DevicesDisagree, match="Var x cannot be on two devices: cpu, and cuda"):
        planned(
            """def @main(%x: Tensor[(2), float32]) {
                 add(on_device(%x, virtual_device=D0), on_device(%x, virtual_device=D1)) }"""
        )
    with pytest.raises(DevicesDisagree, match="cannot be on two devices: a function of cuda"):
        planned(
            """def @f(%a {virtual_device=D1}: Tensor[(2), float32]) -> Tensor[(2), float32] { exp(%a) }
               def @main(%x {virtual_device=D0}: Tensor[(2), float32]) { @f(%x) }"""
        )
    with pytest.raises(NoTargetForDevice, match="no target is given for the device type 2"):
        text = "def @main(%x: Tensor[(2), float32]) { on_device(exp(%x), virtual_device=D1) }"
        planned(text, make_compilation_config(CONTEXT, "llvm"))


def test_the_config_of_a_compilation():
    assert str(BOTH.host_target.kind) == "llvm" and len(BOTH.primitive_targets) == 2
    assert BOTH.optional_homogeneous_target is None
    alone = make_compilation_config(CONTEXT, "llvm")
    assert alone.host_virtual_device == alone.default_primitive_virtual_device
    assert alone.canonical(VirtualDevice(target=Target("llvm"))).virtual_device_id == 0
    assert alone.canonical(VirtualDevice(memory_scope="small")).device_type == -1


def test_devices_in_texts_and_json():
    x = relay.var("x", shape=(2,))
    copied = relay.op.device_copy(relay.annotation.on_device(x + x, "cpu"), lw.cpu(0), "cpu:1")
    function = relay.annotation.function_on_device(relay.Function([x], copied), ["cpu"], "cpu:1")
    mod = relay.transform.InferType()(relay.IRModule.from_expr(function))
    text = mod.astext()
    assert "(%x {virtual_device=meta[VirtualDevice][0]}: Tensor[(2), float32], virtual_device=meta[Virt" in text
    for back in (relay.parse(text), load_json(save_json(mod))):
        lw.ir.assert_structural_equal(mod, back)
        assert back["main"].virtual_device_ == VirtualDevice.of(1, 1)
    other = relay.annotation.function_on_device(relay.Function([x], copied), ["cpu:1"], "cpu:1")
    assert not lw.ir.structural_equal(function, other)
    with pytest.raises(BadText, match="no attribute but its virtual_device"):
        parsed("def @main(%x {colour=D0}: float32) { %x }")
    with pytest.raises(ValueError, match="2 devices are given for 1 parameters"):
        relay.annotation.function_on_device(function, ["cpu", "cpu"], "cpu")


def test_where_each_expression_is():
    mod = planned(
        """def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) {
             add(on_device(exp(%x), virtual_device=D1), %y) }"""
    )
    numbered = relay.transform.CapturePostDfsIndexInSpans()(mod)
    found = relay.analysis.virtual_devices(numbered, numbered["main"])
    # %x, %y, four operators, exp, on_device, device_copy, add, the function
    assert {e.span.line: d.device_type for e, d in found.items()} == {0: 2, 1: 1, 6: 2, 7: 2, 8: 1, 9: 1, 10: 1}


def test_devices_outlive_other_passes():
    mod = planned(
        """def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) {
             add(on_device(negative(exp(%x)), virtual_device=D1), %y) }"""
    )
    named = relay.transform.ToANormalForm()(mod)
    found = relay.analysis.virtual_devices(named, named["main"])
    at = {one.op.name: device.device_type for one, device in found.items() if isinstance(one, relay.Call)}
    assert (at["exp"], at["negative"], at["add"]) == (2, 2, 1)
    lw.ir.assert_structural_equal(relay.transform.PlanDevices(BOTH)(named), named)
    for change in (relay.transform.ToGraphNormalForm(), relay.transform.FoldConstant(), relay.transform.FuseOps()):
        assert kinds(change(named)) == kinds(mod)


def test_a_program_of_cpus_runs():
    text = """def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) {
                %0 = on_device(exp(%x), virtual_device=D3);
                add(%0, %y) }"""
    plan = planned(text, make_compilation_config(CONTEXT, "llvm"))
    assert copies(plan) == [(1, 1)]
    x, y = np.array([0, 1], "float32"), np.array([2, 3], "float32")
    for mod in (parsed(text), plan):
        for kind in ("graph", "vm", "debug"):
            result = relay.create_executor(kind, mod=mod, device=lw.cpu(), target="llvm").evaluate()(x, y)
            np.testing.assert_allclose(result.numpy(), np.exp(x) + y, rtol=1e-6)


def random_program(rng: random.Random) -> relay.IRModule:
    """Sums, tuples, branches and calls of three tensors, on random CPUs."""
    params = [relay.var(name, shape=(2,)) for name in "abc"]
    values: list[relay.Expr] = list(params)
    for _ in range(rng.randrange(2, 12)):
        x, y = rng.choice(values), rng.choice(values)
        inner = relay.var("p", shape=(2,))
        value = rng.choice(
            [
                relay.add(x, y),
                relay.TupleGetItem(relay.Tuple([x, y]), 1),
                relay.If(relay.less(relay.sum(x), relay.const(0.0)), relay.add(x, y), relay.negative(y)),
                relay.Call(relay.Function([inner], relay.multiply(inner, inner)), [x]),
            ]
        )
        device, result, body = f"cpu:{rng.randrange(2)}", rng.randrange(2), rng.randrange(2)
        values.append(relay.annotation.on_device(value, device, bool(result), bool(body)))
    mod = relay.IRModule.from_expr(relay.Function(params, relay.add(values[-1], values[-2])))
    return relay.transform.InferType()(mod)


def test_plans_of_random_programs():
    config = make_compilation_config(CONTEXT, "llvm")
    arrays = [np.array([k, k - 1.5], "float32") for k in range(3)]
    count = 0
    for seed in range(30):
        mod = random_program(random.Random(seed))
        try:
            plan = relay.transform.PlanDevices(config)(mod)
        except DevicesDisagree:
            continue
        count += 1
        lw.ir.assert_structural_equal(relay.transform.PlanDevices(config)(plan), plan)
        one, other = (relay.create_executor("debug", mod=each).evaluate()(*arrays).numpy() for each in (mod, plan))
        np.testing.assert_array_equal(one, other)
        found = relay.analysis.virtual_devices(plan, plan["main"])
        for call, device in found.items():  # an operator computes where its inputs are
            if isinstance(call, relay.Call) and isinstance(call.op, relay.Function):
                assert [found[arg] for arg in call.args] == [param.virtual_device_ for param in call.op.params]
            elif isinstance(call, relay.Call) and call.op.name not in ("on_device", "device_copy"):
                assert {found[arg] for arg in call.args} == {device}
    assert count > 20


def test_other_devices_are_refused():
    for mark in ("D1", "D2"):
        mod = parsed(f"def @main(%x: Tensor[(2), float32]) {{ on_device(exp(%x), virtual_device={mark}) }}")
        for build in (relay.build, relay.vm.compile):
            with pytest.raises(NeedsOtherDevice, match=r"the program names c.* models are built for CPUs"):
                build(mod, target="llvm")
    with pytest.raises(TypeError, match="a device is a text, a Device or a VirtualDevice"):
        relay.annotation.on_device(relay.var("x", shape=(2,)), 3.5)
