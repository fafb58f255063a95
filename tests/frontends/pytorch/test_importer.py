"""from_pytorch: what it accepts, names, weights, open sizes, branches and loops, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional as F

import loopwright
from loopwright import relay
from loopwright.frontends import from_pytorch
from loopwright.frontends.op_errors import OpNotImplemented
from loopwright.frontends.pytorch import CompiledModule, supported_operators
from loopwright.frontends.pytorch.errors import (
    BadTorchNode,
    CannotExport,
    ChangesState,
    InputsNeeded,
    NotAModel,
    UnsupportedTorchType,
    WrongInputs,
)
from loopwright.relay import interpreter
from loopwright.relay.types import is_dynamic
from tests.frontends.pytorch.torch_models import Computes, check, imported, real, same


class Small(nn.Module):
    """Two layers that share a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.register_buffer("shift", torch.arange(4.0))

    def forward(self, x):
        return F.relu(self.second(F.relu(self.first(x)) + self.shift))


def evaluated(mod, params, *arrays):
    function = mod["main"]
    weights = [params[var.name_hint].numpy() for var in function.params[len(arrays) :]]
    return interpreter.evaluate(function, [*arrays, *weights], mod)


@pytest.fixture(scope="module")
def small():
    torch.manual_seed(0)
    return Small().eval()


X = real(3, 4, dtype=torch.float32)


