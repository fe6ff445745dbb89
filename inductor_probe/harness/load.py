"""A bench file loaded as a module: kernels in a chosen order, and those apart that do not compile.

Executed as it stands, a file ends at the first kernel that does not compile, and no other variant is judged.
Here the methods of `AsyncCompile` only note what is to be compiled; `wait`, which every generated file calls
behind its last kernel, compiles and loads all of it. A variant that the compiler refuses becomes a
`NotLoaded`; a pristine kernel that it refuses ends the load.
"""

from __future__ import annotations

import ast
import importlib
import linecache
import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from torch._inductor import config
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.codecache import CodeCacheFuture

from inductor_probe.harness.bench import Bench
from inductor_probe.harness.checks import Reason
from inductor_probe.harness.reference import first_line
from inductor_probe.harness.remarks import reason

MODULE = "output_code_bench"
HEURISTICS = "torch._inductor.runtime.triton_heuristics"  # takes long to import
# torch/_inductor/async_compile.py: the methods of AsyncCompile that take the source of one kernel.
METHODS = ("cpp", "cpp_pybinding", "triton", "cuda", "rocm", "xpu", "halide", "cutedsl", "pallas")
SETTINGS = (  # that bench files set: bench_file/compile_settings.py
    "cpp.simdlen",
    "cpp.enable_unsafe_math_opt_flag",
    "cpp.enable_floating_point_contract_flag",
)
MISSING = object()
COPY = re.compile(r"_v\d+$")
MOST_LINES = 8  # of a compiler's message
# g++ and clang++: `/tmp/.../cxy.main.cpp:12:30: error: 'tmp9' was not declared in this scope`.
CPP_ERROR = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$", re.M)
# triton/compiler/errors.py, CompilationError._format_message: `at 5:11:`, lines counted from the `def`.
TRITON_ERROR = re.compile(r"^at (?P<line>\d+):\d+:$", re.M)
# torch/_inductor/runtime/compile_tasks.py, _reload_python_module: `SyntaxError: ... (c7.py, line 12)`.
PYTHON_ERROR = re.compile(r"(?P<text>\w+Error: .*) \((?:<unknown>|[^,()]+\.py), line (?P<line>\d+)\)")


class LoadError(Exception):
    """The file cannot be loaded; the message is for the user and names the place."""


class NotLoadedError(Exception):
    """A variant that the compiler refused, or that ended a process, was launched."""


@dataclass
class CompileError:
    """Why a kernel does not compile: the first `error`, its `line` in the bench file, and more lines."""

    line: int
    error: str
    message: str = ""

    def reason(self) -> Reason:
        """Return it as the reason of a check."""
        return reason("variant-not-compiled", line=self.line, error=self.error, message=self.message)


class NotLoaded:
    """Stands in the module for a variant that is not there; `why` is the rest of a sentence about it."""

    def __init__(self, name: str, why: str) -> None:
        self.name, self.why = name, why

    def __call__(self, *_: Any, **__: Any) -> None:
        """Raise: C++ kernels are called."""
        raise NotLoadedError(f"{self.name} {self.why}")

    run = __call__  # Triton kernels are started by `run`


class Deferred(CodeCacheFuture):  # type: ignore[misc] # mypy does not follow torch
    """A kernel of the file that is compiled and loaded when it is asked for.

    Its compiler has the settings that stood above it in the file: of two graphs in one file, one may be
    written for wider vectors.
    """

    def __init__(self, start: Callable[[], Any], method: str, arguments: tuple[Any, ...], line: int) -> None:
        self.start, self.method, self.arguments, self.line = start, method, arguments, line
        self.kernel: Any = None
        self.settings = {name: value for name in SETTINGS if (value := _setting(name)) is not MISSING}

    @property
    def source(self) -> str:
        """The text of the kernel: the longest of its arguments."""
        return max((value for value in self.arguments if isinstance(value, str)), key=len, default="")

    def result(self, timeout: float | None = None) -> Any:
        """Compile and load it, once."""
        if self.kernel is None:
            with config.patch(self.settings):
                self.kernel = self.start()
                if isinstance(self.kernel, CodeCacheFuture):
                    self.kernel = self.kernel.result()
        return self.kernel


def _setting(name: str) -> object:
    return getattr(config, name, MISSING)


@dataclass
class Loaded:
    """A module made from a bench file, and the variants of it that do not compile."""

    namespace: dict[str, Any]
    refused: dict[str, CompileError]

    def bench(self) -> Bench:
        """Return the graph of the file, with its kernels."""
        return Bench(self.namespace)


Watch: TypeAlias = "Callable[[str, CompileError | None], None]"
Resolve: TypeAlias = "Callable[[Any, dict[str, Any]], None]"


