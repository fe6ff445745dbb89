"""How warps reach memory, by addresses that were followed through TTGIR: each figure worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.assembly.coalescing import warp_accesses
from inductor_probe.model.assembly import GlobalAccess, WarpAccess
from tests.conftest import DUMPS

pytestmark = pytest.mark.usefixtures("warm")

FILE = "/made/kernel.py"
ONE = "#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>"
FOUR = ONE.replace("sizePerThread = [1]", "sizePerThread = [4]")
HEAD = """\
{layout}
  tt.func public @kernel(%in_ptr0: !tt.ptr<f32> loc("in_ptr0"(#loc)), %ks0: i32 loc("ks0"(#loc))) attributes {{}} {{
    %three = arith.constant dense<3> : tensor<1024xi32, #blocked> loc(#loc1)
    %last = arith.constant dense<223> : tensor<1024xi32, #blocked> loc(#loc1)
    %width = arith.constant dense<224> : tensor<1024xi32, #blocked> loc(#loc1)
    %c1024_i32 = arith.constant 1024 : i32 loc(#loc1)
    %xoffset = tt.get_program_id x : i32 loc(#loc2)
    %xoffset_1 = arith.muli %xoffset, %c1024_i32 : i32 loc(#loc2)
    %range = tt.make_range {{end = 1024 : i32, start = 0 : i32}} : tensor<1024xi32, #blocked> loc(#loc2)
    %splat = tt.splat %xoffset_1 : i32 -> tensor<1024xi32, #blocked> loc(#loc2)
    %xindex = arith.addi %splat, %range : tensor<1024xi32, #blocked> loc(#loc2)
    %x0 = arith.remsi %xindex, %width : tensor<1024xi32, #blocked> loc(#loc2)
    %x1 = arith.divsi %xindex, %width : tensor<1024xi32, #blocked> loc(#loc2)
    %size = tt.splat %ks0 : i32 -> tensor<1024xi32, #blocked> loc(#loc2)
    %pointers = tt.splat %in_ptr0 : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #blocked> loc(#loc2)
{index}
    %address = tt.addptr %pointers, %index : tensor<1024x!tt.ptr<f32>, #blocked>, tensor<1024xi32, #blocked> loc(#loc3)
    %tmp0 = tt.load %address{mask} : tensor<1024x!tt.ptr<f32>, #blocked> loc(#loc4)
  }} loc(#loc)
#loc = loc("/made/kernel.py":18:0)
#loc1 = loc(unknown)
#loc2 = loc("/made/kernel.py":21:28)
#loc3 = loc("/made/kernel.py":26:30)
#loc4 = loc("tmp0"(#loc3))
"""  # noqa: E501 - lines as Triton prints them


def access(index: str, *, layout: str = ONE, bits: int = 32, mask: str = "") -> WarpAccess:
    """Return the only access of a kernel with lines of TTGIR that compute `%index`."""
    text = HEAD.format(layout=layout, index=index, mask=mask)
    (row,) = warp_accesses(text, FILE, [GlobalAccess(26, "load", "", bits, 1)])
    assert (row.line, row.kind, row.item_bits) == (26, "load", 32)
    return row


def line(name: str, operation: str, *operands: str) -> str:
    return f"    %{name} = {operation} {', '.join(operands)} : tensor<1024xi32, #blocked> loc(#loc3)"


def figures(row: WarpAccess) -> tuple[Any, ...]:
    return row.pattern, row.stride, row.sectors, row.sectors_once, row.best


def test_neighbouring_threads_that_read_neighbours_touch_as_few_sectors_as_can_be() -> None:
    row = access(line("index", "arith.addi", "%xindex", "%xindex").replace("addi %xindex, ", "extsi "))
    assert figures(row) == ("contiguous", 1, 4.0, 4.0, 4.0)  # 32 threads x 4 bytes / 32


def test_a_stride_of_three_touches_three_times_as_many() -> None:
    """Threads reach bytes 0, 12, ..., 372: sectors 0 to 11."""
    assert figures(access(line("index", "arith.muli", "%xindex", "%three"))) == (
        "strided",
        3,
        12.0,
        12.0,
        4.0,
    )


def test_vectors_of_four_are_contiguous_and_single_elements_of_them_are_not() -> None:
    """Four floats a thread: in one request 512 bytes, or in four that each touch all of the 16 sectors."""
    index = line("index", "arith.extsi", "%xindex")
    assert figures(access(index, layout=FOUR, bits=128)) == ("contiguous", 1, 16.0, 16.0, 16.0)
    assert figures(access(index, layout=FOUR, bits=32)) == ("strided", 4, 16.0, 4.0, 4.0)


def test_a_flip_goes_backwards_until_a_row_ends() -> None:
    """223 - x0 + 224 * x1: a row of 224 floats is 7 warps long, and begins on a sector."""
    index = "\n".join((
        line("back", "arith.subi", "%last", "%x0"),
        line("row", "arith.muli", "%x1", "%width"),
        line("index", "arith.addi", "%back", "%row"),
    ))  # fmt: skip
    assert figures(access(index)) == ("reversed", -1, 4.0, 4.0, 4.0)


def test_one_address_is_one_sector() -> None:
    assert figures(access(line("index", "arith.extsi", "%three"))) == ("same-address", 0, 1.0, 1.0, 1.0)


def test_a_loaded_index_may_lie_anywhere() -> None:
    """For each thread another one: at most 32 sectors. The same for all of them: one contiguous part."""
    gather = "\n".join((
        "    %where = tt.addptr %pointers, %xindex : tensor<1024x!tt.ptr<f32>, #blocked> loc(#loc2)",
        "    %loaded = tt.load %where : tensor<1024x!tt.ptr<f32>, #blocked> loc(#loc2)",
        line("index", "arith.muli", "%loaded", "%width"),
    ))  # fmt: skip
    text = HEAD.format(layout=ONE, index=gather, mask="")
    rows = [row for row in warp_accesses(text, FILE, []) if row.line == 26]
    assert [(row.pattern, row.sectors, row.best) for row in rows] == [("indirect", 32.0, 4.0)]
    row = gather.replace("%pointers, %xindex", "%pointers, %three").replace("%width", "%three")
    text = HEAD.format(
        layout=ONE, index=f"{row}\n{line('index', 'arith.addi', '%index', '%xindex')}", mask=""
    )
    rows = [row for row in warp_accesses(text, FILE, []) if row.line == 26]
    assert [(row.pattern, row.sectors, row.best) for row in rows] == [("contiguous", 4.0, 4.0)]


def test_a_size_that_is_not_known_leaves_rows_apart_but_not_a_contiguous_part() -> None:
    assert figures(access(line("index", "arith.remsi", "%xindex", "%size")))[0] == "unknown"
    shifted = line("index", "arith.addi", "%xindex", "%size")
    assert figures(access(shifted)) == ("contiguous", 1, 4.0, 4.0, 4.0)


def test_threads_that_a_mask_leaves_out_touch_nothing() -> None:
    """x0 < 3 holds in the first warp for three threads; a program that none takes part in is no request."""
    mask = "    %mask = arith.cmpi slt, %xindex, %three : tensor<1024xi32, #blocked> loc(#loc3)\n" + line(
        "index", "arith.extsi", "%xindex"
    )
    row = access(mask, mask=", %mask")
    assert (row.pattern, row.sectors, row.best) == ("contiguous", 1.0, 1.0)


def test_a_transposed_layout_reads_along_its_order() -> None:
    """8 threads along dimension 0, 4 elements each: parts of 32 floats along it."""
    text = """\
#blocked = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
  tt.func public @kernel(%in_ptr0: !tt.ptr<f32> loc("in_ptr0"(#loc))) attributes {} {
    %many = arith.constant dense<1024> : tensor<1x32xi32, #blocked> loc(#loc)
    %y = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #blocked}>> loc(#loc)
    %x = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked}>> loc(#loc)
    %y1 = tt.expand_dims %y {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<32x1xi32, #blocked> loc(#loc)
    %x1 = tt.expand_dims %x {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x32xi32, #blocked> loc(#loc)
    %x2 = arith.muli %x1, %many : tensor<1x32xi32, #blocked> loc(#loc)
    %y3 = tt.broadcast %y1 : tensor<32x1xi32, #blocked> -> tensor<32x32xi32, #blocked> loc(#loc)
    %x3 = tt.broadcast %x2 : tensor<1x32xi32, #blocked> -> tensor<32x32xi32, #blocked> loc(#loc)
    %index = arith.addi %y3, %x3 : tensor<32x32xi32, #blocked> loc(#loc)
    %pointers = tt.splat %in_ptr0 : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>, #blocked> loc(#loc)
    %address = tt.addptr %pointers, %index : tensor<32x32x!tt.ptr<f32>, #blocked>, tensor<32x32xi32, #blocked> loc(#loc)
    %value = tt.load %address : tensor<32x32x!tt.ptr<f32>, #blocked> loc(#loc)
#loc = loc("/made/kernel.py":9:0)
"""  # noqa: E501 - lines as Triton prints them
    (row,) = warp_accesses(text, FILE, [GlobalAccess(9, "load", "", 128, 1)])
    assert (*figures(row), row.run) == ("contiguous", 1, 16.0, 16.0, 16.0, 32.0)
    (row,) = warp_accesses(text.replace("%y1 :", "%x1 :", 1), FILE, [GlobalAccess(9, "load", "", 128, 1)])
    assert row.sectors is not None


@given(st.text())
def test_any_text_is_taken_for_ttgir(text: str) -> None:
    assert list(warp_accesses(text, FILE, [])) == []
    for index in (text, line("index", text), line("index", "arith.addi", text, text)):
        list(warp_accesses(HEAD.format(layout=ONE, index=index, mask=""), FILE, []))


@pytest.mark.compiles
def test_accesses_of_a_real_kernel_are_followed(probe: Callable[..., Any]) -> None:
    """A gather with the weights 5 * x0: a thread has 4 elements, so that its neighbour is 20 floats on."""
    kernel = "triton_poi_fused__to_copy_add_arange_clamp_div_index_mul_sub_sum_unsqueeze_2"
    dump = DUMPS / "torch-2.11.0-cuda" / "interpolate_aa_channels_last"
    ran = probe("asm", kernel, dump, "--trust", "--sweep", "--json")
    assert ran.status == 0, ran.err
    (record,) = json.loads(ran.out)["kernels"]
    origins = [config["origin"] for config in record["configs"]]
    assert origins[:2] == ["inductor", "inductor"]
    assert origins.count("grid") >= 8
    assert len({json.dumps(config["config"], sort_keys=True) for config in record["configs"]}) == len(origins)
    source = record["source"].split("\n")
    rows = {source[row["line"] - 1].strip(): row for row in record["configs"][0]["warp_accesses"]}
    weights = next(row for text, row in rows.items() if "in_ptr1 + (5*x0)" in text)
    assert (weights["pattern"], weights["stride"], weights["sectors"]) == ("strided", 20, 32.0)
    store = next(row for text, row in rows.items() if text.startswith("tl.store"))
    assert (store["pattern"], store["sectors"], store["best"]) == ("contiguous", 16.0, 16.0)
