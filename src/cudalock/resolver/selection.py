"""Which candidate is better: the order in which the search tries them.

By public version first (a local label never makes a release newer), what is not yanked before
what is, then by the nearest variant
(those of one version that have wheel variants as PEP 825 orders them),
by CUDA number and never by the text of a label: the newest release not above the target's, then
(under ``minor``) the lowest above it, then wheels that name only a major, then the unknown. Then
by wheel tag and build tag, and by file name; of files of one name the one listed in the nearest
folder, by number, then one whose hash is settled, then by address, so that the order is total.
"""

from packaging.version import InvalidVersion, Version

from cudalock.cuda import CudaVersion, LocalLabel, rank
from cudalock.host import Target
from cudalock.wheel.evidence import Variant
from cudalock.wheel.listing import ListedFile

__all__ = ["candidate_key", "release_distance", "variant_key", "virtual_key"]

_NO_VERSION = Version("0")


def candidate_key(
    file: ListedFile,
    variant: Variant,
    target: Target,
    tag_rank: int,
    place: tuple[object, ...] = (),
) -> tuple[object, ...]:
    """Return a sort key; larger is better. ``tag_rank`` counts from 0, the target's best tag.

    ``place`` is where the variants of its version stand, and its place among them.
    """
    wheel = file.wheel
    return (
        Version(wheel.version.public),
        file.yanked is False,
        place,
        variant_key(variant, target),
        -tag_rank,
        wheel.build or (-1, ""),
        wheel.version,
        file.filename,
        # Files of one name: a folder is weak evidence, and better than the text of an address.
        _folder_key(variant, target),
        len(file.sha256) == 1,
        file.url,
    )


def _folder_key(variant: Variant, target: Target) -> tuple[int, int, int]:
    folder = next((o for o in variant.evidence if o.kind == "path"), None)
    listed_in = Variant(
        state="unknown",
        cuda=None if folder is None else folder.cuda,
        runtime=None if folder is None else folder.major,
    )
    return variant_key(listed_in, target)


def variant_key(variant: Variant, target: Target) -> tuple[int, int, int]:
    """Rank a variant for a target; larger is better, equal only for equal CUDA."""
    label = LocalLabel(cuda=variant.cuda, cuda_major=variant.runtime)
    newest = target.cuda or CudaVersion(major=0, minor=0)
    first, second, third = rank(label, newest=newest)
    return (-first, -second, -third)


def release_distance(version: Version, release: CudaVersion) -> tuple[int, int, int]:
    """Rank a version that is a CUDA version against the set's release; smaller is nearer.

    The same X.Y first, then the newest below it, then the lowest above.
    """
    number = CudaVersion(major=version.major, minor=version.minor)
    if number == release:
        return (0, 0, 0)
    if number < release:
        return (1, -number.major, -number.minor)
    return (2, number.major, number.minor)


def virtual_key(value: str) -> tuple[Version, str]:
    """Order the values of a virtual package, newest last; those that are no versions by their text."""
    try:
        return (Version(value), value)
    except InvalidVersion:
        return (_NO_VERSION, value)
