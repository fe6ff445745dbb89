"""A compile that failed, from its exception: the stage of the compile, the exception, and its node.

Torch wraps exceptions in others as they pass its layers, and puts into the text of each what the next one
does not have: `LoweringException: RuntimeError: text` with the operator and the user's line
(torch/_inductor/exc.py), `While executing %silu : ...` with it (torch/fx/interpreter.py), and so on. The
stage is that of the innermost frame of the traceback that is known to be of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from inductor_probe.model.manifest import CompileFailure, FailureStage

SOFT = ("Unsupported", "UserError", "SkipFrame")
"""What dynamo raises where it cannot trace something: it breaks the graph, unless a full one is asked for."""
_WRAPPERS = ("LoweringException", "InductorError", "BackendCompilerFailed", "InternalTorchDynamoError")
_LONGEST_TEXT = 1 << 16
_LONGEST_MESSAGE = 500


class Frame(NamedTuple):
    """A frame of a traceback: the path of its file, and the name of its function."""

    file: str
    function: str


class _Place(NamedTuple):
    """Frames of a stage: how the path of a file of torch begins; only those of `functions`, if it has any."""

    file: str
    stage: FailureStage
    functions: tuple[str, ...] = ()


_PLACES = (
    _Place("torch/_dynamo/guards.py", "guards"),
    _Place("torch/_dynamo/output_graph.py", "backend", ("call_user_compiler", "_call_user_compiler")),
    _Place("torch/_dynamo/convert_frame.py", "dynamo"),
    _Place("torch/_dynamo/symbolic_convert.py", "dynamo"),
    _Place("torch/_dynamo/variables/", "dynamo"),
    _Place("torch/_dynamo/output_graph.py", "dynamo"),
    _Place("torch/_functorch/", "aot-autograd"),
    _Place("torch/fx/experimental/proxy_tensor.py", "decomposition", ("maybe_handle_decomp",)),
    _Place("torch/_inductor/compile_fx.py", "passes", (
        "_recursive_pre_grad_passes", "_recursive_joint_graph_passes", "_recursive_post_grad_passes",
        "run_pre_grad_passes",
    )),
    _Place("torch/_inductor/compile_fx.py", "inductor"),
    _Place("torch/_inductor/fx_passes/", "passes"),
    _Place("torch/_inductor/graph.py", "lowering", (
        "run", "run_node", "call_function", "placeholder", "output",
    )),
    _Place("torch/_inductor/graph.py", "scheduling", ("_update_scheduler",)),
    _Place("torch/_inductor/graph.py", "code-generation", ("codegen", "codegen_with_cpp_wrapper")),
    _Place("torch/_inductor/graph.py", "loading", (
        "compile_to_module", "_compile_to_module", "_compile_to_module_lines",
    )),
    _Place("torch/_inductor/scheduler.py", "scheduling", ("__init__", "_init")),
    _Place("torch/_inductor/scheduler.py", "code-generation", ("codegen", "_codegen", "_codegen_partitions")),
    _Place("torch/_inductor/cpp_builder.py", "cpp-compiler"),
    _Place("torch/_inductor/runtime/triton_heuristics.py", "triton-compiler"),
    _Place("triton/compiler/", "triton-compiler"),
)  # fmt: skip
"""What is looked for in tracebacks. None of it is wrapped: `capture/torch_places.py` has what is."""

_OF_TORCH = re.compile(r"(?:^|/)((?:torch|triton)/(?:_\w+|fx|compiler)/[\w/.]+)$")
_FRAME = re.compile(r'^\s*File "([^"\n]+)", line (\d+), in (\S+)[^\n]*(?:\n([^\n]*))?', re.MULTILINE)
_BACKEND = re.compile(r"backend=\S+ raised:\n")
_TYPE = re.compile(r"([A-Za-z_]\w*): ")
# torch/_inductor/compile_worker/subproc_pool.py, SubprocException
_JOB = re.compile(r"An exception occurred in a subprocess:\s+Name=(?P<name>\S+)\n(?P<trace>.*)", re.DOTALL)
_LAST = re.compile(r"^(?:[A-Za-z_]\w*\.)*(?P<type>[A-Z]\w*): (?P<text>)", re.MULTILINE)
_CARET = re.compile(r"^\s*\^\n", re.MULTILINE)
_TARGET = re.compile(r"^  target: (\S+)$", re.MULTILINE)
_EXECUTING = re.compile(r"^While executing %(\w+) :", re.MULTILINE)
_COMPILER_ERROR = re.compile(r"^(?:[^\n:]+:\d+:\d+: )?(?:fatal )?error: ([^\n]*)", re.MULTILINE)
_EXPLAINED = re.compile(r"^(?P<what>\S.*)\n\s+Explanation: (?P<why>.*)$", re.MULTILINE)
_USER_STACK = ("\nFound from : ", "\nOriginal traceback:", "\nUser stack:", "\nfrom user code:")
_MORE = re.compile(r' For more information, run with TORCH_LOGS="[^"]*"\.')
_ADDED = ("\n  target: ", "\nWhile executing ", *_USER_STACK, "\nSet TORCHDYNAMO_VERBOSE=")


def failure_of(
    raised: str,
    text: str,
    frames: Sequence[Frame],
    *,
    stack: str = "",
    compile_id: str | None = None,
    graph: str | None = None,
    function: str | None = None,
    node: str | None = None,
    where: str | None = None,
    backward: bool = False,
    suppressed: bool = False,
) -> CompileFailure:
    """Return the record of a compile that ended in an exception.

    Args:
        raised, text: type and text of the exception that torch raised in the end.
        frames: of its traceback, from the outermost to the innermost.
        stack: where the FX node stands in the user's code, as a text with frames.
        node, where: as far as they are known otherwise than by the text; for the rest see `CompileFailure`.
    """
    text = text[:_LONGEST_TEXT]
    exception, rest = raised, text
    while exception in _WRAPPERS:
        rest = rest[backend.end() :] if (backend := _BACKEND.match(rest)) else rest
        inner = _TYPE.match(rest)
        if inner is None:
            break
        exception, rest = inner[1], rest[inner.end() :]
    if exception == "SubprocException" and (job := _JOB.match(rest)):  # of a worker that compiles kernels
        frames = (*frames, *frames_in(job["trace"]))
        node = node or job["name"]
        if errors := [*_LAST.finditer(job["trace"])]:
            exception, rest = errors[-1]["type"], job["trace"][errors[-1].start("text") :]
    stage = stage_of(frames)
    if exception in ("CppCompileError", "CUDACompileError"):
        stage = "cpp-compiler"
    target, executing = _TARGET.search(text), _EXECUTING.search(text)
    of_user = next((text[text.index(mark) :] for mark in _USER_STACK if mark in text), "")
    user = _FRAME.findall(stack) or _FRAME.findall(of_user)
    user = [
        frame for frame in user if not _OF_TORCH.search(frame[0])
    ] or user  # a custom op is called in torch
    file, line, _, source = user[-1] if user else ("", "", "", "")
    return CompileFailure(
        stage=stage,
        exception=exception,
        message=_message(exception, rest),
        raised=raised,
        compile_id=compile_id,
        graph=graph,
        function=function,
        node=node or (executing[1] if executing else None),
        target=target[1] if target else None,
        where=f"{file}:{line}" if file else where,
        line=source.strip() or None,
        backward=backward,
        suppressed=suppressed,
    )


def frames_in(traceback: str) -> tuple[Frame, ...]:
    """Return the frames of a traceback that Python printed."""
    return tuple(Frame(file, function) for file, _, function, _ in _FRAME.findall(traceback[: 1 << 20]))


def stage_of(frames: Iterable[Frame]) -> FailureStage:
    """Return the stage of a compile that the innermost frame of torch's stands for."""
    for frame in reversed([*frames]):
        if (match := _OF_TORCH.search(frame.file)) is None:
            continue
        for place in _PLACES:
            if match[1].startswith(place.file) and (not place.functions or frame.function in place.functions):
                return place.stage
    return "unknown"


def explained(text: str) -> str:
    """Return what dynamo could not trace and why, in one line; torch adds hints, links and debug context."""
    if match := _EXPLAINED.search(text):
        return f"{match['what']}: {match['why']}"
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _message(exception: str, text: str) -> str:
    """Return the text of an exception in one line, without what torch adds to it."""
    if exception in ("CppCompileError", "CUDACompileError") and (error := _COMPILER_ERROR.search(text)):
        return error[1][:_LONGEST_MESSAGE]
    if exception == "CompilationError" and (carets := [*_CARET.finditer(text)]):  # Triton's: below its source
        text = text[carets[-1].end() :]
    if _EXPLAINED.search(text):
        return explained(text)[:_LONGEST_MESSAGE].rstrip(".")
    for mark in _ADDED:
        text = text.partition(mark)[0]
    paragraph = text.strip().partition("\n\n")[0]
    message = _MORE.sub("", " ".join(line.strip() for line in paragraph.splitlines())).rstrip(".")
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]} ..."
