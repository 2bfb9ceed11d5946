"""Core metadata from bytes: what is read, what is refused, and what must not matter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from cudalock.errors import WheelError
from cudalock.wheel import CoreMetadata, parse_core_metadata
from cudalock.wheel.metadata import METADATA_LIMIT

_HEAD = b"Metadata-Version: 2.4\nName: Flash_Attn\nVersion: 2.8.3\n"


def _requires(metadata: CoreMetadata) -> list[str]:
    return [str(requirement) for requirement in metadata.requires_dist]


def test_the_fields_a_resolver_needs_are_read() -> None:
    metadata = parse_core_metadata(
        _HEAD + b"Requires-Dist: torch>=2.4\nRequires-Dist: einops; extra == 'x'\n"
        b"Requires-Python: >=3.9\nProvides-Extra: Xtra_One\n\nRequires-Dist: not-this\n"
    )
    assert metadata.project == "flash-attn"
    assert metadata.version == Version("2.8.3")
    assert _requires(metadata) == ["torch>=2.4", 'einops; extra == "x"']
    assert str(metadata.requires_python) == ">=3.9"
    assert metadata.provides_extra == {"xtra-one"}
    assert (metadata.source, metadata.assumed) == ("METADATA", False)


def test_what_is_left_out_is_empty() -> None:
    metadata = parse_core_metadata(_HEAD)
    assert metadata.requires_dist == ()
    assert metadata.requires_python is None
    assert parse_core_metadata(_HEAD + b"Requires-Python:\n").requires_python is None


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_is_one(end: bytes) -> None:
    data = (_HEAD + b"Requires-Dist: torch\n\nRequires-Dist: not-this\n").replace(b"\n", end)
    assert _requires(parse_core_metadata(data)) == ["torch"]


def test_a_blank_line_ends_the_headers_in_whatever_mixture() -> None:
    data = _HEAD + b"Requires-Dist: torch\r\n\nRequires-Dist: not-this\n"
    assert _requires(parse_core_metadata(data)) == ["torch"]


@pytest.mark.parametrize("letter", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_what_only_python_calls_a_line_end_is_none(letter: str) -> None:
    data = _HEAD + f"Summary: fast{letter}attention\nRequires-Dist: torch\n".encode()
    assert _requires(parse_core_metadata(data)) == ["torch"]


def test_a_folded_header_is_one_value() -> None:
    data = (
        _HEAD
        + b"Requires-Dist: torch\n  >=2.4\n\t; sys_platform == 'linux'\nLicense: a\n        b\n"
    )
    assert _requires(parse_core_metadata(data)) == ['torch>=2.4; sys_platform == "linux"']


def test_a_byte_order_mark_is_no_part_of_the_first_name() -> None:
    assert parse_core_metadata(b"\xef\xbb\xbf" + _HEAD).project == "flash-attn"


def test_a_name_of_an_author_in_another_encoding_matters_not() -> None:
    data = _HEAD + "Author: José\nRequires-Dist: torch\n".encode("latin-1") + b"\n\xff\xfe"
    assert _requires(parse_core_metadata(data)) == ["torch"]


def test_a_field_given_twice_alike_is_one_and_otherwise_refused() -> None:
    assert parse_core_metadata(_HEAD + b"Version: 2.8.3\n").version == Version("2.8.3")
    with pytest.raises(WheelError, match="expected one version in METADATA, found two"):
        parse_core_metadata(_HEAD + b"Version: 2.8.4\n")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "expected a name"),
        (b"\n" + _HEAD, "expected a name"),
        (b"Name: x\n", "expected a version"),
        (_HEAD + b"Requires-Dist: torch ==\n", "expected a requirement"),
        (_HEAD + b"Requires-Python: about 3\n", "expected version specifiers"),
        (_HEAD + b"Provides-Extra: \xff\n", "expected a project name"),
        (b"Name: \xff\nVersion: 1\n", "expected a project name"),
        (b"Name: x\nVersion: latest\n", "expected a version"),
        (b"  continued\n" + _HEAD, "before its continuation"),
        (_HEAD + b"no colon\n", "expected a METADATA header"),
        (_HEAD + b"X: y\n" * 20_000, "at most 20000 lines"),
        (b"x" * (METADATA_LIMIT + 1), "expected METADATA of at most"),
    ],
)
def test_what_cannot_be_trusted_is_refused_with_the_place(data: bytes, message: str) -> None:
    with pytest.raises(WheelError, match=message) as caught:
        parse_core_metadata(data, where="https://wheels.test/x.whl")
    assert caught.value.where == "https://wheels.test/x.whl"


@given(
    st.binary(max_size=400)
    | st.lists(
        st.sampled_from(
            [b"Name: x\n", b"Version: 1\n", b"Requires-Dist: ", b"\n", b" y", b"\r", b"\0"]
        )
    ).map(b"".join)
)
def test_any_bytes_raise_only_our_error(data: bytes) -> None:
    try:
        metadata = parse_core_metadata(data)
    except WheelError:
        return
    assert metadata.project
