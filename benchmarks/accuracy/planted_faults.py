"""Faults planted in each layer of torch, in programs of many forms: are operator, line and layer named?

    python -m benchmarks.accuracy.planted_faults                      all
    python -m benchmarks.accuracy.planted_faults --only codegen
    python -m benchmarks.accuracy.planted_faults --form backward
    python -m benchmarks.accuracy.planted_faults --device cuda        on a GPU: all but those of the CPU

A cell is a script that plants a fault of one layer and calls a compiled function of one form. It is well if
exactly the planted operator is named, on the line of the user's that calls it, with the layer; two faults, if
both are. Cells that are empty say why. The last line has the counts.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from inductor_probe.accuracy_checks.options import AccuracyOptions
from inductor_probe.accuracy_checks.session import Judgement, judge_program
from inductor_probe.machine.targets import find_gpu_target
from inductor_probe.measuring.script_process import OwnProgram

HEAD = """
import torch
import torch._inductor.config as config
import torch.nn.functional as F
aten = torch.ops.aten
torch.manual_seed(0)
"""
SWAP = """
def swapped(graph):
    for node in list(graph.nodes):
        if node.target in (aten.sub.Tensor, torch.sub):
            with graph.inserting_before(node):
                other = graph.call_function(node.target, (node.args[1], node.args[0]))
                other.meta.update(node.meta)
            node.replace_all_uses_with(other)
            graph.erase_node(node)
"""


COMPILER = """#!/usr/bin/env bash
# A compiler that is wrong where it optimises.
words=("$@")
if [[ " $* " == *" -O3 "* ]]; then
  for place in "${!words[@]}"; do
    if [[ "${words[place]}" == *.cpp ]] && grep -q std::floor "${words[place]}"; then
      sed 's/std::floor(/std::ceil(/' "${words[place]}" > "${words[place]%.cpp}.other.cpp"
      words[place]="${words[place]%.cpp}.other.cpp"
    fi
  done
fi
exec /usr/bin/env g++ "${words[@]}"
"""


@dataclass(frozen=True)
class Plant:
    """A fault of a layer: what plants it, and expressions of x that call the operator, forward and backward.

    `forward` and `backward` are an operator, and an expression in which it is called there. `empty`: why
    there is no cell of a form. `layer`: of the fault, where it is not the plant's name. `target`: a GPU that
    is simulated, whose kernels triton's interpreter runs.
    """

    text: str
    forward: tuple[str, str]
    backward: tuple[str, str] | None
    empty: Mapping[str, str] = field(default_factory=dict)
    layer: str = ""
    target: str | None = None


PLANTS = {
    "dynamo": Plant(
        SWAP
        + """
from torch._dynamo import output_graph
made = output_graph.OutputGraph.call_user_compiler
def call(self, gm, inputs):
    swapped(gm.graph)
    gm.recompile()
    return made(self, gm, inputs)
output_graph.OutputGraph.call_user_compiler = call
""",
        ("aten.sub", "torch.sub(x, y)"),
        None,
        {"backward": "dynamo traces no backward"},
    ),
    "joint-graph": Plant(
        SWAP
        + """
from torch._functorch._aot_autograd import graph_capture
made = graph_capture._create_graph
def create(*args, **kwargs):
    gm = made(*args, **kwargs)
    swapped(gm.graph)
    gm.recompile()
    return gm
graph_capture._create_graph = create
""",
        ("aten.sub", "torch.sub(x, y)"),
        None,
        {"backward": "the swap is in forward and backward alike"},
    ),
    "decomposition": Plant(
        """
from torch._inductor.decomposition import decompositions
decompositions[aten.softplus.default] = lambda x, *args: (1 + x.exp()).log() + 0.01
decompositions[aten.elu_backward.default] = lambda grad, *args: grad * 1.01
""",
        ("aten.softplus", "F.softplus(x)"),
        ("aten.elu_backward", "F.elu(x)"),
    ),
    "pass": Plant(
        SWAP + "config.post_grad_custom_post_pass = swapped\n",
        ("aten.sub", "torch.sub(x, y)"),
        ("aten.sub", "torch.sigmoid(x)"),
    ),
    "lowering": Plant(
        """
from torch._inductor import lowering
from torch._inductor.virtualized import ops
def times(function):
    return lowering.make_pointwise(lambda x: ops.mul(function(x), ops.constant(1.01, torch.float32)))
lowering.lowerings[aten.tanh.default] = times(ops.tanh)
lowering.lowerings[aten.neg.default] = times(ops.neg)
""",
        ("aten.tanh", "torch.tanh(x)"),
        ("aten.neg", "torch.cos(x)"),
    ),
    "codegen": Plant(
        """
from torch._inductor.codegen.cpp import CppOverrides, CppVecOverrides
CppVecOverrides.sin = staticmethod(lambda x: f"{x}.cos()")
CppOverrides.sin = staticmethod(lambda x: f"std::cos({x})")
""",
        ("aten.sin", "torch.sin(x)"),
        ("aten.sin", "torch.cos(x)"),
    ),
    "scheduling": Plant(
        """
from torch._inductor.dependencies import WeakDep
from torch._inductor.scheduler import BaseSchedulerNode
made = BaseSchedulerNode.add_fake_dep
BaseSchedulerNode.add_fake_dep = lambda node, dep: None if isinstance(dep, WeakDep) else made(node, dep)
""",
        ("prims.rev", "x.flip(0) + y; x.add_(y)"),
        None,
        {
            "backward": "what needs a gradient is not written in place",
            **dict.fromkeys(("several outputs", "library call"), "the write is in another loop"),
        },
    ),
    "compiler": Plant(
        """
