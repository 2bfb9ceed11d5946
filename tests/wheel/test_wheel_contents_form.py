"""Contents as plain data: what the real readers found comes back, and anything else is told apart."""

import json
import random
from collections.abc import Mapping
from typing import Any

import pytest

from archive_builder import make_zip
from contents_builder import make_contents
from cudalock.cuda import ComputeCapability, CudaVersion
from cudalock.errors import WheelError
from cudalock.wheel.byte_evidence import observe_bytes
from cudalock.wheel.contents import WheelContents, inspect_wheel
from cudalock.wheel.contents_form import (
    READER_VERSION,
    dump_contents,
    load_contents,
    shortened,
)
from cudalock.wheel.coverage import coverage_of, loose_coverage
from cudalock.wheel.cuda_parts import SharedLibrary
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.range_source import BytesSource
from cudalock.wheel.reading import Depth
from cudalock.wheel.torch_exports import missing_symbols
from cudalock.wheel.wheel_facts import WheelFacts
from elf_builder import Symbol, make_library
from fatbin_builder import container, cubin_file, entry

_DEVICES = [ComputeCapability(9, 0), ComputeCapability(12, 0), ComputeCapability(12, 1)]
_DRIVER = CudaVersion(13, 1)
_KNOWLEDGE = Knowledge(
    shared_libraries=(
        SharedLibrary(stem="libcudart", providers=("runtime",), follows_cuda=True, source="x"),
    )
)
_OWN = "_ZN5torch4left4readEv"
_NOISE = random.Random(5).randbytes(200_000)  # noqa: S311 - bytes that do not pack
_FATBIN = container(
    entry("cubin", 90, "a"), entry("cubin", 120, "f", packed="zstd"), entry("ptx", 120)
) + container(
    entry("cubin", 80, version=(1, 7)), entry("lto", 90), entry("ptx", 80, version=(8, 7))
)


def _wheel() -> dict[str, bytes]:
    """Return a wheel with one of everything that the readers tell apart."""
    extension = make_library(
        needed=["libc10.so", "libcudart.so.13", "libnvjpeg-1a359ba7.so.13"],
        soname="_C.so",
        symbols=[Symbol(name="_ZN3c105ErrorD1Ev"), Symbol(name=_OWN)],
        fatbin=_FATBIN,
        rodata=_NOISE,
    )
    return {
        "left/_C.so": extension,
        "left/_C.so.1": extension,
        "left/own.so": make_library(symbols=[Symbol(name=_OWN, defined=True)], rodata=_NOISE),
        "left/profiler.so": make_library(rodata=cubin_file(52, abi="old") + cubin_file(120)),
        "left/moved.so": make_library(needed=["libcudart.so.13"], moved="end"),
        "left/k.fatbin": _FATBIN,
        "left/x.pyd": b"MZ",
        "left/y.so": b"no library",
        "left/z.so": b"\x7fELF\x01\x01\x01".ljust(64, b"\0"),
        "left/sm_100a.cubin": cubin_file(100),
        "left/a_sm_100a.cubin": cubin_file(100),
        "left/b.cubin": cubin_file(120),
        "left/c_sm90.cubin": b"no cubin",
        "left/k.ptx": b".version 9.0\n.target sm_120a\n",
        "left.libs/libnvjpeg-1a359ba7.so.13": make_library(
            soname="libnvjpeg-1a359ba7.so.13", fatbin=_FATBIN
        ),
        "../left.py": b"",
    }


def _read(files: Mapping[str, bytes], depth: Depth) -> WheelContents:
    return inspect_wheel(
        BytesSource(make_zip(files.items())),
        depth=depth,
        targets=(_DEVICES[1],),
        driver_cuda=_DRIVER,
    )


def _again(contents: WheelContents) -> WheelContents:
    return load_contents(json.loads(json.dumps(dump_contents(contents))))


def _told(contents: WheelContents) -> list[object]:
    """Return all that is concluded from contents."""
    told: list[object] = [
        observe_bytes(WheelFacts(filename="left.whl", contents=contents), _KNOWLEDGE, wanted=13)
    ]
    for device in _DEVICES:
        for driver in (None, _DRIVER):
            told += [coverage_of(library, device, driver) for library in contents.libraries]
            told.append(loose_coverage(contents.loose, device, driver))
    for exported in (set[str](), {"_ZN3c105ErrorD1Ev"}, {"_ZN3c105ErrorD1Ev", _OWN}):
        told += [missing_symbols(contents, library, exported) for library in contents.libraries]
    return told


@pytest.mark.parametrize("depth", ["names", "needs", "presence", "full"])
def test_what_was_read_comes_back_and_says_the_same(depth: Depth) -> None:
    contents = _read(_wheel(), depth)
    short = shortened(contents)
    again = _again(short)
    assert _told(short) == _told(contents)
    assert _told(again) == _told(contents)
    assert dump_contents(again) == dump_contents(short)
    # Its paths are in its libraries; files of device code keep no bytes to compare.
    assert [(lib.path, lib.crc32, lib.size) for lib in again.libraries] == [
        (lib.path, lib.crc32, lib.size) for lib in contents.libraries
    ]
    assert (again.complete, again.depth, again.anomalies) == (
        contents.complete,
        depth,
        ("a path that leaves its folder: `../left.py`",),
    )


