"""What is said of a finished set: what was held back, what is not known, what to mind."""

from dataclasses import replace

import pytest
from packaging.version import Version

from cudalock.cuda import CudaVersion, parse_compute_capability, parse_driver_version
from cudalock.host import Target
from cudalock.index.knowledge_files import parse_knowledge
from cudalock.resolver.held_back import format_versions, plural
from cudalock.resolver.notes import describe
from cudalock.resolver.request import Request
from cudalock.resolver.resolution import Resolution, solve
from cudalock.resolver.source import MemorySource
from cudalock.resolver.world import World
from cudalock.wheel import Knowledge, ProjectListing
from random_worlds import RandomWorld, Wheel, make_world

_OLD_GPU = Target(
    python="3.12",
    platform="manylinux_2_28_x86_64",
    driver=parse_driver_version("570.26"),
    driver_cuda=CudaVersion(12, 8),
    cuda=CudaVersion(12, 8),
    capabilities=(parse_compute_capability("12.0"),),
)


def _described(spec: RandomWorld, target: Target | None = None) -> Resolution:
    world = make_world(spec, target=target)
    return describe(world, solve(world))


def _said(resolution: Resolution) -> list[tuple[str, str]]:
    return [(warning.code, warning.message) for warning in resolution.warnings]


def _with_knowledge(spec: RandomWorld, knowledge: str, target: Target | None = None) -> Resolution:
    """Describe with knowledge in the words of its files."""
    given = make_world(spec, target=target)
    world = World(
        request=given.request,
        target=given.target,
        source=MemorySource([wheel.listed() for wheel in spec.wheels]),
        knowledge=parse_knowledge(knowledge, where="test"),
    )
    return describe(world, solve(world))


_PARTS = """
[[entry]]
kind = "toolkit"
project = "cuda-toolkit"
source = "s"
date = "2026-12-01"

[[entry]]
kind = "toolkit-part"
project = "nvcc"
value = "toolkit-number"
source = "s"
date = "2026-12-01"

[[entry]]
kind = "cuda-number"
project = "cuda-python"
source = "s"
date = "2026-12-01"

[[entry]]
kind = "runtime-library"
project = "cudart-cu12"
value = 12
source = "s"
date = "2026-12-01"

[[entry]]
kind = "cuda-project"
project = ["kernel", "triton"]
source = "s"
date = "2026-12-01"

[[entry]]
kind = "compiles"
project = "triton"
source = "s"
date = "2026-12-01"

[[entry]]
kind = "pairing"
project = "paired"
versions = "==1.0"
value = { torch = "2.9" }
source = "s"
date = "2026-12-01"
"""


def test_packages_are_described_by_name_with_what_they_require_here() -> None:
    spec = RandomWorld(
        requirements=("b[x]",),
        wheels=(
            Wheel(
                project="b",
                version="1.0+cu130",
                requires=("a", "a>=1; extra == 'x'", "c; extra == 'x'", "d; os_name == 'nt'"),
                extras=frozenset("x"),
            ),
            Wheel(project="a", version="1.0"),
            Wheel(project="c", version="1.0"),
        ),
        families=(("b", "z"),),
    )
    resolution = _described(spec)
    assert [package.project for package in resolution.packages] == ["a", "b", "c"]
    package = resolution.packages[1]
    assert (package.extras, package.dependencies) == (frozenset("x"), ("a", "c"))
    assert package.variant.cuda == CudaVersion(13, 0)
    assert (resolution.driver, resolution.toolkit) == (parse_driver_version("580.65.06"), None)
    assert _said(resolution) == []


def test_the_release_of_the_toolkit_is_the_one_the_parts_agreed_on() -> None:
    spec = RandomWorld(
        requirements=("nvcc<13.0.9",), wheels=(Wheel(project="nvcc", version="13.0.8"),)
    )
    assert _with_knowledge(spec, _PARTS).toolkit == CudaVersion(13, 0)


