"""Settings of torch that a dump is made with."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch._inductor import config

import inductor_probe as ip
from inductor_probe.capture.torch_settings import is_setting, set_one
from inductor_probe.errors import ProbeError

SCRIPT = """
import torch

@torch.compile
def mirrored(image):
    return image.flip(-1)

print(mirrored(torch.zeros(1, 3, 64, 64, dtype=torch.uint8)).sum().item())
"""


@pytest.mark.parametrize(
    ("setting", "text", "value"),
    [
        ("inductor.cpp.enable_tiling_heuristics", "False", False),
        ("inductor.cpp.simdlen", "256", 256),
        ("inductor.cpp.simdlen", "None", None),
        ("inductor.joint_graph_constant_folding", "False", False),
        ("inductor.max_autotune_gemm_backends", "ATEN,CPP", "ATEN,CPP"),
    ],
)
def test_a_setting_has_the_value_that_a_text_spells(setting: str, text: str, value: object) -> None:
    name = setting.partition(".")[2]
    with config.patch({}):
        before = getattr(config, name)
        try:
            set_one(config, setting, text)
            assert getattr(config, name) == value
        finally:
            setattr(config, name, before)


@pytest.mark.parametrize(
    ("setting", "text", "says"),
    [
        (
            "inductor.cpp.enable_tiling_heuristic",
            "False",
            "did you mean inductor.cpp.enable_tiling_heuristics",
        ),
        ("inductor.cpp.simdlen", "wide", "inductor.cpp.simdlen cannot be wide: it is int or None"),
        ("inductor.cpp.simdlen", "True", "inductor.cpp.simdlen cannot be True: it is int or None"),
        ("inductor.debug", "1", "inductor.debug cannot be 1: it is bool"),
    ],
)
def test_what_is_no_setting_or_no_value_of_it_is_refused(setting: str, text: str, says: str) -> None:
    with pytest.raises(ProbeError) as error:
        set_one(config, setting, text)
    assert says in f"{error.value.message}; {error.value.hint}"


def test_a_setting_begins_with_a_module_of_torch() -> None:
    assert is_setting("inductor.cpp.simdlen")
    assert is_setting("dynamo.recompile_limit")
    assert not is_setting("dtype")
    assert not is_setting("inductor")


@pytest.mark.compiles
@pytest.mark.usefixtures("warm_here")
def test_a_dump_is_made_with_a_setting(tmp_path: Path) -> None:
    script = tmp_path / "mirror.py"
    script.write_text(SCRIPT)
    plain, scalar = (
        ip.dump(script, out=tmp_path / name, knobs=knobs, stdout_to_stderr=True)
        for name, knobs in (("plain", {}), ("scalar", {"inductor.cpp.simdlen": "1"}))
    )
    assert scalar.manifest is not None
    assert scalar.manifest.settings == (("inductor.cpp.simdlen", "1"),)
    texts = [(run.graphs[0].path / "fx_graph_runnable.py").read_text() for run in (plain, scalar)]
    line = "torch._inductor.config.cpp.simdlen = 1\n"
    assert [line in text for text in texts] == [False, True]


@pytest.mark.compiles
def test_an_unknown_setting_ends_the_dump_and_leaves_no_run(tmp_path: Path) -> None:
    script = tmp_path / "mirror.py"
    script.write_text(SCRIPT)
    with pytest.raises(ProbeError, match=r"has no setting inductor\.cpp\.simdlem"):
        ip.dump(script, out=tmp_path, knobs={"inductor.cpp.simdlem": "1"}, stdout_to_stderr=True)
    assert not list(tmp_path.glob("torch_compile_debug/run_*"))
