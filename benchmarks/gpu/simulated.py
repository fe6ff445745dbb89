"""Is what is generated for a simulated GPU what the real one gets? On a machine with a GPU.

    python -m benchmarks.gpu.simulated [--target h200] [--jobs 6] [--on-gpu 2] [--only hflip] [SCRIPT ...]

Dumps every case for `cuda` of all scenarios and of the proving ground, whole networks
(`findings/networks.py`, `--only networks`; of transformers, torchvision and torch_geometric,
`libraries.py`, `--only libraries`; or some of them by name), and each SCRIPT, twice: on the GPU of this
machine, and simulated. Compares the graphs of each case in order: every Triton kernel's text, the wrapper's
text without the kernels, and what was decided. What one side lacks is unequal, and so is a name. Prints a
table and, for each case that differs, the first line that does. A script without cases is one row. A dump
that lies in the folder already is taken as it is. Times that torch measures to decide (autotuning, padding)
are ties where the GPU is simulated: kernels may then differ rightly.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from msgspec.structs import replace

from inductor_probe.model.codec import to_json
from inductor_probe.model.decision import DECISIONS_NAME, Decision
from inductor_probe.reader.debug_dir import read_run
from inductor_probe.store.decisions import read_decisions

ROOT = Path(__file__).parents[2]
KERNEL = re.compile(
    r"^(\w+) = async_compile\.triton\('\w+', '''\n(.*?)^''', device_str='cuda'\)$", re.M | re.S
)
OWN_PATHS = re.compile(r"/[^\s'\"]*/(?:inductor|triton)/[^\s'\"]*")
"""Of the caches that each dump has to itself."""
WITH_PROBE = {"PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))}
TIMEOUT_S = 540
NETWORKS = ("resnet50_training", "resnet50_channels_last_training", "gpt_block_training", "gpt_block")
"""Of `findings/networks.py`."""
LIBRARIES = (
    *("llama", "gemma2_training", "vit_training", "qwen3_moe", "whisper", "resnet18_training", "swin"),
    *("preprocessing", "sage_gat_training", "fp8_linear", "kernel_of_the_user", "rms_norm_rows_training"),
    *("bert_training", "gpt2_training", "t5_training", "clip", "convnext_training", "mobilenet", "wav2vec2"),
    "gcn_training",
)
"""Of `libraries.py`."""


@dataclass(frozen=True)
class Graph:
    """What was generated for a graph: kernels by name, the rest of the code, and decisions."""

    kernels: dict[str, str]
    wrapper: str
    decisions: tuple[str, ...]


@dataclass(frozen=True)
class Dump:
    """A script that is dumped with some of its cases, on the GPU or simulated."""

    script: Path
    cases: tuple[str, ...]
    target: str | None
    arguments: tuple[str, ...] = ()

    def run(self, folder: Path) -> dict[str, list[Graph]] | str:
        """Return the graphs of each case, or what went wrong."""
        name = "-".join([self.script.parent.name, self.script.stem, *self.arguments])
        out = folder / f"{name}-{self.target or 'real'}"
        command = [sys.executable, "-m", "inductor_probe", "dump", str(self.script), "--out", str(out)]
        command += [f"--case={case}" for case in self.cases]
        command += [f"--target={self.target}"] if self.target else []
        command += ["--", *self.arguments] if self.arguments else []
        environment = {**os.environ, **WITH_PROBE, "TORCHINDUCTOR_COMPILE_THREADS": "2"}
        begin, text = time.monotonic(), out / "said.txt"
        if not text.exists():
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, check=False, env=environment, timeout=TIMEOUT_S
                )
                said = f"{done.stdout}\n{done.stderr}"
            except subprocess.TimeoutExpired:
                said = f"no end after {TIMEOUT_S} s"
            print(f"{time.monotonic() - begin:4.0f} s  {out.name}", file=sys.stderr, flush=True)
            out.mkdir(parents=True, exist_ok=True)
            text.write_text(said)
        said = text.read_text()
        graphs: dict[str, list[Graph]] = {}
        for path in sorted(out.glob("torch_compile_debug/run_*")):
            run = read_run(path)
            for graph in run.manifest.graphs if run.manifest else ():
                found = path / "torchinductor" / graph.name
                if (found / "output_code.py").exists():
                    graphs.setdefault(graph.case or "", []).append(read_graph(found))
        return graphs or next((line for line in reversed(said.splitlines()) if "Error" in line), said[-300:])


def read_graph(folder: Path) -> Graph:
    """Read what was generated into a graph's folder."""
    text = OWN_PATHS.sub("CACHE", (folder / "output_code.py").read_text())
    path = folder / DECISIONS_NAME
    decisions = read_decisions(path).decisions if path.exists() else ()
    return Graph(
        {match[1]: match[2] for match in KERNEL.finditer(text)},
        KERNEL.sub(r"\1 = ...", text),
        tuple(sorted(map(without_number, decisions))),
    )


def without_number(decision: Decision) -> str:
    """Return what a decision says, as text, without its place in the order of all."""
    return json.dumps(to_json(replace(decision, number=0)), sort_keys=True)


