"""Readers of a wheel's bytes meet damaged and hostile input: only our errors, and bounded work.

Each reader gets 2,000 mutated inputs in every run, and 100,000 in the run of `make fuzz`. Hypothesis
draws seeds, each of which is twenty inputs: a failure names the seed that makes it again.
"""

import json
import random
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archive_builder import make_zip, make_zip64
from cudalock.cuda import ComputeCapability, CudaVersion
from cudalock.errors import CudalockError, WheelError
from cudalock.wheel.byte_evidence import observe_bytes, speaks_of_cuda
from cudalock.wheel.contents import inspect_wheel
from cudalock.wheel.contents_form import dump_contents, load_contents, shortened
from cudalock.wheel.coverage import coverage_of, loose_coverage, trace_compiler
from cudalock.wheel.elf import ElfReader
from cudalock.wheel.evidence import conclude
from cudalock.wheel.fatbin import FatbinScanner
from cudalock.wheel.gpu_service import gpu_service
from cudalock.wheel.images import architectures_in_notes, parse_cubin_head, parse_ptx_head
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.range_source import BytesSource, CountingSource
from cudalock.wheel.torch_exports import missing_symbols
from cudalock.wheel.wheel_facts import WheelFacts
from cudalock.wheel.zip_directory import read_directory
from cudalock.wheel.zip_member import CHUNK, RATIO_LIMIT, MemberReader
from elf_builder import Symbol, make_library
from fatbin_builder import container, cubin_file, entry

_BATCH = 20
_FATBIN = (
    bytes(16)
    + container(entry("cubin", 90, "a"), entry("cubin", 120, packed="zstd"), entry("ptx", 120))
    + container(entry("cubin", 80, version=(1, 7), payload=cubin_file(80)), entry("lto", 90))
    + cubin_file(100)
)
_SYMBOLS = [
    Symbol(name="_ZN3c105ErrorD1Ev"),
    Symbol(name="aoti_torch_x", bind=2),
    Symbol(name="_ZN2at1fEv", defined=True),
    Symbol(name="memcpy"),
]
_LIBRARIES = [
    make_library(
        needed=["libc10.so", "libcudart.so.13"],
        soname="_C.so",
        symbols=_SYMBOLS,
        fatbin=_FATBIN,
        moved=moved,
    )
    for moved in ("", "end", "before-dynamic")
]
_WHEELS = [
    make_zip(
        [
            ("left/_C.so", _LIBRARIES[0]),
            ("left/k.fatbin", _FATBIN[16:]),
            ("left/sm_100a.cubin", cubin_file(100)),
            ("left/k.ptx", b".version 9.0\n.target sm_120a\n"),
            ("left-1.dist-info/METADATA", b"Name: left\n"),
        ]
    ),
    make_zip64("_C.so", _LIBRARIES[1]),
]
_NUMBERS = [
    0,
    1,
    0x10,
    0x40,
    0x7F,
    0xFF,
    0xFFFF,
    0x7FFFFFFF,
    0xFFFFFFFF,
    1 << 36,
    1 << 63,
    2**64 - 1,
]
_MARKS = [
    b"\x50\xed\x55\xba\x01\0\x10\0",
    b"\x7fELF\x02\x01\x01",
    bytes(24),
    b"X" * 16,
    b"PK\x01\x02",
]
_DEVICE = ComputeCapability(12, 0)
_DRIVER = CudaVersion(13, 1)


