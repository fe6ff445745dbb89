"""The wrappers of a process as it compiled them, with a clock that is read where they launch and call.

A wrapper in Python gets the code of its marked copy (`line_clock`) for a while; one in C++ is compiled once
more with a reading of the clock before and behind each statement that runs something:

    probe_note(3);
    cpp_fused_add_0((const float*)(arg0_1.data_ptr()), (float*)(buf0.data_ptr()));
    probe_note(-2);
"""

from __future__ import annotations

import ast
import ctypes
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from inductor_probe.harness.line_clock import Line, with_marks

BEHIND = -2  # the mark behind a statement of C++
MOST_NOTES = 1 << 14
KERNEL = re.compile(r"^\s*(?:call_)?((?:cpp|triton)_\w+)\(")
LIBRARY = re.compile(r"\b(aoti_torch_(?:cpu|cuda|xpu|mps)_\w+|aoti_torch_proxy_executor_call_function)\(")
COPY = re.compile(r"\b(aoti_torch_copy_|copy_)\(")
ENTRY, ENTRY_END = "void inductor_entry_impl(", "} // inductor_entry_impl"
NOTES = f"""#include <time.h>
extern "C" {{
__attribute__((visibility("default"))) int probe_clock = CLOCK_MONOTONIC;
__attribute__((visibility("default"))) long long probe_notes[{2 * MOST_NOTES}];
__attribute__((visibility("default"))) long long probe_count = 0;
}}
static inline void probe_note(long long number) {{
    timespec now;
    clock_gettime((clockid_t)probe_clock, &now);
    if (probe_count < {MOST_NOTES}) {{
        probe_notes[2 * probe_count] = number;
        probe_notes[2 * probe_count + 1] = now.tv_sec * 1000000000LL + now.tv_nsec;
    }}
    ++probe_count;
}}
"""

Marks: TypeAlias = "list[tuple[Any, int]]"
"""What begins or ends, and nanoseconds of a clock; a line of a wrapper is its number."""


class PythonWrapper:
    """A wrapper in Python: the module that torch loaded, and the lines of its `call`."""

    notes = 0

    def __init__(self, module: Any) -> None:
        text = Path(module.__file__).read_text()
        body = ast.parse(text).body
        defined = [node for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
        names = [node.name for node in defined if node.name in ("Runner", "call")]
        names += [node.name for node in defined if node.name.startswith("partition_")]
        self.kernels = [
            target.id
            for node in body
            if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("async_compile.")
            for target in node.targets
            if isinstance(target, ast.Name)
        ]
        self.namespace: dict[str, Any] = vars(module)
        marked, self.lines, _ = with_marks(self.namespace, text, [*names, "runner"], self.kernels)
        rows = text.split("\n")
        for line in self.lines:
            if line.kind in ("other", "library") and COPY.search("".join(rows[line.first - 1 : line.last])):
                line.kind = "copy"
        self._codes = [
            (own, own.__code__, copy.__code__)
            for name in names
            for own, copy in _functions(self.namespace[name], marked[name])
        ]

    @contextmanager
    def marking(self, marks: Marks, clock: Callable[[], int]) -> Iterator[None]:
        """Let its calls go on with `marks` for a while, on a clock in nanoseconds."""
        self.namespace.update(probe_mark=marks.append, probe_clock=clock)
        try:
            for function, _, marked in self._codes:
                function.__code__ = marked
            yield
        finally:
            for function, plain, _ in self._codes:
                function.__code__ = plain
            del self.namespace["probe_mark"], self.namespace["probe_clock"]


def _functions(own: Any, copy: Any) -> Iterator[tuple[Any, Any]]:
    """Yield a function, or those of a class, beside their copies; `call` is a method in torch since 2.9."""
    if isinstance(own, type):
        for name, method in vars(own).items():
            if hasattr(method, "__code__") and name in vars(copy):
                yield method, vars(copy)[name]
    else:
        yield getattr(own, "__func__", own), getattr(copy, "__func__", copy)


def note_times(text: str) -> tuple[str, list[Line]]:
    """Return a wrapper in C++ that notes when it launches and calls, and its lines that do.

    Raises:
        ValueError: its text has another form.
    """
    begin, end = text.find(ENTRY), text.find(ENTRY_END)
    if begin < 0 or end < begin:
        raise ValueError(f"there is no {ENTRY}...)")
    rows, lines = list[str](), list[Line]()
    for number, row in enumerate(text[begin:end].split("\n"), text.count("\n", 0, begin) + 1):
        kinds = {"launch": KERNEL.match(row), "copy": COPY.search(row), "library": LIBRARY.search(row)}
        kind, match = next(((kind, match) for kind, match in kinds.items() if match), ("", None))
        if match and row.rstrip().endswith(";"):
            rows += [f"probe_note({len(lines)});", row, f"probe_note({BEHIND});"]
            lines.append(Line(number, number, kind, match.group(1)))
        else:
            rows.append(row)
    return text[:begin] + NOTES + "\n".join(rows) + text[end:], lines


class CppWrapper:
    """A wrapper in C++, and a copy of it that notes times.

    Raises:
        ValueError: its text has another form.
    """

    def __init__(self, module: Any) -> None:
        source, self.lines = note_times(Path(module.__file__).read_text())
        self.notes = 2 * len(self.lines)
        copy = {"__name__": "marked_wrapper", "__file__": module.__file__}
        exec(compile(source, module.__file__, "exec"), copy)  # noqa: S102 - what this process runs anyway
        entry = copy["inductor_entry"]
        self._library = ctypes.CDLL(entry.__self__.__file__)
        self._cell = next(
            cell for cell in module.call.__closure__ if cell.cell_contents is module.inductor_entry
        )
        self._entry, self._copy = module.inductor_entry, entry

    @contextmanager
    def marking(self, marks: Marks, clock: Callable[[], int]) -> Iterator[None]:
        """Let its calls note times for a while, for `read`: the CPU time of the thread, or monotonic time."""
        del marks
        if clock is time.thread_time_ns:
            ctypes.c_int.in_dll(self._library, "probe_clock").value = time.CLOCK_THREAD_CPUTIME_ID
        self._cell.cell_contents = self._copy
        try:
            yield
        finally:
            self._cell.cell_contents = self._entry

    def read(self) -> Marks:
        """Return what was noted since it was asked last, and forget it."""
        count = ctypes.c_longlong.in_dll(self._library, "probe_count")
        notes = (ctypes.c_longlong * (2 * MOST_NOTES)).in_dll(self._library, "probe_notes")
        rows = [(notes[2 * row], notes[2 * row + 1]) for row in range(min(count.value, MOST_NOTES))]
        count.value = 0
        return rows
