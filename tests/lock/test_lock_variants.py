"""``[packages.variants-json]`` (PEP 825): written in one order, kept as it was read, and checked."""

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import locked_package, locked_wheel
from cudalock.lock import (
    Lock,
    LockFaultsError,
    TomlValue,
    UnwritableLockError,
    compare_locks,
    format_difference,
    format_lock,
    parse_lock,
    write_lock,
)

SCHEMA = "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json"
TABLE: Mapping[str, TomlValue] = {
    "$schema": SCHEMA,
    "default-priorities": {"namespace": ["x86_64", "nvidia"]},
    "variants": {
        "null": {},
        "cu130_sm120": {"nvidia": {"sm_arch": ["120_real"], "cuda_version_lower_bound": ["13.0"]}},
        "12.8": {"nvidia": {"cuda_version_lower_bound": ["12.8"]}, "x86_64": {"level": ["v1"]}},
    },
}
WRITTEN = f"""
[packages.variants-json]
"$schema" = "{SCHEMA}"

[packages.variants-json.default-priorities]
namespace = ["x86_64", "nvidia"]

[packages.variants-json.variants]
null = {{}}

[packages.variants-json.variants."12.8".nvidia]
cuda_version_lower_bound = ["12.8"]

[packages.variants-json.variants."12.8".x86_64]
level = ["v1"]

[packages.variants-json.variants.cu130_sm120.nvidia]
cuda_version_lower_bound = ["13.0"]
sm_arch = ["120_real"]
"""


def lock(table: Mapping[str, TomlValue] | None, *, tag: str = "py3-none-any") -> Lock:
    package = locked_package(wheels=(locked_wheel(tag=tag),))
    return Lock(packages=(replace(package, variants_json=table),))


def fault(table: Mapping[str, TomlValue], *, tag: str = "py3-none-any") -> str:
    with pytest.raises(UnwritableLockError) as caught:
        format_lock(lock(table, tag=tag))
    return str(caught.value)


def test_the_table_stands_after_the_wheels_in_one_order() -> None:
    text = format_lock(lock(TABLE))
    assert WRITTEN in text
    turned = dict(reversed([(key, value) for key, value in TABLE.items()]))
    assert format_lock(lock(turned)) == text
    assert tomllib.loads(text)["packages"][0]["variants-json"] == TABLE


def test_a_lock_with_the_table_goes_round_byte_for_byte() -> None:
    text = format_lock(lock(TABLE, tag="py3-none-any-cu130_sm120"))
    found = parse_lock(text, where="pylock.toml")
    assert found.packages[0].variants_json == TABLE
    assert format_lock(found) == text


def test_a_table_of_a_later_schema_is_kept_as_it_is() -> None:
    later: dict[str, TomlValue] = {
        "$schema": "https://packaging.example.org/variants/v1.2.0.json",
        "more": {"of": [{"it": True, "n": 3}]},
    }
    text = format_lock(lock(later, tag="py3-none-any-cu130"))
    found = parse_lock(text, where="pylock.toml")
    assert found.packages[0].variants_json == later
    assert format_lock(found) == text


def test_comments_of_a_person_stay_when_the_table_is_rewritten(tmp_path: Path) -> None:
    path = tmp_path / "pylock.toml"
    write_lock(path, lock(TABLE))
    text = path.read_text()
    path.write_text(text.replace("\nsm_arch", "\n# ours\nsm_arch"))
    variants = TABLE["variants"]
    assert isinstance(variants, Mapping)
    write_lock(path, lock({**TABLE, "variants": {**variants, "cu128": {}}}))
    assert "# ours\nsm_arch" in path.read_text()


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "expected the URL of a schema"),
        ({"$schema": 1}, "expected the URL of a schema"),
        ({"$schema": SCHEMA}, "expected an object at `default-priorities`"),
        ({**TABLE, "variants": {"CU": {}}}, "expected a variant label"),
        ({**TABLE, "variants": {"a": {"nvidia": {"f": "x"}}}}, "list that is not empty"),
        ({"$schema": "https://e.org/v1.json", "x": 2**70}, "64 bits"),
    ],
)
def test_a_table_that_breaks_its_schema_is_a_fault(
    table: Mapping[str, TomlValue], words: str
) -> None:
    found = fault(table)
    assert words in found
    assert "packages[0].variants-json" in found


def test_a_variant_needs_its_label_in_the_table() -> None:
    assert "found none of it" in fault(TABLE, tag="py3-none-any-cu126")
    assert format_lock(lock(TABLE, tag="py3-none-any-null"))
    assert format_lock(lock(None, tag="py3-none-any-cu126"))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("variants-json = 1", "expected a table, found an integer"),
        ("variants-json = {x = 1.5}", "expected a string, boolean, integer, array or table"),
        ('variants-json = {"$schema" = 2020-01-01}', "expected a string, boolean"),
        ("variants_json = {}", "expected a key of"),
    ],
)
def test_a_table_that_is_none_is_a_fault_with_its_place(line: str, words: str) -> None:
    text = format_lock(lock(None)).replace("\nindex = ", f"\n{line}\nindex = ")
    if "\nindex" not in text:
        text = text.replace("\nwheels = ", f"\n{line}\nwheels = ")
    with pytest.raises(LockFaultsError) as caught:
        parse_lock(text, where="pylock.toml")
    assert words in str(caught.value)


def test_a_change_of_the_table_is_told() -> None:
    difference = compare_locks(lock(None), lock(TABLE))
    assert format_difference(difference) == "~ left 1.0+cu130: variants-json"


_WORDS = st.from_regex(r"[0-9a-z_]{1,8}", fullmatch=True)


@given(
    st.dictionaries(
        st.from_regex(r"[0-9a-z_.]{1,8}", fullmatch=True).filter(lambda label: label != "null"),
        st.dictionaries(
            st.sampled_from(["nvidia", "x86_64"]),
            st.dictionaries(
                _WORDS, st.lists(_WORDS, min_size=1, max_size=3, unique=True).map(sorted)
            ),
        ),
        max_size=4,
    )
)
def test_any_variants_go_round(variants: dict[str, TomlValue]) -> None:
    text = format_lock(lock({**TABLE, "variants": variants}))
    found = parse_lock(text, where="pylock.toml")
    assert found.packages[0].variants_json == {**TABLE, "variants": variants}
    assert format_lock(found) == text
