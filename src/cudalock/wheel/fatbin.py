"""Fat binaries: the containers of device code inside a library, found as its bytes go by.

A container is 16 bytes (magic, version 1, header size 16, length of the body) and entries back to
back, each with a header that says how long it and its payload are. Measured by dumping what nvcc 13.0
writes and on 17,000 entries of real wheels; headers are never compressed, so no payload is unpacked.
``.nv_fatbin`` and ``__nv_relfatbin`` look the same, and sections are not needed to find them: containers
are 8-aligned in parts of the file that are mapped read-only. Bytes that only look like one must not
hide a real one: what is inside a payload is searched as well.
"""

import struct
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Literal

from cudalock.cuda import Architecture
from cudalock.wheel.images import (
    ARCHITECTURE_NUMBERS,
    CUBIN_HEAD,
    BareCubin,
    Image,
    ImageKind,
    parse_cubin_head,
)

__all__ = ["DeviceCode", "FatbinScanner"]

_MAGIC = b"\x50\xed\x55\xba"
_ELF = b"\x7fELF"
_CONTAINER = struct.Struct("<4sHHQ")
# kind, entry version, header size, payload size, stored size, option offset, minor, major, number,
# source name offset and length, flags.
_ENTRY = struct.Struct("<HHIQIIHHIIIQ")
_ENTRY_LEAST = 64
_ENTRY_MOST = 64 * 1024
_ENTRY_VERSION = 0x0101
_KINDS: dict[int, ImageKind] = {1: "ptx", 2: "cubin", 8: "lto"}
_SUFFIX_A, _SUFFIX_F = 0x100000, 0x200000
_LOOK = _CONTAINER.size + _ENTRY_LEAST
_CONTAINERS_LIMIT = 200_000
_ENTRIES_LIMIT = 1_000_000
_MARKS_LIMIT = 1_000_000
_DISTINCT_LIMIT = 4096
_MEMBERSHIPS_LIMIT = 200_000
_DEPTH_LIMIT = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCode:
    """The device code that was seen.

    ``images`` counts the pieces in containers, ``sets`` the containers by what they hold: one of a
    container's pieces must serve a device for its kernels to run there. ``damaged`` counts containers
    that break off; their pieces up to there are among the others. ``anomalies`` name all that keeps the
    rest from being the whole truth: when there are any, nothing is proved to be missing.
    """

    containers: int = 0
    images: tuple[tuple[Image, int], ...] = ()
    sets: tuple[tuple[frozenset[Image], int], ...] = ()
    bare_cubins: tuple[tuple[BareCubin, int], ...] = ()
    damaged: int = 0
    anomalies: tuple[str, ...] = ()

    @property
    def architectures(self) -> tuple[Architecture, ...]:
        """What there is machine code for in containers, ascending."""
        return tuple(sorted({i.architecture for i, _ in self.images if i.kind == "cubin"}))

    @property
    def ptx(self) -> tuple[Image, ...]:
        """The distinct PTX, ascending; as text ``compute_120@9.0``."""
        return tuple(image for image, _ in self.images if image.kind == "ptx")


@dataclass(slots=True)
class _Open:
    """A container whose entries are being walked."""

    end: int
    next: int
    images: set[Image] = field(default_factory=set)


