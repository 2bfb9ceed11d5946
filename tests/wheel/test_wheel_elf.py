"""Shared libraries: what they need and want of torch, from their heads and from all of them."""

import struct
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudalock.wheel.elf import ElfFacts, ElfReader
from cudalock.wheel.elf_dynamic import Span, read_symbols
from cudalock.wheel.elf_head import HeadTables
from elf_builder import Symbol, make_library

_NEEDED = ("libc10.so", "libcudart.so.13", "ld-linux-x86-64.so.2")
_CXX = "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb"
_SYMBOLS = (
    Symbol(name=_CXX),
    Symbol(name="aoti_torch_empty_strided"),
    Symbol(name="_ZN2at6TensorD1Ev", bind=2),
    Symbol(name="cudaLaunchKernel"),
    Symbol(name="_ZN5torch3jit8offeringEv", defined=True),
    Symbol(name="_ZN5torch3jit6hiddenEv", defined=True, other=2),
    Symbol(name="_ZN2at5localEv", defined=True, bind=0),
)
# More than the first look at a head, so that the end is not there with it.
_FAR = bytes(100_000)


def _library(**options: object) -> bytes:
    wanted: dict[str, object] = {
        "needed": _NEEDED,
        "soname": "libleft.so.1",
        "symbols": _SYMBOLS,
        "rodata": _FAR,
    }
    return make_library(**{**wanted, **options})  # type: ignore[arg-type]


def _pieces(data: bytes, step: int) -> Iterator[bytes]:
    return (data[at : at + step] for at in range(0, len(data), step))


def _whole(data: bytes, *, step: int = 4096) -> ElfFacts:
    reader = ElfReader(size=len(data))
    for piece in _pieces(data, step):
        reader.feed(piece)
    if reader.missing:
        reader.rewind()
        for piece in _pieces(data, step):
            reader.feed(piece)
            if reader.whole:
                break
    return reader.finish()


def _head(data: bytes, *, step: int = 4096) -> tuple[ElfFacts, int]:
    """Return what the head tells, and how much of the file was fed for it."""
    reader = ElfReader(size=len(data))
    fed = 0
    for piece in _pieces(data, step):
        reader.feed(piece)
        fed += len(piece)
        if reader.head_done:
            break
    return reader.finish(), fed


@pytest.mark.parametrize("moved", ["", "end", "before-dynamic"])
@pytest.mark.parametrize("step", [1000, 65_536, 10**9])
def test_all_of_a_library_tells_its_needs_exactly(moved: str, step: int) -> None:
    facts = _whole(_library(moved=moved), step=step)
    assert facts.kind == "library"
    assert facts.machine == 62
    assert facts.needed == frozenset(_NEEDED)
    assert facts.needed_exact
    assert facts.soname == "libleft.so.1"
    assert facts.anomalies == ()
    assert facts.torch is not None
    assert facts.torch.exact
    assert facts.torch.style == "cxx"
    # Weak ones may stay undefined; local and hidden ones are seen by nobody.
    assert facts.torch.undefined == {_CXX, "aoti_torch_empty_strided"}
    assert facts.torch.exported == {"_ZN5torch3jit8offeringEv"}


@pytest.mark.parametrize("between", [b"", b"\x02\0\x03\0" * 40, bytes(64)])
def test_the_head_alone_tells_the_needs_and_the_name(between: bytes) -> None:
    facts, fed = _head(_library(between=between))
    assert facts.needed == frozenset({*_NEEDED, "libleft.so.1"})
    assert not facts.needed_exact
    assert facts.soname is None
    assert facts.torch is not None
    assert facts.torch.undefined == {_CXX, "aoti_torch_empty_strided"}
    # Only where the names begin beside the last symbol is none left out.
    assert facts.torch.exact is (between == b"")
    assert fed < 100_000


def test_a_symbol_without_a_name_leaves_the_others_inexact() -> None:
    symbol = struct.pack("<IBBHQQ", 9, 0x12, 0, 0, 0, 0)
    for place, exact in ((3, False), (20, True)):
        torch, _ = read_symbols(bytes(24) + symbol, bytes(place), exact=True)
        assert (torch.undefined, torch.exact) == (frozenset(), exact)


