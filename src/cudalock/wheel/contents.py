"""What a wheel's bytes tell, library by library, read no further than is asked for.

Four depths, by cost: ``names``, the zip directory alone; ``needs``, the heads of the shared libraries
(what they load, what they want of torch); ``presence``, each library until code for every target was
seen in it; ``full``, every byte. Only what was read whole may be said to lack something. Nothing is
written, run or imported; every length in the file is bounded where it is read.
"""

from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from cudalock.cuda import Architecture, ComputeCapability, CudaVersion
from cudalock.wheel.images import (
    CUBIN_HEAD,
    BareCubin,
    Image,
    architecture_in_name,
    architectures_in_notes,
    parse_cubin_head,
    parse_ptx_head,
)
from cudalock.wheel.library import Library
from cudalock.wheel.library_names import graft_of, is_library_name, loose_kind
from cudalock.wheel.library_reader import LibraryReader
from cudalock.wheel.owned_paths import OwnedPath, owned_paths
from cudalock.wheel.range_source import CountingSource, RangeSource
from cudalock.wheel.reading import Depth, ReadingLimits
from cudalock.wheel.zip_directory import ZipMember, read_directory
from cudalock.wheel.zip_member import MemberReader

__all__ = ["LooseCode", "WheelContents", "external_needs", "inspect_wheel"]

_PTX_HEAD = 4096
# A note of an architecture is shorter.
_NOTE_LENGTH = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class LooseCode:
    """A ``.cubin`` or ``.ptx`` file, or ``count`` of them that tell the same, the first by its path.

    ``code`` is None when nothing that was read tells what it is for.
    """

    path: str
    crc32: int
    size: int
    code: BareCubin | Image | None
    read: bool
    anomaly: str = ""
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelContents:
    """What was read of a wheel of ``size`` bytes, in the order of paths.

    ``complete``: every library and every file of device code was read as far as it tells anything.
    ``bytes_read`` counts what the source gave. ``paths`` are those it would install.
    """

    size: int
    depth: Depth
    complete: bool
    bytes_read: int
    libraries: tuple[Library, ...]
    loose: tuple[LooseCode, ...]
    paths: tuple[OwnedPath, ...]
    anomalies: tuple[str, ...] = ()

    @property
    def device_code(self) -> tuple[str, ...]:
        """What there is of device code, as text, machine code first; by number: ``sm_90a``, ``compute_120@9.0``."""
        images = {image for library in self.libraries for image, _ in library.code.images}
        images |= {code.code for code in self.loose if isinstance(code.code, Image)}
        bare = {code.code for code in self.loose if isinstance(code.code, BareCubin)}
        told = {str(image): (image.kind == "ptx", image.architecture.number) for image in images}
        told |= {str(cubin): (False, cubin.number) for cubin in bare}
        return tuple(sorted(told, key=lambda text: (told[text], text)))

    @property
    def provided(self) -> frozenset[str]:
        """The names by which libraries in this wheel can be found: file names and sonames."""
        return _provided(self.libraries)


def inspect_wheel(
    source: RangeSource,
    *,
    depth: Depth,
    targets: Sequence[ComputeCapability] = (),
    driver_cuda: CudaVersion | None = None,
    limits: ReadingLimits | None = None,
    only: Collection[str] = (),
) -> WheelContents:
    """Read a wheel as deep as asked; with ``only``, of its libraries those of these file names alone.

    ``targets`` end the reading of a library at depth ``presence``; without any, all of it is read.
    ``driver_cuda`` tells which PTX serves a target: without it, PTX serves none. Cost: one or two reads
    for the directory, then one stream for each library, or for each run of neighbours at ``full``.
    Raises `WheelError` for an archive that is not sound or a member that is not what the directory
    says, and what the source raises.
    """
    counted = CountingSource(source)
    limits = limits or ReadingLimits()
    directory = read_directory(counted)
    paths, unsafe = owned_paths(directory.members)
    files = [member for member in directory.members if not member.name.endswith("/")]
    native = [
        member
        for member in files
        if is_library_name(member.name) and (not only or member.name.rpartition("/")[2] in only)
    ]
    loose = [member for member in files if loose_kind(member.name) is not None]
    together = (*native, *loose) if depth == "full" else ()
    members = MemberReader(counted, directory, together)
    try:
        reader = LibraryReader(
            members, depth=depth, targets=targets, driver_cuda=driver_cuda, limits=limits
        )
        libraries, codes = _read_all(
            members, reader, native=native, loose=loose, depth=depth, limits=limits
        )
    finally:
        members.close()
    return WheelContents(
        size=counted.size,
        depth=depth,
        complete=depth != "names"
        and not only
        and all(library.whole for library in libraries)
        and all(code.read for code in codes),
        bytes_read=counted.bytes_read,
        libraries=tuple(_with_grafts(libraries)),
        loose=tuple(sorted(codes, key=lambda code: code.path)),
        paths=paths,
        anomalies=unsafe,
    )