def test_a_whole_wheel_has_every_kind_of_library() -> None:
    kinds = {library.kind for library in _again(_read(_wheel(), "full")).libraries}
    assert kinds == {"elf", "fatbin", "windows", "other", "foreign"}


def test_files_that_tell_the_same_are_one_line_and_are_counted() -> None:
    files = {f"left/k{n}_sm_100a.cubin": cubin_file(100) for n in range(50)}
    contents = shortened(_read(files, "full"))
    assert [(code.path, code.count) for code in contents.loose] == [("left/k0_sm_100a.cubin", 50)]
    assert loose_coverage(_again(contents).loose, ComputeCapability(10, 0), None).units == 50
    # What is short already stays as it is.
    assert shortened(contents) == contents


def test_symbols_that_a_library_beside_it_has_are_left_out() -> None:
    by_path = {library.path: library for library in shortened(_read(_wheel(), "full")).libraries}
    extension = by_path["left/_C.so"].torch
    assert extension is not None
    assert extension.undefined == {"_ZN3c105ErrorD1Ev"}
    # A library that is not understood stands beside it, and may have what is missing.
    assert not extension.exact
    assert by_path["left/own.so"].torch is not None
    assert not by_path["left/own.so"].torch.exported


def test_thousands_of_wanted_symbols_are_not_kept_and_nothing_follows_from_them() -> None:
    many = [f"_ZN3c10{len(str(n)) + 1}f{n}Ev" for n in range(4001)]
    contents = make_contents(
        {"libraries": [{"path": "a.so", "torch": many}, {"path": "b.so", "torch": ["torch_x"]}]}
    )
    short = shortened(contents)
    assert [library.torch for library in short.libraries] == [None, None]
    assert missing_symbols(short, short.libraries[1], frozenset()) is None
    few = shortened(make_contents({"libraries": [{"path": "a.so", "torch": many[:4000]}]}))
    assert few.libraries[0].torch is not None


def _form() -> dict[str, Any]:
    form: dict[str, Any] = json.loads(json.dumps(dump_contents(_read(_wheel(), "full"))))
    return form


def _set(form: Any, path: str, value: object) -> None:  # noqa: ANN401 - any JSON
    *parents, last = path.split(".")
    for key in parents:
        form = form[int(key) if isinstance(form, list) else key]
    form[int(last) if isinstance(form, list) else last] = value


_EXTENSION = "libraries.1"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("reader", READER_VERSION + 1),
        ("reader", True),
        ("size", -1),
        ("size", 1.0),
        ("size", "1"),
        ("depth", "deep"),
        ("depth", []),
        ("complete", 1),
        ("read", None),
        ("libraries", {}),
        ("libraries", ""),
        ("libraries", [[]]),
        ("loose", {}),
        ("loose.0", []),
        ("loose.0", ["a.cubin", "bare 100", True, ""]),
        ("loose.0.1", "bare 19"),
        ("loose.0.1", "bare 100b"),
        ("loose.0.1", "ptx 100 9"),
        ("loose.0.1", 100),
        ("loose.0.2", "yes"),
        ("loose.0.4", -5),
        ("anomalies", "none"),
        ("anomalies", [1]),
        (f"{_EXTENSION}.kind", "macho"),
        (f"{_EXTENSION}.seen", "all"),
        (f"{_EXTENSION}.needed", "libcudart.so.13"),
        (f"{_EXTENSION}.needed_exact", None),
        (f"{_EXTENSION}.soname", 1),
        (f"{_EXTENSION}.grafted", [["a"]]),
        (f"{_EXTENSION}.grafted", ["ab"]),
        (f"{_EXTENSION}.torch", []),
        (f"{_EXTENSION}.torch", [[], 1]),
        (f"{_EXTENSION}.torch", [None, True]),
        (f"{_EXTENSION}.copy_of", False),
        (f"{_EXTENSION}.code", None),
        (f"{_EXTENSION}.code.containers", -1),
        (f"{_EXTENSION}.code.images", [["cubin 5 1.8", 1]]),
        (f"{_EXTENSION}.code.images", [["cubin 120 1.8"]]),
        (f"{_EXTENSION}.code.images", [["sass 120 1.8", 1]]),
        (f"{_EXTENSION}.code.images", ["ab"]),
        (f"{_EXTENSION}.code.sets", [["", 1]]),
        (f"{_EXTENSION}.code.bare", [["cubin 120 1.8", 1]]),
        (f"{_EXTENSION}.code.damaged", True),
    ],
)
def test_anything_else_in_a_form_is_an_error(path: str, value: object) -> None:
    form = _form()
    _set(form, path, value)
    with pytest.raises(WheelError, match="expected the facts of a wheel"):
        load_contents(form)


@pytest.mark.parametrize("form", [None, 1, "", [], {}, {"reader": READER_VERSION}, "[" * 10])
def test_what_is_no_form_is_an_error(form: object) -> None:
    with pytest.raises(WheelError, match="expected the facts of a wheel"):
        load_contents(form)