def test_a_name_that_is_only_a_string_is_among_those_of_the_head() -> None:
    data = _library(strings=["libcuda.so.1", "not a library.so.1", "x.so"])
    facts, _ = _head(data)
    assert facts.needed is not None
    assert facts.needed - {*_NEEDED, "libleft.so.1"} == {"libcuda.so.1", "x.so"}
    assert _whole(data).needed == frozenset(_NEEDED)


def test_a_search_path_that_was_shortened_does_not_end_the_strings() -> None:
    facts, _ = _head(_library(rpath_hole=40))
    assert facts.needed == frozenset({*_NEEDED, "libleft.so.1"})


@pytest.mark.parametrize("moved", ["end", "before-dynamic"])
def test_names_that_were_moved_are_unknown_from_the_head_and_not_none(moved: str) -> None:
    facts, fed = _head(_library(moved=moved))
    assert facts.needed is None
    assert facts.torch is None
    assert fed < 100_000


def test_a_file_without_tables_at_its_head_is_given_up_at_a_bound() -> None:
    data = _library(symbols=(), rodata=b"\x01" * (17 << 20))
    facts, fed = _head(data, step=1 << 20)
    assert facts.needed is None
    assert fed == 16 << 20


def test_a_table_before_what_points_to_it_is_read_in_a_second_pass() -> None:
    data = _library(moved="before-dynamic")
    reader = ElfReader(size=len(data))
    for piece in _pieces(data, 4096):
        reader.feed(piece)
    once, asked = reader.finish(), reader.missing
    reader.rewind()
    for piece in _pieces(data, 4096):
        reader.feed(piece)
    assert (once.needed, asked, reader.missing) == (None, True, False)
    assert reader.finish().needed == frozenset(_NEEDED)


def test_a_library_that_needs_nothing_is_not_one_that_is_unknown() -> None:
    facts = _whole(make_library(soname="libalone.so"))
    assert facts.needed == frozenset()
    assert facts.needed_exact
    static = _whole(make_library(dynamic=False, elf_type=2))
    assert (static.needed, static.needed_exact) == (frozenset(), True)


def test_a_shared_library_that_cannot_say_what_it_needs_is_unknown() -> None:
    facts = _whole(make_library(dynamic=False))
    assert facts.needed is None
    assert any("without a dynamic section" in anomaly for anomaly in facts.anomalies)
    assert _whole(make_library(needed=_NEEDED, elf_type=1)).kind == "foreign"


def test_without_section_headers_no_symbol_is_known_to_be_missing() -> None:
    for moved in ("", "end"):
        facts = _whole(_library(sections=False, moved=moved))
        assert facts.needed_exact
        assert facts.torch is not None
        assert facts.torch.undefined == {_CXX, "aoti_torch_empty_strided"}
        assert not facts.torch.exact


@pytest.mark.parametrize(("place", "value"), [(4, 1), (5, 2)])
def test_other_widths_and_byte_orders_are_recognised_and_not_read(place: int, value: int) -> None:
    data = bytearray(_library())
    data[place] = value
    assert _whole(bytes(data)).kind == "foreign"
    assert _whole(bytes(data)).needed is None


def _u(data: bytearray, form: str, place: int, value: int) -> None:
    struct.pack_into(form, data, place, value)


def _dynamic_at(data: bytes | bytearray) -> int:
    for at in range(64, 64 + 4 * 56, 56):
        kind, _, place = struct.unpack_from("<IIQ", data, at)
        if kind == 2:
            return int(place)
    raise AssertionError


def _entry_at(data: bytes | bytearray, tag: int) -> int:
    at = _dynamic_at(data)
    while struct.unpack_from("<q", data, at)[0] != tag:
        at += 16
    return at


