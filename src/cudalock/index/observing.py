"""Bytes held against what was claimed of them: which hash a file has, and which claims are stale."""

from collections.abc import Iterable

from cudalock.index.address import shown_url
from cudalock.index.failures import HashMismatchError
from cudalock.wheel.file_hash import FileHash, HashedBytes
from cudalock.wheel.listing import HashAside, ListedFile

__all__ = ["observe_hash"]


def observe_hash(
    file: ListedFile,
    found: HashedBytes,
    *,
    asked: frozenset[str] = frozenset(),
    others: Iterable[ListedFile] = (),
) -> FileHash:
    """Return the hash of a file whose bytes were read whole.

    ``asked`` are the hashes that the person gives for its project; they settle what index claims
    do not. ``others`` are further files of the project, to name the one whose bytes these are
    claimed to be. Raises `HashMismatchError` for bytes that nobody claims.
    """
    claims = file.sha256
    if asked:
        if found.sha256 not in asked:
            raise _mismatch(file, found, sorted(asked), "the requirement asks for", others)
    elif claims and found.sha256 not in claims:
        raise _mismatch(file, found, claims, f"{file.index} claims", others)
    elif not claims and file.size is not None and file.size != found.size:
        # The size is then all that is claimed of the bytes.
        raise HashMismatchError(
            f"expected {file.filename} to have {file.size} bytes, as {file.index} says, found"
            f" {found.size}: nothing is locked",
            where=shown_url(file.url),
            found=found.sha256,
            claims=(),
        )
    stale = tuple(
        HashAside(claim, f"{file.index} claims it and the bytes do not have it")
        for claim in claims
        if claim != found.sha256
    )
    return FileHash(
        sha256=found.sha256,
        state="observed" if asked or claims else "computed",
        size=found.size,
        aside=(*file.aside, *stale),
    )


def _mismatch(
    file: ListedFile,
    found: HashedBytes,
    claims: Iterable[str],
    who: str,
    others: Iterable[ListedFile],
) -> HashMismatchError:
    claims = tuple(claims)
    twins = [f for f in others if f.url != file.url and found.sha256 in f.sha256]
    twin = f", which {twins[0].index} claims for {twins[0].filename}" if twins else ""
    listed = ", ".join(claims)
    return HashMismatchError(
        f"expected {file.filename} to have the sha256 that {who} ({listed}), found"
        f" {found.sha256}{twin}: nothing is locked; a requirement with"
        f" `--hash=sha256:{found.sha256}` would take these bytes",
        where=shown_url(file.url),
        found=found.sha256,
        claims=claims,
    )
