"""What the text of a Triton kernel tells."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from inductor_probe.backends.backend import KernelText, role_of
from inductor_probe.backends.brackets import inside, split_arguments
from inductor_probe.backends.triton.accesses import pointer_uses
from inductor_probe.backends.triton.header import Header, divisible, items, read_header, text_of
from inductor_probe.model.code import KernelArg, Pairs, Role, TritonFacts

_DEFINITION = re.compile(r"^def \w+\(", re.MULTILINE)
_BLOCK = re.compile(r"[XYZR]\d?_?BLOCK(?:_\d+)?")
_FIXED = re.compile(r"^    (?P<name>[A-Z]\w*)\s*:\s*tl\.constexpr = (?P<value>[^\n]+)", re.MULTILINE)
_WIDE = re.compile(r"program_id\(\d\)\.to\(tl\.int64\)|INDEX_DTYPE\s*:\s*tl\.constexpr = tl\.int64")
_HINT = re.compile(r"\w+\.(\w+)")
_DIMENSIONS = ("x", "y", "z")

# Entries of `inductor_meta` that say nothing of the kernel: hashes, names, caches, settings.
_NOISE = frozenset((
    "autotune_hints", "backend_hash", "kernel_name", "assert_indirect_indexing", "autotune_local_cache",
    "autotune_remote_cache", "force_disable_caches", "min_split_scan_rblock", "spill_threshold",
    "store_cubin", "num_load", "num_store", "num_reduction", "are_deterministic_algorithms_enabled",
    "profile_bandwidth", "profile_bandwidth_regex", "profile_bandwidth_output", "extra_launcher_args",
    "config_args", "benchmark_combo_kernel", "use_block_ptr", "is_fbcode", "is_hip", "device_type",
    "autotune_pointwise", "dynamic_scale_rblock",
))  # fmt: skip
_OFF = frozenset(("False", "None", "[]", "{}", "set()", ""))
"""Values that say that nothing was asked for."""


def read(source: str) -> KernelText:
    """Read a Triton kernel."""
    header = read_header(source)
    names = tuple(_parameters(source, header.start if header else 0))
    facts = _details(source, header, names)
    types = dict(facts.signature)
    roles = _Roles(source, types)
    args = tuple(KernelArg(name, roles.of(name), types.get(name)) for name, constant in names if not constant)
    return KernelText(args, facts, _pairs(facts))


def _parameters(source: str, start: int) -> Iterator[tuple[str, bool]]:
    """Yield the parameters of the first function behind `start`, and whether each is a `constexpr`.

    Functions above the decorator are helpers of scans and reductions.
    """
    found = _DEFINITION.search(source, start)
    for text in split_arguments(inside(source, found.end() - 1) or "") if found else ():
        yield text.partition(":")[0].partition("=")[0].strip(), "constexpr" in text


class _Roles:
    """Tells what a kernel does with its arguments, by inductor's names or by its own loads and stores."""

    def __init__(self, source: str, types: dict[str, str]) -> None:
        self._types = types
        self._how: dict[str, set[str]] = {}
        strange = frozenset(
            name for name, kind in types.items() if kind.startswith("*") and role_of(name) == "size"
        )
        for use in pointer_uses(source, strange) if strange else ():
            self._how.setdefault(use.pointer, set()).add(use.how)

    def of(self, name: str) -> Role:
        role = role_of(name)
        if role != "size" or not self._types.get(name, "").startswith("*"):
            return role
        how = self._how.get(name)
        if not how:
            return "pointer"
        return "in" if how == {"load"} else "out" if how == {"store"} else "inout"


