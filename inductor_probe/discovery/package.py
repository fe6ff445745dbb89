"""Packages of AOTInductor, `.pt2` files: what of one is unpacked, put as a run with a graph for each model.

torch/export/pt2_archive/_package.py writes a zip, `aoti_compile_and_package` puts the code of a model below
`data/aotinductor/<model>/`: `*.wrapper.cpp` and `*.kernel.cpp` (one `*.cpp` until torch 2.7), what they were
compiled for in `*_metadata.json`, and `kernel_information.json`. Nothing in it is loaded, unpickled or run.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from inductor_probe.errors import UnreadableError
from inductor_probe.files import LARGEST_BYTES, LARGEST_JSON, json_of, read_text
from inductor_probe.model.debug_dir import PACKAGE_NAME
from inductor_probe.reader.fx import KERNEL_INFORMATION

PACKAGE = ".pt2"
_MEMBER = re.compile(r"(?:[^/]+/)?data/aotinductor/(?P<model>.+)/(?P<name>[^/]+\.(?:cpp|json))")
_EXPORTED = re.compile(r"(?:[^/]+/)?(?:models/[^/]+\.json|serialized_exported_program\.json)")


def is_package(path: Path) -> bool:
    """Return whether a path is named like a package, and is a plain file."""
    return path.name.lower().endswith(PACKAGE) and path.is_file()


def is_read_of_package(name: str) -> bool:
    """Return whether the member of this name is worth unpacking."""
    return _MEMBER.fullmatch(name) is not None or _EXPORTED.fullmatch(name) is not None


def lay_out(folder: Path, package: Path) -> None:
    """Make a run of what was unpacked to `folder`: a graph for each model, its code as a dump has it.

    Raises:
        UnreadableError: there is no code in it.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    members = [(match, path) for path in files if (match := _match(folder, path))]
    models = list(dict.fromkeys(match["model"] for match, path in members if path.suffix == ".cpp"))
    if not models:
        if any(_EXPORTED.fullmatch(path.relative_to(folder).as_posix()) for path in files):
            raise UnreadableError(
                f"{package} is a program that torch.export.save wrote: nothing in it is compiled",
                "torch._inductor.aoti_compile_and_package compiles what torch.export.load gives",
            )
        raise UnreadableError(
            f"{package} holds no C++ below data/aotinductor, so no wrapper and no kernel to read",
            "torch._inductor.aoti_compile_and_package writes packages that have it",
        )
    graphs = folder / package.stem / "torchinductor"
    for model in models:
        graph = graphs / model.replace("/", "_")
        graph.mkdir(parents=True)
        own = [path for match, path in members if match["model"] == model]
        sources = [path for path in own if path.suffix == ".cpp"]
        sources.sort(key=lambda path: "wrapper" not in path.name)  # as torch dumps them: kernels come last
        texts = [read_text(path, largest=LARGEST_BYTES) for path in sources]
        (graph / "output_code.cpp").write_text("\n".join(texts), encoding="utf-8")
        facts: dict[str, object] = {"package": str(package), "sources": [path.name for path in sources]}
        for path in own:
            if path.name.endswith("_metadata.json"):
                facts.update(_metadata(path))
            elif path.name == KERNEL_INFORMATION:
                path.rename(graph / path.name)
        (graph / PACKAGE_NAME).write_text(json.dumps(facts), encoding="utf-8")


def _match(folder: Path, path: Path) -> re.Match[str] | None:
    return _MEMBER.fullmatch(path.relative_to(folder).as_posix())


def _metadata(path: Path) -> dict[str, str]:
    """Return `{"AOTI_DEVICE_KEY": "cpu", ...}`: what the code was compiled for."""
    try:
        data = json_of(read_text(path, largest=LARGEST_JSON))
    except ValueError:
        return {}
    return {str(key): str(value) for key, value in data.items()} if isinstance(data, dict) else {}
