"""A process that writes, runs and checks bench files, one after another, for `bench.py`.

It reads folders of graphs on its standard input and answers each with a line of JSON. Kernels are compiled as
inductor compiles them; its precompiled headers and its cache make a kernel's second copy cheap.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
import types
from pathlib import Path
from typing import Any

from inductor_probe.analysis.input_bounds import input_bounds
from inductor_probe.bench_file.compile_settings import in_todays_places
from inductor_probe.bench_file.source import bench_source
from inductor_probe.files import read_text
from inductor_probe.harness import reference
from inductor_probe.harness.bench import Bench
from inductor_probe.harness.checks import ANYTHING, Check
from inductor_probe.harness.inputs import changed, clone
from inductor_probe.harness.judge import POISON
from inductor_probe.harness.references import judge, prepare
from inductor_probe.reader.debug_dir import graph_dir, read_graph

_REASON = 500
TIMES = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
RUNS = 5  # of output_code.py: whether it is steady


class Failed(Exception):  # noqa: N818 - what a graph did, no error of this program
    """A graph failed; the first argument is at what, the second why."""


def write(folder: Path, out: Path) -> tuple[Path, Path]:
    """Write the bench file of the graph in `folder`, and the original beside it, below `out`; return both."""
    graph = graph_dir(folder)
    if graph is None:
        raise Failed("not written", f"{folder} is no graph")
    compiled = read_graph(graph)
    code = folder / "output_code.py"
    runnable, readable = folder / "fx_graph_runnable.py", folder / "fx_graph_readable.py"
    source = bench_source(
        read_text(code),
        read_text(runnable) if runnable.exists() else None,
        graph.name,
        compiled.record.inputs if compiled.record else (),
        code,
        bounds=input_bounds(compiled),
        readable=read_text(readable) if readable.exists() else None,
    )
    target = out / f"current-{os.getpid()}" / "output_code_bench.py"
    target.parent.mkdir(exist_ok=True)
    target.write_text(source)
    original = target.with_name("output_code.py")
    original.write_text(in_todays_places(read_text(code)))
    return original, target


def execute(path: Path) -> dict[str, Any]:
    """Run a file as a module that is not `__main__`; return its names."""
    module = types.ModuleType(f"bench_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)  # noqa: S102 - what this is for
    return module.__dict__


def check(folder: Path, out: Path) -> str:
    """Put one graph to all tests; return a note about its reference, if there is something to say.

    Raises:
        Failed: it fails one of them.
    """
    import torch

    try:
        code, path = write(folder, out)
    except Exception as error:
        raise Failed("not written", said(error)) from error
    try:
        names = execute(path)
        original = execute(code)
    except Exception as error:
        raise Failed("does not compile", said(error)) from error
    bench = Bench(names)
    with torch.no_grad():
        try:
            inputs = bench.inputs(0)
        except Exception as error:
            raise Failed("no inputs", said(error)) from error
        for name, value in names.items():
            if isinstance(value, torch.Tensor):  # constants, which `make_inputs` makes
                original[name] = value
        try:
            rounds, needed = judged(bench)
        except Failed:
            raise
        except Exception as error:
            raise Failed("does not run", said(error)) from error
        note = same_bits(names, original, inputs, rounds[0][0].expected)
        for variant in bench.variants():
            verdict = judge(variant, [each for each, _ in rounds])
            if not verdict.correct:
                raise Failed("copy wrong", verdict.sentence())
    far = f"off by more than eager, within {needed:g} times" if needed > 1 else ""
    return "; ".join(each for each in (note, *reasons(rounds[-1][1]), far) if each)


def reasons(check: Check) -> list[str]:
    """Return why a check ended as it did."""
    return [sentence.format(**numbers) for sentence, numbers in check.remarks]


def judged(bench: Bench) -> tuple[list[Any], float]:
    """Run the pristine call and its references; return the rounds, and the least of EAGER that passes.

    Raises:
        Failed: it is wrong by the usual one, too.
    """
    usual = reference.EAGER
    for times in (*(each for each in TIMES if each < usual), usual):
        reference.EAGER = times
        rounds = [prepare(bench, seed, at) for seed, at in enumerate(POISON)]
        wrong = [check for _, check in rounds if not check.correct]
        told = [reason for _, check in rounds for reason in reasons(check)]
        if not wrong and not any("computes something else in it" in reason for reason in told):
            break
    reference.EAGER = usual
    if wrong:
        raise Failed("wrong", wrong[0].sentence())
    return rounds, times if not rounds[0][1].remarks else 1.0


def same_bits(names: dict[str, Any], original: dict[str, Any], inputs: list[Any], expected: list[Any]) -> str:
    """Run `call` of the bench file and of `output_code.py` on the same inputs, and compare the bits.

    Where `output_code.py` differs from itself as well (atomic additions, a scan that looks back), no bits
    can be compared: that is said. Nor can memory that the graph does not write to.

    Raises:
        Failed: they differ.
    """
    theirs, ours = outcome(names, original, inputs), outcome(names, names, inputs)
    if len(theirs) != len(ours):
        raise Failed("other bits", f"{len(ours)} outputs instead of {len(theirs)}")
    other = [
        at for at in differing(names, theirs, ours) if at >= len(expected) or expected[at] is not ANYTHING
    ]
    if not other:
        return ""
    unsteady = set[int]()
    for _ in range(RUNS):
        unsteady.update(differing(names, theirs, outcome(names, original, inputs)))
    if steady := [at for at in other if at not in unsteady]:
        raise Failed("other bits", f"output {steady[0]}")
    return f"not compared bit for bit, since output_code.py differs from run to run: outputs {other}"


def outcome(names: dict[str, Any], module: dict[str, Any], inputs: list[Any]) -> list[Any]:
    """Return the outputs of a module's `call`, and its inputs as they are afterwards.

    Raises:
        Failed: it does not run.
    """
    import torch

    values = clone(inputs)
    torch.manual_seed(0)
    try:
        return [*module["call"](list(values)), *values]
    except Exception as error:
        which = "bench file's" if module is names else "original"
        raise Failed("does not run", f"the {which} call: {said(error)}") from error


def differing(names: dict[str, Any], old: list[Any], new: list[Any]) -> list[int]:
    """Return which outputs are not the same, bit for bit."""
    pairs = zip(old, new, strict=True)
    return [at for at, pair in enumerate(pairs) if not equal(*pair)]


def equal(old: Any, new: Any) -> bool:
    """Tell whether two outputs are the same, bit for bit."""
    import torch

    if not isinstance(old, torch.Tensor) or not isinstance(new, torch.Tensor):
        return type(old) is type(new) and repr(old) == repr(new)
    form = [(each.size(), each.stride(), each.dtype) for each in (old, new)]
    return form[0] == form[1] and not changed([old], [new])


def said(error: Exception) -> str:
    """Say what was raised."""
    return f"{type(error).__name__}: {error}"


def work(out: Path, imports: list[str]) -> None:
    """Answer folders on standard input until it ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what kernels and torch print is no answer
    import torch

    torch.set_num_threads(1)
    for text in imports:
        module, _, function = text.partition(":")
        imported = importlib.import_module(module)
        if function:
            getattr(imported, function)()
    answers.write("ready\n")
    for line in sys.stdin:
        name = line.strip()
        begin = time.perf_counter()
        status, reason = "ok", ""
        try:
            reason = check(Path(name), out)
        except Failed as failure:
            status, reason = failure.args
        except Exception as error:  # a mistake in the checks themselves is a finding, too
            status, reason = "check raises", said(error)
        seconds = round(time.perf_counter() - begin, 2)
        row = {"name": name, "status": status, "reason": reason[:_REASON], "seconds": seconds, "ends": False}
        gc.collect()
        answers.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    work(Path(sys.argv[1]), sys.argv[2:])
