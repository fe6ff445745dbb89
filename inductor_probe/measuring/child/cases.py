"""A case in the process that measures it: its script loaded, its columns compiled, and each checked."""

from __future__ import annotations

import ast
import inspect
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch.utils._pytree import tree_map

from inductor_probe.errors import ProbeError, near_names
from inductor_probe.harness.bench import replaced
from inductor_probe.harness.casts import float64
from inductor_probe.harness.checks import Check as Compared
from inductor_probe.harness.checks import Slack, compare
from inductor_probe.harness.inputs import Inputs, clone, tensors_of
from inductor_probe.harness.jobs import JobError
from inductor_probe.harness.measure import memory_format
from inductor_probe.harness.reference import first_line, slack_in_float64
from inductor_probe.harness.replays import Launch, Recorder
from inductor_probe.harness.user_file import import_file
from inductor_probe.measuring.child.observed import Counter, Observed, Ran, observing
from inductor_probe.scenario import Case, Check, Scenario, max_error, tensors_in, with_own_code

EAGER, COMPILED, CALL, KERNEL = "eager", "compiled", "call", "kernel"
OF_COMPILED = (CALL, KERNEL)  # parts of the compiled column, and the same code
GENERATED = re.compile(r"(cpp|triton)_\w+")  # how the names of generated kernels begin
SETTING = "@"  # in the name of a column: compiled@cpp.simdlen=256
BYTES = 256  # integers of plain functions are below it
Request = Mapping[str, Any]


def load(script: Path) -> dict[str, Any]:
    """Import a script; return its names.

    Raises:
        JobError: it raises something.
    """
    try:
        return vars(import_file(script))
    except Exception as error:  # whatever a script may raise
        raise JobError("usage", f"{first_line(error)}, as the script was loaded") from error


def scenario_of(request: Request) -> Scenario:
    """Return the scenario of a script, or one case made of a plain function.

    Raises:
        JobError: the script has neither.
    """
    script, names = Path(request["script"]), load(Path(request["script"]))
    if request.get("function"):
        return of_function(names, request)
    scenarios = {name: value for name, value in names.items() if isinstance(value, Scenario)}
    if not scenarios:
        functions = [
            name for name, value in names.items() if isinstance(value, FunctionType) and name[0] != "_"
        ]
        hint = f"; name a function of it: {script.name}:{functions[0]}" if functions else ""
        raise JobError("usage", f"there is no Scenario in this script{hint}")
    return scenarios.get("scenario") or next(iter(scenarios.values()))


def of_function(names: Mapping[str, Any], request: Request) -> Scenario:
    """Return a scenario whose only case calls a function with the arguments that were asked for.

    Raises:
        JobError: there is no such function.
    """
    name = request["function"]
    function = names.get(name)
    if not isinstance(function, FunctionType):
        known = near_names(name, [key for key, value in names.items() if isinstance(value, FunctionType)])
        raise JobError("usage", f"no function {name}; {known or 'there is none in it'}")

    arguments = _in_order(function, request["arguments"])

    def build(case: Case) -> Check:
        generator, inputs = Inputs(0), list[Any]()
        for argument in arguments:
            inputs.append(_argument(generator, argument, case["device"]))
        dynamic = {"true": True, "false": False, "automatic": None}[case["dynamic"]]
        return Check(function, tuple(inputs), options={"dynamic": dynamic})

    knobs = {argument["name"]: argument["text"] for argument in request["arguments"]}
    defaults = {"device": "cpu", "dynamic": "false", **knobs}
    return Scenario(build, defaults, {name: {}}, choices={"dynamic": ("false", "true", "automatic")})


def _in_order(function: FunctionType, arguments: Sequence[Request]) -> list[Request]:
    """Return arguments in the order of a function's parameters, with the defaults that stand between them.

    What takes any (`*args`) gets them as they were given.

    Raises:
        JobError: it has no such parameter, or needs another one.
    """
    parameters = inspect.signature(function).parameters
    if any(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in parameters.values()):
        return list(arguments)
    given = {argument["name"]: argument for argument in arguments}
    for name in given:
        if name not in parameters:
            raise JobError("usage", f"{function.__name__} takes no {name}; {near_names(name, parameters)}")
        if parameters[name].kind is inspect.Parameter.KEYWORD_ONLY:
            raise JobError(
                "usage", f"{function.__name__} takes {name} by keyword only; wrap it in a function"
            )
    for name, parameter in parameters.items():
        if name not in given and parameter.default is parameter.empty:
            raise JobError("usage", f"{function.__name__} needs {name}; add --arg {name}=VALUE")
    names = list(parameters)
    last = max(map(names.index, given), default=-1)
    return [
        given.get(name, {"name": name, "value": parameters[name].default, "text": ""})
        for name in names[: last + 1]
    ]