def external_needs(contents: WheelContents, library: Library) -> frozenset[str] | None:
    """Return what a library needs from outside its wheel; None when its needs are not known."""
    return None if library.needed is None else library.needed - contents.provided


def _read_all(
    members: MemberReader,
    reader: LibraryReader,
    *,
    native: Sequence[ZipMember],
    loose: Sequence[ZipMember],
    depth: Depth,
    limits: ReadingLimits,
) -> tuple[list[Library], list[LooseCode]]:
    """Read libraries and files of device code in the order they lie in the archive."""
    libraries: list[Library] = []
    codes: list[LooseCode] = []
    # Archives have no links: the same library under several names is read once.
    read: dict[tuple[int, int, int], Library] = {}
    kinds = {member.offset for member in loose}
    unnamed = limits.loose_heads
    for member in sorted((*native, *loose), key=lambda member: member.offset):
        if member.offset in kinds:
            named = architecture_in_name(member.name.rpartition("/")[2]) is not None
            wanted = depth == "full" or (depth == "presence" and not named)
            if depth == "needs" and not named and unnamed:
                unnamed -= 1
                wanted = True
            whole = depth == "full"
            codes.append(_read_loose(members, member, read_head=wanted, whole=whole))
            continue
        key = (member.crc32, member.size, member.packed)
        first = read.get(key)
        if first is None:
            library = reader.read(member)
            read[key] = library
        else:
            library = replace(first, path=member.name, copy_of=first.path)
        libraries.append(library)
    return sorted(libraries, key=lambda library: library.path), codes


def _read_loose(
    members: MemberReader, member: ZipMember, *, read_head: bool, whole: bool
) -> LooseCode:
    """Read a file that is one piece of device code, from its name and, where wanted, its head."""
    is_ptx = loose_kind(member.name) == "ptx"
    named = architecture_in_name(member.name.rpartition("/")[2])
    code: BareCubin | Image | None = None
    anomaly = ""
    if read_head:
        head = _head(members.chunks(member), _PTX_HEAD if is_ptx else CUBIN_HEAD)
        code = parse_ptx_head(head) if is_ptx else parse_cubin_head(head)
        if code is None:
            anomaly = "a file of device code that does not begin as one"
        elif isinstance(code, BareCubin) and named is not None:
            if code.number != named.number:
                anomaly = f"named for {named}, and written for sm_{code.number}"
            elif code.suffix is None:
                code = BareCubin(number=code.number, suffix=named.suffix)
        elif isinstance(code, BareCubin) and code.suffix is None and whole:
            noted = _note(members.chunks(member))
            if noted is not None and noted.number == code.number:
                code = BareCubin(number=code.number, suffix=noted.suffix)
    elif named is not None and not is_ptx:
        code = BareCubin(number=named.number, suffix=named.suffix)
    return LooseCode(
        path=member.name,
        crc32=member.crc32,
        size=member.size,
        code=code,
        read=read_head,
        anomaly=anomaly,
    )


def _head(chunks: Generator[bytes, None, None], count: int) -> bytes:
    head = b""
    with closing(chunks):
        for chunk in chunks:
            head += chunk[:count]
            if len(head) >= count:
                break
    return head[:count]


def _note(chunks: Generator[bytes, None, None]) -> Architecture | None:
    """Return the architecture that the notes of a cubin name, None when none or several do."""
    found: set[Architecture] = set()
    rest = b""
    with closing(chunks):
        for chunk in chunks:
            data = rest + chunk
            # One that begins near the end is read whole with the next piece.
            found |= architectures_in_notes(data)
            rest = data[-_NOTE_LENGTH:]
    return found.pop() if len(found) == 1 else None


def _with_grafts(libraries: Sequence[Library]) -> Iterator[Library]:
    """Name the libraries that a repair tool copied into this wheel under a name of their own."""
    present = _provided(libraries)
    for library in libraries:
        grafted = {
            (name, original)
            for name in (library.needed or frozenset()) & present
            if (original := graft_of(name)) is not None
        }
        yield replace(library, grafted=tuple(sorted(grafted)))


def _provided(libraries: Sequence[Library]) -> frozenset[str]:
    names = {library.path.rpartition("/")[2] for library in libraries}
    return frozenset(names | {lib.soname for lib in libraries if lib.soname is not None})
