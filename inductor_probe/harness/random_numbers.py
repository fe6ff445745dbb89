"""Random numbers as inductor's kernels draw them, and memory that no operation writes to.

Kernels on the CPU call `at::Philox4_32`, Triton kernels `tl.rand` and its kin: both are Philox 4x32 with ten
rounds (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3; SC 2011), keyed with a seed, and counting
elements. Where inductor has `triton_helpers.rand4x`, a Triton kernel of one dimension draws four numbers of
one count.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from inductor_probe.harness.bench import replaced
from inductor_probe.harness.casts import Casts
from inductor_probe.harness.inputs import tensors_of
from inductor_probe.harness.reference import Float64

IN_FLOAT64: dict[str, Any] = {}  # by name, what computes an operator whose library knows no float64
LOW32 = 0xFFFFFFFF
TRITON_DEVICES = {"cuda"}  # where kernels draw as Triton does: the CPU, too, where it interprets them
SEEDS_4X: dict[int, str] = {}  # with which kernels drew four numbers of a count; see `note_draws`
GENERATOR_STATES = {"philox_seed", "philox_offset", "rng_state", "unused"}
"""Outputs of attention that mean nothing without dropout: memory that its kernels do not write to."""
LEAST_SEED, LARGEST_SEED = -(2**63), 2**63 - 1  # that a wrapper draws


def philox(seed: int, count: int, device: torch.device) -> list[torch.Tensor]:
    """Return four words of 32 bits for each of `count` elements, as int64."""
    key = [seed & LOW32, (seed >> 32) & LOW32 if device.type in TRITON_DEVICES else 0]
    element = torch.arange(count, device=device)
    words = [element & LOW32, element >> 32, torch.zeros_like(element), torch.zeros_like(element)]
    for _ in range(10):
        high0, low0 = multiplied(words[0], 0xD2511F53)
        high1, low1 = multiplied(words[2], 0xCD9E8D57)
        words = [high1 ^ words[1] ^ key[0], low1, high0 ^ words[3] ^ key[1], low0]
        key = [(key[0] + 0x9E3779B9) & LOW32, (key[1] + 0xBB67AE85) & LOW32]
    return words


def multiplied(word: torch.Tensor, factor: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return high and low 32 bits of a product, in halves that int64 can hold."""
    low = (word & 0xFFFF) * factor
    middle = (word >> 16) * factor + (low >> 16)
    return middle >> 16, ((middle & 0xFFFF) << 16) | (low & 0xFFFF)


def uniform(word: torch.Tensor) -> torch.Tensor:
    """Turn words into float32 from 0 to below 1."""
    if (
        word.device.type in TRITON_DEVICES
    ):  # of a negative number the ones' complement, on the CPU its lower bits
        word = torch.where(word > LOW32 >> 1, LOW32 - word, word)
    return (word & 0x7FFFFFFF).float() * 4.6566127342e-10


def normal(words: list[torch.Tensor]) -> torch.Tensor:
    """Turn words into normal float32 (Box and Muller)."""
    first, second = uniform(words[0]), uniform(words[1])
    if first.device.type in TRITON_DEVICES:
        return (-2.0 * first.clamp(min=1e-7).log()).sqrt() * (2 * math.pi * second).cos()
    first, second = 1 - first, 1 - second
    return ((-2.0 * first.log().double()).sqrt() * (2 * math.pi * second.double()).cos()).float()


