import re
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalock.errors import UsageError
from cudalock.index.address import Origin, join_url, origin_of, shown_url, split_userinfo

BASE = "https://index.example.org/whl/cu130/torch/"


def test_userinfo_and_fragment_are_taken_out() -> None:
    url = "HTTPS://us%40er:pa%3Ass@h.example.org:8443/a%2Bb+c?d=@#e"
    clean = "HTTPS://h.example.org:8443/a%2Bb+c?d=@"
    assert split_userinfo(url) == (clean, ("us@er", "pa:ss"))
    assert split_userinfo(clean) == (clean, None)
    assert split_userinfo("http://token@[::1]/") == ("http://[::1]/", ("token", ""))


@pytest.mark.parametrize(
    "url",
    [
        *("", "x", "//h/x", "ftp://h/x", "http:///x", "http://h /x", "http://a@b@c/x\n", "http:h"),
        *("http://h\\x/", "http:\\\\h/x", "http://h:65536/", "http://h:x/", "http://-h/"),
        "http://\u0430.example.org/",
    ],
)
def test_what_is_no_web_address_is_refused_without_its_secret(url: str) -> None:
    planted = re.sub(r"(//|\\\\)", r"\1user:canary@", url, count=1)
    for refused in (url, planted, "user:canary@" + url):
        with pytest.raises(UsageError) as caught:
            split_userinfo(refused)
        assert "canary" not in str(caught.value)


def test_an_origin_is_scheme_host_and_port() -> None:
    assert origin_of("HTTP://H.example.org/x") == Origin("http", "h.example.org", 80)
    assert origin_of("https://h.example.org") == Origin("https", "h.example.org", 443)
    assert origin_of("https://[::1]:8443/") == Origin("https", "::1", 8443)


@pytest.mark.parametrize(
    ("reference", "joined"),
    [
        ("../torchvision/", "https://index.example.org/whl/cu130/torchvision/"),
        (" /x?y=1#z ", "https://index.example.org/x?y=1"),
        ("//cdn.example.org/x", "https://cdn.example.org/x"),
        ("http://cdn.example.org", "http://cdn.example.org"),
        ("file:///etc/passwd", None),
        ("javascript:alert(1)", None),
        ("https://u:p@cdn.example.org/x", None),
        ("ht\ntps://cdn.example.org/x", None),
        ("https://cdn.example.org:99999/x", None),
        ("http://[::1", None),
        ("\\\\cdn.example.org\\x", None),
    ],
)
def test_a_reference_leads_to_the_web_or_nowhere(reference: str, joined: str | None) -> None:
    assert join_url(BASE, reference) == joined


@given(st.text(max_size=60))
def test_any_reference_leads_to_the_web_or_nowhere(reference: str) -> None:
    joined = join_url(BASE, reference)
    if joined is not None:
        parts = urlsplit(joined)
        assert parts.scheme.lower() in ("http", "https")
        assert parts.username is None
        assert joined.isascii()
        assert joined.isprintable()
        assert split_userinfo(joined) == (joined, None)


@given(st.text(alphabet=st.characters(exclude_characters="/?#\\"), min_size=1, max_size=20))
def test_an_address_is_shown_without_what_may_be_secret(secret: str) -> None:
    for url in (f"https://{secret}@h.example.org/x", f"https://h.example.org/x?{secret}"):
        shown = shown_url(url)
        assert shown == "https://h.example.org/x"
    assert shown_url(f"https://h.example.org/{secret}").isprintable()
