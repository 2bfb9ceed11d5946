"""Reads `scenarios/*.toml`: a small world, what is asked of it, and what must come out.

Top-level keys: ``about`` (one sentence), ``source`` (the public thread it is taken from, where
there is one), ``requirements``, ``constraints``, ``overrides``, ``prereleases``, ``wheels``,
``incomplete`` (projects whose page was not seen whole), ``knowledge`` (the text of a knowledge
file), ``shipped`` (names of our own knowledge files that count too), ``as-of``, ``nightly-days`` (by
index), ``variants = true`` (wheel variants are candidates), ``variants-json`` (their metadata by
"project version"), ``exports`` (what releases of a project export for extensions), ``verify-sm``, ``target``, ``expect``.

A wheel is a table: ``file`` (its name), ``index``, ``folder``, ``url``, ``requires``, ``extras``,
``python`` (Requires-Python), ``nightly``, ``yanked``, ``uploaded`` (its upload time), ``size`` (bytes), ``sha256`` (what its index claims: two hexadecimal
digits stand for a hash), ``elsewhere = true`` (another index lists it and it was seen in passing), ``metadata = false`` (none can be had) or
``metadata = "broken"`` (what there is cannot be read), ``bytes`` (what is in it for those who read it: see `contents_builder.py`). ``expect`` holds ``pins`` (the whole set),
``refused`` (every fact of the conflict: kind, subject, words of its detail) or ``stopped``
(words of the message; a fact may have words of its ``note`` and of a place it was ``seen``). Beside ``pins``:
``labels`` (the variant label of each project that has one, "" for an ordinary wheel), ``warns`` (each text is part of one warning of the set) or
``silent = true`` (nothing is said of the set).
"""

import tomllib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from contents_builder import make_contents
from cudalock.cuda import (
    driver_cuda,
    parse_compute_capability,
    parse_cuda_version,
    parse_driver_version,
)
from cudalock.errors import CudalockError, ResolutionStoppedError, WheelError
from cudalock.host import Target
from cudalock.index.knowledge_files import parse_knowledge
from cudalock.resolver.conflict import NoSolutionError
from cudalock.resolver.engine import Solution
from cudalock.resolver.learning import Wanted, learn
from cudalock.resolver.request import Request, Requested
from cudalock.resolver.source import MemorySource
from cudalock.resolver.world import World
from cudalock.wheel import (
    CoreMetadata,
    IndexAnswer,
    Knowledge,
    ListedFile,
    ProjectListing,
    parse_wheel_file,
)
from cudalock.wheel.published import parse_as_of
from cudalock.wheel.variants import read_variants_table
from cudalock.wheel.wheel_facts import ExportTable, FactBook, WheelFacts, symbol_digest

__all__ = ["SHIPPED", "ExpectedFact", "Scenario", "read_scenario", "scenario_paths"]

