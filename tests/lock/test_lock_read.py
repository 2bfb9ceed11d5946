"""Reading a lock: each rule broken once, all faults at once, and any text at all."""

from contextlib import suppress
from dataclasses import replace
from pathlib import PurePosixPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builders import locked_package, locked_wheel
from counting_calls import calls_of
from cudalock.errors import InvalidLockError, UsageError
from cudalock.lock import (
    Lock,
    LockFaultsError,
    check_lock_file_name,
    format_lock,
    lock_file_name,
    parse_lock,
)
from cudalock.lock.faults import FaultList, quoted

SHA = "ab" * 32
FILE = "left-1.0+cu130-py3-none-any.whl"
URL = "https://example.org/whl/cu130/left-1.0%2Bcu130-py3-none-any.whl"
GOOD = format_lock(Lock(packages=(locked_package(),)))


def faults_of(text: str) -> list[str]:
    with pytest.raises(LockFaultsError) as caught:
        parse_lock(text, where="pylock.toml")
    return [str(fault) for fault in caught.value.faults]


def test_the_good_lock_is_good() -> None:
    assert parse_lock(GOOD, where="pylock.toml") == Lock(packages=(locked_package(),))


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        # The document.
        ('lock-version = "1.0"', 'lock-version = "1.1"', "lock-version: expected `1.0`, found `1.1`"),
        ('lock-version = "1.0"', "lock-version = 1.0", "lock-version: expected a string, found a float"),
        ('lock-version = "1.0"\n', "", "lock-version: expected a string, found nothing"),
        ('created-by = "cudalock"\n', "", "created-by: expected a string, found nothing"),
        ('created-by = "cudalock"', 'created-by = ""', "created-by: expected the name of a tool, found nothing"),
        ('created-by = "cudalock"', 'created-by = "x"\nextra = 1', "extra: expected a key of"),
        ('created-by = "cudalock"', 'created-by = "x"\nrequires-python = "3"', "requires-python: expected a version specifier, found `3`"),
        ('created-by = "cudalock"', 'created-by = "x"\nenvironments = ["nonsense"]', "environments[0]: expected a marker, found `nonsense`"),
        ('created-by = "cudalock"', 'created-by = "x"\nenvironments = ["\'x\' in extras"]', "environments[0]: expected a marker without extras"),
        ('created-by = "cudalock"', 'created-by = "x"\nenvironments = [1]', "environments[0]: expected a string, found an integer"),
        ('created-by = "cudalock"', 'created-by = "x"\nextras = ["A"]', "extras[0]: expected a normalized name, found `A`"),
        ('created-by = "cudalock"', 'created-by = "x"\nextras = ["a", "a"]', "extras[1]: expected each name once, found `a` again"),
        ('created-by = "cudalock"', 'created-by = "x"\nextras = "a"', "extras: expected an array, found a string"),
        ('created-by = "cudalock"', 'created-by = "x"\ntool = 1', "tool: expected a table, found an integer"),
        ('created-by = "cudalock"', 'created-by = "x"\ntool.cudalock = true', "tool.cudalock: expected a table, found a boolean"),
        ('created-by = "cudalock"', 'created-by = "x"\ntool.cudalock.a = 1.5', "tool.cudalock.a: expected a string, boolean, integer"),
        # A package.
        ('name = "left"', 'name = "Left"', "packages[0].name: expected a normalized name, found `Left`"),
        ('name = "left"', 'name = "right"', "packages[0].wheels[0].name: expected a wheel of `right`"),
        ('name = "left"\n', "", "packages[0].name: expected a string, found nothing"),
        ('version = "1.0+cu130"', 'version = "1.0"', f"packages[0].wheels[0].name: expected a wheel of version `1.0`, found `{FILE}` [left]"),
        ('version = "1.0+cu130"\n', "", "packages[0].version: expected a string, found nothing [left]"),
        ('version = "1.0+cu130"', 'version = "one"', "packages[0].version: expected a version, found `one` [left]"),
        ('version = "1.0+cu130"', f'version = "1.0+{"a" * 65}"', "packages[0].version: expected a local label of at most 64"),
        ('version = "1.0+cu130"', f'version = "{"1" * 5000}"', "packages[0].version: expected a version of at most 128"),
        ('version = "1.0+cu130"', 'version = "\uff11.0"', "packages[0].version: expected a version of at most 128 ASCII"),
        ('version = "1.0+cu130"', 'version = "1.0+cu130"\nmarkers = "x"', "packages[0].markers: expected a key of"),
        ('version = "1.0+cu130"', 'version = "1.0+cu130"\nsdist = {}', "packages[0].sdist: expected wheels only, found sdist [left]"),
        ('version = "1.0+cu130"', 'version = "1.0+cu130"\nmarker = "x =="', "packages[0].marker: expected a marker, found `x ==` [left]"),
        ('version = "1.0+cu130"', 'version = "1.0+cu130"\nmarker = "extra == \'x\'"', "packages[0].marker: expected `'NAME' in extras`"),
        ('version = "1.0+cu130"', 'version = "1.0+cu130"\nmarker = "extras in \'x\'"', "packages[0].marker: expected `'NAME' in dependency_groups` or"),
        ('version = "1.0+cu130"', 'version = "1.0+cu130"\nmarker = "\'x\' == extras"', "packages[0].marker: expected `'NAME' in dependency_groups` or"),
        ('version = "1.0+cu130"', f'version = "1.0+cu130"\nmarker = "{" " * 5000}"', "packages[0].marker: expected a marker of at most 4096"),
        ('version = "1.0+cu130"', f'version = "1.0+cu130"\nmarker = "{"(" * 2000}os_name == \'a\'{")" * 2000}"', "packages[0].marker: expected a marker"),
        ('version = "1.0+cu130"', 'version = "1.0+cu130"\nmarker = "\'x\' in extras"', "packages[0].marker: expected an extra that `extras` declares, found `x` [left]"),
        ('version = "1.0+cu130"', 'version = "1.0+cu130"\nmarker = "\'x\' not in dependency_groups"', "packages[0].marker: expected a group that `dependency-groups` declares, found `x` [left]"),
        ('requires-python = ">=3.10"', 'requires-python = ">=\uff11"', "packages[0].requires-python: expected a version specifier"),
        ('index = "https://', 'index = "http://', "packages[0].index: expected an https URL"),
        ('version = "1.0+cu130"', 'version = "1.0+cu130"\ndependencies = [{name = "gone"}]', "packages[0].dependencies[0]: expected an entry of this lock, found `gone` [left]"),
        ('version = "1.0+cu130"', 'version = "1.0+cu130"\ndependencies = [{name = "left", version = "9"}]', "packages[0].dependencies[0]: expected an entry of this lock, found `left 9` [left]"),
        ('version = "1.0+cu130"', 'version = "1.0+cu130"\ndependencies = [{name = "Left"}]', "packages[0].dependencies[0].name: expected a normalized name"),
        ('version = "1.0+cu130"', 'version = "1.0+cu130"\ndependencies = [{name = "left", version = "x"}]', "packages[0].dependencies[0].version: expected a version"),
        ('version = "1.0+cu130"', 'version = "1.0+cu130"\ndependencies = [{nam = "left"}]', "packages[0].dependencies[0].name: expected a string, found nothing"),
        ('version = "1.0+cu130"', 'version = "1.0+cu130"\nattestation-identities = [1]', "packages[0].attestation-identities[0]: expected a table, found an integer"),
        ('version = "1.0+cu130"', 'version = "1.0+cu130"\ntool.cudalock.a = "\\u0007https://u:p@h"', "packages[0].tool.cudalock.a: expected text without credentials"),
        # A wheel.
        (f'{{name = "{FILE}", ', "{", "packages[0].wheels[0].name: expected a string, found nothing [left]"),
        (FILE, "left-1.0+cu130-py3-none.whl", "packages[0].wheels[0].name: expected a wheel's file name"),
        (FILE, "left-1.0+cu130.tar.gz", "packages[0].wheels[0].name: expected a wheel's file name"),
        (FILE, "l\u0435ft-1.0+cu130-py3-none-any.whl", "packages[0].wheels[0].name: expected a wheel's file name"),
        (FILE, "left-1.0+cu130-py3-none-a\\u001b[31m.whl", "packages[0].wheels[0].name: expected a wheel's file name, found `left-1.0+cu130-py3-none-a\\u001b[31m.whl`"),
        (FILE, f"left-1.0+cu130-{'.'.join('a' * 20)}-{'.'.join('a' * 20)}-any.whl", "packages[0].wheels[0].name: expected at most 256 tags, found 400"),
        (FILE, "x" * 300 + ".whl", "packages[0].wheels[0].name: expected a wheel's file name"),
        (f'url = "{URL}", ', "", "packages[0].wheels[0]: expected one of `url` and `path`, found neither [left]"),
        ("size = 1024", f'path = "{FILE}"', "packages[0].wheels[0]: expected one of `url` and `path`, found both [left]"),
        ("size = 1024", "size = -1", "packages[0].wheels[0].size: expected a size in bytes, found a negative one [left]"),
        ("size = 1024", "size = 9223372036854775808", "packages[0].wheels[0].size: expected a size in bytes, found a larger one"),
        ("size = 1024", "size = true", "packages[0].wheels[0].size: expected an integer, found a boolean [left]"),
        ("size = 1024", "seize = 1024", "packages[0].wheels[0].seize: expected a key of"),
        ("size = 1024", "upload-time = 2025-01-01", "packages[0].wheels[0].upload-time: expected a date-time, found a date"),
        ("size = 1024", "upload-time = 2025-01-01T00:00:00", "packages[0].wheels[0].upload-time: expected a time in UTC"),
        ("size = 1024", "upload-time = 2025-01-01T00:00:00+01:00", "packages[0].wheels[0].upload-time: expected a time in UTC"),
        (f'{{sha256 = "{SHA}"}}', "{}", "packages[0].wheels[0].hashes: expected a sha256, found none [left]"),
        (f'{{sha256 = "{SHA}"}}', "[]", "packages[0].wheels[0].hashes: expected a table, found an array [left]"),
        (f', hashes = {{sha256 = "{SHA}"}}', "", "packages[0].wheels[0].hashes: expected a table, found nothing [left]"),
        (f'sha256 = "{SHA}"', f'md5 = "{"ab" * 16}"', "packages[0].wheels[0].hashes: expected a sha256, found `md5` [left]"),
        (f'sha256 = "{SHA}"', f'sha256 = "{SHA}", rot13 = "ab"', "packages[0].wheels[0].hashes.rot13: expected an algorithm of"),
        (f'sha256 = "{SHA}"', f'sha256 = "{SHA}", "a b" = "ab"', "packages[0].wheels[0].hashes.`a b`: expected an algorithm of"),
        (f'sha256 = "{SHA}"', f'sha256 = "{SHA}", sha512 = 1', "packages[0].wheels[0].hashes.sha512: expected a string, found an integer"),
        (SHA, SHA.upper(), "packages[0].wheels[0].hashes.sha256: expected 64 lower-case hex digits, found"),
        (SHA, SHA[:-2], "packages[0].wheels[0].hashes.sha256: expected 64 lower-case hex digits, found"),
        (SHA, "zz" * 32, "packages[0].wheels[0].hashes.sha256: expected 64 lower-case hex digits, found"),
    ],
)  # fmt: skip
def test_each_rule_broken_once_is_a_fault_at_its_key(old: str, new: str, fault: str) -> None:
    assert old in GOOD
    found = faults_of(GOOD.replace(old, new, 1))
    assert any(line.startswith(fault) for line in found), found


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://example.org/F", "expected an https URL"),
        ("http://127.0.0.1.example.org/F", "expected an https URL"),
        ("ftp://example.org/F", "expected an https URL"),
        ("file:///etc/F", "expected a URL that names a host"),
        ("javascript:F", "expected a URL that names a host"),
        ("//example.org/F", "expected an https URL"),
        ("https://user:canary@example.org/F", "without user name and password"),
        ("https://canary@example.org/F", "without user name and password"),
        ("https://example.org\\@canary.example/F", "in the characters of RFC 3986"),
        ("https://example.org/F#sha256=canary", "without a fragment"),
        ("https://exämple.org/F", "in the characters of RFC 3986"),
        ("https://exa mple.org/F", "in the characters of RFC 3986"),
        ("https://example.org/%zz/F", "in the characters of RFC 3986"),
        ("https://[::1/F", "expected a URL, found"),
        ("https://example.org:99999/F", "expected a URL, found"),
        ("https:///F", "names a host"),
        ("https://example.org/" + "a" * 9000, "at most 8192 characters"),
        ("https://example.org/other.whl", f"to end in the file name `{FILE}`, found `other.whl`"),
        ("https://example.org/a/%2e%2e/F", "found none"),
        ("https://example.org/a%2fF", "found none"),
        ("https://example.org/%ff/F", "found none"),
        ("https://example.org/F?token=canary#", "without a fragment"),
        ("https://example.org/left-1.0%252Bcu130-py3-none-any.whl", "found `left-1.0%2Bcu130"),
    ],
)
def test_a_url_that_is_not_plain_https_is_refused(url: str, words: str) -> None:
    url = url.replace("F", "left-1.0%2Bcu130-py3-none-any.whl")
    (found,) = faults_of(GOOD.replace(URL, url.replace("\\", "\\\\")))
    assert found.startswith("packages[0].wheels[0].url: expected ")
    assert words in found
    assert "canary" not in found or "RFC 3986" in found


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8080/F",
        "http://localhost/F",
        "http://[::1]:80/F",
        "HTTPS://EXAMPLE.org/F",
        "https://example.org:8443/a//b/F?expires=1",
    ],
)
def test_https_and_loopback_are_taken(url: str) -> None:
    url = url.replace("F", FILE)
    lock = parse_lock(GOOD.replace(URL, url), where="pylock.toml")
    assert lock.packages[0].wheels[0].url == url


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/etc/F", "relative to the lock"),
        ("\\\\host\\F", "relative to the lock"),
        ("C:\\F", "relative to the lock"),
        ("../F", "below the lock's folder"),
        ("a\\..\\..\\F", "below the lock's folder"),
        ("a/\x00/F", "without control characters"),
        ("", "without control characters"),
        ("a/other.whl", "to end in the file name"),
        ("a/" * 3000 + "F", "at most 4096"),
    ],
)
def test_a_path_that_leaves_the_folder_is_refused(path: str, words: str) -> None:
    escaped = path.replace("F", FILE).replace("\\", "\\\\").replace("\x00", "\\u0000")
    (found,) = faults_of(GOOD.replace(f'url = "{URL}"', f'path = "{escaped}"'))
    assert found.startswith("packages[0].wheels[0].path: expected ")
    assert words in found


