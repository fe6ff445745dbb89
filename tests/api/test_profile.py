"""Where the time of a call goes, of graphs that are compiled here: rows, sums, traces."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

import inductor_probe as ip
from inductor_probe.api.profile import joined
from inductor_probe.bench.profiles_compared import compare_profiles
from inductor_probe.errors import ProbeError
from inductor_probe.model.bench import BenchSettings
from inductor_probe.model.call_parts import Side
from inductor_probe.model.codec import from_json, to_json
from inductor_probe.model.profile import PartKind, Profile, ProfileOutput, ProfilePart, TimelineSpan
from inductor_probe.model.remark import Subject, measured
from inductor_probe.model.timing import FlopCount
from inductor_probe.report.pages.profile import profile_sentence
from inductor_probe.report.plots.flame import flame_svg
from tests.conftest import DUMPS, Ran

pytestmark = [pytest.mark.compiles, pytest.mark.usefixtures("warm")]
SCRIPT = """
import torch
def heavy(x, y, z):
    small = x + 1
    large = torch.sin(y).exp().cos()
    return small, large, z @ z
inputs = torch.randn(64), torch.randn(640, 1000), torch.randn(16, 16)
for threads in (1, 2):
    torch._dynamo.reset()
    torch.set_num_threads(threads)
    torch.compile(heavy)(*inputs)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ip.Run:
    folder = tmp_path_factory.mktemp("profile")
    (folder / "heavy.py").write_text(SCRIPT)
    return ip.dump(folder / "heavy.py", out=folder)


@pytest.fixture(scope="module")
def one(run: ip.Run) -> ip.Profiles:
    return run.graphs[0].profile(BenchSettings(budget=0.3))


@pytest.fixture(scope="module")
def two(run: ip.Run) -> Profile:
    (profile,) = run.graphs[1].profile(BenchSettings(budget=0.3, threads=2)).profiles
    return profile


def test_the_parts_add_up_to_the_call_and_what_is_missing_is_a_row(one: ip.Profiles) -> None:
    (profile,) = one.profiles
    kinds = [part.kind for part in profile.parts]
    assert kinds == [
        "kernel", "library", "launches", "allocation", "check", "free", "other", "gap", "call",
    ]  # fmt: skip
    seconds = {part.kind: part.seconds for part in profile.parts}
    inside = sum(seconds[kind] for kind in kinds[:8])
    assert inside == pytest.approx(seconds["call"])
    assert min(seconds.values()) >= 0
    assert sum(line.seconds for line in profile.lines) <= seconds["call"] * (1 + 1e-9)
    assert profile.whole.share == pytest.approx(1.0)


def test_a_nest_with_a_thousand_times_the_work_comes_first(one: ip.Profiles, two: Profile) -> None:
    for profile in (*one.profiles, two):
        nests = [nest for nest in profile.nests if nest.number is not None]
        assert [nest.number for nest in nests] == list(range(1, len(nests) + 1))
        assert len(nests) == 2
        longest = max(nests, key=lambda nest: nest.seconds)
        shortest = min(nests, key=lambda nest: nest.seconds)
        assert [source.line for source in longest.sources] == [5]
        assert [source.line for source in shortest.sources] == [4]
        assert longest.moved == 2 * 640_000 * 4
        assert all(nest.nodes and nest.launches == 1 for nest in nests)
        (kernel,) = (part for part in profile.parts if part.kind == "kernel")
        outside = next(nest for nest in profile.nests if nest.number is None)
        assert kernel.seconds == pytest.approx(sum(nest.seconds for nest in nests) + outside.seconds)
        assert outside.seconds >= 0
        assert {node for nest in nests for node in nest.nodes} == {*kernel.nodes}


def test_each_nest_of_a_parallel_kernel_has_its_threads(two: Profile) -> None:
    nests = {nest.sources[0].line: nest for nest in two.nests if nest.number is not None}
    assert nests[5].threads == 2
    assert nests[4].threads == 1, "a loop that is too short for threads"
    assert all(0 < nest.busy <= 1 for nest in nests.values())
    assert {span.thread for span in two.timeline if span.kind == "nest"} == {0, 1}


