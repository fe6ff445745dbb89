"""A pytest plugin: the fixture `inductor_probe`, for tests that a lowering still compiles as it was fixed to.

    def test_hflip(inductor_probe):
        inductor_probe.expect("check_hflip.py", case="channels_last", kernels=1, no_copy=True)

A test that fails shows what torch decided otherwise, and why. Neither torch nor the rest of this package is
imported before a test asks for the fixture; where torch is not installed, what has to be compiled is skipped.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from inductor_probe.api.expect import Expectations
    from inductor_probe.api.session import Graph, Run

_Key = tuple[object, ...]


class InductorProbe:
    """What the fixture `inductor_probe` gives: scripts that are dumped once in a session, and expectations.

    Args:
        folder: for `torch_compile_debug` of what is dumped.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._runs: dict[_Key, Run] = {}

    def dump(
        self,
        script: str | Path,
        *,
        args: Sequence[str] = (),
        case: str | None = None,
        set: Mapping[str, object] | None = None,  # noqa: A002 - as the option and `Graph.whatif` call it
        env: Mapping[str, str] | None = None,
    ) -> Run:
        """Dump a script, or a case of a scenario, in a process of its own; the same one only once.

        The test is skipped where torch is not installed, and fails where the script does.

        Args:
            script: its path, or the bare name of a scenario. args: its arguments.
            case: of the scenario. set: knobs of the scenario and settings of torch.
            env: variables of the environment, for the script alone.
        """
        import inductor_probe as ip  # noqa: PLC0415 - pytest loads this file in each of its runs

        if find_spec("torch") is None:
            pytest.skip(f"torch is not installed, and {script} is to be compiled")
        knobs = {name: str(value) for name, value in (set or {}).items()}
        key: _Key = (str(script), *args, case, *sorted(knobs.items()), *sorted((env or {}).items()))
        if key not in self._runs:
            output = self.folder / f"printed_{len(self._runs)}.txt"
            run = ip.dump(
                script, args=args, cases=[case] if case else [], knobs=knobs, env=env, out=self.folder,
                output=output, stdout_to_stderr=True,
            )  # fmt: skip
            if run.manifest and run.manifest.outcome != "ok":
                printed = output.read_text(encoding="utf-8", errors="replace")
                pytest.fail(f"{script} did not end well:\n{printed[-4000:]}", pytrace=False)
            self._runs[key] = run
        return self._runs[key]

    def expect(
        self,
        target: str | Path | Run | Graph,
        *,
        args: Sequence[str] = (),
        case: str | None = None,
        set: Mapping[str, object] | None = None,  # noqa: A002 - as above
        env: Mapping[str, str] | None = None,
        **expected: Any,
    ) -> Expectations:
        """Fail the test where something is not as expected, or not known; see `Graph.expect`.

        Args:
            target: a script, dumped now; or a run or graph, as `dump` and `run.graphs` return them.
            args, case, set, env: of a script; see `dump`.
            expected: `kernels=1, vectorised=True, fused="op0+op1", layout="buf3=channels_last"`.
        """
        if isinstance(target, (str, Path)):
            graphs: Run | Graph = self.dump(target, args=args, case=case, set=set, env=env)
        else:
            graphs = target
        answer = graphs.expect(**expected)
        if not answer.ok:
            pytest.fail(f"{repr(answer).rstrip()}\n{answer.run.path}", pytrace=False)
        return answer


@pytest.fixture(scope="session")
def inductor_probe(tmp_path_factory: pytest.TempPathFactory) -> InductorProbe:
    """Return what dumps scripts that call `torch.compile`, and holds expectations against their graphs."""
    return InductorProbe(tmp_path_factory.mktemp("inductor_probe"))
