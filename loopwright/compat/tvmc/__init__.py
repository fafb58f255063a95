"""`tvm.driver.tvmc` for scripts: load a model, compile it to a package, run it; the commands are those of `loopwright`.

    model = tvmc.load("model.onnx")
    package = tvmc.compile(model, target="llvm", package_path="model.tar")
    result = tvmc.run(package, device="cpu", inputs={"x": array})

Start with `model.py`. `frontends.py`, `compiler.py` and `runner.py` call what the commands call; the other files read
texts of the command line: shapes, targets, pass settings, layouts, trackers, config files.
"""

from loopwright.compat.tvmc import compiler, frontends, runner
from loopwright.compat.tvmc.compiler import compile_model as compile
from loopwright.compat.tvmc.frontends import load_model as load
from loopwright.compat.tvmc.model import TVMCException, TVMCModel, TVMCPackage, TVMCResult
from loopwright.compat.tvmc.runner import run_module as run
