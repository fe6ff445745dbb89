"""Triton kernels of inductor: the decorator, facts, and accesses through pointers.

The text is what `TritonKernel.codegen_kernel` in torch/_inductor/codegen/triton.py prints:

    @triton_heuristics.pointwise(
        size_hints={'x': 4096}, filename=__file__,
        triton_meta={'signature': {'in_ptr0': '*fp32', 'out_ptr0': '*fp32', 'xnumel': 'i32'}, ...},
        inductor_meta={'kernel_name': 'triton_poi_fused_add_0', 'num_load': 1, ...},
    )
    @triton.jit
    def triton_poi_fused_add_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
        xnumel = 4096
        xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
        x0 = xindex
        tmp0 = tl.load(in_ptr0 + (x0), xmask)

The decorator is parsed, and never called.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct, field

from inductor_probe.backends import KernelText, role_of
from inductor_probe.backends.brackets import inside, split_arguments, unwrapped
from inductor_probe.model.code import KernelArg, Pairs, PointerUse, Role, TritonFacts

_DECORATOR = re.compile(r"^@(?:\w+\.)*(?P<heuristic>\w+)\(", re.MULTILINE)
_DECORATOR_END = re.compile(r"^@triton\.jit|^def ", re.MULTILINE)
_LARGEST_DECORATOR = 1 << 18
"""Characters: a tree takes up to 900 times as much memory. Of some hundred pointers, a header has 20,000."""
_DEFINITION = re.compile(r"^def \w+\(", re.MULTILINE)
_BLOCK = re.compile(r"[XYZR]\d?_?BLOCK(?:_\d+)?")
# TritonKernel.codegen_static_numels: `R0_BLOCK: tl.constexpr = 1024` of a persistent reduction.
_FIXED = re.compile(r"^    (?P<name>[A-Z]\w*)\s*:\s*tl\.constexpr = (?P<value>[^\n]+)", re.MULTILINE)
_WIDE = re.compile(r"program_id\(\d\)\.to\(tl\.int64\)|INDEX_DTYPE\s*:\s*tl\.constexpr = tl\.int64")
_HINT = re.compile(r"\w+\.(\w+)")
_DIMENSIONS = ("x", "y", "z")

# Entries of `inductor_meta` that say nothing of the kernel: hashes, names, caches, settings.
_SETTINGS = frozenset((
    "autotune_hints", "backend_hash", "kernel_name", "assert_indirect_indexing", "autotune_local_cache",
    "autotune_remote_cache", "force_disable_caches", "min_split_scan_rblock", "spill_threshold",
    "store_cubin", "num_load", "num_store", "num_reduction", "are_deterministic_algorithms_enabled",
    "profile_bandwidth", "profile_bandwidth_regex", "profile_bandwidth_output", "extra_launcher_args",
    "config_args", "benchmark_combo_kernel", "use_block_ptr", "is_fbcode", "is_hip", "device_type",
    "autotune_pointwise", "dynamic_scale_rblock",
))  # fmt: skip
_OF_TRITON_META = frozenset(("signature", "constants", "configs", "device"))
"""Torch 2.1 has one dictionary `meta` for `triton_meta` and `inductor_meta`."""
_OFF = frozenset(("False", "None", "[]", "{}", "set()", ""))
"""Values that say that nothing was asked for."""


class _Decorator(Struct, frozen=True):
    """The call above `@triton.jit`, and where it starts; `entries` are its keyword arguments as syntax."""

    heuristic: str
    start: int
    entries: dict[str, ast.expr] = field(default_factory=dict)

    def text(self, key: str) -> str | None:
        """Return an argument as text: `ReductionHint.INNER`."""
        node = self.entries.get(key)
        return None if node is None else _text(node)

    def table(self, *path: str) -> dict[str, ast.expr]:
        """Return the dictionary at `path`: `table("triton_meta", "signature")`; empty when there is none."""
        entries = self.entries
        for key in path:
            node = entries.get(key)
            if not isinstance(node, ast.Dict):
                return {}
            entries = _items(node)
        return entries


def read(source: str) -> KernelText:
    """Read a Triton kernel."""
    decorator = _decorator(source)
    parameters = tuple(_parameters(source, decorator.start if decorator else 0))
    facts = _facts(source, decorator, parameters)
    types = dict(facts.signature)
    names = [name for name, is_constant in parameters if not is_constant]
    roles = _roles(source, names, types)
    return KernelText(tuple(KernelArg(name, roles[name], types.get(name)) for name in names), facts)


def _decorator(source: str) -> _Decorator | None:
    """Read the decorator; None when the text has none in a known form."""
    start = _DECORATOR.search(source)
    if start is None:
        return None
    end = _DECORATOR_END.search(source, start.end())
    text = source[start.start() + 1 : end.start() if end else None].strip()
    entries: dict[str, ast.expr] = {}
    if len(text) <= _LARGEST_DECORATOR:
        try:
            call = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            call = None
        if isinstance(call, ast.Call):
            entries = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    return _Decorator(start["heuristic"], start.start(), entries)


def _items(node: ast.Dict) -> dict[str, ast.expr]:
    """Return the items of a dictionary by the text of their keys."""
    return {_text(key): value for key, value in zip(node.keys, node.values, strict=True) if key is not None}


def _text(node: ast.expr) -> str:
    """Return an expression as text, strings without their quotes."""
    return str(node.value) if isinstance(node, ast.Constant) else ast.unparse(node)


def _parameters(source: str, start: int) -> Iterator[tuple[str, bool]]:
    """Yield the parameters of the first function behind `start`, and whether each is a `constexpr`.

    Functions above the decorator are helpers of scans and reductions.
    """
    definition = _DEFINITION.search(source, start)
    for text in split_arguments(inside(source, definition.end() - 1) or "") if definition else ():
        yield text.partition(":")[0].partition("=")[0].strip(), "constexpr" in text


def _roles(source: str, names: list[str], types: dict[str, str]) -> dict[str, Role]:
    """Return what a kernel does with its arguments, by inductor's names or by its own loads and stores."""
    roles = {name: role_of(name) for name in names}
    pointers = [name for name in names if roles[name] == "size" and types.get(name, "").startswith("*")]
    if pointers:  # of a kernel that the user wrote
        directions: dict[str, set[str]] = {name: set() for name in pointers}
        for use in pointer_uses(source, frozenset(pointers)):
            directions[use.pointer].add(use.kind)
        for name, how in directions.items():
            roles[name] = (
                "pointer" if not how else "in" if how == {"load"} else "out" if how == {"store"} else "inout"
            )
    return roles


