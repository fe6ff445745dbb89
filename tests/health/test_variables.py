from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from inductor_probe.health.variables import EFFECTS, Reader, variable_diagnostics, variables_in
from inductor_probe.model.health import Diagnostic, TorchSetup
from inductor_probe.report.words.health import VARIABLE_WORDS
from tests.health.words import remedy, text

SPEC = importlib.util.find_spec("torch")
assert SPEC is not None
assert SPEC.origin is not None
TORCH = Path(SPEC.origin).parent
SETUP = TorchSetup(version="2.13.0", folder=str(TORCH))


@pytest.fixture(scope="module")
def readers() -> dict[str, Reader]:
    return variables_in(TORCH)


def one(**environment: str) -> Diagnostic:
    (found,) = variable_diagnostics(SETUP, environment)
    return found


def test_the_installed_torch_reads_the_variables_that_are_explained(readers: dict[str, Reader]) -> None:
    prefixes = ("TORCHINDUCTOR_", "TORCHDYNAMO_", "TORCH_COMPILE_")
    unread = [name for name in EFFECTS if name.startswith(prefixes) and name not in readers]
    assert unread == []


def test_what_each_known_variable_does_has_words() -> None:
    assert set(VARIABLE_WORDS) == set(EFFECTS)


def test_a_variable_is_traced_to_the_setting_that_takes_it(readers: dict[str, Reader]) -> None:
    assert readers["TORCHINDUCTOR_PROLOGUE_FUSION"].file.startswith("torch/_inductor/")
    assert readers["TORCHINDUCTOR_CUDAGRAPHS"].setting == "torch._inductor.config.triton.cudagraphs"
    assert readers["TORCHINDUCTOR_AUTOGRAD_CACHE"].setting == "torch._functorch.config.enable_autograd_cache"
    found = one(TORCHINDUCTOR_PERMUTE_FUSION="1")
    assert text(found) == "TORCHINDUCTOR_PERMUTE_FUSION=1: sets torch._inductor.config.permute_fusion"
    assert found.level == "warning"


def test_none_set_is_said() -> None:
    assert text(one(HOME="/root", PATH="/bin")).startswith("none of ")


def test_what_a_variable_does_to_a_dump_is_said() -> None:
    found = one(TORCHDYNAMO_DISABLE="1")
    assert (
        text(found) == "TORCHDYNAMO_DISABLE=1: torch.compile does nothing: no dump, and timings are of eager"
    )
    assert remedy(found) == "unset TORCHDYNAMO_DISABLE, unless that is what you want"


def test_a_value_that_changes_nothing_is_ok() -> None:
    assert one(TORCHDYNAMO_DISABLE="0").level == "ok"
    assert one(TORCHINDUCTOR_SIZE_ASSERTS="1").level == "ok"
    assert one(TORCHINDUCTOR_SIZE_ASSERTS="0").level == "warning"


def test_what_probe_dump_sets_itself_is_ok() -> None:
    found = one(TORCHINDUCTOR_CACHE_DIR="/c")
    assert (found.level, text(found).endswith("probe dump sets its own")) == ("ok", True)


def test_a_misspelt_variable_offers_the_right_one() -> None:
    found = one(TORCHINDUCTOR_MAX_AUTOTUNES="1")
    assert text(found).endswith("torch 2.13.0 does not read it")
    assert remedy(found) == "did you mean TORCHINDUCTOR_MAX_AUTOTUNE?"


def test_a_secret_is_not_shown() -> None:
    found = one(TORCHINDUCTOR_REDIS_URL="redis://user:geheim@host")
    assert "geheim" not in f"{found}"


def test_a_long_value_is_cut_for_people_only() -> None:
    found = one(TORCH_LOGS="+all," * 100)
    assert "…" in text(found)
    assert dict(found.facts)["value"] == "+all," * 100
