"""What `@node` generates: constructors, conversions, children, rebuild, with_, and nodes that cannot be changed."""

from __future__ import annotations

import pytest

from loopwright import ir
from loopwright.ir.node import FieldKind, Node, derived, node, rewrite_mapping, rewrite_tuple


@node
class Leaf(Node):
    """A node without children."""

    name: str
    tags: tuple[str, ...] = ()
    length: int = derived("len(name)")


@node(binds="own")
class Branch(Node):
    """One field of every kind."""

    own: Leaf
    one: Leaf
    maybe: Leaf | None
    many: tuple[Leaf, ...]
    named: dict[str, int]
    extra: int = 7


@node
class Longer(Leaf):
    """A node class that adds a field to another."""

    more: Leaf | None = None


def branch(**changes: object) -> Branch:
    fields: dict = {"own": Leaf("own"), "one": Leaf("a"), "maybe": None, "many": (Leaf("b"), Leaf("c")), "named": {}}
    return Branch(**{**fields, **changes})


def test_constructors_take_positions_names_and_defaults():
    leaf = Leaf("abc")
    assert (leaf.name, leaf.tags, leaf.length, leaf.span) == ("abc", (), 3, None)
    assert Leaf(name="x", tags=["p", "q"], span="here").tags == ("p", "q")  # lists become tuples
    assert branch().extra == 7
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'name'"):
        Leaf()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="length"):
        Leaf("a", length=3)  # type: ignore[call-arg]


def test_field_kinds_follow_the_annotations():
    kinds = {field.name: field.kind for field in Branch.node_fields}
    assert kinds == {
        "own": FieldKind.NODE,
        "one": FieldKind.NODE,
        "maybe": FieldKind.OPTIONAL,
        "many": FieldKind.NODES,
        "named": FieldKind.DATA,
        "extra": FieldKind.DATA,
    }
    assert [field.name for field in Branch.node_fields if field.binds] == ["own"]
    assert [field.name for field in ir.Call.node_fields if field.kind is FieldKind.NODES] == ["args"]
    assert {field.name: field.kind for field in ir.PrimFunc.node_fields}["buffer_map"] is FieldKind.MAPPING


def test_subclasses_inherit_fields():
    longer = Longer("abc", (), Leaf("x"))
    assert [field.name for field in Longer.node_fields] == ["name", "tags", "more"]
    assert [child.name for child in longer.children()] == ["x"]


def test_children_come_in_field_order_without_what_the_node_defines():
    assert [child.name for child in branch().children()] == ["a", "b", "c"]
    assert [child.name for child in branch(maybe=Leaf("m")).children()] == ["a", "m", "b", "c"]
    assert list(Leaf("x").children()) == []


def test_rebuild_gives_the_same_object_when_nothing_changes():
    tree = branch(maybe=Leaf("m"))
    assert tree.rebuild(lambda child: child) is tree
    changed = tree.rebuild(lambda child: Leaf(child.name.upper()))
    assert [child.name for child in changed.children()] == ["A", "M", "B", "C"]
    assert changed.own is tree.own
    assert changed.extra == tree.extra
    last = tree.rebuild(lambda child: Leaf("z") if child.name == "c" else child)
    assert last.one is tree.one and last.many[0] is tree.many[0] and last.many[1].name == "z"


def test_rebuild_keeps_the_span():
    tree = Branch(Leaf("o"), Leaf("a"), None, (), {}, span="line 3")
    assert tree.rebuild(lambda child: Leaf("b")).span == "line 3"


def test_with_makes_a_changed_copy():
    tree = branch()
    copy = tree.with_(extra=8)
    assert (copy.extra, copy.one, tree.extra) == (8, tree.one, 7)
    assert tree.with_(extra=tree.extra, one=tree.one) is tree
    assert Leaf("ab", span="s").with_(name="abcd").length == 4  # computed again
    assert Leaf("ab", span="s").with_(name="abcd").span == "s"
    with pytest.raises(TypeError, match="Leaf has no field colour; its fields are name, tags"):
        Leaf("a").with_(name="b", colour=1)


def test_nodes_cannot_be_changed_under_tests():
    leaf = Leaf("a")
    with pytest.raises(AttributeError, match=r"Leaf is immutable: use with_\(name=...\) to make a changed copy"):
        leaf.name = "b"
    with pytest.raises(AttributeError, match="Add is immutable"):
        (ir.Var("x") + 1).a = ir.const(2)
    with pytest.raises(AttributeError):
        leaf.colour = 1  # type: ignore[attr-defined]
    assert not hasattr(leaf, "__dict__")


def test_equality_is_identity():
    a = Leaf("a")
    assert a == a
    assert a != Leaf("a")
    assert a.same_as(a) and not a.same_as(Leaf("a"))
    assert len({a, Leaf("a")}) == 2


def test_binds_must_name_a_field():
    with pytest.raises(TypeError, match=r"@node: Bad has no field \['x'\] to bind"):

        @node(binds="x")
        class Bad(Node):
            """No x."""

            y: int


def test_arguments_are_converted():
    add = ir.Add(1, ir.Var("x"))
    assert isinstance(add.a, ir.IntImm) and add.a.value == 1
    call = ir.Call("float32", ir.Op.get("tir.exp"), [1.5])
    assert isinstance(call.args, tuple) and isinstance(call.args[0], ir.FloatImm)
    assert call.dtype is ir.DataType("float32")
    loop = ir.For(ir.Var("i"), 0, 4, ir.ForKind.SERIAL, ir.no_op())
    assert isinstance(loop.extent, ir.IntImm)
    assert ir.IfThenElse(True, ir.no_op()).condition.dtype == "bool"
    axis = ir.IterVar((0, 4), "k", ir.IterType.CommReduce)
    assert ir.Add(axis, 1).a is axis.var


def test_exact_tuples_of_expressions_are_kept():
    indices = (ir.Var("i"), ir.Var("j"))
    assert ir.BufferLoad(ir.decl_buffer((2, 2)), indices).indices is indices


def test_rewriting_containers_keeps_what_is_unchanged():
    a, b = Leaf("a"), Leaf("b")
    items = (a, b)
    assert rewrite_tuple(items, lambda item: item) is items
    assert rewrite_tuple(items, lambda item: b if item is a else item) == (b, b)
    assert rewrite_tuple((), lambda item: a) == ()
    mapping = {"x": a}
    assert rewrite_mapping(mapping, lambda item: item) is mapping
    assert rewrite_mapping(mapping, lambda item: b) == {"x": b}