def _value_of(data: bytearray, tag: int) -> int:
    return int(struct.unpack_from("<Q", data, _entry_at(data, tag) + 8)[0])


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (lambda d: _u(d, "<B", 0, 0), "damaged", None),
        (lambda d: _u(d, "<B", 4, 9), "damaged", None),
        (lambda d: _u(d, "<H", 56, 513), "damaged", "513 program headers"),
        (lambda d: _u(d, "<H", 54, 32), "damaged", "of 32 bytes"),
        (lambda d: _u(d, "<H", 56, 0), "damaged", "no part of it is mapped"),
        (lambda d: _u(d, "<Q", 32, 90_000), "damaged", "no part of it is mapped"),
        (lambda d: _u(d, "<Q", 32, 1 << 40), "damaged", "program headers of 56"),
        (lambda d: _u(d, "<Q", 32, len(d) - 60), "cut", "beyond the end"),
        (lambda d: _u(d, "<Q", 64 + 32, 1 << 63), "library", "beyond the file"),
        (lambda d: _u(d, "<Q", 64 + 8, 1 << 62), "library", "beyond the file"),
        (lambda d: _u(d, "<Q", 64 + 112 + 32, 1 << 21), "library", "dynamic section that cannot"),
        (lambda d: _u(d, "<I", 64 + 56, 2), "library", "dynamic section that cannot"),
        (lambda d: _u(d, "<q", _entry_at(d, 5), 0x999), "library", "string table that is nowhere"),
        (lambda d: _u(d, "<Q", _entry_at(d, 10) + 8, 0), "library", "string table that is nowhere"),
        (lambda d: _u(d, "<Q", _entry_at(d, 10) + 8, 1 << 30), "library", "nowhere"),
        (lambda d: _u(d, "<Q", _entry_at(d, 5) + 8, 1 << 40), "library", "nowhere"),
        (lambda d: _u(d, "<Q", 64 + 56 + 16, _value_of(d, 5) - 8), "library", "nowhere"),
        (lambda d: _u(d, "<Q", _entry_at(d, 1) + 8, 1 << 33), "library", "without a name"),
        (lambda d: _u(d, "<q", _entry_at(d, 6), 5), "library", "two values of one"),
        (lambda d: _u(d, "<q", _entry_at(d, 0), 99), "library", "without an end"),
    ],
)
def test_headers_that_lie_are_named_and_never_believed(
    change: Callable[[bytearray], None], kind: str, words: str | None
) -> None:
    data = bytearray(_library())
    change(data)
    facts = _whole(bytes(data))
    assert facts.kind == kind
    assert not facts.needed_exact
    assert words is None or any(words in anomaly for anomaly in facts.anomalies), facts.anomalies


def test_symbols_that_lie_nowhere_are_not_read() -> None:
    for tag, value in ((6, 1 << 40), (11, 16)):
        data = bytearray(_library())
        _u(data, "<Q", _entry_at(data, tag) + 8, value)
        facts = _whole(bytes(data))
        assert facts.needed == frozenset(_NEEDED)
        assert facts.torch is None


def test_every_cut_of_a_library_is_read_without_an_error() -> None:
    data = _library(rodata=b"")
    for end in range(0, len(data), 3):
        reader = ElfReader(size=len(data))
        reader.feed(data[:end])
        facts = reader.finish()
        assert facts.needed is None or set(_NEEDED) <= facts.needed
        short = _whole(data[:end])
        assert not short.needed_exact or short.needed == frozenset(_NEEDED), end


def test_too_many_needs_and_names_are_anomalies() -> None:
    many = [f"lib{number}.so" for number in range(5000)]
    facts = _whole(make_library(needed=many))
    assert not facts.needed_exact
    assert any("5000 needed libraries" in anomaly for anomaly in facts.anomalies)
    head, _ = _head(_library(strings=[f"lib{number}.so" for number in range(20_001)]), step=1 << 16)
    assert head.needed is None
    assert any("names of libraries" in anomaly for anomaly in head.anomalies)


def test_a_part_whose_beginning_was_missed_is_not_taken() -> None:
    data = bytes(range(200))
    span = Span(50, 150)
    span.take(60, data[60:160])
    assert (bytes(span.data), span.whole) == (b"", False)
    span.take(0, data[:60])
    span.take(70, data[70:200])
    span.take(0, data[:40])
    assert (bytes(span.data), span.whole) == (data[50:60], False)
    span.restart()
    span.take(0, data)
    span.restart()
    assert (bytes(span.data), span.whole) == (data[50:150], True)


