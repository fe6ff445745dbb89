"""The check as `probe` does it: random numbers are replayed, and more kinds of graphs have a reference.

See `reference.py` for the reference of a bench file that runs alone.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf, isfinite
from typing import Any, TypeAlias

import torch

from inductor_probe.harness import attention as attention  # noqa: PLC0414 - it adds operators that know float64
from inductor_probe.harness.bench import Bench, original_of, replaced
from inductor_probe.harness.checks import (
    ANYTHING,
    Check,
    Reason,
    Slack,
    compare,
    differences,
    in_double,
    is_float,
    slack_of,
)
from inductor_probe.harness.inputs import changed, clone
from inductor_probe.harness.judge import POISON, PRISTINE, Round
from inductor_probe.harness.random_numbers import Draws, DrawsInFloat64, draws_noted
from inductor_probe.harness.reference import Reference, first_line, run_graph, slack_in_float64
from inductor_probe.harness.remarks import TYPES, Remark, code_of, reason, remark
from inductor_probe.harness.replays import record

RUNS = 8  # more of the pristine call, where a variant seems wrong: is it the same each time?
# A variant that errs as the call does exceeds twice the largest error of nine runs in 1 % of cases, if errors
# are normal, and 8 times that in practically none.
VARYING = 8.0
# Where lanes add n numbers each, one by one, a sum is off by about sqrt(n) roundings (Higham, as in
# `reference.py`). Of 4096 rows in 16 parts of 256, and the same in one part, that is sqrt(4096 / 256) = 4
# times as much: on an H200 9 of 33,570,816 elements of the second were beyond `PRISTINE`, -0.153471 for
# -0.153511 the first of them.
REORDERED = 8.0
# An operation after which a result is off by that many roundings of its operands is no stable one.
CASTS_OFF = 8.0
UNITS_OFF, UNITS_OFF_OF_HALFS = 16, 2
"""In the last place: by how much inputs are off at most, where it is asked what rounding decides."""
Held: TypeAlias = "tuple[list[Any], list[Slack]]"
"""What a call is right by, and how far off it may be."""
Watch: TypeAlias = "Callable[[str, Check | None], None]"


@dataclass
class CheckBesideEager(Check):
    """A check. `eager`: what eager has at the first wrong element, where the call itself is wrong."""

    eager: float | None = None


@dataclass
class VariantCheck(CheckBesideEager):
    """The check of a variant. `unedited`: its text is that of its original."""

    unedited: bool = False


@dataclass
class Candidate:
    """What a run of the graph gives, outputs and mutated inputs, and how far off the same result may be."""

    values: list[Any]
    slack: list[Slack]
    remarks: list[Reason] = field(default_factory=list)

    def within_range(self, pristine: list[Any], plain: list[Any]) -> Candidate:
        """Expect of a call that leaves the range of its dtype exactly its result: infinity, NaN after it.

        Random values do that in a deep backward graph, where the real ones would not. What is finite in it,
        but not in the graph that runs eagerly with the same dtypes (`plain`), is no more known: after an
        infinity, 1 / inf is 0 and max(inf, x) is x, and whichever sums first leaves the range first.
        """
        pairs = list(zip(pristine, self.values, strict=False))
        if not any(is_float(value) and _leaves_range(exact, value.dtype) for value, exact in pairs):
            return self
        values, elements, left = list(self.values), 0, 0
        for index, (value, exact) in enumerate(pairs):
            if is_float(value) and exact is not ANYTHING and value.shape == exact.shape:
                known = in_double(value).isfinite()
                if getattr(plain[index], "shape", None) == value.shape:
                    known &= in_double(plain[index]).isfinite()
                values[index] = torch.where(known, exact, value)
                elements, left = elements + known.numel(), left + int((~known).sum())
        exceeded = reason("range-exceeded", left=left, elements=elements)
        return replace(self, values=values, remarks=[*self.remarks, exceeded])


def _leaves_range(exact: Any, dtype: torch.dtype) -> bool:
    if not is_float(exact):
        return False
    size = in_double(exact).abs()
    return bool((size.isfinite() & (size > torch.finfo(dtype).max)).any())


class RepeatedRound(Round):
    """A round that looks again before it calls a variant wrong whose errors may be those of rounding.

    Where threads add with atomics, in any order, one run of the pristine call does not say how far off
    another may be. And a variant may add the same numbers in another order, or round to its dtype what the
    call fuses, as eager does.
    """

    varies: bool | None = None

    def __init__(self, bench: Bench, seed: int, pattern: int, expect: Callable[..., Any]) -> None:
        self.held = list[Held]()

        def noted(*args: Any) -> Reference:
            mutated, expected, check, self.held = expect(*args)
            return mutated, expected, check

        super().__init__(bench, seed, pattern, noted)
        self.check = self._beside_eager(self.check)

    def _by_graph(self, name: str, check: Check) -> Check:
        """Return the check of a variant of a wrong call: it is held against what the call was."""
        if any(code_of(why) in ("raises", "input-changed") for why, _ in check.remarks):
            return check
        outputs, after = self.run(name)
        values = outputs + [after[index] for index in self.mutated]
        checks = [compare(name, values, *one) for one in self.held]
        return next((one for one in checks if one.correct), self._beside_eager(checks[0]))

    def _beside_eager(self, check: Check) -> Check:
        """Return a check of something wrong with what eager has there, with the dtypes of the graph."""
        if check.correct or check.first_bad is None:
            return check
        eager = self.held[-1][0][check.first_bad_output or 0][check.first_bad].item()
        return CheckBesideEager(**vars(check), eager=eager)

    def run(self, name: str) -> tuple[list[Any], list[Any]]:
        """Run a variant, and note how its kernels draw random numbers."""
        with draws_noted(self.bench.namespace):
            return super().run(name)

    def judge(self, name: str) -> Check:
        """Check a variant, by several pristine runs where they give other values each time."""
        check = super().judge(name)
        if not self.check.correct:
            return self._by_graph(name, check)
        # Below `_check_together`, `call` has copies in it: it is not the pristine one.
        if name != "call" and check.mismatches and self._widened():
            check = super().judge(name)
            check.remarks = [*check.remarks, reason("call-varies", times=VARYING, runs=RUNS + 1)]
        if name != "call" and check.mismatches and not check.remarks:
            others = self._rounded_otherwise, self._rounded_as_eager, self._tied
            return next((found for other in others if (found := other(name)) is not None), check)
        return check

    def _rounded_otherwise(self, name: str) -> Check | None:
        """Return the check of a variant that is off as rounding in another order is; None where it is not.

        That is at most `REORDERED / PRISTINE` times beyond what `slack` lets through, and by root mean
        square, too, at most `REORDERED` times as far off as the pristine call: an edit that computes
        something slightly else does so in most elements, where rounding has few large errors.
        """
        times = REORDERED / PRISTINE
        slack = [Slack(one.absolute * times, one.tolerances * times) for one in self.slack]
        check, mean = self._with_slack(name, slack, self.pristine)
        if not check.correct or mean > REORDERED:
            return None
        check.remarks = [reason("rounded-otherwise", times=REORDERED, mean=mean)]
        return check

    def _rounded_as_eager(self, name: str) -> Check | None:
        """Return the check of a variant that is off as eager may be; None where it is not.

        Eager rounds the result of each operation to its dtype, and so does code that keeps in memory what
        the call fuses. Of sigmoid(a @ b) in bfloat16 a product of -5 is rounded by up to 2**-6, and the small
        result is off by up to 1.6 % for that alone; fused, it is rounded once, by up to 0.4 %.
        """
        draws = Draws()
        try:
            _, eager = _run(self.bench, self.inputs, self.seed, draws, [*self.mutated])
        except Exception:  # without eager there is no bound; the check of the call has the error
            return None
        if draws.others or draws.answered:  # other random numbers: it is off by more than rounding
            return None
        slack = [
            _wider(one, slack_of(value, right, PRISTINE))
            for one, value, right in zip(self.slack, eager, self.expected, strict=False)
        ]
        check, mean = self._with_slack(name, slack, eager)
        if not check.correct or mean > PRISTINE:
            return None
        check.remarks = [reason("rounded-as-eager", times=PRISTINE, mean=mean)]
        return check

    def _tied(self, name: str) -> Check | None:
        """Return the check of a variant whose integers differ where rounding decides them; None elsewhere.

        Which of two nearly equal values is the largest hangs on their last digits: of 5,714,296 outputs of a
        U-Net on an H100 one offset of a max pool was another one, with its reductions in another order. Such
        an element changes in the pristine call, too, if inputs are off in their last digits. Each element
        that differs has to be one of those, and all floats have to be right.
        """
        if not any(map(is_float, self.inputs)):
            return None
        outputs, after = self.run(name)
        values = outputs + [after[index] for index in self.mutated]
        integers = {
            index: value
            for index, (value, right) in enumerate(zip(values, self.expected, strict=False))
            if isinstance(value, torch.Tensor) and not is_float(value) and right is not ANYTHING
        }
        floats = [ANYTHING if index in integers else right for index, right in enumerate(self.expected)]
        check = compare(name, values, floats, self.slack, self.pristine)
        if not check.correct or any(value.shape != self.pristine[i].shape for i, value in integers.items()):
            return None
        differ = {index: value != self.pristine[index] for index, value in integers.items()}
        for seed in range(RUNS):
            for index, value in enumerate(self._with_inputs_off(seed)):
                if index in differ:
                    differ[index] &= value == self.pristine[index]
        if any(bool(one.any()) for one in differ.values()):
            return None
        count = sum(int((value != self.pristine[index]).sum()) for index, value in integers.items())
        check.elements += sum(value.numel() for value in integers.values())
        check.remarks = [reason("integers-tied", count=count, runs=RUNS)]
        return check

    def _with_inputs_off(self, seed: int) -> list[Any]:
        """Return what the pristine call gives where its inputs are off by some units in their last places."""
        inputs, generator = self.inputs, torch.Generator().manual_seed(seed)
        self.inputs = clone(inputs)
        floats = {value.untyped_storage().data_ptr(): value for value in filter(is_float, self.inputs)}
        try:
            for value in floats.values():  # all of a memory, once: inputs may share it, or overlap
                units = UNITS_OFF if value.element_size() > 2 else UNITS_OFF_OF_HALFS
                memory = value.new_empty(0).set_(value.untyped_storage())
                offs = (2 * torch.rand(memory.shape, generator=generator) - 1) * units
                memory *= 1 + (offs * torch.finfo(value.dtype).eps).to(memory.device, memory.dtype)
            outputs, after = self.run("call")
        finally:
            self.inputs = inputs
        return outputs + [after[index] for index in self.mutated]

    def _with_slack(self, name: str, slack: list[Slack], measure: list[Any]) -> tuple[Check, float]:
        """Return the check of a variant with other slack, and its root mean square, in times of `measure`."""
        outputs, after = self.run(name)
        values = outputs + [after[index] for index in self.mutated]
        check = compare(name, values, self.expected, slack, self.pristine)
        off = [
            # Of an output that `measure` gives exactly no slack is widened: its dtype's tolerance holds.
            _root_mean_square(value, right) / (_root_mean_square(plain, right) or inf)
            for value, plain, right in zip(values, measure, self.expected, strict=False)
            if is_float(value) and right is not ANYTHING and value.shape == right.shape
        ]
        return check, max(off, default=inf)

    def _widened(self) -> bool:
        """Tell whether the pristine call varies; if so, widen `slack` to the largest error of its runs."""
        if self.varies is None:
            results = [self.run("call") for _ in range(RUNS)]
            runs = [outputs + [after[index] for index in self.mutated] for outputs, after in results]
            self.varies = any(changed(self.pristine, values) for values in runs)
            for values in [self.pristine, *runs] if self.varies else []:
                self.slack = [
                    _wider(slack, slack_of(value, right, VARYING))
                    for slack, value, right in zip(self.slack, values, self.expected, strict=True)
                ]
        return self.varies


def _wider(slack: Slack, other: Slack) -> Slack:
    """Return the slack that lets through what either does."""
    return Slack(max(slack.absolute, other.absolute), max(slack.tolerances, other.tolerances))


def _root_mean_square(value: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the root mean square of the errors of a value, infinite and unknown ones left out."""
    error = differences(value, expected, Slack())[1]
    error = error[error.isfinite()]
    return error.square().mean().sqrt().item() if error.numel() else 0.0


