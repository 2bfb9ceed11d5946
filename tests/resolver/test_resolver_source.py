"""Wheels in memory as a source: listings, metadata, and wheels by URL."""

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from cudalock.errors import WheelError
from cudalock.resolver.source import MemorySource
from cudalock.wheel import CoreMetadata, ProjectListing
from random_worlds import Wheel

_ANY = SpecifierSet()


def test_a_listing_holds_the_files_of_the_project_and_says_where_they_are_listed() -> None:
    source = MemorySource([Wheel(project="a", version="1").listed()])
    listing = source.listing("a", admitted=_ANY, nightly=False)
    assert [file.filename for file in listing.files] == [
        "a-1-cp312-cp312-manylinux_2_28_x86_64.whl"
    ]
    assert [(answer.index, answer.status) for answer in listing.answers] == [("wheels", "listed")]
    assert source.listing("b", admitted=_ANY, nightly=True).absent


def test_nightly_files_are_there_for_those_who_open_the_folders() -> None:
    final, nightly = Wheel(project="a", version="1"), Wheel(project="a", version="2", nightly=True)
    source = MemorySource([final.listed(), nightly.listed()])
    assert len(source.listing("a", admitted=_ANY, nightly=True).files) == 2
    assert source.listing("a", admitted=_ANY, nightly=False).files == (final.listed(),)


def test_a_listing_that_is_given_stands_for_the_files() -> None:
    given = ProjectListing(project="a", notes=("a note",))
    source = MemorySource([Wheel(project="a", version="1").listed()], listings=[given])
    assert source.listing("a", admitted=_ANY, nightly=False) is given


def test_metadata_comes_with_the_file_or_by_its_name() -> None:
    file = Wheel(project="a", version="1", requires=None).listed()
    metadata = CoreMetadata(project="a", version=Version("1"))
    assert MemorySource([file]).metadata(file) is None
    assert MemorySource([file], metadata={file.filename: metadata}).metadata(file) is metadata


def test_a_wheel_by_url_is_the_one_listed_there_or_is_read_from_the_url() -> None:
    listed = Wheel(project="a", version="1").listed()
    source = MemorySource([listed])
    assert source.direct("a", listed.url, None) is listed
    other = source.direct("b", "https://other.test/b-2-py3-none-any.whl", "c" * 64)
    assert (other.wheel.project, other.sha256) == ("b", ("c" * 64,))
    assert source.direct("b", "https://other.test/b-2-py3-none-any.whl", None).sha256 == ()


@pytest.mark.parametrize("url", ["https://other.test/a-2-py3-none-any.whl", "https://other.test/"])
def test_a_url_that_is_no_wheel_of_the_project_is_refused(url: str) -> None:
    with pytest.raises(WheelError):
        MemorySource([]).direct("b", url, None)
