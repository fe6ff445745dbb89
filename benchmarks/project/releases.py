"""Does all of it work with another release of torch? `make compat TORCH=2.14.1` runs this.

    python -m benchmarks.project.releases TORCH [--only STEP...]

Makes an environment with that release below build/compat (once), runs a fixed part of the tests there,
and writes the release's row into results/releases.md, which it prints. The steps: programs whose dumps
the reader must take line by line, and those of `STEPS`: every verb, the proving ground of causes,
decisions turned by name, bench files, packages ahead of time, simulated GPUs, PyTorch's operators. A
release that lacks a rule of torch skips the programs of that rule; the reasons are in the logs beside
the environment.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks/results/releases.md"
STEPS: dict[str, tuple[str, ...]] = {
    "verbs": ("tests/cli/test_every_verb.py",),
    "causes": ("tests/proving_ground",),
    "flips": ("tests/capture/test_flips.py",),
    "bench files": ("tests/bench/test_end_to_end.py", "tests/bench/test_frozen.py"),
    "packages": ("tests/capture/test_ahead_of_time.py",),
    "simulated GPUs": ("tests/capture/test_targets.py",),
    "operators": ("tests/op_checks/test_running.py",),
}
COLUMNS = ("torch", "lines", "places missing", *STEPS, "made")
HEADER = """# Releases of torch

`make compat TORCH=X` makes a row: how many tests passed of those that ran, and how many are about a rule that
the release lacks. The lines are those of dumps of `tests/fixtures/programs.py`, as `probe check` counts them.

"""


def constraints_of_pip() -> Iterator[tuple[str, Requirement]]:
    """Yield what pip's own configuration holds packages at, with the file that says so.

    `pip config list` prints `global.constraint='/etc/pip/constraints.txt'`; a variable (`:env:.constraint`)
    goes before files.
    """
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    places = re.findall(r"^(.*)\.constraint='(.*)'$", listed, re.MULTILINE)
    for _, paths in [place for place in places if place[0] == ":env:"] or places:
        for path in paths.split():
            for line in Path(path).read_text(encoding="utf-8").splitlines():
                try:
                    yield path, Requirement(line.partition("#")[0].strip())
                except InvalidRequirement:
                    continue  # an option, a comment or an empty line


def held_back(torch: str) -> str | None:
    """Return what to say where pip's configuration admits no such torch, None where it does."""
    for path, requirement in constraints_of_pip():
        if requirement.name == "torch" and not requirement.specifier.contains(torch, prereleases=True):
            return (
                f"error: pip may not install torch {torch} here: {path} says {requirement}, and pip's "
                f"configuration names that file\n"
                f"hint: PIP_CONSTRAINT=/dev/null make compat TORCH={torch} lifts that for this command"
            )
    return None


def environment(torch: str, folder: Path) -> Path:
    """Return the Python of an environment with that release, made if it is not there.

    Everything else is as `constraints.txt` has it; triton is the one that the release asks for.
    """
    python, done = folder / "bin/python", folder / ".ok"
    if done.exists():
        return python
    if (sentence := held_back(torch)) is not None:
        raise SystemExit(sentence)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    constraints = folder / "constraints.txt"
    constraints.write_text(
        "".join(f"{line}\n" for line in pinned if not line.startswith(("torch==", "triton==")))
    )
    print(f"making the environment in {folder}: this installs torch {torch}, several GB with what it needs")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--constraint", str(constraints)]
    subprocess.run([*pip, "--upgrade", "pip"], check=True)
    subprocess.run(
        [*pip, "--no-compile", "--editable", ".[triton]", "--group", "dev", f"torch=={torch}"],
        check=True, cwd=ROOT,
    )  # fmt: skip
    done.touch()
    return python


