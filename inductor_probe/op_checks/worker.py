"""A process that runs samples of operators, eager and compiled, and compares: see `running`.

`run_cases` is a job of `harness/server.py`. Its request has `device`, and `decomposition`, which is null or
has `place` and `operators`; each line that follows is a case, with the fields of `OpCase`, `skip` (samples
from which to begin), `most` and `end` (of samples; seconds of `time.monotonic`). Events: `ready`; `begun`
before each sample, so that who reads knows which one killed this process, and `right`, `wrong` or `refused`
behind it; `done` behind the last. With `"ends": true` in that of a sample the job ends: its GPU has met an
error, and does nothing more for it. As a program, `worker.py DEVICE`, it prints the operators there are.

What is right: a float64 run of the operator says, as for bench files (`harness.checks`): a compiled result
may be as far from it as the dtype's tolerance, or twice as far as eager is. Integers must be equal.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from inductor_probe.errors import ProbeError
from inductor_probe.harness.checks import Slack, differences, is_float, slack_of
from inductor_probe.harness.gpu_clock import device_error
from inductor_probe.harness.inputs import clone
from inductor_probe.harness.jobs import refuse_bad_fork
from inductor_probe.harness.judge import PRISTINE
from inductor_probe.op_checks.decompositions import Decomposition, load, meant_by
from inductor_probe.op_checks.graphs import overloads_named
from inductor_probe.op_checks.samples import DTYPES, Sample, kinds_of, operators, samples
from inductor_probe.op_checks.script import program

_OPERATORS = operators()  # it takes seconds: the process that forks does it once for all
_MESSAGE = 300
_FIRST_LINES = 3


class _WrongError(Exception):
    """What came out is not what eager gives. `kind`, `code`, `numbers` as in `model.op_check.OpFailure`."""

    def __init__(self, kind: str, code: str, **numbers: Any) -> None:
        super().__init__(code)
        self.kind, self.code, self.numbers = kind, code, numbers


class Worker:
    """Runs cases on a device."""

    def __init__(self, device: str, decomposition: Decomposition | None, place: str) -> None:
        self._device, self._decomposition, self._place = device, decomposition, place
        self._installed = False

    def run(self, case: dict[str, Any], tell: Callable[..., None]) -> bool:
        """Run the samples of a case, and say what came of each; return whether another one can be run."""
        operator = _OPERATORS[case["operator"]]
        if case["way"] == "decomposition" and self._decomposition and not self._installed:
            self._decomposition.install()
            self._installed = True
        grad = case["mode"].startswith("backward")
        several = samples(operator, case["dtype"], case["form"], grad=grad, device=self._device)
        number = -1
        for number, sample in enumerate(several):
            if number < case["skip"]:
                continue
            if number >= case["most"] or time.monotonic() > case["end"]:
                break
            tell(
                "begun",
                sample=number,
                elements=sample.elements,
                text=sample.shown(),
                kinds=kinds_of(sample),
            )
            event, facts = self._one(operator, sample, case, grad=grad)
            tell(event, **facts)
            if facts.get("ends"):
                return False
        else:
            number += 1
        left = max(0, case["most"] - number) if time.monotonic() > case["end"] else 0
        tell("done", left=left, calls=self._decomposition.calls if self._decomposition else 0)
        return True

    def _one(
        self, operator: Any, sample: Sample, case: dict[str, Any], *, grad: bool
    ) -> tuple[str, dict[str, Any]]:
        """Run a sample both ways; return what came of it, an event with its values."""
        eager = _Run(operator.op, sample, grad=grad)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                right = eager()
                again = eager()
            random = not _equal(right, again)
        except Exception as error:  # an operator may refuse a sample in any way
            return "refused", {"message": _first_line(error), "ends": bool(device_error())}
        # A GPU that has met an error gives nothing back any more, the elements of the sample neither.
        ahead = self._program(operator, sample, case, "raises") if self._device == "cuda" else ""
        calls = self._decomposition.calls if self._decomposition else 0
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        try:
            compiled = torch.compile(_plain(operator.op), dynamic=case["mode"].endswith("dynamic"))
            try:
                result = _Run(compiled, sample, grad=grad)()
                if torch.cuda.is_initialized():
                    torch.cuda.synchronize()
            except Exception as error:
                raise _WrongError(
                    "raises", "raises", error=type(error).__name__, text=_first_line(error)
                ) from error
            counters = torch._dynamo.utils.counters
            facts = {
                "breaks": len(counters["graph_break"]),
                "compiled": counters["stats"]["unique_graphs"] > 0 and counters["aot_autograd"]["total"] > 0,
            }
            if case["way"] == "decomposition" and self._decomposition and self._decomposition.calls == calls:
                # Something was dispatched before it, or another overload.
                raise _WrongError("decomposition-not-called", "not-called")
            _compare(right, result, _exact(operator.op, sample, right, grad=grad), random=random)
        except _WrongError as wrong:
            ends = bool(device_error())
            text = ahead if ends else self._program(operator, sample, case, wrong.kind)
            failed = {"kind": wrong.kind, "code": wrong.code, "numbers": wrong.numbers, "script": text}
            return "wrong", {**failed, "ends": ends}
        return "right", {"random": random, **facts}

    def _program(self, operator: Any, sample: Sample, case: dict[str, Any], kind: str) -> str:
        return program(operator, sample, case, kind, device=self._device, place=self._place, names=self.names)

    @property
    def names(self) -> list[str]:
        """The overloads that the decomposition stands for."""
        return [str(overload) for overload in self._decomposition.overloads] if self._decomposition else []


class _Run:
    """Calls a function with copies of a sample; with a backward pass, if one is asked for."""

    def __init__(self, function: Callable[..., Any], sample: Sample, *, grad: bool) -> None:
        self._function, self._sample, self._grad = function, sample, grad

    def __call__(self) -> tuple[list[Any], list[torch.Tensor | None]]:
        """Return the leaves of the result, and the gradients of the tensors that need one."""
        args, kwargs = clone((self._sample.args, self._sample.kwargs))
        sample = Sample(args, kwargs)
        torch.manual_seed(0)
        with torch.set_grad_enabled(self._grad):
            result = torch.utils._pytree.tree_leaves(self._function(*sample.args, **sample.kwargs))
        if not self._grad:
            return result, []
        leaves = [leaf for leaf in result if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        if leaves:
            torch.autograd.backward(leaves, [_cotangent(leaf) for leaf in leaves])
        inputs = [tensor for tensor in sample.tensors() if tensor.requires_grad]
        plain = [leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in result]
        return plain, [tensor.grad for tensor in inputs]


def _cotangent(leaf: torch.Tensor) -> torch.Tensor:
    """Return a gradient that differs from element to element: all ones would hide a permutation."""
    ramp = torch.linspace(-1, 1, max(leaf.numel(), 1), dtype=torch.float64, device=leaf.device)
    return ramp[: leaf.numel()].reshape(leaf.shape).to(leaf.dtype)


def _plain(operator: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of Python, which dynamo traces; it does not look into builtins at the top."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return operator(*args, **kwargs)

    return function


def _exact(
    operator: Callable[..., Any], sample: Sample, right: tuple[list[Any], list[Any]], *, grad: bool
) -> tuple[list[Any], list[Any]]:
    """Return the same in float64; what eager gives where that is not to be had.

    Inputs are widened, and not what an operator makes inside (`harness.reference.Float64` does that): the
    program that shows a failure alone judges the same way, and has nothing of this package.
    """

    def widened(tensor: torch.Tensor) -> torch.Tensor:
        if not is_float(tensor):
            return tensor
        wide = torch.complex128 if tensor.is_complex() else torch.float64
        return tensor.detach().to(wide).requires_grad_(tensor.requires_grad)

    if not any(is_float(tensor) for tensor in sample.tensors()):
        return right
    try:
        exact = _Run(operator, sample.mapped(widened), grad=grad)()
    except Exception:  # it may know no float64: then eager is what there is to compare with
        return right
    same = all(
        getattr(one, "shape", None) == getattr(other, "shape", None)
        for one, other in zip([*exact[0], *exact[1]], [*right[0], *right[1]], strict=False)
    )
    return exact if same and tuple(map(len, exact)) == tuple(map(len, right)) else right


def _compare(
    right: tuple[list[Any], list[Any]],
    result: tuple[list[Any], list[Any]],
    exact: tuple[list[Any], list[Any]],
    *,
    random: bool,
) -> None:
    """Compare results and gradients.

    Raises:
        _WrongError: the first thing that differs.
    """
    if len(right[0]) != len(result[0]):
        raise _WrongError("form", "outputs", compiled=len(result[0]), eager=len(right[0]))
    for number, (eager, compiled, wide) in enumerate(zip(right[0], result[0], exact[0], strict=True)):
        if not isinstance(eager, torch.Tensor):
            if not isinstance(compiled, type(eager)) or (compiled != eager and not random):
                numbers = {"compiled": _text(compiled), "eager": _text(eager)}
                raise _WrongError("values", "value", number=number, **numbers)
            continue
        _compare_forms("output", number, eager, compiled)
        if not random:
            _compare_values("output", number, eager, compiled, wide)
    for number, (eager, compiled, wide) in enumerate(zip(right[1], result[1], exact[1], strict=True)):
        if (eager is None) != (compiled is None):
            # A gradient that is None is one of zeros: compiled gives the one where eager gives the other.
            some = compiled if eager is None else eager
            if some is not None and some.count_nonzero():
                code = "no-gradient" if compiled is None else "gradient-for-none"
                raise _WrongError("gradients", code, number=number)
        elif eager is not None:
            _compare_forms("gradient", number, eager, compiled)
            if not random:
                _compare_values("gradient", number, eager, compiled, wide)


def _compare_forms(what: str, number: int, eager: torch.Tensor, compiled: Any) -> None:
    """Compare dtypes and sizes, and of an output the strides: users see those; a gradient may have others."""
    name = {"what": what, "number": number}
    if not isinstance(compiled, torch.Tensor):
        raise _WrongError("form", "type", **name, compiled=type(compiled).__name__)
    if compiled.dtype != eager.dtype:
        dtypes = (str(tensor.dtype).removeprefix("torch.") for tensor in (compiled, eager))
        raise _WrongError("form", "dtype", **name, **dict(zip(("compiled", "eager"), dtypes, strict=True)))
    if compiled.shape != eager.shape:
        raise _WrongError("form", "size", **name, compiled=_texts(compiled.shape), eager=_texts(eager.shape))
    if what == "output" and eager.layout == torch.strided and eager.numel():
        dims = [dim for dim in range(eager.dim()) if eager.shape[dim] > 1]
        if any(eager.stride(dim) != compiled.stride(dim) for dim in dims):
            strides = {"compiled": _texts(compiled.stride()), "eager": _texts(eager.stride())}
            raise _WrongError("strides", "stride", **name, size=_texts(eager.shape), **strides)


def _compare_values(what: str, number: int, eager: torch.Tensor, compiled: torch.Tensor, wide: Any) -> None:
    if not eager.numel() or eager.layout != torch.strided or eager.is_quantized:
        return
    exact = wide if is_float(eager) else eager
    slack = slack_of(eager, exact, PRISTINE) if is_float(eager) else Slack()
    bad, error = differences(compiled, exact, slack)
    if not bad.any():
        return
    place = tuple(bad.nonzero()[0].tolist())
    raise _WrongError(
        "values" if what == "output" else "gradients",
        "elements",
        what=what,
        number=number,
        place=_texts(place),
        compiled=_text(compiled[place].item()),
        eager=_text(eager[place].item()),
        float64=_text(wide[place].item()) if is_float(eager) and wide is not eager else "",
        wrong=int(bad.sum()),
        elements=bad.numel(),
        error=f"{error[bad].max().item():.3g}",
    )


def _text(value: Any) -> str:
    """Return a value as Python writes it; JSON has neither `nan` nor complex numbers."""
    return repr(value)[:_MESSAGE]


def _texts(values: Sequence[int]) -> list[str]:
    return [str(value) for value in values]


def _equal(one: tuple[list[Any], list[Any]], other: tuple[list[Any], list[Any]]) -> bool:
    """Tell whether two runs gave the same; a NaN is the same as a NaN."""

    def same(first: Any, second: Any) -> bool:
        if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
            if first.layout != torch.strided or first.is_quantized or not is_float(first):
                return first.layout != torch.strided or bool(torch.equal(first, second))
            return bool(torch.allclose(first, second, rtol=0, atol=0, equal_nan=True))
        return bool(first == second)

    pairs = [*zip(one[0], other[0], strict=False), *zip(one[1], other[1], strict=False)]
    return all(same(first, second) for first, second in pairs)


def _first_line(error: BaseException) -> str:
    """Return what an error says, without the pages that torch adds to it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:_FIRST_LINES])[:_MESSAGE]