@pytest.mark.parametrize("form", ["module", "program", "traced", "scripted", "infos"])
def test_every_form_of_a_model(small, form):
    if form == "program":
        mod, params = from_pytorch(torch.export.export(small, (X,)))
    elif form in ("traced", "scripted"):
        script = torch.jit.trace(small, (X,)) if form == "traced" else torch.jit.script(small)
        mod, params = from_pytorch(script, [("input", (3, 4))])
    elif form == "infos":
        mod, params = from_pytorch(small, [("input", ((3, 4), "float32"))])
    else:
        mod, params = from_pytorch(small, example_inputs=(X,))
    first = mod["main"].params[0]
    assert first.name_hint == ("x" if form in ("module", "program") else "input")
    assert first.type_annotation.concrete_shape == (3, 4)
    np.testing.assert_allclose(evaluated(mod, params, X.numpy()), small(X).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_an_open_size_of_a_program_is_the_number_given(small):
    program = torch.export.export(small, (X,), dynamic_shapes=({0: torch.export.Dim("n")},))
    mod, params = from_pytorch(program, [("x", (3, 4))])
    assert mod["main"].params[0].type_annotation.concrete_shape == (3, 4)
    np.testing.assert_allclose(evaluated(mod, params, X.numpy()), small(X).detach().numpy(), rtol=1e-5, atol=1e-6)
    mod, _ = from_pytorch(program, [("x", (None, 4))])
    assert str(mod["main"].params[0].type_annotation.shape[0]) == "x_d0"


def test_weights_have_the_paths_of_attributes_and_are_not_copied(small):
    mod, params = from_pytorch(small, example_inputs=(X,))
    assert sorted(params) == ["first.bias", "second.bias", "second.weight", "shift"]  # one weight is used twice
    assert [var.name_hint for var in mod["main"].params] == ["x", *params]
    assert np.shares_memory(np.from_dlpack(params["second.weight"]), small.first.weight.detach().numpy())
    assert np.shares_memory(np.from_dlpack(params["shift"]), small.shift.numpy())
    _, friendly = from_pytorch(small, example_inputs=(X,), use_parser_friendly_name=True)
    assert "first_bias" in friendly
    frozen, none = from_pytorch(small, example_inputs=(X,), freeze_params=True)
    assert none == {}
    assert len(frozen["main"].params) == 1


def test_a_small_model_is_built(small):
    mod, params = from_pytorch(small, example_inputs=(X,))
    lib = relay.build(mod, target="llvm", params=params)
    np.testing.assert_allclose(lib.run([X.numpy()])[0], small(X).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_spans_name_nodes_and_modules(small):
    plain, _ = from_pytorch(small, example_inputs=(X,))
    scoped, _ = from_pytorch(small, example_inputs=(X,), preserve_pytorch_scopes=True)
    assert plain["main"].body.span.startswith("relu")
    assert any("first.linear" in str(call.span) for call in calls(scoped["main"].body))


def calls(expression):
    from loopwright.relay.visitor import post_order

    return [one for one in post_order(expression) if isinstance(one, relay.Call)]


def test_the_exported_graph_is_written(small, tmp_path):
    from_pytorch(small, example_inputs=(X,), export_renamed_c_graph_path=tmp_path / "graph.txt")
    assert "aten.linear" in (tmp_path / "graph.txt").read_text()


def test_converters_of_ones_own(small):
    def doubled(inputs, types):
        assert types == ["float32"]
        return relay.multiply(inputs[0], relay.const(2.0))

    mod, params = from_pytorch(Computes(F.relu), example_inputs=(X,), custom_convert_map={"aten::relu": doubled})
    np.testing.assert_array_equal(evaluated(mod, params, X.numpy()), 2 * X.numpy())
    # One that torch would express by others is kept for the converter.
    mod, params = from_pytorch(Computes(F.mish), example_inputs=(X,), custom_convert_map={"aten::mish": doubled})
    np.testing.assert_array_equal(evaluated(mod, params, X.numpy()), 2 * X.numpy())


# Sizes that stay open.


def test_open_sizes_by_name():
    mod, _ = from_pytorch(
        Computes(lambda x, y: torch.cat([x, y], 1)), [("x", ("n", 3)), ("y", (("n", None), "float32"))]
    )
    x, y = mod["main"].params
    assert [str(size) for size in (*x.type_annotation.shape, *y.type_annotation.shape)] == ["n", "3", "n", "y_d1"]
    for rows, columns in ((1, 2), (7, 5)):
        arrays = [np.ones((rows, 3), "f"), np.ones((rows, columns), "f")]
        assert interpreter.evaluate(mod["main"], arrays, mod).shape == (rows, 3 + columns)


def everything_open(x):
    batch, length, width = x.shape
    places = torch.arange(length, device=x.device)
    y = x.reshape(batch * length, width) / length + batch
    z = y.view(batch, length, 2, width // 2).transpose(1, 2)
    mask = places[None, :] <= places[:, None]
    scores = (z @ z.transpose(-1, -2)).masked_fill(~mask, -torch.inf).softmax(-1)
    out = (scores @ z).transpose(1, 2).reshape(batch, length, width)
    return out, out[:, -1], out[:, :2], out[:, 1:].mean(1), x.new_zeros(batch, 2), places, F.pad(out, (0, 0, 1, 0))


def test_open_sizes_in_shapes_and_numbers():
    x = real(2, 6, 8)
    sizes = (({0: Dim("batch"), 1: Dim("length", min=3, max=100)},),)  # of *args
    compiled = imported(everything_open, x, dynamic_shapes=sizes)
    assert is_dynamic(compiled.mod["main"].params[0].type_annotation)
    for batch, length in ((2, 6), (1, 3), (5, 17)):
        x = real(batch, length, 8)
        same(compiled(x), everything_open(x))


def test_open_sizes_are_compiled_once():
    def rows(x):
        batch, length, width = x.shape
        return (x.reshape(batch * length, width) / length).relu().view(batch, length, 2, -1).sum(-1)

    sizes = (({0: Dim("batch"), 1: Dim("length", min=2)},),)
    compiled = loopwright.compile(Computes(rows), (real(2, 6, 8, dtype=torch.float32),), dynamic_shapes=sizes)
    for batch, length in ((2, 6), (1, 3), (5, 17)):
        x = real(batch, length, 8, dtype=torch.float32)
        same(compiled(x), rows(x))
    assert compiled.library is not None


def test_a_size_that_is_a_multiple():
    half = Dim("half", max=50)
    compiled = imported(Computes(lambda x: x.view(2, -1).sum(0)), real(6, 4), dynamic_shapes=(({0: 2 * half},),))
    for rows in (2, 6, 10):
        x = real(rows, 4)
        same(compiled(x), x.view(2, -1).sum(0))


def test_numbers_read_out_of_tensors():
    def scaled(x):
        return x * x.sum().item() + x.max().item()

    check(scaled, real(3))


# Branches and loops.


def test_cond():
    def branches(x):
        return torch.cond(x.sum() > 0, lambda x: (x + 1, x.sum()), lambda x: (x * 2, x.max()), (x,))

    compiled = imported(branches, real(3))
    for x in (torch.ones(3).double(), -torch.ones(3).double()):
        same(compiled(x), branches(x))


def test_while_loop():
    def doubled(x):
        return torch.while_loop(lambda n, x: x.sum() < 100, lambda n, x: (n + 1, x * 2), (torch.tensor(0), x))

    compiled = imported(doubled, torch.ones(3).double())
    for x in (torch.ones(3).double(), 1000 * torch.ones(3).double()):
        same(tuple(compiled(x)), tuple(doubled(x)))


# Structure of arguments and results.


def test_structure_of_arguments_and_results():
    class Structured(nn.Module):
        def forward(self, pair, *, scale=None, flag=True):
            a, b = pair
            return {"sum": a + b, "rest": (a * scale if flag else a, None)}

    a, b = real(3), real(3, seed=1)
    compiled = CompiledModule(
        Structured(), ((a, b),), {"scale": torch.tensor(2.0).double()}, make_runner=_interpreted()
    )
    same(compiled((a, b), scale=torch.tensor(2.0).double()), Structured()((a, b), scale=torch.tensor(2.0).double()))
    arrays = compiled((a.numpy(), b.numpy()), scale=np.float64(3))
    assert isinstance(arrays["sum"], np.ndarray)
    np.testing.assert_array_equal(arrays["rest"][0], a.numpy() * 3)
    assert arrays["rest"][1] is None


def _interpreted():
    from loopwright.frontends.common.runners import interpreted

    return interpreted


def test_inputs_that_do_not_fit(small):
    compiled = imported(small, X)
    for args, text in [
        ((), r"the model takes 1 inputs \(x\).* and 0 are given"),
        ((X.double(),), "the input 'x' has dtype float64, expected float32"),
        ((X[:, :3],), r"the input 'x' has shape \(3, 3\), expected Tensor\[\(3, 4\), float32\]"),
    ]:
        with pytest.raises(WrongInputs, match=text):
            compiled(*args)
    tied = imported(lambda x, y: x + y, real(2), real(2), dynamic_shapes=(({0: (n := Dim("n"))}, {0: n}),))
    with pytest.raises(WrongInputs, match=r"the size .* is 3 by axis 0 of .*, and 4 by axis 0"):
        tied(real(3), real(4))


# What is refused.


def test_what_is_no_model():
    with pytest.raises(NotAModel, match=r"a model is a torch\.nn\.Module"):
        from_pytorch(5)


def test_a_module_needs_inputs(small):
    for read in (from_pytorch, loopwright.compile):  # both take what the hint names in the second place
        with pytest.raises(InputsNeeded, match="Small: no inputs are given") as caught:
            read(small)
        assert caught.value.hint == 'give tensors behind the model, (x,), or names and shapes, [("x", (1, 3))]'


def test_all_missing_operators_are_named_at_once():
    def unknown(x):
        return torch.special.i0e(x).sum() + torch.linalg.eigvalsh(x @ x.T) + torch.special.i0e(x + 1)

    with pytest.raises(
        OpNotImplemented, match=r"not implemented: \['aten::_linalg_eigh', 'aten::special_i0e'\]"
    ) as caught:
        from_pytorch(Computes(unknown), example_inputs=(real(3, 3),))
    assert isinstance(caught.value, NotImplementedError)
    assert "special_i0e, special_i0e_1" in str(caught.value)


def test_what_torch_cannot_export():
    with pytest.raises(CannotExport, match=r"Computes cannot be exported: torch\.export failed"):
        from_pytorch(Computes(lambda x: x if x.sum() > 0 else -x), example_inputs=(X,))


def test_training_is_refused():
    with pytest.raises(ChangesState, match="the model changes running_mean, running_var, num_batches_tracked"):
        from_pytorch(nn.BatchNorm1d(4).train(), example_inputs=(X,))
    with pytest.raises(BadTorchNode, match="dropping elements, as in training is not supported"):
        from_pytorch(nn.Dropout(0.5).train(), example_inputs=(X,))


def test_complex_numbers_are_refused():
    with pytest.raises(UnsupportedTorchType, match="the input 'input' is of type complex64, which is not supported"):
        from_pytorch(nn.Identity(), example_inputs=(X.to(torch.complex64),))


def test_an_input_changed_in_place_is_warned_of():
    with pytest.warns(UserWarning, match="changes its input input in place"):
        mod, _ = from_pytorch(nn.ReLU(inplace=True), example_inputs=(X,))
    x = X.numpy().copy()
    np.testing.assert_array_equal(interpreter.evaluate(mod["main"], [x], mod), np.maximum(x, 0))


def test_every_core_operator_has_a_converter():
    """Those that torch promises to come down to, but for training, complex numbers and numbers beside tensors."""
    known = set(supported_operators())
    core = {
        str(op._schema.name)
        for packet in (getattr(torch.ops.aten, name) for name in dir(torch.ops.aten))
        for op in (getattr(packet, overload) for overload in getattr(packet, "overloads", list)())
        if torch.Tag.core in op.tags
    }
    missing = {
        name.removeprefix("aten::")
        for name in core
        if name not in known and not any(one.startswith(f"{name}.") for one in known)
    }
    training = {name for name in missing if name.endswith("_backward")}
    assert missing - training - {"col2im", "resize_"} == {  # torch expresses those by others
        *{"_fft_c2r", "_fft_r2c"},  # complex numbers
        *{"_local_scalar_dense", "sym_is_contiguous", "sym_numel", "sym_size", "sym_storage_offset", "sym_stride"},
    }
