"""`probe.json`: what `probe dump` wrote down about a run."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.model.flip import Flip, FlipResult
from inductor_probe.model.gpu_target import GpuTarget

MANIFEST_NAME = "probe.json"
LOGS_DIR = "probe_logs"
"""Folder in a run with the compiler's own logs, one file an artifact: `fusion.log`."""
INPUTS_DIR = "probe_inputs"
"""Folder in a graph with the real inputs (`--save-inputs`): raw storage bytes, `arg0_1.bin`."""
CONSTANTS_DIR = "probe_constants"
"""Folder in a graph with its constants: raw bytes, `_frozen_param18.bin`."""
LARGEST_CONSTANT = 256 << 20
"""Bytes of a constant that is kept without `--save-inputs`."""
LARGEST_CONSTANTS = 1 << 30
"""Bytes of all constants of a graph that are kept without `--save-inputs`."""


class InputFact(Struct, frozen=True):
    """What a graph's input was when the graph first ran.

    Attributes:
        name: the placeholder (`arg0_1`).
        kind: `tensor`, or `symint` (then `value` is its number and the rest is None).
        size, stride: in elements. offset: of the first element in its storage, in elements.
        minimum, maximum: of integer and boolean tensors that are not empty, else None.
        saved: file in the graph's `probe_inputs` with the bytes of its storage, if it was kept.
        mean, deviation: of floats that are all finite, the mean and the standard deviation, else None.
    """

    name: str
    kind: Literal["tensor", "symint"]
    value: int | None = None
    size: tuple[int, ...] | None = None
    stride: tuple[int, ...] | None = None
    offset: int | None = None
    dtype: str | None = None
    device: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    saved: str | None = None
    mean: float | None = None
    deviation: float | None = None


ConstantKind: TypeAlias = Literal["plain", "packed", "opaque"]
"""A strided tensor; one that a library packed by a known call; any other tensor, such as one that was packed
by a call that is not known."""
NotKept: TypeAlias = Literal["too-large", "graph-too-large", "not-written", "not-strided", "unknown-packing"]
"""Larger than `LARGEST_CONSTANT`; beyond `LARGEST_CONSTANTS`; its file could not be written; a tensor that is
no plain memory; packed by an unknown call."""


class ConstantFact(Struct, frozen=True):
    """A constant of a graph: a tensor that is part of it, as frozen weights are.

    Attributes:
        name: in `output_code.py`; where that has none, in the FX graph.
        size, stride: in elements. Strides of a packed tensor mean nothing.
        layout: `torch.strided`, or `torch._mkldnn`.
        bytes: of the memory that its elements span.
        attributes: what the FX graph calls it.
        in_code: whether `output_code.py` has it. One of few elements is written into a kernel, and only the
            FX graph has it then. What a packed one was made from may be in neither.
        saved: file in the graph's `probe_constants` with its bytes from the first element to the last.
        sha256: of that file. not_kept: why there is none.
        operator: what packed it (`mkldnn._reorder_linear_weight`); `arguments` are Python texts: literals,
            and names of constants. result: the position among several results, None of an only one.
    """

    name: str
    kind: ConstantKind
    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    device: str
    layout: str
    bytes: int | None = None
    attributes: tuple[str, ...] = ()
    in_code: bool = False
    saved: str | None = None
    sha256: str | None = None
    not_kept: NotKept | None = None
    operator: str | None = None
    arguments: tuple[str, ...] = ()
    result: int | None = None


class BufferOrigin(Struct, frozen=True):
    """The FX nodes that a buffer was lowered from; `origin_node` is the one whose value it holds, if one."""

    buffer: str
    origin_node: str | None
    origins: tuple[str, ...]