@pytest.mark.parametrize("path", [FILE, f"./{FILE}", f"wheels/{FILE}", f"wheels\\\\{FILE}"])
def test_a_path_below_the_lock_is_taken(path: str) -> None:
    text = GOOD.replace(f'url = "{URL}"', f'path = "{path}"')
    assert parse_lock(text, where="pylock.toml").packages[0].wheels[0].url is None


def test_all_faults_are_raised_at_once() -> None:
    text = GOOD.replace("1.0", "1.1", 1).replace(SHA, "x").replace("size = 1024", "size = -1")
    with pytest.raises(InvalidLockError) as caught:
        parse_lock(text, where="some/pylock.toml")
    assert str(caught.value).splitlines()[0] == "3 faults (some/pylock.toml)"
    assert len(str(caught.value).splitlines()) == 4
    assert caught.value.exit_code == 2


def test_a_thousand_faults_are_kept_and_twenty_are_worded() -> None:
    text = GOOD.replace("[[packages]]", f"environments = [{'1,' * 5000}]\n[[packages]]")
    with pytest.raises(LockFaultsError) as caught:
        parse_lock(text, where="pylock.toml")
    assert len(caught.value.faults) == 1000
    assert str(caught.value).splitlines()[-1] == "  and 4980 more"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "lock-version: expected a string, found nothing"),
        ("a = ", "expected TOML, found an error"),
        ("a = 1\na = 2", "expected TOML, found an error"),
        ("\ufeffa = 1", "expected TOML, found an error"),
        ("a = " + "9" * 5000, "expected TOML, found an error"),
        ("a = " + "[" * 20000, "expected a few levels of nesting"),
        (".".join("a" * 20000) + " = 1", "expected keys of fewer than 100 parts"),
        ('"a" . ' * 200 + "a = 1", "expected keys of fewer than 100 parts"),
        ("packages = 1", "packages: expected an array, found an integer"),
        ("packages = [1]", "packages[0]: expected a table, found an integer"),
        ('packages = []\nlock-version = "1.0"', "created-by: expected a string, found nothing"),
    ],
)
def test_a_text_that_is_no_lock_says_why(text: str, words: str) -> None:
    assert any(words in found for found in faults_of(text))