def _facts(
    source: str, decorator: _Decorator | None, parameters: tuple[tuple[str, bool], ...]
) -> TritonFacts:
    loads, stores, atomics = (source.count(f"tl.{what}") for what in ("load(", "store(", "atomic_"))
    blocks = tuple(name for name, is_constant in parameters if is_constant and _BLOCK.fullmatch(name))
    if decorator is None:
        return TritonFacts(None, blocks=blocks, loads=loads, stores=stores, atomics=atomics)
    meta_key = "triton_meta" if "triton_meta" in decorator.entries else "meta"
    signature = _signature(decorator.table(meta_key, "signature"), parameters)
    meta = decorator.table("inductor_meta") or decorator.table("meta")
    constants = decorator.table(meta_key, "constants")
    return TritonFacts(
        heuristic=decorator.heuristic,
        size_hints=_size_hints(decorator),
        reduction_hint=_hint(decorator.text("reduction_hint")),
        tile_hint=_hint(decorator.text("tile_hint")),
        signature=signature,
        index_width=_index_width(source, signature),
        divisible=_divisible(decorator, [name for name, _ in signature]),
        constants=tuple((name, _text(node)) for name, node in constants.items()),
        config=_config(source, decorator, meta),
        blocks=blocks,
        meta=tuple(
            (name, text)
            for name, node in meta.items()
            if name not in _SETTINGS and name not in _OF_TRITON_META and (text := _shown(node)) not in _OFF
        ),
        loads=loads,
        stores=stores,
        atomics=atomics,
    )


def _signature(table: dict[str, ast.expr], parameters: tuple[tuple[str, bool], ...]) -> Pairs:
    """Torch before 2.6 numbers the arguments, later ones name them."""
    numbered = {str(position): name for position, (name, _) in enumerate(parameters)}
    return tuple((numbered.get(key, key), _text(node)) for key, node in table.items())


def _size_hints(decorator: _Decorator) -> Pairs:
    """Read `{'y': 4096, 'x': 64}`, or `[4096, 64]` of torch before 2.6: z, y, x, and r of a reduction."""
    match decorator.entries.get("size_hints"):
        case ast.Dict() as hints:
            return tuple((name, _text(node)) for name, node in _items(hints).items())
        case ast.List(elts=sizes) | ast.Tuple(elts=sizes):
            texts = [_text(size) for size in sizes]
            is_reduction = "reduction_hint" in decorator.entries and len(texts) > 1
            last = [("r", texts.pop())] if is_reduction else []
            return (*zip(_DIMENSIONS[: len(texts)][::-1], texts, strict=False), *last)
    return ()


def _index_width(source: str, signature: Pairs) -> str | None:
    sizes = [kind for name, kind in signature if name.endswith("numel") and kind in ("i32", "i64")]
    if "i64" in sizes or _WIDE.search(source):
        return "int64"
    return "int32" if sizes or "tl.program_id(" in source else None


