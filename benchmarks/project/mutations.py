"""How many changed lines do the tests notice? Mutation testing of a sample of lines from all rooms.

    python -m benchmarks.project.mutations choose MUTANTS.json [--number 50] [--seed 1]
    python -m benchmarks.project.mutations reach MUTANTS.json CHECKOUT REACHED.json [--quick]
    python -m benchmarks.project.mutations try MUTANTS.json CHECKOUT REACHED.json RESULTS.json [--quick]
                                               [--minutes 25]
    python -m benchmarks.project.mutations compare RESULTS.json [RESULTS.json]

A mutant is one line with one operator changed (`OPERATORS` below). `choose` takes the same number from each
room. `reach` marks the functions of all mutants in a copy of CHECKOUT and runs its whole suite there once:
which test enters which of them. `try` puts one mutant after the other into a copy and runs the tests that
enter it, the quickest first, then their files; when one fails, the mutant is caught. CHECKOUT has an
environment in .venv (`make env`), which imports the copy. With `--quick` both leave out what compiles, as
`make quick` does. After `--minutes` no further mutant is tried: RESULTS has those that were, and the next
`try` goes on from there. Two states of the suite are compared by the same
mutants: each names its function and the text of its line, so that it is found where lines have moved.

DeMillo, Lipton and Sayward, "Hints on test data selection" (1978). A mutant that behaves as the original does
is missed before and after alike.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PACKAGE = "inductor_probe"
RELATIONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
}  # fmt: skip
SECONDS = 420
"""A mutant whose tests take longer is called caught: it may never end."""
QUICK = ("-m", "not compiles")
"""What leaves out the tests that compile."""


@dataclass(frozen=True)
class Mutant:
    """A line and what it becomes. It is the `nth` line of this text in `function`."""

    number: int
    path: str
    function: str
    line: str
    nth: int
    column: int
    length: int
    replacement: str
    operator: str


def relation(node: ast.AST) -> ast.AST | None:
    """`a < b` becomes `a <= b`, `a == b` becomes `a != b`."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        node.ops = [RELATIONS[type(node.ops[0])]()]
        return node
    return None


def connector(node: ast.AST) -> ast.AST | None:
    """`a and b` becomes `a or b`."""
    if isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return node
    return None


def negation(node: ast.AST) -> ast.AST | None:
    """`not a` becomes `a`."""
    return node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) else None


def arithmetic(node: ast.AST) -> ast.AST | None:
    """`a + b` becomes `a - b`; of texts and lists too, which then fails."""
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        node.op = ARITHMETIC[type(node.op)]()
        return node
    return None


def constant(node: ast.AST) -> ast.AST | None:
    """`3` becomes `4`, `True` becomes `False`."""
    if isinstance(node, ast.Constant) and isinstance(value := node.value, int | float):
        node.value = not value if isinstance(value, bool) else value + 1
        return node
    return None


OPERATORS: tuple[Callable[[ast.AST], ast.AST | None], ...] = (
    relation, connector, negation, arithmetic, constant,
)  # fmt: skip


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield each function with its qualified name."""

    def below(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
        for child in ast.iter_child_nodes(node):
            named = isinstance(child, ast.FunctionDef | ast.ClassDef)
            name = f"{prefix}{child.name}" if isinstance(child, ast.FunctionDef | ast.ClassDef) else prefix
            if isinstance(child, ast.FunctionDef):
                yield name, child
            yield from below(child, f"{name}." if named else prefix)

    yield from below(tree, "")


def is_text_of(node: ast.AST, segment: str) -> bool:
    """Tell whether a node stands where it says: inside of f-strings Python 3.11 and older count otherwise."""
    try:
        return ast.dump(ast.parse(segment, mode="eval").body) == ast.dump(node)
    except SyntaxError:
        return False


def mutants_of(path: Path, root: Path) -> Iterator[Mutant]:
    """Yield all mutants of a file. An expression is written anew whole, where it stands on one line."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for name, function in functions(ast.parse(text)):
        span = lines[function.lineno - 1 : function.end_lineno]
        for node in (inner for statement in function.body for inner in ast.walk(statement)):
            if not isinstance(node, ast.expr) or (end := node.end_col_offset) is None:
                continue
            if node.lineno != node.end_lineno or not lines[node.lineno - 1].isascii():
                continue
            segment = lines[node.lineno - 1][node.col_offset : end]
            if not is_text_of(node, segment):
                continue
            for operator in OPERATORS:
                changed = operator(copy.deepcopy(node))
                if changed is not None:
                    line = lines[node.lineno - 1]
                    offset = node.lineno - function.lineno
                    replacement = ast.unparse(changed)
                    if not isinstance(node, ast.Constant):
                        replacement = f"({replacement})"
                    yield Mutant(
                        0, str(path.relative_to(root)), name, line, span[:offset].count(line),
                        node.col_offset, end - node.col_offset, replacement, operator.__name__,
                    )  # fmt: skip


