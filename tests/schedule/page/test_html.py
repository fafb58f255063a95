"""to_html: one page with everything in it. What the page does is looked at in a browser, where there is one."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from loopwright import te
from loopwright.ir import IRModule
from loopwright.schedule import Schedule, composite, unregister
from loopwright.schedule.errors import BadStepArgument
from loopwright.schedule.page import html as pages
from tests.schedule.page.ladder import watched
from tests.schedule.steps import chain, matmul

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page(HTMLParser):
    """The parts of a page, and whatever it would load from elsewhere."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.loads, self.scripts, self.title = [], [], [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag not in ("meta", "input", "link", "br", "img"):
            self.open.append(tag)
        if "id" in given:
            self.ids.append(given["id"])
        self.loads += [given[name] for name in ("src", "href") if name in given]
        if tag == "script":
            self.scripts.append([given.get("type"), ""])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open and self.open[-1] == "script":
            self.scripts[-1][1] += text
        if self.open and self.open[-1] == "title":
            self.title += text


def page_of(sch, tmp_path, **options):
    path = sch.to_html(tmp_path / "page.html", **options)
    assert path == tmp_path / "page.html"
    page = Page(path.read_text(encoding="utf-8"))
    assert page.open == []
    page.data = json.loads(page.scripts[0][1])
    return page


