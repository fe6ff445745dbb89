"""A Python file is judged by the text that will be compiled, however its bytes might be read otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from inductor_probe.errors import NotFoundError, UnreadableError
from inductor_probe.reader.python_text import read_python_source

HIDDEN = b"# harmless \\u000araise SystemExit('ran')\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "output_code_bench.py"


@pytest.mark.parametrize(
    ("lines", "number"),
    [
        (b"# -*- coding: raw_unicode_escape -*-\n", 1),
        (b"# sealed\n# -*- coding: raw_unicode_escape -*-\n", 2),
        (b"\n \t\x0c# vim: set fileencoding=unicode_escape :\n", 2),
        (b"#coding=utf-7\r\n", 1),
        (b"# one\r# coding: cp1252\r", 2),
        (b"# coding: latin-1\n", 1),
        (b"# coding: no_such_thing\n", 1),
        (b"\xef\xbb\xbf# coding: utf_16\n", 1),
    ],
)
def test_an_encoding_other_than_utf8_is_refused_with_its_line(file: Path, lines: bytes, number: int) -> None:
    file.write_bytes(lines + HIDDEN)
    with pytest.raises(UnreadableError, match=rf"bench\.py:{number}: names the encoding") as caught:
        read_python_source(file)
    assert "UTF-8" in str(caught.value.hint)


@pytest.mark.parametrize(
    "first",
    ["# coding: utf-8", "# -*- coding: UTF8 -*-", "#vim: fileencoding=utf_8", "x = 'coding: cp1252'"],
)
def test_utf8_by_any_of_its_names_is_read(file: Path, first: str) -> None:
    file.write_text(f"{first}\n")
    assert read_python_source(file).text == f"{first}\n"


def test_in_the_third_line_it_is_a_comment(file: Path) -> None:
    file.write_text("#\n#\n# coding: latin-1\n")
    assert "latin-1" in read_python_source(file).text


def test_a_byte_order_mark_is_left_out_and_line_ends_are_pythons(file: Path) -> None:
    file.write_bytes("\ufeffa = 1\r\nb = 2\rc = 3\x0c\n# \u2028d\n".encode())
    source = read_python_source(file)
    assert source.text == "a = 1\nb = 2\nc = 3\x0c\n# \u2028d\n"
    compile(source.text, str(file), "exec")
    assert source.data == file.read_bytes()
    assert source.status.st_ino == file.stat().st_ino


@pytest.mark.parametrize("data", [b"x = 1\n\0", b"x = '\xff'\n", "x = 1\n".encode("utf-16")])
def test_what_is_no_text_is_refused(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    with pytest.raises(UnreadableError, match="not text"):
        read_python_source(file)


def test_no_file(file: Path) -> None:
    with pytest.raises(NotFoundError):
        read_python_source(file)
