"""The figures of `docs/findings/`: measured by name, kept as JSON, written into the pages that show them.

    python -m benchmarks.findings.figures measure [NAME...] [--out FOLDER] [--budget SECONDS] [--pairs N]
    python -m benchmarks.findings.figures write

`measure` takes names, or the part of a name before the dot (a page): without one, all of a CPU but those of
sweeps, which are of `changes.py measure`. It compiles a script as torch is and with a patch of
`patches.py`, checks both against float64, times them in turns as `probe whatif --runs A B` does, and
puts what it found into `results/findings.json`, beside what is there of other figures. Figures of `calls` are
those of `calls.py`. Dumps are kept in FOLDER, and used again; `--budget` is seconds of timing for
each graph, or for each pair of processes. `write` fills the tables between the lines `<!-- figure NAME -->`
and `<!-- end -->` of pages and of `results/findings.md`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from msgspec.structs import replace

import inductor_probe as ip
from benchmarks.findings import calls as whole_processes
from benchmarks.findings import patches
from inductor_probe.api.whatif import whatif_of_runs
from inductor_probe.files import write_whole
from inductor_probe.machine.cpu import cpu_name
from inductor_probe.model.bench import BenchSettings
from inductor_probe.model.comparison import Comparison
from inductor_probe.model.whatif import GraphWhatIf

RESULTS = Path(__file__).parents[1] / "results"
KEPT = RESULTS / "findings.json"
PAGES = [*sorted(patches.FINDINGS.glob("*.md")), RESULTS / "findings.md"]
VERDICTS = ("FASTER", "SAME", "UNDECIDED", "SLOWER", "INVALID")
EAGER, CALL = "Eager (aten graph)", "Compiled call"
DTYPES, CHANNELS = ("uint8", "float32"), (2, 3, 4, 6, 7, 12)
OPERATIONS = ("hflip", "scaled", "normalised")
"""Of `short_ranges_elsewhere.py`, which compiles in this order."""
_BLOCK = re.compile(r"(<!-- figure ([\w.]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Figure:
    """A script that is compiled in two ways.

    Attributes:
        script: in `docs/findings/`, with its `args`.
        patches: of A and of B; none is torch as it is.
        labels: of its graphs, in the order in which they are compiled. None: one graph.
        capability: which vectors code is compiled for.
        as_called: on the inputs of the script, not on random ones of their sizes.
        budget: seconds of timing for each graph.
        device: that the script names; figures of `cuda` are measured where there is a GPU.
    """

    script: str
    patches: tuple[str, str]
    labels: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    capability: str = "avx512"
    threads: int = 1
    budget: float = 5.0
    as_called: bool = False
    device: str = "cpu"


@dataclass(frozen=True)
class Calls:
    """Programs of `calls.py`."""

    programs: tuple[str, ...]
    threads: int = 1
    budget: float = 10.0


_RANGES = tuple(f"{each}, {dtype} | {count}" for dtype in DTYPES for count in CHANNELS for each in OPERATIONS)
_REVERSED = (
    *("flip, float32, 224 columns", "flip, bfloat16, 224 columns", "flip, int64, 224 columns"),
    *("flip, bool, 224 columns", "flip, uint8, 20 columns", "flip, float32, 7 columns"),
    *("(image + flip) / 2, float32", "flip of 32 channels, channels-last, float32"),
    "sum of exponentials from the end, float32",
)
_INVARIANT = (
    *("nearest, uint8, 2 channels", "nearest, float32, 2 channels", "nearest, uint8", "nearest, float32"),
    *("nearest-exact, uint8", "nearest-exact, float32", "nearest, product and sum, uint8"),
    *("nearest, product and sum, float32", "roll, uint8", "roll, float32", "reflected border, uint8"),
    *("reflected border, float32", "bilinear, float32"),
)
_TILES = (
    *(f"to channels-last, {count} channels, 256 x 256" for count in (16, 32, 48, 64)),
    *(f"to channels-last, 16 channels, {pixels} x {pixels}" for pixels in (8, 16, 32, 64)),
    *("exponentials, 16 x 65536, transposed", "exponentials, 65536 x 16, transposed"),
)
_MASKS = (
    *("masked_fill, a tenth is masked", "masked_fill, nothing is masked", "masked_fill, a causal mask"),
    *(f"masked_fill, half is masked, {dtype}" for dtype in ("bfloat16", "int64", "uint8")),
    *("masked_fill and softmax", "dropout's backward", "mask or mask", "sum of a mask"),
)
_SOFTMAX = (
    *("500 x 64, columns", "64 x 500, rows", "1024 x 1024, rows", "1024 x 1024, columns"),
    *("64 x 500, rows, bfloat16", "64 x 500, columns, bfloat16", "64 x 500, rows, log_softmax, a quotient"),
    *("64 x 500, rows, scaled by a tensor", "attention with capped scores"),
)
_LENGTHS = ("1536", "2048", "4096", "5120", "8192")
_ROWS = tuple(
    f"{program}, {dtype} | {length}"
    for dtype, programs in (
        ("bfloat16", ("softmax", "softmax of capped scores", "RMS norm", "layer norm", "sum of squares")),
        ("float32", ("softmax", "RMS norm", "cumulative sum")),
    )
    for program in programs
    for length in _LENGTHS
)
FIGURES: dict[str, Figure | Calls] = {
    "reversed_loads.effect": Figure("reversed_loads", ("", "reversed")),
    "reversed_loads.avx2": Figure("reversed_loads", ("", "reversed_always"), capability="avx2"),
    "reversed_loads.elsewhere": Figure(
        "reversed_loads_elsewhere", ("", "reversed_always"), _REVERSED, budget=2
    ),
    "short_ranges.effect": Figure("short_ranges", ("", "short_ranges"), capability="avx2"),
    **{
        f"short_ranges.{capability}": Figure(
            *("short_ranges_elsewhere", ("short_vectorised", "short_scalar"), _RANGES),
            *(tuple(map(str, CHANNELS)), capability),
            budget=1.5,
        )
        for capability in ("avx2", "avx512")
    },
    "invariant_operations.effect": Figure("invariant_operations", ("", "invariant")),
    "invariant_operations.elsewhere": Figure(
        "invariant_operations_elsewhere", ("", "invariant"), _INVARIANT, budget=2
    ),
    "tiles_for_threads.effect": Figure("tiles_for_threads", ("", "tiles"), threads=2, budget=10),
    "tiles_for_threads.elsewhere": Figure(
        "tiles_for_threads_elsewhere", ("", "tiles"), _TILES, threads=2, budget=3
    ),
    "mask_loads.effect": Figure("mask_loads", ("", "mask_loads"), as_called=True),
    "mask_loads.lanes": Figure("mask_loads", ("", "mask_loads_lanes"), as_called=True),
    **{
        f"mask_loads.{name}": Figure(
            *("mask_loads_elsewhere", ("", "mask_loads"), _MASKS),
            capability=capability,
            budget=2,
            as_called=True,
        )
        for name, capability in (("elsewhere", "avx512"), ("avx2", "avx2"))
    },
    "scaled_softmax.effect": Figure("scaled_softmax", ("", "scaled_softmax")),
    "scaled_softmax.never": Figure("scaled_softmax", ("", "scaled_softmax_never")),
    "scaled_softmax.elsewhere": Figure(
        "scaled_softmax_elsewhere", ("", "scaled_softmax"), _SOFTMAX, budget=2
    ),
    "persistent_rows.effect": Figure("persistent_rows", ("", "persistent_rows"), device="cuda"),
    "persistent_rows.elsewhere": Figure(
        "persistent_rows_elsewhere", ("", "persistent_always"), _ROWS, budget=1.5, device="cuda"
    ),
    "freezing_option.effect": Calls(("freezing",)),
    "freezing_option.elsewhere": Calls(
        tuple(
            f"freezing_{name}"
            for name in ("resnet50", "resnet50_channels_last", "gpt_block", "vit", "mlp_mixer", "unet")
        )
    ),
}


def measured(figure: Figure, place: Path, budget: float | None, jobs: int) -> list[dict[str, Any]]:
    """Return a row for each graph of a figure."""
    script = patches.FINDINGS / f"{figure.script}.py"
    environment = {"ATEN_CPU_CAPABILITY": figure.capability} if figure.device == "cpu" else {}
    runs: list[ip.Run] = []
    for side, patch in zip("AB", figure.patches, strict=True):
        folder = place / side
        if not (folder / "done").exists():
            program, args = (Path(patches.__file__), [patch, str(script)]) if patch else (script, [])
            args += figure.args
            options: dict[str, Any] = {
                "out": folder,
                "save_inputs": figure.as_called,
                "stdout_to_stderr": True,
            }
            if ip.dump(program, args=args, env=environment, **options).graphs:
                (folder / "done").touch()
        runs.append(ip.open_run(folder))
    inputs = "real" if figure.as_called else "random"
    settings = BenchSettings(budget=budget or figure.budget, threads=figure.threads, inputs=inputs)
    before = os.environ.get("ATEN_CPU_CAPABILITY")
    os.environ.update(environment)  # of the processes that compile again what they time
    try:
        graphs = compared(runs[0], runs[1], settings, jobs)
    finally:
        if before is None:
            os.environ.pop("ATEN_CPU_CAPABILITY", None)
        else:
            os.environ["ATEN_CPU_CAPABILITY"] = before
    return [
        {"label": label, **of_graph(graph)}
        for label, graph in zip(figure.labels or ("",), graphs, strict=True)
    ]


def compared(a: ip.Run, b: ip.Run, settings: BenchSettings, jobs: int) -> tuple[GraphWhatIf, ...]:
    """Check and time each pair of graphs; several `jobs` load and check at once, and take turns at timing."""
    if jobs == 1:
        return whatif_of_runs(a, b, settings, trust=True).graphs
    with tempfile.TemporaryDirectory() as folder, workers(jobs) as pool:
        settings = replace(settings, turns=Path(folder) / "turns")
        parts = pool.map(partial(_compared_graph, a.path, b.path, settings), range(len(a.graphs)))
        return tuple(graph for part in parts for graph in part)


def _compared_graph(a: Path, b: Path, settings: BenchSettings, number: int) -> tuple[GraphWhatIf, ...]:
    run = ip.open_run(a)
    return whatif_of_runs(run, ip.open_run(b), settings, only=run.graphs[number], trust=True).graphs


def workers(jobs: int) -> ProcessPoolExecutor:
    """Return processes that have forked from nothing: torch may be loaded here."""
    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))


def of_graph(graph: GraphWhatIf) -> dict[str, Any]:
    """Return what was found of a pair of graphs, as JSON."""
    if graph.result is None:
        return {"not_timed": str(graph.not_timed)}
    times = {each.name: each.seconds for each in graph.result.times}
    comparisons = graph.result.comparisons
    call = graph.call
    kernels = [each for each in comparisons if each is not call and each.baseline not in (EAGER, CALL)]
    # Of several kernels, the one that changes most.
    kernel = max(kernels, key=lambda each: abs(each.ratio - 1), default=None)
    eager = next((each for each in comparisons if each.baseline == EAGER), None)
    return {
        "correct": all(variant.correct for variant in graph.result.variants),
        **{
            name: {
                **interval(each),
                "seconds": times.get(each.baseline),
                "candidate": times.get(each.candidate),
            }
            for name, each in (("eager", eager), ("call", call), ("kernel", kernel))
            if each is not None
        },
    }


def interval(each: Comparison) -> dict[str, Any]:
    """Return how many times as fast the candidate is, with its interval and verdict."""
    speed = {"speed": 1 / each.ratio, "low": 1 / each.high, "high": 1 / each.low}
    return {**speed, "verdict": str(each.verdict), "excluded": each.excluded, "quads": each.quads}


def called(calls: Calls, budget: float | None, pairs: int) -> list[dict[str, Any]]:
    """Return a row for each program."""
    rows = []
    for name in calls.programs:
        found = whole_processes.called(name, calls.threads, pairs, budget or calls.budget)
        call = {**interval(found.comparison), "seconds": found.fastest}
        rows.append(
            {"label": name.removeprefix("freezing_"), "correct": True, "call": call}
            | {"first": found.first, "memory": found.memory}
        )
    return rows


def keep(name: str, rows: Sequence[dict[str, Any]], **how: Any) -> None:
    """Put a figure into the file of all, with the machine and how busy it was."""
    import torch

    kept = read()
    kept[name] = {
        "machine": f"{cpu_name()} ({os.cpu_count()} cores)",
        "torch": torch.__version__,
        "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
        "load": round(os.getloadavg()[0], 1),
        **how,
        "rows": list(rows),
    }
    write_whole(KEPT, json.dumps(dict(sorted(kept.items())), indent=1) + "\n")


def gpu() -> dict[str, str]:
    """Return what is said of a figure that is measured on the GPU of this machine."""
    import torch

    properties = torch.cuda.get_device_properties(0)
    return {"machine": properties.name, "capability": f"sm_{properties.major}{properties.minor}"}


def read() -> dict[str, Any]:
    """Return all figures that were kept."""
    kept: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    return kept


def written(text: str, kept: dict[str, Any]) -> str:
    """Return the text of a page with the tables of its figures as they were kept."""

    def table(match: re.Match[str]) -> str:
        name = match[2]
        lines = (
            index(kept) if name == "index" else shown(name, kept[name]) if name in kept else ["not measured"]
        )
        return match[1] + "\n".join(["", *lines, "", ""])

    return _BLOCK.sub(table, text)


def shown(name: str, kept: dict[str, Any]) -> list[str]:
    """Return the table of a figure, and how it was measured."""
    rows = kept["rows"]
    if "lines" in kept:
        return [*kept["lines"], "", f"`{kept['command']}`: torch {kept['torch']}, {kept['date']}."]
    if not rows:
        return [f"`{kept['command']}`: the code of no graph differs."]
    if name.startswith("sweep."):
        lines = _elsewhere(rows)
    elif "first" in rows[0]:
        lines = _calls(rows)
    elif not rows[0]["label"]:
        lines = _effect(rows[0])
    elif " | " in rows[0]["label"]:
        lines = _matrix(rows)
    else:
        lines = _elsewhere(rows)
    threads = "one thread" if kept["threads"] == 1 else f"{kept['threads']} threads"
    if kept["capability"].startswith("sm_"):
        threads = "data is cold"
    how = f"{kept['machine']}, {kept['capability']}, torch {kept['torch']}, {threads}"
    how += f", {kept['date']}, load {kept['load']}"
    return [*lines, "", f"`{kept['command']}`: {how}. {counted(rows)}"]


def counted(rows: Sequence[dict[str, Any]]) -> str:
    """Return how many rows have each verdict."""
    wrong = sum(not row.get("correct", True) for row in rows)
    verdicts = [row["call"]["verdict"] for row in rows if row.get("call") and row["correct"]]
    said = ", ".join(f"{verdicts.count(each)} {each}" for each in VERDICTS if each in verdicts)
    same = sum(row.get("not_timed") == "same-code" for row in rows)
    left = len(rows) - len(verdicts) - same - wrong
    said = f"Calls: {said or 'none timed'}; {wrong} wrong"
    said += f"; {same} of the same code" if same else ""
    return said + (f"; {left} not timed." if left else ".")


def _effect(row: dict[str, Any]) -> list[str]:
    lines = ["| | time | times as fast |", "|---|--:|--:|"]
    call, kernel, eager = row.get("call"), row.get("kernel"), row.get("eager")
    if call is None:  # the budget ended first, or both are the same code
        return [f"The whole call was not timed: {_not_timed(row)}."]
    if eager:
        lines.append(f"| eager | {_time(eager['seconds'])} | |")
    lines.append(f"| compiled | {_time(call['seconds'])} | {f'{_speed(eager)} of eager' if eager else ''} |")
    lines.append(f"| compiled, with the change | {_time(call['candidate'])} | {_speed(call)} of compiled |")
    if kernel:
        lines.append(f"| kernel | {_time(kernel['seconds'])} | |")
        lines.append(
            f"| kernel, with the change | {_time(kernel['candidate'])} | {_speed(kernel)} of the kernel |"
        )
    return lines


def _elsewhere(rows: Sequence[dict[str, Any]]) -> list[str]:
    lines = [
        "| program | a call takes | the change: times as fast | its kernel that changes most |",
        "|---|--:|--:|--:|",
    ]
    for row in rows:
        call, kernel = row.get("call"), row.get("kernel")
        if not call:
            lines.append(f"| {row['label']} | | {_not_timed(row)} | |")
            continue
        cells = _time(call["seconds"]), _speed(call) + _wrong(row), _speed(kernel) if kernel else ""
        lines.append(f"| {row['label']} | {' | '.join(cells)} |")
    return lines


def _matrix(rows: Sequence[dict[str, Any]]) -> list[str]:
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        line, _, column = row["label"].partition(" | ")
        said = _speed(row["call"]) + _wrong(row) if row.get("call") else _not_timed(row)
        cells.setdefault(line, {})[column] = said
    columns = list(next(iter(cells.values())))
    lines = [f"| | {' | '.join(columns)} |", f"|---|{'--:|' * len(columns)}"]
    return lines + [
        f"| {line} | {' | '.join(said[each] for each in columns)} |" for line, said in cells.items()
    ]


def _calls(rows: Sequence[dict[str, Any]]) -> list[str]:
    lines = [
        "| program | a call takes | the change: times as fast | first call, without and with | memory |",
        "|---|--:|--:|--:|--:|",
    ]
    for row in rows:
        first = " ".join(f"{each:.1f} s," for each in row["first"]).rstrip(",")
        memory = " ".join(f"{each / 2**20:.0f} MiB," for each in row["memory"]).rstrip(",")
        call = row["call"]
        lines.append(f"| {row['label']} | {_time(call['seconds'])} | {_speed(call)} | {first} | {memory} |")
    return lines


def index(kept: dict[str, Any]) -> list[str]:
    """Return the table of all findings: what is gained, and what the change does elsewhere."""
    lines = [
        "| page | decision | place in torch | the other decision: times as fast | elsewhere, of the sweep |",
        "|---|---|---|--:|---|",
    ]
    for page, (patch, decision, place) in INDEX.items():
        effect = kept.get(f"{page}.effect")
        speed = (
            _speed(effect["rows"][0]["call"]) if effect and "call" in effect["rows"][0] else "not measured"
        )
        swept = kept.get(f"sweep.{patch}")
        elsewhere = counted(swept["rows"]) if swept else ELSEWHERE.get(patch, "not measured")
        lines.append(f"| [{page}]({page}.md) | {decision} | {place} | {speed} | {elsewhere} |")
    return lines


_SELECT = "`TilingSelect.select_tiling`, `_inductor/codegen/cpp.py`"
INDEX = {
    "reversed_loads": (
        "reversed",
        "a flip is not vectorised: a stride of -1 counts as non-contiguous",
        _SELECT,
    ),
    "short_ranges": (
        *(
            "short_ranges",
            "AVX2: a loop of 3 integers is vectorised, whose partial vectors go through the stack",
        ),
        _SELECT,
    ),
    "invariant_operations": (
        *("invariant", "a nearest resize of 3 channels is vectorised: arithmetic on rows and columns counts"),
        _SELECT,
    ),
    "tiles_for_threads": (
        *("tiles", "threads share the elements of a loop, which is vectorised and has one step"),
        "`CppKernel.decide_parallel_depth`, `_inductor/codegen/cpp.py`",
    ),
    "mask_loads": (
        *("mask_loads", "a bool mask is loaded lane by lane, behind a branch for each"),
        "`VecMask::from`, `ATen/cpu/vec/vec_mask.h`",
    ),
    "scaled_softmax": (
        *("scaled_softmax", "a softmax of scaled scores gets a reduction that looks for infinite ones"),
        "`_preserve_scaled_softmax_nonfinite_semantics`, `_inductor/fx_passes/joint_graph.py`",
    ),
    "persistent_rows": (
        *(
            "persistent_rows",
            "Triton: rows of more than 1,024 elements are reduced in a loop, and read twice",
        ),
        "`InductorChoices.should_use_persistent_reduction`, `_inductor/choices.py`",
    ),
    "freezing_option": (
        *("freezing", '`torch.compile(options={"freezing": True})` freezes nothing'),
        "`is_parameter_freezing`, `_dynamo/utils.py`",
    ),
}
"""For each page the patch, the decision and the place in torch."""
ELSEWHERE = {"freezing": "turns no program that does not ask for it"}


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e6:.4g} us" if seconds < 1e-4 else f"{seconds * 1e6:.0f} us"


def _speed(each: dict[str, Any]) -> str:
    digits = 3 if each["speed"] < 0.1 else 2 if each["speed"] < 10 else 1
    numbers = tuple(f"{each[key]:.{digits}f}" for key in ("speed", "low", "high"))
    verdict = "" if each["verdict"] in ("FASTER", "SLOWER") else f" {each['verdict']}"
    text = f"{numbers[0]} ({numbers[1]} to {numbers[2]}){verdict}"
    return f"**{text}**" if each["verdict"] == "SLOWER" else text


def _wrong(row: dict[str, Any]) -> str:
    return "" if row["correct"] else " WRONG"


def _not_timed(row: dict[str, Any]) -> str:
    if not row.get("correct", True):
        return "WRONG"
    return str(row.get("not_timed", "the budget ended first")).replace("same-code", "the same code")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("measure", "write"))
    parser.add_argument("names", nargs="*", help=", ".join(FIGURES))
    parser.add_argument("--out", type=Path, help="a folder for dumps, which are used again")
    parser.add_argument(
        "--budget", type=float, help="seconds of timing for each graph, or each pair of processes"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, help="graphs of a GPU at once: they take turns at timing"
    )
    parser.add_argument("--pairs", type=int, default=3, help="of processes, for calls")
    options = parser.parse_args()
    if options.what == "write":
        for page in PAGES:
            write_whole(page, written(page.read_text(encoding="utf-8"), read()))
        return
    wanted = [
        name
        for name, figure in FIGURES.items()
        if name in options.names
        or name.partition(".")[0] in options.names
        or (not options.names and getattr(figure, "device", "cpu") == "cpu")
    ]
    if not wanted:
        parser.error(f"no such figure; there are {', '.join(FIGURES)}")
    with tempfile.TemporaryDirectory(prefix="findings_", ignore_cleanup_errors=True) as folder:
        for name in wanted:
            figure = FIGURES[name]
            out = (options.out or Path(folder)).resolve() / name
            command = f"python -m benchmarks.findings.figures measure {name}"
            if isinstance(figure, Calls):
                rows, capability = called(figure, options.budget, options.pairs), "avx512"
            else:
                rows, capability = measured(figure, out, options.budget, options.jobs), figure.capability
            how = {"command": command, "capability": capability, "threads": figure.threads}
            how |= gpu() if isinstance(figure, Figure) and figure.device == "cuda" else {}
            keep(name, rows, **how)
            print(*shown(name, read()[name]), "", sep="\n", flush=True)


if __name__ == "__main__":
    main()
