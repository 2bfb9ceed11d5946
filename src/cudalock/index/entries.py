"""Everything one page says about one file: its claims gathered, and the listed file they make.

A page may list an address again, with another hash or with words it left out before. Claims are kept
in the order listed, and which of them count is decided when all were read. What a link says is
found in `simple.py`.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from cudalock.wheel.filename import WheelFile
from cudalock.wheel.listing import HashAside, ListedFile
from cudalock.wheel.tag_filter import TagFilter
from cudalock.wheel.variants import VariantsLink

__all__ = ["METADATA_HASH", "Entry", "PageContext", "one_sidecar"]

METADATA_HASH = "it is the hash of its METADATA"
"""Why a claim is set aside: pages have given the hash of METADATA for the wheel's (pytorch/vision#9243)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContext:
    """What the asker knows about a page and the page does not say; copied into each `ListedFile`.

    With a ``fit``, wheels whose tags it turns away are named and not read any further.
    """

    index: str
    index_url: str
    folder: str | None = None
    nightly: bool = False
    fit: TagFilter | None = None


@dataclass(slots=True, kw_only=True)
class Entry:
    """One address while its page is read. ``sha256`` and ``sidecars`` are distinct, as listed."""

    wheel: WheelFile
    url: str
    sha256: dict[str, None] = field(default_factory=dict)
    sidecars: dict[str | bool, None] = field(default_factory=dict)
    size: int | None = None
    requires_python: str | None = None
    yanked: str | bool = False
    upload_time: str | None = None

    def add_claims(self, digest: str, sidecar: str | bool | None) -> None:
        """Add what one listing claims: a hash in lower case (or ""), and a metadata sidecar."""
        if digest:
            self.sha256[digest] = None
        if sidecar is not None:
            self.sidecars[sidecar] = None

    def listed(self, context: PageContext, variants: VariantsLink | None = None) -> ListedFile:
        """Return the file. No wheel has the hash of a member of its own: such a claim is no claim."""
        return ListedFile(
            wheel=self.wheel,
            url=self.url,
            index=context.index,
            index_url=context.index_url,
            folder=context.folder,
            sha256=tuple(digest for digest in self.sha256 if digest not in self.sidecars),
            aside=tuple(HashAside(d, METADATA_HASH) for d in self.sha256 if d in self.sidecars),
            size=self.size,
            requires_python=self.requires_python,
            yanked=self.yanked,
            core_metadata=one_sidecar(self.sidecars),
            upload_time=self.upload_time,
            nightly=context.nightly,
            variants_link=variants,
        )


def one_sidecar(claims: Collection[str | bool]) -> str | bool | None:
    """Return what several listings say of one sidecar together: its hash, whether it is there.

    Of two hashes neither is to be relied on: there is one sidecar, so one of them is wrong.
    """
    hashes = {claim for claim in claims if isinstance(claim, str)}
    if len(hashes) == 1:
        return hashes.pop()
    if hashes or True in claims:
        return True
    return False if claims else None
