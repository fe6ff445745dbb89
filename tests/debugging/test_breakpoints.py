"""Calls put into a module as it is imported: they see the right frame, and nothing else changes."""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

from inductor_probe.debugging.breakpoints import Checker, Inserter, are_nodes, next_kernel, with_calls
from inductor_probe.debugging.places import plan
from inductor_probe.debugging.sources import find_module

SOURCE = '''\
from __future__ import annotations

def area(width: Missing, height=2):
    """Multiply."""
    factor = 1
    for step in range(2):
        factor += step
    return width * height * factor

class Shape:
    def __private(self): return "private"

    @staticmethod
    def show(*args, **kwargs):
        return [a for a in args]

    def both(self):
        return self.__private()

def count():
    yield 1
'''
Import = Callable[..., tuple[ModuleType, list[dict[str, Any]], Checker]]


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    """Import `shapes` with stops; return it with the locals of each frame that stopped."""
    (tmp_path / "shapes.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    finders: list[Inserter] = []

    def do_import(*places: str, attached: bool = True) -> tuple[ModuleType, list[dict[str, Any]], Checker]:
        seen: list[dict[str, Any]] = []

        def stop() -> None:
            frame = sys._getframe(1)
            seen.append({"function": frame.f_code.co_name, **frame.f_locals})

        breakpoints = plan(places, (), tmp_path, tmp_path).breakpoints
        checker = Checker(breakpoints, stop, lambda: attached)
        finders.append(Inserter(breakpoints, checker))
        sys.meta_path.insert(0, finders[0])
        return importlib.import_module("shapes"), seen, checker

    yield do_import
    sys.modules.pop("shapes", None)
    for finder in finders:
        sys.meta_path.remove(finder)


def test_a_call_stands_in_the_function_s_own_frame(imported: Import) -> None:
    module, seen, _ = imported("shapes:area")
    assert module.area(3) == 12
    assert seen == [{"function": "area", "width": 3, "height": 2}]


def test_a_line_in_a_loop_is_asked_each_time(imported: Import) -> None:
    module, seen, _ = imported("shapes.py:7 if step == 1")
    module.area(3)
    assert [(frame["step"], frame["factor"]) for frame in seen] == [(1, 1)]


def test_two_stops_at_one_statement_stop_once(imported: Import) -> None:
    module, seen, _ = imported("shapes:area", "shapes:area if width == 3")
    module.area(3)
    assert len(seen) == 1


@pytest.mark.parametrize("place", ["shapes:Shape.__private", "shapes.py:11"])
def test_a_body_on_the_line_of_its_def_and_private_names_work(imported: Import, place: str) -> None:
    module, seen, _ = imported(place)
    assert module.Shape().both() == "private"
    assert [frame["function"] for frame in seen] == ["__private"]


def test_a_condition_sees_arguments_inside_a_comprehension(imported: Import) -> None:
    module, seen, _ = imported("shapes:Shape.show if any(k in args for k in kwargs.values())")
    assert module.Shape.show(1, a=2) == [1]
    assert seen == []
    module.Shape.show(2, a=2)
    assert len(seen) == 1


def test_a_condition_that_fails_does_not_stop_and_is_said_once(
    imported: Import, capsys: pytest.CaptureFixture[str]
) -> None:
    module, seen, checker = imported("shapes:area if width.no_such")
    assert module.area(3) + module.area(3) == 24
    assert seen == []
    checker.say_never_reached()
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert said[0].startswith(
        "probe debug: the condition of shapes:area failed: AttributeError: 'int' object"
    )
    assert said[1] == "probe debug: never reached: shapes:area"


def test_nothing_stops_without_a_debugger(imported: Import) -> None:
    module, seen, _ = imported("shapes:area", attached=False)
    assert (module.area(3), seen) == (12, [])


def test_the_rest_of_the_module_is_as_it_was(imported: Import, tmp_path: Path) -> None:
    module, _, _ = imported("shapes:area", "shapes:count")
    assert module.area.__doc__ == "Multiply."
    assert module.area.__annotations__ == {"width": "Missing"}
    assert module.__file__ == str(tmp_path / "shapes.py")
    assert list(module.count()) == [1]
    assert not list(tmp_path.glob("__pycache__/shapes*"))  # others import it from there


def lines(code: CodeType) -> Iterator[tuple[str, set[int]]]:
    yield (
        code.co_qualname if hasattr(code, "co_qualname") else code.co_name,
        {line for _, _, line in code.co_lines() if line},
    )
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from lines(constant)


def test_code_of_torch_keeps_its_lines() -> None:
    source = find_module("torch._inductor.codegen.cpp")
    text = source.path.read_bytes()
    first = source.named("LoopLevel.lines")[0].node.body[0]
    changed = with_calls(text, str(source.path), {(first.lineno, first.col_offset): [0]})
    plain = compile(text, str(source.path), "exec", dont_inherit=True)
    for (name, before), (_, after) in zip(lines(plain), lines(changed), strict=True):
        assert after - before <= {first.lineno - 1}, name
        assert before <= after, name


class Node:
    def __init__(self, *names: str) -> None:
        self.names = set(names)

    def get_operation_names(self) -> set[str]:
        return {f"op{name}" for name in self.names}

    def get_buffer_names(self) -> set[str]:
        return {f"buf{name}" for name in self.names}


@pytest.mark.parametrize(
    ("some", "others", "expected"),
    [
        (["op3"], ["op4"], True),
        (["op4"], ["buf3"], True),
        (["op2", "op3"], ["op4"], True),
        (["op2"], ["op3"], False),
        (["op2"], ["op5"], False),
    ],
)
def test_a_pair_is_meant_either_way_round_and_when_fused_already(
    some: list[str], others: list[str], expected: bool
) -> None:
    assert are_nodes(Node("2", "3"), Node("4"), some, others) is expected


def test_the_next_kernel_s_number_is_read_without_taking_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # In place of torch's module, the attributes that are read of it: importing it takes seconds, and the
    # real one is counted in the conversation with the debugger.
    wrapper, inner, virtualized = (ModuleType(name) for name in ("wrapper", "inner", "virtualized"))
    counter = itertools.count(7)
    wrapper.__dict__.update(_names_iter=counter)
    inner.__dict__.update(parent_wrapper=wrapper)
    virtualized.__dict__.update(V=ModuleType("V"))
    virtualized.V.graph = ModuleType("graph")
    virtualized.V.graph.wrapper_code = inner
    monkeypatch.setitem(sys.modules, "torch._inductor.virtualized", virtualized)
    assert (next_kernel(), next_kernel(), next(counter)) == (7, 7, 7)
    wrapper._names_iter = iter([])
    with pytest.raises(ValueError, match="kernels are counted by"):
        next_kernel()