def test_the_lines_are_those_of_the_file_and_each_ran_once(run: ip.Run, one: ip.Profiles) -> None:
    (profile,) = one.profiles
    text = (run.graphs[0].path / "output_code.py").read_text().split("\n")
    assert {line.span.path.name for line in profile.lines} == {"output_code.py"}
    for line in profile.lines:
        assert " ".join(part.strip() for part in text[line.span.first - 1 : line.span.last]) == line.code
        assert line.count == 1
    assert {line.kind for line in profile.lines} >= {"launch", "library", "allocation", "check", "free"}
    assert "return (" in profile.lines[-1].code


def test_what_reading_clocks_costs_is_measured_and_said(one: ip.Profiles) -> None:
    (profile,) = one.profiles
    (clock,) = profile.clocks
    assert clock.problem is None
    assert clock.notes == 2 + 2 + 1, "loop nests, what is measured at its start, and the launch itself"
    assert clock.note > 0
    assert profile.mark > 0
    assert "Reading clocks is subtracted" in repr(one)


def test_a_trace_has_each_line_kernel_and_nest_within_what_is_around_it(one: ip.Profiles) -> None:
    (profile,) = one.profiles
    events = [event for event in json.loads(one.chrome)["traceEvents"] if event["ph"] == "X"]
    assert len(events) == len(profile.timeline)
    by_kind: dict[str, list[dict[str, float]]] = {}
    for event in events:
        by_kind.setdefault(event["cat"], []).append(event)
    assert len(by_kind["wrapper"]) == len(profile.lines)
    assert len(by_kind["loop nest"]) == 2
    (kernel,) = by_kind["kernel"]
    (launch,) = (event for event in by_kind["wrapper"] if str(event["name"]).startswith(str(kernel["name"])))
    for outer, inner in ((launch, kernel), *((kernel, nest) for nest in by_kind["loop nest"])):
        assert outer["ts"] <= inner["ts"]
        assert inner["ts"] + inner["dur"] < outer["ts"] + outer["dur"]
    lines = by_kind["wrapper"]
    for before, after in pairwise(lines):
        assert before["ts"] + before["dur"] < after["ts"], "or a viewer sets the one around the other"


def test_it_shows_itself_and_its_record_can_be_read_back(one: ip.Profiles) -> None:
    assert "<table" in one._repr_html_()
    assert "loop nest 1" in one.markdown
    assert "lines of the wrapper" in repr(one.with_details())
    assert from_json(ProfileOutput, to_json(one.output)) == one.output


def test_the_command_writes_a_trace_and_no_file_over_another(
    run: ip.Run, probe: Callable[..., Ran], tmp_path: Path
) -> None:
    (tmp_path / "mine.json").write_text("mine")
    refused = probe("profile", run.graphs[0].path, "--chrome", "mine.json")
    assert (refused.status, "mine.json exists already" in refused.err) == (2, True)
    ran = probe("profile", run.graphs[0].path, "--budget", "50ms", "--chrome", "t.json", COLUMNS="80")
    assert ran.status == 0, ran.err
    assert all(len(line) <= 80 for line in ran.out.split("\n"))
    assert "Compiled call" in ran.out
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert (tmp_path / "mine.json").read_text() == "mine"


def test_two_profiles_are_compared_kernel_by_kernel_and_nest_by_nest(one: ip.Profiles, two: Profile) -> None:
    (same,) = one.compare(one).comparisons
    assert same.by == "compute"
    assert {part.standing for part in same.parts} == {"same"}
    ratios = [
        part.ratio for part in same.parts if part.kind in ("kernel", "nest", "call") and (part.a or 0) > 0
    ]
    assert set(ratios) == {1.0}
    kinds = [part.kind for part in same.parts]
    assert kinds[:4] == ["kernel", "nest", "nest", "nest"], "two loop nests, and what is outside of them"
    assert kinds[4:] == [part.kind for part in one.profiles[0].parts[1:]]
    other = replace(two, parts=tuple(part for part in two.parts if part.kind != "library"))
    (comparison,) = one.compare(ip.Profiles((other,))).comparisons
    assert comparison.by == "name"
    (library,) = (part for part in comparison.parts if part.kind == "library")
    assert (library.standing, library.names_b, library.b) == ("only-a", (), None)
    assert "only A" in repr(one.compare(ip.Profiles((other,))))


