from dataclasses import replace

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from cudalock.index.releases import (
    PARTNERS_LIMIT,
    admitted_releases,
    listed_releases,
    partner_requests,
    unserved_pin,
)
from cudalock.index.routes import FolderRequest
from cudalock.wheel.filename import parse_wheel_file
from cudalock.wheel.listing import FileRejection, IndexAnswer, ListedFile, ProjectListing

_ANY = SpecifierSet()


def file(version: str, folder: str | None = "cu130", *, nightly: bool = False) -> ListedFile:
    wheel = parse_wheel_file(f"frame-{version}-cp312-cp312-linux_x86_64.whl")
    url = f"https://frame.example/{folder}/{wheel.filename}"
    return ListedFile(
        wheel=wheel, url=url, index="frame", index_url="", folder=folder, nightly=nightly
    )


def listing(*files: ListedFile, status: str = "listed") -> ProjectListing:
    answer = IndexAnswer(index="frame", url="", folder="cu130", status=status)  # type: ignore[arg-type] # one of the words
    return ProjectListing(project="frame", files=files, answers=(answer,))


def folder(name: str | None = "cu130") -> FolderRequest:
    url = f"https://ext.example/{name}/frame{{partner}}"
    return FolderRequest(url=url, index_url=url, folder=name, flat=True)


def asked(*folders: FolderRequest, of: ProjectListing, admitted: str = "") -> list[str]:
    found = partner_requests(folders, of, SpecifierSet(admitted))
    assert found.cut == ""
    return [request.url.removeprefix("https://ext.example/") for request in found.folders]


def rejected(name: str, kind: str = "not-a-wheel") -> FileRejection:
    return FileRejection(filename=name, kind=kind, reason="", where="")


def test_source_distributions_tell_the_releases_too() -> None:
    found = listed_releases(
        [file("1.0+cu130")],
        [
            rejected("frame-1.1.tar.gz"),
            rejected("frame-1.2+local.zip"),
            rejected("frame-.tar.gz"),
            rejected("https://example.org/"),
            rejected("frame-9.tar.gz", "other-project"),
        ],
    )
    assert found == {Version("1.0"), Version("1.1"), Version("1.2")}


def test_releases_are_admitted_by_their_public_version_and_newest_first() -> None:
    versions = [Version(text) for text in ("2.9.1", "2.10.0", "2.11.0rc1", "2.8.0")]
    told = admitted_releases(versions, SpecifierSet(">2.8"), prereleases=False)
    assert told == [Version("2.10.0"), Version("2.9.1")]
    told = admitted_releases(versions, SpecifierSet("==2.9.1+cu130"), prereleases=False)
    assert told == [Version("2.9.1")]
    told = admitted_releases(versions, SpecifierSet("==2.11.0rc1,!=2.9+cu1"), prereleases=False)
    assert told == [Version("2.11.0rc1")]


def test_a_folder_is_asked_for_the_partners_releases_of_its_own_cuda() -> None:
    shown = listing(
        file("2.9.1+cu130"),
        file("2.10.0+cu130"),
        file("2.10.0+cu129", "cu129"),
        file("2.8.0", "cu129"),
        file("2.0.1", None),
    )
    # What has no label there is an old wheel that every folder repeats.
    assert asked(folder(), folder("cu129"), of=shown) == [
        "cu130/frame2.10.0",
        "cu129/frame2.10.0",
        "cu130/frame2.9.1",
    ]


def test_where_no_wheel_has_a_label_the_folder_tells() -> None:
    shown = listing(file("2.9.1"), file("2.8.0", "cu129"))
    assert asked(folder(), folder("cu129"), of=shown) == ["cu130/frame2.9.1", "cu129/frame2.8.0"]


def test_a_label_outranks_the_folder_it_lies_in() -> None:
    shown = listing(file("2.10.0+cu129", "cu130"))
    assert asked(folder(), folder("cu129"), of=shown) == ["cu129/frame2.10.0"]


def test_a_release_that_tells_no_cuda_counts_for_every_folder() -> None:
    shown = listing(file("2.10.0", None))
    assert asked(folder(), folder("cu129"), of=shown) == ["cu130/frame2.10.0", "cu129/frame2.10.0"]


def test_a_build_for_something_else_is_no_partner() -> None:
    shown = listing(file("2.10.0+rocm6.4", "rocm6.4"), file("2.9.0+cpu", None), file("2.8.0+xpu"))
    assert asked(folder(), of=shown) == []
    # For a machine without CUDA the folder is that of the label.
    assert asked(folder("cpu"), of=listing(file("2.9.0+cpu", "cpu"))) == ["cpu/frame2.9.0"]


def test_a_folder_without_a_cuda_release_is_asked_for_every_release() -> None:
    shown = listing(file("2.10.0+cu130"), file("2.9.0+cu126", "cu126"))
    assert asked(folder(None), of=shown) == ["None/frame2.10.0", "None/frame2.9.0"]


def test_what_a_person_admits_of_the_partner_bounds_the_requests() -> None:
    shown = listing(file("2.9.1+cu130"), file("2.10.0+cu130"), file("2.11.0.dev1+cu130"))
    assert asked(folder(), of=shown, admitted="<2.10") == ["cu130/frame2.9.1"]
    assert asked(folder(), of=shown, admitted=">=3") == []
    nightly = listing(file("2.11.0.dev1+cu130", nightly=True))
    assert asked(folder(), of=nightly) == ["cu130/frame2.11.0.dev1"]


def test_more_releases_than_are_asked_for_are_said_and_never_absent() -> None:
    shown = listing(*(file(f"2.{minor}.0+cu130") for minor in range(40)))
    found = partner_requests([folder()], shown, _ANY)
    assert len(found.folders) == PARTNERS_LIMIT
    assert found.folders[0].url.endswith("frame2.39.0")
    assert found.cut == f"only the newest {PARTNERS_LIMIT} of 40 releases of frame were asked for"


@pytest.mark.parametrize("status", ["partial", "unrecorded"])
def test_a_partner_that_was_not_seen_whole_is_said(status: str) -> None:
    found = partner_requests([folder()], listing(file("2.10.0+cu130"), status=status), _ANY)
    assert len(found.folders) == 1
    assert found.cut == "frame was not seen whole"


@pytest.mark.parametrize(
    ("admitted", "unserved"),
    [
        ("==2.11.0", "2.11.0"),
        ("==2.11.0+cu130", "2.11.0+cu130"),
        ("==2.10.0+cu129", "2.10.0+cu129"),
        ("==2.12.0.dev20260101", "2.12.0.dev20260101"),
        ("==2.10.0", None),
        ("==2.10.0+cu130", None),
        ("==2.11.*", None),
        (">=2.11", None),
        ("", None),
        ("===2.11.0", None),
    ],
)
def test_an_exact_pin_is_unserved_when_no_file_is_of_it(
    admitted: str, unserved: str | None
) -> None:
    found = unserved_pin(SpecifierSet(admitted), [file("2.10.0+cu130")])
    assert found == (None if unserved is None else Version(unserved))


def test_a_nightly_folder_tells_its_request_apart() -> None:
    request = replace(folder(), nightly=True).at_partner(Version("2.10.0"))
    assert request.shown_folder == "nightly/cu130"
