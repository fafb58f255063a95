"""The pass manager: contexts, settings, sequences, decorators and instruments."""

from __future__ import annotations

import threading

import pytest

from loopwright.ir import IntImm, IRModule, PrimFunc, no_op
from loopwright.ir.instrument import PassInstrument, PassTimingInstrument, ShowAfterEach, pass_instrument
from loopwright.ir.pass_combinators import Apply, ApplyPassToFunction, Filter, NoFunctionMatches
from loopwright.ir.pass_config import BadConfigValue, UnknownConfig, UnrollLoopConfig
from loopwright.ir.pass_context import PassContext, UnknownPassWarning
from loopwright.ir.pass_decorators import NoOptLevel, module_pass, prim_func_pass
from loopwright.ir.passes import BadPassResult, NotAModule, Sequential, function_pass
from loopwright.runtime.errors import LoopwrightError


def empty(name: str = "main") -> PrimFunc:
    return PrimFunc([], no_op(), attrs={"global_symbol": name})


def module(*names: str) -> IRModule:
    return IRModule({name: empty(name) for name in names or ("main",)})


def marking(name: str, opt_level: int = 0, required: tuple[str, ...] = ()):
    @prim_func_pass(opt_level=opt_level, name=name, required=required)
    def mark(func, mod, ctx):
        return func.with_attr("ran", [*func.attrs.get("ran", []), name])

    return mark


def ran(mod: IRModule) -> list[str]:
    return mod["main"].attrs.get("ran", [])


# --- contexts and settings


def test_contexts_nest_and_are_left():
    assert PassContext.current().opt_level == 2
    with PassContext(opt_level=3) as outer:
        with PassContext(opt_level=1):
            assert PassContext.current().opt_level == 1
        assert PassContext.current() is outer
    assert PassContext.current().opt_level == 2


def test_one_context_can_be_entered_twice():
    context = PassContext(opt_level=0)
    with context, context:
        assert PassContext.current() is context
    assert PassContext.current() is not context


def test_a_thread_has_its_own_context():
    seen = []
    with PassContext(opt_level=0):
        thread = threading.Thread(target=lambda: seen.append(PassContext.current().opt_level))
        thread.start()
        thread.join()
    assert seen == [2]


def test_settings_have_defaults():
    assert PassContext().setting("tir.noalias") is True
    assert PassContext(config={"tir.noalias": False}).setting("tir.noalias") is False
    assert PassContext.list_configs()["tir.disable_vectorize"]["type"] == "bool"


def test_settings_that_no_pass_reads_are_checked_all_the_same():
    name = "relay.backend.use_meta_schedule_dispatch"
    assert PassContext.list_configs()[name]["meaning"] == "scripts may switch it; no pass of ours reads it"
    assert PassContext(config={name: 4}).setting(name) == 4
    assert PassContext().setting("relay.backend.use_meta_schedule") is False
    with pytest.raises(BadConfigValue, match=f"setting '{name}' takes int, got str 'large'"):
        PassContext(config={name: "large"})


def test_an_unknown_setting_names_the_candidates():
    with pytest.raises(
        UnknownConfig, match=r"no setting is called 'tir.disable_vectorise' [\s\S]*the settings are .*tir.enable"
    ):
        PassContext(config={"tir.disable_vectorise": True})
    with pytest.raises(AttributeError, match=r"did you mean tir\.disable_vectorize"):
        PassContext(config={"tir.disable_vectorise": True})


def test_a_setting_of_the_wrong_type_says_which_it_takes():
    with pytest.raises(BadConfigValue, match=r"'tir\.noalias' takes bool, got int 2"):
        PassContext(config={"tir.noalias": 2})
    with pytest.raises(BadConfigValue, match=r"max_depth' takes int, got bool True"):
        PassContext(config={"relay.FuseOps.max_depth": True})


