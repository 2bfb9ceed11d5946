"""What was read of a wheel as plain JSON data, to be kept and read again; the reading is strict.

A form holds what conclusions are drawn from. Beside that it is shortened: symbols of torch that
libraries of one wheel find in each other are left out, and so are files of device code that tell the
same as one before. Anything whatever read back gives contents or a `WheelError`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from cudalock.cuda import Architecture
from cudalock.errors import WheelError
from cudalock.wheel.contents import LooseCode, WheelContents
from cudalock.wheel.fatbin import DeviceCode
from cudalock.wheel.images import ARCHITECTURE_NUMBERS, BareCubin, Image
from cudalock.wheel.library import Library
from cudalock.wheel.torch_exports import exports_of
from cudalock.wheel.torch_symbols import TorchSymbols

__all__ = ["READER_VERSION", "dump_contents", "load_contents", "shortened"]

READER_VERSION = 1
"""Raised with every change of what the readers find or the form says: older facts are read anew."""

# The libraries of torch itself want thousands of each other; an extension wants hundreds.
_SYMBOLS_KEPT = 4000
_IMAGE = re.compile(r"(cubin|ptx|lto) ([0-9]{2,3})([af]?) ([0-9]{1,5})\.([0-9]{1,5})\Z")
_BARE = re.compile(r"bare ([0-9]{2,3})([af?]?)\Z")


def shortened(contents: WheelContents) -> WheelContents:
    """Return contents that say the same of the wheel to others, with less.

    What a library exports for those beside it is settled, where all of them are known.
    """
    beside = exports_of(contents)
    wanted = [
        frozenset[str]() if library.torch is None else library.torch.undefined - beside.names
        for library in contents.libraries
    ]
    known = sum(map(len, wanted)) <= _SYMBOLS_KEPT
    libraries = [
        replace(
            library,
            torch=TorchSymbols(undefined=names, exact=library.torch.exact and beside.exact)
            if known and library.torch is not None
            else None,
        )
        for library, names in zip(contents.libraries, wanted, strict=True)
    ]
    groups: dict[tuple[object, ...], LooseCode] = {}
    for code in contents.loose:
        key = (code.code, code.read, code.anomaly)
        first = groups.get(key)
        groups[key] = code if first is None else replace(first, count=first.count + code.count)
    return replace(contents, libraries=tuple(libraries), loose=tuple(groups.values()))


def dump_contents(contents: WheelContents) -> dict[str, Any]:
    """Return the form of contents; of the paths a wheel installs, those of libraries are in it."""
    return {
        "reader": READER_VERSION,
        "size": contents.size,
        "depth": contents.depth,
        "complete": contents.complete,
        "read": contents.bytes_read,
        "libraries": [_library(library) for library in contents.libraries],
        "loose": [
            [c.path, None if c.code is None else _piece(c.code), c.read, c.anomaly, c.count]
            for c in contents.loose
        ],
        "anomalies": list(contents.anomalies),
    }


def _library(library: Library) -> dict[str, Any]:
    torch, code = library.torch, library.code
    form: dict[str, Any] = {
        "path": library.path,
        "crc32": library.crc32,
        "size": library.size,
        "packed": library.packed,
        "kind": library.kind,
        "seen": library.seen,
        "machine": library.machine,
        "needed": None if library.needed is None else sorted(library.needed),
        "needed_exact": library.needed_exact,
        "soname": library.soname,
        "grafted": [list(pair) for pair in library.grafted],
        "torch": None if torch is None else [sorted(torch.undefined), torch.exact],
        "copy_of": library.copy_of,
        "anomalies": list(library.anomalies),
    }
    if code != DeviceCode():
        sets = sorted(([_piece(i) for i in sorted(images)], n) for images, n in code.sets)
        form["code"] = {
            "containers": code.containers,
            "images": [[_piece(image), count] for image, count in code.images],
            "sets": [[images, count] for images, count in sets],
            "bare": [[_piece(cubin), count] for cubin, count in code.bare_cubins],
            "damaged": code.damaged,
            "anomalies": list(code.anomalies),
        }
    return form


def _piece(piece: Image | BareCubin) -> str:
    if isinstance(piece, BareCubin):
        return f"bare {piece.number}{'?' if piece.suffix is None else piece.suffix}"
    architecture, (major, minor) = piece.architecture, piece.version
    return f"{piece.kind} {architecture.number}{architecture.suffix} {major}.{minor}"


def load_contents(form: object) -> WheelContents:
    """Return the contents of a form; raise `WheelError` for anything that is not one of this version."""
    try:
        return _load(form)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise WheelError(f"expected the facts of a wheel, found something else: {error}") from error


def _load(form: Any) -> WheelContents:  # noqa: ANN401 - any JSON
    if _number(form["reader"]) != READER_VERSION:
        raise ValueError("facts of another reader")
    return WheelContents(
        size=_number(form["size"]),
        depth=_one_of(form["depth"], ("names", "needs", "presence", "full")),
        complete=_flag(form["complete"]),
        bytes_read=_number(form["read"]),
        libraries=tuple(_load_library(each) for each in _list(form["libraries"])),
        loose=tuple(_load_loose(each) for each in _list(form["loose"])),
        paths=(),
        anomalies=_texts(form["anomalies"]),
    )


def _load_library(form: Mapping[str, Any]) -> Library:
    torch = form["torch"]
    return Library(
        path=_text(form["path"]),
        crc32=_number(form["crc32"]),
        size=_number(form["size"]),
        packed=_number(form["packed"]),
        kind=_one_of(
            form["kind"],
            ("unread", "elf", "fatbin", "windows", "foreign", "damaged", "other"),
        ),
        seen=_one_of(form["seen"], ("nothing", "head", "part", "whole")),
        machine=_number(form["machine"]),
        needed=None if form["needed"] is None else frozenset(_texts(form["needed"])),
        needed_exact=_flag(form["needed_exact"]),
        soname=None if form["soname"] is None else _text(form["soname"]),
        grafted=tuple(
            (_text(name), _text(original)) for name, original in map(_list, _list(form["grafted"]))
        ),
        torch=None
        if torch is None
        else TorchSymbols(undefined=frozenset(_texts(torch[0])), exact=_flag(torch[1])),
        code=_load_code(form["code"]) if "code" in form else DeviceCode(),
        copy_of=None if form["copy_of"] is None else _text(form["copy_of"]),
        anomalies=_texts(form["anomalies"]),
    )


def _load_code(form: Mapping[str, Any]) -> DeviceCode:
    return DeviceCode(
        containers=_number(form["containers"]),
        images=tuple((_image(text), _number(count)) for text, count in _list(form["images"])),
        sets=tuple(
            (frozenset(_image(text) for text in _list(images)), _number(count))
            for images, count in _list(form["sets"])
        ),
        bare_cubins=tuple((_bare(text), _number(count)) for text, count in _list(form["bare"])),
        damaged=_number(form["damaged"]),
        anomalies=_texts(form["anomalies"]),
    )


def _load_loose(form: Iterable[Any]) -> LooseCode:
    path, piece, read, anomaly, count = form
    code: BareCubin | Image | None = None
    if piece is not None:
        code = _bare(piece) if _text(piece).startswith("bare") else _image(piece)
    return LooseCode(
        path=_text(path),
        crc32=0,
        size=0,
        code=code,
        read=_flag(read),
        anomaly=_text(anomaly),
        count=_number(count),
    )


def _image(text: str) -> Image:
    match = _IMAGE.match(text)
    if match is None:
        raise ValueError(f"no device code: {text[:40]!r}")
    kind, number, suffix, major, minor = match.groups()
    return Image(
        kind=_one_of(kind, ("cubin", "ptx", "lto")),
        architecture=Architecture(
            _architecture_number(number),
            _one_of(suffix, ("", "a", "f")),
            "sm" if kind == "cubin" else "compute",
        ),
        version=(int(major), int(minor)),
    )


def _bare(text: str) -> BareCubin:
    match = _BARE.match(text)
    if match is None:
        raise ValueError(f"no cubin: {text[:40]!r}")
    suffix = None if match[2] == "?" else _one_of(match[2], ("", "a", "f"))
    return BareCubin(number=_architecture_number(match[1]), suffix=suffix)


def _architecture_number(text: str) -> int:
    number = int(text)
    if number not in ARCHITECTURE_NUMBERS:
        raise ValueError(f"no architecture: {number}")
    return number


def _number(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"no length or count: {value!r}")
    return value


def _flag(value: object) -> bool:
    if type(value) is not bool:
        raise TypeError(f"no truth value: {value!r}")
    return value


def _text(value: object) -> str:
    if type(value) is not str:
        raise TypeError("no text")
    return value


def _list(value: object) -> list[Any]:
    if type(value) is not list:
        raise TypeError("no list")
    return value


def _texts(values: object) -> tuple[str, ...]:
    return tuple(_text(value) for value in _list(values))


def _one_of(value: object, allowed: tuple[Any, ...]) -> Any:  # noqa: ANN401 - one of the given
    if value not in allowed:
        raise ValueError(f"none of {allowed}: {value!r}")
    return value
