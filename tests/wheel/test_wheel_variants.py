"""Metadata of wheel variants: what it says, and what is no such metadata, however hostile."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalock.errors import WheelError
from cudalock.wheel import parse_wheel_file
from cudalock.wheel.variants import (
    VARIANTS_LIMIT,
    is_known_schema,
    parse_variants,
    read_variants_table,
    variants_file_name,
)

PLAIN = "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json"
PROVIDED = "https://variants-schema.wheelnext.dev/peps/850/v0.2.0.json"


def document(**more: object) -> dict[str, Any]:
    return {
        "$schema": PLAIN,
        "default-priorities": {"namespace": ["nvidia", "x86_64"]},
        "variants": {
            "null": {},
            "cu130": {"nvidia": {"sm_arch": ["90_real", "120_real"]}},
        },
        **more,
    }


def fault(value: object) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    with pytest.raises(WheelError) as caught:
        parse_variants(data, where="left-1.0-variants.json")
    assert caught.value.where == "left-1.0-variants.json"
    return caught.value.message


def test_labels_are_read_into_properties() -> None:
    found = parse_variants(json.dumps(document()).encode(), where="w")
    assert found.namespaces == ("nvidia", "x86_64")
    assert found.properties("cu130") == {"nvidia": {"sm_arch": ("120_real", "90_real")}}
    assert found.properties("null") == {}
    assert found.properties("cu128") is None


def test_the_document_is_kept_in_one_order_whatever_order_it_came_in() -> None:
    turned = dict(reversed(document().items()))
    turned["variants"] = dict(reversed(turned["variants"].items()))
    one = read_variants_table(document(), where="w").document
    assert json.dumps(one) == json.dumps(read_variants_table(turned, where="w").document)
    variants = one["variants"]
    assert isinstance(variants, Mapping)
    assert list(variants) == ["cu130", "null"]
    assert read_variants_table(one, where="w").document == one


def test_the_null_variant_needs_no_entry() -> None:
    found = read_variants_table(document(variants={}), where="w")
    assert found.properties("null") == {}


def test_providers_are_kept_and_never_acted_on() -> None:
    providers = {"nvidia": {"requires": ["nvidia-variant-provider"], "optional": True, "n": 1}}
    found = read_variants_table(document(**{"$schema": PROVIDED}, providers=providers), where="w")
    assert found.document["providers"] == providers
    assert "providers" in fault(document(providers=providers))


@pytest.mark.parametrize(
    ("schema", "known"),
    [
        (PLAIN, True),
        (PLAIN.replace("0.1.1", "0.1.0"), True),
        (PROVIDED, True),
        (PROVIDED.replace("peps/850/", ""), True),
        (PLAIN.replace("0.1.1", "0.2.0"), False),
        (PLAIN.replace("0.1.1", "1.0.0"), False),
        (PROVIDED.replace("0.2.0", "0.3.0"), False),
        (f"{PLAIN}#x", False),
        (PLAIN.replace("https", "http"), False),
        (None, False),
        (1, False),
    ],
)
def test_a_schema_that_is_not_known_is_not_guessed_at(schema: object, *, known: bool) -> None:
    value = document(**{"$schema": schema})
    assert is_known_schema(value) is known
    if known:
        read_variants_table(value, where="w")
    else:
        assert "expected schema 0.1.x of PEP 825 or 0.2.0" in fault(value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"more": 1}, "expected no key `more`"),
        ({"default-priorities": []}, "expected an object at `default-priorities`"),
        ({"default-priorities": {}}, "list that is not empty at `default-priorities.namespace`"),
        ({"default-priorities": {"namespace": []}}, "list that is not empty"),
        ({"default-priorities": {"namespace": ["a", "a"]}}, "each value once"),
        ({"default-priorities": {"namespace": ["A"]}}, "lower-case"),
        ({"default-priorities": {"namespace": ["nvidia"], "x": 1}}, "expected no key `x`"),
        ({"variants": []}, "expected an object at `variants`"),
        ({"variants": {"CU130": {}}}, "expected a variant label at `variants.CU130`"),
        ({"variants": {"a-b": {}}}, "expected a variant label"),
        ({"variants": {"": {}}}, "expected a variant label"),
        ({"variants": {"a": []}}, "expected an object at `variants.a`"),
        ({"variants": {"a": {"nvidia": []}}}, "expected an object at `variants.a.nvidia`"),
        ({"variants": {"a": {"nvidia": {"f": "x"}}}}, "list that is not empty"),
        ({"variants": {"a": {"nvidia": {"f": []}}}}, "list that is not empty"),
        ({"variants": {"a": {"nvidia": {"f": [1]}}}}, "lower-case"),
        ({"variants": {"a": {"nvidia": {"f": ["x y"]}}}}, "lower-case"),
        ({"variants": {"a": {"nvidia": {"f": ["x", "x"]}}}}, "each value once"),
        ({"variants": {"a": {"nvidia": {"f.g": ["x"]}}}}, "expected a name"),
        ({"variants": {"a": {"no pe": {}}}}, "expected a name"),
        ({"variants": {"a": {"other": {"f": ["x"]}}}}, "namespaces of `default-priorities` only"),
        ({"variants": {"null": {"nvidia": {"f": ["x"]}}}}, "expected no properties"),
        ({"variants": {f"v{i}": {} for i in range(1001)}}, "at most 1000 variants"),
        (
            {"variants": {"a": {"nvidia": {"f": [f"v{i}" for i in range(1001)]}}}},
            "at most 1000 values of one feature",
        ),
        (
            {
                "variants": {
                    f"v{i}": {"nvidia": {"f": [*"abcdefghijklmnopqrstuvwxyz"]}} for i in range(999)
                }
            },
            "at most 20000 values",
        ),
    ],
)
def test_what_breaks_the_schema_is_told_with_its_place(
    change: Mapping[str, object], words: str
) -> None:
    assert words in fault(document(**change))


@pytest.mark.parametrize(
    ("providers", "words"),
    [
        ({"x": None}, "found None"),
        ({"x": 2**63}, "integer of 64 bits"),
        ({"x": "https://user:pass@example.org/"}, "no address with a user's name"),
        ({"x": [[[[[[[[[[[[[[1]]]]]]]]]]]]]]}, "less and flatter"),
        ({"x": ["y"] * 20_001}, "less and flatter"),
        ([], "expected an object at `providers`"),
    ],
)
def test_what_a_lock_cannot_hold_is_no_metadata(providers: object, words: str) -> None:
    assert words in fault(document(**{"$schema": PROVIDED}, providers=providers))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "expected variant metadata in JSON"),
        (b"\xff\xfe", "expected variant metadata in JSON"),
        (b"[]", "JSON that is no object"),
        (b'{"a": NaN}', "expected variant metadata in JSON"),
        (b'{"a": -Infinity}', "expected variant metadata in JSON"),
        (b'{"a": 1.5}', "expected variant metadata in JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "expected variant metadata in JSON"),
        (b'{"variants": {}, "variants": {}}', "expected each key once"),
        (b'{"x": {"a": 1, "a": 2}}', "found `a` twice"),
        (b'{"a":' * 100_000, "levels"),
        (b"[" * 500_000, "levels"),
        (b" " * (VARIANTS_LIMIT + 1), "at most 1048576 bytes"),
    ],
)
def test_what_is_no_json_of_ours_is_told(data: bytes, words: str) -> None:
    assert words in fault(data)


def test_a_lone_surrogate_is_no_text() -> None:
    text = json.dumps(document(**{"$schema": PROVIDED}, providers={"x": "SURROGATE"}))
    assert "Unicode text" in fault(text.replace("SURROGATE", "\\ud800").encode())


@given(st.binary(max_size=200))
def test_any_bytes_raise_only_our_error(data: bytes) -> None:
    with pytest.raises(WheelError):
        parse_variants(data, where="w")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {"$schema": st.sampled_from([PLAIN, PROVIDED])},
        optional={"default-priorities": _JSON, "variants": _JSON, "providers": _JSON},
    )
)
def test_any_json_is_read_or_raises_only_our_error(value: dict[str, object]) -> None:
    try:
        found = parse_variants(json.dumps(value).encode(), where="w")
    except WheelError:
        return
    assert found.namespaces


def test_the_file_is_named_as_the_wheel_spells_its_version() -> None:
    wheel = parse_wheel_file("Flash_Attn-2.8_post1-py3-none-any-cu130.whl")
    assert variants_file_name(wheel) == "Flash_Attn-2.8_post1-variants.json"
