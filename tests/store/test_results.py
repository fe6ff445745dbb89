"""Files of results: whole, versioned, listed by an index that can always be made again from them."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest
from msgspec.structs import replace

from inductor_probe.cli import run as probe
from inductor_probe.errors import NotFoundError, ProbeError, UnreadableError
from inductor_probe.model.perf import (
    CaseKey,
    ColumnFacts,
    GeneratedCode,
    Interpreter,
    PerfRow,
    PerfRun,
    PerfSettings,
    RowProcess,
)
from inductor_probe.model.timing import Quad, Series
from inductor_probe.store.results import (
    FOLDER,
    SCHEMA,
    entries,
    find_results,
    new_name,
    read_run_file,
    remove,
    write_run,
)

WHEN = datetime(2026, 11, 23, 12, tzinfo=timezone.utc)
KEY = CaseKey("check_hflip", "sliced", (("dtype", "uint8"), ("batch", 1), ("dynamic", False)), "cpu", 1)
SERIES = Series("eager", "compiled", (Quad("ABBA", (1e-5, 2e-5, 2e-5, 1e-5), False, None),), 0.1)
CODE = GeneratedCode(Path("/cache/x.py"), "0" * 64, ("aten.sort.stable",))
COLUMNS = (ColumnFacts("eager"), ColumnFacts("compiled", 1, codes=(CODE,)))
ROW = PerfRow(
    KEY,
    "1x3x4x4 uint8 strided",
    (
        RowProcess(
            0, "baseline", (ColumnFacts("eager"), ColumnFacts("compiled", 1, codes=(CODE,))), (SERIES,)
        ),
    ),
    moved=96,
)


def a_run(name: str) -> PerfRun:
    return PerfRun(
        name=name,
        probe="0",
        scenario="check_hflip",
        command=("probe", "perf"),
        started="2026-11-23T12:00:00+00:00",
        settings=PerfSettings(),
        interpreter=Interpreter(Path("/usr/bin/python3"), "3.11.2", "2.13.0"),
        machine=(("host", "vm"),),
        planned=2,
        rows=(ROW,),
    )


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = a_run(new_name(tmp_path / "results", "check_hflip", WHEN))
    assert run.name == "20261123-120000-check_hflip"
    path = write_run(tmp_path / "results", run)
    assert read_run_file(path) == run
    assert isinstance(dict(read_run_file(path).rows[0].key.knobs)["dynamic"], bool)


def test_no_name_is_given_twice(tmp_path: Path) -> None:
    names = [new_name(tmp_path, "my.py:fn", WHEN) for _ in range(3)]
    assert names == [
        "20261123-120000-my-py-fn",
        "20261123-120000-my-py-fn-2",
        "20261123-120000-my-py-fn-3",
    ]


def test_what_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    path = write_run(tmp_path, a_run("a"))
    text = path.read_text()
    for damaged, words in (
        (text[: len(text) // 2], "is not what probe perf writes"),
        ("", "is empty"),
        ("[]", "has no schema"),
        (text.replace(f'"schema": {SCHEMA}', '"schema": 99', 1), "was written by a newer probe"),
        (text.replace(f'"schema": {SCHEMA}', '"schema": 0', 1), "was written by an older probe"),
        (text.replace('"order": "ABBA"', '"order": "AB"'), "more or fewer times"),
        (text.replace('"guard": false', '"guard": true'), "has none with compiled"),
        (text.replace("1e-05", "-1"), "seconds"),
    ):
        path.write_text(damaged)
        with pytest.raises(UnreadableError, match=words) as caught:
            read_run_file(path)
        assert str(path) in caught.value.message
        assert caught.value.hint


def test_the_index_is_made_again_from_the_files(tmp_path: Path) -> None:
    for name in ("20261123-1-a", "20261123-2-b"):
        write_run(tmp_path, a_run(name))
    first = entries(tmp_path)
    assert [entry.name for entry in first] == ["20261123-2-b", "20261123-1-a"]
    assert (first[0].rows, first[0].planned, first[0].finished) == (1, 2, False)
    assert first[0].columns == ("eager", "compiled")
    index = tmp_path / "index.cache"
    for damage in (
        index.unlink,
        lambda: index.write_bytes(b"no index"),
        lambda: index.write_text("[" * 100_000),
        lambda: index.write_text(index.read_text().replace('"version": 2', '"version": 9')),
    ):
        damage()
        assert entries(tmp_path) == first
    assert index.is_file()


def test_results_of_another_project_are_removed_there_and_not_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`probe results --prune` took the path that the index had: of a file below the folder it stood in."""
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    for project in (mine, theirs):
        monkeypatch.chdir(project.mkdir() or project)
        write_run(FOLDER.mkdir(parents=True) or FOLDER, a_run("20261123-1-a"))
        entries(FOLDER)
    monkeypatch.chdir(mine)
    assert probe(["results", "--prune", "--unfinished", "--results", str(theirs / FOLDER)]) == 0
    assert not list((theirs / FOLDER).glob("*.json"))
    assert [path.name for path in (mine / FOLDER).glob("*.json")] == ["20261123-1-a.json"]


