"""One process that imports torch once, and forks a child for each measuring process of a bench file.

Command line: `server.py EVENTS ASKED`, descriptors of pipes (`executors/child.py`). Events are lines of JSON
in the first. Requests are lines of JSON from the second, which is standard input from then on; what kernels
print goes nowhere. The first request is the file; a later one of this form is another file, whose jobs
follow: torch is there already.

    {"path": "/d/output_code_bench.py", "source": "...", "imports": [], "fork": true}
    -> {"event": "ready", "torch": "2.13.0"}, or "no-fork" with the reason

Each other one is a job, which a child does, or this process itself where it may not fork:

    {"job": "compile", "children": 2, "refused": {}}
    -> {"event": "kernel", "name": "k_v2", "error": null or {"line": .., "error": .., "message": ..}}
    {"job": "measure", "options": {..}, "refused": {..}, "compiled": true, "check": true, "variants": [], ..}
    -> {"event": "phase", "phase": "checking", "name": "k_v2"}, {"event": "check", "variant": {..}}, ...
       {"event": "process", "process": {..}}
    {"job": "inductor_probe.measuring.child.jobs:time_case", ..}
    -> what that function sends: a job of a room above

and ends with {"event": "ended", "status": 0}: an exit status, or the negative number of a signal. A child
that failed has said why before: {"event": "failed", "kind": "load", "message": ".."}.

What must not happen before a fork: a CUDA context (it cannot be used in a child), an OpenMP region (libgomp's
threads are gone in a child, which waits for them forever), a pool of compile workers.
"""

from __future__ import annotations

import ctypes
import gc
import json
import mmap
import os
import random
import select
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch._inductor import codecache, cpu_vec_isa

from inductor_probe.harness.jobs import JOBS, JobError, memory_ran_out
from inductor_probe.harness.reference import first_line

PAGE = mmap.PAGESIZE
MAPPINGS, MOST_PAGES = 8, 512
HEAP_BLOCKS = 4096  # of 2^4 to 2^14 bytes, below malloc's threshold for mmap: they come from the heap
COMPILES, TRITON = "torch.compile(", "async_compile.triton("
LOADED_BY_CODE = {  # what inductor's wrappers import, by what stands in their text
    "": (
        "torch._inductor.select_algorithm",
        "torch._inductor.hooks",
        "torch._inductor.codegen.memory_planning",
        "torch._dynamo",
    ),
    TRITON: ("triton", "triton.language", "torch._inductor.runtime.triton_heuristics"),
    COMPILES: (  # where children compile, each would import this for itself
        "torch._dynamo.convert_frame",
        "torch._inductor.compile_fx",
        "torch.utils.flop_counter",
    ),
    "MultiKernelCall": ("torch._inductor.codegen.multi_kernel",),
}
FAILED = 1
DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)

Tell: TypeAlias = Callable[..., None]


def main() -> None:
    """Answer requests until they end."""
    events, asked = map(int, sys.argv[1:])
    os.set_inheritable(events, False)
    os.dup2(asked, 0)
    os.close(asked)
    answers = os.fdopen(events, "w", encoding="utf-8")
    with Path(os.devnull).open("wb") as nothing:
        os.dup2(nothing.fileno(), 1)

    def tell(event: str, **values: Any) -> None:
        answers.write("\n" + json.dumps({"event": event, **values}, allow_nan=False) + "\n")
        answers.flush()

    file: dict[str, Any] = {}
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "job" not in request:
            file, forks = request, request["fork"]
            import_for(file["source"])
            if forks and (reason := why_not_forked()):
                tell("no-fork", reason=reason)
                return
            tell("ready", torch=torch.__version__)
            gc.freeze()  # so that a collection in a child does not copy all pages
            continue
        with suppress(Exception):  # so that children share what the job imports, and say it where that fails
            job_named(request["job"])
        status = forked(file, request, tell) if forks else in_this_process(file, request, tell)
        tell("ended", status=status)


def import_for(source: str) -> None:
    """Import what the file needs, hash what compiles it, and choose the vector extension of C++ kernels."""
    for sign, modules in LOADED_BY_CODE.items():
        for name in modules if sign in source else ():
            with suppress(ImportError, RuntimeError):  # of another torch: whoever needs it will say so
                __import__(name)
    hash_compilers(torch_too=COMPILES in source, triton_too=COMPILES in source or TRITON in source)
    if "async_compile.cpp" in source:
        if hasattr(cpu_vec_isa.VecISA, "_probe_load") and hasattr(os, "fork"):
            cpu_vec_isa.VecISA._probe_load = loads_in_child
        with suppress(Exception):  # without a compiler: the kernels say so
            cpu_vec_isa.pick_vec_isa()


def hash_compilers(*, torch_too: bool, triton_too: bool) -> None:
    """Hash the sources of torch, and triton with its library, once: they are in the keys of their caches.

    That takes most of what a child needs to find a graph in inductor's cache, half a second and more. Both
    functions keep what they return (torch/_inductor/codecache.py, `torch_key`; triton's own `triton_key`),
    and neither asks for a GPU.
    """
    if torch_too:
        with suppress(Exception):  # another torch has it elsewhere: each child hashes then
            codecache.torch_key()
    if triton_too:
        with suppress(Exception):  # without triton
            compat = import_module("torch._inductor.runtime.triton_compat")
            if compat.HAS_TRITON:
                getattr(codecache, "triton_key", compat.triton_key)()


