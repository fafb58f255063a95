"""Spaces: what a search may try for a task.

Open `space.py` (what a space is), then `rule_space.py`: the decisions of the rules, of which the rule's own choice is
the first candidate.
"""

from loopwright.tune.space.rule_space import RuleSpace as RuleSpace
from loopwright.tune.space.space import Batch as Batch
from loopwright.tune.space.space import Space as Space
