"""The command line, read before torch is imported."""

from __future__ import annotations

import argparse
import re

LAST_LINE = "# The end of this bench file"


def read_options(graph: str, kernels: list[str], sizes: dict[str, int], text: str) -> argparse.Namespace:
    """Read the command line of the bench file `text`; a mistake ends the program with a sentence."""
    parser = argparse.ArgumentParser(
        description=f"Check and time the kernels of {graph} and their copies, in this one process.",
        epilog=f"probe bench-kernel {graph} has more: a verdict, overheads, --inputs, --import, --configs",
    )
    add = parser.add_argument
    add("--kernel", choices=kernels, metavar="NAME", help="time this kernel only")
    add("--budget", type=seconds_of, default=3.0, metavar="TIME", help="of timing: 500ms, 3s, 2m (3s)")
    add("--threads", type=int, default=1, metavar="N", help="threads of torch and of OpenMP (1)")
    add("--seed", type=int, default=0, help="of inputs, and of the order of timing (0)")
    add("--size", action="append", default=[], metavar="s77=128", help="bind a symbolic size")
    add("--check-only", action="store_true", help="check the copies, time nothing")
    options, unknown = parser.parse_known_args()
    if LAST_LINE not in text.splitlines():
        parser.error(f"this file is incomplete (cut short): its last line, {LAST_LINE!r}, is missing")
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}; try probe bench-kernel {graph}")
    if options.threads < 1:
        parser.error(f"invalid --threads {options.threads}: write 1 or more")
    for size in options.size:
        if not (match := re.fullmatch(r"(\w+)=\d+", size)) or match[1] not in sizes:
            parser.error(f"invalid --size {size}: write s77=128; this graph has {', '.join(sizes) or 'none'}")
    options.size = {name: int(number) for name, number in (size.split("=") for size in options.size)}
    return options


def seconds_of(text: str) -> float:
    """Read `500ms`, `10s`, `2m`, or a number of seconds."""
    if not (match := re.fullmatch(r"(\d*\.?\d+)(ms|s|m|)", text)):
        raise argparse.ArgumentTypeError(f"invalid duration {text!r}: write 2s, 500ms or 1m")
    return float(match[1]) * {"ms": 1e-3, "s": 1.0, "m": 60.0, "": 1.0}[match[2]]
