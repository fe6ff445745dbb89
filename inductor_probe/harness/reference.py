"""The reference: what the graph of aten operations gives, in float64 and as it is.

It is given the random numbers that inductor's kernels draw. Kernels on the CPU call `at::Philox4_32`, Triton
kernels `tl.rand` and its kin: both are Philox 4x32 with ten rounds (Salmon et al., Parallel Random Numbers:
As Easy as 1, 2, 3; SC 2011), keyed with a seed, and counting elements.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from inductor_probe.harness.bench import Bench
from inductor_probe.harness.checks import ANYTHING, Slack, in_double, is_float, slack_of
from inductor_probe.harness.inputs import clone, tensors_of
from inductor_probe.harness.remarks import Remark, first_line, remark

LOW32 = 0xFFFFFFFF
LEAST_SEED, LARGEST_SEED = -(2**63), 2**63 - 1  # that a wrapper draws
IN_FLOAT64: dict[str, Any] = {}  # by name, what computes an operator whose library knows no float64
NARROW = (torch.float16, torch.bfloat16, torch.float32)

# The pristine call may be so many times further from float64 than eager, which sums pairwise; kernels add up
# one by one in each lane. Where n numbers cancel, rounding grows as sqrt(n) instead of sqrt(log2 n) (Higham,
# The Accuracy of Floating Point Summation, 1993): 77 times as much for n = 100,000. A false alarm would end
# the run, and wrong code is off by far more.
EAGER = 100.0


def philox(seed: int, count: int, device: torch.device) -> list[torch.Tensor]:
    """Return four words of 32 bits for each of `count` elements, as int64."""
    key = [seed & LOW32, (seed >> 32) & LOW32 if device.type == "cuda" else 0]
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
    if word.is_cuda:  # of a negative number the ones' complement, on the CPU its lower bits
        word = torch.where(word > LOW32 >> 1, LOW32 - word, word)
    return (word & 0x7FFFFFFF).float() * 4.6566127342e-10


def normal(words: list[torch.Tensor]) -> torch.Tensor:
    """Turn words into normal float32 (Box and Muller)."""
    first, second = uniform(words[0]), uniform(words[1])
    if first.is_cuda:
        return (-2.0 * first.clamp(min=1e-7).log()).sqrt() * (2 * math.pi * second).cos()
    first, second = 1 - first, 1 - second
    return ((-2.0 * first.log().double()).sqrt() * (2 * math.pi * second.double()).cos()).float()


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
                words = philox(int(seed), math.prod(size), seed.device)
                return (uniform(words[0]) if mode == "rand" else normal(words)).view(size)
            case "aten.view.default", _:  # eager lays some results out otherwise than inductor was told
                return torch.ops.aten.reshape.default(*args, **kwargs)
            case "prims.inductor_randint.default", (low, high, size, seed):
                return integers(philox(int(seed), math.prod(size), seed.device), low, high).view(size)
        if torch.Tag.nondeterministic_seeded in getattr(func, "tags", ()):
            self.others.add(str(func))
        return func(*args, **kwargs)

    def _keep(self, tensor: torch.Tensor) -> None:
        if address := _address(tensor):
            self.unwritten[address] = tensor


def _address(tensor: torch.Tensor) -> int:
    """Return where the memory of a tensor begins; 0 of one without: it is empty, sparse, or made of zeros."""
    has_memory = tensor.layout == torch.strided and not tensor._is_zerotensor()
    return int(tensor.untyped_storage().data_ptr()) if has_memory else 0


class Float64(Draws):
    """Runs every operation in float64 where the graph asks for less; `used` tells whether any did."""

    used = False

    def draw(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run one operation on widened arguments."""
        func = IN_FLOAT64.get(str(func), func)
        result = super().draw(func, tree_map(widen, args), tree_map(widen, kwargs))
        self.used = self.used or any(
            isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float64
            for leaf in tree_leaves((args, result))
        )
        return result


def widen(value: Any) -> Any:
    """Return a narrow float tensor, or a narrow float dtype, as float64."""
    if isinstance(value, torch.Tensor):
        value = value.to_dense() if value.is_mkldnn else value
        return value.double() if value.dtype in NARROW else value
    return torch.float64 if isinstance(value, torch.dtype) and value in NARROW else value