def _details(source: str, header: Header | None, names: tuple[tuple[str, bool], ...]) -> TritonFacts:
    loads, stores, atomics = (source.count(f"tl.{what}") for what in ("load(", "store(", "atomic_"))
    blocks = tuple(name for name, constant in names if constant and _BLOCK.fullmatch(name))
    if header is None:
        return TritonFacts(None, blocks=blocks, loads=loads, stores=stores, atomics=atomics)
    meta_key = "triton_meta" if "triton_meta" in header.entries else "meta"
    signature = _signature(header.table(meta_key, "signature"), names)
    meta = header.table("inductor_meta") or header.table("meta")
    return TritonFacts(
        heuristic=header.heuristic,
        size_hints=_size_hints(header),
        reduction_hint=_hint(header.text("reduction_hint")),
        tile_hint=_hint(header.text("tile_hint")),
        signature=signature,
        index_width=_index_width(source, signature),
        divisible=divisible(header, tuple(name for name, _ in signature)),
        constants=tuple((name, text_of(node)) for name, node in header.table(meta_key, "constants").items()),
        config=_config(source, header, meta),
        blocks=blocks,
        meta=tuple(
            (name, text)
            for name, node in meta.items()
            if name not in _NOISE and name not in _IN_META and (text := _shown(node)) not in _OFF
        ),
        loads=loads,
        stores=stores,
        atomics=atomics,
    )


_IN_META = frozenset(("signature", "constants", "configs", "device"))
"""Torch 2.1 has one dictionary for both."""


def _signature(table: dict[str, ast.expr], names: tuple[tuple[str, bool], ...]) -> Pairs:
    """Torch before 2.6 numbers the arguments, later ones name them."""
    numbered = {str(at): name for at, (name, _) in enumerate(names)}
    return tuple((numbered.get(key, key), text_of(node)) for key, node in table.items())


def _size_hints(header: Header) -> Pairs:
    match header.entries.get("size_hints"):
        case ast.Dict() as hints:
            return tuple((name, text_of(node)) for name, node in items(hints).items())
        case ast.List(elts=sizes) | ast.Tuple(elts=sizes):
            texts = [text_of(size) for size in sizes]
            reduced = "reduction_hint" in header.entries and len(texts) > 1
            last = [("r", texts.pop())] if reduced else []
            named = zip(_DIMENSIONS[: len(texts)][::-1], texts, strict=False)
            return (*named, *last)
    return ()


def _index_width(source: str, signature: Pairs) -> str | None:
    sizes = [kind for name, kind in signature if name.endswith("numel") and kind in ("i32", "i64")]
    if "i64" in sizes or _WIDE.search(source):
        return "int64"
    return "int32" if sizes or "tl.program_id(" in source else None


def _config(source: str, header: Header, meta: dict[str, ast.expr]) -> Pairs:
    fixed = [(name, header.text(name)) for name in ("num_warps", "num_stages", "config", "configs")]
    pairs = [(name, text) for name, text in fixed if text is not None]
    arguments = meta.get("config_args")
    if isinstance(arguments, ast.Dict):
        pairs += [(name, text_of(node)) for name, node in items(arguments).items()]
    known = {name for name, _ in pairs}
    pairs += [
        (found["name"], found["value"])
        for found in _FIXED.finditer(source)
        if found["name"] not in known and not found["value"].endswith("BLOCK")  # RBLOCK = R0_BLOCK
    ]
    return tuple(pairs)


def _shown(node: ast.expr) -> str:
    """`a, b` of a list, `x=16, r0_=2` of a table."""
    match node:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return ", ".join(map(_shown, elements))
        case ast.Dict():
            return ", ".join(f"{name}={_shown(value)}" for name, value in items(node).items())
    return text_of(node)


def _hint(text: str | None) -> str | None:
    match = _HINT.fullmatch(text) if text else None
    return match[1] if match else text


def _pairs(facts: TritonFacts) -> Pairs:
    atomics = f", {facts.atomics} atomic" if facts.atomics else ""
    pairs: list[tuple[str, str | None]] = [
        ("heuristic", facts.heuristic),
        ("reduction hint", facts.reduction_hint),
        ("tile hint", facts.tile_hint),
        ("size hints", _joined(facts.size_hints)),
        ("index width", facts.index_width),
        ("loads", str(facts.loads)),
        ("stores", f"{facts.stores}{atomics}"),
        ("block sizes", ", ".join(facts.blocks) or None),
        ("config", _joined(facts.config)),
        ("divisible by 16", ", ".join(facts.divisible) or None),
        ("constants", _joined(facts.constants)),
        *((name.replace("_", " "), text) for name, text in facts.meta),
    ]
    return tuple((name, text) for name, text in pairs if text is not None)


def _joined(pairs: Pairs) -> str | None:
    return ", ".join(f"{name}={text}" for name, text in pairs) or None
