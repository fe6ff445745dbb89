"""The command line, read before torch is imported."""

from __future__ import annotations

import argparse
import difflib
import importlib.util
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

LAST_LINE = "# The end of this bench file"


def read_options(
    graph: str, kernels: Sequence[str], sizes: Mapping[str, int], text: str, argv: list[str] | None = None
) -> argparse.Namespace:
    """Read the command line of the bench file `text`; a mistake ends the program with a sentence."""
    more = f"probe bench-kernel {graph}"
    parser = argparse.ArgumentParser(
        description=f"Check and time the kernels of {graph} and their copies, in this one process.",
        epilog=f"A verdict from several processes, where the time goes, and real inputs: {more}",
    )
    add = parser.add_argument
    add("--kernel", metavar="NAME", help="time this kernel only")
    add("--budget", type=seconds_of, default=3.0, metavar="TIME", help="of timing: 500ms, 3s, 2m (3s)")
    add("--threads", type=int, default=1, metavar="N", help="threads of torch and of OpenMP (1)")
    add("--seed", type=int, default=0, help="of inputs, and of the order of timing (0)")
    add("--size", action="append", default=[], metavar="s77=128", help="bind a symbolic size")
    add("--import", dest="imports", action="append", default=[], metavar="MODULE", help="first; or FILE.py")
    add("--check-only", action="store_true", help="check the copies, time nothing")
    options, unknown = parser.parse_known_args(argv)
    if LAST_LINE not in text.splitlines():
        parser.error(f"this file is incomplete (cut short): its last line, {LAST_LINE!r}, is missing")
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}; more options has {more}")
    if options.kernel not in (None, *kernels):
        near = difflib.get_close_matches(options.kernel, kernels, cutoff=0.3) or kernels
        parser.error(f"no kernel {options.kernel}; there is {', '.join(near)}")
    if options.threads < 1:
        parser.error(f"invalid --threads {options.threads}: write 1 or more")
    for size in options.size:
        if not (match := re.fullmatch(r"(\w+)=\d+", size)) or match[1] not in sizes:
            parser.error(f"invalid --size {size}: write s77=128; this graph has {', '.join(sizes) or 'none'}")
    for name in options.imports:
        path, package = Path(name), name.partition(".")[0]
        if not (path.exists() if path.suffix == ".py" else importlib.util.find_spec(package)):
            parser.error(f"--import {name}: not found; give a module as in Python, or a file as FILE.py")
    options.size = {name: int(number) for name, number in (size.split("=") for size in options.size)}
    return options


def seconds_of(text: str) -> float:
    """Read `500ms`, `10s`, `2m`, or a number of seconds."""
    if not (match := re.fullmatch(r"(\d*\.?\d+)(ms|s|m|)", text)):
        raise argparse.ArgumentTypeError(f"invalid duration {text!r}: write 2s, 500ms or 1m")
    return float(match[1]) * {"ms": 1e-3, "s": 1.0, "m": 60.0, "": 1.0}[match[2]]