def test_one_and_zero_are_truth_values_for_a_setting():
    given = {"tir.noalias": 0, "tir.disable_vectorize": IntImm("bool", 1), "tir.UnrollLoop": {"explicit_unroll": 0}}
    config = PassContext(config=given).config
    assert config["tir.noalias"] is False and config["tir.disable_vectorize"] is True
    assert config["tir.UnrollLoop"].explicit_unroll is False
    assert PassContext(config={"relay.FuseOps.max_depth": IntImm("int32", 5)}).config["relay.FuseOps.max_depth"] == 5


def test_a_dict_becomes_an_option_struct():
    config = PassContext(config={"tir.UnrollLoop": {"auto_max_step": 16}}).config["tir.UnrollLoop"]
    assert config == UnrollLoopConfig(auto_max_step=16)
    with pytest.raises(UnknownConfig, match=r"'tir\.UnrollLoop.max_step'"):
        PassContext(config={"tir.UnrollLoop": {"max_step": 16}})
    with pytest.raises(BadConfigValue, match=r"'tir\.UnrollLoop.auto_max_step' takes int, got str 'many'"):
        PassContext(config={"tir.UnrollLoop": {"auto_max_step": "many"}})


def test_pass_lists_are_lists():
    with pytest.raises(LoopwrightError, match="disabled_pass is a list of pass names, got 'simplify'"):
        PassContext(disabled_pass="simplify")


# --- passes and sequences


def test_a_pass_that_changes_nothing_returns_the_same_objects():
    @function_pass
    def same(func):
        return func

    mod = module()
    assert same(mod) is mod
    func = empty()
    assert same(func) is func
    assert same.info.name == "same"


def test_a_function_pass_runs_on_functions_and_modules():
    @function_pass
    def mark(func):
        """Marks."""
        return func.with_attr("marked", 1)

    assert mark(empty()).attrs["marked"] == 1
    assert [func.attrs["marked"] for _, func in mark(module("a", "b")).functions_items()] == [1, 1]
    assert mark.__doc__ == "Marks."


def test_sequential_runs_in_order_and_respects_levels():
    passes = [marking("one"), marking("two", opt_level=3), marking("three")]
    assert ran(Sequential(passes)(module())) == ["one", "three"]
    with PassContext(opt_level=3):
        assert ran(Sequential(passes)(module())) == ["one", "two", "three"]
    with PassContext(required_pass=["two"], disabled_pass=["one"]):
        assert ran(Sequential(passes)(module())) == ["two", "three"]


def test_a_pass_called_directly_runs_at_any_level():
    with PassContext(opt_level=0, disabled_pass=["high"]):
        assert ran(marking("high", opt_level=9)(module())) == ["high"]


def test_required_passes_run_before():
    marking("needed_by_main_pass")
    assert ran(Sequential([marking("main_pass", required=("needed_by_main_pass",))])(module())) == [
        "needed_by_main_pass",
        "main_pass",
    ]
    with pytest.raises(LoopwrightError, match="pass asks requires pass 'nobody', which does not exist"):
        Sequential([marking("asks", required=("nobody",))])(module())


def test_module_pass_forms():
    @module_pass(opt_level=0)
    def add(mod, ctx):
        mod = mod.copy()
        mod["added"] = empty("added")
        return mod

    @module_pass(opt_level=0)
    class Rename:
        def __init__(self, name):
            self.name = name

        def transform_module(self, mod, ctx):
            return IRModule({self.name: mod["main"]})

    assert "added" in add(module())
    renamed = Rename("new")
    assert "new" in renamed(module())
    assert renamed.name == "new" and renamed.info.name == "Rename"


def test_prim_func_pass_as_a_class():
    @prim_func_pass(opt_level=1, name="tag")
    class Tag:
        def __init__(self, value):
            self.value = value

        def transform_function(self, func, mod, ctx):
            return func.with_attr("tag", self.value)

    assert Tag(7)(module())["main"].attrs["tag"] == 7
    assert Tag(7).info.name == "tag" and Tag(7).info.opt_level == 1


def test_apply_and_filter():
    mod = Apply(lambda func: func.with_attr("seen", True))(module("a", "b"))
    assert all(func.attrs["seen"] for _, func in mod.functions_items())
    assert [name for name, _ in Filter(lambda func: func.name == "b")(mod).functions_items()] == ["b"]


