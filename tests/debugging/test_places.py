"""Places by name, line, set and subject, found in the sources of the installed torch without importing it."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from inductor_probe.capture.torch_places import DECISION, PLACES, TOPICS, places_of
from inductor_probe.debugging.breakpoints import Breakpoint
from inductor_probe.debugging.places import BreakpointPlan, plan
from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.model.codec import from_json, to_json

LINES = "torch._inductor.codegen.cpp:LoopLevel.lines"
CAN_FUSE = "torch._inductor.scheduler:Scheduler.can_fuse"


def planned(
    places: Sequence[str] = (), subjects: Sequence[str] = (), cwd: Path = Path("/")
) -> BreakpointPlan:
    return plan(places, subjects, cwd, cwd)


def one(place: str, cwd: Path = Path("/")) -> Breakpoint:
    (stop,) = planned([place], cwd=cwd).breakpoints
    return stop


def statement(stop: Breakpoint) -> str:
    tree = ast.parse(Path(stop.path).read_bytes())
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and (node.lineno, node.col_offset) == (stop.line, stop.column)
    ]
    return ast.unparse(found[0]).partition("\n")[0]


NEWER = {
    "torch._inductor.ir:ArgReduction.create": (2, 13),
    "torch._inductor.scheduler:SchedulerNode.restore_loop_state": (2, 13),
    "torch._inductor.kernel.conv:convolution_backward_lowering": (2, 13),
    **{
        f"torch._inductor.lowering:{name}": (2, 13)
        for name in ("kthvalue", "median_default", "median_dim", "mode_default", "topk")
    },
    "torch._inductor.codegen.simd:SIMDScheduling.select_tiling_with_memory": (2, 14),
    **{str(place): (2, 14) for place in PLACES if place.module.startswith("torch._inductor.heuristics.")},
}
"""Places that not all releases which are supported have, and since when."""

IMPORTED = [
    str(place)
    for place in PLACES
    if "." not in place.name
    and place.topics == (DECISION,)
    and ("fallback" in place.name or place.name == "guard_or_false")
]


def is_imported(place: str) -> bool:
    """Return whether the module of a place imports its name, or has it."""
    module, _, name = place.partition(":")
    spec = importlib.util.find_spec("torch")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    root = Path(spec.submodule_search_locations[0]).parent
    tree = ast.parse((root / f"{module.replace('.', '/')}.py").read_bytes())
    names = {
        alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    return name in names | {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("place", [str(place) for place in PLACES])
def test_every_place_of_the_table_is_in_the_installed_torch(place: str) -> None:
    """A failure says which rows of `capture/torch_places.py` this torch lacks: mend or mark them there."""
    if place in IMPORTED:  # a recorder wraps it where it is called, in the module that imports it
        assert is_imported(place)
        return
    module, _, name = place.partition(":")
    if module == "torch.cuda":  # most of it is imported there with a star
        assert callable(getattr(torch.cuda, name))
        return
    release = tuple(map(int, torch.__version__.split(".")[:2]))
    if release < NEWER.get(place, release):
        with pytest.raises(NotFoundError, match=r"is not available on torch|has no module"):
            planned([place])
        return
    stops = planned([place]).breakpoints
    assert {stop.place for stop in stops} == {place}


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_is_its_places(topic: str) -> None:
    stops = planned([topic])
    assert stops.missing == ()
    assert [stop.place for stop in stops.breakpoints] == [str(place) for place in places_of(topic)]


@pytest.mark.parametrize("subject", ["buf3", "op3", "op3,op4", "cpp_fused_add_0", "triton_poi_fused_add_12"])
def test_every_place_of_a_subject_is_in_the_installed_torch(subject: str) -> None:
    found = planned(subjects=[subject])
    assert found.missing == ()
    assert found.breakpoints
    assert all(stop.condition and stop.event for stop in found.breakpoints)


def test_torch_is_not_imported_to_find_a_place() -> None:
    code = (
        "import sys; from pathlib import Path; from inductor_probe.debugging import plan;"
        f"assert plan([{LINES!r}], ['buf0'], Path('/')).breakpoints; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_function_stops_at_its_first_statement() -> None:
    assert statement(one(LINES)) == "offset_expr = cexpr_index(self.offset)"


def test_a_docstring_is_no_statement() -> None:
    found = one(CAN_FUSE)
    function = next(
        node
        for node in ast.walk(ast.parse(Path(found.path).read_bytes()))
        if isinstance(node, ast.FunctionDef) and node.lineno < found.line <= (node.end_lineno or 0)
    )
    assert ast.get_docstring(function)
    assert found.line == function.body[1].lineno


def test_the_package_s_name_may_be_left_out() -> None:
    assert one("codegen.cpp:LoopLevel.lines") == one(LINES)


def test_what_is_made_has_its_name_where_a_subject_stops() -> None:
    realised = planned(subjects=["buf3"]).breakpoints[0]
    assert statement(realised) == "return name"
    assert realised.condition == "name == 'buf3'"


@pytest.mark.parametrize("file", ["torch/_inductor/codegen/cpp.py", None])
def test_a_line_is_found_by_path_below_the_package_or_whole(file: str | None) -> None:
    expected = one(LINES)
    found = one(f"{file or expected.path}:{expected.line}")
    assert (found.module, found.line, found.column) == (expected.module, expected.line, expected.column)


SOURCE = '''\
import os

class Thing:
    @property
    def first(
        self,
    ):
        """Words."""
        # a comment
        if self.a:
            total = sum([
                1,
                2,
            ])
        else:

            total = 0
        try:
            return total
        except ValueError:
            return None

def one_line(x): return x

def stub(): "nothing runs"

def outer(y):
    def inner(z):
        return z + y
    return inner
'''


@pytest.fixture
def mod(tmp_path: Path) -> Path:
    (tmp_path / "mod.py").write_text(SOURCE)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (4, (10, 8)),  # the decorator: the function's entry
        (5, (10, 8)),
        (9, (10, 8)),  # a comment: what follows
        (10, (10, 8)),
        (11, (11, 12)),
        (13, (11, 12)),  # inside a call over several lines
        (15, (17, 12)),  # `else:` and an empty line
        (18, (18, 8)),
        (20, (21, 12)),  # `except` is no statement
        (23, (23, 17)),  # not the `def` that starts on the same line
        (29, (29, 8)),
    ],
)
def test_a_line_is_that_of_the_statement_it_belongs_to(
    mod: Path, line: int, expected: tuple[int, int]
) -> None:
    stop = one(f"mod.py:{line}", cwd=mod)
    assert (stop.line, stop.column) == expected


def test_a_nested_function_has_two_spellings(mod: Path) -> None:
    assert one("mod:outer.<locals>.inner", mod) == one("mod:outer.inner", mod)


def test_a_condition_may_use_arguments_module_names_and_builtins(mod: Path) -> None:
    condition = "os.sep and any(len(str(y)) > k for k in range(3))"
    assert one(f"mod:outer if {condition}", mod).condition == condition


@pytest.mark.parametrize(
    ("place", "message", "hint"),
    [
        ("torch._inductor.codegen.cpp:LoopLevel.line", "is not available on torch 2.", "LoopLevel.lines"),
        ("torch._inductor.codegen.ccp:LoopLevel.lines", "torch._inductor.codegen has no module ccp", "cpp"),
        ("no_such_package:f", "there is no module no_such_package", "installed"),
        ("torch/_inductor/no_such.py:12", "torch._inductor has no module no_such", None),
        ("torch/_inductor/codegen/cpp.py:1", "is in no function", "the next one is"),
        ("mod.py:999", "is in no function", None),
        ("mod:stub", "has no statement to stop at", None),
    ],
)
def test_a_place_that_is_gone_is_said(mod: Path, place: str, message: str, hint: str | None) -> None:
    with pytest.raises(NotFoundError) as raised:
        one(place, mod)
    assert message in raised.value.message
    if hint:
        assert hint in str(raised.value.hint)


def test_a_place_that_is_gone_does_not_stop_the_others() -> None:
    found = planned([f"{CAN_FUSE}_no_more", CAN_FUSE])
    assert [stop.place for stop in found.breakpoints] == [CAN_FUSE]
    (sentence,) = found.missing
    assert "Scheduler.can_fuse_no_more is not available on torch 2." in sentence


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("fushion", "invalid place"),
        ("LoopLevel.lines", "invalid place"),
        ("fusion if True", "is a set of places and takes no condition"),
        (f"{CAN_FUSE} if nod1.get_name() == 'op3'", "there is no nod1 at"),
        (f"{CAN_FUSE} if node1 ==", "is not a Python expression"),
    ],
)
def test_a_slip_is_a_sentence(place: str, message: str) -> None:
    with pytest.raises(ProbeError) as raised:
        planned([place])
    assert message in raised.value.message
    assert raised.value.hint


def test_a_name_that_the_body_binds_is_not_there_at_its_entry() -> None:
    with pytest.raises(ProbeError, match="there is no offset_expr at"):
        planned([f"{LINES} if offset_expr"])
    line = one(LINES).line + 2
    assert one(f"torch/_inductor/codegen/cpp.py:{line} if offset_expr").condition == "offset_expr"


@pytest.mark.parametrize("subject", ["buf", "3", "op3,", "op3;op4", "my_kernel", "triton_poi"])
def test_a_subject_is_a_buffer_node_pair_or_kernel(subject: str) -> None:
    with pytest.raises(ProbeError, match="it is not a buffer, node, pair of nodes or kernel"):
        planned(subjects=[subject])


def test_stops_survive_a_command_line() -> None:
    stops = planned([LINES], ["buf3"]).breakpoints
    as_json = json.loads(json.dumps(to_json(stops)))
    assert tuple(from_json(Breakpoint, item) for item in as_json) == stops
