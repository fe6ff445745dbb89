"""Known kernels of a matter, hidden in networks: how many operators does `probe reduce` leave?

    python -m benchmarks.reduction.known_cores                      all
    python -m benchmarks.reduction.known_cores --only roll split    those whose name has one of the words
    python -m benchmarks.reduction.known_cores --check              does each show its matter, unreduced?

Each program is a network of many operators with a few in its middle that alone show what is kept: the core.
A row is well if the program that is left has at most twice as many calls as the core, and shows it when it
runs alone. Seconds are those of this machine, with all that else runs there.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import inductor_probe as ip

HERE = Path(__file__).parent
_NO_TIME = 0.001
_NETWORK = """
import torch
import torch.nn.functional as F
{head}

class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range({layers}))
        self.norm = torch.nn.LayerNorm(32)

    def core(self, x):
        {core}

    def forward(self, x):
        for place, layer in enumerate(self.linear):
            x = torch.tanh(F.gelu(layer(x)) * 0.5 + self.norm(x))
            if place == {layers} // 2:
                x = self.core(x)
        return x.softmax(-1)

torch.manual_seed(0)
network = Network().eval()
compiled = torch.compile(network{options})
with torch.no_grad():
    {calls}
"""


@dataclass(frozen=True)
class Known:
    """A core: lines of a function of x (64 x 32), how many calls of torch it has, and what is kept.

    Each of the `layers` around it is six calls. `budget`: seconds.
    """

    core: str
    calls: int
    keep: str
    inputs: str = "compiled(torch.randn(64, 32))"
    options: str = ""
    faulty: bool = False
    layers: int = 14
    budget: float = 300.0


KNOWN = {
    "roll_beside_tanh": Known(
        "return torch.roll(x, 3, -1).tanh()", 2, "expect: --cause non-contiguous-accesses", layers=25
    ),
    "flip": Known("return x.flip(-1) * 2", 1, "expect: --cause constant-stride", layers=50),
    "remainder": Known(
        "return x + torch.arange(2048).reshape(64, 32) % 7", 3, "expect: --cause varying-stride"
    ),
    "cumulative_sum": Known("return x.cumsum(-1) + 1", 1, "expect: --cause no-backend-feature"),
    "sort_falls_back": Known(
        "return x.sort(-1).values + x", 2, "not expect: --no-fallback", layers=50
    ),
    "median": Known("return x - x.median(-1, keepdim=True).values", 2, "not expect: --no-fallback"),
    "largest": Known("return x + x.topk(32, -1).values", 2, "not expect: --no-fallback"),
    "concatenation": Known(
        "return torch.cat([x[:, :16], x[:, 16:] * 2], -1)", 3, "not expect: --no-copy"
    ),
    "not_fused_sum": Known("return x / x.sum(0)", 2, "not expect: --fused aten.sum+aten.div"),
    "strided_sum": Known("return x / x.sum(0)", 1, "expect: --cause strided-reads", layers=25),
    "rounding": Known("return x.to(torch.bfloat16).float() + 1", 2, "expect: --cause cast-back"),
    "interpolation": Known(
        'return F.interpolate(x[None, None], size=(64, 32), mode="bilinear")[0, 0]', 2,
        "expect: --cause indirect-access",
    ),
    "maxima": Known(
        "return F.max_pool1d(x[None], 3, 1, 1)[0]", 2, "expect: --cause below-unroll-threshold"
    ),
    "scatter": Known(
        "return x.scatter_add(-1, torch.zeros(64, 32, dtype=torch.int64), x)", 2,
        "expect: --cause scatter-sum-threads",
    ),
    "fails_in_lowering": Known("return torch.asinh(x) + 1", 1, "fails", faulty=True),
    "fails_behind_sum": Known(
        "return torch.atanh(x.sum(-1, keepdim=True)) * x", 1, "fails", faulty=True, layers=50
    ),
    "wrong_lowering": Known("return torch.sinh(x) + 1", 1, "wrong", faulty=True),
    "wrong_in_middle": Known(
        "return torch.erfinv(x.sigmoid() * 0.5)", 1, "wrong", faulty=True, layers=25
    ),
    "recompiled_for_size": Known(
        "return x.reshape(-1).reshape(x.shape)", 1, "recompiles",
        "compiled(torch.randn(64, 32)); compiled(torch.randn(65, 32))", layers=25,
    ),
    "command": Known("return torch.roll(x, 1, 0) * 2", 1, "run: grep -q torch.roll", layers=50),
}  # fmt: skip


def main() -> None:
    """Reduce each, and print a row."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[""])
    parser.add_argument("--check", action="store_true", help="ask the unreduced programs alone")
    parser.add_argument("--jobs", type=int)
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), *sys.path[:1], os.environ.get("PYTHONPATH", "")])
    print("| core | kept | nodes | calls of the core | left | tried | s | load | |")
    print(f"|{'---|' * 9}")
    well = []
    names = [name for name in KNOWN if any(word in name for word in options.only)]
    for name in names:
        budget = _NO_TIME if options.check else KNOWN[name].budget
        row, is_well = reduced(name, KNOWN[name], options.jobs, budget)
        well.append(is_well)
        print(row, flush=True)
    print(f"\n{sum(well)} of {len(well)} have at most twice as many calls as the core")


def text_of(known: Known, layers: int) -> str:
    """Return the program that hides a core in the middle of some layers."""
    head = "import faults" if known.faulty else ""
    return _NETWORK.format(
        head=head, layers=layers, core=known.core, options=known.options, calls=known.inputs
    )


def reduced(name: str, known: Known, jobs: int | None, budget: float) -> tuple[str, bool]:
    """Reduce a program; return its row, and whether it is well: without time, whether it shows it at all."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, f"{name}.py")
        script.write_text(text_of(known, known.layers))
        imports: Sequence[str] = ("faults",) if known.faulty else ()
        try:
            record = ip.reduce(
                script,
                keep=[known.keep],
                output=Path(folder, "small.py"),
                imports=imports,
                jobs=jobs,
                budget=budget,
            ).record
        except ip.ProbeError as error:
            return f"| {name} | `{known.keep}` | | {known.calls} | | | | | {error.message} |", False
        is_well = record.holds and (budget == _NO_TIME or record.left <= 2 * known.calls)
        why = (
            ""
            if is_well
            else "; ".join([*record.says, *(text for one in record.graphs for text in one.says)])
        )
        cells = (
            name, f"`{known.keep}`", record.nodes, known.calls, record.left, record.asked,
            f"{record.seconds:.0f}", f"{os.getloadavg()[1]:.1f}", "well" if is_well else why[:150],
        )  # fmt: skip
        return f"| {' | '.join(map(str, cells))} |", is_well


if __name__ == "__main__":
    main()
