"""Hashes from the page to the lock: claimed, observed, computed, and what is said when they clash."""

import hashlib
import json
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from packaging.requirements import Requirement

import cudalock
from builders import make_wheel
from cudalock.cli.main import main
from cudalock.host import Target
from cudalock.index.failures import HashMismatchError
from cudalock.lock import format_lock
from cudalock.lock.build import HashesNeededError, build_lock
from cudalock.resolver.request import Request, Requested
from cudalock.resolver.resolution import Resolution
from cudalock.session import IndexOptions, Session
from cudalock.solving import resolve_world
from default_index_site import Site, default_index
from loopback import Reply
from scenario_worlds import read_scenario

A, B, C = "a1" * 32, "b2" * 32, "c3" * 32
CPU = ["--cpu", "--python", "3.12", "--platform", "linux-x86_64"]
TARGET = Target(python="3.12", platform="manylinux_2_28_x86_64", cpu=True)
SCHEMA = Path(cudalock.__file__).parent / "cli" / "schemas" / "resolve-1.json"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with default_index(tmp_path / "files") as found:
        yield found


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "pylock.toml"


def claim(site: Site, project: str, *links: str, more: str = "") -> None:
    """Let the page of a project hold links: ``NAME#fragment``."""
    anchors = "".join(f'<a href="/files/{link}" {more}>x</a><br>' for link in links)
    site.faults[project] = Reply(200, anchors.encode(), {"Content-Type": "text/html"})


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run(site: Site, tmp_path: Path, lock: Path, *more: str) -> int:
    flags = ["--default-index", site.url, "--cache-dir", str(tmp_path / "cache"), "-o", str(lock)]
    return main(["resolve", *CPU, *flags, *more])


def locked(lock: Path) -> dict[str, Any]:
    (package,) = tomllib.loads(lock.read_text(encoding="utf-8"))["packages"]
    (wheel,) = package["wheels"]
    evidence = package["tool"]["cudalock"][wheel["name"]]
    return {**wheel, "index": package["index"], "evidence": evidence}


def asked_files(site: Site) -> list[str]:
    return [path for path in site.asked if path.startswith("/files/")]


def test_one_claim_is_locked_as_claimed_and_nothing_is_downloaded(
    site: Site, tmp_path: Path, lock: Path
) -> None:
    path = site.add("left", "1.0")
    assert run(site, tmp_path, lock, "left", "--hash-missing", "download") == 0
    found = locked(lock)
    assert (found["hashes"], found["evidence"]["hash"]) == ({"sha256": digest(path)}, "claimed")
    assert "hashes-aside" not in found["evidence"]


def test_no_claim_is_computed_and_the_next_run_downloads_nothing_offline_neither(
    site: Site, tmp_path: Path, lock: Path
) -> None:
    path = site.add("left", "1.0")
    claim(site, "left", path.name)
    # Never an empty table of hashes: it is computed, or nothing is written.
    assert run(site, tmp_path, lock, "left") == 3
    assert not lock.exists()
    assert run(site, tmp_path, lock, "left", "--hash-missing", "download") == 0
    first = lock.read_bytes()
    found = locked(lock)
    assert (found["hashes"], found["evidence"]["hash"]) == ({"sha256": digest(path)}, "computed")
    assert found["size"] == path.stat().st_size
    before = len(asked_files(site))
    for flags in (("--hash-missing", "download"), (), ("--offline",)):
        lock.unlink()
        assert run(site, tmp_path, lock, "left", *flags) == 0
        assert lock.read_bytes() == first
    assert len(asked_files(site)) == before