def test_mistakes_are_named():
    with pytest.raises(NoOptLevel, match="module_pass: the pass has no opt_level"):
        module_pass(lambda mod, ctx: mod)
    with pytest.raises(NoOptLevel, match="prim_func_pass"):

        @prim_func_pass
        def nothing(func, mod, ctx):
            return func

    with pytest.raises(NotAModule, match="runs on an IRModule or a PrimFunc, got int"):
        marking("m")(3)

    @function_pass
    def forgets(func):
        func.with_attr("a", 1)

    with pytest.raises(BadPassResult, match=r"forgets returned NoneType, not a PrimFunc[\s\S]*return the given object"):
        forgets(module())
    with pytest.raises(LoopwrightError, match="class Empty has no method transform_module"):

        @module_pass(opt_level=0)
        class Empty:
            pass


# --- instruments


class Recorder(PassInstrument):
    def __init__(self, log, name="", veto=()):
        self.log, self.name, self.veto = log, name, veto

    def enter_pass_ctx(self):
        self.log.append(f"{self.name}enter")

    def exit_pass_ctx(self):
        self.log.append(f"{self.name}exit")

    def should_run(self, mod, info):
        return info.name not in self.veto

    def run_before_pass(self, mod, info):
        self.log.append(f"{self.name}before {info.name}")

    def run_after_pass(self, mod, info):
        self.log.append(f"{self.name}after {info.name}")


def test_instruments_see_every_pass():
    log = []
    with PassContext(instruments=[Recorder(log)]):
        marking("a")(module())
    assert log == ["enter", "before a", "after a", "exit"]


def test_all_instruments_must_agree():
    log = []
    with PassContext(instruments=[Recorder(log, "1 "), Recorder(log, "2 ", veto=("a",))]):
        result = Sequential([marking("a"), marking("b")])(module())
    assert ran(result) == ["b"]
    assert "1 before a" not in log and "2 before b" in log


def test_an_instrument_that_fails_to_enter_lets_the_others_out():
    log = []

    class Fails(Recorder):
        def enter_pass_ctx(self):
            raise ValueError("no entry")

    context = PassContext(instruments=[Recorder(log, "1 "), Recorder(log, "2 "), Fails(log)])
    with pytest.raises(ValueError, match="no entry"), context:
        pass
    assert log == ["1 enter", "2 enter", "2 exit", "1 exit"]
    assert context.instruments == []
    assert PassContext.current() is not context


def test_instruments_can_be_exchanged():
    log = []
    with PassContext(instruments=[Recorder(log, "old ")]) as context:
        context.override_instruments([Recorder(log, "new ")])
        marking("a")(module())
    assert log == ["old enter", "old exit", "new enter", "new before a", "new after a", "new exit"]


def test_a_decorated_plain_class_is_an_instrument():
    @pass_instrument
    class Count:
        def __init__(self):
            self.count = 0

        def run_before_pass(self, mod, info):
            self.count += 1

    count = Count()
    assert isinstance(count, PassInstrument)
    with PassContext(instruments=[count]):
        Sequential([marking("a"), marking("b")])(module())
    assert count.count == 3  # the sequence counts, too


def test_timing_shows_inner_passes_below_their_sequence():
    timing = PassTimingInstrument()
    with PassContext(instruments=[timing]):
        Sequential([marking("inner")], name="outer")(module())
    lines = timing.render().splitlines()
    assert lines[0].startswith("outer: ") and lines[1].startswith("  inner: ")
    assert set(timing.seconds()) == {"outer", "inner"}


def test_show_after_each_shows_passes_that_changed_something(monkeypatch):
    monkeypatch.setattr(IRModule, "script", lambda self: f"ran {ran(self)}")
    shown = []

    @function_pass
    def nothing(func):
        return func

    with PassContext(instruments=[ShowAfterEach(write=shown.append)]):
        Sequential([marking("a"), nothing, marking("b")])(module())
    assert [text.splitlines() for text in shown] == [
        ["# after a", "ran ['a']", ""],
        ["# after b", "ran ['a', 'b']", ""],
    ]