def expect(
    bench: Bench, inputs: list[Any], seed: int, outputs: list[Any], after: list[Any]
) -> tuple[list[int], list[Any], Check, list[Held]]:
    """Return what a pristine call with these outputs, and inputs `after` it, is right by.

    That is the graph in float64, as it is, or without a dispatch mode: the first that the call agrees with.
    Where eager draws other random numbers than kernels, it is the pristine call itself. All that the call was
    held against comes last, and last in that what eager gives with the dtypes of the graph.
    """
    draws = Draws()
    mutated, plain = _run(bench, inputs, seed, draws)
    pristine = outputs + [after[index] for index in mutated]
    candidates = [
        candidate.within_range(pristine, plain)
        for candidate in _candidates(bench, inputs, seed, mutated, plain)
    ]
    checks = [compare("call", pristine, candidate.values, candidate.slack) for candidate in candidates]
    if not any(check.correct for check in checks) and not (draws.others or draws.answered):
        try:
            _, values = _run(bench, inputs, seed, None, mutated)
        except Exception as error:  # an operation that runs below a mode only
            candidates[0].remarks.append(reason("unwatched-fails", error=first_line(error)))
        else:
            # Operations of linalg that are made of others compute something else below a mode for complex
            # numbers: pinv does on torch 2.13.
            candidates.append(Candidate(values, [Slack()] * len(values), [reason("float64-unwatched")]))
            checks.append(compare("call", pristine, values, candidates[-1].slack))
    best = next((index for index, check in enumerate(checks) if check.correct), 0)
    check, remarks, expected = checks[best], candidates[best].remarks, candidates[best].values
    if draws.others and not check.correct:
        check, expected = Check("call"), pristine
        remarks = [reason("other-random-numbers", operators=", ".join(sorted(draws.others)))]
    if any(value is ANYTHING for value in expected):
        remarks = [*remarks, reason("outputs-not-written")]
    check.remarks = check.remarks or remarks
    return mutated, expected, check, [(one.values, one.slack) for one in candidates]


