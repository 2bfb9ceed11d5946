"""Containers of device code: what is in them, where they may lie, and that nothing false hides them."""

import struct
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudalock.wheel.fatbin import DeviceCode, FatbinScanner
from fatbin_builder import container, cubin_file, entry, segment_record

_BOTH = container(
    entry("cubin", 90, "a"), entry("cubin", 120, "f", packed="zstd"), entry("ptx", 120, header=80)
)
_OLD = container(
    entry("cubin", 80, version=(1, 7), packed="lz4"),
    entry("cubin", 90, version=(1, 7), header=128),
    entry("ptx", 90, version=(7, 8), packed="lz4", header=112),
)


def _scan(
    data: bytes,
    *,
    step: int = 1 << 20,
    containers: list[tuple[int, int]] | None = None,
    cubins: list[tuple[int, int]] | None = None,
) -> DeviceCode:
    everything = [(0, len(data))]
    scanner = FatbinScanner(
        everything if containers is None else containers, everything if cubins is None else cubins
    )
    for at in range(0, len(data), step):
        scanner.feed(data[at : at + step])
    return scanner.finish()


def _shown(code: DeviceCode) -> Counter[str]:
    return Counter({str(image): count for image, count in code.images})


def test_every_kind_of_image_is_told_with_its_architecture_and_version() -> None:
    code = _scan(bytes(64) + _BOTH + _OLD)
    assert code.containers == 2
    assert _shown(code) == {
        "sm_90a": 1, "sm_120f": 1, "compute_120@9.0": 1,
        "sm_80": 1, "sm_90": 1, "compute_90@7.8": 1,
    }  # fmt: skip
    assert {image.version for image, _ in code.images if image.kind == "cubin"} == {(1, 7), (1, 8)}
    assert [count for _, count in code.sets] == [1, 1]
    assert (code.damaged, code.bare_cubins, code.anomalies) == (0, (), ())


def test_machine_code_and_ptx_are_listed_in_order() -> None:
    code = _scan(bytes(64) + _BOTH + _OLD + container(entry("lto", 75)))
    assert list(map(str, code.architectures)) == ["sm_80", "sm_90", "sm_90a", "sm_120f"]
    assert list(map(str, code.ptx)) == ["compute_90@7.8", "compute_120@9.0"]


def test_containers_that_hold_the_same_are_counted_together() -> None:
    code = _scan(_BOTH * 3 + _OLD + bytes(100))
    assert code.containers == 4
    assert sorted(count for _, count in code.sets) == [1, 3]
    assert _shown(code)["sm_90a"] == 3


def test_link_time_code_is_neither_machine_code_nor_ptx() -> None:
    code = _scan(container(entry("lto", 90)) + bytes(64))
    assert _shown(code) == {"lto_90": 1}
    (image, _) = code.images[0]
    assert image.isa is None
    assert image.architecture.kind == "compute"


@settings(max_examples=80)
@given(st.lists(st.integers(1, 300), min_size=1, max_size=30))
def test_what_is_found_does_not_depend_on_the_pieces(steps: list[int]) -> None:
    bare = cubin_file(100) + bytes(-len(cubin_file(100)) % 8)
    data = bytes(40) + _BOTH + bytes(8) + bare + _OLD + b"\x50\xed\x55\xba" + _OLD[:100]
    scanner = FatbinScanner([(0, len(data))], [(0, len(data))])
    at = number = 0
    while at < len(data):
        scanner.feed(data[at : at + steps[number % len(steps)]])
        at += steps[number % len(steps)]
        number += 1
    assert scanner.finish() == _scan(data)
    assert _scan(data, step=1) == _scan(data)


def test_only_aligned_places_that_are_mapped_read_only_are_looked_at() -> None:
    assert _scan(bytes(4) + _BOTH + bytes(4)).containers == 0
    data = bytes(64) + _BOTH + _OLD
    assert _scan(data, containers=[(0, 64)]).containers == 0
    assert _scan(data, containers=[(64, 64 + len(_BOTH))]).containers == 1
    assert _scan(data, containers=[(0, 8), (32, 64), (0, len(data))]).containers == 2


def test_a_record_that_points_to_a_container_is_none() -> None:
    assert _scan(segment_record(0x1000) * 5).containers == 0


@pytest.mark.parametrize(
    "false",
    [
        container(entry("ptx", 90), version=2),
        container(body=0),
        container(entry("ptx", 90, header=64), body=48),
        container(bytes(64), body=1 << 36),
        container(struct.pack("<HHIQ", 2, 0x0101, 63, 8).ljust(64, b"\0"), body=1 << 36),
        container(struct.pack("<HHIQ", 2, 0x0101, 0, 8).ljust(64, b"\0"), body=1 << 36),
        container(struct.pack("<HHIQ", 2, 0x0101, 1 << 17, 8).ljust(64, b"\0"), body=1 << 36),
        container(struct.pack("<HHIQ", 2, 0x0101, 64, 1 << 63).ljust(64, b"\0"), body=1 << 63),
        container(struct.pack("<HHIQ", 99, 7, 64, 8).ljust(72, b"\0"), body=1 << 36),
    ],
)
def test_what_only_begins_as_a_container_is_passed_by_and_hides_nothing(false: bytes) -> None:
    data = bytes(8) + false + bytes(-len(false) % 8) + _BOTH + _OLD
    code = _scan(data)
    assert code.containers == 2
    assert _shown(code)["sm_90a"] == 1
    assert code.anomalies == ()


