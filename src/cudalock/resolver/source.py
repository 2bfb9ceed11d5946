"""What the resolver needs from an index, and a form of it that lives in memory."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from packaging.specifiers import SpecifierSet

from cudalock.errors import WheelError
from cudalock.wheel.filename import parse_wheel_file
from cudalock.wheel.listing import IndexAnswer, ListedFile, ProjectListing
from cudalock.wheel.metadata import CoreMetadata
from cudalock.wheel.variants import VariantsMetadata, VariantsUnread

__all__ = ["MemorySource", "Source"]


class Source(Protocol):
    """Answers for projects and wheels. Every method may block and must be safe to call in threads.

    An answer must not change within one resolve: the resolver may ask again and expects the same.
    """

    def listing(self, project: str, *, admitted: SpecifierSet, nightly: bool) -> ProjectListing:
        """Return the wheels of a project; ``nightly`` adds the publisher's nightly folders.

        ``admitted`` is what the user's requirements admit; only indices with one folder a version
        look at it. Raises `IndexAccessError` when an index gave no usable answer: that is never
        the same as a listing without files.
        """
        ...

    def metadata(self, file: ListedFile) -> CoreMetadata | None:
        """Return a wheel's metadata, or None when nothing can stand for it (the wheel is unknown).

        Raises `IndexAccessError` or `WheelError`.
        """
        ...

    def variants(self, files: Sequence[ListedFile]) -> list[VariantsMetadata | VariantsUnread]:
        """Return, for each file, what the variant labels of its version stand for.

        Raises `IndexAccessError`; what cannot be used is `VariantsUnread`, with the reason.
        """
        ...

    def direct(self, project: str, url: str, sha256: str | None) -> ListedFile:
        """Return the wheel behind a URL requirement; raises `WheelError` when its name lies."""
        ...


class MemorySource:
    """A `Source` over wheels given in memory: for tests, and for anyone who embeds the resolver."""

    def __init__(
        self,
        files: Iterable[ListedFile],
        *,
        metadata: Mapping[str, CoreMetadata] | None = None,
        listings: Iterable[ProjectListing] = (),
    ) -> None:
        """Take wheels, their metadata by file name (or in the files), and whole listings."""
        self._metadata = dict(metadata or {})
        self._listings = {listing.project: listing for listing in listings}
        grouped: dict[str, list[ListedFile]] = {}
        for file in files:
            grouped.setdefault(file.wheel.project, []).append(file)
        for project, members in grouped.items():
            answers = {
                (file.index, file.index_url, file.folder): IndexAnswer(
                    index=file.index, url=file.index_url, folder=file.folder, status="listed"
                )
                for file in members
            }
            self._listings.setdefault(
                project,
                ProjectListing(
                    project=project, files=tuple(members), answers=tuple(answers.values())
                ),
            )

    def listing(self, project: str, *, admitted: SpecifierSet, nightly: bool) -> ProjectListing:
        """Return the wheels given for the project; a project without any is absent."""
        del admitted
        listing = self._listings.get(project)
        if listing is None:
            answer = IndexAnswer(
                index="default", url=f"memory:{project}", folder=None, status="absent"
            )
            return ProjectListing(project=project, answers=(answer,))
        if nightly or not any(file.nightly for file in listing.files):
            return listing
        return ProjectListing(
            project=project,
            files=tuple(file for file in listing.files if not file.nightly),
            rejections=listing.rejections,
            answers=listing.answers,
            notes=listing.notes,
        )

    def metadata(self, file: ListedFile) -> CoreMetadata | None:
        """Return the metadata given with the file or by its name."""
        return file.metadata or self._metadata.get(file.filename)

    def variants(self, files: Sequence[ListedFile]) -> list[VariantsMetadata | VariantsUnread]:
        """Return the metadata given with each file."""
        unread = VariantsUnread(reason="no metadata of its variants was given")
        return [file.variants or unread for file in files]

    def direct(self, project: str, url: str, sha256: str | None) -> ListedFile:
        """Return the wheel given under this URL, or one made from the URL's last part."""
        for listing in self._listings.values():
            for file in listing.files:
                if file.url == url:
                    return file
        wheel = parse_wheel_file(url.rpartition("/")[2])
        if wheel.project != project:
            raise WheelError(f"expected a wheel of {project}, found {wheel.filename}", where=url)
        hashes = () if sha256 is None else (sha256,)
        return ListedFile(wheel=wheel, url=url, index="direct", index_url=url, sha256=hashes)
