"""What goes wrong in a page fails the test that reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import browser
from tests.browser import chromium, tab

WRONG = {
    "an exception": ("<script>throw new Error('not so')</script>", "not so"),
    "an error in the console": ("<script>console.error('not well')</script>", "not well"),
    "a file that is missing": ("<img src='nowhere.png'>", "ERR_FILE_NOT_FOUND"),
    "another machine": (
        "<img src='http://nowhere.invalid/x.png'>",
        "; http://nowhere.invalid",
    ),
}


def test_what_goes_wrong_in_a_page_fails_at_its_end(tmp_path: Path) -> None:
    with chromium() as started:
        for name, (text, fault) in WRONG.items():
            (tmp_path / "page.html").write_text(f"<!doctype html><title>{name}</title>{text}")
            with pytest.raises(AssertionError, match=fault), tab(started) as page:
                page.goto((tmp_path / "page.html").as_uri())


def test_without_a_browser_a_test_is_skipped_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "program", lambda: None)
    with pytest.raises(pytest.skip.Exception, match="apt-get install chromium-headless-shell"), chromium():
        pass
