"""What an extension misses in a torch release, and when that cannot be told."""

import random
from collections.abc import Sequence

from archive_builder import make_zip
from cudalock.wheel.contents import WheelContents, inspect_wheel
from cudalock.wheel.library import Library
from cudalock.wheel.range_source import BytesSource
from cudalock.wheel.reading import Depth
from cudalock.wheel.torch_exports import exports_of, missing_symbols
from elf_builder import Symbol, make_library

_OLD, _NEW = "_ZN3c104cuda29c10_cuda_check_implementationEv", "_ZN3c106newestEv"
_OWN = "_ZN5torch4left4readEv"
_FILLING = random.Random(3).randbytes(200_000)  # noqa: S311 - bytes that do not pack


def _symbols(wanted: Sequence[str] = (), offered: Sequence[str] = ()) -> list[Symbol]:
    return [
        *(Symbol(name=name) for name in wanted),
        *(Symbol(name=name, defined=True) for name in offered),
    ]


def _inspect(depth: Depth = "full", **libraries: bytes) -> WheelContents:
    files = ((f"left/{name}.so", data) for name, data in libraries.items())
    return inspect_wheel(BytesSource(make_zip(files)), depth=depth)


def _named(contents: WheelContents, name: str) -> Library:
    return next(library for library in contents.libraries if library.path == f"left/{name}.so")


_TORCH = exports_of(
    _inspect(
        c10=make_library(symbols=_symbols(offered=[_OLD])),
        cuda=make_library(symbols=_symbols(offered=["aoti_torch_x"])),
    )
)
_EXTENSION = make_library(symbols=_symbols([_OLD, _NEW, _OWN, "aoti_torch_x"]), rodata=_FILLING)
_SIBLING = make_library(symbols=_symbols(offered=[_OWN]), rodata=_FILLING)


def test_the_exports_of_torch_are_those_of_all_its_libraries() -> None:
    assert _TORCH.names == {_OLD, "aoti_torch_x"}
    assert _TORCH.exact


def test_a_symbol_that_neither_torch_nor_a_sibling_defines_is_missing() -> None:
    contents = _inspect(a=_EXTENSION, b=_SIBLING)
    assert missing_symbols(contents, _named(contents, "a"), _TORCH.names) == frozenset({_NEW})
    assert missing_symbols(contents, _named(contents, "a"), _TORCH.names | {_NEW}) == frozenset()
    alone = _inspect(a=_EXTENSION)
    assert missing_symbols(alone, _named(alone, "a"), _TORCH.names) == frozenset({_NEW, _OWN})


def test_the_heads_alone_tell_what_is_missing() -> None:
    contents = _inspect("needs", a=_EXTENSION, b=_SIBLING)
    assert [library.seen for library in contents.libraries] == ["head", "head"]
    assert missing_symbols(contents, _named(contents, "a"), _TORCH.names) == frozenset({_NEW})


def test_what_a_sibling_may_define_is_not_known_to_be_missing() -> None:
    moved = make_library(symbols=_symbols(offered=[_OWN]), moved="end", sections=False)
    contents = _inspect(a=_EXTENSION, b=moved)
    assert missing_symbols(contents, _named(contents, "a"), _TORCH.names) is None
    assert missing_symbols(contents, _named(contents, "a"), _TORCH.names | {_NEW}) == frozenset()
    foreign = _inspect(a=_EXTENSION, b=b"MZ not read")
    assert not exports_of(foreign).exact
    assert missing_symbols(foreign, _named(foreign, "a"), _TORCH.names) is None


def test_what_was_not_read_misses_nothing_that_is_known() -> None:
    unread = _inspect("names", a=_EXTENSION)
    assert missing_symbols(unread, _named(unread, "a"), _TORCH.names) is None
