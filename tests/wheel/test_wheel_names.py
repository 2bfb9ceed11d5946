"""Names, versions, specifiers and requirements from untrusted text."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalock.errors import WheelError
from cudalock.wheel.names import (
    format_quoted,
    parse_extra,
    parse_project_name,
    parse_requirement,
    parse_specifiers,
    parse_version,
)


@pytest.mark.parametrize(
    ("text", "name"),
    [("torch", "torch"), ("Flash_Attn", "flash-attn"), ("a.b__c", "a-b-c"), ("7zip", "7zip")],
)
def test_a_name_is_normalised(text: str, name: str) -> None:
    assert parse_project_name(text) == name
    assert parse_extra(text) == name


@pytest.mark.parametrize(
    "text", ["", "-torch", "torch-", "to rch", "torch\n", "тorch", "a" * 129, "../x", "torch;x"]
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(WheelError, match="expected a project name"):
        parse_project_name(text)


@pytest.mark.parametrize("text", ["", "one", "1.0+", "1" * 129, "1.0 .0", "1.0\x00"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(WheelError, match="expected a version"):
        parse_version(text)


@pytest.mark.parametrize("text", ["2.9", ">=", "==1.0,,<2;", "=" * 9000])
def test_what_are_no_specifiers_is_refused(text: str) -> None:
    with pytest.raises(WheelError, match="expected version specifiers"):
        parse_specifiers(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "torch ==",
        "torch; sys_platform",
        "x" * 9000,
        # Brackets in brackets exhaust a parser that recurses.
        f"torch; {'(' * 4000}os_name == 'x'{')' * 4000}",
        "тorch",
    ],
)
def test_what_is_no_requirement_is_refused(text: str) -> None:
    with pytest.raises(WheelError, match="expected a"):
        parse_requirement(text)


def test_a_requirement_keeps_its_parts() -> None:
    requirement = parse_requirement("flashinfer_python[cu13]==0.6.12; sys_platform == 'linux'")
    assert (requirement.name, requirement.extras) == ("flashinfer_python", {"cu13"})
    assert str(requirement.specifier) == "==0.6.12"
    assert str(requirement.marker) == 'sys_platform == "linux"'


def test_quoted_text_holds_no_control_code_and_is_short() -> None:
    assert format_quoted("\x1b[31mred\n") == "`\\x1b[31mred\\x0a`"
    assert format_quoted("a" * 100, limit=10) == f"`{'a' * 10}…`"


@given(st.text(max_size=300))
def test_any_text_raises_only_our_error(text: str) -> None:
    for parse in (parse_project_name, parse_version, parse_specifiers, parse_requirement):
        with contextlib.suppress(WheelError):
            parse(text)