def run_step(python: Path, tests: tuple[str, ...], folder: Path, name: str) -> Counter[str]:
    """Run tests under that Python; return how many passed, failed and were skipped."""
    report = folder / f"{name.replace(' ', '_')}.xml"
    command = [
        str(python), "-m", "pytest", "-q", "-rfEs", "-n", str(os.cpu_count() or 1), "--dist", "loadfile",
        "--no-loadscope-reorder", "-p", "no:cacheprovider", f"--junitxml={report}", *tests,
    ]  # fmt: skip
    with (folder / f"{name.replace(' ', '_')}.log").open("w") as log:
        variables = {**os.environ, "EVERY_VERB": "1"}
        subprocess.run(command, cwd=ROOT, env=variables, stdout=log, stderr=subprocess.STDOUT, check=False)
    outcomes: Counter[str] = Counter()
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  # pytest's report of our own tests
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        outcomes["skipped" if kinds == {"skipped"} else "failed" if kinds else "passed"] += 1
    return outcomes


def read_programs(python: Path, folder: Path) -> str:
    """Dump the programs of the reader's fixtures with that torch; return how many lines were not read."""
    dumps = folder / "dumps"
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [str(python), str(ROOT / "tests/fixtures/make_dumps.py"), "--out", str(dumps)]
    subprocess.run(command, check=True, cwd=ROOT, env=variables, stdout=subprocess.DEVNULL)
    checked = subprocess.run(
        [str(python), "-m", "inductor_probe", "check", str(dumps), "--json"],
        cwd=folder, capture_output=True, text=True, check=False, env=variables,
    )  # fmt: skip
    check = json.loads(checked.stdout)["check"]
    return f"{check['lines']:,}, {check['unread_lines']} not read, {len(check['graphs'])} graphs"


def missing_places(python: Path) -> str:
    """Return what `probe doctor` says of the private parts of that torch."""
    command = [str(python), "-m", "inductor_probe", "doctor", "--json"]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    doctor = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False, env=variables)
    diagnostics = json.loads(doctor.stdout)["health"]["diagnostics"]
    (facts,) = (one["facts"] for one in diagnostics if one["about"] == "places")
    return ", ".join(f"`{place}`" for place in facts["missing"]) or f"none of {facts['asked']}"


def write_row(row: dict[str, str]) -> str:
    """Put a release's row into the table, which is sorted by release; return the table."""
    rows = {row["torch"]: row}
    if RESULTS.exists():
        lines = [line for line in RESULTS.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
        names, *rest = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        for cells in rest[1:]:
            known = dict(zip(names, cells, strict=True))
            rows[known["torch"]] = {**known, **rows.get(known["torch"], {})}
    columns = [name for name in COLUMNS if any(name in one for one in rows.values())]
    ordered = sorted(rows.values(), key=lambda one: [int(number) for number in one["torch"].split(".")])
    table = [columns, ["---"] * len(columns), *([one.get(name, "") for name in columns] for one in ordered)]
    text = HEADER + "".join(f"| {' | '.join(cells)} |\n" for cells in table)
    RESULTS.write_text(text, encoding="utf-8")
    return text


def main() -> int:
    """Run the steps for the release of the command line; the status says whether all passed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("torch", help="a release: 2.14.1")
    parser.add_argument("--only", nargs="+", choices=["lines", *STEPS], default=["lines", *STEPS])
    options = parser.parse_args()
    if not re.fullmatch(r"\d+\.\d+\.\d+", options.torch):
        raise SystemExit(f"error: {options.torch!r} is no release of torch\nhint: make compat TORCH=2.14.1")
    folder = ROOT / f"build/compat/torch-{options.torch}"
    python = environment(options.torch, folder)
    begin, row, failed = time.monotonic(), {"torch": options.torch}, 0
    if "lines" in options.only:
        row |= {"lines": read_programs(python, folder), "places missing": missing_places(python)}
        failed += ", 0 not read," not in row["lines"]
    for name in options.only:
        if name in STEPS:
            outcomes = run_step(python, STEPS[name], folder, name)
            ran = outcomes["passed"] + outcomes["failed"]
            row[name] = f"{outcomes['passed']} of {ran}" + (
                f", {outcomes['skipped']} not there" * bool(outcomes["skipped"])
            )
            failed += outcomes["failed"]
            print(
                f"{name}: {row[name]}; log: {folder.relative_to(ROOT)}/{name.replace(' ', '_')}.log",
                flush=True,
            )
    is_whole = options.only == ["lines", *STEPS]
    row["made"] = date.today().isoformat() + f", {time.monotonic() - begin:.0f} s" * is_whole
    print(write_row(row))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
