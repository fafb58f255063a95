"""How the axes of a stage come from one another, and what was said about each: the records that scripts read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from loopwright.ir import Expr, IterType, IterVar
from loopwright.runtime.errors import SourceLine

if TYPE_CHECKING:
    from loopwright.te.schedule.tensor_intrin import TensorIntrin
    from loopwright.te.tensor import Tensor


class IterVarRelation:
    """Some axes come from others."""


@dataclass(frozen=True, eq=False)
class Split(IterVarRelation):
    """`parent` is `outer` times the size of `inner`, plus `inner`; one of `factor` and `nparts` is given."""

    parent: IterVar
    outer: IterVar
    inner: IterVar
    factor: Expr | None
    nparts: Expr | None


@dataclass(frozen=True, eq=False)
class Fuse(IterVarRelation):
    """`fused` runs over `outer`, and over all of `inner` for each of its values."""

    outer: IterVar
    inner: IterVar
    fused: IterVar


@dataclass(frozen=True, eq=False)
class Rebase(IterVarRelation):
    """`rebased` is `parent`, counted from 0."""

    parent: IterVar
    rebased: IterVar


@dataclass(frozen=True, eq=False)
class Singleton(IterVarRelation):
    """`iter` runs once, and comes from nothing."""

    iter: IterVar


@dataclass(frozen=True, eq=False)
class Transform(IterVarRelation):
    """The data axes `original_variables` run as `transformed_variables`, through the two maps."""

    original_variables: tuple[IterVar, ...]
    transformed_variables: tuple[IterVar, ...]
    forward_transformation: object
    inverse_transformation: object


@dataclass(eq=False)
class IterVarAttr:
    """What was said about one axis."""

    iter_type: IterType = IterType.DataPar
    bind_thread: IterVar | None = None
    prefetch_data: list[Tensor] = field(default_factory=list)
    prefetch_offset: list[Expr] = field(default_factory=list)
    tensor_intrin: TensorIntrin | None = None
    dim_align_factor: int = 0
    dim_align_offset: int = 0
    pragma_keys: list[str] = field(default_factory=list)
    pragma_values: list[object] = field(default_factory=list)
    lines: dict[str, SourceLine | None] = field(default_factory=dict)  # where each was said

    def copy(self) -> IterVarAttr:
        """The same said once more, to go its own way from here."""
        return replace(
            self,
            prefetch_data=list(self.prefetch_data),
            prefetch_offset=list(self.prefetch_offset),
            pragma_keys=list(self.pragma_keys),
            pragma_values=list(self.pragma_values),
            lines=dict(self.lines),
        )


@dataclass(frozen=True, eq=False)
class Directive:
    """A change of a stage's loops, in the order in which they were asked for: what lowering replays."""

    what: Split | Fuse | Singleton | tuple[IterVar, ...]  # a tuple is the new order of these axes
    where: SourceLine | None


def parts_of(relation: IterVarRelation) -> tuple[tuple[IterVar, ...], tuple[IterVar, ...]]:
    """The axes that a relation uses up, and those it gives."""
    if isinstance(relation, Split):
        return (relation.parent,), (relation.outer, relation.inner)
    if isinstance(relation, Fuse):
        return (relation.outer, relation.inner), (relation.fused,)
    if isinstance(relation, Rebase):
        return (relation.parent,), (relation.rebased,)
    if isinstance(relation, Transform):
        return relation.original_variables, relation.transformed_variables
    assert isinstance(relation, Singleton)
    return (), (relation.iter,)
