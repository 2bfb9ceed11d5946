"""What should be said of the files of a set: rival hashes, rival builds, a project's standing.

Each warning has a stable code and gives hashes in full among its facts. Nothing here changes the set.
"""

from collections.abc import Iterable, Iterator

from cudalock.resolver.resolution import ResolvedPackage, SetWarning
from cudalock.wheel.evidence import label_of
from cudalock.wheel.listing import ListedFile

__all__ = ["file_warnings", "hash_warnings"]


def file_warnings(package: ResolvedPackage, statuses: Iterable[str]) -> Iterator[SetWarning]:
    """Say which other files could be taken for the chosen one, and what indices say of its project."""
    for status in statuses:
        yield SetWarning(code="project-status", message=status)
    chosen = package.file
    above = sorted({file.wheel.version for file in package.rivals if _sorts_above(package, file)})
    if above:
        labelled = " and ".join(
            f"{version} (CUDA {label_of(version.local).cuda_major})" for version in above
        )
        yield SetWarning(
            code="sorts-above",
            message=f"{package.project} {package.version} is CUDA {package.variant.runtime} and is "
            f"taken; {labelled} sorts above it by its label alone",
        )
    twins = [
        file
        for file in package.rivals
        if file.filename == chosen.filename and _other_bytes(chosen, file)
    ]
    if twins:
        places = ", ".join(dict.fromkeys(_place(f) for f in twins))
        yield SetWarning(
            code="same-name",
            message=f"{chosen.filename} of {_place(chosen)} is taken; "
            f"other bytes have this name on {places}",
            facts=tuple(_fact(f) for f in (chosen, *twins)),
        )
    builds = [
        file
        for file in package.rivals
        if file.filename != chosen.filename
        and file.index == chosen.index
        and _same_build(chosen, file)
        and set(chosen.sha256).isdisjoint(file.sha256)
    ]
    if builds:
        names = ", ".join(dict.fromkeys(f.filename for f in builds))
        yield SetWarning(
            code="two-builds",
            message=f"{chosen.filename} is taken (the tag nearest to the target first, then the "
            f"name) and not {names}, another build of the same release for the same tag",
            facts=tuple(_fact(f) for f in (chosen, *builds)),
        )


def hash_warnings(packages: Iterable[ResolvedPackage]) -> Iterator[SetWarning]:
    """Say which files have several hashes, or one that does not count, and what settled it."""
    for package in packages:
        file, settled = package.file, package.hash
        aside = file.aside if settled is None else settled.aside
        claims = (*file.sha256, *(a.sha256 for a in file.aside if a.sha256 not in file.sha256))
        if len(file.sha256) > 1:
            words = f"{file.index} lists {len(file.sha256)} hashes for {file.filename}: "
            words += ", ".join(_short(claim) for claim in file.sha256)
            if settled is None:
                words += "; only its bytes tell which holds"
            else:
                words += f"; {_short(settled.sha256)} is {settled.state}"
        elif aside:
            told = ", ".join(f"{_short(a.sha256)} ({a.why})" for a in aside)
            words = f"{file.index} lists for {file.filename} a hash that does not count: {told}"
        else:
            continue
        reasons = {a.sha256: a.why for a in aside}
        facts = tuple(f"sha256:{c} ({reasons.get(c, f'{file.index} claims it')})" for c in claims)
        yield SetWarning(code="hash-conflict", message=words, facts=facts)


def _sorts_above(package: ResolvedPackage, other: ListedFile) -> bool:
    """Whether a build of another CUDA major counts as newer by its label (PEP 440), and by no more."""
    chosen, label = package.file.wheel, label_of(other.wheel.version.local)
    return (
        chosen.version.local is None
        and None not in (label.cuda_major, package.variant.runtime)
        and label.cuda_major != package.variant.runtime
        and not chosen.tags.isdisjoint(other.wheel.tags)
    )


def _other_bytes(chosen: ListedFile, other: ListedFile) -> bool:
    """Whether what is claimed of another file cannot be true of the chosen one's bytes."""
    if chosen.sha256 and other.sha256:
        return not set(chosen.sha256) & set(other.sha256)
    return None not in (chosen.size, other.size) and chosen.size != other.size


def _same_build(chosen: ListedFile, other: ListedFile) -> bool:
    """Whether two wheels of one version and build share a tag: nothing says which is meant."""
    one, two = chosen.wheel, other.wheel
    same = (one.version, one.build) == (two.version, two.build)
    return same and not one.tags.isdisjoint(two.tags)


def _place(file: ListedFile) -> str:
    return f"{file.index} {file.folder}" if file.folder is not None else file.index


def _fact(file: ListedFile) -> str:
    hashes = ", ".join(f"sha256:{claim}" for claim in file.sha256) or "no hash"
    return f"{file.filename} of {_place(file)}: {hashes}"


def _short(digest: str) -> str:
    return f"{digest[:12]}…"
