"""Marks above the lines of a wrapper: what is marked, as what, and that it computes the same."""

from __future__ import annotations

from typing import Any

from inductor_probe.harness.line_clock import MARK, with_marks

TEXT = """
def kernel(x, y): y.append(x)
factor = None
def partition_0(args):
    (buf1,) = args
    args.clear()
    return (buf1 * factor,)
class Runner:
    def __init__(self, partitions):
        self.partitions = partitions
    def call(self, args):
        arg0_1, = args
        args.clear()
        assert_size_stride(arg0_1)
        buf0 = empty_strided_cpu(3); other = 1
        kernel(arg0_1, buf0); del other
        with guard():
            extern_kernels.mm(
                buf0,
            )
        buf2, = self.partitions[0]([buf0[0]])
        del buf0
        return (buf2, )
runner = Runner(partitions=[partition_0])
call = runner.call
"""
NAMES = ("factor", "partition_0", "Runner", "runner", "call")


class Guard:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


class Library:
    @staticmethod
    def mm(values: list[Any]) -> None:
        values[0] += 1


def namespace() -> dict[str, Any]:
    names: dict[str, Any] = {
        "assert_size_stride": lambda value: None,
        "empty_strided_cpu": lambda size: [],
        "guard": Guard,
        "extern_kernels": Library,
        "__file__": "made.py",
    }
    exec(TEXT, names)  # noqa: S102 - the text above
    names["factor"] = 10  # as the constants of a graph get their values
    return names


def test_a_wrapper_with_marks_computes_the_same_and_says_which_lines_ran() -> None:
    names = namespace()
    marked, lines, marks = with_marks(names, TEXT, NAMES, ["kernel"])
    assert names["call"]([4]) == marked["call"]([4]) == (50,)
    assert [number for number, _ in marks[:2]] == [MARK, MARK]
    text = TEXT.split("\n")
    ran = [(lines[number].kind, text[lines[number].first - 1].strip()) for number, _ in marks[2:]]
    assert ran == [
        ("other", "arg0_1, = args"),
        ("other", "args.clear()"),
        ("check", "assert_size_stride(arg0_1)"),
        ("allocation", "buf0 = empty_strided_cpu(3); other = 1"),
        ("launch", "kernel(arg0_1, buf0); del other"),
        ("other", "with guard():"),
        ("library", "extern_kernels.mm("),
        ("other", "with guard():"),
        ("other", "buf2, = self.partitions[0]([buf0[0]])"),
        ("other", "(buf1,) = args"),
        ("other", "args.clear()"),
        ("other", "return (buf1 * factor,)"),
        ("free", "del buf0"),
        ("other", "return (buf2, )"),
    ]
    assert [at for _, at in marks] == sorted(at for _, at in marks)
    (launch,) = (line for line in lines if line.kind == "launch")
    assert launch.target == "kernel"


def test_the_plain_wrapper_gets_no_marks_and_later_kernels_are_those_of_its_own_namespace() -> None:
    names = namespace()
    marked, _, marks = with_marks(names, TEXT, NAMES, ["kernel"])
    marked["kernel"] = lambda x, y: y.append(x + 1)
    assert names["call"]([4]) == (50,)
    assert marks == []
    assert marked["call"]([4]) == (60,)
