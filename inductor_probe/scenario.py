"""What a scenario script is made of: a function to compile, and a table of named cases.

A scenario runs by itself (`python scenarios/check_hflip.py --case sliced`) and under `probe dump`:

    def build(case: Case) -> Check:
        image = torch.rand(case["size"], device=case["device"])
        return Check(target, (image,), references={"float64": in_float64}, tolerance=1e-6)

    scenario = Scenario(build, defaults={"device": "cpu", "size": 224}, cases={"small": {"size": 32}})

    if __name__ == "__main__":
        scenario.main()

Torch is imported when a case runs, not before: `--list` and mistakes are answered at once.
"""

from __future__ import annotations

import argparse
import fnmatch
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from inductor_probe.errors import ExitCode, NotFoundError, ProbeError, near_names

if TYPE_CHECKING:
    import torch

Knob: TypeAlias = "bool | int | float | str"
Tensors: TypeAlias = "torch.Tensor | Sequence[torch.Tensor]"
SHOWN_OUTPUTS = 4
"""An optimizer step has hundreds; all are compared."""


@dataclass(frozen=True)
class Case:
    """A named setting of the scenario's knobs; `case["device"]` reads one."""

    name: str
    knobs: Mapping[str, Knob]

    def __getitem__(self, knob: str) -> Any:  # Any: its type is the scenario's to know
        return self.knobs[knob]

    def with_knob(self, knob: str, text: str, choices: Sequence[Knob] = ()) -> Case:
        """Return the case with `knob` set from `text`, read as the type that the knob has now.

        Raises NotFoundError: the case has no such knob, or it may not be set to that. ProbeError:
        `text` is not of the knob's type.
        """
        if knob not in self.knobs:
            raise NotFoundError(f"case {self.name} has no knob {knob!r}", near_names(knob, self.knobs))
        value = _parse(knob, text, type(self.knobs[knob]))
        if choices and value not in choices:
            raise NotFoundError(f"knob {knob} cannot be {text!r}", near_names(text, map(str, choices)))
        return replace(self, knobs={**self.knobs, knob: value})


@dataclass(frozen=True)
class Check:
    """What a case compiles, and what its result must equal.

    Attributes:
        function: the target, a plain Python function; run eagerly it is the first reference.
        inputs: its positional arguments.
        references: further functions of the same inputs, by the name they are shown under.
        tolerance: largest absolute difference allowed from any reference, in units of the output.
        options: keyword arguments of `torch.compile`. `dynamic` is False unless given here: left to itself,
            dynamo would compile one case for dynamic shapes because an earlier case had other sizes.
        step: how the function is called, where a plain call does not do: `step(function, *inputs)` returns
            what is compared. It is not compiled, and gets the compiled function and the eager one alike. A
            training step asks autograd for gradients; others return inputs that the function wrote into.
        variants: other functions of the same inputs that compute the same: each is compiled, and a column of
            its own in `probe perf`.
        before: inputs that the compiled function is called with first, in this order: with automatic dynamic
            shapes, what is compiled depends on the sizes that were seen before.
    """

    function: FunctionType
    inputs: tuple[Any, ...]
    references: Mapping[str, Callable[..., Tensors]] = field(default_factory=dict)
    tolerance: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)
    step: Callable[..., Tensors] | None = None
    variants: Mapping[str, FunctionType] = field(default_factory=dict)
    before: Sequence[tuple[Any, ...]] = ()


def combined(*axes: Mapping[str, Mapping[str, Knob]]) -> dict[str, dict[str, Knob]]:
    """Return a case for each combination of settings, one of each axis, under their names joined by `/`.

    `combined({"uint8": {"dtype": "uint8"}}, {"small": {"batch": 1}, "large": {"batch": 8}})` has the cases
    `uint8/small` and `uint8/large`.
    """
    return {
        "/".join(names): {
            knob: value for axis, name in zip(axes, names, strict=True) for knob, value in axis[name].items()
        }
        for names in product(*axes)
    }