class GraphRecord(Struct, frozen=True):
    """One compiled graph of the run.

    Attributes:
        name: the graph's folder (`model__0_inference_0.0`).
        compile_id: dynamo's id (`0/1`: first frame, second compile of it), None when not known.
        why: `first`, `recompile`, or `backward`; None when not known.
        guards: for a recompile, the guards that failed, in dynamo's words.
        case: the scenario's case that was running, if any.
        inputs: facts of the first call; empty when the graph never ran.
        origins: FX origins of its buffers.
        finished: its compile came to an end without an error, so that its files are whole.
        constants: the tensors that are part of it; None in dumps from before they were kept.
        allows_tf32: whether matrix products of float32 may be rounded for tensor cores as it was compiled
            (`torch.backends.cuda.matmul`); None where that was not recorded.
        became: functions, modules and operators that the FX graph has other operators for (`batch_norm`,
            `BatchNorm2d`, `aten.gelu`), each with the FX nodes that it became, before inductor's passes;
            those too that joint passes or freezing took out of the graph, which no file of it has.
        overridden: settings of the dump (`--set`) that had another value as it was compiled, with that: the
            script, or options of `torch.compile`, set them.
    """

    name: str
    compile_id: str | None
    why: Literal["first", "recompile", "backward"] | None
    guards: tuple[str, ...] = ()
    case: str | None = None
    inputs: tuple[InputFact, ...] = ()
    origins: tuple[BufferOrigin, ...] = ()
    finished: bool = True
    constants: tuple[ConstantFact, ...] | None = None
    allows_tf32: bool | None = None
    became: tuple[tuple[str, tuple[str, ...]], ...] = ()
    overridden: tuple[tuple[str, str], ...] = ()


class GraphBreak(Struct, frozen=True):
    """A place where dynamo ended a graph and went back to Python."""

    reason: str
    where: str | None
    compile_id: str | None = None


class LimitHit(Struct, frozen=True):
    """A function that hit the recompile limit: from then on it ran eagerly."""

    function: str
    where: str | None
    reason: str | None


FailureStage: TypeAlias = Literal[
    "dynamo", "backend", "aot-autograd", "decomposition", "inductor", "passes", "lowering", "scheduling",
    "code-generation", "cpp-compiler", "triton-compiler", "loading", "guards", "unknown",
]  # fmt: skip
"""Where in torch a compile failed, in the order of a compile: dynamo traced the function; a backend other
than inductor was called; AOTAutograd traced the graph for inductor, or decomposed an operator; inductor,
before it lowered the graph or in its passes over it; an FX node was lowered; nodes were scheduled and fused;
code was generated, compiled, loaded; guards were made."""


class CompileFailure(Struct, frozen=True):
    """A compile that ended in an exception, also where the script caught it, or torch went on without it.

    Attributes:
        stage: where in torch. exception, message: the type and text of what was raised first, the text
            without what torch adds to it; of a C++ compiler its first error.
        raised: the type of what torch made of it in the end (`InductorError`).
        compile_id: dynamo's id (`0/1`), None when not known.
        graph: its folder's name, where it had one by then.
        function: what dynamo compiled, for a failure of a forward whose frame is known.
        node: the FX node, scheduler node or kernel that it failed at. target: the operator of an FX node.
        where: the line of the user's that it is about (`/home/u/model.py:12`). line: its text.
        backward: it was the compile of a backward. suppressed: torch ran the function eagerly instead.
    """

    stage: FailureStage
    exception: str
    message: str
    raised: str
    compile_id: str | None = None
    graph: str | None = None
    function: str | None = None
    node: str | None = None
    target: str | None = None
    where: str | None = None
    line: str | None = None
    backward: bool = False
    suppressed: bool = False


NoteCode: TypeAlias = Literal[
    "hook-failed", "log-missing", "recorder-failed", "input-not-recorded", "graph-not-opened", "event-lost",
    "log-line-lost", "end-incomplete", "not-recorded", "graph-not-computed",
    "compile-refused",
]  # fmt: skip


class Note(Struct, frozen=True):
    """Something that `probe dump` could not record. The names of its `values` go with the code.

    - `hook-failed`: torch, module, error: a private part of torch is gone or has another form.
    - `log-missing`: torch, artifact. `recorder-failed`: recorder, error.
    - `input-not-recorded`: input, graph, type. `graph-not-opened`: graph, facts that came for it.
    - `event-lost`: none; a kill or a full disk cut it short. `log-line-lost`: artifact, line.
    - `graph-not-computed`: graph, reason; it returned zeros, where the GPU is simulated (`SimulatedGpu`).
    - `compile-refused`: device, capability, reason; torch compiles no such graph for the simulated GPU.
    - `end-incomplete`: error. `not-recorded`: text, of a manifest from before there were codes.
    """

    code: NoteCode
    values: tuple[tuple[str, str], ...] = ()


