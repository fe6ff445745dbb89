from __future__ import annotations

import functools
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from inductor_probe.analysis.annotation.annotate import annotate
from inductor_probe.analysis.index import value_of
from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.bench_file.compile_settings import vector_bits
from inductor_probe.cpp_program.memory import Bounds, bounds, recorded_sizes
from inductor_probe.cpp_program.program import cpp_program
from inductor_probe.errors import ProbeError
from inductor_probe.files import read_text
from inductor_probe.machine.toolchain import compile_command
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.manifest import InputFact
from tests.conftest import all_graph_dirs
from tests.dumps import read_at

MADE = re.compile(
    r'(?P<type>[\w:]+)\* (?P<name>\w+) = program\.memory<.*?>\("\w+", ".*?", (?P<elements>\d+), '
    r"Use::(?P<use>\w+)(?:, (?P<low>-?\d+), (?P<high>-?\d+))?\);"
)
pytestmark = pytest.mark.usefixtures("warm")

INDUCTOR = Path(__file__).with_name("kernel_by_inductor.py")


def cpp_row(graph: CompiledGraph, at: int = 0) -> KernelRow:
    return [row for row in kernel_rows(graph) if row.backend == "cpp"][at]


def sizes_of(graph: CompiledGraph) -> dict[str, int]:
    return recorded_sizes(graph, read_text(graph.folder.path / "output_code.py"))


def program_of(graph: CompiledGraph, at: int = 0) -> str:
    return cpp_program(cpp_row(graph, at), sizes=sizes_of(graph))


def memories(program: str) -> dict[str, dict[str, str | None]]:
    return {made["name"]: made.groupdict() for made in MADE.finditer(program)}


def test_memory_is_as_large_as_the_dump_says(read: Callable[..., CompiledGraph]) -> None:
    graph = read("torch-2.13.0-cpu/hflip_cl")
    program = program_of(graph)
    row = cpp_row(graph)
    found = memories(program)
    assert list(found) == [arg.name for arg in row.args]
    for passed in row.launches[0].passed:
        layout = passed.layout
        assert layout is not None
        assert layout.size is not None
        assert passed.arg is not None
        product = 1
        for length in layout.size:
            assert isinstance(length, int)
            product *= length
        assert found[passed.arg.name]["elements"] == str(product)  # dense, so extents are products
    assert f"{{ kernel({', '.join(found)}); }}" in program
    assert row.source.strip() in program


def test_symbolic_sizes_take_the_recorded_values(read: Callable[..., CompiledGraph]) -> None:
    graph = read("torch-2.13.0-cpu-programs/symbolic")
    sizes = sizes_of(graph)
    assert (sizes["s77"], sizes["s27"], sizes["s17"]) == (5, 12, 7)
    program = program_of(graph)
    assert "const int64_t ks0 = 12;  // s27" in program
    assert {"12", "60", "84", "144"} == {each["elements"] for each in memories(program).values()}
    other = cpp_program(cpp_row(graph), sizes={**sizes, "s77": 6})
    assert "const int64_t ks1 = 6;  // s77" in other


def test_an_unknown_size_is_asked_for(read: Callable[..., CompiledGraph]) -> None:
    graph = read("torch-2.13.0-cpu-programs/unbacked")
    with pytest.raises(
        ProbeError, match=r"buf5, in_out_ptr0 of cpp_fused_mul_1, is u0, .* what u0 was"
    ) as caught:
        cpp_program(cpp_row(graph, 1), sizes=sizes_of(graph))
    assert caught.value.hint == "give it: --size u0=16"
    assert "const int64_t ks0 = 16" in cpp_program(cpp_row(graph, 1), sizes={"u0": 16})


def test_every_cpp_kernel_of_the_fixtures_becomes_a_program() -> None:

    count = 0
    for path in all_graph_dirs():
        graph = read_at(path)
        for row in kernel_rows(graph):
            if row.backend == "cpp":
                program = cpp_program(row, sizes={"u0": 4, **sizes_of(graph)})
                assert program.count("int main(int argc, char** argv)") == 1
                includes = re.findall(r"^#include (.)", program, re.MULTILINE)
                assert set(includes) == {"<"}
                count += 1
    assert count > 40


def test_indices_stay_inside_what_the_kernel_checks(read: Callable[..., CompiledGraph]) -> None:
    graph = read("torch-2.13.0-cpu-programs/scatters")
    made = memories(program_of(graph))["in_ptr1"]
    assert (made["type"], made["low"], made["high"]) == ("int64_t", "0", "9")