def test_a_text_over_the_limit_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cudalock.lock.read.LARGEST_LOCK", 10)
    assert faults_of("a" * 11) == ["expected at most 10 characters, found 11"]


def lock_of(*entries: tuple[str, str, str | None], extras: tuple[str, ...] = ("a", "b")) -> str:
    """Write a lock without asking the rules, by taking the entries from locks of one."""
    head = format_lock(
        Lock(extras=extras, dependency_groups=("default", "g"), default_groups=("default",))
    )
    blocks = [head.replace("packages = []\n", "")]
    for name, version, marker in entries:
        block = format_lock(Lock(packages=(locked_package(name, version),)))
        block = block[block.index("[[packages]]") :]
        if marker is not None:
            block = block.replace("requires-python", f'marker = "{marker}"\nrequires-python', 1)
        blocks.append(block)
    return "\n".join(blocks)


@pytest.mark.parametrize(
    "entries",
    [
        [("left", "1.0", None), ("left", "2.0", None)],
        [("left", "1.0", None), ("left", "2.0", "'a' in extras")],
        [("left", "1.0", "'a' not in extras"), ("left", "2.0", "('a' not in extras)")],
    ],
)
def test_entries_that_no_marker_tells_apart_are_refused(
    entries: list[tuple[str, str, str | None]],
) -> None:
    found = faults_of(lock_of(*entries))
    assert found
    assert all("expected a" in line and "marker" in line for line in found)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (
            [("left", "1.0", "'a' in extras")],
            "packages: expected an entry that is selected without",
        ),
        (
            [
                ("left", "1.0", "'a' in extras"),
                ("left", "2.0", "'b' in extras"),
                ("mid", "1", None),
            ],
            "packages[0].marker: expected one of its entries to be the default",
        ),
        (
            [
                ("left", "1.0", "'g' in dependency_groups and os_name == 'a'"),
                ("left", "2.0", "'b' in extras"),
                ("mid", "1", None),
            ],
            "packages[0].marker: expected one of its entries to be the default",
        ),
    ],
)
def test_a_lock_whose_default_selects_nothing_is_refused(
    entries: list[tuple[str, str, str | None]], words: str
) -> None:
    assert [line.startswith(words) for line in faults_of(lock_of(*entries))] == [True]


