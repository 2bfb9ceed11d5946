from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalock.index.union import unite
from cudalock.wheel.filename import parse_wheel_file
from cudalock.wheel.listing import ListedFile

A, B, C = "a1" * 32, "b2" * 32, "c3" * 32
NAME = "left-1.0-py3-none-any.whl"


def listed(url: str, *sha256: str, **said: object) -> ListedFile:
    file = ListedFile(
        wheel=parse_wheel_file(NAME),
        url=f"https://{url}/{NAME}",
        index="publisher",
        index_url="https://example.org/whl/cu130",
        folder="cu130",
        sha256=sha256,
    )
    return replace(file, **said)  # type: ignore[arg-type] # any field


def told(files: tuple[ListedFile, ...]) -> list[tuple[str, tuple[str, ...]]]:
    return [(file.url.split("/")[2], file.sha256) for file in files]


def test_one_address_in_two_folders_is_one_file_with_every_claim() -> None:
    (file,) = unite(
        [
            listed("a.example.org", A, size=None, yanked=False),
            listed(
                "a.example.org", B, A, folder="cu129", size=3, yanked="bad", requires_python=">=3"
            ),
        ]
    )
    assert (file.sha256, file.folder, file.size) == ((A, B), None, 3)
    assert (file.yanked, file.requires_python) == ("bad", ">=3")


def test_a_hash_that_another_folder_knows_as_metadatas_does_not_count() -> None:
    (file,) = unite([listed("a.example.org", A), listed("a.example.org", B, core_metadata=A)])
    assert file.sha256 == (B,)
    assert [aside.sha256 for aside in file.aside] == [A]
    (file,) = unite([file, listed("a.example.org", A)])
    assert file.sha256 == (B,)


def test_one_path_on_sibling_hosts_is_one_file_and_the_address_with_a_hash_is_kept() -> None:
    first, second = listed("download.example.org"), listed("download-r2.example.org", A)
    for files in ((first, second), (second, first)):
        (file,) = unite(files)
        assert told((file,)) == [("download-r2.example.org", (A,))]
        assert file.mirrors == (first.url,)
    (both,) = unite([replace(first, sha256=(A,)), second])
    assert (both.url, both.mirrors) == (first.url, (second.url,))


@pytest.mark.parametrize(
    "other",
    [
        listed("download-r2.example.org", B),
        listed("download-r2.example.org", A, size=4),
        listed("download-r2.example.org", A, core_metadata=C),
        listed("download.example.com", A),
        listed("download-r2.example.org", A, index="another"),
        listed("download-r2.example.org:8080", A),
        listed("download-r2.example.org/deeper", A),
        listed("example.org", A),
    ],
)
def test_what_differs_in_bytes_place_or_publisher_stays_two_files(other: ListedFile) -> None:
    first = listed("download.example.org", A, size=3, core_metadata=B)
    assert told(unite([first, other])) == told((first, other))


def test_addresses_of_one_network_and_names_of_one_registry_are_no_siblings() -> None:
    for hosts in (("10.0.0.1", "11.0.0.1"), ("left.org", "right.org"), ("left", "right")):
        assert len(unite([listed(host, A) for host in hosts])) == 2


def test_three_hosts_of_one_path_are_told_apart_by_their_claims() -> None:
    hosts = [listed("a.example.org"), listed("b.example.org", A), listed("c.example.org", B)]
    assert told(unite(hosts)) == [("b.example.org", (A,)), ("c.example.org", (B,))]


_FILES = st.builds(
    lambda host, hashes, folder: listed(host, *hashes, folder=folder),
    st.sampled_from(["a.example.org", "b.example.org", "c.example.com", "b.example.org/x"]),
    st.lists(st.sampled_from([A, B, C]), max_size=2, unique=True),
    st.sampled_from(["cu130", "cu129"]),
)


@given(st.lists(_FILES, max_size=8))
def test_no_address_and_no_claim_is_lost(files: list[ListedFile]) -> None:
    united = unite(files)
    addresses = [url for file in united for url in (file.url, *file.mirrors)]
    assert sorted(addresses) == sorted({file.url for file in files})
    claims = {claim for file in united for claim in file.sha256}
    assert claims == {claim for file in files for claim in file.sha256}
    assert unite(united) == united


def test_a_path_on_very_many_hosts_is_compared_with_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    from cudalock.index import union

    calls = 0
    real = union._one_file

    def counted(*arguments: object) -> bool:
        nonlocal calls
        calls += 1
        return real(*arguments)  # type: ignore[arg-type] # passed on

    monkeypatch.setattr(union, "_one_file", counted)
    files = [listed(f"h{n}.example.org", f"{n:064x}") for n in range(1000)]
    assert len(unite(files)) == 1000
    assert calls <= 8 * 1000