def test_newer_releases_that_the_target_rules_out_are_held_back_with_the_reason() -> None:
    spec = RandomWorld(
        requirements=("a",),
        wheels=(
            Wheel(project="a", version="1.0+cu126"),
            Wheel(project="a", version="2.0+cu130"),
            Wheel(project="a", version="3.0+cu130"),
            Wheel(project="a", version="4.0+cu130"),
            Wheel(project="a", version="5.0rc1+cu130"),
        ),
    )
    target = replace(_OLD_GPU, capabilities=())
    [(code, message)] = _said(_described(spec, target))
    assert code == "held-back"
    assert message.startswith("held back: a 2.0 to 4.0 on `wheels` are CUDA 13, which needs driver")
    assert message.endswith("(label +cu130); the target has driver 570.26")


def test_one_release_is_held_back_in_the_singular_by_the_wheel_it_clashes_with() -> None:
    spec = RandomWorld(
        requirements=("b==1.0", "a"),
        wheels=(
            Wheel(project="a", version="1.0"),
            Wheel(project="a", version="2.0"),
            Wheel(project="b", version="1.0"),
        ),
        families=(("a", "b"),),
    )
    [(code, message)] = _said(_described(spec))
    assert code == "held-back"
    assert message == (
        "held back: a 2.0 on `wheels`, because b 1.0 shares one version with the other parts of a-b"
        " (families)"
    )


def test_a_release_without_metadata_is_held_back_and_one_that_only_clashes_is_not_told() -> None:
    spec = RandomWorld(
        requirements=("a", "b"),
        wheels=(
            Wheel(project="a", version="1.0"),
            Wheel(project="a", version="2.0", requires=("b<1",)),
            Wheel(project="a", version="3.0", requires=None),
            Wheel(project="b", version="1.0"),
            Wheel(project="b", version="2.0", requires=("missing",)),
        ),
    )
    assert _said(_described(spec)) == [
        ("held-back", "held back: a 3.0 on `wheels` is without metadata that can be had")
    ]


def test_a_clash_that_is_about_something_else_than_what_the_set_agreed_on_is_not_told() -> None:
    spec = RandomWorld(
        requirements=("a", "b", "torch"),
        wheels=(
            Wheel(project="a", version="1.0"),
            Wheel(project="a", version="2.0", requires=("b<1",)),
            Wheel(project="b", version="1.0"),
            Wheel(project="torch", version="2.9.1+cu130"),
            Wheel(project="torch", version="2.9.2+cu130", requires=("b<1",)),
        ),
        families=(("a", "z"),),
        pairings=(("kernel", "==1.0", "torch", "2.9"),),
    )
    assert _said(_described(spec)) == []


def test_a_release_that_nobody_had_to_read_is_not_told() -> None:
    spec = RandomWorld(
        requirements=("cuda-python",),
        wheels=(
            Wheel(project="cuda-python", version="13.0.3"),
            Wheel(project="cuda-python", version="13.3.1"),
        ),
    )
    assert _said(_with_knowledge(spec, _PARTS)) == []


def test_what_was_not_read_and_what_is_not_in_the_set_is_not_told() -> None:
    spec = RandomWorld(
        requirements=("a", "b; sys_platform == 'win32'"),
        wheels=(Wheel(project="a", version="1.0"), Wheel(project="a", version="2.0")),
        constraints=("a<2",),
        overrides=("b; sys_platform == 'win32'",),
    )
    assert _said(_described(spec)) == []


def test_a_long_place_is_shortened() -> None:
    label = "cu126." + "x" * 80
    spec = RandomWorld(
        requirements=("a",),
        wheels=(Wheel(project="a", version="1.0"), Wheel(project="a", version=f"2.0+{label}")),
    )
    [(_, message)] = _said(_described(spec))
    assert f"(label +{label}"[:58] + "…)" in message


def test_a_yanked_release_that_was_pinned_is_named() -> None:
    spec = RandomWorld(
        requirements=("a==1.0", "b==1.0"),
        wheels=(Wheel(project="a", version="1.0", yanked=True), Wheel(project="b", version="1.0")),
    )
    assert _said(_described(spec)) == [("yanked", "a 1.0 was yanked by its publisher")]
    listed = [wheel.listed() for wheel in spec.wheels]
    world = make_world(spec, source=MemorySource([replace(listed[0], yanked="broken"), listed[1]]))
    assert _said(describe(world, solve(world))) == [
        ("yanked", "a 1.0 was yanked by its publisher: broken")
    ]