@pytest.mark.parametrize(
    "entries",
    [
        [("left", "1.0", "'a' in extras"), ("left", "2.0", "'a' not in extras")],
        [("left", "1.0", "'a' in extras"), ("mid", "1", None)],
        [("left", "1.0", "os_name == 'nt'"), ("left", "2.0", "os_name != 'nt'")],
        [("left", "1.0", "'default' in dependency_groups"), ("left", "2.0", "'a' in extras")],
        [
            (
                "left",
                "1.0",
                "'a' in extras or (os_name == 'x' and ('b' not in extras or os_name == 'y'))",
            )
        ],
        [("left", "1.0", "os_name == \\\"'a' in extras\\\"")],
    ],
)
def test_a_lock_with_a_default_is_taken(entries: list[tuple[str, str, str | None]]) -> None:
    assert len(parse_lock(lock_of(*entries), where="pylock.toml").packages) == len(entries)


def test_one_file_name_with_two_hashes_is_refused() -> None:
    text = lock_of(("left", "1.0", "'a' in extras"), ("left", "1.0", "'a' not in extras"))
    assert len(parse_lock(text, where="x").packages) == 2
    at = text.rindex(SHA)
    (found,) = faults_of(text[:at] + "cd" * 32 + text[at + 64 :])
    assert found == (
        "packages[1].wheels[0].hashes.sha256: expected the hash of "
        "packages[0].wheels[0].hashes.sha256, found another for the same file [left]"
    )


