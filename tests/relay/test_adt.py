"""Data types of one's own: inference, text, JSON, the interpreter, the vm, and what is refused."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import relay
from loopwright.ir import structural_equal
from loopwright.relay.errors import CannotCompile, NothingMatches, TypeMismatch

c = relay.const


@pytest.fixture
def lists():
    mod = relay.IRModule()
    prelude = relay.Prelude(mod)
    List, cons, nil = mod.get_type("List")
    return mod, prelude, List, cons, nil


def listed(value):
    found = []
    while value.constructor.name_hint == "Cons":
        found.append(value[0])
        value = value[1]
    return found


def of(cons, nil, *numbers):
    made = nil()
    for number in reversed(numbers):
        made = cons(c(number), made)
    return made


def run(mod, expression):
    return relay.create_executor("debug", mod).evaluate(expression)


def test_prelude_functions_on_lists(lists):
    mod, p, _, cons, nil = lists
    xs = of(cons, nil, 1, 2, 3)
    x, a, b = relay.var("x"), relay.var("a"), relay.var("b")
    minus = relay.Function([a, b], a - b)
    assert [int(run(mod, e)) for e in (p.length(xs), p.sum(xs), p.hd(xs), p.nth(xs, c(2)))] == [3, 6, 1, 3]
    assert listed(run(mod, p.map(relay.Function([x], x * c(10)), xs))) == [10, 20, 30]
    assert listed(run(mod, p.filter(relay.Function([x], relay.greater(x, c(1))), xs))) == [2, 3]
    assert listed(run(mod, p.rev(xs))) == [3, 2, 1]
    assert listed(run(mod, p.concat(xs, p.tl(xs)))) == [1, 2, 3, 2, 3]
    assert listed(run(mod, p.update(xs, c(1), c(9)))) == [1, 9, 3]
    assert listed(run(mod, p.zip(xs, p.rev(xs)))) == [[1, 3], [2, 2], [3, 1]]
    assert int(run(mod, p.foldl(minus, c(0), xs))) == -6
    assert int(run(mod, p.foldr(minus, c(0), xs))) == 2
    assert int(run(mod, p.foldr1(minus, xs))) == 2
    last, running = run(mod, p.map_accuml(relay.Function([a, b], relay.Tuple([a + b, a * b])), c(0), xs))
    assert int(last) == 6 and listed(running) == [0, 2, 9]
    last, running = run(mod, p.map_accumr(relay.Function([a, b], relay.Tuple([a + b, a * b])), c(0), xs))
    assert int(last) == 6 and listed(running) == [5, 6, 0]


def test_options_and_trees(lists):
    mod, p, _, cons, nil = lists
    some, none = mod.get_type("Option")[1:]
    rose = p.get_ctor("Tree", "Rose")
    s = relay.var("s", "int32")
    step = relay.Function([s], relay.If(relay.less(s, c(4)), some(relay.Tuple([s + c(1), s * s])), none()))
    assert listed(run(mod, p.unfoldr(step, c(0)))) == [0, 1, 4, 9]
    assert listed(run(mod, p.unfoldl(step, c(0)))) == [9, 4, 1, 0]
    tree = rose(c(1), cons(rose(c(2), nil()), cons(rose(c(3), nil()), nil())))
    assert int(run(mod, p.size(tree))) == 3
    assert int(run(mod, p.tmap(relay.Function([s], s + c(1)), tree))[0]) == 2
    assert int(run(mod, p.iterate(relay.Function([s], s + s), c(5))(c(1)))) == 32
    with pytest.raises(KeyError, match="Tree has Rose, and no 'Leaf'"):
        p.get_ctor("Tree", "Leaf")


def test_a_long_list_does_not_nest_too_deep(lists):
    mod, p, _, cons, nil = lists
    s = relay.var("s", "int32")
    xs = of(cons, nil, *range(600))
    assert int(run(mod, p.sum(p.map(relay.Function([s], s + c(1)), xs)))) == 180300


def test_text_and_json_give_the_same_module(lists):
    mod = lists[0]
    text = mod.astext()
    assert "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}" in text and "match? (%xs) {" in text
    assert structural_equal(relay.parse(text), mod)
    loaded = lw.ir.load_json(lw.ir.save_json(mod))
    assert structural_equal(loaded, mod) and len(loaded.type_definitions) == 3


def test_patterns_of_one_module_differ():
    text = (
        "type L {{ One(int32), Two(int32, int32), }}\n"
        "def @main(%x: L) -> int32 {{ match (%x) {{ One(%a) => %a, Two({}) => %b, }} }}"
    )
    one, other = relay.parse(text.format("%b, _")), relay.parse(text.format("_, %b"))
    assert not structural_equal(one, other)
    assert structural_equal(one, relay.parse(text.format("%b, _")))


def test_a_type_made_by_hand_is_inferred_and_matched():
    A = relay.TypeVar("A")
    box = relay.GlobalTypeVar("Box")
    full, empty = relay.Constructor("Full", [A, A], box), relay.Constructor("Empty", [], box)
    mod = relay.IRModule()
    mod[box] = relay.TypeData(box, [A], [full, empty])
    x, y = relay.var("x"), relay.var("y")
    pattern = relay.PatternConstructor(full, [relay.PatternVar(x), relay.PatternVar(y)])
    data = relay.var("data", box(relay.TensorType((2,), "float32")))
    match = relay.Match(data, [relay.Clause(pattern, x + y), relay.Clause(relay.PatternWildcard(), c([0.0, 1.0]))])
    mod["sum"] = relay.Function([data], match)
    mod["main"] = relay.Function([], mod.get_global_var("sum")(full(c([1.0, 2.0]), c([3.0, 4.0]))))
    typed = relay.transform.InferType()(mod)
    assert str(typed["main"].body.checked_type) == "Tensor[(2), float32]"
    np.testing.assert_array_equal(relay.create_executor("debug", mod).evaluate()(), [4, 6])
    assert relay.analysis.unmatched_cases(match) == []
    left = relay.analysis.unmatched_cases(relay.Match(data, match.clauses[:1]))
    assert [str(one) for one in left] == ["Empty"]


def test_what_is_left_of_nested_patterns(lists):
    _, _, _, cons, nil = lists
    inner = relay.PatternConstructor(cons, [relay.PatternWildcard(), relay.PatternConstructor(nil)])
    match = relay.Match(nil(), [relay.Clause(inner, c(1))])
    assert [repr(one) for one in relay.analysis.unmatched_cases(match)] == ["Cons(_, Cons(_, _))", "Nil"]


def test_types_that_do_not_fit_are_refused(lists):
    mod, p, _, cons, nil = lists
    with pytest.raises(TypeMismatch, match=r"List\[float32\] is given, List\[int32\] is wanted"):
        run(mod, cons(c(1), cons(c(2.0), nil())))
    clause = relay.Clause(relay.PatternConstructor(nil), c(1))
    with pytest.raises(TypeMismatch, match=r"the pattern Nil is unable .* it is of List, and the value of int32"):
        run(mod, relay.Match(c(1), [clause]))
    short = relay.Clause(relay.PatternConstructor(cons), c(1))
    with pytest.raises(TypeMismatch, match="the pattern Cons has 0 fields, and Cons has 2"):
        run(mod, relay.Match(nil(), [short]))
    with pytest.raises(NothingMatches, match=r"Nil\(\) fits no pattern of a match: Cons"):
        run(mod, p.hd(nil()))


def test_the_vm_interprets_and_says_why(lists):
    mod, p, _, cons, nil = lists
    n, s = relay.var("n", "int32"), relay.var("s", "int32")
    mod["main"] = relay.Function([n], p.sum(p.map(relay.Function([s], s * n), of(cons, nil, 1, 2, 3))))
    assert int(relay.create_executor("vm", mod).evaluate()(np.int32(7))) == 42
    exe = relay.vm.compile(mod, "llvm")
    assert "values of data types (List)" in exe.stats
    again = relay.vm.Executable.load_exec(*exe.save())
    assert int(relay.vm.VirtualMachine(again).run(np.int32(2)).numpy()) == 12
    with pytest.raises(CannotCompile, match="a native function holds tensors"):
        relay.build(mod, "llvm")


def test_graph_passes_keep_matches(lists):
    mod, p, _, cons, nil = lists
    x = relay.var("x", "int32")
    mod["main"] = relay.Function([x], p.length(cons(x + c(1), nil())))
    changed = relay.transform.RemoveUnusedFunctions()(relay.transform.InferType()(mod))
    assert "foldl" in changed and "zip" not in changed and len(changed.type_definitions) == 3
    assert int(relay.create_executor("debug", changed).evaluate()(np.int32(1))) == 1


def first_or(xs, cons, otherwise):
    """The first number of a list and one, as a function of the list."""
    h = relay.Var("h")
    fits = relay.PatternConstructor(cons, [relay.PatternVar(h), relay.PatternWildcard()])
    return relay.Match(xs, [relay.Clause(fits, h + c(1)), relay.Clause(relay.PatternWildcard(), otherwise)])


@pytest.mark.parametrize("name", ["Inline", "PartialEvaluate", "ToANormalForm", "ToBasicBlockNormalForm"])
def test_clauses_stay_blocks_and_copies_have_variables_of_their_own(lists, name):
    mod, _, List, cons, nil = lists
    xs, x = relay.Var("xs", List(relay.scalar_type("int32"))), relay.var("x", "int32")
    first = relay.Function([xs], first_or(xs, cons, c(0)), relay.scalar_type("int32")).with_attr("Inline", 1)
    mod["first"] = first
    calls = [relay.Call(mod.get_global_var("first"), [cons(value, nil())]) for value in (x, x * c(10))]
    mod["main"] = relay.Function([x], calls[0] + calls[1] + first_or(nil(), cons, x))
    changed = getattr(relay.transform, name)()(relay.transform.InferType()(mod))
    assert relay.analysis.well_formed(changed)
    for version in (changed, relay.fromtext(str(changed))):
        assert int(relay.create_executor("debug", version).evaluate()(np.int32(3))) == 4 + 31 + 3


def test_clauses_keep_their_type_in_mixed_precision(lists):
    mod, _, List, cons, _ = lists
    x, w = relay.var("x", shape=(2, 4)), relay.var("w", shape=(4, 4))
    xs, h = relay.Var("xs", List(relay.TensorType((2, 4)))), relay.Var("h")
    fits = relay.PatternConstructor(cons, [relay.PatternVar(h), relay.PatternWildcard()])
    clauses = [relay.Clause(fits, relay.nn.dense(h, w)), relay.Clause(relay.PatternWildcard(), x)]
    mod["main"] = relay.Function([x, w, xs], relay.Match(xs, clauses))
    changed = relay.transform.ToMixedPrecision()(relay.transform.InferType()(mod))
    assert 'dtype="float16"' in str(relay.transform.InferType()(changed)["main"])


def test_walks_over_types(lists):
    List = lists[2]

    class Halved(relay.TypeMutator):
        def visit_tensor_type(self, of):
            return relay.TensorType(of.shape, "float16")

    class Met(relay.TypeVisitor):
        def visit_global_type_var(self, of):
            met.append(of.name)

    met = []
    of = relay.FuncType([List(relay.scalar_type("float32"))], relay.TupleType(()))
    assert str(Halved().visit(of)) == "fn (List[float16]) -> ()"
    Met().visit(of)
    assert met == ["List"] and relay.TypeMutator().visit(of) is of
