"""What all rooms' tests share: the dumps under `fixtures`, and running `probe` as a user does."""

from __future__ import annotations

import functools
import gc
import os
import signal
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from inductor_probe.api import own_call
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.own_call import NoOwnCall
from inductor_probe.reader.debug_dir import read_graph, read_run
from tests.fork_server import ForkServer
from tests.shared import compiler_folder, made_once, shared_folder
from tests.torch_server import TorchServer

REPOSITORY = Path(__file__).parents[1]
FIXTURES = Path(__file__).parent / "fixtures"
DUMPS = FIXTURES / "dumps"
PROBE = (sys.executable, "-m", "inductor_probe")
"""Starts `probe` where the fixture of that name cannot: with limits, or in a terminal."""

CORPUS = REPOSITORY.parent / "shared" / "corpus"

# A busy machine takes as long as it likes: no test is about its time.
hypothesis.settings.register_profile("no-deadline", deadline=None)
hypothesis.settings.load_profile("no-deadline")


def all_graph_dirs() -> list[Path]:
    """Folders of all graphs under `fixtures/dumps`."""
    return sorted(path.parent for path in DUMPS.glob("*/*/run_*/torchinductor/*/output_code.py"))


def python_graph_dirs() -> list[Path]:
    """Those of them whose wrapper is Python, which bench files are made of."""
    return [
        path for path in all_graph_dirs() if "cpp_wrapper_src" not in (path / "output_code.py").read_text()
    ]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack the corpus of real dumps beside the repository; a test that needs it is skipped without it."""
    archives = sorted(CORPUS.glob("*.tar.gz"))
    if not archives:
        pytest.skip(f"the full corpus is not at {CORPUS}")

    def unpack(folder: Path) -> None:
        for archive in archives:
            with tarfile.open(archive) as tar:
                tar.extractall(folder, filter="data")

    return made_once(tmp_path_factory, "corpus", unpack)


@pytest.fixture
def dump_dir() -> Callable[[str], Path]:
    """Return the folder that holds the run of `version/scenario`."""
    return lambda name: DUMPS / name


@pytest.fixture
def read() -> Callable[..., CompiledGraph]:
    """Read a graph of `fixtures/dumps`, the first unless `at` says otherwise."""

    return graph_of


@functools.cache
def graph_of(name: str, at: int = 0) -> CompiledGraph:
    """Read a graph of `fixtures/dumps` once for all tests: it is a frozen record of 150 KiB."""
    run = next(path for path in sorted((DUMPS / name).iterdir()) if path.name.startswith("run_"))
    return read_graph(read_run(run).graphs[at])


def pytest_configure(config: pytest.Config) -> None:
    """Let workers of pytest-xdist compare snapshots as plain values.

    The plugin does no more in them, and may complain of its temporary folder when such a process ends.
    """
    if hasattr(config, "workerinput"):
        config.pluginmanager.set_blocked("inline-snapshot-plugin")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave what is there before the first test out of garbage collection, which took a quarter of the tests.

    A worker holds all tests and all that they import; what a test makes is collected as ever, but not as
    often as for programs with little memory.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest: such a one at the end would run alone.

    Those have most tests that compile, or say with the mark `takes` how long theirs are. Tests of a file stay
    in their order; with pytest-xdist that takes `--no-loadscope-reorder` (Makefile).
    """
    seconds: Counter[Path] = Counter()
    for item in items:
        takes = item.get_closest_marker("takes")
        seconds[item.path] += takes.args[0] if takes else 2 if item.get_closest_marker("compiles") else 0
    items.sort(key=lambda item: -seconds[item.path])