def _argument(generator: Inputs, argument: Request, device: str) -> Any:
    if "size" not in argument:
        return argument["value"]
    dtype = getattr(torch, argument["dtype"])
    how = {} if dtype.is_floating_point or dtype.is_complex else {"low": 0, "high": BYTES - 1}
    if dtype == torch.int8:
        how["high"] //= 2
    size, stride, offset = argument["size"], argument["stride"], argument["offset"]
    return generator.tensor(argument["name"], size, stride, dtype, device, offset=offset, **how)


@dataclass
class Column:
    """A way to run a case: `run` takes its inputs."""

    name: str
    run: Callable[..., Any]
    facts: dict[str, Any] = field(default_factory=dict)
    values: Any = None
    observed: Observed = field(default_factory=Observed)
    call_s: float = 0.0
    check: Compared | None = None
    bind: Callable[[Any], Callable[[], object]] | None = None

    @property
    def problem(self) -> str | None:
        """Why it is not compared."""
        problem: str | None = self.facts.get("problem")
        return problem

    def fail(self, problem: str, detail: str = "") -> None:
        """Note why it is not compared, unless something was wrong before."""
        if self.problem is None:
            self.facts |= {"problem": problem, "detail": detail}


class Built:
    """A case with its inputs, and what has to come out: the function as it is, references, and float64."""

    def __init__(self, request: Request, scenario: Scenario) -> None:
        case = scenario.case(request["case"])
        for knob, text in request["settings"].items():
            case = case.with_knob(knob, text, scenario.choices.get(knob, ()))
        torch.manual_seed(0)
        self.case, self.check = case, scenario.build(case)
        self.inputs = tuple(self.check.inputs)
        self.needs_grad = any(tensor.requires_grad for tensor in tensors_of(self.inputs))
        self.counter = Counter()

    def call(self, function: Callable[..., Any], *inputs: Any) -> Any:
        """Call a function as the case does."""
        return self.check.step(function, *inputs) if self.check.step else function(*inputs)

    def columns(self, names: list[str]) -> list[Column]:
        """Return the columns of these names; eager, compiled and all variants where none are named.

        Raises:
            JobError: there is no such column.
        """
        known = [EAGER, COMPILED, *OF_COMPILED, *self.check.variants]
        names = names or [EAGER, COMPILED, *self.check.variants]
        columns = []
        for name in names:
            base, *settings = name.split(SETTING)
            if base not in known or (settings and base in (EAGER, *OF_COMPILED)):
                raise JobError("usage", f"no column {name!r}; {near_names(base, known)}")
            function = self.check.variants.get(base, self.check.function)
            if base == EAGER:
                columns.append(Column(name, partial(self.call, function)))
            elif base in OF_COMPILED:
                columns.append(Column(name, _no_call))
            else:
                columns.append(Column(name, partial(self.call, self.compiled(function, name, settings))))
        return columns

    def compiled(self, function: FunctionType, name: str, settings: list[str]) -> Callable[..., Any]:
        """Return a function compiled, with a code object of its own: dynamo caches and counts by that.

        `settings` are of inductor: `cpp.simdlen=256`. Beside them a mode has to be spelled out.
        """
        options = {"dynamic": False, **self.check.options}
        if settings:
            chosen = dict(options.pop("options", None) or {})
            if mode := options.pop("mode", None):
                chosen = {**torch._inductor.list_mode_options(mode), **chosen}
            known = torch._inductor.config.get_config_copy()
            for setting in settings:
                key, equals, text = setting.partition("=")
                if not equals:
                    raise JobError("usage", f"column {name!r} has no value for {key}; write {key}=VALUE")
                if key not in known:
                    raise JobError("usage", f"inductor has no setting {key}; {near_names(key, known)}")
                chosen[key] = _literal(text)
            options["options"] = chosen
        try:
            return torch.compile(with_own_code(function, name), **options)  # type: ignore[no-any-return]
        except RuntimeError as error:  # it checks the types of values
            raise JobError("usage", f"column {name!r}: {first_line(error)}") from error

    def warm(self, columns: list[Column]) -> None:
        """Call each column until it compiles no more, one after the other, and note what it did, and ran.

        A column that fails, or runs eagerly, or runs what another one compiled, is not compared.
        """
        for column in columns:
            if column.name in OF_COMPILED:
                continue
            begin = time.perf_counter()
            self.counter.since()
            try:
                for inputs in self.check.before if column.name != EAGER else ():
                    column.run(*inputs)
                for _ in range(2):
                    column.run(*clone(self.inputs))
                with observing() as observed:
                    column.run(*clone(self.inputs))
            except Exception as error:  # whatever torch, a compiler or the function may raise
                column.fail("failed", first_line(error))
            else:
                column.observed = observed
            column.facts |= {
                "compile_s": time.perf_counter() - begin,
                **asdict(self.counter.since()),
                "codes": [one.record() for one in column.observed.ran],
            }
            others = {path for other in columns if other is not column for path in other.observed.paths}
            if column.name == EAGER or column.problem:
                continue
            if not (column.observed.ran or column.observed.replayed):
                column.fail("ran-eager")
            elif not column.facts["compiles"] and others.intersection(column.observed.paths):
                column.fail("shares-code")
        for column in columns:
            if column.name in OF_COMPILED:
                self._take_call(column, columns)

    def _take_call(self, column: Column, columns: list[Column]) -> None:
        """Let a column run the generated `call` of the compiled one, on what that was given."""
        compiled = next((other for other in columns if other.name == COMPILED), None)
        if compiled is None:
            compiled = Column(COMPILED, partial(self.call, self.compiled(self.check.function, COMPILED, [])))
            self.warm([compiled])
        ran: list[Ran] = compiled.observed.ran
        if compiled.problem or len(ran) != 1:
            column.fail(compiled.problem or "several-graphs", compiled.facts.get("detail", ""))
            return
        if column.name == KERNEL:
            launches = launches_of(ran[0])
            if not launches:
                column.fail("several-graphs", "it launches no generated kernel")
                return
            column.values = [launch.values() for _, launch in launches]
            column.bind = partial(bind_launches, launches, ran[0].namespace)
        else:
            call, column.values = ran[0].call, list(ran[0].args)
            column.run = lambda *values: call([*values])
        column.observed, column.facts["codes"] = compiled.observed, compiled.facts["codes"]

    def judge(self, columns: list[Column]) -> None:
        """Check what comes out of each column, and note which are wrong; `call` is the compiled one."""
        truth = Truth(self)
        for column in columns:
            if column.name in OF_COMPILED or column.problem:
                continue
            outputs = tensors_in(column.run(*clone(self.inputs)))
            column.check = truth.judge(column.name, outputs)
            column.facts["strides"] = other_strides(outputs, truth.plain)
            if not column.check.correct:
                sentence = column.check.sentence().removeprefix(f"{column.name}: WRONG")
                column.fail("wrong", sentence.lstrip(",; "))
        wrong = {column.name for column in columns if column.problem == "wrong"}
        for column in columns:
            if column.name in OF_COMPILED and COMPILED in wrong:
                column.fail("wrong", "the compiled function is wrong")

    def bound(self, column: Column) -> Callable[[Any], Callable[[], object]]:
        """Return what binds a column to copies of its inputs; those of a training step need gradients."""
        if column.bind is not None:
            return column.bind
        flags = [tensor.requires_grad for tensor in tensors_of(self.inputs)]

        def bind(values: Any) -> Callable[[], object]:
            if not self.needs_grad or column.name in OF_COMPILED:
                return partial(column.run, *values)
            for tensor, needed in zip(tensors_of(values), flags, strict=True):
                tensor.requires_grad_(needed)

            def run() -> object:
                with torch.enable_grad():
                    return column.run(*values)

            return run

        return bind

    def work(self, outputs: list[torch.Tensor]) -> dict[str, Any]:
        """Return bytes of inputs and outputs, operations that torch counts, and the dtype of those."""
        tensors = {_place(tensor): tensor for tensor in [*tensors_of(self.inputs), *outputs]}
        moved = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
        floats = [tensor for tensor in tensors_of(self.inputs) if tensor.is_floating_point()]
        largest = max(floats, key=torch.Tensor.numel, default=None)
        dtype = None if largest is None else str(largest.dtype).removeprefix("torch.")
        return {"moved": moved, "flops": self._flops(), "dtype": dtype}

    def _flops(self) -> int | None:
        from torch.utils.flop_counter import FlopCounterMode

        try:
            with FlopCounterMode(display=False) as counted:
                self.call(self.check.function, *clone(self.inputs))
            return int(counted.get_total_flops()) or None
        except Exception:  # a mode may refuse what the function does: there is no count then
            return None


