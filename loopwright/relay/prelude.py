"""Prelude: lists, options and trees, and the usual functions on them.

    prelude = relay.Prelude(mod)                     adds them to mod
    List, cons, nil = mod.get_type("List")
    xs = cons(x, cons(y, nil()))
    prelude.length(xs);  prelude.map(f, xs);  prelude.foldl(f, zero, xs)

They are written in the text form of graphs, below; print(mod) shows them.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from loopwright.ir.expr import GlobalVar
from loopwright.ir.function import IRModule
from loopwright.relay.expr import Expr
from loopwright.relay.text.parser import parse

_TEXT: Final = """
type List[A] { Cons(A, List[A]), Nil, }
type Option[A] { Some(A), None, }
type Tree[A] { Rose(A, List[Tree[A]]), }

def @id[A](%x: A) -> A { %x }

def @compose[A, B, C](%f: fn (B) -> C, %g: fn (A) -> B) -> fn (A) -> C {
  fn (%x: A) -> C { %f(%g(%x)) }
}

def @flip[A, B, C](%f: fn (A, B) -> C) -> fn (B, A) -> C {
  fn (%b: B, %a: A) -> C { %f(%a, %b) }
}

def @iterate[A](%f: fn (A) -> A, %times: int32) -> fn (A) -> A {
  fn (%x: A) -> A { if (%times <= 0) { %x } else { @iterate(%f, %times - 1)(%f(%x)) } }
}

def @hd[A](%xs: List[A]) -> A { match? (%xs) { Cons(%x, _) => %x } }

def @tl[A](%xs: List[A]) -> List[A] { match? (%xs) { Cons(_, %rest) => %rest } }

def @nth[A](%xs: List[A], %n: int32) -> A {
  if (%n == 0) { @hd(%xs) } else { @nth(@tl(%xs), %n - 1) }
}

def @update[A](%xs: List[A], %n: int32, %v: A) -> List[A] {
  if (%n == 0) { Cons(%v, @tl(%xs)) } else { Cons(@hd(%xs), @update(@tl(%xs), %n - 1, %v)) }
}

def @length[A](%xs: List[A]) -> int32 { @foldl(fn (%n: int32, %x: A) -> int32 { %n + 1 }, 0, %xs) }

def @sum(%xs: List[int32]) -> int32 { @foldl(fn (%a: int32, %b: int32) -> int32 { %a + %b }, 0, %xs) }

def @map[A, B](%f: fn (A) -> B, %xs: List[A]) -> List[B] {
  match (%xs) {
    Cons(%x, %rest) => Cons(%f(%x), @map(%f, %rest)),
    Nil => Nil,
  }
}

def @filter[A](%f: fn (A) -> bool, %xs: List[A]) -> List[A] {
  match (%xs) {
    Cons(%x, %rest) => if (%f(%x)) { Cons(%x, @filter(%f, %rest)) } else { @filter(%f, %rest) },
    Nil => Nil,
  }
}

def @foldl[A, B](%f: fn (A, B) -> A, %acc: A, %xs: List[B]) -> A {
  match (%xs) {
    Cons(%x, %rest) => @foldl(%f, %f(%acc, %x), %rest),
    Nil => %acc,
  }
}

def @foldr[A, B](%f: fn (A, B) -> B, %acc: B, %xs: List[A]) -> B {
  match (%xs) {
    Cons(%x, %rest) => %f(%x, @foldr(%f, %acc, %rest)),
    Nil => %acc,
  }
}

def @foldr1[A](%f: fn (A, A) -> A, %xs: List[A]) -> A {
  match? (%xs) {
    Cons(%x, Nil) => %x,
    Cons(%x, %rest) => %f(%x, @foldr1(%f, %rest)),
  }
}

def @concat[A](%xs: List[A], %ys: List[A]) -> List[A] {
  match (%xs) {
    Cons(%x, %rest) => Cons(%x, @concat(%rest, %ys)),
    Nil => %ys,
  }
}

def @rev[A](%xs: List[A]) -> List[A] {
  @foldl(fn (%done: List[A], %x: A) -> List[A] { Cons(%x, %done) }, Nil, %xs)
}

def @zip[A, B](%xs: List[A], %ys: List[B]) -> List[(A, B)] {
  match ((%xs, %ys)) {
    (Cons(%x, %more), Cons(%y, %rest)) => Cons((%x, %y), @zip(%more, %rest)),
    _ => Nil,
  }
}

