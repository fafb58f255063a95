import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fake_gpu import gpu  # noqa: F401
