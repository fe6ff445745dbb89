"""What ends a run of a kernel: it does what no GPU would allow, or what cannot be interpreted."""

from __future__ import annotations


class KernelFault(Exception):  # noqa: N818 - the word for what a GPU does then
    """A kernel is wrong: it reaches outside of its memory, or an assertion of it fails.

    Attributes:
        kernel, line: as for `NotInterpretedError`.
    """

    def __init__(self, what: str, kernel: str = "", line: int = 0) -> None:
        super().__init__(what)
        self.what, self.kernel, self.line = what, kernel, line


class AssertionFault(KernelFault):
    """An assertion of a kernel fails: of one that inductor made, the inputs may be at fault."""


class NotInterpretedError(BaseException):
    """The kernel cannot be judged here. Nothing that calls a variant wrong for what it raises may catch it.

    Attributes:
        kernel: whose operation it is; empty where none was running.
        line: of the kernel's text, 0 where it is not known.
    """

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what, self.kernel, self.line = what, "", 0


class TooLongError(NotInterpretedError):
    """The time for it is up."""