def test_a_wheel_that_serves_the_gpu_by_ptx_only_is_named() -> None:
    spec = RandomWorld(requirements=("a",), wheels=(Wheel(project="a", version="1.0+cu126"),))
    [(code, message)] = _said(_described(spec, _OLD_GPU))
    assert code == "ptx-only"
    assert message.startswith("a 1.0+cu126 is taken because nothing else serves the GPU: CUDA 12.6")


def test_wheels_of_cuda_projects_of_which_nothing_is_known_are_named() -> None:
    spec = RandomWorld(
        requirements=("kernel", "triton", "ext", "lib", "numpy", "paired"),
        wheels=(
            Wheel(project="kernel", version="1.0"),
            Wheel(project="triton", version="1.0"),
            Wheel(project="ext", version="1.0", requires=("torch",)),
            Wheel(project="lib", version="1.0", requires=("cudart-cu12; extra == 'x'",)),
            Wheel(project="numpy", version="1.0", requires=("lib",)),
            Wheel(project="paired", version="1.0"),
            Wheel(project="torch", version="2.9+cu130"),
        ),
    )
    [(code, message)] = _said(_with_knowledge(spec, _PARTS))
    assert code == "unknown-cuda"
    assert message.endswith("built for: ext 1.0, kernel 1.0")


def test_what_loads_a_runtime_library_is_built_for_cuda() -> None:
    spec = RandomWorld(
        requirements=("lib[x]",),
        wheels=(
            Wheel(project="lib", version="1.0", requires=("cudart-cu12; extra == 'x'",)),
            Wheel(project="cudart-cu12", version="12.8.1", tags="py3-none-any"),
        ),
    )
    target = replace(_OLD_GPU, capabilities=())
    told = _said(_with_knowledge(spec, _PARTS, target))
    assert [code for code, _ in told] == ["unknown-cuda", "missing-extra"]


def test_evidence_that_disagrees_is_shown_with_every_place() -> None:
    spec = RandomWorld(
        requirements=("a",),
        wheels=(
            Wheel(project="a", version="1.0+cu130", requires=("cuda-toolkit==13.0.2",)),
            Wheel(project="a", version="2.0+cu126", requires=("cuda-toolkit==12.8.1",)),
            Wheel(project="cuda-toolkit", version="12.8.1", tags="py3-none-any"),
        ),
    )
    told = _said(_with_knowledge(spec, _PARTS, replace(_OLD_GPU, capabilities=())))
    assert told[0][0] == "evidence-disagrees"
    assert told[0][1] == (
        "a 2.0+cu126: Requires-Dist cuda-toolkit==12.8.1 (METADATA); label +cu126"
        " (a-2.0+cu126-cp312-cp312-manylinux_2_28_x86_64.whl)"
    )


def test_a_label_with_a_major_alone_is_said_under_strict() -> None:
    spec = RandomWorld(requirements=("a",), wheels=(Wheel(project="a", version="1.0+cu12"),))
    target = replace(_OLD_GPU, capabilities=())
    [(code, message)] = _said(_described(spec, target))
    assert (code, message.endswith("in that major: a 1.0+cu12")) == ("major-only", True)
    assert _said(_described(spec, replace(target, cuda_compat="minor"))) == []


@pytest.mark.parametrize(
    ("requirements", "told"),
    [
        (("cuda-python",), "cuda-python 13.3.1 is for CUDA 13.3; the set is CUDA 13.1"),
        (("cuda-python", "nvcc"), "cuda-python 13.3.1 is for CUDA 13.3; the set is CUDA 13.0"),
    ],
)
def test_a_project_numbered_by_cuda_of_another_minor_is_named(
    requirements: tuple[str, ...], told: str
) -> None:
    spec = RandomWorld(
        requirements=requirements,
        wheels=(
            Wheel(project="cuda-python", version="13.3.1"),
            Wheel(project="nvcc", version="13.0.8"),
        ),
    )
    target = Target(python="3.12", platform="manylinux_2_28_x86_64", cuda=CudaVersion(13, 1))
    assert _said(_with_knowledge(spec, _PARTS, target)) == [("other-minor", told)]


