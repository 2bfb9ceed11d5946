from dataclasses import replace

import pytest
from packaging.version import Version

from cudalock.resolver.file_notes import file_warnings, hash_warnings
from cudalock.resolver.resolution import ResolvedPackage
from cudalock.wheel import CoreMetadata, ListedFile, parse_wheel_file
from cudalock.wheel.evidence import Variant
from cudalock.wheel.file_hash import FileHash
from cudalock.wheel.listing import HashAside

A, B, C = "a1" * 32, "b2" * 32, "c3" * 32
NAME = "left-1.0-py3-none-any.whl"


def listed(
    name: str = NAME, *sha256: str, index: str = "default", size: int | None = None
) -> ListedFile:
    return ListedFile(
        wheel=parse_wheel_file(name),
        url=f"https://{index}.test/{'-'.join(sha256)}/{name}",
        index=index,
        index_url=f"https://{index}.test/",
        sha256=sha256,
        size=size,
    )


def package(
    file: ListedFile, *rivals: ListedFile, settled: FileHash | None = None
) -> ResolvedPackage:
    version = Version("1.0")
    return ResolvedPackage(
        project="left",
        version=version,
        file=file,
        metadata=CoreMetadata(project="left", version=version),
        variant=Variant(state="none"),
        extras=frozenset(),
        dependencies=(),
        hash=settled,
        rivals=rivals,
    )


def codes(*rivals: ListedFile, chosen: ListedFile | None = None) -> list[str]:
    file = listed(NAME, A) if chosen is None else chosen
    return [warning.code for warning in file_warnings(package(file, *rivals), ())]


def test_one_name_is_told_where_its_bytes_cannot_be_the_same() -> None:
    assert codes(listed(NAME, B, index="other")) == ["same-name"]
    assert codes(listed(NAME, A, B, index="other")) == []
    # Nothing is claimed of one of them: nothing can be told, unless their sizes differ.
    assert codes(listed(NAME, index="other")) == []
    sized = listed(NAME, A, size=1)
    assert codes(listed(NAME, index="other", size=2), chosen=sized) == ["same-name"]
    assert codes(listed(NAME, index="other", size=1), chosen=sized) == []


@pytest.mark.parametrize(
    ("name", "index", "told"),
    [
        ("left-1.0-py2.py3-none-any.whl", "default", True),
        ("left-1.0-py2.py3-none-any.whl", "other", False),
        ("left-1.0-cp312-cp312-win_amd64.whl", "default", False),
        ("left-1.0-2-py3-none-any.whl", "default", False),
        ("left-1.0+cu130-py2.py3-none-any.whl", "default", False),
    ],
)
def test_another_build_is_one_of_the_same_version_for_a_tag_of_the_chosen(
    name: str, index: str, told: bool
) -> None:
    assert codes(listed(name, B, index=index)) == (["two-builds"] if told else [])
    assert codes(listed(name, A, index=index)) == []


def test_hashes_are_shown_in_full_among_the_facts_in_the_order_listed() -> None:
    file = replace(listed(NAME, B, A), aside=(HashAside(C, "it is the hash of its METADATA"),))
    (warning,) = hash_warnings([package(file)])
    assert "2 hashes" in warning.message
    assert "only its bytes tell which holds" in warning.message
    assert warning.facts == (
        f"sha256:{B} (default claims it)",
        f"sha256:{A} (default claims it)",
        f"sha256:{C} (it is the hash of its METADATA)",
    )
    settled = FileHash(sha256=A, state="observed", aside=(HashAside(B, "stale"),))
    (warning,) = hash_warnings([package(file, settled=settled)])
    assert warning.message.endswith(f"; {A[:12]}… is observed")
    assert warning.facts[0] == f"sha256:{B} (stale)"


def test_a_file_of_one_claim_has_nothing_to_be_said_of() -> None:
    assert list(hash_warnings([package(listed(NAME, A)), package(listed(NAME))])) == []
