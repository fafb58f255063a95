"""Run the tests of the onnx package on us, through its own interface for back ends, and write down what came of them.

    python tools/onnx_backend_tests.py                        all of them, natively, on all cores
    python tools/onnx_backend_tests.py --filter '^test_conv'  some of them
    python tools/onnx_backend_tests.py --markdown docs/onnx_operators.md --json results.json

A test passes, fails, or is unsupported: refused with an error that says so (OpNotImplemented, UnsupportedType …).
Tests run in processes of their own: one that dies is written down as crashed, and the others go on.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

OUTCOMES = ("passed", "failed", "unsupported", "crashed")


def all_tests(interpreted: bool) -> dict[str, Any]:
    """Every test for the CPU: "category/name" → its function and the place where it leaves its model."""
    from onnx.backend.test import BackendTest

    from loopwright.frontends.onnx import compiled
    from loopwright.frontends.onnx.backend import LoopwrightBackend

    if interpreted:
        LoopwrightBackend.make_runner = staticmethod(compiled.interpreted)
    tests = BackendTest(LoopwrightBackend)
    return {
        f"{category.removesuffix('Model')}/{name.removesuffix('_cpu')}": item
        for category, items in tests._test_items.items()
        for name, item in items.items()
        if name.endswith("_cpu")
    }


def run_one(item: Any) -> tuple[str, str]:
    """What came of one test, and why."""
    from loopwright.frontends.onnx.errors import UnsupportedType
    from loopwright.frontends.op_errors import OpAttributeUnImplemented, OpNotImplemented

    try:
        item.func(None)
    except (OpNotImplemented, OpAttributeUnImplemented, UnsupportedType) as error:
        return "unsupported", error.problem
    except unittest.SkipTest as skipped:
        return "unsupported", str(skipped)
    except Exception as error:  # whatever a test raises, it is written down
        return "failed", f"{type(error).__name__}: {str(error).strip()[:400]}"
    return "passed", ""


def describe(item: Any) -> tuple[str, list[str]]:
    """The domain of a test and the operators of its model."""
    model = item.proto[0]
    if model is None or not hasattr(model, "graph"):
        return "", []
    domains = {node.domain for node in model.graph.node if node.domain not in ("", "ai.onnx")}
    return ", ".join(sorted(domains)), sorted({node.op_type for node in model.graph.node})


def worker(names_file: str, out_file: str, interpreted: bool) -> None:
    """Run the tests named in a file; a line before each and one after it."""
    warnings.simplefilter("ignore")
    tests = all_tests(interpreted)
    with open(out_file, "a", encoding="utf-8") as out:
        for name in json.loads(Path(names_file).read_text()):
            print(json.dumps({"begin": name}), file=out, flush=True)
            start = time.perf_counter()
            outcome, why = run_one(tests[name])
            domain, operators = describe(tests[name])
            line = {"name": name, "outcome": outcome, "why": why, "domain": domain, "operators": operators}
            print(json.dumps({**line, "seconds": round(time.perf_counter() - start, 3)}), file=out, flush=True)


def run_all(names: list[str], interpreted: bool, jobs: int) -> dict[str, dict[str, Any]]:
    """Run tests in several processes, which are started again when one dies."""
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        shares = [names[k::jobs] for k in range(jobs)]
        running: dict[int, subprocess.Popen[bytes]] = {}
        while any(shares) or running:
            for k in range(jobs):
                if k not in running and shares[k]:
                    (Path(folder) / f"{k}.json").write_text(json.dumps(shares[k]))
                    command = [sys.executable, __file__, "--worker", f"{folder}/{k}.json", f"{folder}/{k}.out"]
                    if interpreted:
                        command.append("--interpreted")
                    running[k] = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            time.sleep(0.2)
            for k, process in list(running.items()):
                if process.poll() is None:
                    continue
                del running[k]
                shares[k] = _collect(Path(folder) / f"{k}.out", shares[k], found)
    return found


def _collect(out: Path, share: list[str], found: dict[str, dict[str, Any]]) -> list[str]:
    """Note what a process has written; the tests that are left for its successor."""
    begun = None
    lines = out.read_text(encoding="utf-8").splitlines() if out.exists() else []
    for line in lines:
        entry = json.loads(line)
        if "begin" in entry:
            begun = entry["begin"]
        else:
            found[entry["name"]] = entry
            begun = None
    if begun is None and not any(name in found for name in share):
        begun = share[0] if share else None
    if begun is not None:
        found[begun] = {"name": begun, "outcome": "crashed", "why": "the process died", "domain": "", "operators": []}
    return [name for name in share if name not in found]


def label(name: str, results: dict[str, dict[str, Any]]) -> str:
    """The operator that a test is about: of one that was expanded, that of the original."""
    base = re.sub(r"_expanded.*$", "", name)
    entry = results.get(base, results[name])
    operators = entry["operators"]
    if len(operators) == 1:
        return str(operators[0])
    return name.split("/")[0] if not name.startswith("Node/") else (operators[0] if operators else "?")


def markdown(results: dict[str, dict[str, Any]]) -> str:
    """The table for the documentation."""
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    by_group: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for name, entry in results.items():
        group = name.split("/")[0] + (f" ({entry['domain']})" if entry["domain"] else "")
        by_group[group][entry["outcome"]] += 1
        if not entry["domain"]:
            counts[label(name, results)][entry["outcome"]] += 1
    lines = ["| tests | passed | failed | unsupported | crashed |", "|---|---|---|---|---|"]
    for group, counter in sorted(by_group.items()):
        lines.append(f"| {group} | " + " | ".join(str(counter[one]) for one in OUTCOMES) + " |")
    lines += ["", "| operator | passed | failed | unsupported |", "|---|---|---|---|"]
    for operator, counter in sorted(counts.items()):
        failed = counter["failed"] + counter["crashed"]
        lines.append(f"| {operator} | {counter['passed']} | {failed} | {counter['unsupported']} |")
    reasons: dict[str, list[str]] = collections.defaultdict(list)
    for name, entry in sorted(results.items()):
        if entry["outcome"] != "passed":
            why = re.sub(r"node '[^']*'", "a node", entry["why"].splitlines()[0] if entry["why"] else "")
            reasons[f"{entry['outcome']}: {why[:160]}"].append(name)
    lines += ["", "| what | tests |", "|---|---|"]
    for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        shown = ", ".join(f"`{name.split('/')[-1]}`" for name in names[:6])
        more = f" and {len(names) - 6} more" if len(names) > 6 else ""
        lines.append(f"| {reason.replace('|', '/')} | {shown}{more} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default=".", help="a pattern that the names of tests match")
    parser.add_argument("--interpreted", action="store_true", help="run by the reference interpreter")
    parser.add_argument("--jobs", type=int, default=max(os.cpu_count() or 1, 1))
    parser.add_argument("--json", help="where to write every result")
    parser.add_argument("--markdown", help="a page whose part between the two marks is replaced by the tables")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(*options.worker, options.interpreted)
        return
    warnings.simplefilter("ignore")
    names = [name for name in all_tests(options.interpreted) if re.search(options.filter, name)]
    results = run_all(names, options.interpreted, options.jobs)
    if options.json:
        Path(options.json).write_text(json.dumps([results[name] for name in names], indent=1) + "\n")
    text = markdown(results)
    if options.markdown:
        write_between_marks(Path(options.markdown), text)
    totals = collections.Counter(entry["outcome"] for entry in results.values() if not entry["domain"])
    whole = sum(totals.values())
    print(text)
    print(f"default domain: {totals['passed']} of {whole} passed ({100 * totals['passed'] / max(whole, 1):.1f} %)")


def write_between_marks(page: Path, text: str) -> None:
    """Replace what stands between `<!-- tests -->` and `<!-- end of tests -->`."""
    begin, end = "<!-- tests -->", "<!-- end of tests -->"
    old = page.read_text(encoding="utf-8")
    head, rest = old.split(begin, 1)
    tail = rest.split(end, 1)[1]
    page.write_text(f"{head}{begin}\n\n{text}\n{end}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
