"""What an index puts into its pages acts nowhere: not in a terminal, a log, or a report."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cudalock.cli.main import main
from default_index_site import Site, default_index
from loopback import Reply

_JSON = {"Content-Type": "application/vnd.pypi.simple.v1+json"}
_HOSTILE = (
    "\x1b]0;owned\x07 \x1b[2J\x9b1A\u202e\n::error file=x::owned\r\n::add-mask::x ##[add-mask]x "
    "<script>alert(1)</script> @everyone owner/repo#1 [link](https://evil.test) `code\u2028::x"
)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with default_index(tmp_path / "files") as found:
        yield found


def _publish(site: Site, status: str) -> None:
    """List a yanked wheel, and a file that is none, with hostile words wherever words may be."""
    wheel = site.add("left", "1")
    files = [
        {
            "filename": wheel.name,
            "url": f"/files/{wheel.name}",
            "hashes": {"sha256": "a" * 64},
            "yanked": _HOSTILE,
            "requires-python": ">=3.8",
        },
        {"filename": f"left-2{_HOSTILE}-py3-none-any.whl", "url": "/files/x", "hashes": {}},
        {
            "filename": "left-3-py3-none-any.whl",
            "url": f"/files/{_HOSTILE}",
            "hashes": {"sha256": _HOSTILE},
            "requires-python": _HOSTILE,
        },
    ]
    page = {
        "meta": {"api-version": "1.4"},
        "name": "left",
        "project-status": {"status": status, "reason": _HOSTILE},
        "files": files,
    }
    site.faults["left"] = Reply(200, json.dumps(page).encode(), _JSON)


@pytest.mark.parametrize("form", ["text", "json", "github", "sarif", "markdown"])
@pytest.mark.parametrize(
    ("status", "requirement", "code"),
    [("archived", "left==1", 0), ("quarantined", "left", 1), ("archived", "left>=3", 3)],
)
@pytest.mark.parametrize("verbose", [False, True])
def test_nothing_that_an_index_says_acts(
    form: str,
    status: str,
    requirement: str,
    code: int,
    verbose: bool,
    site: Site,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    _publish(site, status)
    flags = ["--default-index", site.url, "--cache-dir", str(tmp_path / "cache"), "--dry-run"]
    target = ["--cpu", "--python", "3.12", "--platform", "linux-x86_64"]
    more = ["-v"] if verbose else []
    assert main(["resolve", requirement, *flags, *target, "--format", form, *more]) == code
    captured = capsys.readouterr()
    for text in (captured.out, captured.err):
        assert all(c == "\n" or c.isprintable() for c in text)
        assert "##[" not in text or form == "github"
    commands = [
        line
        for line in (captured.out + captured.err).splitlines()
        if line.lstrip().startswith("::")
    ]
    if form != "github":
        assert commands == []
    else:
        assert commands == captured.out.splitlines()
        read = r"::(error|warning|notice) title=[^:,]+::.*"
        assert all(re.fullmatch(read, line) for line in commands)
