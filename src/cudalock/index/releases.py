"""Which releases stand in a publisher's templates: those that a listing shows and a person admits.

A publisher that keeps a folder a release cannot be asked what it has; the releases come from
elsewhere. ``{version}`` takes those of the project itself on the default index, where some projects
have source distributions only, and ``{partner}`` those of the project a wheel is built against, as
that project's own listing shows them. Both are asked newest first and bounded; what was left out
for that makes the answer partial, never "absent". Nothing is fetched here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidSdistFilename, parse_sdist_filename
from packaging.version import Version

from cudalock.index.routes import FolderRequest
from cudalock.wheel.evidence import label_of
from cudalock.wheel.listing import FileRejection, ListedFile, ProjectListing

__all__ = [
    "PARTNERS_LIMIT",
    "RELEASES_LIMIT",
    "PartnerRequests",
    "admitted_releases",
    "listed_releases",
    "partner_requests",
    "unserved_pin",
]

# A default index can list any number of releases; a publisher that serves none of the newest 128
# is not asked for the rest, and the answer says that it is partial.
RELEASES_LIMIT = 128
# torch has about ten releases for one CUDA major and one Python; each costs one request a folder.
PARTNERS_LIMIT = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class PartnerRequests:
    """The folders to ask; ``cut`` says why they may not be all there are, "" when they are."""

    folders: tuple[FolderRequest, ...]
    cut: str = ""


def listed_releases(
    files: Iterable[ListedFile], rejections: Iterable[FileRejection] = ()
) -> frozenset[Version]:
    """Return the public versions of wheels, and of the source distributions among ``rejections``."""
    found = {Version(file.wheel.version.public) for file in files}
    for rejection in rejections:
        if rejection.kind == "not-a-wheel":
            try:
                _, version = parse_sdist_filename(rejection.filename)
            except InvalidSdistFilename:
                continue
            found.add(Version(version.public))
    return frozenset(found)


def admitted_releases(
    versions: Iterable[Version], admitted: SpecifierSet, *, prereleases: bool
) -> list[Version]:
    """Return the public versions a requirement admits, newest first.

    A pin on a local version (``==0.19.1+cu130``) admits the release it is a build of: the label
    tells the folder's files apart, not the releases.
    """
    public = SpecifierSet(
        ",".join(
            spec.operator + (spec.version.partition("+")[0])
            for spec in admitted
            if not (spec.operator == "!=" and "+" in spec.version)
        )
    )
    # Pre-releases are open for a project that is named for them or pinned to one by `==`.
    pinned = any(s.operator in ("==", "===") and not s.version.endswith(".*") for s in admitted)
    allowed = prereleases or pinned
    return sorted((v for v in versions if public.contains(v, prereleases=allowed)), reverse=True)


def unserved_pin(admitted: SpecifierSet, files: Iterable[ListedFile]) -> Version | None:
    """Return the version that ``admitted`` pins exactly when none of ``files`` is of it."""
    exact = [s.version for s in admitted if s.operator == "==" and not s.version.endswith(".*")]
    served = any(admitted.contains(file.wheel.version, prereleases=True) for file in files)
    return Version(exact[0]) if exact and not served else None


def partner_requests(
    folders: Sequence[FolderRequest], listing: ProjectListing, admitted: SpecifierSet
) -> PartnerRequests:
    """Return the requests for each release of the partner that ``listing`` shows for a folder.

    A folder of a CUDA release is asked only for the partner's releases that have a wheel of that
    release by its label. Where no wheel has a label, the folder it lies in tells, and a wheel that
    lies in none or in several counts for all. Newest release first, at most `PARTNERS_LIMIT`.
    """
    labelled: dict[Version, set[str | None]] = {}
    plain: dict[Version, set[str | None]] = {}
    for file in listing.files:
        label = label_of(file.wheel.version.local)
        release = Version(file.wheel.version.public)
        if label.cuda is not None:
            labelled.setdefault(release, set()).add(label.cuda.label)
        elif label.vendor in (None, "cuda") or label.vendor == file.folder:
            # A wheel for another vendor, or without CUDA, is no partner of one built for CUDA.
            plain.setdefault(release, set()).add(file.folder)
    # Beside labelled builds, a wheel without a label is an old one that every folder repeats.
    shown = labelled or plain
    early = any(file.nightly for file in listing.files)
    usable = [
        (release, [f for f in folders if {f.folder, None} & shown[release] or f.folder is None])
        for release in admitted_releases(shown, admitted, prereleases=early)
    ]
    usable = [(release, fitting) for release, fitting in usable if fitting]
    reasons = []
    if any(answer.status in ("partial", "unrecorded") for answer in listing.answers):
        reasons.append(f"{listing.project} was not seen whole")
    if len(usable) > PARTNERS_LIMIT:
        reasons.append(
            f"only the newest {PARTNERS_LIMIT} of {len(usable)} releases of {listing.project}"
            " were asked for"
        )
    return PartnerRequests(
        folders=tuple(
            folder.at_partner(release)
            for release, fitting in usable[:PARTNERS_LIMIT]
            for folder in fitting
        ),
        cut="; ".join(reasons),
    )