def test_a_false_container_with_a_sound_entry_around_real_ones_does_not_hide_them() -> None:
    inside = _BOTH + _OLD
    false = container(entry("cubin", 50, payload=inside))
    code = _scan(false)
    assert code.containers == 3
    assert _shown(code)["sm_90a"] == 1
    assert _shown(code)["sm_50"] == 1
    assert code.anomalies == ("a container inside another",)
    # One that claims more than there is, with the real ones behind its first entry.
    claiming = container(entry("cubin", 50), body=1 << 36) + inside
    code = _scan(claiming)
    assert code.containers == 3
    assert _shown(code)["sm_120f"] == 1
    assert "a container that ends beyond its segment" in code.anomalies


def test_the_magic_inside_a_payload_is_no_container_by_itself() -> None:
    payload = b"\x50\xed\x55\xba" + b"\x01\0\x10\0" + b"\xff" * 56
    code = _scan(container(entry("cubin", 90, payload=payload)) + bytes(80))
    assert code.containers == 1
    assert code.anomalies == ()


@pytest.mark.parametrize("cut", [1, 17, 60, 100, 200, len(_BOTH) - 20])
def test_a_container_that_is_cut_is_damaged_and_what_was_read_of_it_counts(cut: int) -> None:
    code = _scan(_BOTH[:-cut])
    assert (code.containers, code.damaged) == (1, 1)
    assert _shown(code)["sm_90a"] == (1 if cut < 200 else 0)
    assert code.anomalies


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (container(entry("cubin", 90), bytes(8)), "bytes after its entries"),
        (container(entry("cubin", 90), bytes(80)), "does not fit its container"),
        (container(entry("cubin", 90), entry("cubin", 90), body=160), "does not fit"),
        (container(entry("cubin", 90, kind_number=16)), "unknown kind 16"),
        (container(entry("cubin", 5)), "no architecture"),
        (container(entry("cubin", 90, "a", flags=0x200000)), "no architecture"),
    ],
)
def test_what_is_wrong_inside_a_container_is_named(data: bytes, words: str) -> None:
    code = _scan(data + bytes(80))
    assert code.containers == 1
    assert any(words in anomaly for anomaly in code.anomalies), code.anomalies


def test_a_beginning_that_was_read_is_no_damage() -> None:
    scanner = FatbinScanner([(0, 1 << 20)])
    scanner.feed(_BOTH[:160])
    assert {str(image) for image in scanner.images} == {"sm_90a"}
    code = scanner.finish(whole=False)
    assert (code.containers, code.damaged, code.anomalies) == (1, 0, ())


def test_cubins_in_no_container_are_found_and_those_in_one_are_not() -> None:
    bare = cubin_file(100, "a", abi="cuda12")
    raw = entry("cubin", 90, payload=cubin_file(90))
    data = bytes(16) + bare + container(raw, raw) + cubin_file(120) + cubin_file(35, abi="old")
    code = _scan(data)
    assert _shown(code) == {"sm_90": 2}
    assert {str(cubin): count for cubin, count in code.bare_cubins} == {
        "sm_100a": 1, "sm_120?": 1, "sm_35": 1,
    }  # fmt: skip
    assert _scan(data, cubins=[(0, 8)]).bare_cubins == ()
    assert _scan(bytes(4) + bare).bare_cubins == ()
    assert _scan(b"\x7fELF\x02\x01\x01" + bytes(100)).bare_cubins == ()


def _patched(limit: str, value: int) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(f"cudalock.wheel.fatbin.{limit}", value)


@pytest.mark.parametrize(
    ("limit", "value", "words"),
    [
        ("_CONTAINERS_LIMIT", 1, "more than 1 containers"),
        ("_ENTRIES_LIMIT", 4, "more than 4 entries"),
        ("_MARKS_LIMIT", 1, "marks of device code"),
        ("_DISTINCT_LIMIT", 4, "kinds of images"),
        ("_DISTINCT_LIMIT", 1, "kinds of containers"),
        ("_MEMBERSHIPS_LIMIT", 4, "kinds of containers"),
    ],
)
def test_every_bound_that_is_reached_is_named(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int, words: str
) -> None:
    _patched(limit, value)(monkeypatch)
    code = _scan(_BOTH + _OLD + bytes(100), step=50)
    assert any(words in anomaly for anomaly in code.anomalies), code.anomalies


def test_containers_inside_one_another_are_followed_to_a_depth() -> None:
    data = container(entry("cubin", 90))
    for _ in range(40):
        data = container(entry("cubin", 90, payload=data))
    code = _scan(data)
    assert code.containers == 32
    assert any("more than are followed" in anomaly for anomaly in code.anomalies)


def test_the_list_of_anomalies_is_bounded() -> None:
    kinds = (entry("cubin", 90, kind_number=number) for number in range(100, 300))
    assert len(_scan(container(entry("cubin", 90), *kinds)).anomalies) == 64


def _steps(data: bytes) -> int:
    scanner = FatbinScanner([(0, len(data))], [(0, len(data))])
    for at in range(0, len(data), 4096):
        scanner.feed(data[at : at + 4096])
    scanner.finish()
    return scanner.steps


@pytest.mark.parametrize(
    "unit",
    [
        container(entry("cubin", 90)),
        b"\x50\xed\x55\xba\x01\0\x10\0",
        # Each claims all that follows, and its first entry is a sound one.
        container(entry("cubin", 90, payload=b""), body=1 << 40),
        b"\x7fELF\x02\x01\x01\x33",
        cubin_file(90),
    ],
)
def test_twice_the_bytes_are_at_most_twice_the_steps(unit: bytes) -> None:
    once, twice = _steps(unit * 300), _steps(unit * 600)
    assert twice <= 2.2 * once + 100
