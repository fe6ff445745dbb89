"""What the process of a notebook compiles: `dump` of one of its functions, and `recording` of a block."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from inductor_probe.api.session import Run
from inductor_probe.errors import ProbeError
from inductor_probe.reader.debug_dir import read_run

if TYPE_CHECKING:
    from inductor_probe.capture.dumping import DumpResult
    from inductor_probe.model.manifest import ScriptForm


class recording:  # noqa: N801 - used as a function: `with ip.recording() as rec:`
    """Record what this process compiles in a block, as `probe dump` does for a script.

        with ip.recording(label="step") as rec:
            step(model, batch)
        rec.run

    Torch may have been imported long before, and what was compiled before stays compiled: only what is
    compiled in the block is recorded. When it ends, hooks and settings are taken back. An error in the block
    passes through, and the run says that it failed.

    Args:
        label: a name to find the run by.
        save_inputs: keep the bytes of every graph's real inputs, and constants of any size.
        record: record what inductor decides, and why (`why`).
        out: folder for `torch_compile_debug`, the working folder by default.

    Raises:
        ProbeError: when the block begins: another recording has not ended, or `probe dump` runs this process;
            torch is not installed; nothing can be written to `out`.
    """

    def __init__(
        self,
        *,
        label: str | None = None,
        save_inputs: bool = False,
        record: bool = True,
        out: str | Path | None = None,
    ) -> None:
        self._options: dict[str, Any] = {
            "label": label, "save_inputs": save_inputs, "record": record, "out": Path(out) if out else None,
        }  # fmt: skip
        self._name: tuple[str, ScriptForm] = ("a block" if label is None else label, "recording")
        self._block: ExitStack | None = None
        self._results: Sequence[DumpResult] = ()
        self._run: Run | None = None

    @classmethod
    def _of(cls, function: str, options: Mapping[str, Any]) -> recording:
        block = cls(**options)
        block._name = (function, "function")
        return block

    def __enter__(self) -> recording:
        from inductor_probe.capture.in_process import recorded

        if self._block is not None or self._results:
            raise ProbeError("a recording is of one block", "make another: with ip.recording() as rec:")
        with ExitStack() as block:
            self._results = block.enter_context(recorded(*self._name, **self._options))
            self._block = block.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._block is not None:
            self._block.__exit__(kind, error, trace)

    @property
    def run(self) -> Run:
        """What was compiled in the block, when it has ended.

        Raises:
            ProbeError: it has not ended.
        """
        if not self._results:
            raise ProbeError("the recording has not ended", "look at its run behind the block")
        if self._run is None:
            (result,) = self._results
            others = [read_run(other) for other in result.others]
            self._run = Run(read_run(result.run), result.not_remembered, others)
        return self._run

    def __repr__(self) -> str:
        """Return the run, or what there is before it."""
        return repr(self.run) if self._results else f"recording of {self._name[0]}, which has not ended"


def dump_function(
    function: Callable[..., Any],
    inputs: Sequence[Any],
    arguments: Mapping[str, Any],
    *,
    options: Mapping[str, Any],
    compile_options: Mapping[str, Any],
) -> Run:
    """Compile a function of this process anew, call it once, and return what inductor dumped: see `dump`."""
    from inductor_probe.capture.in_process import compile_and_call

    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    with recording._of(name, options) as block:
        compile_and_call(function, inputs, arguments, compile_options)
    return block.run
