"""Runs a Python file from text that is sent to it: what was judged is run, whatever lies at its path by now.

Command line: `source_child.py FILE [ARGUMENT ...]`, the text of FILE on stdin. To its code it is a program
that was started as `python FILE ...`: `__file__`, `sys.argv`, `inspect.getsource` and tracebacks name FILE.
"""

from __future__ import annotations

import linecache
import sys
import traceback
from importlib.machinery import ModuleSpec
from types import ModuleType, TracebackType


def main(path: str, arguments: list[str], text: str) -> None:
    """Run `text` as the program in the file `path`."""
    # Where `inspect` gets source from, which is what `triton.jit` compiles. Without a time it is never
    # checked against the file again (`linecache.checkcache`).
    lines = [f"{line}\n" for line in text.split("\n")]
    linecache.cache[path] = (len(text), None, lines, path)

    def print_from_file(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        while trace is not None and trace.tb_frame.f_code.co_filename != path:
            trace = trace.tb_next
        traceback.print_exception(kind, error, trace)

    sys.excepthook = print_from_file
    module = ModuleType("__main__")
    module.__file__ = path
    # A process that `multiprocessing` spawns would run the file at `__file__`, but for this (its `spawn.py`).
    module.__spec__ = ModuleSpec("__main__", None)
    sys.argv = [path, *arguments]
    sys.modules["__main__"] = module
    try:
        # Text, and no bytes: a comment that names an encoding changes nothing.
        program = compile(text, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        if error.lineno:  # Python took the line that it shows from the file
            error.text = lines[error.lineno - 1]
        raise
    exec(program, module.__dict__)  # noqa: S102 - what it is for


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:], sys.stdin.buffer.read().decode())
