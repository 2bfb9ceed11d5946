"""`cudalock index`: who publishes what, what one serves, and what is wrong with it."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import cudalock
from cudalock.cli.main import main
from cudalock.index.definitions import load_definitions
from loopback import Asked, Loopback, Reply, serve
from publisher_worlds import INDICES

_SCHEMAS = Path(cudalock.__file__).parent / "cli" / "schemas"
_TAG = "cp312-cp312-manylinux_2_28_x86_64.whl"
_ARM = "cp312-cp312-manylinux_2_28_aarch64.whl"
_A, _B = "a" * 64, "b" * 64
_HTML = {"Content-Type": "text/html"}


def _link(name: str, *more: str, fragment: str = f"#sha256={_A}") -> str:
    href = name.replace("+", "%2B") + fragment
    return f'<a href="{href}" {" ".join(more)}>{name}</a><br>\n'


def _page(*links: str) -> bytes:
    return ("<!DOCTYPE html>\n" + "".join(links)).encode()


_PAGES = {
    "/whl/cu128/left/": _page(
        _link(f"left-1.0+cu128-{_TAG}"),
        _link(f"left-1.0+cu128-{_ARM}"),
        # A build of another release, one without a label, one of an unknown word.
        _link(f"left-0.9+cu126-{_TAG}"),
        _link(f"left-0.5-{_TAG}"),
        _link(f"left-0.6+zeta9.cu128-{_TAG}"),
    ),
    "/whl/cu130/left/": _page(
        _link(f"left-1.1+cu130-{_TAG}", 'data-upload-time="2026-11-02T10:00:00Z"'),
        # The same address again with another hash, one without any, and METADATA's in its place.
        _link(f"left-1.1+cu130-{_TAG}", fragment=f"#sha256={_B}"),
        _link(f"left-1.0+cu130-{_TAG}", fragment=""),
        _link(f"left-0.9+cu130-{_TAG}", f'data-core-metadata="sha256={_A}"'),
        _link(f"left-0.8+cu130-{_TAG}", 'data-yanked="broken"'),
    ),
    "/whl/cu128/right/": _page(_link(f"right-2.0+cu128-{_TAG}")),
    "/whl/cu130/": _page('<a href="left/">left</a>', '<a href="certifi/">certifi</a>', "<p>x</p>"),
}


def _answer(asked: Asked) -> Reply:
    body = _PAGES.get(asked.path)
    return Reply(404) if body is None else Reply(200, body, _HTML)


@pytest.fixture
def site() -> Iterator[Loopback]:
    with serve(_answer) as found:
        yield found


class Command:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder, self._capsys = folder, capsys
        self.err = ""

    def __call__(self, *arguments: str) -> tuple[int, str]:
        self._capsys.readouterr()
        flags = [] if arguments[0] == "list" else ["--cache-dir", str(self._folder / "cache")]
        code = main(["index", *arguments, *flags])
        out, self.err = self._capsys.readouterr()
        return code, out

    def form(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        code, out = self(*arguments, "--format", "json")
        schema = (_SCHEMAS / f"index-{arguments[0]}-1.json").read_text(encoding="utf-8")
        form = json.loads(out)
        jsonschema.validate(form, json.loads(schema))
        return code, form

    def codes(self, *arguments: str) -> list[str]:
        return [finding["code"] for finding in self.form("doctor", *arguments)[1]["findings"]]


@pytest.fixture
def index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path, capsys)


def _asked(site: Loopback, *projects: str) -> list[str]:
    only = [word for project in projects for word in ("--only", project)]
    return [f"{site.url}/whl/{{cuda}}", *only, "--default-index", f"{site.url}/simple"]


def test_list_names_every_publisher_and_asks_nobody(index: Command) -> None:
    code, out = index("list")
    assert code == 0
    assert all(len(line) <= 100 for line in out.splitlines())
    code, form = index.form("list")
    names = [publisher["name"] for publisher in form["publishers"]]
    assert names == [definition.name for definition in load_definitions(INDICES)]
    assert all(f"\n{name}" in f"\n{out}" for name in names)
    assert index.err == ""


def test_list_loads_no_client_and_nothing_that_draws() -> None:
    program = (
        "import sys; from cudalock.cli.main import main; code = main(['index', 'list']);"
        "heavy = {'httpcore', 'httpx', 'rich', 'resolvelib'} & set(sys.modules);"
        "sys.exit(f'{code} {heavy}' if code or heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_show_is_a_table_of_projects_by_cuda_release(
    index: Command, site: Loopback, golden: Callable[[str, str], None]
) -> None:
    code, out = index("show", *_asked(site, "left", "right"))
    assert code == 0
    golden("index-show.txt", out)
    _, form = index.form("show", *_asked(site, "left", "right"))
    left, right = form["projects"]
    assert {r["cuda"]: (r["newest"], r["files"]) for r in left["releases"]} == {
        None: ("0.5", 1),
        "12.6": ("0.9", 1),
        "12.8": ("1.0", 3),
        "13.0": ("1.1", 4),
    }
    assert [r["cuda"] for r in right["releases"]] == ["12.8"]


@pytest.mark.parametrize(
    ("flags", "told", "kept", "others"),
    [
        (("--platform", "linux-aarch64"), "manylinux_2_28_aarch64", {"12.8": 1}, 8),
        (("--python", "3.12"), "Python 3.12", {None: 1, "12.6": 1, "12.8": 3, "13.0": 4}, 0),
        (("--python", "3.13"), "Python 3.13", {}, 9),
        (("--python", "3.12", "--platform", "win-amd64"), "Python 3.12 on win_amd64", {}, 9),
    ],
)
def test_show_tells_which_wheels_are_for_a_machine_and_how_many_are_not(
    flags: tuple[str, ...],
    told: str,
    kept: dict[str | None, int],
    others: int,
    index: Command,
    site: Loopback,
) -> None:
    code, out = index("show", *_asked(site, "left"), *flags)
    assert code == 0
    assert f"Wheels for {told}" in out
    # A release keeps its column when none of its wheels is for the machine.
    assert "cu130" in out.splitlines()[0]
    _, form = index.form("show", *_asked(site, "left"), *flags)
    (left,) = form["projects"]
    assert ({r["cuda"]: r["files"] for r in left["releases"]}, left["other_files"]) == (
        kept,
        others,
    )


@pytest.mark.parametrize("flags", [("--python", "2.7"), ("--platform", "amiga")])
def test_a_machine_that_is_none_is_asked_wrongly_and_nobody_is_asked(
    flags: tuple[str, str], index: Command, site: Loopback
) -> None:
    code, _ = index("show", *_asked(site, "left"), *flags)
    assert (code, site.asked) == (2, [])


def test_each_page_is_asked_for_once(index: Command, site: Loopback) -> None:
    index("show", *_asked(site, "left"))
    pages = [path for path in site.paths() if path.endswith("/left/")]
    assert len(pages) == len(set(pages)) <= 30
    assert f"with {len(site.asked)} requests" in index.err


def test_a_release_that_only_the_publisher_names_is_asked_for(
    index: Command, site: Loopback
) -> None:
    pages = {
        "/whl/": _page('<a href="cu142/">cu142/</a>', '<a href="left/">left</a>'),
        "/whl/cu142/left/": _page(_link(f"left-9.0+cu142-{_TAG}")),
    }
    _PAGES.update(pages)
    try:
        code, form = index.form("show", *_asked(site, "left"))
    finally:
        for path in pages:
            del _PAGES[path]
    assert code == 0
    cells = {r["cuda"]: r["newest"] for r in form["projects"][0]["releases"]}
    assert cells["14.2"] == "9.0"
    # A list that lacks a release does not hide it.
    assert cells["13.0"] == "1.1"
    assert site.paths().count("/whl/") == 1
    assert f"with {len(site.asked)} requests" in index.err


def test_a_list_of_folders_beyond_reason_is_told_and_not_asked_for(
    index: Command, site: Loopback
) -> None:
    names = [f"cu{major}{minor}" for major in range(20, 99) for minor in (0, 9, 99)]
    _PAGES["/whl/"] = _page(*(f'<a href="{name}/">{name}/</a>' for name in names))
    try:
        code, form = index.form("doctor", *_asked(site, "right"))
    finally:
        del _PAGES["/whl/"]
    assert code == 0
    (finding,) = form["findings"]
    assert (finding["code"], finding["severity"]) == ("folders-not-asked", "note")
    assert {"cu2099", "cu230"} <= set(finding["facts"])
    # The first new majors are asked for, as those of next year will be.
    assert "/whl/cu200/right/" in site.paths()
    assert len(site.asked) < 100


def test_doctor_says_what_is_wrong_where_and_what_to_do(
    index: Command, site: Loopback, golden: Callable[[str, str], None]
) -> None:
    code, out = index("doctor", *_asked(site, "left", "right"), "-v")
    assert code == 1
    golden("index-doctor.txt", out.replace(site.url, "https://index.example.org"))
    assert set(index.codes(*_asked(site, "left", "right"))) == {
        "no-hash",
        "several-hashes",
        "hash-of-metadata",
        "folder-of-another-cuda",
        "untagged",
        "unread-label",
        "yanked",
        "release-missing",
        "machine-missing",
        "shadows",
    }


def test_doctor_is_content_with_an_index_in_order(index: Command, site: Loopback) -> None:
    code, form = index.form("doctor", *_asked(site, "right"))
    assert code == 0
    assert [finding["code"] for finding in form["findings"]] == []


def test_an_index_that_has_nothing_is_a_problem(index: Command, site: Loopback) -> None:
    code, form = index.form("doctor", *_asked(site, "absent"))
    assert code == 1
    assert [finding["code"] for finding in form["findings"]] == ["not-populated"]


@pytest.mark.parametrize("body", [b"\x00\xff<", b"{", b"<?xml version='1.0'?><x/>", b"<a href"])
def test_an_index_that_cannot_be_read_is_not_an_index_without_the_project(
    body: bytes, index: Command, tmp_path: Path
) -> None:
    with serve(lambda _: Reply(200, body, _HTML)) as site:
        code, form = index.form("doctor", *_asked(site, "left"))
        assert code == 3
        assert "unreadable" in [finding["code"] for finding in form["findings"]]
        code, shown = index("show", *_asked(site, "left"))
        assert code == 3
        assert "?" in shown.splitlines()[1]


def test_a_page_that_cannot_be_read_says_nothing_of_other_projects(index: Command) -> None:
    page = _page(_link(f"right-1.0+cu130-{_TAG}"))

    def answer(asked: Asked) -> Reply:
        return Reply(200, page if asked.path.endswith("/right/") else b"{", _HTML)

    with serve(answer) as site:
        code, form = index.form("show", *_asked(site, "left", "right"))
        assert code == 3
        left, right = form["projects"]
        assert left["error"]
        assert (right["error"], right["whole"]) == (None, True)
        code, form = index.form("doctor", *_asked(site, "left", "right"))
        assert code == 3
        unread = [f for f in form["findings"] if f["code"] == "unreadable"]
        assert [finding["facts"] for finding in unread] == [["left"]]


def test_where_nobody_answers_one_project_is_asked_for_and_the_others_say_so(
    index: Command,
) -> None:
    with serve(lambda _: [b""]) as site:
        code, form = index.form("show", *_asked(site, "left", "right"))
        assert code == 3
        assert not any("/right/" in path for path in site.paths())
        left, right = form["projects"]
        assert right["error"].startswith("not asked for, since left got no response")
        assert not left["error"].startswith("not asked")


def test_what_an_index_says_reaches_no_terminal_unescaped(index: Command) -> None:
    name = f"left-1.0+cu130-{_TAG}"
    page = _page(_link(name, 'data-upload-time="\x1b[31m"'), "<a href='evil\x1b[2J-1.0.whl'>e</a>")
    with serve(lambda _: Reply(200, page, _HTML)) as site:
        for action in ("show", "doctor"):
            _, out = index(action, *_asked(site, "left"), "-v")
            assert "\x1b" not in out + index.err


def test_doctor_names_the_address_with_five_hashes(index: Command) -> None:
    code, form = index.form("doctor", "sglang", "--recorded")
    assert code == 1
    found = [f for f in form["findings"] if f["code"] == "several-hashes"]
    facts = [fact for finding in found for fact in finding["facts"]]
    assert "sgl_kernel-0.3.21+cu130-cp310-abi3-manylinux2014_x86_64.whl: 5 hashes" in facts


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("list",), 0, "index-list.txt"),
        (("show", "pytorch", "--recorded"), 0, "index-show-pytorch.txt"),
        (("show", "sglang", "--recorded"), 0, "index-show-sglang.txt"),
        (("doctor", "pytorch", "--recorded"), 1, "index-doctor-pytorch.txt"),
        (("doctor", "sglang", "--recorded"), 1, "index-doctor-sglang.txt"),
    ],
)
def test_what_is_told_of_the_publishers_that_come_along(
    arguments: tuple[str, ...],
    code: int,
    text: str,
    index: Command,
    golden: Callable[[str, str], None],
) -> None:
    found, out = index(*arguments)
    assert found == code
    golden(text, out)


def test_doctor_names_stale_files_and_missing_hashes_of_a_recording(index: Command) -> None:
    code, form = index.form("doctor", "pytorch", "--recorded")
    assert code == 1
    told = {(f["code"], f["message"].partition(":")[0]) for f in form["findings"]}
    assert {("untagged", "torch"), ("no-hash", "torchvision")} <= told
    # A partial recording never says that something is missing.
    assert "project-missing" not in {code for code, _ in told}
    assert not any(f["code"] == "release-missing" for f in form["findings"])


def test_an_unknown_name_is_asked_wrongly_and_near_ones_are_told(index: Command) -> None:
    code, out = index("show", "flashinfr")
    assert (code, out) == (2, "")
    assert "near: flashinfer" in index.err


def test_an_index_without_a_definition_is_asked_for_named_projects_only(index: Command) -> None:
    code, _ = index("show", "https://example.org/whl")
    assert code == 2
    assert "--only PROJECT" in index.err


def test_the_default_index_is_asked_like_any_other(index: Command, site: Loopback) -> None:
    _PAGES["/simple/left/"] = _page(_link(f"left-3.0-{_TAG}"))
    try:
        flags = ["--default-index", f"{site.url}/simple", "--only", "left"]
        code, form = index.form("show", "default", *flags)
    finally:
        del _PAGES["/simple/left/"]
    assert code == 0
    assert form["projects"][0]["releases"][0]["newest"] == "3.0"


def test_a_publisher_of_folders_by_release_is_told_the_releases_by_the_default_index(
    index: Command, site: Loopback
) -> None:
    _PAGES["/simple/vllm/"] = _page(_link(f"vllm-0.19.1-{_TAG}"))
    try:
        flags = ["--recorded", "--default-index", f"{site.url}/simple"]
        code, form = index.form("show", "vllm", *flags)
    finally:
        del _PAGES["/simple/vllm/"]
    assert code == 0
    assert [r["cuda"] for r in form["projects"][0]["releases"]] == ["13.0"]


@pytest.mark.parametrize(
    ("arguments", "code", "status"),
    [
        (["index", "show", "flashinfr"], 2, "error"),
        (["inspect", "left-1.0-py3-none-any.whl"], 2, "error"),
        (["inspect", "https://127.0.0.1:9/left-1.0-py3-none-any.whl"], 3, "unknown"),
    ],
)
def test_an_error_is_data_where_data_was_asked_for(
    arguments: list[str], code: int, status: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--format", "json"]) == code
    form = json.loads(capsys.readouterr().out)
    schema = (_SCHEMAS / "error-1.json").read_text(encoding="utf-8")
    jsonschema.validate(form, json.loads(schema))
    assert form["status"] == status
    assert form["error"]["message"]
