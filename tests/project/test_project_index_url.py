import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalock.errors import UsageError
from cudalock.project import IndexUrl, parse_index_url, redact

_CANARY = "canary-9f3e"
_SECRET = f"https://user:{_CANARY}@host.example:8443/simple?sig={_CANARY}"


def test_no_way_of_printing_shows_a_credential() -> None:
    url = parse_index_url(_SECRET)
    shown = (str(url), repr(url), f"{url}", f"{url!r:>100}", "%s" % url, repr({"url": [url]}))  # noqa: UP031 - the old form too.
    assert all(_CANARY not in text for text in shown)
    assert str(url) == "https://***@host.example:8443/simple?***"
    assert not hasattr(url, "__dict__")


def test_only_reveal_gives_the_whole_address() -> None:
    url = parse_index_url(_SECRET)
    assert url.reveal() == _SECRET
    assert url.has_credentials
    assert url.without_credentials() == "https://host.example:8443/simple"
    assert url.host == "host.example"
    assert not parse_index_url("https://host.example/simple").has_credentials


def test_a_password_with_an_at_sign_stays_hidden() -> None:
    url = parse_index_url(f"https://user:{_CANARY}@{_CANARY}@host.example/simple")
    assert _CANARY not in str(url)
    assert url.without_credentials() == "https://host.example/simple"


def test_addresses_compare_by_value_and_do_not_change() -> None:
    first, second = parse_index_url(_SECRET), parse_index_url(f" {_SECRET}#fragment ")
    assert first == second
    assert hash(first) == hash(second)
    assert first != parse_index_url("https://host.example:8443/simple")
    assert first != _SECRET
    assert pickle.loads(pickle.dumps(first)) == first  # noqa: S301 - our own bytes.
    assert copy.deepcopy(first) == first
    with pytest.raises(AttributeError, match="does not change"):
        first.anything = 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "torch",
        "ftp://host.example/simple",
        "file:///srv/simple",
        "https://",
        "https://host.example:port/simple",
        "https://[::1/simple",
        "https://host.example/a b",
        "https://host.example/a\nb",
        "javascript:alert(1)",
        "https://host.example/" + "a" * 5000,
    ],
)
def test_what_is_no_http_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected") as caught:
        parse_index_url(text, where="somewhere", flag="--default-index")
    assert caught.value.where == "somewhere"
    assert caught.value.flag == "--default-index"


def test_a_refusal_holds_no_credential() -> None:
    with pytest.raises(UsageError) as caught:
        parse_index_url(f"ftp://user:{_CANARY}@host.example/simple")
    assert _CANARY not in str(caught.value)


def test_every_address_inside_a_text_is_redacted() -> None:
    text = f'error in index-url = "http://u:{_CANARY}@a/b", git+ssh://{_CANARY}@b/c and https://c/d'
    assert redact(text) == (
        'error in index-url = "http://***@a/b", git+ssh://***@b/c and https://c/d'
    )
    assert redact("mail me@host and see a/b?c") == "mail me@host and see a/b?c"


@given(st.text())
def test_any_text_is_an_address_or_a_usage_error(text: str) -> None:
    try:
        url = parse_index_url(text)
    except UsageError:
        return
    assert isinstance(url, IndexUrl)


@given(
    st.from_regex(r"[a-z0-9]{8,20}", fullmatch=True), st.from_regex(r"[a-z0-9]*", fullmatch=True)
)
def test_a_password_is_never_shown(password: str, user: str) -> None:
    url = parse_index_url(f"https://{user}:{password}@h/s")
    assert str(url) == "https://***@h/s"