def _mutate(data: bytes, rng: random.Random) -> bytes:
    """Change a few places, most of them where numbers are."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        # Headers are at the beginning, ``.dynamic`` and zip directories near the end.
        near = rng.choice((len(changed), min(len(changed), 512)))
        at = rng.randrange(near) if rng.random() < 0.7 else len(changed) - 1 - rng.randrange(near)
        at = max(0, at)
        match rng.randrange(8):
            case 0 | 1:
                changed[at] = rng.randrange(256)
            case 2 | 3 | 4:
                width, form = rng.choice(((2, "<H"), (4, "<I"), (8, "<Q")))
                at = min(at & ~(width - 1), len(changed) - width)
                value = rng.choice([*_NUMBERS, len(changed), rng.getrandbits(16)])
                struct.pack_into(form, changed, max(0, at), value & (2 ** (8 * width) - 1))
            case 5:
                mark = rng.choice(_MARKS)
                at &= ~7
                changed[at : at + len(mark)] = mark
            case 6:
                del changed[at : at + rng.choice((1, 8, 100, 5000))]
            case _:
                changed[at:at] = changed[at : at + rng.choice((1, 8, 100))]
        if len(changed) < 16:
            changed += bytes(16)
    return bytes(changed)


def _pieces(data: bytes, rng: random.Random) -> list[bytes]:
    step = rng.choice((7, 100, 777, 4096, len(data)))
    return [data[at : at + step] for at in range(0, len(data), step)]


def _try_archive(rng: random.Random) -> None:
    data = _mutate(rng.choice(_WHEELS), rng)
    source = CountingSource(BytesSource(data))
    try:
        directory = read_directory(source)
    except CudalockError:
        return
    reader = MemberReader(source, directory, directory.members)
    for member in directory.members:
        produced = 0
        try:
            for chunk in reader.chunks(member):
                assert 0 < len(chunk) <= CHUNK
                produced += len(chunk)
        except CudalockError:
            pass
        assert produced <= member.size
        assert produced <= max(CHUNK, RATIO_LIMIT * len(data))
    reader.close()


def _try_library(rng: random.Random) -> None:
    data = _mutate(rng.choice(_LIBRARIES), rng)
    reader = ElfReader(size=len(data) + rng.choice((0, 0, 0, 100)))
    for piece in _pieces(data, rng):
        reader.feed(piece)
    if reader.missing:
        reader.rewind()
        for piece in _pieces(data, rng):
            reader.feed(piece)
    facts = reader.finish()
    assert facts.needed is None or len(facts.needed) <= len(data)
    assert facts.kind == "library" or facts.needed is None
    assert reader._tables.steps <= 64 + len(data) // 4
    assert len(reader._head) <= len(data)


def _try_device_code(rng: random.Random) -> None:
    data = _mutate(_FATBIN, rng)
    everything = [(0, len(data))]
    scanner = FatbinScanner(everything, everything)
    for piece in _pieces(data, rng):
        scanner.feed(piece)
    code = scanner.finish(whole=rng.random() < 0.8)
    assert scanner.steps <= 8 + len(data) * 33 // 64
    assert sum(count for _, count in code.sets) <= code.containers <= len(data) // 16
    assert len(code.anomalies) <= 64
    trace_compiler(code)
    parse_cubin_head(data[:64])
    parse_ptx_head(data)
    architectures_in_notes(data)


def _try_wheel(rng: random.Random) -> None:
    if rng.random() < 0.5:
        data = _mutate(rng.choice(_WHEELS), rng)
    else:
        # A sound archive, so that what is inside is reached.
        library = _mutate(rng.choice(_LIBRARIES), rng)
        loose = _mutate(cubin_file(90), rng)
        data = make_zip(
            [("a.so", library), ("b.fatbin", _mutate(_FATBIN[16:], rng)), ("c.cubin", loose)]
        )
    try:
        contents = inspect_wheel(
            BytesSource(data),
            depth=rng.choice(("names", "needs", "presence", "full")),
            targets=(_DEVICE,),
            driver_cuda=_DRIVER,
        )
    except CudalockError:
        return
    assert contents.bytes_read <= 4 * len(data) + 65_633
    for library_read in contents.libraries:
        coverage = coverage_of(library_read, _DEVICE, _DRIVER)
        assert library_read.whole or coverage.verdict in ("present", "unknown")
        assert coverage.served <= coverage.units
    loose_coverage(contents.loose, _DEVICE, _DRIVER)


_FORMS = [
    dump_contents(inspect_wheel(BytesSource(wheel), depth=depth))
    for wheel in _WHEELS
    for depth in ("needs", "full")
]
_OTHER: list[Any] = [
    None,
    True,
    0,
    -1,
    2**70,
    0.5,
    "",
    "sm_120",
    "bare 100?",
    "\ud800",
    [],
    [[]],
    {},
]


def _mutate_form(form: object, rng: random.Random) -> Any:  # noqa: ANN401 - any JSON
    """Change a copy of JSON data in one place, or its text in a few."""
    if rng.random() < 0.3:
        try:
            return json.loads(_mutate(json.dumps(form).encode(), rng))
        except (ValueError, RecursionError):
            return rng.choice(_OTHER)
    root = [json.loads(json.dumps(form))]
    parent: Any = root
    key: Any = 0
    while (inner := parent[key]) and isinstance(inner, (dict, list)) and rng.random() < 0.8:
        parent, key = (
            inner,
            rng.choice(list(inner) if isinstance(inner, dict) else range(len(inner))),
        )
    if rng.random() < 0.2:
        del parent[key]
    else:
        parent[key] = rng.choice([*_OTHER, root[0], _FORMS[0]["libraries"], parent[key]])
    return root[0] if root else None


def _try_form(rng: random.Random) -> None:
    form = _mutate_form(rng.choice(_FORMS), rng)
    try:
        contents = load_contents(form)
    except WheelError:
        return
    # What was let in can be concluded from, and be kept again.
    facts = WheelFacts(filename="left.whl", contents=contents)
    assert facts.tier in ("T1", "T2", "T3", "T4")
    assert load_contents(dump_contents(contents)) == contents
    nothing = Knowledge()
    variant = replace(conclude(observe_bytes(facts, nothing, wanted=13), native=True), facts=facts)
    speaks_of_cuda(contents, nothing)
    gpu_service(variant, _DEVICE, driver_cuda=_DRIVER, knowledge=nothing, project="left")
    for library in shortened(contents).libraries:
        missing_symbols(contents, library, frozenset[str]())


_READERS = [_try_archive, _try_library, _try_device_code, _try_wheel, _try_form]
_QUICK = settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
_LONG = settings(max_examples=5000, suppress_health_check=[HealthCheck.too_slow])
_SEEDS = st.integers(0, 2**48)


def _run(attempt: Callable[[random.Random], None], seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - a seed that makes an input again, not a secret
    for _ in range(_BATCH):
        attempt(rng)


@pytest.mark.parametrize("attempt", _READERS)
@_QUICK
@given(seed=_SEEDS)
def test_mutated_input_raises_only_our_errors(
    attempt: Callable[[random.Random], None], seed: int
) -> None:
    _run(attempt, seed)


@pytest.mark.fuzz
@pytest.mark.parametrize("attempt", _READERS)
@_LONG
@given(seed=_SEEDS)
def test_a_hundred_thousand_mutated_inputs_raise_only_our_errors(
    attempt: Callable[[random.Random], None], seed: int
) -> None:
    _run(attempt, seed)