def _candidates(
    bench: Bench, inputs: list[Any], seed: int, mutated: list[int], plain: list[Any]
) -> list[Candidate]:
    """Return the graph in float64 and as it is, the better first.

    Where it is not known whether a cast is one of the user's or the end of an operation, see `Float64`, it
    rounds in those outputs that depend on it by more than rounding: `x - x.half().float()` is nothing but
    that, and after a product or a norm nothing of it is seen.
    """
    exact, mode = Candidate(plain, [Slack()] * len(plain), [reason("float64-differs")]), DrawsInFloat64()
    try:
        _, wide = _run(bench, inputs, seed, mode, mutated)
        if mode.doubtful:
            every, eps = DrawsInFloat64(), mode.doubtful
            every.all_casts = True
            _, rounded = _run(bench, inputs, seed, every, mutated)
            wide = [
                one if _hangs_on_casts(value, one, eps) else value
                for value, one in zip(wide, rounded, strict=True)
            ]
    except Exception as error:  # any operation may refuse float64 in its own way
        return [replace(exact, remarks=[reason("float64-fails", error=first_line(error))])]
    return [Candidate(wide, slack_in_float64(plain, wide, mode)), exact]


def _hangs_on_casts(wide: Any, rounded: Any, eps: float) -> bool:
    """Tell whether an output is another one, as a whole, where all casts of the graph round."""
    if wide is ANYTHING or not is_float(wide):
        return False
    both = in_double(wide).isfinite() & in_double(rounded).isfinite()
    off, size = (wide - rounded)[both].norm().item(), rounded[both].norm().item()
    return bool(off > CASTS_OFF * eps * size)


