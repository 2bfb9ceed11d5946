"""Nightlies and `--as-of` from the command line, on the recorded nightly pages and on loopback."""

import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cudalock import CudaVersion, Target, parse_driver_version
from cudalock.cli.main import main
from cudalock.index.client import open_client
from cudalock.resolver.conflict import NoSolutionError, UnprovedError
from cudalock.resolver.request import Request, Requested
from cudalock.resolver.resolution import Resolution
from cudalock.session import IndexOptions, Session
from cudalock.wheel.names import parse_requirement
from cudalock.wheel.published import parse_as_of
from default_index_site import Site, default_index
from publisher_worlds import moved_indices, publisher_site, required_index

_SCHEMAS = Path(__file__).parents[2] / "src" / "cudalock" / "cli" / "schemas"
_TARGET = ("--cuda", "13.0", "--driver", "590.48.01", "--sm", "12.0", "--python", "3.12",
           "--platform", "manylinux_2_28_x86_64")  # fmt: skip
_BOTH = ("--prerelease", "torch", "--prerelease", "torchvision")
_LINUX = "cp312-cp312-manylinux_2_28_x86_64"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A default index that has what the recorded wheels require, all of it uploaded long ago."""
    with required_index(tmp_path_factory.mktemp("recorded") / "files") as site:
        site.uploaded = "2025-01-14T09:03:53.503430Z"
        yield site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with default_index(tmp_path / "files") as found:
        yield found


def _run(
    capsys: pytest.CaptureFixture[str], site: Site, tmp_path: Path, *words: str
) -> tuple[int, dict[str, Any]]:
    flags = ["--default-index", site.url, "--cache-dir", str(tmp_path / "cache")]
    lock = ["-o", str(tmp_path / "pylock.toml")]
    code = main(["resolve", *words, *_TARGET, *flags, *lock, "--format", "json"])
    form = json.loads(capsys.readouterr().out)
    schema = json.loads((_SCHEMAS / "resolve-1.json").read_text(encoding="utf-8"))
    jsonschema.validate(form, schema)
    return code, form


def _messages(form: dict[str, Any], code: str) -> list[str]:
    return [w["message"] for w in form["warnings"] if w["code"] == code]


@pytest.mark.parametrize(
    ("words", "torch", "vision"),
    [
        (["torch<2.14.0a0"], "2.14.0.dev20260625", "0.29.0.dev20260626"),
        (["torch", "--as-of", "2026-06-30"], "2.14.0.dev20260625", "0.29.0.dev20260626"),
        (["torch", "--as-of", "2026-05-30"], "2.13.0.dev20260423", "0.27.0.dev20260423"),
        (["torch==2.12.0.dev20260222"], "2.12.0.dev20260222", "0.26.0.dev20260222"),
    ],
)
def test_the_recorded_nightlies_resolve_to_the_newest_aligned_train_without_a_hash(
    recorded: Site,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    torch: str,
    vision: str,
) -> None:
    code, form = _run(capsys, recorded, tmp_path, "torchvision", *words, *_BOTH, "--recorded")
    assert (code, form["status"]) == (3, "unknown")
    told = form["error"]
    assert (told["code"], told["flag"]) == ("missing-hash", "--hash-missing download")
    files = [line.split(":")[0].strip() for line in told["message"].splitlines()[1:]]
    assert f"torch-{torch}+cu130-{_LINUX}.whl" in files
    assert f"torchvision-{vision}+cu130-{_LINUX}.whl" in files
    # And the compiler that this torch pins; every other wheel has its hash.
    assert [file.split("-")[0] for file in files] == ["torch", "torchvision", "triton"]


def test_a_release_newer_than_the_nightlies_is_taken_and_that_is_said(
    recorded: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, form = _run(capsys, recorded, tmp_path, "torch", "torchvision", *_BOTH, "--recorded")
    pins = {package["name"]: package["version"] for package in form["packages"]}
    assert (code, pins["torch"]) == (0, "2.14.0+cu130")
    told = _messages(form, "nightly-older")
    assert any("2.14.0.dev20260625, is before it (`torch<2.14.0a0`" in text for text in told)


def test_the_mixed_lock_that_a_project_committed_cannot_come_out(
    recorded: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch = "torch==2.11.0.dev20260108+cu130"
    cu128 = "torchvision==0.25.0.dev20260108+cu128"
    flags = ["--recorded", "--no-remedies"]
    code, form = _run(capsys, recorded, tmp_path, torch, cu128, *flags)
    assert code == 1
    texts = [fact["text"] for fact in form["conflict"]["facts"]]
    assert "torchvision is built for CUDA 12" in texts
    assert "the target takes CUDA 13" in texts
    # The test index lists 0.15.1 for older Pythons only. The page beside it is not recorded whole,
    # so a wheel nobody saw may exist: what was seen is told, and no more is claimed.
    old = "torchvision==0.15.1"
    code, form = _run(capsys, recorded, tmp_path, torch, old, *flags)
    assert (code, form["status"]) == (3, "unknown")
    assert any("of torchvision 0.15.1 are for another Python" in t for t in _messages(form, "seen"))
    # Left open, no torchvision that was seen goes with that torch: each says which it is built for.
    code, form = _run(capsys, recorded, tmp_path, torch, "torchvision", *_BOTH[2:], *flags)
    assert code == 3
    told = _messages(form, "seen")
    assert any(
        "torchvision 0.26.0.dev20260222+cu130 requires `torch==2.12.0.dev2026" in t for t in told
    )
    assert any("torchvision 0.25.0+cu130 requires `torch==2.10.0`" in t for t in told)


def test_as_of_is_read_from_flag_environment_and_project_and_written_to_the_lock(
    site: Site,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site.add("left", "1.0")
    site.uploaded = "2026-02-20T23:59:59.503430Z"
    project = tmp_path / "project"
    project.mkdir()
    flags = ["--only-default-index", "--project", str(project)]

    def resolve(table: str, *words: str) -> tuple[int, str | None]:
        text = f"[project]\nname = 'x'\nversion = '1'\ndependencies = ['left']\n{table}"
        (project / "pyproject.toml").write_text(text, encoding="utf-8")
        code, form = _run(capsys, site, tmp_path, *flags, *words)
        return code, form["as_of"]

    assert resolve("[tool.cudalock]\nas-of = 2026-02-20\n") == (0, "2026-02-20")
    lock = tomllib.loads((tmp_path / "pylock.toml").read_text(encoding="utf-8"))
    assert lock["tool"]["cudalock"]["as-of"] == "2026-02-20"
    assert resolve("[tool.cudalock]\nas-of = '2026-02-19'\n") == (1, "2026-02-19")
    monkeypatch.setenv("CUDALOCK_AS_OF", "2026-02-21T00:00:00Z")
    assert resolve("[tool.cudalock]\nas-of = '2026-02-19'\n") == (0, "2026-02-21T00:00:00Z")
    assert resolve("", "--as-of", "2026-02-19") == (1, "2026-02-19")
    assert resolve("", "--as-of", "last week")[0] == 2


@pytest.mark.parametrize("value", ["'soon'", "7", "true", "2026-02-20T07:08:09", "07:08:09"])
def test_an_as_of_in_the_project_that_is_no_date_is_told_by_its_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str
) -> None:
    text = f"[tool.cudalock]\nas-of = {value}\n"
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    assert main(["resolve", "left", "--cpu", "--project", str(tmp_path)]) == 2
    assert "tool.cudalock.as-of: expected a date" in capsys.readouterr().err


def test_the_answer_says_where_the_dates_came_from_and_what_was_left_out(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add("left", "1.0.dev20260101", requires=["right"])
    site.add("left", "1.0.dev20260301", requires=["right"])
    site.add("right", "1.0")
    flags = ["left", "right==1.0", "--only-default-index", "--as-of", "2026-02-20"]
    code, form = _run(capsys, site, tmp_path, *flags)
    assert code == 0
    (told,) = _messages(form, "as-of")
    assert told.endswith("1 by the day in its version, 1 without a date (pinned)")


def test_a_refusal_by_date_names_the_day_and_a_file_without_one_proves_nothing(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add("left", "1.0")
    flags = ["left", "--only-default-index", "--as-of", "2026-02-20"]
    code, form = _run(capsys, site, tmp_path, *flags)
    assert code == 3
    assert "an exact pin takes one all the same" in form["error"]["message"]
    site.uploaded = "2026-03-01T07:08:09Z"
    (tmp_path / "other").mkdir()
    code, form = _run(capsys, site, tmp_path / "other", *flags)
    assert code == 1
    (late,) = [f for f in form["conflict"]["facts"] if f["kind"] == "rejection"]
    assert late["text"] == "1 wheel of left 1.0 is later than 2026-02-20 (`--as-of`)"
    assert late["source"] == "uploaded 2026-03-01"


# A publisher on loopback in the place of the PyTorch index.


def _page(*versions: str, project: str = "torch") -> bytes:
    names = [f"{project}-{version.replace('+', '%2B')}-{_LINUX}.whl" for version in versions]
    return "".join(f'<a href="/whl/{name}">{name}</a>\n' for name in names).encode()


def _requested(texts: Sequence[str]) -> tuple[Requested, ...]:
    return tuple(Requested(requirement=parse_requirement(t), where="test") for t in texts)


def _solve(
    tmp_path: Path,
    default: Site,
    pages: dict[str, bytes],
    requirements: Sequence[str],
    *,
    prereleases: Sequence[str] = (),
    cuda: CudaVersion,
) -> Resolution:
    with (
        publisher_site(tmp_path / "publisher", pages) as publisher,
        open_client(environ={}) as client,
    ):
        folder = moved_indices(
            tmp_path / "indices", "pytorch", "download.pytorch.org", publisher.url
        )
        options = IndexOptions(default_index=default.url, directory=folder)
        target = Target(
            python="3.12",
            platform="manylinux_2_28_x86_64",
            driver=parse_driver_version("580.65.06"),
            driver_cuda=CudaVersion(13, 0),
            cuda=cuda,
        )
        request = Request(requirements=_requested(requirements), prereleases=frozenset(prereleases))
        with Session(options, client=client) as session:
            return session.resolve(request, target)


def test_a_nightly_folder_without_torchvision_leaves_the_default_index_alone(
    site: Site, tmp_path: Path
) -> None:
    site.add("torchvision", "0.24.1", tag=_LINUX)
    pages = {"/whl/nightly/cu129/torch": _page("2.10.0.dev20251120+cu129")}
    with pytest.raises(NoSolutionError) as refused:
        _solve(
            tmp_path,
            site,
            pages,
            ["torch", "torchvision"],
            prereleases=["torch", "torchvision"],
            cuda=CudaVersion(12, 9),
        )
    (described,) = refused.value.conflict.facts
    assert described.fact.detail == "torchvision"
    assert described.note == (
        "no nightly of torchvision is listed (`pytorch` does not have it in nightly/cu120 to "
        "nightly/cu129)"
    )


def test_nightlies_from_a_definition_say_when_they_are_dropped(site: Site, tmp_path: Path) -> None:
    pages = {"/whl/nightly/cu130/torch": _page("2.11.0.dev20260220+cu130")}
    resolution = _solve(
        tmp_path, site, pages, ["torch"], prereleases=["torch"], cuda=CudaVersion(13, 0)
    )
    (told,) = [w.message for w in resolution.warnings if w.code == "nightly-expires"]
    assert told.startswith("dropped by `pytorch` about 2026-04-21: 60 days after their day")


def test_a_purged_nightly_is_refused_with_the_days_there_are(site: Site, tmp_path: Path) -> None:
    versions = [f"2.9.0.dev{day}+cu128" for day in (20250901, 20250902, 20251101)]
    pages = {"/whl/nightly/cu128/torch": _page(*versions)}
    with pytest.raises(NoSolutionError) as refused:
        _solve(tmp_path, site, pages, ["torch==2.9.0.dev20250804"], cuda=CudaVersion(12, 8))
    (described,) = refused.value.conflict.facts
    assert described.note == (
        "the nightlies of torch that are listed are of 20250901 to 20251101, and `pytorch` removes "
        "them after about 60 days"
    )


def test_a_remedy_lets_the_nightlies_of_the_train_in(
    recorded: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Without `--recorded` the publishers' other indices would be asked: only one is there.
    pages = {
        "/whl/nightly/cu130/torch": _page("2.11.0.dev20260220+cu130"),
        "/whl/nightly/cu130/torchvision": _page("0.26.0.dev20260220+cu130", project="torchvision"),
        "/whl/cu130/torchvision": _page("0.25.0+cu126", project="torchvision"),
    }
    with (
        publisher_site(tmp_path / "publisher", pages) as publisher,
        default_index(tmp_path / "default") as default,
    ):
        folder = moved_indices(
            tmp_path / "indices", "pytorch", "download.pytorch.org", publisher.url
        )
        target = Target(
            python="3.12",
            platform="manylinux_2_28_x86_64",
            cuda=CudaVersion(13, 0),
            driver=parse_driver_version("580.65.06"),
            driver_cuda=CudaVersion(13, 0),
        )
        request = Request(requirements=_requested(["torch==2.11.0.dev20260220", "torchvision"]))
        options = IndexOptions(default_index=default.url, directory=folder)
        with open_client(environ={}) as client, Session(options, client=client) as session:
            with pytest.raises(NoSolutionError) as refused:
                session.resolve(request, target)
            remedies = session.remedies(request, target, refused.value.conflict)
    first = remedies[0]
    assert first.changes == ("--prerelease torchvision",)
    assert first.prereleases == ("torchvision",)


def test_a_folder_a_release_is_asked_for_those_that_were_there(site: Site, tmp_path: Path) -> None:
    for version, time in (("0.19.1", "2026-02-01T07:08:09Z"), ("0.20.2", "2026-03-01T07:08:09Z")):
        path = site.add("vllm", version, tag=_LINUX)
        site.times[path.name] = time
    pages = {
        f"/{version}/cu130/vllm": _page(f"{version}+cu130", project="vllm")
        for version in ("0.19.1", "0.20.2")
    }
    with (
        publisher_site(tmp_path / "publisher", pages) as publisher,
        open_client(environ={}) as client,
    ):
        folder = moved_indices(tmp_path / "indices", "vllm", "wheels.vllm.ai", publisher.url)
        options = IndexOptions(default_index=site.url, directory=folder)
        target = Target(
            python="3.12",
            platform="manylinux_2_28_x86_64",
            driver=parse_driver_version("580.65.06"),
            driver_cuda=CudaVersion(13, 0),
            cuda=CudaVersion(13, 0),
        )
        with Session(options, client=client) as session:
            request = Request(
                requirements=_requested(["vllm"]),
                as_of=parse_as_of("2026-02-20", where="test"),
            )
            # The publisher's own page dates nothing, so only a pin takes what it lists.
            with pytest.raises(UnprovedError) as untold:
                session.resolve(request, target)
            pinned = replace(request, requirements=_requested(["vllm==0.19.1"]))
            resolution = session.resolve(pinned, target)
            asked = publisher.asked
    assert "vllm: wheels without a date" in untold.value.message
    assert [str(package.version) for package in resolution.packages] == ["0.19.1+cu130"]
    assert "/0.19.1/cu130/vllm/" in asked
    assert not any(path.startswith("/0.20.2") for path in asked)


def test_a_hint_repeats_what_lets_pre_releases_in(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.uploaded = "2026-02-01T07:08:09Z"
    site.add("torch", "2.11.0.dev20260120")
    site.add("torch", "2.10.0")
    site.add("torchvision", "0.25.0", requires=["torch==2.10.0"])
    site.add("torchvision", "0.26.0.dev20260120", requires=["torch==2.11.0.dev20260120"])
    words = ["torch==2.11.0.dev20260120", "torchvision", "--only-default-index"]
    code, form = _run(capsys, site, tmp_path, *words, "--as-of", "2026-02-20")
    assert code == 1
    opened = next(
        r for r in form["conflict"]["remedies"] if "--prerelease torchvision" in r["changes"]
    )
    assert "--prerelease torchvision" in opened["command"]
    assert "--as-of 2026-02-20" in opened["command"]
    notes = " ".join(fact["text"] for fact in form["conflict"]["facts"])
    assert "2.11.0.dev20260120 is before" not in notes, "2.10.0 is another release"


def test_the_project_names_whose_nightlies_are_wanted(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add("left", "1.0")
    site.add("left", "1.1.dev20260101")
    text = "[project]\nname = 'x'\nversion = '1'\ndependencies = ['left']\n"
    chosen = []
    for table in ("", "[tool.cudalock]\nnightly = ['Left']\n"):
        (tmp_path / "pyproject.toml").write_text(text + table, encoding="utf-8")
        flags = ["--only-default-index", "--project", str(tmp_path), "--upgrade"]
        code, form = _run(capsys, site, tmp_path, *flags)
        assert code == 0
        chosen.append(form["packages"][0]["version"])
    assert chosen == ["1.0", "1.1.dev20260101"]