def @map_accuml[A, B, C](%f: fn (A, B) -> (A, C), %acc: A, %xs: List[B]) -> (A, List[C]) {
  match (%xs) {
    Cons(%x, %rest) => {
      let %here = %f(%acc, %x);
      let %after = @map_accuml(%f, %here.0, %rest);
      (%after.0, Cons(%here.1, %after.1))
    },
    Nil => (%acc, Nil),
  }
}

def @map_accumr[A, B, C](%f: fn (A, B) -> (A, C), %acc: A, %xs: List[B]) -> (A, List[C]) {
  match (%xs) {
    Cons(%x, %rest) => {
      let %after = @map_accumr(%f, %acc, %rest);
      let %here = %f(%after.0, %x);
      (%here.0, Cons(%here.1, %after.1))
    },
    Nil => (%acc, Nil),
  }
}

def @unfoldr[A, B](%f: fn (A) -> Option[(A, B)], %seed: A) -> List[B] {
  match (%f(%seed)) {
    Some((%next, %x)) => Cons(%x, @unfoldr(%f, %next)),
    None => Nil,
  }
}

def @unfoldl_onto[A, B](%f: fn (A) -> Option[(A, B)], %seed: A, %done: List[B]) -> List[B] {
  match (%f(%seed)) {
    Some((%next, %x)) => @unfoldl_onto(%f, %next, Cons(%x, %done)),
    None => %done,
  }
}

def @unfoldl[A, B](%f: fn (A) -> Option[(A, B)], %seed: A) -> List[B] { @unfoldl_onto(%f, %seed, Nil) }

def @tmap[A, B](%f: fn (A) -> B, %t: Tree[A]) -> Tree[B] {
  match (%t) {
    Rose(%x, %below) => Rose(%f(%x), @map(fn (%one: Tree[A]) -> Tree[B] { @tmap(%f, %one) }, %below)),
  }
}

def @size[A](%t: Tree[A]) -> int32 {
  match (%t) {
    Rose(_, %below) => 1 + @sum(@map(fn (%one: Tree[A]) -> int32 { @size(%one) }, %below)),
  }
}
"""

_NAT = """
type nat { z, s(nat), }

def @nat_add(%a: nat, %b: nat) -> nat { match (%a) { z => %b, s(%less) => s(@nat_add(%less, %b)), } }

def @nat_double(%a: nat) -> nat { match (%a) { z => z, s(%less) => s(s(@nat_double(%less))), } }

def @nat_iterate[A](%f: fn (A) -> A, %times: nat) -> fn (A) -> A {
  match (%times) { z => @id, s(%less) => @compose(%f, @nat_iterate(%f, %less)), }
}
"""


class Prelude:
    """The data types and functions above, in `mod`; each function is an attribute of its name, as a GlobalVar.

    A module that has a function of one of the names keeps its own.
    """

    mod: IRModule

    def __init__(self, mod: IRModule | None = None) -> None:
        self.mod = IRModule() if mod is None else mod
        add_standard(self.mod, "prelude.rly")

    def __getattr__(self, name: str) -> GlobalVar:
        if name.startswith("_") or name not in _prelude():
            raise AttributeError(f"the prelude has no {name!r}; it has {', '.join(var.name for var in _prelude())}")
        return self.mod.get_global_var(name)

    def get_global_var(self, name: str) -> GlobalVar:
        """A function of the module by its name."""
        return self.mod.get_global_var(name)

    def get_type(self, name: str) -> list[Expr]:
        """A data type by its name, and its cases."""
        return self.mod.get_type(name)

    def get_ctor(self, ty_name: str, canonical: str, dtype: str = "") -> Expr:
        """A case of a data type by its name."""
        cases = self.mod.get_type(ty_name)[1:]
        result = next((case for case in cases if case.name_hint == canonical), None)
        if result is None:
            raise KeyError(f"{ty_name} has {', '.join(case.name_hint for case in cases)}, and no {canonical!r}")
        return result


@cache
def _prelude() -> IRModule:
    return parse(_TEXT, "prelude.rly")


@cache
def _nat() -> IRModule:
    return parse(_NAT, "nat.rly", _prelude())


@cache
def core() -> IRModule:
    """What `core.rly` declares."""
    return parse("extern type Storage", "core.rly")


def add_standard(mod: IRModule, file: str) -> None:
    """What `IRModule.import_from_std` does."""
    known = {"prelude.rly": _prelude, "nat.rly": _nat, "core.rly": core}
    if file not in known:
        raise ValueError(f"there is no {file!r} to import; there are {', '.join(known)}")
    source = known[file]()
    for header, data in source.type_definitions.items():
        mod.type_definitions.setdefault(header, data)
    for var, function in source.functions.items():
        if var.name not in mod:
            mod[var] = function