@dataclass
class Reference:
    """What the graph of aten operations gives, and how far from it the same result may be.

    `others` are operations that drew random numbers as eager does; `drawn`: some were drawn as kernels do.
    """

    outputs: list[Any]
    after: list[Any]
    slack: list[Slack]
    remarks: list[Remark] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    drawn: bool = False

    def of(self, mutated: list[int]) -> tuple[list[Any], list[Slack]]:
        """Return values and slack of the outputs, then of the inputs at `mutated`."""
        places = [*range(len(self.outputs)), *(len(self.outputs) + index for index in mutated)]
        values = [*self.outputs, *self.after]
        return [values[place] for place in places], [self.slack[place] for place in places]

    def within_range(self, pristine: list[Any], mutated: list[int]) -> Reference:
        """Expect of a call that leaves the range of its dtype exactly its result: infinity, NaN after it.

        Random values do that in a deep backward graph, where the real ones would not.
        """
        first, values = len(self.outputs), [*self.outputs, *self.after]
        places = [*range(first), *(first + index for index in mutated)]
        pairs = [(place, value, values[place]) for place, value in zip(places, pristine, strict=False)]
        if not any(is_float(value) and _leaves_range(exact, value.dtype) for _, value, exact in pairs):
            return self
        for place, value, exact in pairs:
            if is_float(value) and exact is not ANYTHING and value.shape == exact.shape:
                values[place] = torch.where(in_double(value).isfinite(), exact, value)
        remarks = [*self.remarks, remark("range-exceeded")]
        return replace(self, outputs=values[:first], after=values[first:], remarks=remarks)


def _leaves_range(exact: Any, dtype: torch.dtype) -> bool:
    if not is_float(exact):
        return False
    size = in_double(exact).abs()
    return bool((size.isfinite() & (size > torch.finfo(dtype).max)).any())


def references(bench: Bench, inputs: list[Any], seed: int) -> list[Reference]:
    """Run the graph in float64 and as it is; return both, the better first. Each has slack for all values.

    Integers that come from floats may be off by one.
    """
    draws = Draws()
    outputs, after = _run_graph(bench, inputs, seed, draws)
    plain = _exact(outputs, after)
    plain.others, plain.drawn = sorted(draws.others), draws.answered
    mode = Float64()
    try:
        wide = Reference(*_run_graph(bench, inputs, seed, mode), [])
    except Exception as error:  # any operation may refuse float64 in its own way
        return [replace(plain, remarks=[remark("float64-fails", error=first_line(error))])]
    floor = 1.0 if mode.used else 0.0
    for value, precise in zip((*outputs, *after), (*wide.outputs, *wide.after), strict=True):
        slack = slack_of(value, precise, EAGER)
        wide.slack.append(slack if is_float(value) else Slack(max(slack.absolute, floor)))
    return [wide, replace(plain, remarks=[remark("float64-differs")])]


def without_mode(bench: Bench, inputs: list[Any], seed: int) -> Reference:
    """Run the graph without a mode, for operations that compute something else below one.

    Those of linalg that are made of others do for complex numbers: pinv does on torch 2.13.
    """
    return replace(_exact(*_run_graph(bench, inputs, seed, None)), remarks=[remark("float64-unwatched")])


def _exact(outputs: list[Any], after: list[Any]) -> Reference:
    return Reference(outputs, after, [Slack()] * (len(outputs) + len(after)))


def _run_graph(bench: Bench, inputs: list[Any], seed: int, mode: Draws | None) -> tuple[list[Any], list[Any]]:
    """Run the graph eagerly on copies of `inputs`; return its outputs, and the inputs after it."""
    graph, after = bench.aten_graph(), clone(inputs)  # type: ignore[misc]
    if isinstance(mode, Float64):
        graph, after = graph.double(), tree_map(widen, after)
    torch.manual_seed(seed)
    with torch.no_grad(), mode or nullcontext():
        outputs = graph(*after)
    if mode is not None:
        outputs = [ANYTHING if mode.is_unwritten(value) else value for value in outputs]
    return list(outputs), after
