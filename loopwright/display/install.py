"""install: how errors and modules are shown, for `runtime/shown.py`, which loads this when something first is."""

from __future__ import annotations

from loopwright.display.error_sheet import error_sheet, traceback_lines
from loopwright.display.module_sheet import module_sheet, source_sheet
from loopwright.runtime import shown

shown.views.update(error=error_sheet, traceback=traceback_lines, module=module_sheet, source=source_sheet)