def four_at_a_time(seed: int, count: int, device: torch.device, mode: str) -> torch.Tensor:
    """Return numbers of which four come from the words of one count: uniform, or normal in pairs.

    torch/_inductor/runtime/triton_helpers.py, rand4x and randn4x; triton/language/random.py, randn4x.
    """
    words = philox(seed, -(-count // 4), device)
    numbers = [uniform(word) for word in words]
    if mode != "rand":
        radii = [(-2.0 * first.clamp(min=1e-7).log()).sqrt() for first in numbers[::2]]
        turns = [2 * math.pi * second for second in numbers[1::2]]
        pairs = zip(radii, turns, strict=True)
        numbers = [radius * turn for radius, angle in pairs for turn in (angle.cos(), angle.sin())]
    return torch.stack(numbers, 1).view(-1)[:count]


class Draw4x(NamedTuple):
    """A place in a kernel's text that draws four numbers of one count: `triton_helpers.rand4x` or `randn4x`.

    `seeds`, `place`: the parameters for the seeds, and for which of them it takes. `block`: the one for the
    size of its blocks. `consecutive`: the offsets of a block follow each other, as the helpers expect.
    """

    seeds: str
    place: str
    block: str
    consecutive: bool


@cache
def draws_4x(text: str) -> tuple[Draw4x, ...]:
    """Return the places of a kernel's text that draw four numbers of one count.

    torch/_inductor/codegen/triton.py (`TritonOverrides.rand`, `TritonKernelOverrides.load_seed`) writes them:
    `tmp0 = tl.load(in_ptr0 + load_seed_offset)`, then `triton_helpers.rand4x(tmp0, (tmp1).to(tl.uint32),
    XBLOCK)`, where `tmp1` is an index.
    """
    draws, values = list[Draw4x](), dict[str, ast.expr]()
    assigned = (
        [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Assign)] if "4x(" in text else []
    )
    for node in sorted(assigned, key=lambda node: node.lineno):
        match node.value:
            case ast.Call(
                ast.Attribute(ast.Name("triton_helpers"), "rand4x" | "randn4x"),
                [ast.Name(seed), ast.Call(ast.Attribute(ast.Name(offset), "to")), ast.Name(block)],
            ):
                match values.get(seed):
                    case ast.Call(args=[ast.BinOp(ast.Name(seeds), ast.Add(), ast.Name(place)), *_]):
                        draws.append(Draw4x(seeds, place, block, _named(offset, values) == "xindex"))
        match node.targets:
            case [ast.Name(name)]:
                values[name] = node.value
    return tuple(draws)


def _named(name: str, values: Mapping[str, ast.expr]) -> str:
    """Return the last name of `tmp1 = (x0).to(tl.int32)`, `x0 = xindex` for `tmp1`."""
    while name != "xindex":
        match values.get(name):
            case ast.Name(other) | ast.Call(ast.Attribute(ast.Name(other), "to")) if other != name:
                name = other
            case _:
                break
    return name


def note_draws(name: str, text: str, values: Mapping[str, Any], blocks: Mapping[str, Any]) -> None:
    """Note with which seeds a launch draws four numbers of a count, and the kernel if it cannot be replayed.

    That is a kernel where the offsets of a block do not follow each other: each block draws the numbers after
    its least offset, which depend on the size of the blocks, and which other blocks draw, too.

    Args:
        values: what the parameters are.
        blocks: sizes of blocks: those below four draw a number a count.
    """
    for draw in draws_4x(text):
        seeds, place = values.get(draw.seeds), values.get(draw.place)
        if isinstance(seeds, torch.Tensor) and place is not None and int(blocks.get(draw.block, 4)) >= 4:
            seed = int(seeds.as_strided([1], [1], seeds.storage_offset() + int(place)))
            SEEDS_4X[seed] = "" if draw.consecutive else name


class DrawsNoted:
    """Stands in for a Triton kernel that inductor compiled: notes what each launch draws."""

    def __init__(self, name: str, kernel: Any) -> None:
        self.name, self.kernel = name, kernel

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Launch it. What it launches with is known after that, and the seeds may be written over by then."""
        function = self.kernel.fn
        names = [name for name in function.arg_names if not name.endswith("BLOCK")]
        seeds = {draw.seeds for draw in draws_4x(function.src)}
        values = {
            name: value.clone() if name in seeds else value for name, value in zip(names, args, strict=False)
        }
        result = self.kernel.run(*args, **kwargs)
        launchers = self.kernel.launchers
        note_draws(self.name, function.src, values, launchers[0].config.kwargs if launchers else {})
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)


@contextmanager
def draws_noted(namespace: dict[str, Any]) -> Iterator[None]:
    """Note what the kernels of a bench file draw, for a while."""
    texts = {name: getattr(getattr(kernel, "fn", None), "src", None) for name, kernel in namespace.items()}
    drawing = {name for name, text in texts.items() if isinstance(text, str) and draws_4x(text)}
    with replaced(namespace, {name: DrawsNoted(name, namespace[name]) for name in drawing}):
        yield


def integers(words: list[torch.Tensor], low: int, high: int) -> torch.Tensor:
    """Turn words into integers from `low` to below `high`."""
    span = high - low
    if span > 1 << 31:  # int64 cannot hold what is needed on the way
        pairs = zip(words[0].tolist(), words[1].tolist(), strict=True)
        values = [low + (first | second << 32) % span for first, second in pairs]
        return torch.tensor(values, dtype=torch.int64, device=words[0].device)
    return low + (words[1] % span * (2**32 % span) + words[0] % span) % span


class Draws(TorchDispatchMode):  # type: ignore[misc]
    """Answers inductor's random operations as its kernels do; everything else runs as it is.

    `answered` tells whether there was one. `others` are other operations that drew random numbers: eager may
    draw those in another order. `unwritten` is, by its address, the memory that no operation wrote to so far:
    what it holds is no result. It is kept, so that nothing else gets it.
    """

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.others: set[str] = set()
        self.answered = False
        self.unwritten: dict[int, torch.Tensor] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = self.draw(func, args, kwargs)
        schema = getattr(func, "_schema", None)  # higher-order operators have none
        if _is_seeded(func) and not draws_numbers(func, args, kwargs):
            for output, value in zip(schema.returns, result, strict=True) if schema else ():
                if output.name in GENERATOR_STATES and isinstance(value, torch.Tensor):
                    self._keep(value)
        if str(func).startswith(("aten.empty", "aten.new_empty")):
            self._keep(result)
        elif self.unwritten and schema is not None:
            for index, argument in enumerate(schema.arguments):
                if argument.alias_info is not None and argument.alias_info.is_write:
                    value = args[index] if index < len(args) else kwargs.get(argument.name)
                    for tensor in tensors_of(value):
                        self.unwritten.pop(_address(tensor), None)
            view = len(schema.returns) == 1 and schema.returns[0].alias_info is not None
            if view and any(map(self.is_unwritten, args)):
                self._keep(result)  # in float64 it is a copy
        return result

    def is_unwritten(self, value: Any) -> bool:
        """Tell whether a value is memory that no operation wrote to."""
        return isinstance(value, torch.Tensor) and _address(value) in self.unwritten

    def draw(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run one operation."""
        match str(func), args:
            case "prims.inductor_seeds.default", (count, device):
                self.answered = True
                return torch.randint(LEAST_SEED, LARGEST_SEED, [count], device=device)
            case "prims.inductor_random.default", (size, seed, mode) if kwargs.get("align_dtype") is None:
                if kernel := SEEDS_4X.get(int(seed)):
                    self.others.add(f"{mode} in {kernel}, whose blocks draw numbers of other blocks again")
                if int(seed) in SEEDS_4X:
                    return four_at_a_time(int(seed), math.prod(size), seed.device, mode).view(size)
                words = philox(int(seed), math.prod(size), seed.device)
                return (uniform(words[0]) if mode == "rand" else normal(words)).view(size)
            case "aten.view.default", _:  # eager lays some results out otherwise than inductor was told
                return torch.ops.aten.reshape.default(*args, **kwargs)
            case "prims.inductor_randint.default", (low, high, size, seed):
                return integers(philox(int(seed), math.prod(size), seed.device), low, high).view(size)
        if draws_numbers(func, args, kwargs):
            self.others.add(str(func))
        return func(*args, **kwargs)

    def _keep(self, tensor: torch.Tensor) -> None:
        if address := _address(tensor):
            self.unwritten[address] = tensor


def _is_seeded(func: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(func, "tags", ())


def draws_numbers(func: Any, args: Any, kwargs: Any) -> bool:
    """Tell whether an operator draws random numbers: attention without dropout does not, for all its tag."""
    if not _is_seeded(func):
        return False
    return bool(bound_arguments(func, args, kwargs).get("dropout_p", 1.0) != 0.0)


def bound_arguments(operator: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Return the arguments of a call of an operator by their names, defaults among them."""
    arguments = operator._schema.arguments
    values = {one.name: one.default_value for one in arguments if one.has_default_value()}
    return {**values, **dict(zip((one.name for one in arguments), args, strict=False)), **kwargs}


def _address(tensor: torch.Tensor) -> int:
    """Return where the memory of a tensor begins; 0 of one without: it is empty, sparse, or made of zeros."""
    has_memory = tensor.layout == torch.strided and not tensor._is_zerotensor()
    return int(tensor.untyped_storage().data_ptr()) if has_memory else 0


class DrawsInFloat64(Draws, Casts, Float64):
    """Does the same with every operation in float64 where the graph asks for less."""

    def draw(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run one operation on widened arguments."""

        def run(*widened: Any, **named: Any) -> Any:
            return Draws.draw(self, IN_FLOAT64.get(str(func), func), widened, named)

        return self.rounded(func, args, kwargs, run)