import pathlib, tempfile
folder = pathlib.Path(tempfile.mkdtemp())
(folder / "g++").write_text(COMPILER)
(folder / "g++").chmod(0o755)
config.cpp.cxx = (None, str(folder / "g++"))
config.cpp.simdlen = 1
""",
        ("aten.floor", "torch.floor(x * 3)"),
        None,
        {"backward": "no derivative rounds down"},
    ),
    "triton": Plant(
        """
from torch._inductor.codegen.triton import TritonOverrides
TritonOverrides.sin = staticmethod(lambda x: f"tl_math.cos({x})")
""",
        ("aten.sin", "torch.sin(x)"),
        ("aten.sin", "torch.cos(x)"),
        layer="codegen",
        target="h100",
    ),
}
OF_CPU = ("scheduling", "codegen", "compiler")
"""On a GPU the scheduler's plant shows nothing: a block of Triton reads all 360 elements before it writes."""
FORMS = {
    "forward": """
def f(x, y):
    h = OP
    return h * 2
torch.compile(f)(X, Y)
""",
    "backward": """
def f(x, y):
    h = OP
    return h * 2
x = X.requires_grad_()
torch.compile(f)(x, Y).sum().backward()
""",
    "dynamic": """
def f(x, y):
    h = OP
    return h * 2
g = torch.compile(f, dynamic=True)
g(X, Y)
g(X[:7], Y[:7])
""",
    "in place": """
def f(x, y):
    h = OP
    x.copy_(h)
    y.add_(1)
torch.compile(f)(X, Y)
""",
    "several outputs": """
def f(x, y):
    a = x * 3
    h = OP
    return a.sum(0), h.sum(1), a.exp(), h.flatten()[:3]
torch.compile(f)(X, Y)
""",
    "library call": """
def f(x, y):
    h = OP
    return (h @ y.T).relu()
torch.compile(f)(X, Y)
""",
    "two faults": """
from torch._inductor.codegen.cpp import CppOverrides as One, CppVecOverrides as Two
Two.sigmoid = staticmethod(lambda x: f"{x}.exp()")
One.sigmoid = staticmethod(lambda x: f"std::exp({x})")
from torch._inductor.codegen.triton import TritonOverrides
TritonOverrides.sigmoid = staticmethod(lambda x: f"tl_math.exp({x})")
def f(x, y):
    h = OP
    s = (y * 2).sigmoid()
    return h * 2, s + 1
torch.compile(f)(X, Y)
""",
}


def script_of(layer: str, form: str, device: str = "cpu") -> str:
    """Return the text of a cell."""
    plant = PLANTS[layer]
    _, expression = plant.backward if form == "backward" and plant.backward else plant.forward
    values = f"torch.randn(9, 40, device={'cuda' if plant.target else device!r})"
    inputs = f"X, Y = {values}, {values}\nCOMPILER = {COMPILER!r}\n"
    return HEAD + inputs + plant.text + FORMS[form].replace("OP", expression)


def main() -> None:
    """Run the cells, and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="layers, with commas between")
    parser.add_argument("--form", default="", help="forms, with commas between")
    parser.add_argument("--device", default="cpu", help="of the tensors: cpu, or cuda of this machine")
    chosen = parser.parse_args()
    good = bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for layer, plant in PLANTS.items():
            for form in FORMS:
                if (chosen.only and layer not in chosen.only.split(",")) or (
                    chosen.form and form not in chosen.form.split(",")
                ):
                    continue
                if chosen.device == "cuda" and layer in OF_CPU:
                    continue
                if form in plant.empty:
                    print(f"{layer:14} {form:16} empty: {plant.empty[form]}")
                    continue
                begin = time.perf_counter()
                faults = _cell(layer, form, Path(folder), chosen.device)
                good, bad = good + (not faults), bad + bool(faults)
                print(f"{layer:14} {form:16} {faults or 'well'} ({time.perf_counter() - begin:.0f} s)")
                sys.stdout.flush()
    print(f"{good} of {good + bad} cells are well (load {os.getloadavg()[0]:.1f})")
    sys.exit(bool(bad))


def _cell(layer: str, form: str, folder: Path, device: str) -> str:
    """Run a cell; say what is not as it should be."""
    script = folder / f"{layer}_{form}.py".replace(" ", "_")
    script.write_text(script_of(layer, form, device))
    plant = PLANTS[layer]
    target = find_gpu_target(plant.target) if plant.target and device == "cpu" else None
    program = OwnProgram(script=script, variables={}, target=target)
    judgement = judge_program(program, AccuracyOptions(try_s=0.1))
    operator, expression = plant.backward if form == "backward" and plant.backward else plant.forward
    expected = {(plant.layer or layer, operator)}
    expected |= {("codegen", "aten.sigmoid")} if form == "two faults" else set()
    return _faults(judgement, expected, f"h = {expression}")


def _faults(judgement: Judgement, expected: set[tuple[str, str]], line: str) -> str:
    found = {(value.layer, value.operator) for _, value in judgement.wrong}
    if found != expected:
        return f"found {sorted(found)} {judgement.not_judged} {judgement.problem}"
    lines = [value.user_line.text if value.user_line else "" for _, value in judgement.wrong]
    return "" if line in lines else f"on {lines}"


if __name__ == "__main__":
    main()
