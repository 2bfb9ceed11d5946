"""A clash among the user's own pins is found with few requests, and what follows is counted apart."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cudalock.cli.main import main
from default_index_site import Site, default_index

_LINUX = ["--python", "3.12", "--platform", "manylinux_2_34_x86_64"]
_GPU = ["--sm", "12.0", "--driver", "590.48.01"]
_PINS = ["left==1.0", "right==1.0", "beside"]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """``right`` 1.0 goes with ``left`` 2.0, and everything has a crowd of requirements behind it."""
    with default_index(tmp_path / "files") as found:
        crowd = [f"part-{number}" for number in range(20)]
        for version in ("1.0", "2.0"):
            found.add("left", version, requires=crowd)
            found.add("right", version, requires=[*crowd, "left==2.0"])
        found.add("beside", "1.0", requires=crowd)
        for name in crowd:
            found.add(name, "1.0")
        yield found


def _run(site: Site, tmp_path: Path, *flags: str) -> int:
    where = ["--default-index", site.url, "--cache-dir", str(tmp_path / "cache")]
    return main(["resolve", *_PINS, *_LINUX, *_GPU, *where, "--only-default-index", *flags])


def _counted(told: str) -> list[int]:
    return [int(number) for number in re.findall(r"(\d+) requests?\b", told)]


def test_a_clash_of_pins_is_proved_from_what_is_pinned_alone(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(site, tmp_path, "--no-remedies") == 1
    told = capsys.readouterr().err
    assert "right 1.0 requires `left==2.0`" in told
    assert sorted(path.rpartition("/")[2] or path for path in site.asked) == [
        "/simple/left/",
        "/simple/right/",
        "left-1.0-py3-none-any.whl",
        "right-1.0-py3-none-any.whl",
    ]
    assert _counted(told) == [4]
    assert "remedy" not in told


def test_the_search_for_remedies_is_counted_apart_and_finds_one(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(site, tmp_path) == 1
    told = capsys.readouterr().err
    proved, more = _counted(told)
    assert (proved, proved + more) == (4, len(site.asked))
    assert told.index("This was proved") < told.index("hint:") < told.index("The search for")
    assert "with `left==2.0` the set resolves" in told


def test_the_search_for_remedies_says_what_it_tries(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cudalock.cli.terminal import Status

    said: list[tuple[str, str]] = []
    started = {}
    begin, update = Status.__init__, Status.update

    def remember(self: Status, text: str, *, show: bool, after: float = 1.0) -> None:
        started[id(self)] = text
        begin(self, text, show=show, after=after)

    def listen(self: Status, text: str) -> None:
        said.append((started[id(self)], text))
        update(self, text)

    monkeypatch.setattr(Status, "__init__", remember)
    monkeypatch.setattr(Status, "update", listen)
    assert _run(site, tmp_path) == 1
    # What is tried is told on the line that is shown while remedies are looked for.
    assert ("looking for a remedy", "looking for a remedy left, right==1.0, beside") in said
    capsys.readouterr()


@pytest.mark.network
def test_the_live_default_index_refuses_two_pins_with_few_requests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert os.environ.get("CUDALOCK_DEFAULT_INDEX") is None
    pins = ["torch==2.9.1", "vllm==0.21.0"]
    where = ["--cache-dir", str(tmp_path / "cache"), "--only-default-index"]
    assert main(["resolve", *pins, *_LINUX, *_GPU, *where, "--dry-run"]) == 1
    told = capsys.readouterr().err
    assert "vllm 0.21.0 requires `torch==2.11.0`" in told
    assert _counted(told)[0] <= 10
    assert "hint: with `torch==2.11.0` the set resolves" in told