def test_show_after_each_can_show_differences(monkeypatch):
    monkeypatch.setattr(IRModule, "script", lambda self: "\n".join(["top", *ran(self), "end"]))
    shown = []
    with PassContext(instruments=[ShowAfterEach(diff=True, write=shown.append)]):
        marking("a")(module())
    assert "+a" in shown[0].splitlines()


def test_a_misspelt_name_in_the_context_is_a_warning_with_what_comes_near():
    @prim_func_pass(opt_level=0, name="tidy_up")
    def tidy(func, mod, ctx):
        return func

    for field in ("disabled_pass", "required_pass"):
        with pytest.warns(UnknownPassWarning, match=f"{field} names 'tidy_upp', but no pass .* did you mean tidy_up"):
            with PassContext(**{field: ["tidy_upp"]}):
                Sequential([tidy])(IRModule())


def test_the_warning_names_the_users_line_whatever_the_users_module_is_called():
    program = "with PassContext(disabled_pass=['unheard_of']):\n    Sequential([])(IRModule())"
    scope = {
        "__name__": "loopwright_kernels",
        "PassContext": PassContext,
        "Sequential": Sequential,
        "IRModule": IRModule,
    }
    with pytest.warns(UnknownPassWarning, match="disabled_pass names 'unheard_of'") as caught:
        exec(compile(program, "kernels.py", "exec"), scope)
    (warning,) = caught
    assert (warning.filename, warning.lineno) == ("kernels.py", 2)


def test_names_that_scripts_know_disable_our_passes(recwarn):
    import loopwright.transform as transform

    seen = []

    @pass_instrument
    class Watch:
        def run_before_pass(self, mod, info):
            seen.append(info.name)

    names = ["tir.LoopPartition", "Simplify", "tir.ThreadSync"]  # the last is not built: nothing to leave out
    with PassContext(disabled_pass=names, instruments=[Watch()]):
        Sequential([transform.partition_loops, transform.simplify, transform.form_fma])(IRModule())
    assert seen == ["sequential", "form_fma"] and not recwarn.list


def test_peer_passes_are_ours_or_say_that_they_are_not_built():
    from loopwright import tir, transform
    from loopwright.compat.pass_names import DEVICE_PASSES, PEER_FORMS, PEER_PASSES
    from loopwright.runtime.errors import NotBuilt

    assert tir.transform.LoopPartition() is transform.partition_loops
    for name, ours in PEER_PASSES.items():
        make = getattr(tir.transform, name)
        if name in PEER_FORMS or name in DEVICE_PASSES:
            continue  # tests/compat/passes
        if name in ("BindTarget", "NarrowDataType", "StorageFlatten"):
            continue  # they take arguments, or are several: tests/transform/test_peer_names.py
        if ours:
            assert make() is getattr(transform, ours)
        else:
            with pytest.raises(NotBuilt, match=f"the pass tir.transform.{name} is not built yet"):
                make()


def test_a_pass_on_some_functions():
    @prim_func_pass(opt_level=0)
    def mark(func, mod, ctx):
        return func.with_attr("seen", len(mod))

    mod = module("conv_1", "conv_2", "dense")
    new = ApplyPassToFunction(mark, "conv_.*")(mod)
    assert [func.attrs.get("seen") for name, func in sorted(new.functions_items())] == [2, 2, None]
    assert ApplyPassToFunction(mark, "con")(mod) is mod
    with pytest.raises(NoFunctionMatches, match="no function matches 'con'; the module has conv_1, conv_2, dense"):
        ApplyPassToFunction(mark, "con", error_if_no_function_matches_regex=True)(mod)


def test_traceable_and_required_travel_with_the_pass():
    @module_pass(opt_level=3, required=["tir.Simplify"], traceable=True)
    def mine(mod, ctx):
        return mod

    assert mine.info.traceable and mine.info.opt_level == 3 and mine.info.required == ("tir.Simplify",)
    with PassContext(opt_level=3):
        Sequential([mine])(IRModule())  # what it requires is found by either name