@dataclass(frozen=True)
class Scenario:
    """A function with a table of cases.

    Attributes:
        build: makes a case's function, inputs and references; called after `torch.manual_seed(0)`.
        defaults: every knob with the value it has where a case does not say otherwise. The knob `device`,
            if there is one, decides whether the machine can run the case.
        cases: for each case what differs from the defaults.
        choices: allowed values of knobs that take only some.
        matrices: further cases by the name of their matrix, for `probe perf --matrix`: `quick` is what it
            takes if nothing is said, `full` has all others too. Only `cases` are compiled by `probe dump`.
    """

    build: Callable[[Case], Check]
    defaults: Mapping[str, Knob]
    cases: Mapping[str, Mapping[str, Knob]]
    choices: Mapping[str, Sequence[Knob]] = field(default_factory=dict)
    matrices: Mapping[str, Mapping[str, Mapping[str, Knob]]] = field(default_factory=dict)

    @property
    def every_case(self) -> dict[str, Mapping[str, Knob]]:
        """The cases and those of all matrices: what differs from the defaults, by name."""
        return {
            **self.cases,
            **{name: case for cases in self.matrices.values() for name, case in cases.items()},
        }

    def case(self, name: str) -> Case:
        """Return the case called `name`, of a matrix too; NotFoundError when there is none."""
        cases = self.every_case
        if name not in cases:
            raise NotFoundError(f"no case {name!r} in this scenario", near_names(name, cases))
        return Case(name, {**self.defaults, **cases[name]})

    def matrix(self, name: str) -> dict[str, Case]:
        """Return the cases of a matrix, or those of all whose names match a pattern: `*channels_last*`.

        `full` has every case. `quick` has `cases`, unless the scenario has a matrix of that name.

        Raises NotFoundError: there is no such matrix, and no name matches.
        """
        if name == "full":
            names = list(self.every_case)
        elif name in self.matrices:
            names = list(self.matrices[name])
        elif name == "quick":
            names = list(self.cases)
        else:
            names = fnmatch.filter(self.every_case, name)
        if not names:
            known = ["quick", "full", *self.matrices, *self.every_case]
            raise NotFoundError(
                f"no matrix {name!r} in this scenario, and no case matches it", near_names(name, known)
            )
        return {each: self.case(each) for each in names}

    def select(self, names: Sequence[str], settings: Sequence[str]) -> list[Case]:
        """Return the cases called `names` (all when empty) with the `knob=value` settings applied."""
        cases = [self.case(name) for name in dict.fromkeys(names or self.cases)]
        for setting in settings:
            knob, equals, text = setting.partition("=")
            if not equals:
                raise ProbeError(f"--set {setting!r} is not knob=value", "for example --set device=cuda")
            cases = [case.with_knob(knob, text, self.choices.get(knob, ())) for case in cases]
        return cases

    def main(self, argv: Sequence[str] | None = None) -> NoReturn:
        """Run the command line and exit: 0, 1 when a case's result is wrong, 2 on bad arguments."""
        begun = False
        try:
            options = _parser().parse_args(argv)
            cases = self.select(options.case, options.set)
            if options.list:
                print(_table(cases), flush=True)
                sys.exit(ExitCode.OK)
            missing = [missing_device(case) for case in cases]
            for case, why in zip(cases, missing, strict=True):
                if why and options.case:
                    raise ProbeError(f"case {case.name} cannot run: {why}", "leave --case out to skip it")
            begun = True
            sys.exit(self._run(cases, missing, threads=options.threads))
        except BrokenPipeError:
            # The reader (`head`) has what it wanted. Python flushes stdout once more at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(ExitCode.OK)
        except ProbeError as error:
            if _tell_refusal is not None and not begun:
                _tell_refusal(error.message, error.hint)
            else:
                hint = f"\nhint: {error.hint}" if error.hint else ""
                print(f"error: {error.message}{hint}", file=sys.stderr)
            sys.exit(error.exit_code)

    def _run(self, cases: Sequence[Case], missing: Sequence[str | None], *, threads: int | None) -> ExitCode:
        import torch

        if threads is not None:
            torch.set_num_threads(threads)
        width = max(len(case.name) for case in cases)
        status = ExitCode.OK
        for case, why in zip(cases, missing, strict=True):
            line, correct = (f"skipped: {why}", True) if why else run_case(self, case)
            print(f"{case.name:<{width}}  {line}", flush=True)
            status = status if correct else ExitCode.MISMATCH
        return status


_current: Case | None = None
_simulated: str | None = None
_tell_refusal: Callable[[str, str | None], None] | None = None


def tell_refusals(tell: Callable[[str, str | None], None]) -> None:
    """Call `tell` with message and hint where no case is begun, in place of printing: `probe dump` does."""
    global _tell_refusal  # noqa: PLW0603 - what runs this process
    _tell_refusal = tell


def simulate(gpu: str) -> None:
    """Compare no results on a GPU from now on: it is simulated, and what was compiled for it does not run."""
    global _simulated  # noqa: PLW0603 - what `probe dump --target` says about this process
    _simulated = gpu


def current_case() -> Case | None:
    """Return the case that is running now, if one is."""
    return _current