def code_of(page, entry):
    """The lines of an entry with their marks, without colours."""
    plain = [unescape(re.sub(r"<[^>]+>", "", line)) for line in page.data["lines"]]
    return [" +->"[number % 4] + plain[number // 4] for number in entry["code"]]


def test_the_page_is_complete_in_itself(tmp_path):
    page = page_of(watched(), tmp_path)
    assert page.loads == []
    assert [kind for kind, _ in page.scripts] == ["application/json", None]
    assert len(page.ids) == len(set(page.ids))
    code = page.scripts[1][1]
    assert not re.search(r"fetch\(|XMLHttpRequest|import\(|https?://(?!www\.w3\.org/2000/svg)", code)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<!--" not in text and "/*DATA*/" not in text and "/*CODE COLOURS*/" not in text
    assert "url(" not in text and "@import" not in text
    # Every part that the program of the page asks for is there.
    assert set(re.findall(r'\$\("([^"]+)"\)', code)) <= set(page.ids)


def test_the_steps_in_order(tmp_path):
    page = page_of(watched(), tmp_path, title="A & B")
    assert page.title == "A & B" and page.data["title"] == "A & B"
    entries = page.data["entries"]
    assert [(entry["kind"], entry["version"], entry["call"]) for entry in entries] == [
        ("start", 0, "the program"),
        ("refused", 0, "merge(i, i)"),
        ("step", 1, "split(i, [None, 4])"),
        ("step", 2, "parallel(i_0)"),
    ]
    assert entries[3]["proof"] == "order kept, no races" and entries[3]["where"].startswith("ladder.py:")


def test_what_a_step_changed(tmp_path):
    page = page_of(watched(), tmp_path)
    last = page.data["entries"][3]
    rows = code_of(page, last)
    gone, new = rows.index("-    for i_0, i_1 in T.grid(2, 4):"), rows.index("+    for i_0 in T.parallel(2):")
    assert "".join([row[0] for row in rows[gone : gone + 8]]) == "-++>>>>>" and new == gone + 1
    assert last["words"] == {str(gone): [[11, 16], [22, 26], [28, 31]], str(new): [[17, 25]]}
    (tree,) = last["trees"]
    assert tree["nodes"][0] == {
        "what": "loop",
        "name": "i_0",
        "extent": "2",
        "kind": "parallel",
        "mark": "changed",
        "children": tree["nodes"][0]["children"],
    }
    assert page.data["entries"][2]["trees"][0]["gone"] == ["loop i"]


def test_a_refusal_with_its_witness(tmp_path, with_suggestions):
    page = page_of(watched(), tmp_path)
    refused = page.data["entries"][1]
    assert refused["problem"] == "merge would change a value" and refused["code_of_error"] == "LW0205"
    assert refused["why"] == "iteration (v_i=0) of C reads B[7] before iteration (v_i=7) of B writes it"
    assert refused["figure"].count("<svg") == 3
    assert 'sch.compute_inline("B")' in refused["suggestions"]
    assert [node["mark"] for node in refused["trees"][0]["nodes"]] == ["asked", "asked"]


def test_the_story_of_the_cells(tmp_path):
    page = page_of(watched(), tmp_path)
    entries, stories = page.data["entries"], page.data["stories"]
    assert [entry["story"] for entry in entries] == [1, 1, 0, 0]  # `parallel` changes no event, `split` their loops
    assert [buffer["name"] for buffer in stories[0]["buffers"]] == ["A", "C", "B"]
    site, buffer, cell, value, *iteration = stories[0]["events"][-1]
    assert (buffer, cell) == (1, 7) and stories[0]["sites"][site] == [True, "C", ["i", "v_i"]] and iteration == [7, 7]
    assert len(stories[0]["start"]["0"]) == 8


def test_a_large_program_has_no_story_and_says_so(tmp_path):
    sch = Schedule(matmul(256, 256, 256))
    sch.parallel(sch.get_loops("C")[0])
    page = page_of(sch, tmp_path)
    assert page.data["stories"] == []
    assert "more than 20,000 iterations" in page.data["entries"][1]["no_story"]
    assert (tmp_path / "page.html").stat().st_size < 100_000


def test_many_stories_are_cut(tmp_path, monkeypatch):
    sch = Schedule(matmul(4, 4, 4))
    for _ in range(4):
        sch.split(sch.get_loops("C")[0], [1, None])
    monkeypatch.setattr(pages, "MOST_EVENTS", 500)
    page = page_of(sch, tmp_path)
    assert [entry["story"] for entry in page.data["entries"]] == [1, None, None, None, 0]
    assert page.data["entries"][1]["no_story"] == "the page would become too large"


def test_sizes_and_seed(tmp_path):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    sch = Schedule(te.create_prim_func([A, B]))
    one = page_of(sch, tmp_path, sizes={"n": 3}, seed=1).data["stories"][0]
    other = page_of(sch, tmp_path, sizes={"n": 3}, seed=2).data["stories"][0]
    assert one["sizes"] == {"n": 3} and len(one["start"]["0"]) == 3 and one["start"] != other["start"]
    assert page_of(sch, tmp_path, sizes={"n": 3}, seed=1).data["stories"][0] == one
    assert page_of(sch, tmp_path, sizes={"n": np.int64(3)}, seed=1).data["stories"][0] == one
    with pytest.raises(BadStepArgument, match=r"sizes gives n as 2\.5"):
        page_of(sch, tmp_path, sizes={"n": 2.5})


def test_nothing_in_the_program_ends_the_script(tmp_path):
    sch = Schedule(matmul())
    sch.annotate(sch.get_loops("C")[0], "note", "</script><b>")
    page = page_of(sch, tmp_path, title="</title><script>")
    assert "&lt;/script&gt;&lt;b&gt;" in "".join(page.data["lines"])
    assert page.title == "</title><script>"


def test_a_schedule_without_steps_and_one_with_several_functions(tmp_path):
    page = page_of(Schedule(matmul()), tmp_path)
    assert [entry["kind"] for entry in page.data["entries"]] == ["start"]
    sch = Schedule(IRModule({"one": matmul(), "two": chain()}))
    sch.work_on("two")
    sch.parallel(sch.get_loops("E")[0])
    page = page_of(sch, tmp_path)
    assert [tree["name"] for tree in page.data["entries"][1]["trees"]] == ["one", "two"]
    assert page.data["stories"][0]["buffers"][0]["shape"] == [4, 3]
    assert page.title == "Schedule of one, two"


def test_a_composite_step_is_one_entry(tmp_path):
    @composite
    def halves(sch, loop):
        outer, inner = sch.split(loop, [None, 2])
        sch.parallel(outer)
        return [outer, inner]

    try:
        sch = Schedule(matmul())
        sch.halves(sch.get_loops("C")[0])
        page = page_of(sch, tmp_path)
        assert [(entry["call"], entry.get("proof")) for entry in page.data["entries"][1:]] == [
            ("halves(i)", "order kept, no races")
        ]
    finally:
        unregister("halves")


def test_the_page_of_the_example(tmp_path, monkeypatch, capsys):
    path = tmp_path / "ladder.html"
    monkeypatch.setattr("sys.argv", ["schedule_page.py", str(path)])
    runpy.run_path(str(Path(__file__).parents[3] / "examples" / "schedule_page.py"), run_name="__main__")
    assert "parallel(m_0_m_m)" in capsys.readouterr().out
    data = json.loads(Page(path.read_text(encoding="utf-8")).scripts[0][1])
    refused = [entry for entry in data["entries"] if entry["kind"] == "refused"]
    assert [entry["code_of_error"] for entry in refused] == ["LW0205", "LW0207"]
    assert all(entry["figure"].count("<svg") == 3 for entry in refused)
    assert None not in [entry["story"] for entry in data["entries"]]


def in_browser(path, width, where=""):
    """The page after its program has run, as text."""
    options = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    options += f" --disable-component-update --disable-sync --window-size={width},900 --dump-dom"
    profile = f"--user-data-dir={path.parent / 'profile'}"
    command = [CHROMIUM, *options.split(), profile, f"file://{path}{where}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_browser_shows_a_refusal_and_a_cell(tmp_path):
    shown = in_browser(watched().to_html(tmp_path / "page.html"), 360, "#1/2/7")
    assert '<h2 id="call">merge(i, i)</h2>' in shown
    assert "B[7]: 1 write, 1 read" in shown
    assert shown.count('class="point"') == 3
    assert 'class="line loop marked-asked"' in shown


HANDS = """<script>
addEventListener("error", event => { document.title = "failed: " + event.message; });
const press = key => document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const theme = document.documentElement.dataset.theme;
$("theme").click();
const other = document.documentElement.dataset.theme;
press("End"); const last = $("call").textContent;
press("ArrowLeft"); const before = $("call").textContent;
press("ArrowRight"); press("ArrowRight");
$("events").querySelector("tr").click();
$("time").value = 3; $("time").oninput();
$("whole").click();
$("play").click(); $("play").click();
document.querySelectorAll("#grid td")[5].click();
const wide = document.documentElement.scrollWidth > innerWidth;
document.title = [theme !== other, last, before, $("call").textContent, $("clock").textContent, wide].join(" | ");
</script></body>"""


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [360, 1280])
def test_a_browser_takes_keys_and_clicks(tmp_path, width):
    path = watched().to_html(tmp_path / "page.html")
    path.write_text(path.read_text(encoding="utf-8").replace("</body>", HANDS), encoding="utf-8")
    shown = in_browser(path, width)
    title = re.search("<title>(.*?)</title>", shown)[1]
    assert title == "true | parallel(i_0) | split(i, [None, 4]) | parallel(i_0) | 3 / 32 | false"
    assert "C[5]: 1 write, 0 reads" in shown
