"""Torch's own provenance files (2.7 and later): which FX nodes a kernel was made from."""

from __future__ import annotations

import json
from pathlib import Path

from inductor_probe.errors import UnreadableError
from inductor_probe.model.fx import Names, Provenance
from inductor_probe.model.span import Span

# Torch 2.8 wrote two files and 2.7 another one, with the kernels alone; the first found tells most.
PROVENANCE_FILES = (
    "inductor_provenance_tracking_node_mappings.json",
    "inductor_generated_kernel_to_post_grad_nodes.json",
    "inductor_triton_kernel_to_post_grad_nodes.json",
)


def parse_provenance(text: str, path: Path) -> Provenance:
    """Read the text of a provenance file; `path` is what errors name.

    Raises:
        UnreadableError: it is not what torch writes.
    """
    try:
        data = json.loads(text)
        launches = _names(data.get("cppCodeToPost", {}) if "preToPost" in data else data)
        pre_to_post = _names(data.get("preToPost", {}))
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"{path}: not a provenance mapping of torch ({error})") from error
    except (TypeError, AttributeError) as error:
        message = "not a provenance mapping of torch (names with lists of names are)"
        raise UnreadableError(f"{path}: {message}") from error
    kernels: dict[str, dict[str, None]] = {}
    for key, nodes in launches.items():
        kernels.setdefault(_kernel(key), {}).update(dict.fromkeys(nodes))
    return Provenance(
        kernels={kernel: tuple(nodes) for kernel, nodes in kernels.items()},
        launches={key: nodes for key, nodes in launches.items() if _kernel(key) != key},
        pre_to_post=pre_to_post,
        span=Span(path, 1, text.count("\n") + 1),
    )


def _kernel(key: str) -> str:
    """Drop the number of a launch: `cpp_fused_flip_0:1`."""
    kernel, _, number = key.rpartition(":")
    return kernel if kernel and number.isdigit() else key


def _names(data: dict[str, list[str]]) -> Names:
    return {str(key): tuple(str(name) for name in names) for key, names in data.items()}