def _divisible(decorator: _Decorator, names: list[str]) -> tuple[str, ...]:
    """Return the arguments of which `configs` promises that 16 divides them, in each form it was written in.

    Positions of arguments (torch/_inductor/runtime/hints.py, AttrsDescriptorWrapper):
    `instance_descriptor(divisible_by_16=(0, 1))` (torch 2.1), `AttrsDescriptor.from_dict({'arg_properties':
    {'tt.divisibility': (0, 1), ...}})` (2.6), `{(0,): [['tt.divisibility', 16]]}` (2.7 and later).
    """
    configs = decorator.table("triton_meta").get("configs") or decorator.table("meta").get("configs")
    if not isinstance(configs, ast.List | ast.Tuple) or not configs.elts:
        return ()
    nodes: list[ast.expr] = []
    match configs.elts[0]:
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            nodes = [key for key, value in pairs if key and "divisibility" in ast.unparse(value)]
        case ast.Call(args=[ast.Dict() as description]):
            properties = _items(description).get("arg_properties")
            if isinstance(properties, ast.Dict) and (node := _items(properties).get("tt.divisibility")):
                nodes = [node]
        case ast.Call(keywords=keywords):
            nodes = [keyword.value for keyword in keywords if keyword.arg == "divisible_by_16"]
    positions = (part.value for node in nodes for part in ast.walk(node) if isinstance(part, ast.Constant))
    return tuple(
        names[position] for position in positions if isinstance(position, int) and 0 <= position < len(names)
    )


def _config(source: str, decorator: _Decorator, meta: dict[str, ast.expr]) -> Pairs:
    fixed = [(name, decorator.text(name)) for name in ("num_warps", "num_stages", "config", "configs")]
    pairs = [(name, text) for name, text in fixed if text is not None]
    arguments = meta.get("config_args")
    if isinstance(arguments, ast.Dict):
        pairs += [(name, _text(node)) for name, node in _items(arguments).items()]
    known = {name for name, _ in pairs}
    pairs += [
        (match["name"], match["value"])
        for match in _FIXED.finditer(source)
        if match["name"] not in known and not match["value"].endswith("BLOCK")  # RBLOCK = R0_BLOCK
    ]
    return tuple(pairs)


def _shown(node: ast.expr) -> str:
    """`a, b` of a list, `x=16, r0_=2` of a table."""
    match node:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return ", ".join(map(_shown, elements))
        case ast.Dict():
            return ", ".join(f"{name}={_shown(value)}" for name, value in _items(node).items())
    return _text(node)


def _hint(text: str | None) -> str | None:
    """`ReductionHint.INNER` is `INNER`."""
    match = _HINT.fullmatch(text) if text else None
    return match[1] if match else text


# TritonKernel.load and TritonKernel.store.
_ACCESS = re.compile(r"\btl\.(?P<how>load|store|atomic_\w+)(?P<opening>\()")
_KINDS: dict[str, Literal["load", "store", "atomic"]] = {"load": "load", "store": "store"}
_ASSIGNED = re.compile(r"^[ \t]*(?P<name>\w+)(?:[ \t]*:[^=\n]*)?[ \t]*=(?!=)(?P<value>[^\n]*)", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")
_FASTEST = re.compile(
    r"^[ \t]*(?P<name>\w+) = (?:[xyzr]\w{0,9}index|\([xyzr]\w{0,9}index % [^()\n]*\))[ \t]*$",
    re.MULTILINE,
)
_LONGEST = 20_000
"""Characters of one access at most: a bracket that is never closed must not cost the whole text each time."""


def fastest_variables(source: str) -> frozenset[str]:
    """Return the variables that go up by one from each element of a block to the next.

    Of `x0 = (xindex % 16)`, `x1 = xindex // 16`, `x2 = xindex`, `r0_3 = r0_index` those are x0, x2 and r0_3
    (torch/_inductor/codegen/simd.py, IterationRangesRoot.lookup). A load is coalesced along an axis of its
    block where one of them stands with a stride of 1 in its index.
    """
    return frozenset(match["name"] for match in _FASTEST.finditer(source, max(source.find("@triton.jit"), 0)))


def pointer_uses(source: str, pointers: frozenset[str]) -> tuple[PointerUse, ...]:
    """Return the loads, stores and atomics through `pointers`, or through names made of them, in order."""
    start = max(source.find("@triton.jit"), 0)
    pointer_of = {name: name for name in pointers}
    for match in _ASSIGNED.finditer(source, start):  # `A = arg_A`, `x_ptrs = x_ptr + offsets`
        if "tl.load(" not in match["value"]:
            words = _WORD.findall(match["value"])
            if root := next((pointer_of[word] for word in words if word in pointer_of), None):
                pointer_of.setdefault(match["name"], root)
    uses: list[PointerUse] = []
    line, counted = 1, 0
    for match in _ACCESS.finditer(source, start):
        line += source.count("\n", counted, match.start())
        counted = match.start()
        text = inside(source[counted : counted + _LONGEST], match.start("opening") - counted)
        address = next(iter(split_arguments(text or "")), "")  # `in_ptr0 + (x0)` of `in_ptr0 + (x0), xmask`
        name = next((word for word in _WORD.findall(address) if word in pointer_of), None)
        if name is not None:
            kind = _KINDS.get(match["how"], "atomic")
            _, plus, index = address.partition(f"{name} + ")
            alias = name if name != pointer_of[name] else None
            uses.append(PointerUse(line, kind, pointer_of[name], unwrapped(index) if plus else None, alias))
    return tuple(uses)
