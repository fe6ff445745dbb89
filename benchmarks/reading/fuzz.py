"""What do the reading verbs say about damaged dumps? Real ones are changed at random, and a verb is asked.

    python -m benchmarks.reading.fuzz [--tries 5000] [--seed 0] [--corpus FOLDER] [--only NUMBER]

Prints tries, seconds and faults for each verb, and each fault with the number that makes it again: `--only`
makes that try alone. FOLDER holds runs besides the fixtures. The exit status is 1 if there was a fault. What
is a fault, `tests/fuzzing/tries.py` says. Needs no torch.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from tests.fuzzing.tries import Fuzzer, Try, sources

TESTS = Path(__file__).resolve().parents[2] / "tests"


def main() -> int:
    """Make the tries, and print one row for each verb."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tries", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0, help="other numbers, other tries")
    parser.add_argument("--corpus", type=Path, action="append", default=[], help="a folder with more runs")
    parser.add_argument("--only", type=int, help="make this try alone; name the same folders")
    options = parser.parse_args()
    tries: dict[str, list[Try]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder  # the user's record of what was made here is not read
        fuzzer = Fuzzer(Path(folder), sources(TESTS, *options.corpus))
        first = options.seed * 1_000_000
        numbers = [options.only] if options.only is not None else range(first, first + options.tries)
        for number in numbers:
            if sys.stderr.isatty():
                print(f"\r{number} ", end="", file=sys.stderr, flush=True)
            made = fuzzer.attempt(random.Random(number))  # noqa: S311 - damage, not secrets
            tries[made.arguments[0]].append(made)
            if made.answer.faults or options.only is not None:
                print(f"--only {number}: {made}", flush=True)
    print(f"\n{len(numbers)} tries on {len(fuzzer.runs)} runs, from number {numbers[0]}")
    print(f"{'verb':8} {'tries':>6} {'status 0':>9} {'1':>5} {'2':>5} {'longest':>9} {'faults':>7}")
    for verb, made_of in sorted(tries.items()):
        statuses = [sum(made.answer.status == status for made in made_of) for status in range(3)]
        longest = max(made.answer.seconds for made in made_of)
        faults = sum(bool(made.answer.faults) for made in made_of)
        counts = f"{len(made_of):6} {statuses[0]:9} {statuses[1]:5} {statuses[2]:5}"
        print(f"{verb:8} {counts} {longest:7.2f} s {faults:7}")
    return int(any(made.answer.faults for of in tries.values() for made in of))


if __name__ == "__main__":
    sys.exit(main())
