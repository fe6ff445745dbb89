"""The least time that a kernel can take on a GPU: bytes that must move and operations that must be done.

A bound is no estimate. It holds with nothing in the L2 cache that the kernel reads, and counts only

- elements of a buffer that an access reaches whatever the values are: where an index is loaded, or an access
  is masked, those that are sure to be reached; elements that several accesses reach count once;
- 32 bytes for each sector that is read, as the memory gives no less (CUDA C++ Best Practices Guide,
  "Coalesced Access to Global Memory"), and each byte that is written;
- operations of matrix products, of attention and of convolutions, forward and backward, as they are counted
  by `torch.utils.flop_counter`, less what a causal mask or padding leaves out. A convolution in steps of one
  may be computed with fewer multiplications than it has (Winograd, Arithmetic Complexity of Computations,
  1980; FFT): of it counts one for each element of the result and pair of channels, since bilinear forms that
  are independent need one each;
- comparisons of a sort within a block: Triton's is a bitonic network (Batcher, Sorting Networks and their
  Applications, 1968), which compares N / 2 pairs in each of k (k + 1) / 2 steps for rows of up to N = 2^k
  elements: 128 pairs in 36 steps for 256. A lane compares once in a clock. Of other operators the count is
  not known.

What a launch itself takes is in no bound: some microseconds, however little a kernel does. Rates are those
of `machine/gpus/`, at the highest clock. Library functions are bounded where it is known what they must read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import NamedTuple

from msgspec.structs import replace

from inductor_probe.analysis.graph import GraphIndex, index_of
from inductor_probe.analysis.index import all_numbers, known_sum, value_of
from inductor_probe.analysis.memory_format import ITEM_BYTES
from inductor_probe.analysis.operators import operator
from inductor_probe.analysis.reach import SECTOR_BYTES, Pattern, different_steps, least_bytes, pattern_of
from inductor_probe.analysis.symbols import parse_type, symbol_values
from inductor_probe.analysis.work import memory_names, once_passed
from inductor_probe.machine.targets import target_of_device
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.fx import FX_DTYPES
from inductor_probe.model.gpu_target import GpuTarget, ProductType
from inductor_probe.model.ir import BufferLayout, MemoryDep, SchedulerNode, StarDep
from inductor_probe.model.kernels import KernelBound, KernelLaunch, KernelRow, Passed, Unbounded

_PRODUCTS = {"mm": 0, "bmm": 0, "_int_mm": 0, "_scaled_mm": 0, "addmm": 1, "baddbmm": 1}
"""Matrix products, and where the first matrix stands among the arguments: after what is added."""
_ATTENTION = re.compile(r"aten\._scaled_dot_product_(?P<kind>\w*?)_?attention(?P<backward>_backward)?$")
_CAUSAL = {  # which argument is `is_causal`: aten/src/ATen/native/native_functions.yaml
    ("flash", False): 4, ("efficient", False): 6, ("cudnn", False): 6,
    ("flash", True): 11, ("efficient", True): 11, ("cudnn", True): 14,
}  # fmt: skip
_GRADIENTS_WANTED = 10
"""Which argument of the efficient backward is `grad_input_mask`; the others compute every gradient."""
_CONVOLUTION = ("input", "weight", "bias", "stride", "padding", "dilation", "transposed", "output_padding")
_CONVOLUTION_BACKWARD = (
    "grad_output", "input", "weight", "bias_sizes", "stride", "padding", "dilation", "transposed",
    "output_padding", "groups", "output_mask",
)  # fmt: skip
_NAMED = re.compile(r"(?P<name>\w+)=(?P<value>[^=].*)")
_NO_DIMENSION = re.compile(r"(?:stable|descending)\b")
"""Other arguments of `aten.sort`, which are named where they come first."""
_SCALED_AWAY = re.compile(r"beta\s*=\s*0(?:\.0*)?(?![\d.])")
_TYPES: dict[str, ProductType] = {
    "float64": "float64", "float32": "tf32", "float16": "float16", "bfloat16": "bfloat16", "int8": "int8",
    "float8_e4m3fn": "float8", "float8_e5m2": "float8",
}  # fmt: skip
_SIMT: dict[ProductType, ProductType] = {"float64": "float64_simt", "tf32": "float32_simt"}


def gpu_of(graph: CompiledGraph) -> GpuTarget | None:
    """Return the figures of the GPU that a graph was compiled for, real or simulated; None if not known."""
    return graph.gpu if isinstance(graph.gpu, GpuTarget) else target_of_device(graph.gpu)


def with_bounds(graph: CompiledGraph, rows: Sequence[KernelRow]) -> tuple[KernelRow, ...]:
    """Return the rows with the bound of each kernel that runs on a GPU whose figures are known."""
    gpu = gpu_of(graph)
    if gpu is None:
        return tuple(rows)
    bounds = _Bounds(graph, gpu)
    return tuple(replace(row, bound=bounds.of(row)) if row.launches else row for row in rows)


class _Bounds:
    """Makes the bounds of the kernels of one graph."""

    def __init__(self, graph: CompiledGraph, gpu: GpuTarget) -> None:
        self._graph, self._gpu = graph, gpu
        self._index: GraphIndex = index_of(graph)
        self._values = symbol_values(graph)
        inputs = (*graph.fx.inputs, *graph.fx.subgraph_inputs) if graph.fx else ()
        self._fx = {**{node.name: node for node in inputs}, **self._index.fx}

    def of(self, row: KernelRow) -> KernelBound | None:
        """Return the bound of a kernel over all of its launches; None for one that runs on a CPU."""
        if row.backend not in ("triton", "extern") or not self._on_gpu(row):
            return None
        kind: ProductType | None
        if row.backend == "extern":
            moved, flops, kind = self._library(row)
        elif row.kind == "template":
            flops, kind = self._template_flops(row)
            moved = self._generated(row) if flops else None
        else:
            moved, flops = self._generated(row), self._comparisons(row) or None
            kind = "comparison" if flops else None
        return self._bound(row, moved, flops, kind)

    def _bound(
        self, row: KernelRow, moved: int | None, flops: int | None, kind: ProductType | None
    ) -> KernelBound:
        memory = moved / self._gpu.memory_rate if moved else None
        rate = self._gpu.product_rate(kind) if kind else None
        arithmetic = flops / rate if flops and rate else None
        seconds = max((time for time in (memory, arithmetic) if time is not None), default=None)
        return KernelBound(
            gpu=self._gpu.device,
            seconds=seconds,
            limit=None if seconds is None else "memory" if seconds == memory else "arithmetic",
            moved=moved,
            flops=flops,
            product=kind if rate else None,
            memory_seconds=memory,
            arithmetic_seconds=arithmetic,
            unbounded=self._why_not(row) if seconds is None else None,
        )

    def _why_not(self, row: KernelRow) -> Unbounded:
        if row.backend == "extern" or row.kind == "template":
            return "library"
        if not row.nodes:
            return "no-node"
        sizes = (row.bytes_read, row.bytes_written)
        symbolic = any(isinstance(size, str) and value_of(size, self._values) is None for size in sizes)
        return "symbolic" if symbolic else "nothing-sure"

    def _on_gpu(self, row: KernelRow) -> bool:
        if row.backend == "triton":
            return True
        devices = [
            passed.layout.device or "" for launch in row.launches for passed in launch.passed if passed.layout
        ]
        devices += [layout.device or "" for layout in self._outputs(row)]
        return any(device.startswith("cuda") for device in devices)

    # Generated kernels.

    def _generated(self, row: KernelRow) -> int | None:
        leaves = self._index.nodes.named(row.nodes)
        if not leaves:
            return None
        nodes = {leaf.name for leaf in leaves}
        whole = row.kind == "template"
        read = self._patterns(leaves, reads=True, whole=whole)
        written = self._patterns(leaves, reads=False, whole=whole)
        total = 0
        for launch in row.launches:
            for buffer, passed in once_passed(launch, ("in", "inout")).items():
                names = [
                    name for name in self._names(buffer) if self._index.nodes.producer.get(name) not in nodes
                ]
                total += self._least(names, read, passed, sectors=True)
            for buffer, passed in once_passed(launch, ("out", "inout")).items():
                names = memory_names(self._index, buffer, nodes)
                total += self._least(names, written, passed, sectors=False)
        return total or None

    def _names(self, buffer: str) -> list[str]:
        """Return all names that the memory of a buffer has, from before and after it was mutated."""
        names = dict.fromkeys(self._index.memory_names(buffer))
        while (
            new := {later for name in names for later in self._index.nodes.mutated_as.get(name, ())}
            - names.keys()
        ):
            names.update(dict.fromkeys(sorted(new)))
        return list(names)

    def _patterns(
        self, leaves: Sequence[SchedulerNode], *, reads: bool, whole: bool
    ) -> dict[str, list[Pattern | None]]:
        """Return what nodes are sure to reach of each buffer; None for all of it."""
        patterns: dict[str, list[Pattern | None]] = {}
        for leaf in leaves:
            masked = _masked(leaf) if reads else frozenset[str]()
            for dep in leaf.reads if reads else leaf.writes:
                if isinstance(dep, StarDep) and whole:
                    patterns.setdefault(dep.name, []).append(None)
                elif isinstance(dep, MemoryDep):
                    pattern = self._pattern(dep, leaf)
                    if pattern is not None and (dep.name not in masked or self._covers(pattern, dep.name)):
                        patterns.setdefault(dep.name, []).append(pattern)
        return patterns

    def _pattern(self, dep: MemoryDep, leaf: SchedulerNode) -> Pattern | None:
        sizes = {name: value_of(size, self._values) for name, size in dep.ranges}
        ranges = {name: size for name, size in sizes.items() if size is not None}
        return pattern_of(dep.index, ranges, self._values) if len(ranges) == len(sizes) else None

    def _covers(self, pattern: Pattern, name: str) -> bool:
        """Return whether a masked access goes over all of a buffer, and is masked where it goes beyond."""
        layout = self._index.layouts.get(name)
        count = self._numel(layout)
        if count is None or pattern.floats:
            return False
        return pattern.first <= 0 and pattern.furthest >= count - 1 and pattern.count >= count

    def _least(
        self,
        names: Iterable[str],
        patterns: Mapping[str, list[Pattern | None]],
        passed: Passed,
        *,
        sectors: bool,
    ) -> int:
        layout = passed.layout
        size = self._layout_bytes(layout)
        if layout is None or size is None:
            return 0
        reached = [pattern for name in names for pattern in patterns.get(name, ())]
        known = [pattern for pattern in reached if pattern is not None]
        if len(known) < len(reached):
            return size
        item = ITEM_BYTES[layout.dtype or ""]
        least = least_bytes(known, item, sectors=sectors)
        return min(least, -(-size // SECTOR_BYTES) * SECTOR_BYTES if sectors else size)

    def _numel(self, layout: BufferLayout | None) -> int | None:
        """Return how many different elements a layout has at least."""
        if layout is None or layout.size is None or layout.stride is None:
            return None
        sizes = all_numbers(value_of(size, self._values) for size in layout.size)
        strides = all_numbers(value_of(step, self._values) for step in layout.stride)
        if sizes is None or strides is None:
            return None
        steps = [(abs(step), size) for size, step in zip(sizes, strides, strict=False)]
        return 0 if 0 in sizes else prod(number for _, number in different_steps(steps))

    def _layout_bytes(self, layout: BufferLayout | None) -> int | None:
        count = self._numel(layout)
        known = layout is not None and layout.dtype in ITEM_BYTES
        return count * ITEM_BYTES[layout.dtype or ""] if known and layout and count is not None else None

    def _comparisons(self, row: KernelRow) -> int:
        """Return those of the sorts that a kernel makes, as triton's `tl.sort` does; 0 if it has none."""
        total = 0
        for name in row.fx:
            node = self._fx.get(name)
            if node is None or operator(node.target).packet != "aten.sort":
                continue
            operand, *rest = node.arguments.split(", ")
            type_ = parse_type(known.type) if (known := self._fx.get(operand)) else None
            sizes = [value_of(size, self._values) for size in type_.size] if type_ else []
            numbers = [
                _numbers(text.rpartition("=")[2].strip()) for text in rest if not _NO_DIMENSION.match(text)
            ]
            dim = numbers[0][0] if numbers and numbers[0] else -1
            if None in sizes or not -len(sizes) <= dim < len(sizes):
                continue
            length = sizes[dim] or 0
            steps = max(0, length - 1).bit_length()
            rows = prod(size or 0 for size in sizes) // max(1, length)
            total += rows * 2**steps // 2 * steps * (steps + 1) // 2
        return total

    # Products.

    def _template_flops(self, row: KernelRow) -> tuple[int | None, ProductType | None]:
        """Return the operations of the matrix products that a template computes, and their type."""
        flops, kinds = 0, dict[ProductType, None]()
        for name in row.fx:
            node = self._fx.get(name)
            place = _PRODUCTS.get(operator(node.target).packet.removeprefix("aten.")) if node else None
            if node is None or place is None:
                continue
            operands = [self._fx.get(text.strip()) for text in node.arguments.split(",")[place : place + 2]]
            types = [parse_type(operand.type) if operand else None for operand in operands]
            if len(types) < 2 or None in types:
                return None, None
            sizes = [[value_of(size, self._values) for size in type_.size] for type_ in types if type_]
            count = _product_flops(*sizes)
            if count is None or types[0] is None:
                return None, None
            flops += count
            kinds[self._product(FX_DTYPES.get(types[0].dtype, types[0].dtype), row)] = None  # type: ignore[index]  # None is refused below
        kind = next(iter(kinds), None)
        return (flops, kind) if flops and len(kinds) == 1 and kind else (None, None)

    def _product(self, dtype: str | None, row: KernelRow) -> ProductType | None:
        """Return how products of a dtype are computed; of several ways the fastest that may be taken."""
        narrow = _TYPES.get(dtype or "") != "tf32" or self._allows_tf32(row) is not False
        return self._fastest(dtype) if narrow else "float32_simt"

    def _fastest(self, dtype: str | None) -> ProductType | None:
        kind = _TYPES.get(dtype or "")
        plain = _SIMT.get(kind) if kind else None
        if kind and plain and (self._gpu.product_rate(kind) or 0) < (self._gpu.product_rate(plain) or 0):
            kind = plain
        return kind

    def _allows_tf32(self, row: KernelRow) -> bool | None:
        """Return whether float32 may be rounded for tensor cores, as the template says, or the manifest."""
        kernel = self._index.kernels.get(row.name)
        if kernel is not None and (
            match := re.search(r"^\s*ALLOW_TF32 : tl.constexpr = (\w+)", kernel.source, re.M)
        ):
            return match[1] == "True"
        return self._graph.record.allows_tf32 if self._graph.record else None

    # Library functions.

    def _library(self, row: KernelRow) -> tuple[int | None, int | None, ProductType | None]:
        """Return the bytes and operations of calls, None for what is not known of this function."""
        name = row.name.removeprefix("extern_kernels.").removeprefix("torch.ops.").removesuffix(".default")
        written = sum(size for layout in self._outputs(row) if (size := self._layout_bytes(layout)))
        calls = [self._call(row, launch, name) for launch in row.launches]
        known = [call for call in calls if call is not None]
        if len(known) < len(calls):
            return None, None, None
        flops, kinds = known_sum(call.flops for call in known), {call.kind for call in known}
        kind = kinds.pop() if len(kinds) == 1 else None
        return written + sum(call.moved for call in known) or None, flops or None, kind

    def _call(self, row: KernelRow, launch: KernelLaunch, name: str) -> _Call | None:
        """Return what a call of a function takes; None where that is not known."""
        place = _PRODUCTS.get(name.removeprefix("aten.").removesuffix(".out"))
        if place is not None:
            return self._matrix_product(row, launch, place)
        if name in ("convolution", "aten.convolution", "aten.convolution_backward"):
            return self._convolution(launch, backward=name.endswith("backward"))
        match = _ATTENTION.search(name)
        return (
            self._attention(row, launch, match["kind"], backward=bool(match["backward"])) if match else None
        )

    def _outputs(self, row: KernelRow) -> list[BufferLayout]:
        """Return the layouts of what the nodes of a library function return, and have memory for."""
        buffers = (buffer for leaf in self._index.nodes.named(row.nodes) for buffer in leaf.outputs)
        layouts = (self._index.layouts.get(buffer.name, buffer.layout) for buffer in buffers)
        return [one for one in layouts if one and one.kind not in ("MultiOutputLayout", "NoneLayout")]

    def _operands(self, row: KernelRow, launch: KernelLaunch) -> list[Passed]:
        """Return the tensors that a call is given, what it writes left out."""
        outputs = {buffer.name for leaf in self._index.nodes.named(row.nodes) for buffer in leaf.outputs}
        return [passed for passed in launch.passed if passed.layout and passed.buffer not in outputs]

    def _matrix_product(self, row: KernelRow, launch: KernelLaunch, place: int) -> _Call | None:
        operands = self._operands(row, launch)
        matrices = operands[place : place + 2]
        texts = " ".join([*(passed.text for passed in launch.passed), *map("=".join, launch.keywords)])
        added = [] if _SCALED_AWAY.search(texts) else operands[:place]
        sizes = [self._sizes(passed) for passed in matrices]
        flops = _product_flops(*sizes) if len(sizes) == 2 else None
        if flops is None:
            return None
        kind = self._product(matrices[0].layout.dtype if matrices[0].layout else None, row)
        return _Call(self._passed_bytes([*added, *matrices]), flops, kind)

    def _convolution(self, launch: KernelLaunch, *, backward: bool) -> _Call:
        """Return what a convolution reads and computes, or its backward function.

        It reads all of the input only where no step leaves some of it out.
        """
        arguments = _arguments(launch, _CONVOLUTION_BACKWARD if backward else _CONVOLUTION)
        wanted = _numbers(arguments["output_mask"].text) if "output_mask" in arguments else [1, 0]
        least = self._multiplications(arguments)
        if least is None or wanted is None:
            return _Call(0, None, None)
        taken = [arguments["weight"]] if wanted[0] else []
        if least.reads_all and (wanted[1] or not backward):
            taken.append(arguments["input"])
        if backward:
            taken.append(arguments["grad_output"])
        elif (bias := arguments.get("bias")) and bias.layout:
            taken.append(bias)
        layout = arguments["input"].layout
        # That float32 may be rounded is cuDNN's default, and another setting than that of products.
        kind = self._fastest(layout.dtype if layout else None)
        flops = 2 * least.multiplications * sum(wanted[:2]) if kind else None
        return _Call(self._passed_bytes(taken), flops, kind)

    def _multiplications(self, arguments: Mapping[str, Passed]) -> _Convolution | None:
        """Return what a call computes; None if a size or an option is not known."""
        image, weight = (self._sizes(arguments[name]) for name in ("input", "weight"))
        names = ("stride", "padding", "dilation", "output_padding")
        options = [_numbers(arguments[name].text) if name in arguments else None for name in names]
        spatial = len(weight) - 2
        if spatial < 1 or len(image) != len(weight) or None in image or None in weight:
            return None
        steps, padding, dilation, more = (
            None if option is None else option * (spatial // len(option) if option else 0)
            for option in options
        )
        if not (steps and padding and dilation and more) or "transposed" not in arguments:
            return None
        dims = zip(
            *([size or 0 for size in sizes[2:]] for sizes in (image, weight)),
            *(steps, padding, dilation, more),
            strict=True,
        )
        transposed = arguments["transposed"].text == "True"
        return _Convolution.of((image[0] or 0) * (weight[0] or 0) * (weight[1] or 0), list(dims), transposed)

    def _attention(self, row: KernelRow, launch: KernelLaunch, kind: str, *, backward: bool) -> _Call | None:
        tensors = self._operands(row, launch)[: 4 if backward else 3]
        operands = tensors[-3:]
        sizes = [self._sizes(passed) for passed in operands]
        if len(sizes) < 3 or any(len(size) != 4 or None in size for size in sizes):
            return None
        (*outer, queries, head), (*_, keys, _), (*_, width) = (
            [size or 0 for size in sizes_] for sizes_ in sizes
        )
        texts = [passed.text for passed in launch.passed]
        place = _CAUSAL.get((kind, backward))
        causal = "True" in (texts[3:] if place is None else texts[place : place + 1])
        causal = causal or any(text == "True" for _, text in launch.keywords)
        # A query sees the keys up to its own place, counted from the first.
        pairs = sum(min(place + 1, keys) for place in range(queries)) if causal else queries * keys
        columns = head + width
        if backward:
            # Scores again and their gradient, then those of inputs (`sdpa_backward_flop_count`).
            masked = kind == "efficient" and len(texts) > _GRADIENTS_WANTED
            wanted = (_numbers(texts[_GRADIENTS_WANTED]) if masked else None) or [1, 1, 1]
            columns += sum(size for size, one in zip((head, head, width), wanted, strict=False) if one)
        whole = not causal or keys <= queries
        return _Call(
            self._passed_bytes([*tensors[:-3], *(operands if whole else operands[:1])]),
            2 * prod(outer) * pairs * columns,
            # CUTLASS has tensor cores compute float32 in three parts, whatever is allowed for products.
            self._fastest(operands[0].layout.dtype if operands[0].layout else None),
        )

    def _sizes(self, passed: Passed) -> list[int | None]:
        sizes = passed.layout.size if passed.layout else None
        return [value_of(size, self._values) for size in sizes or ()]

    def _passed_bytes(self, operands: Iterable[Passed]) -> int:
        """Return the bytes of what is passed, each buffer once: of two views of it the larger."""
        sizes: dict[str | None, int] = {}
        for passed in operands:
            sizes[passed.buffer] = max(sizes.get(passed.buffer, 0), self._layout_bytes(passed.layout) or 0)
        return sum(sizes.values())


class _Call(NamedTuple):
    """What a call of a library function reads at least, in bytes, and the operations known of it."""

    moved: int
    flops: int | None
    kind: ProductType | None


class _Convolution(NamedTuple):
    """How many multiplications a convolution takes at least, and whether it reads all of its input."""

    multiplications: int
    reads_all: bool

    @classmethod
    def of(
        cls, pairs: int, dims: Sequence[tuple[int, int, int, int, int, int]], transposed: bool
    ) -> _Convolution:
        """Return that of a call.

        Args:
            pairs: of channels, in and out, times the images of the batch.
            dims: of each: input, kernel, step, padding, dilation, output padding.
        """
        taps = results = 1
        reads_all = True
        for size, kernel, step, padding, dilation, more in dims:
            if transposed:
                small, large = size, (size - 1) * step - 2 * padding + dilation * (kernel - 1) + more + 1
            else:
                small, large = (size + 2 * padding - dilation * (kernel - 1) - 1) // step + 1, size
            # Element `place` of `small` meets `place * step - padding + tap * dilation` of `large`.
            firsts = [tap * dilation - padding for tap in range(kernel)]
            counts = [
                min((large - 1 - first) // step, small - 1) - max(-(first // step), 0) + 1 for first in firsts
            ]
            met = sum(max(0, count) for count in counts)
            taps, results = taps * met, results * min(met, large if transposed else small)
            if transposed:
                reads_all &= padding <= dilation * (kernel - 1)
            else:
                whole = step <= kernel if dilation == 1 else step == 1 and dilation <= small
                reads_all &= whole and (small - 1) * step - padding + (kernel - 1) * dilation >= large - 1
        fewer = all(step == dilation == 1 for _, _, step, _, dilation, _ in dims)
        return cls(pairs * (min(taps, results) if fewer else taps), reads_all)


def _arguments(launch: KernelLaunch, names: Sequence[str]) -> dict[str, Passed]:
    """Return what a call is given by its parameters, whether it names them or not."""
    named = [match for passed in launch.passed if (match := _NAMED.fullmatch(passed.text))]
    arguments = {
        name: passed for name, passed in zip(names, launch.passed, strict=False) if "=" not in passed.text
    }
    by_text = {passed.text: passed for passed in launch.passed}
    arguments |= {match["name"]: replace(by_text[match[0]], text=match["value"]) for match in named}
    return arguments | {name: Passed(None, text) for name, text in launch.keywords}


def _numbers(text: str) -> list[int] | None:
    """Return the numbers of `(1, 1)` or `[True, False]`; None if one is not a number."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    values = list(value) if isinstance(value, list | tuple) else [value]
    return [int(one) for one in values] if all(isinstance(one, int) for one in values) else None


def _product_flops(first: list[int | None], second: list[int | None]) -> int | None:
    """Return the operations of a product of matrices, or of a batch of them; None if a size is not known."""
    if len(first) != len(second) or len(first) not in (2, 3) or None in first or None in second:
        return None
    return 2 * prod(size or 0 for size in first) * (second[-1] or 0)


def _masked(leaf: SchedulerNode) -> frozenset[str]:
    """Return the buffers that a node loads where a mask says so (`ops.masked`)."""
    return frozenset(
        str(op.args[0])
        for block in (leaf.body.blocks if leaf.body else ())
        if block.name != "body"
        for op in block.ops
        if op.target == "ops.load" and op.args
    )