@dataclass(slots=True)
class FatbinScanner:
    """Scans one file, fed in order and in pieces of any length; what is found does not depend on those.

    ``containers_in`` are the parts of the file that may hold containers, ``cubins_in`` those that may hold
    cubins in no container, both as (start, end). ``steps`` counts the headers looked at. Cost: two
    searches over the bytes, and one step for each header; memory: the last 80 bytes.
    """

    containers_in: Sequence[tuple[int, int]]
    cubins_in: Sequence[tuple[int, int]] = ()
    steps: int = 0
    _at: int = 0
    _carry: bytes = b""
    _searched: int = 0
    _covered: int = 0
    # Where the containers end that reach beyond the place that is searched.
    _around: list[int] = field(default_factory=list)
    _open: list[_Open] = field(default_factory=list)
    _containers: int = 0
    _entries: int = 0
    _marks: int = 0
    _damaged: int = 0
    _memberships: int = 0
    _images: Counter[Image] = field(default_factory=Counter)
    _sets: Counter[frozenset[Image]] = field(default_factory=Counter)
    _cubins: Counter[BareCubin] = field(default_factory=Counter)
    _anomalies: dict[str, None] = field(default_factory=dict)
    _stopped: bool = False

    def __post_init__(self) -> None:
        self.containers_in = _merged(self.containers_in)
        self.cubins_in = _merged(self.cubins_in)

    @property
    def images(self) -> frozenset[Image]:
        """The distinct pieces seen so far."""
        return frozenset(self._images)

    @property
    def cubins(self) -> frozenset[BareCubin]:
        """The distinct cubins in no container seen so far."""
        return frozenset(self._cubins)

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the file."""
        self._at += len(chunk)
        if not self._stopped:
            self._scan(self._carry + chunk, last=False)
            self._carry = (self._carry + chunk[-_LOOK:])[-_LOOK:]

    def finish(self, *, whole: bool = True) -> DeviceCode:
        """Tell what was found in all of a file, or in its beginning. Nothing may be fed after it.

        A container that goes on where a whole file ends is damaged.
        """
        if not self._stopped and whole:
            self._scan(self._carry, last=True)
        for container in self._open:
            self._close(container, "a container that breaks off" if whole else "")
        self._open.clear()
        return DeviceCode(
            containers=self._containers,
            images=tuple(sorted(self._images.items())),
            sets=tuple(sorted(self._sets.items(), key=lambda item: sorted(item[0]))),
            bare_cubins=tuple(sorted(self._cubins.items(), key=lambda item: str(item[0]))),
            damaged=self._damaged,
            anomalies=tuple(self._anomalies),
        )

    def _scan(self, data: bytes, *, last: bool) -> None:
        base = self._at - len(data)
        # What begins here can be judged: its first 80 bytes are there, or the file has no more.
        horizon = len(data) if last else len(data) - _LOOK + 1
        at = max(0, self._searched - base)
        container = cubin = -1
        while at < horizon and not self._stopped:
            if container < at:
                container = _next(data, _MAGIC, at, horizon)
            if cubin < at:
                # Inside a container every cubin is a payload, so nothing is looked for there.
                cubin = _next(data, _ELF, max(at, self._covered - base), horizon)
            at = min(container, cubin)
            if at >= horizon:
                break
            self._marks += 1
            if self._marks > _MARKS_LIMIT:
                self._stop("marks of device code without end")
            elif at == container:
                self._try_container(data, base, at)
            else:
                self._try_cubin(data, base, at)
            at += 1
        self._searched = max(self._searched, base + max(horizon, 0))
        self._walk(data, base)

    def _try_container(self, data: bytes, base: int, at: int) -> None:
        start = base + at
        room = _range_end(self.containers_in, start)
        if start % 8 or room is None or len(data) - at < _CONTAINER.size:
            return
        self.steps += 1
        _, version, header, body = _CONTAINER.unpack_from(data, at)
        first = start + _CONTAINER.size
        end = first + body
        if (
            (version, header) != (1, _CONTAINER.size)
            or not body
            or not _fits(data, at + _CONTAINER.size, body, min(end, room) - first)
        ):
            return
        if self._containers >= _CONTAINERS_LIMIT:
            self._stop(f"more than {_CONTAINERS_LIMIT} containers")
            return
        self._around = [other for other in self._around if other > start]
        if len(self._around) >= _DEPTH_LIMIT:
            self._note("containers inside one another, more than are followed")
            return
        if start < self._covered:
            self._note("a container inside another")
        if end > room:
            self._note("a container that ends beyond its segment")
            end = room
        self._containers += 1
        self._covered = max(self._covered, end)
        self._around.append(end)
        self._open.append(_Open(end, first))
        # It may lie before where the others are by now.
        self._walk(data, base)

    def _walk(self, data: bytes, base: int) -> None:
        """Take every entry whose header is here."""
        still: list[_Open] = []
        for container in self._open:
            fault = ""
            while not fault and not self._stopped and container.next < container.end:
                at = container.next - base
                if container.end - container.next < _ENTRY_LEAST:
                    fault = "a container with bytes after its entries"
                elif at + _ENTRY_LEAST > len(data):
                    break
                else:
                    fault = self._take(data, at, container)
            if fault or container.next >= container.end:
                self._close(container, fault)
            else:
                still.append(container)
        self._open = still

    def _take(self, data: bytes, at: int, container: _Open) -> str:
        """Take the entry at a place; return what is wrong with it."""
        self.steps += 1
        self._entries += 1
        if self._entries > _ENTRIES_LIMIT:
            self._stop(f"more than {_ENTRIES_LIMIT} entries")
            return "a container that was not followed"
        kind, _, header, payload, _, _, minor, major, number, _, _, flags = _ENTRY.unpack_from(
            data, at
        )
        room = container.end - container.next
        if not _ENTRY_LEAST <= header <= _ENTRY_MOST or header + payload > room:
            return "an entry that does not fit its container"
        container.next += header + payload
        name = _KINDS.get(kind)
        if name is None:
            self._note(f"entries of an unknown kind {kind}")
            return ""
        if number not in ARCHITECTURE_NUMBERS or (flags & _SUFFIX_A and flags & _SUFFIX_F):
            self._note("an entry for no architecture that is known")
            return ""
        suffix: Literal["", "a", "f"] = (
            "a" if flags & _SUFFIX_A else "f" if flags & _SUFFIX_F else ""
        )
        architecture = Architecture(number, suffix, "sm" if name == "cubin" else "compute")
        image = Image(kind=name, architecture=architecture, version=(major, minor))
        if image not in self._images and len(self._images) >= _DISTINCT_LIMIT:
            self._note(f"more than {_DISTINCT_LIMIT} kinds of images")
            return ""
        self._images[image] += 1
        container.images.add(image)
        return ""

    def _close(self, container: _Open, fault: str) -> None:
        if fault:
            self._damaged += 1
            self._note(fault)
        images = frozenset(container.images)
        if images not in self._sets:
            self._memberships += len(images) + 1
            if len(self._sets) >= _DISTINCT_LIMIT or self._memberships > _MEMBERSHIPS_LIMIT:
                self._note("more kinds of containers than are told apart")
                return
        self._sets[images] += 1

    def _try_cubin(self, data: bytes, base: int, at: int) -> None:
        start = base + at
        # In a container it is a payload, and the entry has told what it is.
        if start % 8 or start < self._covered or _range_end(self.cubins_in, start) is None:
            return
        self.steps += 1
        found = parse_cubin_head(data[at : at + CUBIN_HEAD])
        if found is not None:
            self._cubins[found] += 1

    def _stop(self, anomaly: str) -> None:
        self._note(anomaly)
        self._stopped = True
        self._carry = b""

    def _note(self, anomaly: str) -> None:
        if len(self._anomalies) < 64:
            self._anomalies.setdefault(anomaly)


def _next(data: bytes, mark: bytes, start: int, horizon: int) -> int:
    """Return where a mark begins next, ``horizon`` if it does not before that."""
    found = data.find(mark, start, horizon + len(mark) - 1)
    return horizon if found < 0 else found


def _merged(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the same parts, ascending, with those that overlap as one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _range_end(ranges: Sequence[tuple[int, int]], place: int) -> int | None:
    """Return the end of the part a place is in; they are ascending and do not overlap."""
    at = bisect_right(ranges, place, key=itemgetter(0)) - 1
    return ranges[at][1] if at >= 0 and place < ranges[at][1] else None


def _fits(data: bytes, at: int, body: int, room: int) -> bool:
    """Whether the first entry of a container can be one, in a body of which ``room`` is there."""
    if len(data) - at < _ENTRY_LEAST:
        # The file ends inside it: a container that breaks off, if its header is true.
        return room > 0
    kind, version, header, payload, *_ = _ENTRY.unpack_from(data, at)
    known = kind in _KINDS, version == _ENTRY_VERSION
    if not _ENTRY_LEAST <= header <= _ENTRY_MOST or header + payload > body:
        return False
    # Of a library that is cut, the entry may go on where nothing is left.
    return any(known) if header + payload <= room else all(known)
