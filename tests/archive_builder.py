"""Zip archives for tests, sound ones and ones that lie."""

import io
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterable

__all__ = ["CENTRAL", "END", "LOCAL", "edit", "make_zip", "make_zip64"]

CENTRAL, LOCAL, END = b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"


def make_zip(
    members: Iterable[tuple[str, bytes]],
    *,
    method: int = zipfile.ZIP_DEFLATED,
    comment: bytes = b"",
) -> bytes:
    """Return an archive; a name may stand in it twice."""
    target = io.BytesIO()
    with warnings.catch_warnings():
        # zipfile says that a name stands twice, and writes it.
        warnings.simplefilter("ignore", UserWarning)
        with zipfile.ZipFile(target, "w", method) as archive:
            for name, content in members:
                archive.writestr(zipfile.ZipInfo(name), content, method)
            archive.comment = comment
    return target.getvalue()


def edit(
    data: bytes, signature: bytes, offset: int, form: str, value: int, *, which: int = 0
) -> bytes:
    """Write a number at an offset from the n-th record with a signature."""
    at = -1
    for _ in range(which + 1):
        at = data.index(signature, at + 1)
    changed = bytearray(data)
    struct.pack_into(form, changed, at + offset, value)
    return bytes(changed)


def make_zip64(member: str, content: bytes) -> bytes:
    """Return an archive of one member whose every number is in its zip64 form."""
    name = member.encode()
    packer = zlib.compressobj(wbits=-15)
    packed = packer.compress(content) + packer.flush()
    crc = zlib.crc32(content)
    sizes = struct.pack("<QQ", len(content), len(packed))
    local = struct.pack(
        "<4sHHHHHIIIHH", LOCAL, 45, 0, 8, 0, 0, crc, 0xFFFFFFFF, 0xFFFFFFFF, len(name), 20
    )
    local += name + struct.pack("<HH", 1, 16) + sizes + packed
    extra = struct.pack("<HHI", 0x7777, 4, 0) + struct.pack("<HH", 1, 24) + sizes + bytes(8)
    central = struct.pack(
        "<4sHHHHHHIIIHHHHHII",
        *(CENTRAL, 45, 45, 0, 8, 0, 0, crc, 0xFFFFFFFF, 0xFFFFFFFF, len(name), len(extra)),
        *(0, 0, 0, 0, 0xFFFFFFFF),
    )
    central += name + extra
    end64 = struct.pack(
        "<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, len(central), len(local)
    )
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, len(local) + len(central), 1)
    end = struct.pack("<4sHHHHIIH", END, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return local + central + end64 + locator + end
