"""Statements of wrappers that torch 2.14 and 2.15 print first; whole dumps of both are fixtures."""

from __future__ import annotations

from pathlib import Path

from inductor_probe.model.code import OutputCode
from inductor_probe.reader.output_code import parse_output_code

PATH = Path("output_code.py")


def code_of(body: str, *, above: str = "", takes: str = "arg0_1, arg1_1 = args") -> OutputCode:
    """Return what is read of a wrapper with the statements `body`, which is all understood."""
    statements = "".join(f"    {line}\n" for line in body.splitlines())
    code = parse_output_code(f"{above}\ndef call(args):\n    {takes}\n    args.clear()\n{statements}", PATH)
    assert code.problems == ()
    assert code.added == ()
    return code


def test_a_grouped_assertion_has_the_layout_of_each_input() -> None:
    code = code_of(
        "assert_size_stride_grouped((arg0_1, arg1_1), ((s77, 4), (3, )), ((4, 1), (2, )), 'input')\n"
        "return (arg0_1, )"
    )
    layouts = {one.name: one.layout for one in code.allocations}
    first, second = layouts["arg0_1"], layouts["arg1_1"]
    assert first is not None
    assert second is not None
    assert (first.kind, first.size, first.stride) == ("Input", ("s77", 4), (4, 1))
    assert (second.kind, second.size, second.stride) == ("Input", (3,), (2,))


def test_an_assertion_of_metadata_has_the_dtype_of_what_an_operator_returned() -> None:
    code = code_of(
        "buf0 = torch.ops.rd.twice.default(arg0_1)\n"
        "assert_tensor_metadata(buf0, (8, 4), (4, 1), torch.bfloat16, 'torch.ops.rd.twice.default')\n"
        "return (buf0, )"
    )
    (layout,) = (one.layout for one in code.allocations if one.name == "buf0")
    assert layout is not None
    assert (layout.dtype, layout.size, layout.stride) == ("bfloat16", (8, 4), (4, 1))
    assert [call.target for call in code.externs] == ["torch.ops.rd.twice.default"]


def test_a_size_that_is_taken_from_an_input_is_a_symbol_and_no_memory() -> None:
    code = code_of(
        "arg0_1_size = arg0_1.size()\n"
        "s77 = arg0_1_size[0]\n"
        "arg0_1_size_1 = arg0_1_size[1]\n"
        "s27 = arg0_1_size_1 // 2\n"
        "s5 = arg1_1.stride()[0]\n"
        "return (arg0_1, )"
    )
    values = {symbol.name: symbol.value for symbol in code.symbols}
    assert values["s77"] == "arg0_1.size(0)"
    assert values["s27"] == "arg0_1_size_1 // 2"
    assert values["s5"] == "arg1_1.stride()[0]"
    assert "s77" not in {one.name for one in code.allocations}


def test_a_call_by_the_name_that_a_profile_shows_is_that_of_the_operator() -> None:
    above = (
        "def extern_kernels_extern_kernels_mm_0(*args, **kwargs):\n"
        "    # Extra indirection is only enabled for profiler timeline provenance.\n"
        "    return extern_kernels.mm(*args, **kwargs)\n"
        "def extern_kernels_torch_ops_aten_cumsum_default_1(*args, **kwargs):\n"
        "    return torch.ops.aten.cumsum.default(*args, **kwargs)\n"
    )
    code = code_of(
        "buf0 = empty_strided_cpu((8, 8), (8, 1), torch.float32)\n"
        "extern_kernels_extern_kernels_mm_0(arg0_1, arg1_1, out=buf0)\n"
        "buf1 = extern_kernels_torch_ops_aten_cumsum_default_1(buf0, 1)\n"
        "return (buf1, )",
        above=above,
    )
    calls = [(call.target, call.outputs) for call in code.externs]
    assert calls == [("extern_kernels.mm", ("buf0",)), ("torch.ops.aten.cumsum.default", ("buf1",))]
    assert code.functions == ()


def test_streams_and_memory_pools_by_index_are_no_operators() -> None:
    code = code_of(
        "_coor_device_idx = torch.cuda.current_device()\n"
        "with torch.cuda._DeviceGuard(_coor_device_idx):\n"
        "    torch.cuda.set_device(_coor_device_idx)\n"
        "    default_stream = torch.cuda.current_stream()\n"
        "    stream1 = _get_stream_by_index(3)\n"
        "    arg0_1_orig = arg0_1\n"
        "    with stream1:\n"
        "        arg0_1 = copy_if_misaligned(arg0_1_orig)\n"
        "        with torch.cuda.use_mem_pool(get_external_object_by_index(2), device=0):\n"
        "            buf0 = empty_strided_cuda((8, ), (1, ), torch.float32)\n"
        "return (buf0, )"
    )
    assert code.externs == ()
    assert {one.name: one.kind for one in code.allocations} == {
        "arg0_1_orig": "reuse",
        "arg0_1": "copy",
        "buf0": "new",
    }


def test_a_branch_by_a_selector_that_is_read_once_is_read_as_one_of_a_condition() -> None:
    code = code_of(
        "buf2_selector = int(buf1.item())\n"
        "buf2 = [None] * 1\n"
        "if buf2_selector == 0:\n"
        "    buf2[0] = arg0_1.clone()\n"
        "elif buf2_selector == 1:\n"
        "    buf2[0] = arg1_1.clone()\n"
        "else:\n"
        "    buf2[0] = arg1_1.clone()\n"
        "return (buf2, )"
    )
    assert [(symbol.name, symbol.value) for symbol in code.symbols] == [("buf2_selector", "int(buf1.item())")]
    assert [call.outputs for call in code.externs] == [("buf2[0]",)] * 3