def test_recorded_ranges_of_integers_are_preferred(read: Callable[..., CompiledGraph]) -> None:
    graph = read("torch-2.13.0-cpu-programs/scatters")
    row = cpp_row(graph)
    (name,) = [p.buffer for p in row.launches[0].passed if p.arg and p.arg.name == "in_ptr1"]
    fact = InputFact(str(name), "tensor", minimum=3, maximum=5)
    made = memories(cpp_program(row, sizes=sizes_of(graph), inputs=[fact]))["in_ptr1"]
    assert (made["low"], made["high"]) == ("3", "5")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("auto tmp0 = in_ptr0[x]; TORCH_CHECK((0 <= tmp0) & (tmp0 < 20L), 'm');", Bounds(20, False)),
        ("auto tmp0 = in_ptr0[x]; auto tmp1 = tmp0; in_ptr1[tmp1 + 3L];", Bounds(None, True)),
        ("auto tmp0 = in_ptr0[x]; TORCH_CHECK((0 <= tmp0) & (tmp0 < ks1), 'm');", Bounds("ks1", False)),
        (
            "auto tmp0 = in_ptr0[x];\nauto tmp2 =\n[&]\n{\n int y = 1; return tmp0;\n}\n()\n;\n"
            "TORCH_CHECK((V((at::vec::VectorizedN<int64_t,2>(0) <= tmp2) & "
            "(tmp2 < at::vec::VectorizedN<int64_t,2>(20L)))).all_masked(), 'm');",
            Bounds(20, False),
        ),
        ("auto tmp0 = in_ptr0[x]; out_ptr0[x] = tmp0;", None),
    ],
)
def test_bounds(text: str, expected: Bounds | None) -> None:
    pointers = frozenset({"in_ptr0", "in_ptr1", "out_ptr0"})
    assert bounds(f"kernel()\n{{\n{text}\n}}", pointers).get("in_ptr0") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s0*(s1 + 2)", 35),
        ("Max(1, s0 - 9)", 1),
        ("FloorDiv(s0, 2)", 2),
        ("(s0 + 1)//2", 3),
        ("u9", None),
        ("__import__('os').getpid()", None),
        ("9**9**9", None),
        ("s0/2", None),
        ("(" * 5000, None),
    ],
)
def test_sizes_are_evaluated_and_nothing_else_is(text: str, expected: int | None) -> None:
    assert value_of(text, {"s0": 5, "s1": 5}) == expected


def test_a_view_shares_the_memory_of_its_buffer(read: Callable[..., CompiledGraph]) -> None:
    """Two parameters that are passed parts of one buffer must not get memory each."""
    row = cpp_row(read("torch-2.13.0-cpu/hflip_cl"))
    (launch,) = row.launches
    first, second = launch.passed
    view = replace(second, text=f"reinterpret_tensor({first.text}, (2, 2), (2, 1), 4)", buffer=first.buffer)
    program = cpp_program(replace(row, launches=(replace(launch, passed=(first, view)),)))
    assert f"{second.arg.name} = reinterpret_cast<uint8_t*>({first.arg.name}_memory) + 4;" in program  # type: ignore[union-attr]
    assert program.count("program.memory<") == 1
    assert "Use::inout" in program


def test_text_of_a_dump_cannot_leave_its_comment(read: Callable[..., CompiledGraph]) -> None:
    row = replace(cpp_row(read("torch-2.13.0-cpu/hflip_cl")), graph="g\n#error out\\")
    head = cpp_program(row, torch_version="2\r#error").partition("#include")[0]
    assert all(line.startswith("//") for line in head.splitlines() if line)
    assert "\\" not in head


def test_line_directives_are_counted_in_the_program(read: Callable[..., CompiledGraph]) -> None:
    for name in ("torch-2.13.0-cpu/aa_separable_cl", "torch-2.1.2-cpu/hflip_cl"):
        graph = read(name)
        row = cpp_row(graph)
        text = annotate(graph, row.name)
        program = cpp_program(row, sizes=sizes_of(graph), annotated=text)
        lines = program.splitlines()
        back = [at for at, line in enumerate(lines, 1) if re.match(rf'#line \d+ "{row.name}.cpp"', line)]
        assert len(back) == len(re.findall(rf'^#line \d+ "{row.name}.cpp"', text, re.MULTILINE))
        for at in back:
            assert int(lines[at - 1].split()[1]) == at + 1


