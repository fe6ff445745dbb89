"""Keeps the constants of a graph: weights that freezing has made part of it, tables of the user's.

Constants are no inputs of a compiled graph: `output_code.py` has `_frozen_param19 = None` for each, and
inductor sets the value in the module that it loads (torch/_inductor/graph.py, GraphLowering.constants).
Freezing also packs weights for oneDNN or MKL (torch/_inductor/fx_passes/mkldnn_fusion.py,
pack_linear_weight). Such a tensor has `layout=torch._mkldnn`, strides (1, 0, ...) that mean nothing, and no
storage that could be read. Its dump has the tensors that it was packed from and the call that
packed them, so that a bench file makes the same call:

    _frozen_param19 = mkldnn._reorder_linear_weight(_frozen_param19_part0, 64)

Called in the child while a graph is compiled: nothing is imported that the script has not imported.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inductor_probe.errors import ProbeError
from inductor_probe.files import write_bytes_whole
from inductor_probe.model.manifest import CONSTANTS_DIR, LARGEST_CONSTANT, LARGEST_CONSTANTS

_OPERATOR = re.compile(r"\w+\.\w+(?:\.\w+)?")


@dataclass
class _Packing:
    """The call that packed a constant; `result`: its position among several results, None of an only one."""

    packed: weakref.ref[Any]
    operator: str
    arguments: tuple[Any, ...]
    result: int | None


@dataclass
class _Graph:
    """Constants of a graph: facts by name, and their tensors, each of which is written once."""

    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    tensors: dict[str, Any] = field(default_factory=dict)
    bytes: int = 0


class ConstantKeeper:
    """Keeps the constants of graphs while these are compiled.

    Args:
        unlimited: keep constants of any size.
    """

    def __init__(self, *, unlimited: bool) -> None:
        self._unlimited = unlimited
        self._packings: dict[int, _Packing] = {}  # by id of the packed tensor
        self._graphs: dict[str, _Graph] = {}  # by folder

    def packed(self, folder: Any, node: Any, result: Any) -> None:
        """Remember the call of `node`, which torch's `ConstantFolder` has run, if it packed a constant.

        Args:
            folder: the ConstantFolder: `env` holds the values of the nodes before.
            node: of the FX graph. result: its value: a tensor, or several.
        """
        several = isinstance(result, (list, tuple))
        results = result if several else [result]
        if node.op != "call_function" or not any(map(_is_packed, results)):
            return
        self._packings = {key: call for key, call in self._packings.items() if call.packed() is not None}
        arguments = tuple(_values(argument, folder.env) for argument in node.args)
        for index, value in enumerate(results):
            # A list's elements are seen again, as results of getitem: the first call is the one.
            if _is_packed(value) and id(value) not in self._packings:
                position = index if several else None
                self._packings[id(value)] = _Packing(
                    weakref.ref(value), str(node.target), arguments, position
                )

    def add_attributes(self, path: str, module: Any) -> None:
        """Keep the tensors that an FX graph gets from its module."""
        for node in module.graph.nodes:
            if node.op == "get_attr":
                value = module
                for part in node.target.split("."):
                    value = getattr(value, part, None)
                self._add(path, _identifier(node.target), value, attribute=node.target)

    def add_constants(self, path: str, constants: Mapping[str, Any]) -> None:
        """Keep the constants of a graph's code, by name."""
        for name, value in constants.items():
            self._add(path, name, value)

    def facts(self, path: str) -> list[dict[str, Any]]:
        """Return what `ConstantFact` holds of each constant of the graph in the folder `path`."""
        return list(self._graphs[path].facts.values()) if path in self._graphs else []

    def forget(self, path: str) -> None:
        """Let go of a graph's constants: its compile has come to an end."""
        self._graphs.pop(path, None)

    def _add(self, path: str, name: str, tensor: Any, attribute: str | None = None) -> None:
        import torch

        if not isinstance(tensor, torch.Tensor):  # a module of a branch, an object of a library
            return
        graph = self._graphs.setdefault(path, _Graph())
        name = self._name_of(graph, tensor, name, in_code=attribute is None)
        fact = graph.facts.get(name)
        if fact is None:
            fact = graph.facts[name] = self._fact(graph, Path(path), name, tensor)
        if attribute is None:
            fact["in_code"] = True
        elif attribute not in fact["attributes"]:
            fact["attributes"].append(attribute)

    def _name_of(self, graph: _Graph, tensor: Any, name: str, *, in_code: bool) -> str:
        """Return what a constant is called: what it was, unless the code calls it otherwise."""
        before = next((known for known, value in graph.tensors.items() if value is tensor), None)
        if before is None:
            # Another tensor has that name: an attribute of the FX graph that was replaced since.
            while name in graph.tensors and not in_code:
                name += "_"
            if name in graph.tensors:
                self._rename(graph, name, f"{name}_")
        elif in_code and before != name:
            self._rename(graph, before, name)
        else:
            name = before
        graph.tensors[name] = tensor
        return name

    def _rename(self, graph: _Graph, before: str, name: str) -> None:
        graph.tensors[name] = graph.tensors.pop(before)
        graph.facts[name] = {**graph.facts.pop(before), "name": name}
        for fact in graph.facts.values():  # of those that were packed from it
            arguments = [name if text == before else text for text in fact.get("arguments", ())]
            fact.update({"arguments": arguments} if arguments else {})

    def _fact(self, graph: _Graph, path: Path, name: str, tensor: Any) -> dict[str, Any]:
        import torch

        fact: dict[str, Any] = {
            "name": name,
            "kind": "opaque",
            "size": [int(size) for size in tensor.shape],
            "stride": [],
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "device": str(tensor.device),
            "layout": str(tensor.layout),
            "attributes": [],
            "in_code": False,
        }
        if _is_packed(tensor):
            return fact | {"stride": list(tensor.stride())} | self._packed(graph, path, name, tensor)
        is_plain = type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout is torch.strided
        if not is_plain or tensor.is_quantized:
            return fact | {"not_kept": "not-strided"}
        return (
            fact | {"kind": "plain", "stride": list(tensor.stride())} | self._saved(graph, path, name, tensor)
        )

    def _packed(self, graph: _Graph, path: Path, name: str, tensor: Any) -> dict[str, Any]:
        """Keep what a constant was packed from; return what there is to say of it."""
        call = self._packings.get(id(tensor))
        unknown = {"not_kept": "unknown-packing"}
        if call is None or call.packed() is not tensor or not _OPERATOR.fullmatch(call.operator):
            return unknown
        parts: dict[str, Any] = {}

        def part_name(part: Any) -> str:
            """Return the name of a tensor among the arguments: MKL's calls take the plain weight, too."""
            before = next((known for known, value in graph.tensors.items() if value is part), None)
            if before is None:
                before = f"{name}_part{len(parts)}"
                parts[before] = part
            return before

        try:
            arguments = [_text(argument, part_name) for argument in call.arguments]
        except TypeError:  # an argument that no text can stand for
            return unknown
        facts = {part: self._fact(graph, path, part, value) for part, value in parts.items()}
        if any(fact["kind"] != "plain" for fact in facts.values()):
            return unknown
        graph.facts.update(facts)
        graph.tensors.update(parts)
        return {
            "kind": "packed",
            "operator": call.operator,
            "arguments": arguments,
            "result": call.result,
        }

    def _saved(self, graph: _Graph, path: Path, name: str, tensor: Any) -> dict[str, Any]:
        """Write the bytes from a tensor's first element to its last; return what there is to say of them."""
        import torch
        from torch.utils._python_dispatch import _disable_current_modes

        pairs = zip(tensor.shape, tensor.stride(), strict=True)
        extent = sum((size - 1) * step for size, step in pairs) + 1 if tensor.numel() else 0
        count = extent * tensor.dtype.itemsize
        if not self._unlimited and count > LARGEST_CONSTANT:
            return {"bytes": count, "not_kept": "too-large"}
        if not self._unlimited and graph.bytes + count > LARGEST_CONSTANTS:
            return {"bytes": count, "not_kept": "graph-too-large"}
        with torch.no_grad(), _disable_current_modes():
            values = tensor.detach().as_strided((extent,), (1,)).cpu()
            if values.is_conj() or values.is_neg():
                values = values.resolve_conj().resolve_neg()
            data = (ctypes.c_char * count).from_address(values.data_ptr()) if count else b""
            file = path / CONSTANTS_DIR / f"{name}.bin"
            try:
                file.parent.mkdir(exist_ok=True)
                write_bytes_whole(file, memoryview(data))
            except (OSError, ProbeError):
                return {"bytes": count, "not_kept": "not-written"}
            graph.bytes += count
            return {"bytes": count, "saved": file.name, "sha256": hashlib.sha256(data).hexdigest()}


def _is_packed(value: Any) -> bool:
    """Tell whether a value is a tensor that oneDNN or MKL packed."""
    return bool(getattr(value, "is_mkldnn", False))


def _values(argument: Any, env: Mapping[Any, Any]) -> Any:
    """Return an argument of an FX node with the values of other nodes in their place."""
    if isinstance(argument, (list, tuple)):
        return [_values(part, env) for part in argument]
    return env[argument] if type(argument).__name__ == "Node" else argument


def _text(value: Any, name_of: Callable[[Any], str]) -> str:
    """Return an argument as Python, with a name for each tensor.

    Raises:
        TypeError: it is neither a tensor nor a literal.
    """
    import torch

    if isinstance(value, torch.Tensor):
        return name_of(value)
    if isinstance(value, list):
        return f"[{', '.join(_text(item, name_of) for item in value)}]"
    if isinstance(value, torch.SymInt):
        return str(int(value))
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    raise TypeError(type(value).__name__)


def _identifier(target: str) -> str:
    """Return `layers_0_weight` of `layers.0.weight`, and `_0_weight` of `0.weight`, as fx names its node."""
    name = re.sub(r"\W", "_", target)
    return f"_{name}" if name[:1].isdigit() else name
