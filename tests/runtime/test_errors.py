from __future__ import annotations

import pytest

from loopwright.runtime.errors import DiagnosticError, InternalError, LoopwrightError, NotBuilt, SourceLine


def refuse(**anatomy: object) -> LoopwrightError:
    return LoopwrightError("factors [2, 4] make 8 iterations, but loop i has 10", **anatomy)


def test_the_anatomy_in_order():
    text = str(refuse(asked="split(i, [2, 4])", why="8 < 10", hint="raise a factor"))
    first, asked, why, hint = text.splitlines()
    assert first == "factors [2, 4] make 8 iterations, but loop i has 10 [LW0001]"
    assert asked.startswith("  call: split(i, [2, 4]) at test_errors.py:")
    assert (why, hint) == ("  why: 8 < 10", "  hint: raise a factor")


def test_without_asked_the_users_own_line_is_shown():
    error = refuse()  # this very line
    assert "call: return LoopwrightError(" in str(error)


def test_text_is_made_when_it_is_read():
    made = []
    error = LoopwrightError("p", why=lambda: made.append(1) or "because")
    assert not made
    assert "why: because" in str(error)


def test_a_place_in_source_is_marked():
    text = str(refuse(at=SourceLine("user.py", 12, 4, 7, text="for abc in x:")))
    assert "at user.py:12:5" in text
    assert "  > for abc in x:\n        ^^^" in text


def test_codes_are_unique():
    with pytest.raises(TypeError, match="LW0003 belongs to both NotBuilt and"):
        type("Another", (LoopwrightError,), {"code": "LW0003"})


def test_user_errors_and_our_errors_differ():
    assert "please report it" in str(InternalError("x"))
    assert isinstance(NotBuilt("cuda"), NotImplementedError)
    assert DiagnosticError.code == "LW0004"


def test_the_place_is_that_of_the_user_behind_a_dataclass_of_ours():
    from loopwright.tune import Measurer, Session
    from loopwright.tune.errors import NoTasks

    with pytest.raises(NoTasks) as caught:
        Session([], Measurer("llvm"))
    assert caught.value.user_line is not None
    assert caught.value.user_line.file == __file__
