"""The problem as the searches read it: overrides, hashes, wheels by URL, what is asked of a source."""

from dataclasses import replace

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from cudalock.errors import UsageError, WheelError
from cudalock.host import Target
from cudalock.resolver.request import Request, Requested
from cudalock.resolver.source import MemorySource
from cudalock.resolver.world import World
from cudalock.wheel import CoreMetadata, Knowledge, ListedFile, ProjectListing
from cudalock.wheel.knowledge import Pairing, ProjectMark
from random_worlds import RandomWorld, Wheel, make_world

_TARGET = Target(python="3.12", platform="manylinux_2_28_x86_64", cpu=True)


def _asked(*texts: str, sha256: frozenset[str] = frozenset()) -> tuple[Requested, ...]:
    return tuple(
        Requested(requirement=Requirement(text), where="test", sha256=sha256) for text in texts
    )


class _Asked(MemorySource):
    """Remembers what was said to be admitted, and the hash a URL was asked with."""

    def __init__(self, *wheels: Wheel) -> None:
        super().__init__([wheel.listed() for wheel in wheels])
        self.admitted: dict[str, str] = {}
        self.hashes: list[str | None] = []

    def listing(self, project: str, *, admitted: SpecifierSet, nightly: bool) -> ProjectListing:
        self.admitted[project] = str(admitted)
        return super().listing(project, admitted=admitted, nightly=nightly)

    def direct(self, project: str, url: str, sha256: str | None) -> ListedFile:
        self.hashes.append(sha256)
        return super().direct(project, url, sha256)


def _world(source: MemorySource, request: Request, knowledge: Knowledge | None = None) -> World:
    return World(request=request, target=_TARGET, source=source, knowledge=knowledge or Knowledge())


def test_the_source_is_told_what_the_user_admits_on_this_target() -> None:
    source = _Asked()
    request = Request(
        requirements=_asked("a>=1", "a<3", "a<2; sys_platform == 'win32'", "b>=1"),
        constraints=_asked("a!=2", "c<9", "b<1; sys_platform == 'win32'"),
        overrides=_asked("b==5"),
    )
    world = _world(source, request)
    for project in ("a", "b", "c", "d"):
        world.options(project)
    assert {p: set(text.split(",")) for p, text in source.admitted.items()} == {
        "a": {">=1", "<3", "!=2"},
        "b": {"==5"},
        "c": {"<9"},
        "d": {""},
    }


def test_overrides_take_the_place_of_every_requirement_on_their_project() -> None:
    request = Request(
        requirements=_asked("a", "b>=1"),
        overrides=_asked("b==1", "b!=2", "b==3; sys_platform == 'win32'", "c; os_name == 'nt'"),
    )
    source = _Asked(Wheel(project="a", version="1", requires=("b[x]>=7", "c>=1", "d")))
    world = _world(source, request)
    assert [(e.fact.kind.word, e.fact.detail) for e in world.roots] == [
        ("requirement", "a"),
        ("override", "b==1"),
        ("override", "b!=2"),
    ]
    candidate = world.options("a").candidates[0]
    assert [e.fact.detail for e in world.edges(candidate)] == ["b==1", "b!=2", "d"]


def test_a_requirement_whose_marker_means_nothing_is_asked_wrongly() -> None:
    request = Request(requirements=_asked("a; sys_platform ~= '1.0'"))
    with pytest.raises(UsageError, match="marker") as caught:
        _world(_Asked(), request)
    assert caught.value.where == "test"


def test_the_hashes_asked_for_limit_the_wheels_and_go_with_a_url() -> None:
    wheel = Wheel(project="a", version="1")
    good, other = "a" * 64, "b" * 64
    for hashes, kept, handed in [
        ({good}, 1, good),
        ({other}, 0, other),
        ({good, other}, 1, None),
    ]:
        source = _Asked(wheel)
        asked = (*_asked("a", sha256=frozenset(hashes)), *_asked("a"))
        world = _world(source, Request(requirements=asked))
        assert len(world.options("a").candidates) == kept
        world.direct("a", wheel.url)
        assert source.hashes == [handed]


def test_hashes_of_two_lines_are_both_admitted() -> None:
    one, two = (_asked("a", sha256=frozenset({letter * 64}))[0] for letter in "ab")
    world = _world(_Asked(Wheel(project="a", version="1")), Request(requirements=(one, two)))
    assert len(world.options("a").candidates) == 1


def test_a_wheel_by_url_is_fetched_once() -> None:
    wheel = Wheel(project="a", version="1")
    source = _Asked(wheel)
    world = _world(source, Request(requirements=_asked(f"a @ {wheel.url}")))
    assert world.direct("a", wheel.url) is world.direct("a", wheel.url)
    assert source.hashes == [None]