def test_one_file_named_twice_in_an_entry_is_refused() -> None:
    line = next(line for line in GOOD.splitlines() if line.startswith("    {"))
    assert faults_of(GOOD.replace(line, f"{line}\n{line}")) == [
        f"packages[0].wheels[1].name: expected each file once, found `{FILE}` again [left]"
    ]


def test_an_entry_without_wheels_is_refused() -> None:
    line = next(line for line in GOOD.splitlines() if line.startswith("    {"))
    assert faults_of(GOOD.replace(line, "")) == [
        "packages[0].wheels: expected at least one wheel, found none [left]"
    ]


def test_what_is_kept_for_others_is_passed_over() -> None:
    text = (
        GOOD.replace(
            'version = "1.0+cu130"',
            'version = "1.0+cu130"\nattestation-identities = [{kind = "x"}]\ntool.other = {x = 1.5}',
        )
        + "[tool.other]\nx = 2025-01-01\n"
    )
    assert parse_lock(text, where="pylock.toml") == Lock(packages=(locked_package(),))


def test_strong_hashes_beside_sha256_are_kept() -> None:
    hashes = {"sha256": SHA, "sha512": "cd" * 64, "md5": "ab" * 16}
    lock = Lock(packages=(locked_package(wheels=(replace(locked_wheel(), hashes=hashes),)),))
    assert parse_lock(format_lock(lock), where="x") == lock