class Truth:
    """What a case gives eagerly, in float64, and by the references of its scenario."""

    def __init__(self, built: Built) -> None:
        self.check = built.check
        self.plain = tensors_in(built.call(self.check.function, *clone(built.inputs)))
        self.references = {
            name: tensors_in(reference(*clone(built.inputs)))
            for name, reference in self.check.references.items()
        }
        self.wide: list[torch.Tensor] | None = None
        self.slack: list[Slack] = []
        if not self.references:
            mode = float64()
            try:
                with nullcontext() if built.needs_grad else torch.no_grad(), mode:
                    wide = tree_map(mode.widen, clone(built.inputs))
                    self.wide = tensors_in(built.call(self.check.function, *wide))
                self.slack = slack_in_float64(self.plain, self.wide, mode)
            except Exception:  # any operation may refuse float64: eager is the reference then
                self.wide = None

    def judge(self, name: str, outputs: list[torch.Tensor]) -> Compared:
        """Compare outputs: with a scenario's references within its tolerance, else with float64 or eager."""
        tolerance = self.check.tolerance
        exact = [Slack(tolerance, float("inf"))] * len(self.plain)
        if self.references:
            check = compare(name, outputs, self.plain, exact)
            errors = {"eager": max_error(outputs, self.plain)}
            errors |= {key: max_error(outputs, value) for key, value in self.references.items()}
            wrong = [key for key, error in errors.items() if not error <= tolerance]
            check.correct = not wrong
            finite = [error for error in errors.values() if error < float("inf")]
            check.max_error = max(finite, default=None)
            if wrong and not check.mismatches:
                text = (
                    "differs from {reference} by {error:.3g}",
                    {"reference": wrong[0], "error": errors[wrong[0]]},
                )
                check.remarks.append(text)
        else:
            plain = compare(name, outputs, self.plain, exact if tolerance else [Slack()] * len(self.plain))
            check = plain if self.wide is None else compare(name, outputs, self.wide, self.slack)
            check = plain if plain.correct and not check.correct else check
        forms = [(value.dtype, expected.dtype) for value, expected in zip(outputs, self.plain, strict=False)]
        for value, expected in forms:
            if value != expected:
                check.correct = False
                check.remarks.append(
                    ("is {value} instead of {expected}", {"value": value, "expected": expected})
                )
        return check


