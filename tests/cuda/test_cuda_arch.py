import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalock.cuda import (
    Architecture,
    ComputeCapability,
    parse_architecture,
    parse_compute_capability,
)
from cudalock.errors import CudalockError, UsageError

capabilities = st.builds(ComputeCapability, st.integers(2, 99), st.integers(0, 9))
architectures = st.builds(
    Architecture,
    st.integers(20, 999),
    st.sampled_from(["", "a", "f"]),
    st.sampled_from(["sm", "compute"]),
)


@given(capabilities)
def test_a_capability_reads_back_from_every_spelling(capability: ComputeCapability) -> None:
    for text in (
        str(capability),
        capability.sm,
        capability.sm.upper(),
        capability.sm.replace("_", ""),
        str(capability.number),
    ):
        assert parse_compute_capability(text) == capability


@given(capabilities, capabilities)
def test_capabilities_are_ordered_by_number(
    left: ComputeCapability, right: ComputeCapability
) -> None:
    assert (left < right) == (left.number < right.number)


def test_a_capability_is_printed_as_nvidia_writes_it() -> None:
    assert str(ComputeCapability(12, 0)) == "12.0"
    assert ComputeCapability(12, 0).sm == "sm_120"
    assert parse_compute_capability("89") == ComputeCapability(8, 9)


@pytest.mark.parametrize("text", ["sm_120a", "120f", "12.0a", "compute_120"])
def test_an_architecture_is_no_capability_and_the_error_says_which_one_is_meant(text: str) -> None:
    with pytest.raises(UsageError, match=rf"found the architecture `{text}`.*here 12\.0"):
        parse_compute_capability(text)


@pytest.mark.parametrize(
    "text", ["", "12", "1.2", "12.10", "1200", "sm_12", "h100", "12.0.0", "-8.9"]
)
def test_what_is_no_capability_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"as 12\.0, sm_120 or 120, found `"):
        parse_compute_capability(text)


@given(architectures)
def test_an_architecture_reads_back(arch: Architecture) -> None:
    assert parse_architecture(str(arch)) == arch
    assert arch.capability.number == arch.number


def test_an_architecture_without_its_word_is_machine_code() -> None:
    expected = Architecture(120, "f", "sm")
    assert parse_architecture("120f") == parse_architecture("12.0F") == expected
    assert parse_architecture("sm120f") == expected
    assert str(Architecture(90, "", "compute")) == "compute_90"


@pytest.mark.parametrize("text", ["", "lto_90", "sm_90+PTX", "sm_120b", "sm_12", "y" * 99])
def test_what_is_no_architecture_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"sm_120, sm_120a or compute_90, found `"):
        parse_architecture(text)


@given(st.text(alphabet="smcopute_0123456789.af-", max_size=14))
def test_any_text_is_read_or_refused_with_our_error(text: str) -> None:
    for parse in (parse_architecture, parse_compute_capability):
        try:
            value = parse(text)
        except CudalockError:
            continue
        assert parse(str(value)) == value
