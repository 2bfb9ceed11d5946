"""`cudalock resolve --try-cuda all`: for which CUDA releases is there a set?"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import cudalock
from cudalock.cli.main import main
from default_index_site import Site, default_index, stock_demo
from loopback import Reply

_REPOSITORY = Path(__file__).parents[2]
_EXAMPLE = _REPOSITORY / "examples" / "blackwell-sglang"
_SCHEMA = Path(cudalock.__file__).parent / "cli" / "schemas" / "try-cuda-1.json"
_TARGET = ("--driver", "590.48.01", "--python", "3.12", "--platform", "linux-x86_64")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with default_index(tmp_path_factory.mktemp("try") / "files") as site:
        stock_demo(site)
        yield site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with default_index(tmp_path / "files") as found:
        yield found


def _flags(site: Site, tmp_path: Path) -> list[str]:
    cache = str(tmp_path / "cache")
    return ["--default-index", site.url, "--cache-dir", cache, "--try-cuda", "all"]


def _run_json(
    capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, dict[str, Any], dict[str, str]]:
    code = main(["resolve", *arguments, "--format", "json"])
    form = json.loads(capsys.readouterr().out)
    jsonschema.validate(form, json.loads(_SCHEMA.read_text(encoding="utf-8")))
    return code, form, {r["cuda"]: r["answer"] for r in form["releases"]}


def test_the_demonstration_works_for_cuda_13_and_each_other_release_says_why_not(
    demo: Site,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    golden: Callable[[str, str], None],
) -> None:
    flags = [*_flags(demo, tmp_path), "--recorded", "--project", str(_EXAMPLE)]
    locks = set(_EXAMPLE.glob("pylock*"))
    assert main(["resolve", *flags]) == 0
    told = capsys.readouterr().out
    assert all(len(line) <= 80 for line in told.splitlines())
    golden("try-cuda.txt", told)
    assert set(_EXAMPLE.glob("pylock*")) == locks


def test_no_release_makes_the_nightly_story_true(
    demo: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nightly = str(_EXAMPLE / "nightly")
    flags = [*_flags(demo, tmp_path), "--recorded", "--project", nightly]
    code, form, answers = _run_json(capsys, *flags)
    assert (code, form["status"], set(answers.values())) == (1, "no", {"no"})
    assert list(answers)[:3] == ["13.1", "13.0", "12.9"]
    newest = form["releases"][0]
    assert newest["code"] == "CUDA301"
    assert newest["reason"] == "sgl-kernel 0.3.21+cu130 is built for torch 2.9"
    assert newest["packages"] == []


def test_each_page_is_read_once_for_all_releases(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add("left", "1")
    site.add("left", "2", requires=["right"])
    site.add("right", "1", requires=["cuda-toolkit==13.0.*"])
    site.add("cuda-toolkit", "13.0.2")
    flags = [*_flags(site, tmp_path), "--only-default-index", *_TARGET]
    code, form, answers = _run_json(capsys, "left", *flags)
    assert code == 0
    assert len(answers) > 10
    packages = {
        r["cuda"]: {p["name"]: p["version"] for p in r["packages"]} for r in form["releases"]
    }
    assert packages["13.1"] == {"cuda-toolkit": "13.0.2", "left": "2", "right": "1"}
    assert packages["12.9"] == {"left": "1"}
    pages = Counter(path for path in site.asked if path.startswith("/simple/"))
    assert set(pages.values()) == {1}


def test_what_one_release_cannot_tell_is_not_a_no(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add("left", "1", requires=["broken"])
    site.faults["broken"] = Reply(403)
    flags = [*_flags(site, tmp_path), "--only-default-index", *_TARGET]
    code, form, answers = _run_json(capsys, "left", *flags)
    assert (code, form["status"], set(answers.values())) == (3, "unknown", {"unknown"})
    assert "403" in form["releases"][0]["reason"]
    assert main(["resolve", "left", *flags, "-v"]) == 3
    told = capsys.readouterr().out
    assert "…" not in told
    assert "13.1 to 11.0  could not tell  CUDA504: " in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cpu"], "expected a target with CUDA"),
        ([*_TARGET, "--format", "sarif"], "expected --format text, json or markdown"),
    ],
)
def test_what_cannot_be_tried_is_asked_wrongly(
    arguments: list[str],
    words: str,
    site: Site,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["resolve", "left", *_flags(site, tmp_path), *arguments]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
    assert site.asked == []


def test_the_table_is_markdown_where_that_is_asked_for(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add("left", "1")
    flags = [*_flags(site, tmp_path), "--only-default-index", *_TARGET, "--format", "markdown"]
    assert main(["resolve", "left", *flags]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| CUDA | a set? | which, or why not |"
    assert lines[2:] == ["| 13.1 to 11.0 | yes | left 1 |"]