@dataclass
class BenchText:
    """The text of a bench file, and the path that errors name."""

    path: Path
    text: str

    def load(
        self,
        watch: Callable[[str], None] = lambda name: None,
        *,
        copies_first: bool = False,
        refused: Mapping[str, CompileError] | None = None,
        crashed: Collection[str] = (),
        needed: Collection[str] | None = None,
    ) -> Loaded:
        """Execute the text as the module `MODULE`, with each kernel compiled or from inductor's cache.

        Args:
            watch: called with the name of each kernel before it is loaded.
            copies_first: load the copies before what they are copies of: code that is loaded first lies
                elsewhere, which can change its time.
            refused: variants that do not compile, as is known already: they are not tried.
            crashed: variants that ended an earlier process: they are not loaded.
            needed: the copies to load, where they were checked before and few are timed; None: all.

        Raises:
            LoadError: a pristine kernel does not compile, or the text raises something.
        """
        failed: dict[str, CompileError] = dict(refused or {})

        def resolve(_: Any, scope: dict[str, Any]) -> None:
            kernels = deferred_in(scope)
            for name in sorted(kernels, key=lambda name: bool(COPY.search(name)) != copies_first):
                if name in crashed or not (needed is None or name in needed or not COPY.search(name)):
                    why = "ended its process" if name in crashed else "is not loaded, as it is not timed"
                    scope[name] = NotLoaded(name, why)
                    continue
                if name not in failed:
                    watch(name)
                    try:
                        scope[name] = kernels[name].result()
                    except Exception as error:  # a compiler fails in many ways
                        failed[name] = self.compile_error(kernels[name], error)
                if name in failed:
                    if not COPY.search(name):
                        raise LoadError(self.sentence(name, failed[name]))
                    scope[name] = NotLoaded(name, "does not compile")

        return Loaded(self.execute(resolve), failed)

    def compile(self, watch: Watch, chosen: Callable[[int, str], bool]) -> None:
        """Compile the kernels that are `chosen`, by their number in the text and name; load none of Triton.

        `watch` is called after each with its name, and why it does not compile.

        Raises:
            LoadError: the text raises something.
        """

        def resolve(_: Any, scope: dict[str, Any]) -> None:
            for number, (name, kernel) in enumerate(deferred_in(scope).items()):
                if chosen(number, name):
                    try:
                        compile_only(kernel)
                    except Exception as error:  # a compiler fails in many ways
                        watch(name, self.compile_error(kernel, error))
                    else:
                        watch(name, None)

        self.execute(resolve)

    def execute(self, resolve: Resolve) -> dict[str, Any]:
        """Execute the text with `resolve` for what gives its kernels; return the names that it defines.

        Raises:
            LoadError: it raises something.
        """
        module = ModuleType(MODULE)
        module.__file__ = str(self.path)
        sys.modules[MODULE] = module  # dataclasses look up the module of a class
        self.show_source()
        with deferring(resolve):
            try:
                program = compile(self.text, str(self.path), "exec", dont_inherit=True)
                exec(program, module.__dict__)  # noqa: S102 - what it is for
            except LoadError:
                raise
            except Exception as error:  # whatever the file does
                raise LoadError(self.place_of(error)) from error
        return module.__dict__

    def sentence(self, name: str, error: CompileError) -> str:
        """Say where and why a kernel does not compile."""
        text = f"{self.path}:{error.line}: {name} does not compile: {error.error}"
        return f"{text}\n{error.message}".rstrip()

    def show_source(self) -> None:
        """Let `inspect` read this text as that of the file: `triton.jit` compiles what `inspect` gives it.

        An entry without a time is never checked against the file on disk (`linecache.checkcache`).
        """
        lines = [f"{line}\n" for line in self.text.split("\n")]
        linecache.cache[str(self.path)] = (len(self.text), None, lines, str(self.path))

    def place_of(self, error: Exception) -> str:
        """Say what was raised, and in which line of the file: `output_code_bench.py:12: NameError: ...`."""
        line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else None
        for frame in traceback.extract_tb(error.__traceback__):
            line = frame.lineno if frame.filename == str(self.path) else line
        return f"{self.path}:{line}: {first_line(error)}" if line else f"{self.path}: {first_line(error)}"

    def compile_error(self, kernel: Deferred, error: Exception) -> CompileError:
        """Say why a kernel does not compile, by lines of this file.

        A compiler names a line of the file that inductor wrote for it. For a kernel whose text begins in line
        180 of the bench file (`k_v2 = async_compile.cpp_pybinding([...], r'''`), and in line 1 of
        `/tmp/torchinductor_u/ab/cab.main.cpp`, `cab.main.cpp:12:30: error: ...` is about line 191 here.
        """
        first, chain = self.text_line(kernel), _chain(error)
        for text in map(str, chain):
            if match := CPP_ERROR.search(text):
                for located in CPP_ERROR.finditer(text):  # the first in the kernel, not in a header of torch
                    if number := _line_in(located["file"], int(located["line"]), kernel.source):
                        return CompileError(first + number - 1, located["text"], _lines_after(text, located))
                return CompileError(kernel.line, match["text"], _lines_after(text, match))
            if match := PYTHON_ERROR.search(text):
                return CompileError(first + int(match["line"]) - 1, match["text"])
            if match := TRITON_ERROR.search(text):
                start = re.search(r"^def ", kernel.source, re.M)
                skipped = kernel.source[: start.start()].count("\n") if start else 0
                number = first + skipped + int(match["line"]) - 1
                lines = [line for line in text[match.end() :].splitlines() if line.strip()]
                return CompileError(number, _last_line(chain[-1]), "\n".join(lines[-MOST_LINES:]))
        return CompileError(kernel.line, first_line(chain[-1]))

    def text_line(self, kernel: Deferred) -> int:
        """Return the line of the file in which the text of a kernel begins."""
        for node in ast.walk(ast.parse(self.text)):
            if isinstance(node, ast.Call) and node.lineno <= kernel.line <= (node.end_lineno or 0):
                for argument in node.args:
                    if isinstance(argument, ast.Constant) and argument.value == kernel.source:
                        return argument.lineno
        return kernel.line