def test_under_minor_parts_of_another_release_than_the_toolkit_are_named() -> None:
    spec = RandomWorld(
        requirements=("cuda-toolkit<13.1", "nvcc"),
        wheels=(
            Wheel(project="cuda-toolkit", version="13.0.2"),
            Wheel(project="nvcc", version="13.3.8"),
        ),
    )
    target = Target(
        python="3.12",
        platform="manylinux_2_28_x86_64",
        cuda=CudaVersion(13, 1),
        cuda_compat="minor",
    )
    assert _said(_with_knowledge(spec, _PARTS, target)) == [
        ("other-minor", "nvcc 13.3.8 is for CUDA 13.3; the set is CUDA 13.0")
    ]
    # Without a toolkit the release that was asked for is the set's.
    alone = replace(spec, requirements=("nvcc",))
    assert _said(_with_knowledge(alone, _PARTS, target)) == [
        ("other-minor", "nvcc 13.3.8 is for CUDA 13.3; the set is CUDA 13.1")
    ]


def test_extras_that_a_wheel_lacks_are_named_in_order() -> None:
    spec = RandomWorld(
        requirements=("a[y,x,z]",),
        wheels=(Wheel(project="a", version="1.0", extras=frozenset("z")),),
    )
    assert _said(_described(spec)) == [("missing-extra", "a 1.0 has no extra x, y")]


def test_metadata_that_stands_in_for_a_wheels_own_is_named_with_its_source() -> None:
    spec = RandomWorld(requirements=("a[x]",), wheels=(Wheel(project="a", version="1.0"),))
    file = spec.wheels[0].listed()
    assert file.metadata is not None
    assumed = replace(file.metadata, assumed=True, source="a lock file")
    world = make_world(spec, source=MemorySource([replace(file, metadata=assumed)]))
    [warning] = describe(world, solve(world)).warnings
    assert (warning.code, warning.facts) == ("assumed-metadata", ("a 1.0: a lock file",))


def test_what_an_index_notes_of_a_project_is_handed_on() -> None:
    spec = RandomWorld(requirements=("a",), wheels=(Wheel(project="a", version="1.0"),))
    listing = ProjectListing(
        project="a", files=(spec.wheels[0].listed(),), notes=("a shadow copy",)
    )
    world = make_world(spec, source=MemorySource([], listings=[listing]))
    assert _said(describe(world, solve(world))) == [("index", "a shadow copy")]


def test_a_target_without_cuda_needs_no_driver() -> None:
    target = Target(python="3.12", platform="manylinux_2_28_x86_64", cpu=True)
    world = World(
        request=Request(requirements=()),
        target=target,
        source=MemorySource([]),
        knowledge=Knowledge(),
    )
    resolution = describe(world, solve(world))
    assert (resolution.packages, resolution.driver) == ((), None)


def test_versions_and_what_is_said_of_several() -> None:
    versions = [Version(text) for text in ("1.0", "2.0", "3.0")]
    assert format_versions(versions[:1]) == "1.0"
    assert format_versions(versions[:2]) == "1.0 and 2.0"
    assert format_versions(versions) == "1.0 to 3.0"
    assert plural("is built for CUDA 12") == "are built for CUDA 12"
    assert plural("shares one version") == "share one version"
    assert plural("has no metadata") == "has no metadata"


@pytest.mark.parametrize(
    ("versions", "besides", "told"),
    [
        ("1 2 3", "", "1 to 3"),
        ("1 2 3", "4 0", "1 to 3"),
        ("1 2 3 5", "4", "1 to 3 and 5"),
        ("1 3", "2", "1 and 3"),
        ("1 2 3 5 6 8", "4 7", "1 to 3, 5, 6 and 8"),
        ("1 3 5 7", "2 4 6", "1 to 7 (4 of its releases)"),
    ],
)
def test_a_range_holds_no_version_of_which_the_same_is_not_said(
    versions: str, besides: str, told: str
) -> None:
    assert format_versions([*map(Version, versions.split())], map(Version, besides.split())) == told