def _run(
    bench: Bench, inputs: list[Any], seed: int, mode: Draws | None, mutated: list[int] | None = None
) -> tuple[list[int], list[Any]]:
    """Run the graph; return which inputs it changes, unless that is known, and its outputs with those."""
    outputs, after = run_graph(bench, inputs, seed, mode)
    if mode is not None:
        outputs = [ANYTHING if mode.is_unwritten(value) else value for value in outputs]
    mutated = changed(inputs, after) if mutated is None else mutated
    return mutated, outputs + [after[index] for index in mutated]


def prepare(bench: Bench, seed: int, pattern: int) -> tuple[Round, Check]:
    """Run pristine code and reference on inputs of `seed`; return the round, and pristine's check."""
    prepared = RepeatedRound(bench, seed, pattern, expect)
    return prepared, prepared.check


def judge(name: str, rounds: Sequence[Round]) -> Check:
    """Check a variant in every round; return the first failure, or the last pass."""
    check = Check(name)
    for prepared in rounds:
        check = prepared.judge(name)
        if not check.correct:
            break
    return check


def check_all(
    bench: Bench,
    seed: int,
    watch: Watch = lambda name, check: None,
    excluded: Mapping[str, list[Reason]] | None = None,
) -> tuple[list[Round], Check, list[VariantCheck]]:
    """Check the pristine call and every variant on two sets of inputs; return the rounds and checks.

    Args:
        watch: called with a name and None before it is checked, and with its check when that is final.
        excluded: variants that are not run, as they ended a process or do not compile, and why.
    """
    watch("call", None)
    rounds = [prepare(bench, seed + number, pattern)[0] for number, pattern in enumerate(POISON)]
    pristine = next((prepared.check for prepared in rounds if not prepared.check.correct), rounds[-1].check)
    watch("call", pristine)
    checks, same, excluded = dict[str, VariantCheck](), unedited(bench), excluded or {}
    together = _check_together(bench, rounds, [name for name in same if name not in excluded], watch)
    for name in bench.variants():
        watch(name, None)
        if name in excluded:
            check = Check(name, correct=False, remarks=excluded[name])
        elif name in together:
            check = together[name]
        else:
            check = judged(bench, name, rounds, checks)
        checks[name] = VariantCheck(**vars(check), unedited=name in same)
        watch(name, checks[name])
    return rounds, pristine, list(checks.values())