@pytest.fixture(scope="session", autouse=True)
def no_own_calls() -> Iterator[None]:
    """Leave out the call of the user's program: `bench-kernel` and `profile` would run scripts again.

    `capture/test_own_calls.py` times such calls itself, and the README's and the guides' commands do.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_call, "own_calls", lambda *_, **__: ((), NoOwnCall("not-asked")))
        yield


@pytest.fixture(scope="session", autouse=True)
def surroundings(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[None]:
    """Keep what tests dump out of the user's record and cache, and the tests quick.

    With empty caches inductor tries the compiler with each vector extension first, which takes as long as the
    rest of a dump; the test of `make demo` lets it.
    """
    with pytest.MonkeyPatch.context() as patch:
        # Of all workers: what one dumps for several files of tests (`tests/shared.py`), another may run.
        patch.setenv("XDG_STATE_HOME", str(shared_folder(tmp_path_factory) / "state"))
        patch.setenv("XDG_CACHE_HOME", str(shared_folder(tmp_path_factory) / "cache"))
        patch.setenv("TORCHINDUCTOR_VEC_ISA_OK", "1")
        if "not compiles" in pytestconfig.getoption("-m"):  # as `make quick` asks for
            patch.setenv("TESTS_COMPILE_NOTHING", "1")
        patch.setenv("PATH", f"{compiler_folder(tmp_path_factory)}{os.pathsep}{os.environ['PATH']}")
        patch.delenv("COLUMNS", raising=False)  # pytest's workers have it: what probe prints would be folded
        for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):  # those of the make that runs the tests
            patch.delenv(name, raising=False)
        # A shell starts what runs in the background, or by nohup, with these ignored, and children inherit
        # that: what tests send to processes would not arrive.
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
            if signal.getsignal(number) == signal.SIG_IGN:
                signal.signal(
                    number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
                )
        yield


@pytest.fixture(scope="session")
def torch_server(surroundings: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TorchServer]:
    """Return what has torch imported for processes that begin with that; it imports it for the first."""
    server = TorchServer(shared_folder(tmp_path_factory) / "torch_server")
    yield server
    server.close()


@pytest.fixture(scope="module")
def warm(torch_server: TorchServer) -> Iterator[None]:
    """Let dumps and bench files of a file of tests be forks of a process that has imported torch.

    A fixture of the whole session, which is made before this one, asks for `torch_server.used()` itself.
    """
    with torch_server.used():
        yield


@pytest.fixture
def warm_here(torch_server: TorchServer) -> Iterator[None]:
    """As `warm`, for a test of a file in which others need a Python that is started for them."""
    with torch_server.used():
        yield


@dataclass(frozen=True)
class Ran:
    """How a `probe` command ended."""

    status: int
    out: str
    err: str


Probe = Callable[..., Ran]
Screen = Callable[..., str]


@pytest.fixture(scope="session")
def fork_server(surroundings: None) -> Iterator[ForkServer]:
    """Return the process that this worker's commands are forks of; it starts with the first."""
    server = ForkServer()
    yield server
    server.close()


@pytest.fixture
def probe(tmp_path: Path, fork_server: ForkServer) -> Probe:
    """Run `probe` in a process of its own, in an empty folder unless `cwd` is given.

    It is a fork of one that has imported the package, wherever that cannot be told from a fresh one.
    """

    def _probe(*arguments: str | Path, cwd: Path | None = None, **environment: str) -> Ran:
        words, variables = [str(argument) for argument in arguments], {**os.environ, **environment}
        if fork_server.can_run(words, variables):
            ended = fork_server.run(words, cwd or tmp_path, variables)
        else:
            ended = fresh_probe(words, cwd or tmp_path, variables)
        return Ran(ended.returncode, ended.stdout, ended.stderr)

    return _probe


@pytest.fixture
def screen(probe: Probe, tmp_path: Path) -> Screen:
    """Run `probe` with 100 columns; return its output, errors behind `2> `, and its status if not 0."""

    def _screen(*arguments: str | Path, columns: int = 100, **options: Any) -> str:
        ran = probe(*arguments, COLUMNS=str(columns), **options)
        places = {str(tmp_path): "TMP", str(DUMPS): "DUMPS"}
        if columns < 1000 and ("…/" in ran.out or any(place in "".join(ran.out.split()) for place in places)):
            pytest.fail("where lines with a path are folded differs between machines: say columns=1000")
        errors = "".join(f"2> {line}" for line in ran.err.splitlines(keepends=True))
        text = f"{ran.out}{errors}exit {ran.status}\n" if ran.status else ran.out + errors
        for place, name in places.items():
            text = text.replace(place, name)
        return text

    return _screen


def fresh_probe(
    arguments: list[str], cwd: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run `probe` in a process that Python starts for it."""
    return subprocess.run(
        [*PROBE, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