_HERE = Path(__file__).resolve().parent
SHIPPED = _HERE.parent / "indices" / "knowledge"
_KEYS = {
    *("about", "source", "requirements", "constraints", "overrides", "prereleases", "wheels"),
    *("incomplete", "knowledge", "shipped", "target", "expect", "as-of", "nightly-days"),
    *("variants", "variants-json", "exports", "verify-sm"),
}
_WHEEL_KEYS = {
    *("file", "index", "folder", "url", "requires", "extras", "python", "nightly", "yanked"),
    *("metadata", "uploaded", "sha256", "elsewhere", "bytes", "size"),
}
_TARGET_KEYS = {
    *("python", "platform", "driver", "driver-cuda", "cuda", "cuda-compat", "compat", "sm", "cpu"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedFact:
    """A fact of a conflict: its kind, whom it is about, and words that its detail holds.

    ``note`` are words of what is said beside it, ``seen`` words of a place that says so.
    """

    kind: str
    subject: str
    says: str
    note: str = ""
    seen: str = ""


class _Source(MemorySource):
    """A memory source some of whose wheels have METADATA that cannot be read."""

    def __init__(
        self, files: Sequence[ListedFile], listings: Sequence[ProjectListing], broken: set[str]
    ) -> None:
        super().__init__(files, listings=listings)
        self._broken = broken

    def metadata(self, file: ListedFile) -> CoreMetadata | None:
        if file.filename in self._broken:
            raise WheelError("expected a requirement, found `~~`", where=file.filename)
        return super().metadata(file)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One file, read. `world` makes a fresh world each time: what one search read, it keeps.

    ``rename`` changes names in the knowledge that ships, where the table has others.
    """

    name: str
    table: Mapping[str, Any]
    rename: Callable[[str], str] = str

    def attempt(
        self, request: Request | None = None, target: Target | None = None
    ) -> tuple[World, Solution | CudalockError]:
        """Solve, read what was chosen, and solve again; return the last world and what came out of it."""
        book, worlds = FactBook(tables=self._tables()), list[World]()

        def make(contested: frozenset[str]) -> World:
            worlds.append(self.world(request, target, book=book, contested=contested))
            return worlds[-1]

        def read(wanted: list[Wanted]) -> bool:
            return sum(self._read(book, each) for each in wanted) > 0

        try:
            learnt = learn(make, read)
        except (NoSolutionError, ResolutionStoppedError, WheelError) as error:
            return worlds[-1], error
        return learnt.world, learnt.solution

    def _tables(self) -> list[ExportTable]:
        found = []
        for project, releases in self.table.get("exports", {}).items():
            for release, names in releases.items():
                digests = b"".join(sorted(symbol_digest(name) for name in names))
                found.append(
                    ExportTable(
                        project=project,
                        release=Version(release),
                        source=f"{project}-{release}",
                        digests=digests,
                    )
                )
        return found

    def _read(self, book: FactBook, wanted: Wanted) -> bool:
        """Read a wheel: what the scenario says of its bytes, or why it has none to read."""
        for wheel in self.table["wheels"]:
            if wheel["file"] == wanted.file.filename and "bytes" in wheel:
                contents = make_contents(wheel["bytes"])
                book.add(wanted.file, WheelFacts(filename=wheel["file"], contents=contents))
                return True
        book.add_failure(wanted.file, "the scenario says nothing of its bytes")
        return False

    def world(
        self,
        request: Request | None = None,
        target: Target | None = None,
        *,
        book: FactBook | None = None,
        contested: frozenset[str] = frozenset(),
    ) -> World:
        """Make the world, or one in which something else is asked for or meant."""
        table = self.table
        documents = table.get("variants-json", {})
        wheels = table.get("wheels", [])
        files = [
            _with_variants(_listed(wheel), documents)
            for wheel in wheels
            if not wheel.get("elsewhere", False)
        ]
        passed = [_listed(wheel) for wheel in wheels if wheel.get("elsewhere", False)]
        listings = [_incomplete(project, files) for project in table.get("incomplete", [])]
        listings += [
            _beside(project, files, passed) for project in sorted({f.wheel.project for f in passed})
        ]
        broken = {w["file"] for w in table["wheels"] if w.get("metadata") == "broken"}
        return World(
            request=request
            or Request(
                requirements=_requested(table["requirements"], "argument"),
                constraints=_requested(table.get("constraints", []), "constraints.txt"),
                overrides=_requested(table.get("overrides", []), "overrides.txt"),
                prereleases=frozenset(table.get("prereleases", [])),
                as_of=parse_as_of(table["as-of"], where=self.name) if "as-of" in table else None,
                variants=table.get("variants", False),
                verify_sm=table.get("verify-sm", "auto"),
            ),
            target=target or _target(table["target"]),
            source=_Source(files, listings, broken),
            knowledge=_knowledge(table, self.rename),
            nightly_days=table.get("nightly-days"),
            facts=book,
            contested=contested,
        )

    @property
    def pins(self) -> dict[str, str] | None:
        """The whole set that must come out, if one must."""
        pins: dict[str, str] | None = self.table["expect"].get("pins")
        return pins

    @property
    def labels(self) -> dict[str, str]:
        """The variant label of each project named, "" for an ordinary wheel."""
        labels: dict[str, str] = self.table["expect"].get("labels", {})
        return labels

    @property
    def warns(self) -> list[str]:
        """Texts that must each be part of a warning of the set."""
        texts: list[str] = self.table["expect"].get("warns", [])
        return texts

    @property
    def silent(self) -> bool:
        """Whether nothing may be said of the set."""
        return bool(self.table["expect"].get("silent", False))

    @property
    def remedies(self) -> list[str] | None:
        """What must be offered instead of a refused problem, each as its changes in words."""
        words: list[str] | None = self.table["expect"].get("remedies")
        return words

    @property
    def stopped(self) -> list[str] | None:
        """Words of the message that says why nothing could be told."""
        words: list[str] | None = self.table["expect"].get("stopped")
        return words

    @property
    def refused(self) -> list[ExpectedFact]:
        """Every fact of the conflict that must come out."""
        return [ExpectedFact(**fact) for fact in self.table["expect"].get("refused", [])]


def scenario_paths() -> list[Path]:
    """List the scenarios by name."""
    return sorted((_HERE / "scenarios").glob("*.toml"))


def read_scenario(path: Path) -> Scenario:
    """Read one file; a key that nothing reads is an error, so that none is believed in vain."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    unknown = set(table) - _KEYS | set(table["target"]) - _TARGET_KEYS
    for wheel in table["wheels"]:
        unknown |= set(wheel) - _WHEEL_KEYS
    outcomes = set(table["expect"]) - {"warns", "silent", "labels", "remedies"}
    beside = set(table["expect"]) - outcomes
    fits = beside <= ({"remedies"} if "refused" in outcomes else {"warns", "silent", "labels"})
    if unknown or len(outcomes) != 1 or not fits or (beside and "stopped" in outcomes):
        raise ValueError(f"{path.name}: unknown keys {sorted(unknown)}, or not one expectation")
    return Scenario(name=path.stem, table=table)


def _requested(texts: Sequence[str], where: str) -> tuple[Requested, ...]:
    return tuple(Requested(requirement=Requirement(text), where=where) for text in texts)


def _target(table: Mapping[str, Any]) -> Target:
    driver = parse_driver_version(table["driver"]) if "driver" in table else None
    runs = parse_cuda_version(table["driver-cuda"]) if "driver-cuda" in table else None
    if driver is not None and runs is None:
        runs = driver_cuda(driver).cuda
    cpu = table.get("cpu", False)
    cuda = parse_cuda_version(table["cuda"]) if "cuda" in table else runs
    return Target(
        python=table.get("python", "3.12"),
        platform=table.get("platform", "manylinux_2_28_x86_64"),
        driver=driver,
        driver_cuda=runs,
        cuda=None if cpu else cuda,
        cuda_compat=table.get("cuda-compat", "strict"),
        compat=parse_cuda_version(table["compat"]) if "compat" in table else None,
        capabilities=tuple(parse_compute_capability(text) for text in table.get("sm", [])),
        cpu=cpu,
    )


def _listed(table: Mapping[str, Any]) -> ListedFile:
    wheel = parse_wheel_file(table["file"])
    index, folder = table.get("index", "default"), table.get("folder")
    page = f"https://{index}.test/{folder}/" if folder else f"https://{index}.test/"
    metadata = None
    if table.get("metadata", True) is True:
        metadata = CoreMetadata(
            project=wheel.project,
            version=wheel.version,
            requires_dist=tuple(Requirement(text) for text in table.get("requires", [])),
            requires_python=SpecifierSet(table["python"]) if "python" in table else None,
            provides_extra=frozenset(canonicalize_name(name) for name in table.get("extras", [])),
        )
    return ListedFile(
        wheel=wheel,
        url=table.get("url", f"{page}{wheel.filename}"),
        index=index,
        index_url=page,
        folder=folder,
        sha256=tuple(pair * 32 for pair in table.get("sha256", [_digits(table)])),
        requires_python=table.get("python"),
        yanked=table.get("yanked", False),
        nightly=table.get("nightly", False),
        upload_time=table.get("uploaded"),
        size=table.get("size"),
        metadata=metadata,
    )


def _digits(table: Mapping[str, Any]) -> str:
    """Return two hexadecimal digits: of its own for a wheel with bytes, whose facts are known by its hash."""
    return f"{zlib.crc32(table['file'].encode()) & 0xFF:02x}" if "bytes" in table else "aa"


def _with_variants(file: ListedFile, documents: Mapping[str, Any]) -> ListedFile:
    version = file.wheel.version
    document = documents.get(f"{file.wheel.project} {version}")
    if document is None:
        return file
    where = f"{file.wheel.project}-{version}-variants.json"
    return replace(file, variants=read_variants_table(document, where=where))


def _incomplete(project: str, files: Sequence[ListedFile]) -> ProjectListing:
    page = "https://recorded.test/cu134/"
    return ProjectListing(
        project=project,
        files=tuple(file for file in files if file.wheel.project == project),
        answers=(
            IndexAnswer(index="recorded", url=page, folder="cu134", status="unrecorded"),
            IndexAnswer(index="recorded", url=page, folder="cu130", status="listed"),
        ),
    )


def _beside(
    project: str, files: Sequence[ListedFile], passed: Sequence[ListedFile]
) -> ProjectListing:
    own = tuple(file for file in files if file.wheel.project == project)
    answers = {(file.index, file.index_url, file.folder) for file in own}
    return ProjectListing(
        project=project,
        files=own,
        answers=tuple(
            IndexAnswer(index=index, url=url, folder=folder, status="listed")
            for index, url, folder in sorted(answers, key=str)
        ),
        elsewhere=tuple(file for file in passed if file.wheel.project == project),
    )


def _knowledge(table: Mapping[str, Any], rename: Callable[[str], str]) -> Knowledge:
    texts = [(f"{name}.toml", (SHIPPED / f"{name}.toml")) for name in table.get("shipped", [])]
    parts = [
        parse_knowledge(rename(path.read_text(encoding="utf-8")), where=name)
        for name, path in texts
    ]
    parts.append(parse_knowledge(table.get("knowledge", ""), where="scenario"))
    return Knowledge(
        **{
            name: tuple(entry for part in parts for entry in getattr(part, name))
            for name in Knowledge.__dataclass_fields__
        }
    )