def test_several_claims_are_settled_by_the_bytes_and_the_stale_ones_are_named(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = site.add("left", "1.0")
    claim(site, "left", *(f"{path.name}#sha256={claim}" for claim in (A, digest(path), B)))
    assert run(site, tmp_path, lock, "left") == 3
    told = " ".join(capsys.readouterr().err.split())
    assert f"the index lists 3 for this address: {A}, {digest(path)}, {B}" in told
    assert run(site, tmp_path, lock, "left", "--hash-missing", "download") == 0
    told = " ".join(capsys.readouterr().err.split())
    assert f"default lists 3 hashes for {path.name}" in told
    assert f"{digest(path)[:12]}… is observed" in told
    found = locked(lock)
    assert (found["hashes"], found["evidence"]["hash"]) == ({"sha256": digest(path)}, "observed")
    why = "default claims it and the bytes do not have it"
    assert found["evidence"]["hashes-aside"] == [f"{A}: {why}", f"{B}: {why}"]


def test_the_same_in_json(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = site.add("left", "1.0")
    claim(site, "left", f"{path.name}#sha256={A}", f"{path.name}#sha256={digest(path)}")
    flags = ("left", "--hash-missing", "download", "--format", "json")
    assert run(site, tmp_path, lock, *flags) == 0
    form = json.loads(capsys.readouterr().out)
    jsonschema.validate(form, json.loads(SCHEMA.read_text(encoding="utf-8")))
    (wheel,) = form["packages"][0]["wheels"]
    assert (wheel["sha256"], wheel["hash"]) == (digest(path), "observed")
    assert wheel["claims"] == [A, digest(path)]
    (warning,) = [w for w in form["warnings"] if w["code"] == "hash-conflict"]
    assert warning["facts"] == [
        f"sha256:{A} (default claims it and the bytes do not have it)",
        f"sha256:{digest(path)} (default claims it)",
    ]


def test_bytes_of_none_of_the_claims_lock_nothing(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = site.add("left", "1.0")
    claim(site, "left", f"{path.name}#sha256={A}", f"{path.name}#sha256={B}")
    flags = ("left", "--hash-missing", "download")
    assert run(site, tmp_path, lock, *flags) == 3
    told = " ".join(capsys.readouterr().err.split())
    for words in (A, B, digest(path), "nothing is locked"):
        assert words in told
    assert not lock.exists()
    assert run(site, tmp_path, lock, *flags, "--format", "json") == 3
    form = json.loads(capsys.readouterr().out)
    jsonschema.validate(form, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert (form["status"], form["error"]["code"]) == ("unknown", "hash-mismatch")


def test_the_hash_a_person_gives_takes_bytes_that_no_claim_has(
    site: Site, tmp_path: Path, lock: Path
) -> None:
    path = site.add("left", "1.0")
    claim(site, "left", f"{path.name}#sha256={A}", f"{path.name}#sha256={B}")
    wanted = tmp_path / "requirements.txt"
    wanted.write_text(f"left==1.0 --hash=sha256:{digest(path)}\n", encoding="utf-8")
    assert run(site, tmp_path, lock, "-r", str(wanted), "--hash-missing", "download") == 0
    found = locked(lock)
    assert (found["hashes"], found["evidence"]["hash"]) == ({"sha256": digest(path)}, "observed")
    lock.unlink()
    wanted.write_text(f"left==1.0 --hash=sha256:{C}\n", encoding="utf-8")
    assert run(site, tmp_path, lock, "-r", str(wanted), "--hash-missing", "download") == 3
    assert not lock.exists()


def test_a_hash_a_person_gives_that_one_claim_contradicts_is_a_no(
    site: Site, tmp_path: Path, lock: Path
) -> None:
    site.add("left", "1.0")
    wanted = tmp_path / "requirements.txt"
    wanted.write_text(f"left==1.0 --hash=sha256:{C}\n", encoding="utf-8")
    assert run(site, tmp_path, lock, "-r", str(wanted)) == 1


def test_of_several_claims_the_one_a_person_gives_is_taken_without_a_download(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = site.add("left", "1.0")
    claim(site, "left", f"{path.name}#sha256={A}", f"{path.name}#sha256={B}")
    wanted = tmp_path / "requirements.txt"
    wanted.write_text(f"left==1.0 --hash=sha256:{B}\n", encoding="utf-8")
    assert run(site, tmp_path, lock, "-r", str(wanted)) == 0
    found = locked(lock)
    assert (found["hashes"], found["evidence"]["hash"]) == ({"sha256": B}, "claimed")
    assert found["evidence"]["hashes-aside"] == [f"{A}: the requirement asks for another"]
    assert "a hash that does not count" in " ".join(capsys.readouterr().err.split())


def test_a_wheel_that_has_the_asked_hash_is_taken_before_a_newer_one_whose_hash_is_open(
    site: Site, tmp_path: Path, lock: Path
) -> None:
    old, new = site.add("left", "1.0"), site.add("left", "2.0")
    claim(site, "left", f"{old.name}#sha256={digest(old)}", new.name)
    wanted = tmp_path / "requirements.txt"
    wanted.write_text(f"left --hash=sha256:{digest(old)}\n", encoding="utf-8")
    assert run(site, tmp_path, lock, "-r", str(wanted)) == 0
    assert locked(lock)["name"] == old.name
    # And what nobody looked at proves nothing.
    wanted.write_text(f"left>=2 --hash=sha256:{digest(old)}\n", encoding="utf-8")
    assert run(site, tmp_path, lock, "-r", str(wanted)) == 3


def test_metadatas_hash_in_place_of_the_wheels_is_a_missing_one_and_that_is_said(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = site.add("left", "1.0")
    sidecar = f'data-core-metadata="sha256={A}"'
    claim(site, "left", f"{path.name}#sha256={A}", more=sidecar)
    assert run(site, tmp_path, lock, "left") == 3
    told = " ".join(capsys.readouterr().err.split())
    assert f"the index lists none ({A}: it is the hash of its METADATA)" in told
    assert run(site, tmp_path, lock, "left", "--hash-missing", "download") == 0
    told = " ".join(capsys.readouterr().err.split())
    assert f"{A[:12]}… (it is the hash of its METADATA)" in told
    found = locked(lock)
    assert (found["hashes"], found["evidence"]["hash"]) == ({"sha256": digest(path)}, "computed")


def test_a_size_that_the_bytes_do_not_have_is_a_mismatch_where_no_hash_is_claimed(
    site: Site, tmp_path: Path, lock: Path
) -> None:
    path = site.add("left", "1.0")
    file = {"filename": path.name, "url": f"/files/{path.name}", "hashes": {}, "size": 5}
    page = {"meta": {"api-version": "1.1"}, "name": "left", "files": [file]}
    kind = {"Content-Type": "application/vnd.pypi.simple.v1+json"}
    site.faults["left"] = Reply(200, json.dumps(page).encode(), kind)
    assert run(site, tmp_path, lock, "left", "--hash-missing", "download") == 3
    assert not lock.exists()


def test_a_wheel_of_this_machine_is_always_read_and_a_lying_claim_refused(
    site: Site, tmp_path: Path
) -> None:
    wheel = make_wheel(tmp_path, "left", "1.0")
    options = IndexOptions(default_index=site.url)
    with Session(options) as session:
        for claimed, state in ((digest(wheel), "observed"), (None, "computed"), (A, None)):
            fragment = "" if claimed is None else f"#sha256={claimed}"
            wish = Requirement(f"left @ {wheel.as_uri()}{fragment}")
            request = Request(requirements=(Requested(requirement=wish, where="test"),))
            resolution = session.resolve(request, TARGET)
            if state is None:
                with pytest.raises(HashMismatchError):
                    session.lock(resolution, request, folder=tmp_path)
                continue
            found = session.lock(resolution, request, folder=tmp_path).packages[0]
            assert found.wheels[0].hashes == {"sha256": digest(wheel)}
            assert (found.tool or {})[wheel.name]["hash"] == state  # type: ignore[index,call-overload] # a table


# Rival files


def test_two_builds_for_one_tag_are_told_and_the_nearer_platform_is_taken(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loose = site.add("nvtx", "12.6.77", tag="py3-none-manylinux2014_x86_64")
    tight = site.add("nvtx", "12.6.77", tag="py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64")
    for _ in range(2):
        assert run(site, tmp_path, lock, "nvtx") == 0
        found = locked(lock)
        assert (found["name"], found["hashes"]["sha256"]) == (tight.name, digest(tight))
        told = " ".join(capsys.readouterr().err.split())
        assert f"{tight.name} is taken (the tag nearest to the target first, then the name)" in told
        assert loose.name in told
        site.files["nvtx"].reverse()


def test_builds_for_other_tags_and_numbered_builds_are_no_rivals(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add("left", "1.0")
    site.add("left", "1.0", tag="cp312-cp312-manylinux_2_17_x86_64")
    site.add("left", "1.0", tag="1-py3-none-any")
    assert run(site, tmp_path, lock, "left") == 0
    assert "is taken" not in capsys.readouterr().err


def test_one_name_with_other_bytes_on_a_second_index_is_told_when_both_were_read(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = site.add("left", "1.0")
    claim(site, "links", f"../other/{taken.name}#sha256={A}")
    assert run(site, tmp_path, lock, "left", "--find-links", f"{site.url}/links/") == 0
    told = " ".join(capsys.readouterr().err.split())
    assert "other bytes have this name on" in told
    found = locked(lock)
    # Whichever is taken, its hash is its own.
    own = digest(taken) if "/files/left" in found["url"] else A
    assert found["hashes"]["sha256"] == own


# What the lock says of every pin


def test_every_pin_with_a_local_label_carries_its_index_and_its_address() -> None:
    # hushh-labs/hushh-research#6584: a pin on +cpu that lost its index.
    resolution = _per_file()
    lock = build_lock(resolution, requirements=["torch==2.7.0"])
    text = format_lock(lock)
    for package in tomllib.loads(text)["packages"]:
        if "+" in package["version"]:
            assert package["index"] == "https://pytorch.test/cu126/"
            assert all(wheel["url"].startswith(package["index"]) for wheel in package["wheels"])
    assert "+cu126" in text


def _per_file() -> Resolution:
    path = Path(__file__).parent / "scenarios" / "metadata-is-per-file.toml"
    return resolve_world(read_scenario(path).world())


def test_a_lock_is_never_built_of_a_file_whose_hash_is_open() -> None:
    # pytorch/pytorch#164347: a pylock.toml without hashes is none.
    resolution = _per_file()
    for claims in ((), (A, B)):
        packages = tuple(
            replace(package, file=replace(package.file, sha256=claims))
            for package in resolution.packages
        )
        with pytest.raises(HashesNeededError) as caught:
            build_lock(replace(resolution, packages=packages), requirements=[])
        assert len(caught.value.files) == len(resolution.packages)


# What an index says of a project as a whole


def _page(status: str, path: Path | None, reason: str | None = None) -> Reply:
    said = {"status": status} if reason is None else {"status": status, "reason": reason}
    files = []
    if path is not None:
        hashes = {"sha256": digest(path)}
        files = [{"filename": path.name, "url": f"/files/{path.name}", "hashes": hashes}]
    page = {"meta": {"api-version": "1.4"}, "name": "left", "files": files, "project-status": said}
    kind = {"Content-Type": "application/vnd.pypi.simple.v1+json"}
    return Reply(200, json.dumps(page).encode(), kind)


@pytest.mark.parametrize("status", ["archived", "deprecated"])
def test_a_project_that_is_archived_or_deprecated_is_locked_with_a_warning(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str], status: str
) -> None:
    site.faults["left"] = _page(status, site.add("left", "1.0"), "use right")
    assert run(site, tmp_path, lock, "left") == 0
    assert f"warning[CUDA407]: default marks left as {status}: use right" in capsys.readouterr().err


def test_a_project_in_quarantine_is_a_no_that_says_so_and_never_an_absence(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.faults["left"] = _page("quarantined", None)
    assert run(site, tmp_path, lock, "left") == 1
    told = " ".join(capsys.readouterr().err.split())
    assert "Because left is in quarantine: its index offers none of its files" in told
    assert "no index lists" not in told
    assert not lock.exists()