@pytest.mark.parametrize(
    ("wheel", "message"),
    [
        (Wheel(project="a", version="1", tags="cp311-cp311-manylinux_2_28_x86_64"), "Python 3.12"),
        (Wheel(project="a", version="1", tags="cp312-cp312-win_amd64"), "manylinux_2_28_x86_64"),
        (Wheel(project="a", version="1+rocm6.4"), "it is ROCm"),
        (Wheel(project="a", version="1+cpu"), "it is CPU only"),
        (Wheel(project="a", version="1+cpu", yanked=True), "it is CPU only"),
    ],
)
def test_a_wheel_by_url_that_the_target_has_no_use_for_is_refused(
    wheel: Wheel, message: str
) -> None:
    world = make_world(RandomWorld(requirements=(f"a @ {wheel.url}",), wheels=(wheel,)))
    with pytest.raises(WheelError, match=message) as caught:
        world.direct("a", wheel.url)
    assert caught.value.where == wheel.url


def test_a_yanked_wheel_by_url_is_what_was_asked_for() -> None:
    wheel = Wheel(project="a", version="1", yanked=True)
    world = make_world(RandomWorld(requirements=(f"a @ {wheel.url}",), wheels=(wheel,)))
    assert world.direct("a", wheel.url).direct


def test_metadata_is_read_once_and_only_for_wheels_that_may_fit() -> None:
    class Source(_Asked):
        def metadata(self, file: ListedFile) -> CoreMetadata | None:
            read.append(file.filename)
            return super().metadata(file)

    read: list[str] = []
    wheels = (Wheel(project="a", version="1"), Wheel(project="a", version="2+cu130"))
    world = _world(Source(*wheels), Request(requirements=_asked("a")))
    for _ in range(2):
        for candidate in world.options("a").candidates:
            world.details(candidate)
            world.edges(candidate)
    assert read == [wheels[0].filename]


def test_requires_python_of_metadata_counts_where_the_page_says_nothing() -> None:
    file = Wheel(project="a", version="1").listed()
    assert file.metadata is not None
    metadata = replace(file.metadata, requires_python=SpecifierSet(">=3.13"))
    source = MemorySource([replace(file, metadata=metadata)])
    world = _world(source, Request(requirements=_asked("a")))
    details = world.details(world.options("a").candidates[0])
    assert details.rejection is not None
    assert details.rejection.detail == "for another Python (Requires-Python)"


def test_the_edges_of_an_extra_are_those_it_adds() -> None:
    wheel = Wheel(
        project="a",
        version="1",
        requires=(
            "b",
            "c; extra == 'x'",
            "d; extra != 'x'",
            "e; extra == 'x' or os_name == 'posix'",
        ),
    )
    world = _world(_Asked(wheel), Request(requirements=_asked("a[x]")))
    candidate = world.options("a").candidates[0]
    assert [edge.node for edge in world.edges(candidate)] == ["b", "d", "e"]
    assert [edge.node for edge in world.edges(candidate, "x")] == ["c"]
    assert world.edges(candidate, "y") == ()


_PAIRED = Knowledge(
    marks=(ProjectMark(kind="needs-pairing", project="kernel", value="torch", source="s"),),
    pairings=(
        Pairing(
            project="kernel",
            versions=SpecifierSet("==1.0"),
            partner="torch",
            minor="2.9",
            source="s",
        ),
    ),
)


@pytest.mark.parametrize(
    ("version", "requires", "usable"),
    [
        ("1.0", (), True),
        ("2.0", (), False),
        ("2.0", ("torch==2.9.1",), True),
        ("2.0", ("torch>=2.9",), False),
        ("2.0", ("torch==2.9.1; sys_platform == 'win32'",), False),
        ("2.0", ("numpy==2.0",), False),
    ],
)
def test_a_release_without_a_pairing_is_out_unless_it_pins_its_partner_here(
    version: str, requires: tuple[str, ...], *, usable: bool
) -> None:
    wheel = Wheel(project="kernel", version=version, requires=requires)
    world = _world(_Asked(wheel), Request(requirements=_asked("kernel")), _PAIRED)
    details = world.details(world.options("kernel").candidates[0])
    assert details.usable is usable


@pytest.mark.parametrize(
    ("request_", "pinned"),
    [
        (Request(requirements=_asked("a==1.0")), True),
        (Request(requirements=_asked("a==1.1")), False),
        (Request(requirements=_asked("a>=1.0")), False),
        (Request(requirements=_asked("a==1.0; os_name == 'nt'")), False),
        (Request(requirements=_asked("a @ https://wheels.test/a.whl")), True),
        (Request(requirements=_asked("b"), constraints=_asked("a==1.0")), True),
        (Request(requirements=_asked("b"), overrides=_asked("a==1.0")), True),
        (Request(requirements=_asked("a==1.0"), overrides=_asked("a")), False),
    ],
)
def test_a_person_pins_by_requirement_constraint_or_override(
    request_: Request, *, pinned: bool
) -> None:
    assert _world(_Asked(), request_).user_pins("a", Version("1.0")) is pinned


def test_a_cuda_project_is_one_that_a_definition_or_knowledge_names() -> None:
    world = World(
        request=Request(requirements=()),
        target=_TARGET,
        source=_Asked(),
        knowledge=Knowledge(
            marks=(ProjectMark(kind="cuda-project", project="b", value="", source="s"),),
            pairings=_PAIRED.pairings,
        ),
        cuda_projects=frozenset({"a"}),
    )
    assert [p for p in ("a", "b", "torch", "kernel", "c") if world.is_cuda_project(p)] == [
        "a",
        "b",
        "torch",
    ]