def _check_together(bench: Bench, rounds: list[Round], names: list[str], watch: Watch) -> dict[str, Check]:
    """Check unedited kernel copies in one run of `call` with all of them; return their checks if it is right.

    A graph of a hundred kernels has a hundred copies `k_v2`, and a run for each takes longer than all else.
    They stand in for their originals at once: where what comes out is right, each of them is. Where it is
    not, each has a run of its own. A copy that has a wrapper of its number, other than `call_v2`, is left to
    that, and a single one is no group.
    """
    copies = {
        original_of(name): name
        for name in names
        if original_of(name) != "call"
        and (wrapper_of(name) == "call_v2" or wrapper_of(name) not in bench.namespace)
    }
    if len(copies) < 2:
        return {}
    watch(min(copies.values()), None)
    with replaced(bench.namespace, {name: bench.namespace[copy] for name, copy in copies.items()}):
        check = judge("call", rounds)
    return {name: replace(check, name=name) for name in copies.values()} if check.correct else {}


def judged(bench: Bench, name: str, rounds: Sequence[Round], checks: Mapping[str, VariantCheck]) -> Check:
    """Check a variant, a kernel's in `call` or in the wrapper of its number."""
    wrapper = checks.get(wrapper_of(name)) if original_of(name) != "call" else None

    def in_own_wrapper() -> bool:
        try:
            return bool(record(bench, wrapper_of(name), name, rounds[0].inputs))
        except Exception:  # the check of the wrapper says why
            return True

    if wrapper and wrapper.name != "call_v2" and in_own_wrapper():
        # Made for the buffers of its own wrapper: inside `call` it might write past the end of one.
        values = {**vars(wrapper), "name": name, "remarks": [reason("own-wrapper", wrapper=wrapper.name)]}
        return CheckBesideEager(**{key: value for key, value in values.items() if key != "unedited"})
    check = judge(name, rounds)
    if wrapper and wrapper.correct and not check.correct and in_own_wrapper():
        # It needs buffers that its own wrapper lays out differently, and is right as part of that.
        return Check(name, remarks=[reason("own-wrapper-needed", wrapper=wrapper.name)])
    return check


def unedited(bench: Bench) -> set[str]:
    """Return the variants whose text is that of their originals: `k_v2 = f('k_v2')` beside `k = f('k')`.

    An unedited `call_v2` launches the copies of its number: it counts as edited if one of those was edited.
    """
    lines, texts = linecache.getlines(bench.namespace.get("__file__", "")), dict[str, str]()
    for node in ast.parse("".join(lines)).body:
        name = str(getattr(node, "name", "") or getattr(getattr(node, "targets", [None])[0], "id", ""))
        texts[name] = "".join(lines[node.lineno - 1 : node.end_lineno])
    edited = set[str]()
    for name in texts:
        number = name[len(original_of(name)) :]
        pair = [re.sub(rf"{number}\b", "", texts.get(copy, "")) for copy in (name, original_of(name))]
        edited |= {name, f"call{number}"} if pair[0] != pair[1] else set()
    return {name for name in bench.variants() if name in texts and name not in edited}


def wrapper_of(name: str) -> str:
    """Return the wrapper of the same number: `call_v3` for the kernel `k_v3`."""
    return "call" + name[len(original_of(name)) :]


def plain_check(check: Check) -> dict[str, Any]:
    """Return a check for JSON, which has neither NaN nor infinity nor complex numbers: they become text."""

    def in_json(value: Any) -> bool:
        return not isinstance(value, complex | float) or (isinstance(value, float) and isfinite(value))

    record = {key: value if in_json(value) else str(value) for key, value in asdict(check).items()}
    return {**record, "remarks": [_remark(check.name, *why) for why in check.remarks]}


def _remark(name: str, sentence: str, numbers: dict[str, Any]) -> Remark:
    code = code_of(sentence)
    if code is None:  # of the core of another version
        return remark("no-reference", reason=sentence.format(**numbers))
    return remark(code, name if TYPES[code] == "variant" else "", **numbers)
