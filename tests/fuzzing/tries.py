"""One try: a real run is copied, changed in a few ways, and a verb is asked about it.

What every answer must be, whatever is in the dump: a status of `ExitCode`; no internal error, no traceback
and no name of a Python exception; nothing that acts on a terminal; JSON that any parser takes, of
the schema of the verb; and where nothing could be shown, a sentence that says so.
"""

from __future__ import annotations

import faulthandler
import io
import json
import os
import random
import re
import shutil
import time
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from inductor_probe.cli import run as probe
from inductor_probe.errors import ExitCode
from tests.fuzzing.mutations import NAMES, mutate_file, mutate_folder
from tests.schemas import schema_faults

SECONDS = 60
"""An answer that takes longer hangs; then Python's own watchdog prints where, and ends the process."""
SAMPLES = "output_code_bench.json"
_LARGEST_RUN = 700_000
_EXCEPTION = re.compile(
    r"\b[A-Z]\w*(?:Error|Exception|Warning|Interrupt): |<class '|object at 0x|Traceback \("
)
_BARE_KEY = re.compile(r"^(?:error|warning): (?:\S+:\d+(?:-\d+)?: )?'[^' ]*'$", re.MULTILINE)
"""`warning: file:3: 'is_weak'` is the text of a KeyError, and no sentence."""
_NAMED = re.compile(
    r"\b(?:buf\d+|op\d+(?:_op\d+)*|arg\d+_1|primals_\d+|(?:cpp|triton)_\w+|(?:add|mul|view)(?:_\d+)?)\b"
)


def sources(*roots: Path) -> list[Path]:
    """Return the folders below `roots` that hold one run and its logs, without those that are large."""
    runs = sorted(path for root in roots for path in root.rglob("run_*") if (path / "torchinductor").is_dir())
    return [run for run in runs if sum(at.stat().st_size for at in run.rglob("*.*")) < _LARGEST_RUN]


@dataclass(frozen=True)
class Answer:
    """What a verb answered, in how many seconds, and what is wrong with it."""

    status: int
    out: str
    err: str
    seconds: float
    faults: tuple[str, ...]


def ask(arguments: Sequence[str], columns: int | None = None) -> Answer:
    """Run `probe` in this process, for a screen of so many columns or a pipe."""
    out, err = io.StringIO(), io.StringIO()
    start = time.perf_counter()
    with _surroundings(columns), redirect_stdout(out), redirect_stderr(err):
        status = probe(list(arguments))
    seconds = time.perf_counter() - start
    faults = list(_faults(arguments, status, out.getvalue(), err.getvalue()))
    if any("internal error" in fault for fault in faults):
        with _surroundings(columns), redirect_stdout(out), redirect_stderr(again := io.StringIO()):
            probe(["--traceback", *arguments])
        faults += again.getvalue().splitlines()[-7:]
    return Answer(status, out.getvalue(), err.getvalue(), seconds, tuple(faults))


@dataclass(frozen=True)
class Try:
    """What was asked about what, and what the answer was."""

    source: str
    changes: tuple[str, ...]
    arguments: tuple[str, ...]
    columns: int | None
    answer: Answer

    def __str__(self) -> str:
        width = "a pipe" if self.columns is None else f"{self.columns} columns"
        asked = " ".join(("probe", *map(ascii, self.arguments)))
        return "\n  ".join(
            [f"{asked} ({width})", f"{self.source}: {'; '.join(self.changes)}", *self.answer.faults]
        )


@dataclass
class Fuzzer:
    """Makes tries in a folder of its own."""

    folder: Path
    runs: Sequence[Path]

    def attempt(self, rng: random.Random) -> Try:
        """Make one try; `rng` decides everything about it."""
        sampled = [run for run in self.runs if any(run.rglob(SAMPLES))]
        judging = bool(sampled) and rng.random() < 0.12
        source = rng.choice(sampled if judging else list(self.runs))
        run = _copy(source, self.folder / "try")
        changes = []
        for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
            if judging:
                changes.append(mutate_file(next(run.rglob(SAMPLES)), rng))
            elif rng.random() < 0.12:
                changes.append(mutate_folder(run, rng.choice(list(self.runs)), rng))
            else:
                files = sorted(
                    path for path in (*run.rglob("*.*"), *run.parents[1].glob("*.txt")) if path.is_file()
                )
                changes.append(mutate_file(rng.choice(files), rng) if files else "nothing: no file")
        arguments = ["verdict", str(next(run.rglob(SAMPLES)))] if judging else _question(run, source, rng)
        if not {"--csv", "--annotate"} & {*arguments} and rng.random() < 0.4:
            arguments.append("--json")
        columns = rng.choice((80, 200, None))
        name = "/".join(source.parts[-3:-1])
        return Try(name, tuple(changes), tuple(arguments), columns, ask(arguments, columns))