def loads_in_child(_: object, library: str) -> bool:
    """Tell whether a library can be loaded: in a child, as loading one for another processor may crash.

    Inductor starts a Python for each of six libraries (torch/_inductor/cpu_vec_isa.py, VecISA._probe_load):
    that takes longer than importing torch. A child of this process has torch's libraries already.
    """
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    status = FAILED
    try:
        ctypes.CDLL(library)
        status = 0
    finally:
        os._exit(status)


def why_not_forked() -> str:
    """Return why a child of this process could not be forked, or not use the GPU; nothing if it could."""
    if sys.platform in ("win32", "darwin") or not hasattr(os, "fork"):
        return f"{sys.platform} has no safe fork"
    return "CUDA was initialised while torch was imported" if torch.cuda.is_initialized() else ""


def forked(file: dict[str, Any], request: dict[str, Any], tell: Tell) -> int:
    """Do a job in children of this process, one or several; return the status of the first that failed."""
    count = request.get("children", 1)
    children = [fork_child(file, {**request, "child": number}, tell) for number in range(count)]

    def end(*_: Any) -> None:
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        os._exit(FAILED)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    if not wait_for(children):
        end()
    statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    return next((status for status in statuses if status), 0)


def wait_for(children: list[int]) -> bool:
    """Wait until all children have ended, or nobody is left who would hear of them: return False then.

    Whoever asked may have been killed, and what goes on after that disturbs who measures next. The end of
    the pipe that requests come through is seen beside the children (`pidfd_open(2)`, `POLLHUP` of poll(2)).
    """
    if not hasattr(os, "pidfd_open"):
        return True
    poll, left = select.poll(), set[int]()
    try:
        for child in children:
            left.add(os.pidfd_open(child))
        for child in left:
            poll.register(child, select.POLLIN)
        poll.register(0, 0)  # POLLHUP is always told
        while left:
            for descriptor, _ in poll.poll():
                if descriptor == 0:
                    return False
                poll.unregister(descriptor)
                os.close(descriptor)
                left.discard(descriptor)
    except OSError:  # a kernel without it, or no descriptors are left: it is a courtesy
        return True
    finally:
        for descriptor in left:
            os.close(descriptor)
    return True


def fork_child(file: dict[str, Any], request: dict[str, Any], tell: Tell) -> int:
    """Start a child that does a job and ends; return its process id."""
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    status = FAILED
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)
        with suppress(OSError):  # where memory runs out, it is this process that should go
            Path("/proc/self/oom_score_adj").write_text("1000")
        status = in_this_process(file, request, tell)
    finally:
        sys.stderr.flush()
        os._exit(status)  # nothing of the parent is to be torn down here


def in_this_process(file: dict[str, Any], request: dict[str, Any], tell: Tell) -> int:
    """Do a job here; return the exit status."""
    placement: list[object] = []
    if request.get("compiled") and hasattr(codecache, "_precompile_header"):
        # It runs the preprocessor over torch's headers to see whether precompiled ones are still good, for
        # kernels in the cache, too (torch/_inductor/codecache.py). The setting for it is no way around: it
        # changes the compiler's flags, and so the keys of kernels.
        codecache._precompile_header = lambda *args, **kwargs: ""
    try:
        placement = place_at_random(random.Random())  # noqa: S311 - no secret
        job_named(request["job"])(file, request, tell)
    except JobError as error:
        tell("failed", kind=error.kind, message=str(error))
    except BaseException as error:  # whatever a kernel may raise
        traceback.print_exc()
        if memory_ran_out(f"{type(error).__name__}: {error}"):
            tell("failed", kind="memory", message=f"ran out of memory: {first_line(error)}")
        else:
            tell("failed", kind="error", message=first_line(error))
    else:
        return 0
    finally:
        del placement
    return FAILED


def job_named(name: str) -> Callable[[dict[str, Any], dict[str, Any], Tell], None]:
    """Return the function of a job: one of this room, or `MODULE:FUNCTION`."""
    module, colon, function = name.partition(":")
    if not colon:
        return JOBS[name]
    job: Callable[[dict[str, Any], dict[str, Any], Tell], None] = getattr(import_module(module), function)
    return job


def place_at_random(rng: random.Random) -> list[object]:
    """Move what this process allocates from now on; keep what is returned until the end.

    A forked child inherits the addresses of its parent, so that code, heap and buffers of all children would
    lie alike, and a median over processes would not average over placement. Mappings of random sizes move
    what is mapped behind them (libraries, large buffers); blocks of random sizes fill holes of the heap, and
    move what comes from it.
    """
    kept: list[object] = [mmap.mmap(-1, PAGE * rng.randrange(1, MOST_PAGES)) for _ in range(MAPPINGS)]
    kept += [bytearray(int(2 ** rng.uniform(4, 14))) for _ in range(rng.randrange(HEAP_BLOCKS))]
    return kept


if __name__ == "__main__":
    main()
