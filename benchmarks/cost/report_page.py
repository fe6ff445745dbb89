"""How large the page of `probe report` is, and what a browser takes to open it: networks, or runs.

    python -m benchmarks.cost.report_page [--keep FOLDER] [NETWORK|RUN ...]

Each network is dumped, its page written and opened in a headless Chromium. Printed are the nodes of all
graphs on the page, megabytes, the processor time of writing, and that of the page's own thread from loading
to the first frame that can be used, the median of five: time on the clock would be that of the machine's
load. It is read at full speed, and again where Chromium slows itself down to a quarter, as a slow laptop has.
Wanted: 2 MB for 100 nodes, 8 MB for 1,000, and a second on the laptop.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import CDPSession, Page

import inductor_probe as ip
from tests.browser import MISSING, chromium, program, tab

SCRIPT = """
import sys

import torch
from benchmarks.sweeps.networks import GPT, Mixer, UNet, ViT, resnet
from torch import nn

torch.manual_seed(0)
match sys.argv[1]:
    case "resnet50":
        made, inputs = resnet().eval(), torch.randn(2, 3, 64, 64)
    case "vit":
        made, inputs = ViT().eval(), torch.randn(2, 3, 56, 56)
    case "mixer":
        made, inputs = nn.Sequential(*(Mixer(49, 64) for _ in range(8))).eval(), torch.randn(2, 49, 64)
    case "unet_training":
        made, inputs = UNet(), torch.randn(1, 3, 48, 64)
    case "gpt_training":
        made, inputs = GPT(), torch.randint(0, 300, (2, 33))
    case "gpt_of_16_training" | "adam":
        made, inputs = GPT(depth=16), torch.randint(0, 300, (2, 33))
training = sys.argv[1].endswith("training")
if sys.argv[1] == "adam":
    optimizer = torch.optim.Adam(made.parameters(), foreach=True)
    made(inputs).backward()
    torch.compile(optimizer.step)()
else:
    with torch.set_grad_enabled(training):
        result = torch.compile(made)(inputs)
    if training:
        result.square().mean().backward()
"""
NETWORKS = ("resnet50", "vit", "mixer", "unet_training", "gpt_training", "gpt_of_16_training", "adam")
ROUNDS = 5


def main() -> None:
    """Print a line for each network."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="for scripts, dumps and pages")
    parser.add_argument("networks", nargs="*", metavar="NETWORK|RUN", help=", ".join(NETWORKS))
    options = parser.parse_args()
    if program() is None:
        sys.exit(MISSING)
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place,
        chromium() as browser,
        tab(browser) as opened,
    ):
        folder = options.keep or Path(place)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "network.py").write_text(SCRIPT)
        print(f"{'':<24}{'nodes':>7}{'MB':>7}{'written':>10}{'opened':>10}{'at 1/4':>10}")
        for name in options.networks or NETWORKS:
            page, nodes, written = write(name, folder)
            size, taken, slow = page.stat().st_size / 1e6, seconds(opened, page), seconds(opened, page, 4)
            row = f"{page.stem:<24}{nodes:>7}{size:>7.2f}{written:>8.1f} s{taken:>8.2f} s{slow:>8.2f} s"
            print(row, flush=True)


def write(name: str, folder: Path) -> tuple[Path, int, float]:
    """Write the page of a run, or of a network that is dumped unless it was: its path, nodes, and seconds."""
    run = folder / name if name in NETWORKS else Path(name)
    if not run.exists():
        command = [
            sys.executable,
            "-m",
            "inductor_probe",
            "dump",
            "--label",
            name,
            "--out",
            str(run),
            "network.py",
            "--",
            name,
        ]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, env=_environment())
    begin = time.process_time()
    report = ip.report_of(run)
    page = folder / f"{report.record.runs[0].name}.html"
    page.write_text(report.html)
    taken = time.process_time() - begin
    return page, sum(len(graph.nodes) for graph in report.record.graphs), taken


def _environment() -> dict[str, str]:
    """Return one in which the script sees this repository."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def seconds(opened: Page, page: Path, slower: float = 1) -> float:
    """Return the processor time of opening a page, until its script has run and it is drawn."""
    tools = opened.context.new_cdp_session(opened)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})
    tools.send("Emulation.setCPUThrottlingRate", {"rate": slower})
    taken = []
    for _ in range(ROUNDS):
        opened.goto("about:blank")
        begin = busy(tools)
        opened.goto(page.as_uri())
        opened.locator("body.ready").wait_for()
        opened.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
        taken.append(busy(tools) - begin)
    tools.detach()
    return statistics.median(taken)


def busy(tools: CDPSession) -> float:
    """Return the processor time of the page's main thread since its start, in seconds."""
    metrics = tools.send("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))


if __name__ == "__main__":
    main()
