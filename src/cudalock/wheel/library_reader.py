"""Reads the libraries of a wheel as deep as is asked, and no further."""

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import replace

from cudalock.cuda import ComputeCapability, CudaVersion
from cudalock.wheel.elf import ElfReader
from cudalock.wheel.fatbin import DeviceCode, FatbinScanner
from cudalock.wheel.library import Library, LibraryKind, Seen
from cudalock.wheel.library_names import graft_of
from cudalock.wheel.reading import Depth, ReadingLimits
from cudalock.wheel.serving import Piece, serves
from cudalock.wheel.zip_directory import ZipMember
from cudalock.wheel.zip_member import MemberReader

__all__ = ["LibraryReader"]

# Decisions are made at the same places of a file, however its bytes arrive.
_BLOCK = 64 * 1024
_FATBIN = b"\x50\xed\x55\xba"


class LibraryReader:
    """Reads libraries of one wheel, which share the budget for those whose names were moved."""

    def __init__(
        self,
        members: MemberReader,
        *,
        depth: Depth,
        targets: Sequence[ComputeCapability],
        driver_cuda: CudaVersion | None,
        limits: ReadingLimits,
    ) -> None:
        self._members = members
        self._depth = depth
        self._targets = tuple(targets)
        self._driver_cuda = driver_cuda
        self._limits = limits
        self._moved = limits.moved

    def read(self, member: ZipMember) -> Library:
        """Read one library; raises `WheelError` when its bytes are not those the directory names."""
        scan = _Scan(member.size)
        seen: Seen = "nothing"
        if self._depth != "names":
            with closing(_blocks(self._members.chunks(member))) as blocks:
                seen = self._feed(member, scan, blocks)
            elf = scan.rewound() if seen == "whole" else None
            if elf is not None:
                with closing(_blocks(self._members.chunks(member))) as blocks:
                    while not elf.whole and (block := next(blocks, None)) is not None:
                        elf.feed(block)
        return scan.result(member, seen)

    def _feed(self, member: ZipMember, scan: "_Scan", blocks: Generator[bytes, None, None]) -> Seen:
        # Whether the head may still tell the names, and whether the file is read to its end for them.
        names_sought, on = True, False
        for block in blocks:
            scan.feed(block)
            # The end of the stream is asked for all the same: there the checksum is compared.
            if scan.fed == member.size:
                continue
            if scan.hopeless:
                return "part"
            if self._depth == "full":
                continue
            if names_sought and (scan.head_done or scan.fed >= self._limits.head):
                names_sought = False
                on = not scan.needs_known and member.packed <= self._moved
                if on:
                    # The head does not tell the names; the end of a small library does.
                    self._moved -= member.packed
                elif self._depth == "needs":
                    return "head"
            if not names_sought and not on and self._served(scan):
                return "part"
        return "whole"

    def _served(self, scan: "_Scan") -> bool:
        """Whether code for every target was seen."""
        pieces = scan.pieces()
        return bool(self._targets) and all(
            any(serves(piece, target, driver_cuda=self._driver_cuda) == "yes" for piece in pieces)
            for target in self._targets
        )


class _Scan:
    """The readers that the bytes of one file are fed to, by what its first bytes are."""

    def __init__(self, size: int) -> None:
        self.fed = 0
        self._size = size
        self._kind: LibraryKind = "unread"
        self._elf: ElfReader | None = None
        self._scanner: FatbinScanner | None = None
        self._waiting: list[bytes] = []

    def feed(self, block: bytes) -> None:
        if not self.fed:
            self._begin(block[:16])
        self.fed += len(block)
        if self._elf is not None:
            self._elf.feed(block)
            if self._scanner is None:
                self._waiting.append(block)
                self._scan_segments(self._elf)
                return
        if self._scanner is not None:
            self._scanner.feed(block)

    def rewound(self) -> ElfReader | None:
        """Return the reader that needs the file a second time, from its beginning; None if none does."""
        if self._elf is None or not self._elf.missing:
            return None
        self._elf.rewind()
        return self._elf

    @property
    def hopeless(self) -> bool:
        """Whether nothing in the rest of the file will be understood."""
        if self._elf is not None:
            return self._elf.whole and self._elf.segments is None
        return self._scanner is None

    @property
    def head_done(self) -> bool:
        return self._elf is None or self._elf.head_done

    @property
    def needs_known(self) -> bool:
        return self._elf is None or self._elf.finish().needed is not None

    def pieces(self) -> frozenset[Piece]:
        """Return the pieces of device code seen so far."""
        if self._scanner is None:
            return frozenset()
        return self._scanner.images | self._scanner.cubins

    def result(self, member: ZipMember, seen: Seen) -> Library:
        code = (
            DeviceCode() if self._scanner is None else self._scanner.finish(whole=seen == "whole")
        )
        library = Library(
            path=member.name,
            crc32=member.crc32,
            size=member.size,
            packed=member.packed,
            kind="other" if seen == "whole" and not self.fed else self._kind,
            seen=seen,
            code=code,
        )
        if self._elf is None:
            return library
        facts = self._elf.finish()
        kinds: dict[str, LibraryKind] = {"library": "elf", "foreign": "foreign"}
        own = member.name.rpartition("/")[2]
        # No library needs itself: what stands in its string table beside its needs is its own name.
        needed = facts.needed
        if needed is not None and not facts.needed_exact:
            needed -= {own, graft_of(own) or own}
        return replace(
            library,
            kind=kinds.get(facts.kind, "damaged"),
            machine=facts.machine,
            needed=needed,
            needed_exact=facts.needed_exact,
            soname=facts.soname,
            torch=facts.torch,
            anomalies=facts.anomalies,
        )

    def _begin(self, head: bytes) -> None:
        if head[:4] == b"\x7fELF":
            self._elf = ElfReader(size=self._size)
        elif head[:4] == _FATBIN:
            self._kind = "fatbin"
            self._scanner = FatbinScanner([(0, self._size)])
        else:
            self._kind = "windows" if head[:2] == b"MZ" else "other"

    def _scan_segments(self, elf: ElfReader) -> None:
        """Begin to look for device code once it is known which parts are mapped read-only."""
        if elf.segments is None:
            return
        self._scanner = FatbinScanner(
            [(part.start, part.end) for part in elf.segments if not part.writable],
            [(part.start, part.end) for part in elf.segments],
        )
        for block in self._waiting:
            self._scanner.feed(block)
        self._waiting.clear()


def _blocks(chunks: Generator[bytes, None, None]) -> Generator[bytes, None, None]:
    """Cut a stream into blocks of 64 KiB, and a shorter last one."""
    rest = b""
    with closing(chunks):
        for chunk in chunks:
            data = rest + chunk
            whole = len(data) // _BLOCK * _BLOCK
            for at in range(0, whole, _BLOCK):
                yield data[at : at + _BLOCK]
            rest = data[whole:]
    if rest:
        yield rest
