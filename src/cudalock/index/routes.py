"""What routing speaks of: indexes the person added, requests for pages, and routes; no network.

``--index [NAME=]URL`` is parsed here, and ``{cuda}`` is turned into the CUDA releases a policy
allows, generated as values, so that a release of next year needs no code.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import quote, urlsplit

from packaging.version import Version

from cudalock.cuda import CudaVersion, parse_cuda_version
from cudalock.errors import UsageError
from cudalock.index.address import shown_url
from cudalock.index.templates import fill_partner, names_partner, unknown_placeholder
from cudalock.wheel.listing import DEFAULT_INDEX
from cudalock.wheel.names import format_quoted

__all__ = [
    "ABSENT_STATUSES",
    "DEFAULT_INDEX",
    "AddedIndex",
    "FolderRequest",
    "Route",
    "RoutingOptions",
    "cuda_folders",
    "newest_known_minor",
    "parse_index_option",
]

ABSENT_STATUSES = frozenset({404})
_NAMED_URL = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,63})=(.*)\Z", re.DOTALL)
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedIndex:
    """An index the person added: ``--index [NAME=]URL`` or a `[[tool.uv.index]]` entry.

    An ``explicit`` one serves only the projects that a source names. Without a ``url``, the name
    is that of a definition which shall serve what it builds beside the projects it is the source of.
    """

    url: str
    name: str | None = None
    explicit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingOptions:
    """What the person said about indexes. ``sources`` maps a normalised project to an index."""

    default_url: str
    added: tuple[AddedIndex, ...] = ()
    excluded: frozenset[str] = frozenset()
    only_default: bool = False
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderRequest:
    """One project page to ask for.

    ``index_url`` is the address a lock records. ``folder`` is the variant folder (``cu130``, None
    where the address has none). ``absent`` holds the HTTP statuses that mean "absent" there.
    A ``flat`` page lists other projects too. A ``pinned`` one is asked only for an exact pin that
    no other folder serves. While ``versioned`` or ``partnered``, both addresses hold a placeholder
    and cannot be asked yet.
    """

    url: str
    index_url: str
    folder: str | None = None
    absent: frozenset[int] = ABSENT_STATUSES
    nightly: bool = False
    flat: bool = False
    pinned: bool = False

    @property
    def versioned(self) -> bool:
        """Whether ``{version}`` is still to be filled in."""
        return "{version}" in self.url

    @property
    def partnered(self) -> bool:
        """Whether a release of the partner is still to be filled in."""
        return names_partner(self.url)

    @property
    def shown_folder(self) -> str | None:
        """The folder as a person tells it from its stable sibling: ``nightly/cu130``."""
        if not self.nightly:
            return self.folder
        return "nightly" if self.folder is None else f"nightly/{self.folder}"

    def at_version(self, version: Version) -> "FolderRequest":
        """Return the request for one release (its public version)."""
        text = quote(version.public, safe="!")
        return replace(
            self,
            url=self.url.replace("{version}", text),
            index_url=self.index_url.replace("{version}", text),
        )

    def at_partner(self, release: Version) -> "FolderRequest":
        """Return the request for what was built against one release of the partner."""
        return replace(
            self,
            url=fill_partner(self.url, release),
            index_url=fill_partner(self.index_url, release),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where a project is asked for: every folder of one index, in order of preference.

    ``otherwise`` is the route to take when all ``folders`` answer "absent"; None means that the
    project comes from this index or not at all. ``recordable`` is false where the person gave the
    address: a recording answers only for its publisher's own. ``partner`` is the project whose
    releases fill what is ``partnered``. ``reason`` is for a person.
    """

    project: str
    index: str
    folders: tuple[FolderRequest, ...]
    reason: str
    otherwise: "Route | None" = None
    recordable: bool = False
    partner: str | None = None

    @property
    def chain(self) -> tuple["Route", ...]:
        """This route and those after it, in the order they are tried."""
        steps = [self]
        while (step := steps[-1].otherwise) is not None:
            steps.append(step)
        return tuple(steps)

    @property
    def versioned(self) -> bool:
        """Whether a folder needs a release of the default index filled in."""
        return any(folder.versioned for folder in self.folders)


def parse_index_option(text: str) -> AddedIndex:
    """Parse ``--index [NAME=]URL``; raise `UsageError` for what is not an http(s) address.

    A bare ``NAME`` asks a definition to serve everything it builds. Plain http is accepted here,
    since the person's own setting says it.
    """
    if _NAME.match(text):
        return AddedIndex(url="", name=text)
    named = _NAMED_URL.match(text)
    if named is not None and "/" not in named[1] and ":" not in named[1]:
        return AddedIndex(name=named[1], url=_checked_url(named[2]))
    return AddedIndex(url=_checked_url(text))


def _checked_url(url: str) -> str:
    unknown = unknown_placeholder(url)
    if unknown is not None:
        raise UsageError(
            "expected only the placeholders {cuda}, {version} and {partner}, "
            f"found {format_quoted(unknown)}",
            where=f"--index {shown_url(url)}",
        )
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        # A project's name is appended to the path, which a query or a fragment would swallow.
        usable = usable and not parts.query and not parts.fragment and "{" not in parts.netloc
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or set(" \\") & set(url):
        raise UsageError(
            "expected [NAME=]URL with an http or https address of a folder",
            where=f"--index {shown_url(url)}",
        )
    return url


def cuda_folders(
    cuda: CudaVersion, *, compat: Literal["strict", "minor"], newest_minor: int | None
) -> tuple[CudaVersion, ...]:
    """Return the CUDA releases whose folders may serve a target, newest first.

    Under ``strict`` from X.Y down to X.0; under ``minor`` from the newest minor of that major that
    anything has shown (``newest_minor``), or from X.Y where nothing newer was.
    """
    top = cuda.minor if compat == "strict" else max(cuda.minor, newest_minor or 0)
    return tuple(CudaVersion(cuda.major, minor) for minor in range(top, -1, -1))


def newest_known_minor(major: int, folders: Iterable[str]) -> int | None:
    """Return the newest minor of ``major`` among folder names such as ``cu130``; others pass."""
    minors = []
    for folder in folders:
        try:
            version = parse_cuda_version(folder)
        except UsageError:
            continue
        if version.major == major:
            minors.append(version.minor)
    return max(minors, default=None)
