"""What mkdocs does to our pages besides turning them into HTML.

    <!-- public names: loopwright.te -->   the reference of a package, from its docstrings (docs/api/)
    <!-- every error -->                   the catalogue of error codes, from the classes that carry them
    [text](../examples/argmax.py)          a link out of docs/ leads to a page that shows the file, or to the picture

The pages stay readable where they lie. Everything is read from the sources; nothing of ours is imported or run.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from reference import DOCS, PACKAGES, catalogue, reference
from source_tree import ROOT

CATALOGUE = "<!-- every error -->"
LINK = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+[^)#\s]+)(#[^)]*)?\)")
SOURCES = "sources"  # the folder of the site that shows files from outside docs/
PICTURES = (".png", ".svg")
LANGUAGES = {".py": "python", ".md": "markdown", ".c": "c", ".h": "c", ".toml": "toml"}


def on_files(files: Files, config: Any) -> Files:
    """Add a page for every example and for every file that a page links to."""
    shown = {path.relative_to(ROOT) for path in (ROOT / "examples").glob("*.py")}
    for page in DOCS.rglob("*.md"):
        for match in LINK.finditer(page.read_text(encoding="utf-8")):
            path = _outside(page, match[2])
            if path is not None and (ROOT / path).is_file():
                shown.add(path)
    for path in sorted(shown):
        content = (ROOT / path).read_bytes() if path.suffix in PICTURES else _shown(path)
        files.append(File.generated(config, _page_of_file(path), content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Write the generated parts of a page, and lead its links to where things are on the site."""
    here = page.file.src_uri
    markdown = PACKAGES.sub(lambda match: "\n".join(reference(match[1])), markdown)
    markdown = markdown.replace(CATALOGUE, "\n".join(catalogue()) if CATALOGUE in markdown else "")
    return LINK.sub(lambda match: _led(match, here), markdown)


# --- files from outside docs/ ---------------------------------------------------------------------------------------


def _outside(page: Path, link: str) -> Path | None:
    """What a link leads to, from the root of the project; None inside docs/, and where nothing is."""
    path = Path(os.path.normpath(page.parent / link))
    if path.is_relative_to(DOCS) or not path.is_relative_to(ROOT) or not path.exists():
        return None
    return path.relative_to(ROOT)


def _page_of_file(path: Path) -> str:
    """Where the site has the file: a page that shows it, or itself where it is a picture."""
    if path.suffix in PICTURES:
        return f"{SOURCES}/{path.as_posix()}"
    folder = "examples" if path.parts[0] == "examples" else f"{SOURCES}/{path.parent.as_posix()}"
    return f"{folder}/{path.stem if path.suffix == '.py' else path.name}.md"


def _shown(path: Path) -> str:
    text = (ROOT / path).read_text(encoding="utf-8")
    longest = max([len(ticks) for ticks in re.findall(r"`{3,}", text)], default=2)
    fence = "`" * (longest + 1)
    return f"# {path.as_posix()}\n\n{fence}{LANGUAGES.get(path.suffix, 'text')}\n{text}{fence}\n"


def _led(match: re.Match[str], here: str) -> str:
    path = _outside(DOCS / here, match[2])
    if path is None:
        return match[0]
    if (ROOT / path).is_dir():
        return match[1]  # a folder has no page: the text stays, and says where to look
    return f"[{match[1]}]({os.path.relpath(_page_of_file(path), os.path.dirname(here) or '.')})"