@pytest.mark.parametrize(
    "unit",
    [
        "a.",
        '"a".',
        "a.a = 1\n",
        "[[packages]]\n",
        "[packages.tool]\n",
        '"',
        "'",
        "{a=[",
        "\\",
        "#\n",
        "a",
    ],
)
def test_reading_costs_grow_with_the_text(unit: str) -> None:
    def calls(count: int) -> int:
        def read() -> None:
            with pytest.raises(LockFaultsError):
                parse_lock(unit * count, where="x")

        return calls_of(read)

    # A quadratic reader needs 16 times as many.
    assert calls(2_000) < 5 * calls(500) + 200


@given(st.text(max_size=300))
@example("packages = [{}]")
def test_any_text_is_a_lock_or_a_typed_error(text: str) -> None:
    with suppress(InvalidLockError):
        assert isinstance(parse_lock(text, where="pylock.toml"), Lock)


_SCRAPS = [
    *sorted(set(GOOD.replace("=", " = ").split(" "))),
    "\n",
    "[[",
    "]]",
    "{",
    "}",
    '"',
    "1",
    "=",
]


@given(st.data())
def test_a_good_lock_cut_and_pasted_is_a_lock_or_a_typed_error(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(GOOD)))
    end = data.draw(st.integers(start, min(len(GOOD), start + 40)))
    text = (
        GOOD[:start]
        + data.draw(st.one_of(st.sampled_from(_SCRAPS), st.text(max_size=4)))
        + GOOD[end:]
    )
    try:
        lock = parse_lock(text, where="pylock.toml")
    except InvalidLockError:
        return
    written = format_lock(lock)
    assert format_lock(parse_lock(written, where="pylock.toml")) == written


def test_a_lock_is_named_for_its_target() -> None:
    assert lock_file_name(None) == "pylock.toml"
    assert lock_file_name("cu130-sm_120") == "pylock.cu130-sm_120.toml"
    for name in (None, "cu130", "A_b-1"):
        check_lock_file_name(PurePosixPath("some/folder", lock_file_name(name)))


@pytest.mark.parametrize("name", ["", "13.0", "a/b", "a\\b", "ä", "x" * 65, "a\n"])
def test_a_target_name_that_cannot_be_in_a_file_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="expected a target name"):
        lock_file_name(name)


@pytest.mark.parametrize(
    "name", ["pylock.13.0.toml", "pylock..toml", "pylock.lock", "Pylock.toml", "x"]
)
def test_a_file_that_installers_would_not_take_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="expected a file named"):
        check_lock_file_name(PurePosixPath(name))


def test_quoted_text_shows_nothing_a_terminal_obeys() -> None:
    assert quoted("a\x1b[31m\u202eb\n") == "`a\\u001b[31m\\u202eb\\u000a`"
    assert len(quoted("x" * 500)) == 83
    assert FaultList().as_tuple() == ()
