"""One listing of what several pages list: the same file once, different files apart.

A file is its address. Publishers also serve one path from sibling hosts (``download.`` and
``download-r2.`` of one domain), and locks hold both: within one index such addresses are one file,
unless what is claimed of them differs. Two builds of one name, by hash or size, always stay two files,
each with its own address and its own hash.
"""

from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import SplitResult, urlsplit

from cudalock.index.entries import METADATA_HASH, one_sidecar
from cudalock.wheel.listing import HashAside, ListedFile

__all__ = ["unite"]

# A path is compared with that many others of its kind: publishers have two or three hosts.
_HOSTS_LIMIT = 8


def unite(files: Iterable[ListedFile]) -> tuple[ListedFile, ...]:
    """Merge listings, in the order in which their files first came. Linear in their number.

    A file that lies in the folders of two CUDA releases is not of either because of the folder.
    """
    by_url: dict[str, ListedFile] = {}
    for file in files:
        first = by_url.get(file.url)
        by_url[file.url] = file if first is None else _together(first, file)
    # Nearly every listing is of one host, which has one file a path.
    if len({url.split("/", 3)[2] for url in by_url}) < 2:
        return tuple(by_url.values())
    places: dict[tuple[str, str, str], list[str]] = {}
    for url, file in list(by_url.items()):
        parts = urlsplit(url)
        seen = places.setdefault((file.index, parts.path, parts.query), [])
        same = next((u for u in seen[:_HOSTS_LIMIT] if _one_file(by_url[u], file, parts)), None)
        if same is None:
            seen.append(url)
        else:
            by_url[same] = _mirrored(by_url[same], file)
            del by_url[url]
    return tuple(by_url.values())


def _together(first: ListedFile, second: ListedFile) -> ListedFile:
    """Merge two listings of one file: every claim of both, the first's words where they differ."""
    sidecars = [c for c in (first.core_metadata, second.core_metadata) if c is not None]
    claims = dict.fromkeys((*first.sha256, *second.sha256))
    confused = [HashAside(claim, METADATA_HASH) for claim in claims if claim in sidecars]
    aside = tuple(dict.fromkeys((*first.aside, *second.aside, *confused)))
    not_counted = {claim.sha256 for claim in aside}
    return replace(
        first,
        folder=first.folder if first.folder == second.folder else None,
        sha256=tuple(claim for claim in claims if claim not in not_counted),
        aside=aside,
        size=second.size if first.size is None else first.size,
        requires_python=first.requires_python or second.requires_python,
        yanked=first.yanked or second.yanked,
        core_metadata=one_sidecar(sidecars),
        upload_time=first.upload_time or second.upload_time,
        nightly=first.nightly and second.nightly,
        metadata=second.metadata if first.metadata is None else first.metadata,
    )


def _one_file(first: ListedFile, second: ListedFile, parts: SplitResult) -> bool:
    """Whether two addresses of one path are one file: sibling hosts, and no claim against it."""
    if first.sha256 and second.sha256 and not set(first.sha256) & set(second.sha256):
        return False
    if None not in (first.size, second.size) and first.size != second.size:
        return False
    sidecars = {c for c in (first.core_metadata, second.core_metadata) if isinstance(c, str)}
    return len(sidecars) < 2 and _siblings(urlsplit(first.url), parts)


def _siblings(one: SplitResult, other: SplitResult) -> bool:
    """Whether two hosts stand beside each other in one domain (``a.example.org``, ``b.example.org``)."""
    domains = {(part.hostname or "").partition(".")[2] for part in (one, other)}
    domain = domains.pop()
    same = not domains and (one.scheme, one.port) == (other.scheme, other.port)
    # A domain of one label is a registry's (`org`); the last label of an address is a number.
    return same and "." in domain and not domain.rpartition(".")[2].isdigit()


def _mirrored(first: ListedFile, second: ListedFile) -> ListedFile:
    """Keep the address whose own listing gives a hash, else the first; the other is its mirror."""
    kept, other = (second, first) if second.sha256 and not first.sha256 else (first, second)
    together = _together(kept, other)
    return replace(together, mirrors=(*kept.mirrors, *other.mirrors, other.url))