@contextmanager
def deferring(resolve: Resolve) -> Iterator[None]:
    """Let `AsyncCompile` note kernels instead of compiling them, and `resolve` all of them in its `wait`."""
    methods = {name: getattr(AsyncCompile, name) for name in METHODS if hasattr(AsyncCompile, name)}
    wait = AsyncCompile.wait

    def deferred(name: str, method: Callable[..., Any]) -> Callable[..., Deferred]:
        def note(self: Any, *args: Any, **kwargs: Any) -> Deferred:
            line = sys._getframe(1).f_lineno
            values = (*args, *kwargs.values())
            return Deferred(partial(method, self, *args, **kwargs), name, values, line)

        return note

    try:
        for name, method in methods.items():
            setattr(AsyncCompile, name, deferred(name, method))
        AsyncCompile.wait = resolve
        yield
    finally:
        AsyncCompile.wait = wait
        for name, method in methods.items():
            setattr(AsyncCompile, name, method)


def deferred_in(scope: Mapping[str, Any]) -> dict[str, Deferred]:
    """Return the kernels of a module that are still to be compiled, in its order."""
    return {name: value for name, value in scope.items() if isinstance(value, Deferred)}


def compile_only(kernel: Deferred) -> None:
    """Compile a kernel into inductor's cache; one of Triton is not loaded, which would take a CUDA context.

    That is what inductor's own compile workers do (torch/_inductor/runtime/compile_tasks.py,
    _worker_compile_triton). It goes through `AsyncCompile.triton` all the same, as loading it does: that
    chooses the ptxas, and Triton's key of a binary depends on it. With another key all would be compiled once
    more by the first process that loads them.
    """
    if kernel.method != "triton":
        kernel.result()
        return
    autotuner: Any = importlib.import_module(HEURISTICS).CachingAutotuner
    precompile = autotuner.precompile

    def into_cache(self: Any, warm_cache_only: bool = False, *args: Any, **kwargs: Any) -> None:
        precompile(self, True, *args, **kwargs)

    autotuner.precompile = into_cache
    try:
        kernel.start()
    finally:
        autotuner.precompile = precompile


def _chain(error: BaseException) -> list[BaseException]:
    """Return an exception and those that it was raised from: inductor wraps what compilers say."""
    chain = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    return chain


def _last_line(error: BaseException) -> str:
    """Return the last line of a message: Triton quotes the code before it says what is wrong with it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" ^")]
    return lines[-1] if lines else type(error).__name__


def _line_in(file: str, line: int, source: str) -> int | None:
    """Return the line of `source` that is `line` of the file which inductor wrote it to; None outside."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except OSError:
        return None
    start = text.find(source)
    number = line - text[:start].count("\n")
    return number if start >= 0 and 1 <= number <= source.count("\n") + 1 else None


def _lines_after(text: str, match: re.Match[str]) -> str:
    """Return the lines behind an error: the code that it is about (` 20 | x = y;`), and a mark below."""
    lines = text[match.end() :].strip("\n").splitlines()
    return "\n".join(takewhile(lambda line: re.match(r" *\d* *\|", line), lines[:MOST_LINES]))