def run_case(scenario: Scenario, case: Case) -> tuple[str, bool]:
    """Compile and run `case`; return what came out in one line, and whether every reference agrees."""
    global _current  # noqa: PLW0603 - what a recorder in this process reads through current_case()
    import torch

    torch.manual_seed(0)
    _current = case
    try:
        check = scenario.build(case)
        function = with_own_code(check.function, case.name)
        compiled = torch.compile(function, **{"dynamic": False, **check.options})
        is_simulated = _simulated is not None and _on_gpu(case)
        # Eager goes first, on copies: a function may write into its inputs.
        references: dict[str, Callable[..., Tensors]] = {"eager": stepping(check, check.function)}
        references.update(check.references)
        if is_simulated:
            references.clear()
        expected = {name: tensors_in(call(*_copy(check.inputs))) for name, call in references.items()}
        for inputs in check.before:
            stepping(check, compiled)(*inputs)
        got = tensors_in(stepping(check, compiled)(*check.inputs))
    finally:
        _current = None
    errors = {name: max_error(got, tensors) for name, tensors in expected.items()}
    correct = all(error <= check.tolerance for error in errors.values())
    shapes = [
        f"{str(out.dtype).removeprefix('torch.')} {list(out.shape)} stride {list(out.stride())}"
        for out in got[:SHOWN_OUTPUTS]
    ]
    shapes += [f"{len(got) - SHOWN_OUTPUTS} more"] if len(got) > SHOWN_OUTPUTS else []
    if is_simulated:
        return f"{'; '.join(shapes)}  compiled for {_simulated}, not run on it", True
    shown = ", ".join(f"{name} {error:.3g}" for name, error in errors.items())
    return f"{'; '.join(shapes)}  max error: {shown}  {'ok' if correct else 'MISMATCH'}", correct


def _on_gpu(case: Case) -> bool:
    return str(case.knobs.get("device", "cpu")).startswith("cuda")


def stepping(check: Check, function: Callable[..., Tensors]) -> Callable[..., Tensors]:
    """Return what calls a function as the check does."""
    return partial(check.step, function) if check.step else function


def with_own_code(function: FunctionType, case: str) -> FunctionType:
    """Return `function` with a code object of its own.

    Dynamo keeps compiled code and counts recompiles by code object. One of its own makes a case compile as if
    it were alone in the process, and leaves the ids of compiles unique, which `torch._dynamo.reset()` does
    not. The unused constant makes the code objects differ also for tables that compare them by value.
    """
    code = function.__code__.replace(co_consts=(*function.__code__.co_consts, f"case {case}"))
    copy = FunctionType(code, function.__globals__, closure=function.__closure__)
    copy.__defaults__, copy.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
    return copy


def tensors_in(value: Tensors) -> list[torch.Tensor]:
    """Return the tensors that a function returned."""
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _copy(value: Any) -> Any:
    """Return `value` with its tensors cloned, those in lists and tuples too."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(_copy, value))
    return value.clone() if hasattr(value, "untyped_storage") else value


def max_error(got: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> float:
    """Return the largest absolute difference, in float64; NaN if any is, infinite when shapes differ."""
    if [out.shape for out in got] != [out.shape for out in expected]:
        return float("inf")
    pairs = [(a.double(), b.to(a.device).double()) for a, b in zip(got, expected, strict=True) if a.numel()]
    errors = [(a - b).abs().max().item() for a, b in pairs]
    return next(filter(math.isnan, errors), max(errors, default=0.0))


def missing_device(case: Case) -> str | None:
    """Return why this machine cannot run `case`, or None."""
    import torch

    device = str(case.knobs.get("device", "cpu"))
    try:
        kind = torch.device(device).type
    except RuntimeError:
        return f"torch has no device {device!r}"
    if kind == "cpu":
        return None
    backend = getattr(torch, kind, None)
    if backend is None or not hasattr(backend, "is_available"):
        return f"torch cannot say whether {kind} is there"
    return None if backend.is_available() else f"{kind} is not available"


def _parse(knob: str, text: str, kind: type) -> Knob:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    try:
        if kind is bool:
            return words[text.lower()]
        return text if kind is str else kind(text)
    except (KeyError, ValueError):
        example = "true or false" if kind is bool else f"a value of type {kind.__name__}"
        raise ProbeError(f"knob {knob} cannot be {text!r}", f"it takes {example}") from None


def _table(cases: Sequence[Case]) -> str:
    """Return names and knobs in aligned columns; knobs that no case changes are columns like the others."""
    knobs = list(dict.fromkeys(knob for case in cases for knob in case.knobs))
    rows = [["case", *knobs]]
    rows += [[case.name, *(str(case.knobs.get(knob, "")) for knob in knobs)] for case in cases]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ProbeError(message, f"{self.prog} --help lists its options")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(description="Compile the scenario's cases and check what comes out.")
    add = parser.add_argument
    add("--list", action="store_true", help="show the cases with their knobs, and stop")
    add(
        "--case", action="append", default=[], metavar="NAME", help="run this case (repeatable; default: all)"
    )
    add(
        "--set", action="append", default=[], metavar="KNOB=VALUE", help="change a knob of the cases that run"
    )
    add("--threads", type=int, metavar="N", help="threads that torch uses on the CPU")
    return parser
