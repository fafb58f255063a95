"""Which errors a script meets because Loopwright differs from TVM on purpose, and where the page explains it.

While `import tvm` means Loopwright, such an error ends in a line that names the page and its section:

    WouldRace: parallel: two iterations of i write C[0] [LW0207]
      …
      see: "Coming from TVM" in the documentation, section "Programs that are refused"

A new difference by design enters here with the code of its error and the heading of its section.
"""

from __future__ import annotations

from typing import Final

from loopwright.runtime.errors import pages

_PAGE = '"Coming from TVM" in the documentation'

_SECTIONS: Final[dict[str, tuple[str, ...]]] = {
    "What does not, and what it says": ("LW0003", "LW0103", "LW0607", "LW0701", "LW0748"),
    "Programs that are refused": ("LW0802", "LW0803", "LW0804", "LW0806", "LW0808", "LW0810", "LW0814", "LW0815"),
    "Steps that are refused": ("LW0205", "LW0206", "LW0207", "LW0221", "LW0233", "LW0258", "LW0260"),
    "Arguments of a call": ("LW0117", "LW0118"),
}


def name_pages() -> None:
    """From now on those errors name their section."""
    pages.update({code: f'{_PAGE}, section "{section}"' for section, codes in _SECTIONS.items() for code in codes})


def forget_pages() -> None:
    """The errors are as they were."""
    pages.clear()