Substitute: TypeAlias = Literal[
    "device-guard", "device-hooks", "device-queries", "eager-operators", "triton-driver", "clock-rate",
    "kernels-not-compiled", "times-tied", "choices-tied", "fusions-tied", "results-in-eager",
    "attention-chosen",
]  # fmt: skip
"""What stands in for a part of torch, triton or the machine where a GPU is simulated."""


class SimulatedGpu(Struct, frozen=True):
    """The GPU that inductor generated code for, though the machine has none of that kind.

    Attributes:
        target: its name, as `--target` takes it. device: as its driver would call it. capability: `9.0`.
        substitutes: what stood in for something real:
            - `device-guard`, `device-hooks`: torch's C++ part was told of a device;
            - `device-queries`: `torch.cuda` answered for it; `clock-rate`: so did what asks `nvidia-smi`;
            - `eager-operators`: the CPU computed on its tensors; `results-in-eager`: and what compiled graphs
              return, from their FX graphs;
            - `attention-chosen`: a kernel for attention, by torch's rules;
            - `triton-driver`: triton was told the target; `kernels-not-compiled`: no Triton kernel was
              compiled or launched, and none of its configs chosen;
            - `times-tied`, `choices-tied`, `fusions-tied`: whatever torch timed to decide took the same time
              as the others.
        figures: all that was told of it; None in manifests from before they were kept.
    """

    target: str
    device: str
    capability: str
    substitutes: tuple[Substitute, ...]
    figures: GpuTarget | None = None


Outcome: TypeAlias = Literal["ok", "failed", "interrupted"]
ScriptForm: TypeAlias = Literal["script", "module", "command", "function", "recording"]
"""A file; a module (`python -m pytest`); a command line, of which each Python that it starts is followed."""
PARENT_GONE = "the end of probe dump"
"""Manifest.ended_by of a run whose `probe dump` ended without a word: SIGKILL as a rule."""


NotFollowed: TypeAlias = Literal["isolated", "environment", "python-path", "unknown"]
"""Why `sitecustomize` did not run: `python -I`, `-E` or `-S`; an environment without what `probe dump` sets,
or with another PYTHONPATH; something else, as a Python without inductor_probe."""


class DumpProcess(Struct, frozen=True):
    """A process of a dump that compiled something, was a rank, was the first one, or could not be followed.

    Attributes:
        pid, parent: process ids.
        rank, world_size: in the group of all processes, as `init_process_group` or else the launcher
            (`RANK`, `WORLD_SIZE`) says; None where neither does.
        command: its command line; that of its parent for one that was forked.
        run: name of its run's folder, a path for one outside of the dump's folder; None where it has no run.
        graphs: how many it compiled.
        outcome, exit_status, ended_by: as in `Manifest`. The status is None where nobody waited for it.
        not_followed: why it could not be followed, though it loaded torch; None where it was. Its run, if
            it has one, is what torch wrote by itself; without one nothing says whether it compiled.
    """

    pid: int
    parent: int
    rank: int | None
    world_size: int | None
    command: tuple[str, ...]
    run: str | None
    graphs: int
    outcome: Outcome
    exit_status: int | None
    ended_by: str | None
    not_followed: NotFollowed | None = None


class DumpRecord(Struct, frozen=True):
    """The dump that a run belongs to: one `probe dump` of a script that starts processes makes several runs.

    Attributes:
        id: the same in all of its runs, and in no others.
        pid: of the process that this run is of. script: of the script itself.
        processes: the first one is that of the run which stands for the dump: the script itself where it
            compiled something, else the lowest rank that did.
    """

    id: str
    pid: int
    script: int
    processes: tuple[DumpProcess, ...]

    @property
    def process(self) -> DumpProcess | None:
        """The process that the run is of."""
        return next((process for process in self.processes if process.pid == self.pid), None)

    def dismissed(self, process: DumpProcess) -> bool:
        """Return whether a script that came to a good end ended a process, as `Pool` and `DataLoader` do."""
        scripts = [one for one in self.processes if one.pid == self.script and one is not process]
        return process.ended_by == "SIGTERM" and any(script.outcome == "ok" for script in scripts)


