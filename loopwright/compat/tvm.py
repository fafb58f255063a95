"""`import loopwright.compat.tvm`, and from then on `import tvm` means Loopwright.

    import loopwright.compat.tvm
    import tvm
    from tvm import te, tir
    from tvm.script import tir as T, ir as I

    $ python -m loopwright.compat.tvm script.py arguments…        a script that knows nothing of us
    $ python -m loopwright.compat.tvm -m pytest tests             a module

`tvm.te` *is* `loopwright.te`, and so on: what a script gets are our own objects, nothing is wrapped. What is not built
can be imported, and raises `NotBuilt` with its full name when it is used.

Where the real TVM is installed too, importing this module leaves it what `import tvm` means, and warns;
`loopwright.compat.tvm.install(replace=True)` or `LOOPWRIGHT_REPLACE_TVM=1` in the environment says that ours is meant.
`python -m loopwright.compat.tvm` always means ours: it was asked for by name.
"""

from __future__ import annotations

import os

from loopwright.compat.door import PeerAlreadyImported, PeerInstalled, install, is_open, uninstall

__all__ = ["PeerAlreadyImported", "PeerInstalled", "install", "is_open", "uninstall"]

if __name__ == "__main__":
    from loopwright.compat.run import main

    main()
else:
    install(replace=os.environ.get("LOOPWRIGHT_REPLACE_TVM", "") not in ("", "0"))