def test_a_forged_index_removes_nothing(tmp_path: Path) -> None:
    """Neither another file, by its path, nor one that it calls unfinished."""
    other = tmp_path / "letter.txt"
    other.write_text("mine")
    write_run(tmp_path, replace(a_run("a"), finished=True))
    entries(tmp_path)
    index = tmp_path / "index.cache"
    forged = index.read_text().replace('"path": "a.json"', f'"path": "{other}"').replace("true", "false")
    assert str(other) in forged
    index.write_text(forged)
    assert [entry.path for entry in entries(tmp_path)] == [tmp_path / "a.json"]
    index.write_text(forged)
    assert probe(["results", "--prune", "--unfinished", "--results", str(tmp_path)]) == 0
    assert other.exists()
    assert (tmp_path / "a.json").exists()


def test_json_that_is_no_result_is_not_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`probe results --prune --unfinished` removed all JSON that was where `.probe/results` led to."""
    texts = {"package": '{"name": "mine"}', "cut": '{"schema": 1, "run"', "reserved": ""}
    for name, text in texts.items():
        (tmp_path / f"{name}.json").write_text(text)
    assert probe(["results", "--prune", "--unfinished", "--results", str(tmp_path)]) == 0
    assert [path.name for path in tmp_path.glob("*.json")] == ["package.json"]
    assert "package.json is left there: it is not a file of probe perf" in capsys.readouterr().err


def test_the_name_of_a_run_is_that_of_its_file(tmp_path: Path) -> None:
    """`perf --resume` wrote to the path that an unfinished result called its name."""
    path = write_run(tmp_path, a_run("a"))
    path.write_text(path.read_text().replace('"name": "a"', '"name": "../../x"'))
    assert read_run_file(path).name == "a"


@pytest.mark.parametrize("part", ["{}", "[]", '"ab"', "1.5"])
def test_a_large_file_of_results_is_refused_before_its_memory_is_taken(tmp_path: Path, part: str) -> None:
    """13 MB of it took 1.7 GB."""
    path = write_run(tmp_path, a_run("a"))
    many = ",".join([part] * (40_000_000 // len(part)))
    path.write_text(path.read_text().replace('"rows": [', f'"rows": [{many},'))
    with pytest.raises(UnreadableError, match="more than the limit of"):
        read_run_file(path)


def test_the_index_follows_the_files(tmp_path: Path) -> None:
    write_run(tmp_path, a_run("a"))
    assert entries(tmp_path)[0].rows == 1
    write_run(tmp_path, replace(a_run("a"), rows=(ROW, ROW), finished=True))
    assert (entries(tmp_path)[0].rows, entries(tmp_path)[0].finished) == (2, True)
    (tmp_path / "b.json").write_text("{")
    unreadable, whole = entries(tmp_path)
    assert "is not what probe perf writes" in unreadable.problem
    assert not whole.problem
    remove([unreadable])
    assert [entry.name for entry in entries(tmp_path)] == ["a"]


def test_the_index_spares_reading_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path, a_run("a"))
    before = entries(tmp_path)
    monkeypatch.setattr("inductor_probe.store.results.read_run_file", lambda path: pytest.fail("it was read"))
    assert entries(tmp_path) == before


def test_a_word_names_one_file(tmp_path: Path) -> None:
    for name in ("20261123-1-flip", "20261123-2-flip", "20261123-3-aa"):
        write_run(tmp_path, a_run(name))
    for word, name in (
        ("latest", "20261123-3-aa"),
        ("latest~2", "20261123-1-flip"),
        ("aa", "20261123-3-aa"),
        ("20261123-2-flip", "20261123-2-flip"),
        (str(tmp_path / "20261123-1-flip.json"), "20261123-1-flip"),
    ):
        assert find_results(tmp_path, word).stem == name
    for word, message in (
        ("flip", "may mean 2 results"),
        ("latest~3", "it has 3 results"),
        ("nope", "no results nope"),
        ("./nope.json", "does not exist"),
    ):
        with pytest.raises(NotFoundError, match=message):
            find_results(tmp_path, word)


def test_a_folder_that_cannot_be_written_to_is_a_sentence(tmp_path: Path) -> None:
    path = write_run(tmp_path, a_run("a"))
    before = path.read_bytes()
    with pytest.raises(ProbeError, match="cannot write"):
        write_run(tmp_path / "nowhere", a_run("a"))
    (tmp_path / "file").touch()
    with pytest.raises(ProbeError, match="cannot write results into"):
        new_name(tmp_path / "file" / "results", "x", WHEN)
    assert path.read_bytes() == before
    assert json.loads(before)["schema"] == SCHEMA
