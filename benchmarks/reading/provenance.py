"""Hold the links of kernels to FX nodes against torch's own provenance files: what is missing, what differs.

    python -m benchmarks.reading.provenance PATH...

Torch's files are read here by themselves, with `json` alone. A pair is a kernel and an FX node that the file
lists for it. Pairs of a kernel that the wrapper beside the file does not have are counted apart: torch 2.8
carries the kernels of graphs that were compiled before into the file. The exit status is 1 if one is missing.
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from inductor_probe.analysis.links import links
from inductor_probe.discovery.walk import everything_below
from inductor_probe.model.links import KernelFx
from inductor_probe.reader.debug_dir import read_graph

FILE = "inductor_provenance_tracking_node_mappings.json"
_MOST_PLACES = 20


def listed_pairs(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each kernel and FX node that the file in `folder` lists; launches of a kernel are one."""
    kernels: dict[str, set[str]] = {}
    for key, names in json.loads((folder / FILE).read_text())["cppCodeToPost"].items():
        kernel, _, launch = key.rpartition(":")
        kernels.setdefault(kernel if launch.isdecimal() else key, set()).update(names)
    yield from ((kernel, name) for kernel, names in kernels.items() for name in sorted(names))


def main() -> None:
    """Compare every graph below the paths, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path)
    counts: collections.Counter[str] = collections.Counter()
    missing: list[str] = []
    for path in parser.parse_args().paths:
        for run in everything_below(path):
            for folder in run.graphs:
                graph = read_graph(folder, run.manifest)
                found = {(pair.kernel, pair.fx): pair for pair in links(graph).kernel_fx}
                counts["graphs"] += 1
                _count_conflicts(found.values(), counts)
                if (folder.path / FILE).exists():
                    counts["graphs with torch's provenance file"] += 1
                    missing += _compare(folder.path, found, counts)
    for name, count in counts.items():
        print(f"{count:>9,} {name}")
    print(f"{len(missing):>9,} pairs missing")
    for place in missing[:_MOST_PLACES]:
        print(f"    {place}")
    sys.exit(1 if missing else 0)


def _count_conflicts(pairs: Iterable[KernelFx], counts: collections.Counter[str]) -> None:
    for pair in pairs:
        if pair.conflict is not None:
            counts[f"pairs where torch and the flow of data differ: {pair.conflict}"] += 1


def _compare(
    folder: Path, found: dict[tuple[str, str], KernelFx], counts: collections.Counter[str]
) -> Iterator[str]:
    """Count the pairs that torch lists in `folder`, and yield those that are not linked."""
    wrapper = (folder / "output_code.py").read_text() if (folder / "output_code.py").exists() else ""
    for kernel, name in listed_pairs(folder):
        counts["pairs listed by torch"] += 1
        pair = found.get((kernel, name))
        if pair is None and kernel not in wrapper:
            counts["  of kernels that the wrapper does not have"] += 1
        elif pair is None:
            yield f"{folder}: {name} of {kernel}"
        elif pair.nodes:
            counts["  linked, and the scheduler node is told"] += 1
        elif pair.maybe:
            counts["  linked, and which of several scheduler nodes could not be told"] += 1
        else:
            counts["  linked to the kernel alone"] += 1


if __name__ == "__main__":
    main()