def cuda_cases(script: Path) -> tuple[str, ...]:
    """Return the cases of a scenario script that have `device: cuda`."""
    listed = subprocess.run(
        [sys.executable, str(script), "--list"],
        capture_output=True, text=True, check=False, env={**os.environ, **WITH_PROBE},
    ).stdout.splitlines()  # fmt: skip
    return tuple(row.split()[0] for row in listed[1:] if "cuda" in row.split()[1:])


def first_difference(real: str, simulated: str) -> str:
    """Return the first line that two texts do not share, as each has it, from a little before that."""
    for mine, other in zip_longest(real.splitlines(), simulated.splitlines(), fillvalue=""):
        if mine != other:
            at = next((i for i, (a, b) in enumerate(zip(mine, other, strict=False)) if a != b), 0)
            start = max(0, at - 40)
            return f"{mine[start : at + 80]!r} | {other[start : at + 80]!r}"
    return ""


def compare(real: list[Graph], simulated: list[Graph]) -> tuple[list[int], list[str]]:
    """Return counts of graphs, kernels, equal kernels, equal wrappers, equal decisions; and differences."""
    counts, differences = [0] * 5, []
    if len(real) != len(simulated):
        differences.append(f"{len(real)} graphs | {len(simulated)} graphs")
    for one, other in zip_longest(real, simulated, fillvalue=Graph({}, "", ())):
        texts = list(zip_longest(one.kernels.items(), other.kernels.items(), fillvalue=("", "")))
        equal = [mine == its for mine, its in texts]
        counts[0] += 1
        counts[1] += len(texts)
        counts[2] += sum(equal)
        counts[3] += one.wrapper == other.wrapper
        counts[4] += one.decisions == other.decisions
        differences += [
            f"{mine[0]}: {first_difference(mine[1], its[1])}"
            for (mine, its), same in zip(texts, equal, strict=True)
            if not same
        ]
        if one.wrapper != other.wrapper:
            differences.append(f"wrapper: {first_difference(one.wrapper, other.wrapper)}")
        if one.decisions != other.decisions:
            only = sorted({*one.decisions} ^ {*other.decisions})
            both = f"{len({*one.decisions} - {*other.decisions})} only on the real GPU"
            differences.append(
                f"decisions: {both}, of {len(only)} that differ: {only[0][:300]}" if only else both
            )
    return counts, differences


def scripts(named: list[str], only: list[str]) -> Iterator[tuple[Path, tuple[str, ...], tuple[str, ...]]]:
    """Yield each script with its cases, and its arguments."""
    own = [
        *sorted((ROOT / "scenarios").glob("check_*.py")),
        *sorted((ROOT / "tests/proving_ground").glob("*.py")),
    ]
    for script in own:
        if "PROGRAMS" not in script.read_text() and script.parent.name != "scenarios":
            continue
        if only and script.stem.removeprefix("check_") not in only:
            continue
        if cases := cuda_cases(script):
            yield script, cases, ()
    for program, kind, names in (
        ("findings/networks", "networks", NETWORKS),
        ("gpu/libraries", "libraries", LIBRARIES),
    ):
        chosen = [name for name in names if not only or {kind, name} & {*only}]
        yield from ((ROOT / f"benchmarks/{program}.py", (), (name,)) for name in chosen)
    yield from ((Path(script), (), ()) for script in named)


def main() -> None:
    """Dump all, compare, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("script", nargs="*")
    parser.add_argument("--target", default="h200")
    parser.add_argument("--jobs", type=int, default=6, help="simulated dumps at once")
    parser.add_argument("--on-gpu", type=int, default=2, help="dumps on the GPU at once: torch times there")
    parser.add_argument("--folder", type=Path, default=Path("simulated_gpu"))
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    found = list(scripts(options.script, [name for name in options.only.split(",") if name]))
    targets = (None, options.target)
    dumps = [Dump(script, cases, target, words) for script, cases, words in found for target in targets]
    with ThreadPoolExecutor(options.on_gpu) as on_gpu, ThreadPoolExecutor(options.jobs) as off_gpu:
        pools = {None: on_gpu, options.target: off_gpu}
        running = {dump: pools[dump.target].submit(dump.run, options.folder) for dump in dumps}
    results = {dump: future.result() for dump, future in running.items()}
    total = [0] * 5
    notes: list[str] = []
    print("| script | case | graphs | kernels | equal | wrappers equal | decisions equal |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for script, cases, words in found:
        real, simulated = (results[Dump(script, cases, target, words)] for target in targets)
        for case in cases or ("",):
            label = f"{script.stem} | {case or ' '.join(words)}"
            if isinstance(real, str) or isinstance(simulated, str):
                texts = [side if isinstance(side, str) else "graphs" for side in (real, simulated)]
                print(f"| {label} | - | - | - | - | - |")
                notes.append(f"{label}: {texts[0]} | {texts[1]}")
                continue
            counts, differences = compare(real.get(case, []), simulated.get(case, []))
            print(f"| {label} | {' | '.join(map(str, counts))} |")
            total = [a + b for a, b in zip(total, counts, strict=True)]
            notes += [f"{label}: {difference}" for difference in differences[:4]]
    graphs, kernels, equal, wrappers, _ = total
    share = (equal + wrappers) / max(kernels + graphs, 1)
    print(f"| all | | {' | '.join(map(str, total))} |\n\n{share:.1%} of kernels and wrappers are equal.\n")
    print("\n".join(notes))


if __name__ == "__main__":
    main()
