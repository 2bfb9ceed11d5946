import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from cudalock.errors import UsageError
from cudalock.index.templates import (
    PLACEHOLDERS,
    fill_partner,
    names_partner,
    parse_template,
    unknown_placeholder,
)

_ALL = "{partner} {partner-minor} {partner-digits} {partner-minor-digits}"


@pytest.mark.parametrize(
    ("release", "filled"),
    [
        ("2.10.0", "2.10.0 2.10 2100 210"),
        ("2.8.1", "2.8.1 2.8 281 28"),
        ("3", "3 3.0 3 30"),
        ("2.11.0.dev20260101", "2.11.0.dev20260101 2.11 2110dev20260101 211"),
    ],
)
def test_a_release_of_the_partner_is_written_as_publishers_write_it(
    release: str, filled: str
) -> None:
    assert fill_partner(_ALL, Version(release)) == filled


def test_other_placeholders_are_left_for_others() -> None:
    template = "https://a.example/{cuda}_torch{partner-digits}/{version}"
    assert fill_partner(template, Version("2.9.1")) == "https://a.example/{cuda}_torch291/{version}"


def test_a_value_is_encoded_and_what_the_template_says_is_not() -> None:
    template = "https://a.example/+simple/torch-{partner}%2B{cuda}.html"
    filled = fill_partner(template, Version("1!2.10.0"))
    assert filled == "https://a.example/+simple/torch-1!2.10.0%2B{cuda}.html"


def test_a_version_and_a_partner_do_not_stand_together() -> None:
    with pytest.raises(UsageError, match="not both"):
        parse_template("https://a.example/{version}/{partner}", where="a.toml")


@pytest.mark.parametrize("name", ["python", "partner-", "partner-major", "Cuda", ""])
def test_a_placeholder_that_means_nothing_is_refused_and_the_others_are_named(name: str) -> None:
    template = f"https://a.example/{{{name}}}"
    assert unknown_placeholder(template) == f"{{{name}}}"
    with pytest.raises(UsageError, match=r"\{partner-minor-digits\}") as caught:
        parse_template(template, where="a.toml")
    assert caught.value.where == "a.toml"


@pytest.mark.parametrize("name", PLACEHOLDERS)
def test_every_placeholder_stands_in_a_path_and_nowhere_else(name: str) -> None:
    placeholder = f"{{{name}}}"
    assert parse_template(f"https://a.example/x{placeholder}/", where="a.toml").endswith("}")
    assert names_partner(placeholder) is name.startswith("partner")
    for text in (
        f"https://{placeholder}.example/a",
        f"https://a.example/?x={placeholder}",
        f"https://a.example/#{placeholder}",
        f"{placeholder}://a.example/",
    ):
        with pytest.raises(UsageError):
            parse_template(text, where="a.toml")


@given(
    st.text(max_size=60),
    st.from_regex(r"[1-9][0-9]?(\.[0-9]{1,3}){0,3}(rc1|\.dev3)?", fullmatch=True),
)
def test_whatever_a_template_says_a_release_adds_no_host_and_no_query(
    text: str, release: str
) -> None:
    try:
        template = parse_template(f"https://a.example/{text}", where="a.toml")
    except UsageError:
        return
    filled = fill_partner(template, Version(release))
    assert filled.startswith("https://a.example")
    assert filled.count("?") == template.count("?")
    assert "{partner}" not in filled