def test_annotated_text_is_compiled_with_the_flags_of_the_program(
    read: Callable[..., CompiledGraph],
) -> None:
    graph = read("torch-2.13.0-cpu/aa_separable_cl")
    row = cpp_row(graph)
    program = re.search(r"g\+\+ \S+ (?P<flags>.*) -I\$TORCH", cpp_program(row, sizes=sizes_of(graph)))
    annotated = re.search(r"g\+\+ -c FILE (?P<flags>.*) -ITORCH", annotate(graph, row.name))
    assert program is not None
    assert annotated is not None
    assert annotated["flags"] == program["flags"]
    assert "-ffp-contract=off" in annotated["flags"]


def test_only_cpp_kernels_that_are_launched(read: Callable[..., CompiledGraph]) -> None:
    row = cpp_row(read("torch-2.13.0-cpu/hflip_cl"))
    with pytest.raises(ProbeError, match="is a triton kernel, not a C\\+\\+ one"):
        cpp_program(replace(row, backend="triton"))
    with pytest.raises(ProbeError, match="is never launched"):
        cpp_program(replace(row, launches=()))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[CompiledGraph, KernelRow], Path]:
    """Compile a kernel's program as inductor would, and return it."""

    done: dict[str, Path] = {}
    command_for = functools.cache(compile_command)  # torch is asked in a process of its own

    def _built(graph: CompiledGraph, row: KernelRow) -> Path:
        if row.source not in done:
            folder = tmp_path_factory.mktemp("program")
            command = command_for(vector_bits([row.details]))
            line = command.program(f"{row.name}.cpp", row.name)
            text = cpp_program(row, sizes=sizes_of(graph), command=line)
            (folder / f"{row.name}.cpp").write_text(text)
            assert f"//   {shlex.join(line)}\n" in text
            subprocess.run(line, cwd=folder, check=True, capture_output=True)
            done[row.source] = folder / row.name
        return done[row.source]

    return _built


@pytest.mark.compiles
@pytest.mark.parametrize(
    ("dump", "at"),
    [("torch-2.13.0-cpu-programs/low_precision", 0), ("torch-2.13.0-cpu-programs/scatters", 0)],
)
def test_the_program_computes_what_inductor_makes_of_the_kernel(
    read: Callable[..., CompiledGraph],
    built: Callable[[CompiledGraph, KernelRow], Path],
    dump: str,
    at: int,
) -> None:
    graph = read(dump)
    row = cpp_row(graph, at)
    program = built(graph, row)
    ran = subprocess.run([program, "7", "3"], check=True, capture_output=True, text=True).stdout
    assert ran.startswith(f"{row.name}: median ")
    assert ", 7 calls\n" in ran
    again = subprocess.run([program, "30", "3"], check=True, capture_output=True, text=True).stdout
    checksums = dict(re.findall(r"^(\w+): .* bits (\w{16}) ", ran, re.MULTILINE))
    assert checksums == dict(re.findall(r"^(\w+): .* bits (\w{16}) ", again, re.MULTILINE))

    task = {
        "source": row.source,
        "types": [arg.type for arg in row.args],
        "seed": 3,
        "simdlen": vector_bits([row.details]),
        "memories": list(memories(Path(f"{program}.cpp").read_text()).values()),
    }
    said = subprocess.run(
        [sys.executable, INDUCTOR], input=json.dumps(task), check=True, capture_output=True, text=True
    )
    assert checksums == json.loads(said.stdout.splitlines()[-1])


@pytest.mark.compiles
def test_a_kernel_that_raises_says_so(
    read: Callable[..., CompiledGraph], built: Callable[[CompiledGraph, KernelRow], Path]
) -> None:
    graph = read("torch-2.13.0-cpu-programs/scatters")
    row = cpp_row(graph)
    wrong = replace(row, source=row.source.replace("tmp7 < 10L", "tmp7 < 0L"))
    assert wrong.source != row.source
    ended = subprocess.run([built(graph, wrong), "1"], check=False, capture_output=True, text=True)
    assert ended.returncode == 1
    assert f"{row.name} raised: " in ended.stderr
    assert "index out of bounds" in ended.stderr
    usage = subprocess.run([built(graph, row), "many"], check=False, capture_output=True, text=True)
    assert usage.returncode == 2
    assert "usage: " in usage.stderr