def _decomposition(request: dict[str, Any], cases: dict[str, Any], device: str) -> Decomposition:
    """Return the decomposition that is asked for.

    Raises:
        ProbeError: there is no such function or operator, or it is not known for which operator it is.
    """
    function = load(request["place"])
    if request["operators"]:
        return Decomposition(
            function, [one for name in request["operators"] for one in overloads_named(name)]
        )
    operator = _OPERATORS[cases["operator"]]
    for sample in samples(operator, cases["dtype"], "given", grad=False, device=device):
        call = functools.partial(operator.op, *sample.args, **sample.kwargs)
        return Decomposition(function, meant_by(function, call))
    raise ProbeError(f"there is no sample of {cases['operator']} in {cases['dtype']}")


def listed(device: str) -> list[dict[str, Any]]:
    """Return the operators: their names, and of which dtypes there are samples, with gradients or without."""
    return [
        {
            "name": name,
            "aten": operator.aten_name or "",
            "full": f"{operator.name} {operator.variant_test_name or ''}".strip(),
            "dtypes": [
                dtype for dtype in DTYPES if getattr(torch, dtype) in operator.supported_dtypes(device)
            ],
            "gradients": [
                dtype
                for dtype in DTYPES
                if operator.supports_autograd
                and getattr(torch, dtype) in operator.supported_backward_dtypes(device)
            ],
        }
        for name, operator in _OPERATORS.items()
    ]


def run_cases(file: dict[str, Any], request: dict[str, Any], tell: Callable[..., None]) -> None:
    """Run cases that come in lines on standard input, until there are no more: a job of the server."""
    torch.set_num_threads(1)
    asked, device = request["decomposition"], request["device"]
    if device == "cuda":
        refuse_bad_fork()
    try:
        decomposition = _decomposition(asked, request["first"], device) if asked else None
    except ProbeError as error:
        tell("refused-decomposition", error=error.message, hint=error.hint)
        return
    worker = Worker(device, decomposition, asked["place"] if asked else "")
    tell("ready", operators=worker.names)
    for line in iter(sys.stdin.buffer.readline, b""):
        if not worker.run(json.loads(line), tell):
            return


def main() -> None:
    """Print the operators of the database, for a device: `worker.py DEVICE`."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # torch prints where it likes
    available = sys.argv[1] != "cuda" or torch.cuda.is_available()
    answer = {"operators": listed(sys.argv[1]), "torch": str(torch.__version__), "available": available}
    answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
