"""`probe bench-kernel`: a standalone bench file for a graph, and what running it says."""

from __future__ import annotations

import sys

import click

import inductor_probe as ip
from inductor_probe.cli.screen import relative, say, show_json
from inductor_probe.errors import ExitCode
from inductor_probe.report.bench import bench_file_json, bench_file_text, bench_json


@click.command()
@click.argument("target", required=False, metavar="[GRAPH]")
@click.option("--kernel", help="Time only this kernel and its variants.")
@click.option("--run/--no-run", default=True, help="Run the file after writing it.")
@click.option("--min-run-time", type=click.FloatRange(min=0.01), help="Seconds to spend on each comparison.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads of torch and OpenMP.")
@click.option("--json", is_flag=True, help="Print JSON with stable keys.")
def bench_kernel(
    target: str | None,
    *,
    kernel: str | None,
    run: bool,
    min_run_time: float | None,
    threads: int | None,
    json: bool,
) -> int:
    """Write output_code_bench.py beside output_code.py and run it: this executes the dump's code.

    GRAPH is a graph's name (model__0_inference_0.0), the start of it, or a path; it may be left out when the
    latest run has only one. Edit the _v2 copies in the file and run this again: the edit is kept, checked,
    and timed if it is right.
    """
    graph = ip.open_graph(target)
    file = graph.write_bench_file()
    say(bench_file_text(file, relative(file.path)))
    if not run:
        if json:
            show_json(bench_file_json(file))
        else:
            say(f"next: edit a _v2 in it, then probe bench-kernel {graph.name}")
        return ExitCode.OK
    say(f"running it: this executes the code that inductor generated for {graph.name}")
    # No spinner meanwhile: whatever runs beside a timing is measured with it.
    bench = graph.run_bench_file(
        file, kernel, min_run_time=min_run_time, threads=threads, echo=None if json else _print
    )
    if json:
        show_json(bench_json(bench.result))
    return ExitCode.OK if bench.correct else ExitCode.MISMATCH


def _print(line: str) -> None:
    sys.stdout.write(line)
    sys.stdout.flush()
