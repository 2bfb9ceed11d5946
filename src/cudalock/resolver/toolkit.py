"""Which CUDA release a toolkit part belongs to.

"A part's release is that of the toolkit whose METADATA pins it": the toolkit metapackage of each
X.Y lists the parts it consists of, and the numbers of several parts are not CUDA versions (a
`cccl` numbered 13.3 is a part of CUDA 13.5). Where no toolkit pins a part, its own number decides
if knowledge says that it counts by CUDA, and otherwise nothing is known.
"""

from concurrent.futures import Executor

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from cudalock.cuda import CudaVersion
from cudalock.host import Target
from cudalock.memo import Memo
from cudalock.resolver.source import Source
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.listing import ListedFile

__all__ = ["ToolkitReleases"]

_Pins = dict[str, list[tuple[SpecifierSet, CudaVersion, str]]]


class ToolkitReleases:
    """The toolkits of the target's major, read once when the first part is met.

    Cost: one listing, and the metadata of each toolkit release of the major (about 15 files of a
    few kilobytes, cached for ever).
    """

    def __init__(
        self, *, source: Source, knowledge: Knowledge, target: Target, executor: Executor | None
    ) -> None:
        self._source = source
        self._knowledge = knowledge
        self._target = target
        self._executor = executor
        self._pins = Memo[str, _Pins]()

    def releases_of(self, project: str, version: Version) -> tuple[list[CudaVersion], str] | None:
        """Return the releases a version belongs to and what says so; None when nothing does."""
        if self._target.cuda is None:
            return None
        number = CudaVersion(major=version.major, minor=version.minor)
        if self._knowledge.toolkit(project) is not None:
            return [number], "its version"
        part = self._knowledge.toolkit_part(project)
        if part is None:
            return None
        library = self._knowledge.runtime_library(project, version)
        if library is not None and library.major != self._target.cuda.major:
            # Another major's part: the runtime it belongs to says all there is to say.
            return None
        pins = self._pins.get("pins", self._read_pins).get(project, ())
        found = [(release, who) for spec, release, who in pins if spec.contains(version)]
        if found:
            return [release for release, _ in found], found[-1][1]
        if part.own_number:
            return None
        return [number], "its version"

    def _read_pins(self) -> _Pins:
        pins: _Pins = {}
        for toolkit in self._knowledge.toolkits:
            listing = self._source.listing(toolkit.project, admitted=SpecifierSet(), nightly=False)
            files = self._one_a_release(listing.files)
            if self._executor is not None:
                # Started ahead and not waited for: this may itself be a task of the executor. An
                # error comes again, and counts, when the answer is asked for below.
                for file in files:
                    self._executor.submit(self._source.metadata, file)
            for file in files:
                metadata = self._source.metadata(file)
                version = file.wheel.version
                release = CudaVersion(major=version.major, minor=version.minor)
                for requirement in metadata.requires_dist if metadata is not None else ():
                    if not _pins(requirement.specifier):
                        continue
                    entry = (requirement.specifier, release, f"{toolkit.project} {version}")
                    pins.setdefault(canonicalize_name(requirement.name), []).append(entry)
        return pins

    def _one_a_release(self, files: tuple[ListedFile, ...]) -> list[ListedFile]:
        """Return one file a version of the target's major, oldest first."""
        found: dict[Version, ListedFile] = {}
        major = self._target.cuda.major if self._target.cuda is not None else -1
        for file in sorted(files, key=lambda f: f.filename):
            version = file.wheel.version
            if version.major == major and file.yanked is False:
                found.setdefault(version, file)
        return [found[version] for version in sorted(found)]


def _pins(specifier: SpecifierSet) -> bool:
    """Whether a toolkit's requirement pins a part: a range (``>=13.0.88,<14``) says no release."""
    return any(clause.operator == "==" for clause in specifier)