def test_names_that_overlap_do_not_make_reading_quadratic() -> None:
    # Every symbol names a suffix of one string of torch's own; the budget is spent and it ends.
    strings = b"\0" + b"_ZN3c10" + b"a" * 8000 + b"\0"
    symbol = struct.pack("<IBBHQQ", 1, 0x12, 0, 0, 0, 0)
    torch, fault = read_symbols(bytes(24) + symbol * 20_000, strings, exact=True)
    assert "overlap" in fault
    assert not torch.exact
    # A name without an end costs as much as a long one.
    torch, fault = read_symbols(bytes(24) + symbol * 20_000, b"\0" + b"_" * 9000, exact=True)
    assert "overlap" in fault


def test_more_symbols_than_a_library_can_have_are_an_anomaly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cudalock.wheel.elf_dynamic.SYMBOLS_LIMIT", 3)
    monkeypatch.setattr("cudalock.wheel.elf_head.SYMBOLS_LIMIT", 3)
    facts = _whole(_library())
    assert facts.torch is not None
    assert not facts.torch.exact
    assert _head(_library())[0].needed is None


def test_strings_without_an_end_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cudalock.wheel.elf_head.NAME_TABLE_LIMIT", 20_000)
    data = _library(strings=["x" * 100 + str(number) for number in range(500)])
    assert _head(data)[0].needed is None


def test_the_search_for_strings_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    between = b"".join(b"\0aa" for _ in range(100))
    data = _library(between=between)
    assert _head(data)[0].needed == frozenset({*_NEEDED, "libleft.so.1"})
    monkeypatch.setattr("cudalock.wheel.elf_head._STARTS_LIMIT", 50)
    assert _head(data)[0].needed is None


def test_the_table_may_end_with_the_file() -> None:
    head = bytearray(64) + b"\x01" * 8 + bytes(24)
    head += struct.pack("<IBBHQQ", 1, 0x12, 0, 0, 0, 0) * 5
    symbols_only = HeadTables()
    symbols_only.advance(head, last=True)
    assert symbols_only.done
    assert symbols_only.symbols == (72, len(head))
    assert symbols_only.strings is None
    with_names = HeadTables()
    with_names.advance(head + b"\0memcpy\0libx.so", last=True)
    assert with_names.strings == (len(head), len(head) + 15)


def test_what_looks_like_symbols_and_has_no_names_is_passed_by() -> None:
    false = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 0, 0, 0) * 2
    data = _library(padding=0)
    spoiled = data[:288] + b"\x01" * 8 + false + b"\xff" * 40
    # The real tables follow, 8-aligned.
    real = make_library(needed=_NEEDED, symbols=_SYMBOLS)[288:]
    head = bytearray(spoiled + real)
    tables = HeadTables()
    tables.advance(head, last=True)
    assert tables.strings is not None
    assert b"libcudart.so.13" in head[tables.strings[0] : tables.strings[1]]


def test_looking_at_a_head_takes_few_steps_however_long_it_is() -> None:
    steps = []
    for size in (1 << 18, 1 << 19, 1 << 20):
        # A first symbol of zeros everywhere, and never a second one.
        head = bytearray((bytes(24) + b"\xff" * 8) * (size // 32))
        tables = HeadTables()
        tables.advance(head, last=True)
        assert tables.symbols is None
        steps.append(tables.steps)
    assert steps[2] < 2.2 * steps[1] < 4.84 * steps[0]


@settings(max_examples=60)
@given(st.lists(st.integers(1, 30_000), min_size=1, max_size=40), st.sampled_from(["", "end"]))
def test_what_is_read_does_not_depend_on_the_pieces(steps: list[int], moved: str) -> None:
    data = _library(moved=moved)
    reader = ElfReader(size=len(data))
    at = number = 0
    while at < len(data):
        step = steps[number % len(steps)]
        number += 1
        reader.feed(data[at : at + step])
        at += step
    if reader.missing:
        reader.rewind()
        reader.feed(data)
    assert reader.finish() == _whole(data)
