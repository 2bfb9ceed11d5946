"""Small random worlds, and an answer about them that no search of ours took part in.

`random_world` draws a world from a generator of random numbers (hypothesis hands in one that it
can shrink). `Oracle` decides it by trying every combination of wheels that the requirements reach
and checking each against rules written here a second time, from the wheels themselves.
"""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from random import Random

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from cudalock.cuda import ComputeCapability, CudaVersion, parse_driver_version
from cudalock.host import Target
from cudalock.resolver.facts import Fact
from cudalock.resolver.request import Request, Requested
from cudalock.resolver.source import MemorySource, Source
from cudalock.resolver.world import World
from cudalock.wheel import CoreMetadata, IndexAnswer, Knowledge, ListedFile, ProjectListing
from cudalock.wheel.cuda_parts import RuntimeLibrary, ToolkitPart
from cudalock.wheel.filename import parse_wheel_file
from cudalock.wheel.knowledge import Family, Pairing, ProjectMark, Train
from cudalock.wheel.published import parse_as_of

__all__ = ["Oracle", "RandomWorld", "Wheel", "make_world", "random_world"]

Key = tuple[str, str, str]
_HOST = "https://wheels.test/"
# Of wheels without an upload time, nightlies of the 7th count and those of the 8th do not.
_AS_OF, _BEFORE, _AFTER = "2026-01-07", "2026-01-01T07:08:09Z", "2026-02-01T07:08:09.503430Z"
_TAGS = "cp312-cp312-manylinux_2_28_x86_64"
# Tags that the target does not accept, and what it is that does not fit.
_OTHER_TAGS = {
    "cp311-cp311-manylinux_2_28_x86_64": "python",
    "cp312-cp312-win_amd64": "platform",
    "cp312-cp312-manylinux_2_39_x86_64": "glibc 2.39",
}
_NAMED = re.compile(r"torch(\d\.\d)(andhigher)?\Z")
_VALUE = re.compile(r"(?:\bCUDA|\bis (?:of|built for) \w+|\bis) (\d[^ ,]*)")
_BY_VALUE = ("<cuda>", "<cuda-toolkit>")
_ENVIRONMENT = {"sys_platform": "linux", "extra": ""}
_TARGET = Target(
    python="3.12",
    platform="manylinux_2_28_x86_64",
    driver=parse_driver_version("590.48.01"),
    driver_cuda=CudaVersion(13, 1),
    cuda=CudaVersion(13, 0),
    capabilities=(ComputeCapability(12, 0),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel of a random world; ``requires`` is None where no metadata can be had.

    ``python`` is its Requires-Python, which the page says as well if it is ``paged``.
    """

    project: str
    version: str
    requires: tuple[str, ...] | None = ()
    extras: frozenset[str] = frozenset()
    tags: str = _TAGS
    nightly: bool = False
    yanked: bool = False
    uploaded: str | None = None
    python: str = ""
    paged: bool = False

    @property
    def filename(self) -> str:
        return f"{self.project.replace('-', '_')}-{self.version}-{self.tags}.whl"

    @property
    def url(self) -> str:
        return f"{_HOST}{self.filename}"

    def listed(self) -> ListedFile:
        wheel = parse_wheel_file(self.filename)
        metadata = None
        if self.requires is not None:
            metadata = CoreMetadata(
                project=wheel.project,
                version=wheel.version,
                requires_dist=tuple(Requirement(text) for text in self.requires),
                provides_extra=self.extras,
                requires_python=SpecifierSet(self.python) if self.python else None,
            )
        return ListedFile(
            wheel=wheel,
            url=self.url,
            index="wheels",
            index_url=_HOST,
            sha256=("a" * 64,),
            yanked=self.yanked,
            nightly=self.nightly,
            upload_time=self.uploaded,
            requires_python=self.python if self.python and self.paged else None,
            metadata=metadata,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomWorld:
    """What is asked, and what there is. ``partial`` are projects whose page is not whole.

    ``train`` are projects whose nightlies go by their day where they pin none of each other.
    ``labelled`` is the project that labels mean by ``torch``. ``runtimes`` are projects bound to one
    CUDA major, which makes wheels that require them of that major.
    """

    wheels: tuple[Wheel, ...]
    requirements: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    prereleases: frozenset[str] = frozenset()
    families: tuple[tuple[str, ...], ...] = ()
    pairings: tuple[tuple[str, str, str, str], ...] = ()
    needs_pairing: tuple[tuple[str, str], ...] = ()
    parts: tuple[str, ...] = ()
    partial: frozenset[str] = frozenset()
    train: tuple[str, ...] = ()
    as_of: str | None = None
    labelled: str | None = None
    runtimes: tuple[tuple[str, int], ...] = ()


def make_world(
    spec: RandomWorld,
    *,
    shuffle: Random | None = None,
    source: Source | None = None,
    executor: Executor | None = None,
    target: Target | None = None,
) -> World:
    """Make a fresh `World`; ``shuffle`` puts files and requirements in another order.

    ``source`` stands in for the wheels in memory, ``target`` for a Blackwell machine with CUDA 13.
    """
    wheels = list(spec.wheels)
    requirements = list(spec.requirements)
    if shuffle is not None:
        shuffle.shuffle(wheels)
        shuffle.shuffle(requirements)
    files = [wheel.listed() for wheel in wheels]
    listings = [
        ProjectListing(
            project=project,
            files=tuple(file for file in files if file.wheel.project == project),
            answers=(IndexAnswer(index="wheels", url=_HOST, folder=None, status="partial"),),
        )
        for project in sorted(spec.partial)
    ]
    knowledge = Knowledge(
        families=tuple(
            Family(name="-".join(projects), projects=projects, source="families")
            for projects in spec.families
        ),
        pairings=tuple(
            Pairing(
                project=project,
                versions=SpecifierSet(versions),
                partner=partner,
                minor=minor,
                source="pairings",
            )
            for project, versions, partner, minor in spec.pairings
        ),
        trains=(Train(name="train", projects=spec.train, source="trains"),) if spec.train else (),
        toolkit_parts=tuple(
            ToolkitPart(project=project, own_number=False, source="parts") for project in spec.parts
        ),
        runtime_libraries=tuple(
            RuntimeLibrary(project=project, major=major, source="runtimes")
            for project, major in spec.runtimes
        ),
        marks=tuple(
            ProjectMark(kind="needs-pairing", project=project, value=partner, source="marks")
            for project, partner in spec.needs_pairing
        )
        + tuple(
            ProjectMark(kind="label-word", project=project, value="", source="labels")
            for project in (spec.labelled,)
            if project is not None
        ),
    )
    return World(
        request=Request(
            requirements=_asked(requirements, "asked"),
            constraints=_asked(spec.constraints, "constraints"),
            overrides=_asked(spec.overrides, "overrides"),
            prereleases=spec.prereleases,
            as_of=None if spec.as_of is None else parse_as_of(spec.as_of, where="drawn"),
        ),
        target=target or _TARGET,
        source=source or MemorySource(files, listings=listings),
        knowledge=knowledge,
        executor=executor,
    )


def _asked(texts: list[str] | tuple[str, ...], where: str) -> tuple[Requested, ...]:
    return tuple(Requested(requirement=Requirement(text), where=where) for text in texts)


def random_world(rng: Random) -> RandomWorld:
    """Draw a world of four or five projects with up to four wheels each."""
    projects = ["a", "b", "c", "d", "e"][: rng.randint(4, 5)]
    with_parts = rng.random() < 0.2
    names = [*projects, "t", "u"] if with_parts else projects
    labelled = rng.choice(projects) if rng.random() < 0.3 else None
    wheels = [
        wheel
        for project in projects
        for wheel in _wheels(rng, project, names, named=labelled not in (None, project))
    ]
    for part in ("t", "u") if with_parts else ():
        versions = rng.sample(["12.8.1", "12.9.0", "13.0.2", "13.0.5", "13.1.0"], 3)
        wheels += [Wheel(project=part, version=version) for version in versions]
    majors = (("r", 12), ("s", 13)) if rng.random() < 0.25 else ()
    if majors:
        wheels = [_with_runtime(rng, wheel) for wheel in wheels]
        wheels += [Wheel(project=library, version="1.0") for library, _ in majors]
    dated = rng.random() < 0.25
    if dated:
        wheels = [
            replace(wheel, uploaded=rng.choice([_BEFORE, _BEFORE, _BEFORE, _AFTER, None]))
            for wheel in wheels
        ]
    urls = [
        wheel.url
        for wheel in wheels
        if wheel.tags == _TAGS
        and "+cpu" not in wheel.version
        and not (wheel.python and wheel.paged)
    ]
    some = rng.sample(projects, 3)

    def now(probability: float) -> bool:
        return rng.random() < probability

    pairings = []
    if now(0.4):
        pairings = [
            (some[0], f"=={version}", some[1], rng.choice(["1.0", "2.0", "3.0"]))
            for version in rng.sample(["1.0", "2.0", "3.0"], rng.randint(1, 3))
        ]
    requirements = tuple(
        _requirement(rng, project, marker=False) for project in rng.sample(names, rng.randint(1, 3))
    )
    if urls and now(0.1):
        requirements += (_by_url(rng, urls),)
    if urls and now(0.15):
        position = rng.randrange(len(wheels))
        wheel = wheels[position]
        other = _by_url(rng, urls)
        if wheel.requires is not None and not other.startswith(wheel.project):
            wheels[position] = replace(wheel, requires=(*wheel.requires, other))
    return RandomWorld(
        wheels=tuple(wheels),
        requirements=requirements,
        constraints=(f"{rng.choice(projects)}{_specifier(rng)}",) if now(0.2) else (),
        overrides=(_requirement(rng, rng.choice(projects), marker=now(0.2)),) if now(0.2) else (),
        prereleases=frozenset({rng.choice(projects)}) if now(0.1) else frozenset(),
        families=(tuple(some[1:]),) if now(0.3) else (),
        pairings=tuple(pairings),
        needs_pairing=((some[0], some[1]),) if now(0.15) else (),
        parts=("t", "u") if with_parts else (),
        partial=frozenset({rng.choice(projects)}) if now(0.08) else frozenset(),
        train=tuple(rng.sample(projects, rng.randint(2, 3))) if now(0.25) else (),
        as_of=_AS_OF if dated else None,
        labelled=labelled,
        runtimes=majors,
    )


def _with_runtime(rng: Random, wheel: Wheel) -> Wheel:
    """Let a wheel without a label require what makes it one of a CUDA major, now and then."""
    if wheel.requires is None or "+" in wheel.version or rng.random() < 0.5:
        return wheel
    return replace(wheel, requires=(*wheel.requires, rng.choice(["r", "s", "s"])))


def _wheels(rng: Random, project: str, names: list[str], *, named: bool) -> Iterator[Wheel]:
    labels = rng.random() < 0.25
    seen = set()
    for _ in range(rng.randint(2, 4)):
        base = rng.choice(["1.0", "2.0", "3.0"])
        nightly = rng.random() < 0.06
        early = rng.choice([".dev1", "rc1"]) if rng.random() < 0.12 else ""
        day = rng.choice(["20260107", "20260108"])
        version = f"{base}.dev{day}" if nightly else base + early
        if labels:
            version += rng.choice(["+cu130", "+cu130", "+cu130", "+cu126", "+cu131", "+cpu"])
            if named and rng.random() < 0.5:
                version += (
                    f"torch{rng.choice(['1.0', '2.0', '3.0'])}{rng.choice(['', 'andhigher'])}"
                )
        other = rng.random() < 0.06
        if version in seen:
            continue
        seen.add(version)
        requires = [
            _requirement(rng, rng.choice(names), marker=True) for _ in range(rng.randint(0, 2))
        ]
        yield Wheel(
            project=project,
            version=version,
            requires=None if rng.random() < 0.05 else tuple(requires),
            extras=frozenset(extra for extra in ("x", "y") if rng.random() < 0.5),
            tags=rng.choice([*_OTHER_TAGS]) if other else _TAGS,
            nightly=nightly,
            yanked=rng.random() < 0.05,
            python=rng.choice([">=3.13", "<3.12"]) if rng.random() < 0.06 else "",
            paged=rng.random() < 0.5,
        )


def _specifier(rng: Random) -> str:
    version = rng.choice(["1.0", "2.0", "3.0"])
    forms = ["", "", f"=={version}", f">={version}", f">={version}", f"<={version}"]
    rare = [f"!={version}", f"<{version}", f"=={version}.*"]
    rare += [f"=={version}{early}" for early in (".dev1", ".dev20260107", "rc1")]
    rare += [f"=={version}+{label}" for label in ("cu130", "cu126", "cu131")]
    return rng.choice(rare if rng.random() < 0.25 else forms)


def _requirement(rng: Random, project: str, *, marker: bool) -> str:
    if project in ("t", "u"):
        return f"{project}{rng.choice(['', '<13.0.5', '>=13.0', '!=13.0.2', '<=13.0.2'])}"
    extras = rng.choice(["", "", "", "[x]", "[y]", "[x,y]"])
    text = f"{project}{extras}{_specifier(rng)}"
    if marker and rng.random() < 0.4:
        text += rng.choice(
            ["; extra == 'x'", "; extra == 'y'", "; sys_platform == 'win32'", "; extra != 'x'"]
        )
    return text


def _by_url(rng: Random, urls: list[str]) -> str:
    url = rng.choice(urls)
    return f"{url.removeprefix(_HOST).partition('-')[0]} @ {url}"


@dataclass(slots=True)
class _Asked:
    """What is asked of one project on the way through a combination."""

    specifiers: list[SpecifierSet] = field(default_factory=list)
    urls: set[str] = field(default_factory=set)
    extras: set[str] = field(default_factory=set)
    early: bool = False
    nightly: bool = False


class Oracle:
    """Brute force. ``enabled`` limits what counts to some facts, as `search_facts` does."""

    def __init__(self, spec: RandomWorld, enabled: Callable[[Key], bool] | None = None) -> None:
        self._spec = spec
        self._enabled = enabled or (lambda _: True)
        self._overrides: dict[str, list[Requirement]] = {}
        for text in spec.overrides:
            override = Requirement(text)
            kept = self._overrides.setdefault(override.name, [])
            if override.marker is None or override.marker.evaluate(_ENVIRONMENT):
                kept.append(override)
        self._options: dict[str, list[Wheel]] = {}
        for wheel in spec.wheels:
            self._options.setdefault(wheel.project, []).append(wheel)
        for project in spec.partial:
            if not self._enabled(("incomplete", project, "unlisted")):
                # Of a page that is not whole anything may be missing.
                self._options.setdefault(project, []).append(Wheel(project=project, version="any"))

    def satisfiable(self) -> bool:
        """Whether some combination of wheels keeps every rule."""
        return any(True for _ in self.solutions())

    def solutions(self, chosen: dict[str, Wheel] | None = None) -> Iterator[dict[str, Wheel]]:
        """Yield every combination that keeps every rule."""
        chosen = chosen or {}
        asked = self._walk(chosen)
        missing = next((project for project in sorted(asked) if project not in chosen), None)
        if missing is None:
            if self.holds(chosen):
                yield chosen
            return
        for wheel in self._options.get(missing, ()):
            yield from self.solutions({**chosen, missing: wheel})

    def facts(self) -> set[Key]:
        """Return every fact that is true of this world, whatever is enabled."""
        spec, found = self._spec, set[Key]()
        asked = [("requirement", "", Requirement(text)) for text in spec.requirements]
        for wheel in spec.wheels:
            version, project = Version(wheel.version), wheel.project
            minor = f"{version.major}.{version.minor}"
            value = version.public if version.is_prerelease else minor
            asked += [
                ("dependency", project, requirement)
                for extra in ("", "x", "y")
                for requirement in (*_requirements(wheel, extra), *self._newer(wheel, extra))
            ]
            for out in self._outs(wheel, version, direct=False):
                found.update(out)
            if version.is_prerelease or wheel.nightly:
                found.add(("rejection", project, "pre-release"))
            found.add(("release", project, f"<lib{project}> {value}"))
            found.add(("demand", project, f"<cuda-toolkit> {minor}"))
            named = _NAMED.search(version.local or "")
            if named is not None:
                found.add(("pairing", project, f"<lib{spec.labelled}> {named[1]}"))
        for subject_kind, subject, requirement in asked:
            for actual in self._overrides.get(requirement.name, [requirement]):
                kind = "override" if requirement.name in self._overrides else subject_kind
                found.add((kind, subject, _text(actual)))
                if actual.name in spec.partial:
                    # Whatever nobody saw, its label is that of the pin.
                    for pin in _pins(actual.specifier):
                        for out in _by_label(actual.name, Version(pin)):
                            found.update(out)
        found |= {
            ("pairing", p, f"<lib{partner}> {minor}") for p, _, partner, minor in spec.pairings
        }
        found |= {("family", p, f"<{'-'.join(f)}>") for f in spec.families for p in f}
        found |= {("family", project, "<train nightly>") for project in spec.train}
        found |= {("incomplete", project, "unlisted") for project in spec.partial}
        return found

    def holds(self, chosen: dict[str, Wheel]) -> bool:
        """Whether a combination is closed and keeps every rule."""
        asked = self._walk(chosen)
        if set(asked) != set(chosen):
            return False
        return all(self._fits(chosen[p], asked[p]) for p in asked) and self._agree(chosen, asked)

    def _walk(self, chosen: dict[str, Wheel]) -> dict[str, _Asked]:
        """Follow the requirements as far as wheels are chosen."""
        asked: dict[str, _Asked] = {}
        done: set[tuple[str, str]] = set()
        pending = [("", Requirement(t), False, "requirement") for t in self._spec.requirements]
        while pending:
            subject, requirement, nightly, kind = pending.pop()
            project = str(canonicalize_name(requirement.name))
            for actual in self._overrides.get(project, [requirement]):
                kind_here = "override" if project in self._overrides else kind
                pins = _pins(actual.specifier)
                key = (kind_here, subject, _text(actual))
                entry = asked.get(project)
                if self._enabled(key):
                    entry = asked.setdefault(project, _Asked())
                    entry.specifiers.append(actual.specifier)
                    entry.urls |= {actual.url} if actual.url else set()
                    entry.extras |= actual.extras
                    # A wheel does not let itself in.
                    if subject != project:
                        early = any(Version(pin).is_prerelease for pin in pins)
                        entry.early |= early
                        entry.nightly |= early or (nightly and bool(pins))
            for project in [p for p in asked if p in chosen]:
                wheel = chosen[project]
                for extra in ("", *sorted(asked[project].extras)):
                    if (project, extra) not in done:
                        done.add((project, extra))
                        pending.extend(
                            (project, found, wheel.nightly, "dependency")
                            for found in (*_requirements(wheel, extra), *self._newer(wheel, extra))
                        )
        return asked

    def _fits(self, wheel: Wheel, asked: _Asked) -> bool:
        if wheel.version == "any":
            pins = [pin for specifier in asked.specifiers for pin in _pins(specifier)]
            pin = _agreed(asked.specifiers)
            if asked.urls or (pins and pin is None):
                return False
            # Whatever nobody saw, its label is that of the pin.
            return pin is None or not any(
                all(self._enabled(key) for key in out) for out in _by_label(wheel.project, pin)
            )
        version = Version(wheel.version)
        if not all(spec.contains(version, prereleases=True) for spec in asked.specifiers):
            return False
        if asked.urls and asked.urls != {wheel.url}:
            return False
        for out in self._outs(wheel, version, direct=bool(asked.urls)):
            if all(self._enabled(key) for key in out):
                return False
        spec = self._spec
        early = wheel.project in spec.prereleases or asked.early
        finals = [
            other
            for other in self._options[wheel.project]
            if other.version != "any"
            and not Version(other.version).is_prerelease
            and self._rejection(other) in (None, "undated")
        ]
        if asked.urls:
            return True
        if wheel.nightly and not (early or asked.nightly):
            return False
        if not self._enabled(("rejection", wheel.project, "pre-release")):
            return True
        return early or not version.is_prerelease or not finals

    def _rejection(self, wheel: Wheel) -> str | None:
        if wheel.tags != _TAGS:
            return _OTHER_TAGS[wheel.tags]
        if wheel.python and wheel.paged:
            return "requires-python"
        if _label(wheel.version) == "cpu":
            return "cpu"
        pinned = self._user_pins(wheel.project, Version(wheel.version))
        if wheel.yanked and not pinned:
            return "yanked"
        return None if _by_label(wheel.project, Version(wheel.version)) else self._late(wheel)

    def _late(self, wheel: Wheel) -> str | None:
        """Say how ``--as-of`` rules a wheel out that nothing else does."""
        version = Version(wheel.version)
        if self._spec.as_of is None:
            return None
        if wheel.uploaded is not None:
            return "later" if wheel.uploaded == _AFTER else None
        if version.dev is not None and version.dev > 1:
            return "later" if version.dev > 20260107 else None
        return None if self._user_pins(wheel.project, version) else "undated"

    def _outs(self, wheel: Wheel, version: Version, *, direct: bool) -> Iterator[list[Key]]:
        """Yield the facts that rule a wheel out by itself, each time all of one reason."""
        project = wheel.project
        kind = self._rejection(wheel)
        if kind is not None and not (direct and kind in ("yanked", "later", "undated")):
            yield [("unknown" if kind == "undated" else "rejection", project, kind)]
        yield from self._by_cuda(wheel)
        for text in self._spec.constraints:
            constraint = Requirement(text)
            if constraint.name == project and not constraint.specifier.contains(
                version, prereleases=True
            ):
                yield [("constraint", "", _text(constraint))]
        number = (version.major, version.minor)
        if project in self._spec.parts and (number[0] != 13 or number > (13, 0)):
            yield [
                ("demand", project, f"<cuda> {number[0]}.{number[1]}"),
                ("policy", "<cuda>", ""),
            ]
        if wheel.requires is None:
            yield [("unknown", project, "unknown")]
        elif wheel.python:
            yield [("rejection", project, "requires-python")]
        elif self._unpaired(wheel, version):
            yield [("rejection", project, "unpaired")]

    def _by_cuda(self, wheel: Wheel) -> Iterator[list[Key]]:
        """Yield the facts that rule a wheel out by its label, or by the CUDA major it requires."""
        yield from _by_label(wheel.project, Version(wheel.version))
        needed = {Requirement(text).name for text in wheel.requires or ()}
        for project, major in self._spec.runtimes:
            if major != 13 and (project == wheel.project or project in needed):
                yield [
                    ("demand", wheel.project, "<cuda-runtime>"),
                    ("target", "<cuda-runtime>", ""),
                ]

    def _unpaired(self, wheel: Wheel, version: Version) -> bool:
        spec = self._spec
        partner = dict(spec.needs_pairing).get(wheel.project)
        public = Version(version.public)
        if partner is None or any(
            project == wheel.project and SpecifierSet(versions).contains(public, prereleases=True)
            for project, versions, _, _ in spec.pairings
        ):
            return False
        if partner == spec.labelled and _NAMED.search(wheel.version):
            return False
        for text in wheel.requires or ():
            requirement = Requirement(text)
            if (
                requirement.name == partner
                and _pins(requirement.specifier)
                and (requirement.marker is None or requirement.marker.evaluate(_ENVIRONMENT))
            ):
                return False
        return not self._user_pins(wheel.project, version)

    def _pinned(self, project: str) -> bool:
        """Whether the user asks for exactly one version of a project."""
        return bool(self._pins_of(project))

    def _paired(self, project: str, version: Version) -> bool:
        return any(
            project == bound
            and SpecifierSet(versions).contains(Version(version.public), prereleases=True)
            for bound, versions, _, _ in self._spec.pairings
        )

    def _newer(self, wheel: Wheel, extra: str) -> Iterator[Requirement]:
        """Yield what a label that allows newer releases requires, unless a pairing says otherwise."""
        named = _NAMED.search(wheel.version)
        if named is None or not named[2] or extra or wheel.requires is None:
            return
        if not self._paired(wheel.project, Version(wheel.version)):
            yield Requirement(f"{self._spec.labelled}>={named[1]}")

    def _user_pins(self, project: str, version: Version) -> bool:
        return any(
            specifier.contains(version, prereleases=True) for specifier in self._pins_of(project)
        )

    def _pins_of(self, project: str) -> list[SpecifierSet]:
        own = [Requirement(t) for t in self._spec.requirements]
        own = [r for r in own if r.name not in self._overrides]
        own += [Requirement(t) for t in self._spec.constraints]
        for overrides in self._overrides.values():
            own += overrides
        return [r.specifier for r in own if r.name == project and (r.url or _pins(r.specifier))]

    def _agree(self, chosen: dict[str, Wheel], asked: dict[str, _Asked]) -> bool:
        """Whether families share a version, pairings hold, and parts are of one release."""
        spec = self._spec
        versions = {p: Version(w.version) for p, w in chosen.items() if w.version != "any"}
        for project in set(chosen) - set(versions):
            # A wheel that nobody saw is of the version that is asked for.
            pin = _agreed(asked[project].specifiers)
            if pin is not None:
                versions[project] = pin
        for family in spec.families:
            publics = {
                versions[p].public
                for p in family
                if p in versions and self._enabled(("family", p, f"<{'-'.join(family)}>"))
            }
            if len(publics) > 1:
                return False
        partners = {partner for _, _, partner, _ in spec.pairings}
        partners |= {spec.labelled} if spec.labelled is not None else set()
        bound: dict[str, set[str]] = {}
        for project, clause, partner, minor in spec.pairings:
            version = versions.get(project)
            if (
                version is not None
                and SpecifierSet(clause).contains(Version(version.public), prereleases=True)
                and self._enabled(("pairing", project, f"<lib{partner}> {minor}"))
            ):
                bound.setdefault(partner, set()).add(minor)
        for project, version in versions.items():
            named = _NAMED.search(version.local or "")
            if (
                named is not None
                and not named[2]
                and spec.labelled is not None
                and not self._paired(project, version)
                and self._enabled(("pairing", project, f"<lib{spec.labelled}> {named[1]}"))
            ):
                bound.setdefault(spec.labelled, set()).add(named[1])
        for partner in partners & set(versions):
            version = versions[partner]
            minor = f"{version.major}.{version.minor}"
            value = version.public if version.is_prerelease else minor
            if self._enabled(("release", partner, f"<lib{partner}> {value}")):
                bound.setdefault(partner, set()).add(value)
        if any(len(values) > 1 for values in bound.values()):
            return False
        releases = {
            (versions[p].major, versions[p].minor)
            for p in spec.parts
            if p in versions
            and self._enabled(
                ("demand", p, f"<cuda-toolkit> {versions[p].major}.{versions[p].minor}")
            )
        }
        return len(releases) < 2 and len(self._days(chosen)) < 2

    def _days(self, chosen: dict[str, Wheel]) -> set[int]:
        """Return the days of the nightlies of the train that pin no other member of it."""
        days = set()
        for project in self._spec.train:
            wheel = chosen.get(project)
            if wheel is None or wheel.version == "any" or wheel.requires is None:
                continue
            dev = Version(wheel.version).dev
            pins = any(
                requirement.name in self._spec.train
                and requirement.name != project
                and _pins(requirement.specifier)
                for requirement in _requirements(wheel, "")
            )
            first = self._spec.train[0]
            by_hand = project != first and self._pinned(project) and self._pinned(first)
            if dev is None or dev < 2 or pins or by_hand:
                continue
            if self._enabled(("family", project, "<train nightly>")):
                days.add(dev)
        return days


def _agreed(specifiers: list[SpecifierSet]) -> Version | None:
    """Return the version that all specifiers together pin, if they do; with its label first."""
    pins = [pin for specifier in specifiers for pin in _pins(specifier)]
    fitting = [pin for pin in pins if all(s.contains(pin, prereleases=True) for s in specifiers)]
    found = sorted(fitting, key=lambda pin: "+" not in pin)
    return Version(found[0]) if found else None


def _by_label(project: str, version: Version) -> list[list[Key]]:
    """Return the facts that rule a wheel out by its label."""
    label = _label(str(version))
    if label == "cu126":
        return [[("demand", project, "<cuda-runtime>"), ("target", "<cuda-runtime>", "")]]
    if label == "cu131":
        return [[("demand", project, "<cuda> 13.1"), ("policy", "<cuda>", "")]]
    return []


def key_of(fact: Fact) -> Key:
    """Name a fact in the way the oracle does."""
    word = fact.kind.word
    if word in ("requirement", "override", "dependency", "constraint"):
        return (word, fact.subject, fact.detail)
    # Of a project's releases each says something else here, which is a fact of its own.
    by_value = fact.object in _BY_VALUE or word in ("release", "pairing")
    said = _VALUE.search(fact.detail) if by_value else None
    return (word, fact.subject, fact.object if said is None else f"{fact.object} {said[1]}")


def _label(version: str) -> str:
    """Return the CUDA part of a version's label."""
    return version.partition("+")[2].partition("torch")[0]


def _pins(specifier: SpecifierSet) -> list[str]:
    return [c.version for c in specifier if c.operator == "==" and not c.version.endswith("*")]


def _text(requirement: Requirement) -> str:
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    tail = f" @ {requirement.url}" if requirement.url else str(requirement.specifier)
    return f"{requirement.name}{extras}{tail}"


def _requirements(wheel: Wheel, extra: str) -> Iterator[Requirement]:
    for text in wheel.requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        without = marker is None or marker.evaluate({**_ENVIRONMENT, "extra": ""})
        if (
            without
            if not extra
            else (
                not without
                and marker is not None
                and marker.evaluate({**_ENVIRONMENT, "extra": extra})
            )
        ):
            yield requirement