def test_kernels_with_other_names_are_paired_by_what_they_compute(one: ip.Profiles) -> None:
    (a,) = one.profiles
    (kernel,) = (part for part in a.parts if part.kind == "kernel")
    b = replace(
        a,
        parts=tuple(replace(part, name="cpp_fused_1") if part is kernel else part for part in a.parts),
        nests=tuple(replace(nest, kernel="cpp_fused_1") for nest in a.nests),
    )
    by_name = compare_profiles(a, b)
    assert [part.standing for part in by_name.parts if part.kind == "kernel"] == ["only-a", "only-b"]
    paired = compare_profiles(a, b, [((kernel.name,), ("cpp_fused_1",))])
    assert [(part.names_a, part.names_b, part.standing) for part in paired.parts[:2]] == [
        ((kernel.name,), ("cpp_fused_1",), "same"),
        (("loop nest 1",), ("loop nest 1",), "same"),
    ]


def test_what_json_printed_is_compared_with_and_other_files_are_refused(
    one: ip.Profiles, probe: Callable[..., Ran], tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text(json.dumps(one.json))
    ran = probe("profile", "a.json", "a.json", "--format", "markdown")
    assert ran.status == 0, ran.err
    assert "1.000x of A's" in ran.out
    for text, why in (("{", "cannot be read as JSON"), ("{}", "was not written by probe profile --json")):
        (tmp_path / "b.json").write_text(text)
        refused = probe("profile", "a.json", "b.json")
        assert (refused.status, why in refused.err) == (2, True), refused.err
    (tmp_path / "b.json").write_text(json.dumps({**one.json, "profiles": [{"graph": 1}]}))
    assert "another version of probe" in probe("profile", "b.json").err
    assert "exist" in probe("profile", "nothing.json").err


def test_a_flame_view_has_each_part_within_what_is_around_it(one: ip.Profiles) -> None:
    (profile,) = one.profiles
    root = ElementTree.fromstring(flame_svg(profile))  # noqa: S314 - made here
    boxes = [
        (
            group[0].text or "",
            float(group[1].get("x", 0)),
            float(group[1].get("y", 0)),
            float(group[1].get("width", 0)),
        )
        for group in root.iter("{http://www.w3.org/2000/svg}g")
    ]
    titles = " ".join(title for title, *_ in boxes)
    for name in ("Compiled call", "loop nest", "wrapper"):
        assert name in titles
    whole = boxes[0]
    assert all(x >= -0.01 and x + width <= whole[3] + 60 for _, x, _, width in boxes)
    (nest,) = (box for box in boxes if box[0].startswith("loop nest 2"))
    (kernel,) = (box for box in boxes if box[0].startswith("cpp_fused"))
    assert kernel[1] - 0.01 <= nest[1]
    assert nest[2] > kernel[2]
    assert "heavy.py:5" in nest[0]
    assert "<svg" in one.flame


def test_a_profile_of_a_gpu_says_what_calls_in_a_loop_wait_for(two: Profile) -> None:
    def parts(on_gpu: float) -> tuple[ProfilePart, ...]:
        named: tuple[tuple[PartKind, str, Side, float], ...] = (
            ("kernel", "triton_poi_fused_0", "device", on_gpu * 0.75),
            ("gap", "gap", "device", on_gpu * 0.25),
            ("call", "Compiled call", "device", on_gpu), ("launches", "launches", "host", 7e-6),
            ("gap", "gap", "host", 8e-6), ("call", "Compiled call", "host", 15e-6),
        )  # fmt: skip
        wholes = {"device": on_gpu, "host": 15e-6}
        return tuple(
            ProfilePart(kind, name, side, time, 0.0, time / wholes[side]) for kind, name, side, time in named
        )

    bare = replace(two, device="cuda", nests=(), lines=(), call=15e-6)  # what this machine took is not of it
    long, short = (replace(bare, parts=parts(time)) for time in (40e-6, 4e-6))
    assert profile_sentence(long) == (
        "A call takes 40.00 us of the GPU and 15.00 us of the host. Calls in a loop wait "
        "for the GPU: triton_poi_fused_0 is 75.0 % of its time."
    )
    assert profile_sentence(short).endswith("wait for the host: in no part is 53.3 % of its time.")
    titles = [
        part for part in flame_svg(long).split("<title>") if part.startswith(("GPU", "triton_", "in no"))
    ]
    assert [title.split(":")[0] for title in titles] == [
        "in no part", "GPU", "triton_poi_fused_0", "in no kernel",
    ]  # fmt: skip


def test_the_headline_claims_no_share_of_threads_that_lost_their_cores(one: ip.Profiles) -> None:
    """A convolution was 83 % of a call of two threads beside eight other programs, and is 45 % of it."""
    lost = measured("parts-lost-cores", "analysis", Subject("graph", ""), {"lost": 4, "rounds": 6})
    few = measured("parts-lost-cores", "analysis", Subject("graph", ""), {"lost": 3, "rounds": 6})
    profile = replace(one.profiles[0], call=23.1e-3)
    for threads, remark, said in ((2, lost, False), (2, few, True), (1, lost, True)):
        text = profile_sentence(replace(profile, threads=threads, remarks=(remark,)))
        assert ("%" in text) == said
        assert said or text == (
            "A call takes 23.10 ms with 2 threads, which lost cores to other programs in 4 of 6 rounds: "
            "its shares are not those of a quiet machine."
        )


def test_a_library_call_that_a_gpu_saw_as_an_operator_is_joined(run: ip.Run, one: ip.Profiles) -> None:
    (profile,), graph = one.profiles, one.graphs[0]
    (library,) = (part for part in profile.parts if part.kind == "library")
    assert (library.name, library.flops) == ("extern_kernels.mm", 2 * 16**3)
    bare = replace(library, name="aten.mm.out", side="device", flops=None, moved=None, nodes=(), sources=())
    flops = (FlopCount("aten.mm", 2 * 16**3),)
    (joint,) = joined(graph, replace(profile, parts=(bare,), nests=()), flops, {}).parts
    assert (joint.nodes, joint.moved, joint.flops) == (library.nodes, library.moved, library.flops)
    assert joint.sources == library.sources
    on_gpu = replace(profile, device="cuda", parts=(library, bare), nests=())
    host, device = joined(graph, on_gpu, flops, {}).parts
    assert (host.moved, host.flops, host.nodes) == (None, None, library.nodes), "the host only launches it"
    assert device.flops == 2 * 16**3


def test_a_trace_has_what_a_gpu_does_in_a_thread_of_its_own(one: ip.Profiles) -> None:
    (profile,) = one.profiles
    span = TimelineSpan("triton_poi_fused_0", "device", 1e-6, 3e-6, 0, 0)
    trace = ip.Profiles((replace(profile, timeline=(*profile.timeline, span)),)).chrome
    events = json.loads(trace)["traceEvents"]
    (event,) = (event for event in events if event["name"] == span.name)
    assert (event["cat"], event["dur"]) == ("GPU", pytest.approx(2.0, abs=1e-3))
    threads = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert threads[event["tid"]] == "GPU"


def test_a_stranger_s_graph_is_not_run(probe: Callable[..., Ran]) -> None:
    (run,) = (DUMPS / "torch-2.13.0-cpu" / "hflip_cl").glob("run_*")
    with pytest.raises(ProbeError, match=r"nothing shows that .* was made on this machine"):
        ip.open_run(run).profile()
    ran = probe("profile", "nowhere")
    assert ran.status == 2
    assert "nowhere" in ran.err
