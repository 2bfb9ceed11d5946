"""What was read of a wheel, from a few words: for scenarios, and for tests of what follows from it.

``make_contents`` takes a table: ``tier`` (T4), ``files`` (files of device code by what they are for:
``{ sm_100a = 12 }``), ``named = true`` (only the names of those files were seen) and ``libraries``, each a table of ``path``, ``needed`` (sonames), ``code`` (a list of containers, each
what it holds: ``"sm_80 sm_90a compute_90@8.7"``), ``torch`` (undefined symbols), ``seen`` (``whole`` at T4, else
``head``), ``bytes`` (a number that stands for its content), ``inexact = true`` (its symbols may not be all).
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from cudalock.cuda import parse_architecture
from cudalock.wheel.contents import LooseCode, WheelContents
from cudalock.wheel.fatbin import DeviceCode
from cudalock.wheel.images import BareCubin, Image
from cudalock.wheel.library import Library
from cudalock.wheel.torch_symbols import TorchSymbols
from cudalock.wheel.wheel_facts import DEPTHS

__all__ = ["make_contents", "make_library"]

_LIBRARY_KEYS = {"path", "needed", "code", "torch", "seen", "bytes", "inexact", "soname", "bare"}


def make_contents(table: Mapping[str, Any]) -> WheelContents:
    """Return contents; a key that means nothing is an error."""
    unknown = set(table) - {"tier", "files", "libraries", "named"}
    for each in table.get("libraries", []):
        unknown |= set(each) - _LIBRARY_KEYS
    if unknown:
        raise ValueError(f"unknown keys {sorted(unknown)}")
    depth = DEPTHS[table.get("tier", "T4")]
    libraries = tuple(
        make_library(each, whole=depth == "full") for each in table.get("libraries", [])
    )
    read = not table.get("named", False)
    loose = tuple(_loose(name, count, read) for name, count in table.get("files", {}).items())
    return WheelContents(
        size=1000,
        depth=depth,
        complete=all(library.whole for library in libraries) and all(code.read for code in loose),
        bytes_read=1000,
        libraries=libraries,
        loose=loose,
        paths=(),
    )


def make_library(table: Mapping[str, Any], *, whole: bool = True) -> Library:
    """Return one library."""
    containers = [
        frozenset(_image(word) for word in text.split()) for text in table.get("code", [])
    ]
    pieces = Counter(image for images in containers for image in images)
    torch = frozenset(table["torch"]) if "torch" in table else frozenset[str]()
    seen = table.get("seen", "whole" if whole else "head")
    return Library(
        path=table["path"],
        crc32=table.get("bytes", 1),
        size=100,
        packed=50,
        kind="elf",
        seen=seen,
        machine=62,
        needed=frozenset(table.get("needed", [])),
        needed_exact=seen == "whole",
        soname=table.get("soname"),
        torch=TorchSymbols(undefined=torch, exact=not table.get("inexact", False)),
        code=DeviceCode(
            containers=len(containers),
            images=tuple(sorted(pieces.items())),
            sets=tuple(Counter(containers).items()),
            bare_cubins=tuple(
                (BareCubin(number=int(number), suffix=""), 1) for number in table.get("bare", [])
            ),
        ),
    )


def _image(text: str) -> Image:
    name, _, isa = text.partition("@")
    architecture = parse_architecture(name)
    if architecture.kind == "compute":
        major, _, minor = (isa or "8.0").partition(".")
        return Image(kind="ptx", architecture=architecture, version=(int(major), int(minor)))
    return Image(kind="cubin", architecture=architecture, version=(1, 8))


def _loose(name: str, count: int, read: bool) -> LooseCode:
    architecture = parse_architecture(name)
    return LooseCode(
        path=f"cubins/{name}.cubin",
        crc32=0,
        size=0,
        code=BareCubin(number=architecture.number, suffix=architecture.suffix),
        read=read,
        count=count,
    )
