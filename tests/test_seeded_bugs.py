"""Every seeded bug is caught by the test named beside it, and by nothing but the bug."""

from __future__ import annotations

import pytest

from tests.seeded_bugs import BUGS, Bug
from tests.test_index_arithmetic import forget_builds


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_suite_notices(bug: Bug):
    bug.check()  # right without the bug
    caught = False
    forget_builds()
    with bug.seed():
        try:
            bug.check()
        except (Exception, pytest.fail.Exception):
            caught = True
    assert caught, f"no test noticed: {bug.name}"
    forget_builds()
    bug.check()  # and right again after it
