"""Networks and operators judged by `probe accuracy`: verdict, seconds, what is wrong; nothing is planted.

    python -m benchmarks.accuracy.networks                 the networks of sweeps/models.py
    python -m benchmarks.accuracy.networks --only vit,lstm
    python -m benchmarks.accuracy.networks --memory        most memory of each, beside that of its eager run
    python -m benchmarks.accuracy.networks --operators 0/8 an eighth of the operator database, in float32

A wrong value here is a fault of torch, or of ours: each is looked at before it is written down.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from inductor_probe.accuracy_checks.options import AccuracyOptions
from inductor_probe.accuracy_checks.session import Judgement, judge_program
from inductor_probe.measuring.script_process import OwnProgram

ROOT = Path(__file__).parents[2]
NETWORK = """
import sys
sys.path.insert(0, {root!r})
import torch
from benchmarks.sweeps import models
torch.manual_seed(0)
models.NETWORKS[{name!r}]("cpu", torch.compile)
"""
OPERATORS = """
import torch
from inductor_probe.op_checks.samples import operators

def called(op, sample):
    def run(value, args, kwargs):
        return op.op(value, *args, **kwargs)
    run.__qualname__ = op.name
    return run

for number, op in enumerate(list(operators().values())[{part}::{parts}]):
    if torch.{dtype} not in op.dtypes or op.name.startswith(("empty", "new_empty", "_segment")):
        continue
    try:
        samples = list(op.sample_inputs("cpu", torch.{dtype}, requires_grad=False))[:{most}]
    except Exception as error:
        print("no samples of", op.name, error)
        continue
    for sample in samples:
        torch._dynamo.reset()
        try:
            torch.compile(called(op, sample))(sample.input, sample.args, sample.kwargs)
        except Exception as error:
            print(op.name, type(error).__name__)
"""


def main() -> None:
    """Judge, and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="names of networks, with commas between")
    parser.add_argument("--operators", default="", metavar="PART/PARTS", help="a part of the database")
    parser.add_argument("--samples", type=int, default=2, help="of each operator")
    parser.add_argument("--dtype", default="float32", help="of their samples")
    parser.add_argument("--seconds", type=float, default=120.0, help="of judging calls")
    parser.add_argument("--memory", action="store_true", help="measure memory; judge in a process of its own")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if chosen.operators:
            part, _, parts = chosen.operators.partition("/")
            text = OPERATORS.format(part=part, parts=parts, most=chosen.samples, dtype=chosen.dtype)
            _judged("operators", text, Path(folder), 36000.0)
            return
        for name in chosen.only.split(",") if chosen.only else _names():
            if chosen.memory:
                _print_memory(name, Path(folder))
                continue
            _judged(name, NETWORK.format(root=str(ROOT), name=name), Path(folder), chosen.seconds)


def _names() -> list[str]:
    from benchmarks.sweeps import models  # noqa: PLC0415 - it imports torch

    return [*models.names("cpu")]


def _print_memory(name: str, folder: Path) -> None:
    script = folder / f"{name}_eager.py"
    script.write_text(NETWORK.format(root=str(ROOT), name=name))
    eager = _most_memory([str(script)], TORCH_COMPILE_DISABLE="1")
    judged = _most_memory(["-m", "benchmarks.accuracy.networks", "--only", name])
    times = f"{judged / eager:.1f} times" if eager and judged else "it did not end well"
    print(f"{name}: eager {eager} MiB, judged {judged} MiB: {times}", flush=True)


def _most_memory(arguments: list[str], **variables: str) -> int:
    """Return the most memory of a process, or of one that it started, in MiB; 0 of one that failed."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **variables},
    )
    _, status, usage = os.wait4(process.pid, 0)
    return 0 if status else usage.ru_maxrss // 1024


def _judged(name: str, text: str, folder: Path, seconds: float) -> None:
    script = folder / f"{name}.py"
    script.write_text(text)
    begin = time.perf_counter()
    program = OwnProgram(script=script, variables={}, limit_s=36000.0)
    judgement = judge_program(program, AccuracyOptions(seconds=seconds, try_s=0.0))
    verdicts = [call.verdict for call in judgement.calls]
    counts = ", ".join(f"{verdicts.count(one)} {one}" for one in dict.fromkeys(verdicts))
    load = os.getloadavg()[0]
    print(f"{name}: {counts or 'nothing judged'} in {time.perf_counter() - begin:.0f} s (load {load:.1f})")
    _print(judgement)
    sys.stdout.flush()


def _print(judgement: Judgement) -> None:
    for call in judgement.calls:
        for value in call.values if call.verdict not in ("right", "rounding") else ():
            print(
                f"    {call.name}, {value.name}: {value.verdict} {value.why}, "
                f"eager {value.eager}, compiled {value.compiled}, float64 {value.reference}"
            )
    for _, wrong in judgement.wrong:
        values = f"eager {wrong.eager}, compiled {wrong.compiled}, float64 {wrong.reference}"
        print(f"    {wrong.layer} {wrong.operator} {wrong.buffer}: {values}")
    for text in judgement.not_judged:
        print(f"    not judged: {text}")
    if judgement.problem:
        print(f"    {judgement.problem}")


if __name__ == "__main__":
    main()