def other_strides(outputs: list[torch.Tensor], expected: list[torch.Tensor]) -> list[dict[str, Any]]:
    """Return the outputs whose strides differ from eager's, in dimensions of more than one element."""
    rows = []
    for number, (value, eager) in enumerate(zip(outputs, expected, strict=False)):
        if value.shape != eager.shape or not value.numel() or {value.layout, eager.layout} != {torch.strided}:
            continue
        if any(
            length > 1 and one != other
            for length, one, other in zip(value.shape, value.stride(), eager.stride(), strict=True)
        ):
            rows.append(
                {
                    "output": number,
                    "size": list(value.shape),
                    "stride": list(value.stride()),
                    "eager": list(eager.stride()),
                    "format": memory_format(value),
                    "eager_format": memory_format(eager),
                }
            )
    return rows


def launches_of(ran: Ran) -> list[tuple[str, Launch]]:
    """Run the generated `call` once; return its launches of generated kernels, those of a kernel together.

    None where one cannot be repeated: its raw pointers do not outlive the wrapper.
    """
    names = [
        name
        for name, value in ran.namespace.items()
        if GENERATED.fullmatch(name) and not isinstance(value, ModuleType | None)
    ]
    recorders = {name: Recorder(ran.namespace[name]) for name in names}
    with replaced(ran.namespace, recorders):
        ran.call(clone(ran.args))
    launches = [(name, launch) for name, recorder in recorders.items() for launch in recorder.launches]
    return launches if all(launch.replayable() for _, launch in launches) else []


def bind_launches(
    launches: list[tuple[str, Launch]], namespace: Mapping[str, Any], values: Any
) -> Callable[[], object]:
    """Return what makes all launches on copies of their arguments."""
    starts = [
        launch.starter(namespace[name])(value) for (name, launch), value in zip(launches, values, strict=True)
    ]
    if len(starts) == 1:
        return starts[0]

    def run() -> None:
        for start in starts:
            start()

    return run


def _no_call(*_: Any) -> Any:
    raise RuntimeError("no graph was compiled")


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _place(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)


def usage(error: ProbeError) -> JobError:
    """Return a mistake of the user's as a job reports it."""
    return JobError("usage", "; ".join(filter(None, (error.message, error.hint))))
