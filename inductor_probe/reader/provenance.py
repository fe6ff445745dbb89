"""Torch's own provenance files (2.7 and later): which FX nodes a kernel was made from."""

from __future__ import annotations

import json
from pathlib import Path

from inductor_probe.errors import UnreadableError
from inductor_probe.reader.text import read_text

_MAPPINGS = "inductor_provenance_tracking_node_mappings.json"


def read_kernel_origins(graph: Path) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return, for each kernel of the graph in folder `graph`, the post-grad FX nodes it was made from.

    Torch 2.9 and later number each launch (`cpp_fused_flip_0:1`); the numbers are dropped and the launches
    of a kernel joined. Empty when torch wrote no such file.

    Raises:
        UnreadableError: the file is there and is not what torch writes.
    """
    path = graph / _MAPPINGS
    if not path.exists():
        return ()
    try:
        data = json.loads(read_text(path))
        origins: dict[str, list[str]] = {}
        for key, nodes in data["cppCodeToPost"].items():
            known = origins.setdefault(key.rpartition(":")[0] or key, [])
            known.extend(str(node) for node in nodes if node not in known)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableError(f"{path}: not a provenance mapping of torch ({error})") from error
    return tuple((kernel, tuple(nodes)) for kernel, nodes in origins.items())