class Manifest(Struct, frozen=True):
    """What was run, on what, and what dynamo did with it.

    Attributes:
        command: the child's command line. script: path as given. scenario: script's stem.
        cases: cases asked for (`--case`), empty for all or for scripts that have none.
        knobs: `--set` pairs. label: `--label`.
        versions: of `inductor_probe`, `torch`, `triton`, `python`, `cxx` (compiler), where they are there.
        machine: `host`, `system`, `cpu`, `cores`, `memory_gib`, `gpu`, `threads`.
        started: ISO 8601 with zone. duration_s: of the child, in seconds.
        outcome, exit_status: how the child ended; a negative status is a signal. While the script runs the
            manifest says what it will have to say if nobody is left to end it: interrupted, status None.
        ended_by: the signal that ended or interrupted the script (`SIGTERM`), or `PARENT_GONE`; None when it
            ended by itself, and when not known.
        compiled_frames: frames that dynamo handed to a backend; 0 explains an empty dump.
        notes: what could not be recorded.
        environment: variables that torch, triton, OpenMP and compilers read, as `probe dump` was started
            with them; None in manifests from before they were kept.
        settings: of torch that the dump was made with (`--set inductor.cpp.simdlen=256`).
        gpu: the GPU that was simulated (`--target`); None where the machine's own was used, or none.
        variables: of the environment that the script alone was given (`--env OMP_NUM_THREADS=1`).
        compile_s: seconds that torch spent compiling in all, from dynamo to loaded kernels, with empty caches
            and with what records decisions; None where it was not told.
        flips: decisions that were to be turned by name. flip_results: what became of each in each graph.
        form: of `script`, which is the name of a module, or the program of a command, in other forms.
        dump: which process of which dump this run is of; None in manifests from before that was recorded.
        baseline: folder of the run that `probe whatif` made this one to be compared with, so that names
            without a run do not mean it; None of all other runs.
        failures: compiles that failed; None where that was not recorded. Torch's own log may have them then.
    """

    command: tuple[str, ...]
    script: str
    scenario: str
    cases: tuple[str, ...]
    knobs: tuple[tuple[str, str], ...]
    label: str | None
    versions: tuple[tuple[str, str], ...]
    machine: tuple[tuple[str, str], ...]
    started: str
    duration_s: float
    outcome: Outcome
    exit_status: int | None
    compiled_frames: int | None
    graphs: tuple[GraphRecord, ...]
    graph_breaks: tuple[GraphBreak, ...] = ()
    limit_hits: tuple[LimitHit, ...] = ()
    notes: tuple[Note, ...] = ()
    ended_by: str | None = None
    environment: tuple[tuple[str, str], ...] | None = None
    settings: tuple[tuple[str, str], ...] = ()
    gpu: SimulatedGpu | None = None
    variables: tuple[tuple[str, str], ...] = ()
    compile_s: float | None = None
    flips: tuple[Flip, ...] = ()
    flip_results: tuple[FlipResult, ...] = ()
    dump: DumpRecord | None = None
    form: ScriptForm = "script"
    baseline: str | None = None
    failures: tuple[CompileFailure, ...] | None = None

    @property
    def ending(self) -> tuple[tuple[str, int | str], ...]:
        """How the script ended, as numbers of a remark: `outcome`, `exit_status` and `signal` where known.

        `form` is there where it was no script.
        """
        status, signal = self.exit_status, self.ended_by
        numbers: list[tuple[str, int | str]] = [("outcome", self.outcome)]
        if status is not None:
            numbers.append(("exit_status", status))
        if signal is not None:
            numbers.append(("signal", signal))
        elif status is not None and status < 0:  # written before there was `ended_by`
            numbers.append(("signal", -status))
        if self.form != "script":
            numbers.append(("form", self.form))
        return tuple(numbers)

    def of_script(self) -> Manifest:
        """Return it with how the script ended, where this run is of a process that it started."""
        processes = self.dump.processes if self.dump else ()
        script = next((one for one in processes if self.dump and one.pid == self.dump.script), None)
        if script is None:
            return self
        ending = (script.outcome, script.exit_status, script.ended_by)
        return replace(self, outcome=ending[0], exit_status=ending[1], ended_by=ending[2])

    def graph(self, name: str) -> GraphRecord | None:
        """Return the record of the graph called `name`."""
        return next((graph for graph in self.graphs if graph.name == name), None)