def _copy(source: Path, to: Path) -> Path:
    """Copy a run and the logs beside it to where torch would have put it; return the copied run."""
    shutil.rmtree(to, ignore_errors=True)
    run = to / "torch_compile_debug" / source.name
    shutil.copytree(source, run)
    for log in source.parent.glob("stderr*.txt"):
        shutil.copy(log, to)
    return run


def _question(run: Path, pristine: Path, rng: random.Random) -> list[str]:
    """Return a verb with what it is asked about: mostly names that the dump has, or had."""
    graphs = sorted(path for path in (run / "torchinductor").glob("*") if path.is_dir()) or [run]
    place = str(rng.choice([run, *graphs]))
    graph = str(rng.choice(graphs))
    names = sorted({name for path in pristine.rglob("ir_*.txt") for name in _NAMED.findall(path.read_text())})
    names += sorted(
        {name for path in pristine.rglob("output_code.py") for name in _NAMED.findall(path.read_text())}
    )

    def name() -> str:
        return rng.choice(names) if names and rng.random() < 0.95 else rng.choice(NAMES).replace("\0", "")

    def some(*options: Sequence[str]) -> list[str]:
        return [word for option in options if rng.random() < 0.3 for word in option]

    match rng.choice(
        ("layouts", "nodes", "kernels", "show", "show", "show", "fusion", "diff", "check", "other")
    ):
        case "layouts":
            return ["layouts", *some(["--", name()])[1:], place]
        case "nodes":
            picked = rng.choice(
                ([], ["--kind", "pointwise"], ["--reads", name()], ["--source", "1"], ["--op", "add"])
            )
            return ["nodes", *some(["--pre"], ["--sort", "bytes"]), *map(_value, picked), place]
        case "kernels":
            return ["kernels", *some(["--sort", "bytes"], ["--only", "vectorised"]), place]
        case "show":
            asked = [_value(name())] if rng.random() < 0.85 else []
            return ["show", *some(["--raw"], ["--code"], ["--annotate"], ["--no-line"]), *asked, place]
        case "fusion":
            return [
                "fusion",
                *some(["--all"]),
                *[_value(name()) for _ in range(rng.choice((0, 0, 1, 2)))],
                graph,
            ]
        case "diff":
            pair = [place, str(pristine)]
            rng.shuffle(pair)
            return ["diff", *some(["--all"], ["--code=*"]), *pair]
        case "check":
            return ["check", place]
    return rng.choice((["runs", str(run.parent)], ["tunings", *some(["--csv"]), graph], ["verdict", graph]))


def _value(text: str) -> str:
    """What begins with a dash would be taken for an option, which is click's to answer."""
    return text if not text.startswith("-") or (text.startswith("--") and len(text) > 2) else "x"


@contextmanager
def _surroundings(columns: int | None) -> Iterator[None]:
    """Answer for a screen of so many columns, or a pipe, and not for ever."""
    before = os.environ.get("COLUMNS")
    os.environ.pop("COLUMNS", None)
    if columns is not None:
        os.environ["COLUMNS"] = str(columns)
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # as the command itself does: see `cli.main`
            yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        os.environ.pop("COLUMNS", None)
        if before is not None:
            os.environ["COLUMNS"] = before


def _faults(arguments: Sequence[str], status: int, out: str, err: str) -> Iterator[str]:
    """Say what is wrong with an answer."""
    if status not in tuple(ExitCode):
        yield f"status {status}"
    if "internal error" in err:
        yield next(line for line in err.splitlines() if "internal error" in line)
    if match := _EXCEPTION.search(err):
        yield f"the name of an exception: {err[max(0, match.start() - 60) : match.end() + 60]!r}"
    if match := _BARE_KEY.search(err):
        yield f"no sentence: {match[0][-120:]!r}"
    for stream, text in (("stdout", out), ("stderr", err)):
        if acting := sorted(filter(_acts, set(text))):
            yield f"acts on a terminal: {acting!r} on {stream}"
    if status == ExitCode.FAILED and not re.search(r"^(?:error|warning): \S", err, re.MULTILINE):
        yield f"status 2 without a sentence: {err[:200]!r}"
    if "--json" in arguments and out:
        yield from _json_faults(arguments[0], out)


def _acts(character: str) -> bool:
    category = unicodedata.category(character)
    return (
        category in ("Cc", "Cs", "Zl", "Zp") and character not in "\n\t"
    ) or "\u202a" <= character <= "\u202e"


def _json_faults(verb: str, out: str) -> Iterator[str]:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    try:
        data = json.loads(out, parse_constant=refuse)
    except ValueError as error:
        yield f"not JSON: {error}"
        return
    yield from schema_faults(verb, data)