def choose(root: Path, number: int, seed: int) -> list[Mutant]:
    """Choose mutants: one from each room in turn."""
    rng = random.Random(seed)  # noqa: S311  # a sample that can be drawn again, no secret
    rooms: dict[str, list[Mutant]] = defaultdict(list)
    for path in sorted((root / PACKAGE).rglob("*.py")):
        room = path.relative_to(root / PACKAGE).parts[0]
        rooms[room].extend(mutants_of(path, root))
    order = sorted(room for room, mutants in rooms.items() if mutants)
    rng.shuffle(order)
    chosen: list[Mutant] = []
    while len(chosen) < number:
        for room in order[: number - len(chosen)]:
            left = [one for one in rooms[room] if one not in chosen]
            if left:
                chosen.append(rng.choice(left))
    return [Mutant(**{**asdict(one), "number": place}) for place, one in enumerate(chosen)]


def function_of(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    """Return the function of this qualified name."""
    return next((function for qualified, function in functions(tree) if qualified == name), None)


def mutated(text: str, mutant: Mutant) -> str | None:
    """Return the text with the mutant in it; None where its function or line is gone."""
    function = function_of(ast.parse(text), mutant.function)
    if function is None:
        return None
    lines = text.splitlines(keepends=True)
    rows = [
        row
        for row in range(function.lineno - 1, function.end_lineno or 0)
        if lines[row].rstrip("\n") == mutant.line
    ]
    if mutant.nth >= len(rows):
        return None
    row, column = rows[mutant.nth], mutant.column
    line = lines[row]
    lines[row] = line[:column] + mutant.replacement + line[column + mutant.length :]
    return "".join(lines)


def marked(text: str, mutants: list[Mutant]) -> str:
    """Return the text with a line at the start of each mutant's function that writes down the test.

    The test's name is in the environment (`PYTEST_CURRENT_TEST`), which children inherit.
    """
    lines = text.splitlines(keepends=True)
    places: list[tuple[int, str]] = []
    for mutant in mutants:
        if (function := function_of(ast.parse(text), mutant.function)) is not None:
            first = function.body[0]
            documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            if documented and len(function.body) > 1:
                first = function.body[1]
            decorated = getattr(first, "decorator_list", [])
            row = min([first.lineno, *(one.lineno for one in decorated)]) - 1
            mark = f'exec(__import__("os").environ.get("MUTANTS_REACH", ""), {{"number": {mutant.number}}})'
            places.append((row, " " * first.col_offset + mark + "\n"))
    for row, mark in sorted(places, reverse=True):
        lines.insert(row, mark)
    return "".join(lines)


_REACH = """
import os
with open(os.path.join({folder!r}, str(number)), "a") as file:
    file.write(os.environ.get("PYTEST_CURRENT_TEST", "") + "\\n")
"""


def copied(checkout: Path, folder: Path) -> Path:
    """Copy a checkout without its environment, which the copy uses by a link; return the copy."""
    target = folder / "checkout"
    ignored = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", ".*_cache", ".hypothesis")
    shutil.copytree(checkout, target, ignore=ignored, symlinks=True)
    (target / ".venv").symlink_to(checkout / ".venv")
    if (checkout.parent / "shared").is_dir():
        (folder / "shared").symlink_to(checkout.parent / "shared")
    return target


def run_tests(
    target: Path, arguments: list[str], seconds: float | None = None, **environment: str
) -> subprocess.CompletedProcess[str] | None:
    """Run pytest in a copy, whose modules children import, too; None where it took longer."""
    command = [str(target / ".venv/bin/python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    variables = {**os.environ, "PYTHONPATH": str(target), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    process = subprocess.Popen(
        command, cwd=target, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        out, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None
    return subprocess.CompletedProcess(command, process.returncode, out, "")


def test_name(line: str) -> str:
    """Return the test of `tests/a.py::test_b[c] (call)`."""
    return line.strip().rpartition(" (")[0]


def reach(mutants: list[Mutant], checkout: Path, workers: int, only: Sequence[str]) -> dict[str, Any]:
    """Run the suite once with marks; return the tests that reach each mutant, and the time of each test."""
    with tempfile.TemporaryDirectory() as name:
        target, hits, report = copied(checkout, Path(name)), Path(name) / "hits", Path(name) / "report.xml"
        hits.mkdir()
        for path in sorted({one.path for one in mutants}):
            file = target / path
            if file.exists():
                here = [one for one in mutants if one.path == path]
                file.write_text(marked(file.read_text(encoding="utf-8"), here), encoding="utf-8")
        ended = run_tests(
            target,
            ["-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder", f"--junitxml={report}",
             "-o", "junit_family=xunit1", *only],
            MUTANTS_REACH=_REACH.format(folder=str(hits)),
        )  # fmt: skip
        print(ended.stdout[-3000:] if ended else "")
        times = {
            f"{case.get('file')}::{case.get('name')}": float(case.get("time", "0"))
            for case in ET.parse(report).iter("testcase")  # noqa: S314  # our own report
        }
        reached = {
            one.number: sorted({test_name(line) for line in (hits / str(one.number)).open()} - {""})
            if (hits / str(one.number)).exists()
            else []
            for one in mutants
        }
        return {"reached": reached, "times": times}


def try_mutant(
    mutant: Mutant, target: Path, tests: list[str], times: dict[str, float], only: Sequence[str]
) -> dict[str, Any]:
    """Put a mutant into a copy, run what reaches it, and take it out again."""
    file = target / mutant.path
    before = file.read_text(encoding="utf-8")
    changed = mutated(before, mutant)
    result: dict[str, Any] = {**asdict(mutant), "tests": len(tests)}
    if changed is None:
        return {**result, "verdict": "not there"}
    file.write_text(changed, encoding="utf-8")
    try:
        files = sorted({test.partition("::")[0] for test in tests})
        quickest = sorted(tests, key=lambda test: times.get(test, 0.0))
        room = Path(mutant.path).parts[1].removesuffix(".py")
        near = [str(folder.relative_to(target)) for folder in [target / "tests" / room] if folder.is_dir()]
        for selection in (quickest[:40], quickest[40:400], files, near if not tests else []):
            if selection:
                ended = run_tests(target, ["-x", "-n", "2", "--dist", "loadfile", *only, *selection], SECONDS)
                if ended is None or ended.returncode not in (0, 5):
                    words = [] if ended is None else ended.stdout.splitlines()
                    failed = next((line for line in words if line.startswith(("FAILED", "ERROR"))), "no end")
                    return {**result, "verdict": "caught", "by": failed[:200]}
    finally:
        file.write_text(before, encoding="utf-8")
    return {**result, "verdict": "missed" if tests else "not reached"}


def main() -> None:
    """Run the verb of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    choosing = verbs.add_parser("choose")
    choosing.add_argument("mutants", type=Path)
    choosing.add_argument("--number", type=int, default=50)
    choosing.add_argument("--seed", type=int, default=1)
    for verb in ("reach", "try"):
        running = verbs.add_parser(verb)
        for name in ("mutants", "checkout", "reached", *(["results"] if verb == "try" else [])):
            running.add_argument(name, type=Path)
        running.add_argument("--quick", action="store_true")
        if verb == "reach":
            running.add_argument("--workers", type=int, default=3)
        else:
            running.add_argument("--minutes", type=float, default=25.0)
    verbs.add_parser("compare").add_argument("results", type=Path, nargs="+")
    options = parser.parse_args()
    if options.verb == "choose":
        chosen = choose(Path(__file__).parents[2], options.number, options.seed)
        options.mutants.write_text(json.dumps([asdict(one) for one in chosen], indent=1))
        return
    if options.verb == "compare":
        compare(options.results)
        return
    mutants = [Mutant(**one) for one in json.loads(options.mutants.read_text())]
    checkout, only = options.checkout.resolve(), QUICK if options.quick else ()
    if options.verb == "reach":
        options.reached.write_text(json.dumps(reach(mutants, checkout, options.workers, only)))
        return
    known = json.loads(options.reached.read_text())
    results = json.loads(options.results.read_text()) if options.results.exists() else []
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as name:
        target = copied(checkout, Path(name))
        tried = {one["number"] for one in results}
        for mutant in mutants:
            if mutant.number not in tried and time.monotonic() < end:
                tests = known["reached"].get(str(mutant.number), [])
                results.append(try_mutant(mutant, target, tests, known["times"], only))
                options.results.write_text(json.dumps(results, indent=1))
                print(
                    mutant.number, mutant.path, results[-1]["verdict"], results[-1].get("by", ""), flush=True
                )
    print(f"{len(results)} of {len(mutants)} were tried")


def compare(paths: list[Path]) -> None:
    """Print how many mutants each state of the suite catches, and those on which two states differ."""
    states = [{one["number"]: one for one in json.loads(path.read_text())} for path in paths]
    for path, state in zip(paths, states, strict=True):
        verdicts = [one["verdict"] for one in state.values()]
        print(path.name, {verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))})
    for number, one in states[0].items():
        verdicts = [state[number]["verdict"] for state in states if number in state]
        if len(set(verdicts)) > 1 or verdicts[0] != "caught":
            print(
                f"{number}: {one['path']} {one['function']}: {one['line'].strip()} -> {one['replacement']}:",
                *verdicts,
            )


if __name__ == "__main__":
    main()
