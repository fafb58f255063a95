"""Functions under the names by which scripts reach them past the Python interface."""

from loopwright.arith.domain_touched import domain_touched
from loopwright.arith.linear_inequalities import solved_as_conditions
from loopwright.arith.narrow_predicate import narrow_predicate_expression

DomainTouched = domain_touched
SolveInequalitiesAsCondition = solved_as_conditions
NarrowPredicateExpression = narrow_predicate_expression
