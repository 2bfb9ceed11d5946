"""A project's listed wheels, sorted out: what is kept, what is ruled out and why."""

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from cudalock.cuda import CudaVersion, parse_compute_capability
from cudalock.host import Target, supported_tags
from cudalock.resolver.candidates import ProjectOptions, build_options, rejection_fact
from cudalock.resolver.demands import make_pins
from cudalock.resolver.facts import FactKind
from cudalock.wheel import (
    FileRejection,
    IndexAnswer,
    Knowledge,
    ListedFile,
    ProjectListing,
    parse_wheel_file,
)
from cudalock.wheel.knowledge import Placeholder

_TAGS = "cp312-cp312-manylinux_2_28_x86_64"
_TARGET = Target(
    python="3.12",
    platform="manylinux_2_28_x86_64",
    cuda=CudaVersion(13, 0),
    capabilities=(parse_compute_capability("12.0"),),
)
_KNOWLEDGE = Knowledge(
    placeholders=(Placeholder(project="x", versions=SpecifierSet("<0.1"), source="s"),)
)


def _listed(name: str, **fields: object) -> ListedFile:
    return ListedFile(
        wheel=parse_wheel_file(name),
        url=f"https://wheels.test/{name}",
        index="wheels",
        index_url="https://wheels.test/",
        **fields,  # type: ignore[arg-type]  # each test names fields of the class
    )


def _options(
    *files: ListedFile,
    target: Target = _TARGET,
    listing: ProjectListing | None = None,
    cuda_project: bool = False,
    sha256: frozenset[str] = frozenset(),
    pinned: str = "none",
) -> ProjectOptions:
    return build_options(
        listing or ProjectListing(project="x", files=files),
        target=target,
        tag_ranks={tag: rank for rank, tag in enumerate(supported_tags(target))},
        python=Version("3.12.0"),
        pins=make_pins(target),
        knowledge=_KNOWLEDGE,
        cuda_project=cuda_project,
        sha256=sha256,
        pinned=lambda version: str(version) == pinned,
    )


def _out(options: ProjectOptions) -> list[tuple[str, str, int]]:
    return [(str(g.version), g.fact.object, g.count) for g in options.ghosts]


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        (_listed("x-1-cp311-cp311-manylinux_2_28_x86_64.whl"), "python"),
        (_listed("x-1-cp312-cp312t-manylinux_2_28_x86_64.whl"), "python"),
        (_listed("x-1-cp312-cp312-win_amd64.whl"), "platform"),
        (_listed("x-1-cp312-cp312-manylinux_2_34_x86_64.whl"), "glibc 2.34"),
        (_listed("x-1-cp312-cp312-manylinux_2_39_x86_64.manylinux_2_34_x86_64.whl"), "glibc 2.34"),
        (_listed("x-1-cp312-cp312-manylinux_2_28_aarch64.whl"), "platform"),
        (_listed("x-1-cp312-cp312-musllinux_1_2_x86_64.whl"), "platform"),
        (_listed("x-1-cp312-cp312-manylinux_9_9_s390x.whl"), "platform"),
        (_listed(f"x-1-{_TAGS}.whl", requires_python=">=3.13"), "requires-python"),
        (_listed(f"x-1-{_TAGS}.whl", requires_python="about 3"), "requires-python"),
        (_listed(f"x-0.0.1-{_TAGS}.whl"), "placeholder"),
        (_listed(f"x-1+rocm6.4-{_TAGS}.whl"), "rocm"),
        (_listed(f"x-1+xpu-{_TAGS}.whl"), "xpu"),
        (_listed(f"x-1+musa-{_TAGS}.whl"), "musa"),
        (_listed(f"x-1+cpu-{_TAGS}.whl"), "cpu"),
        (_listed(f"x-1-{_TAGS}.whl", yanked=True), "yanked"),
        (_listed(f"x-1-{_TAGS}.whl", yanked=""), "yanked"),
    ],
)
def test_a_file_is_ruled_out_for_one_reason(file: ListedFile, kind: str) -> None:
    options = _options(file)
    assert options.candidates == ()
    assert [(g.version, g.fact.object) for g in options.ghosts] == [(file.wheel.version, kind)]


def test_files_of_one_version_and_reason_are_counted_together() -> None:
    options = _options(
        _listed("x-2-cp311-cp311-manylinux_2_28_x86_64.whl"),
        _listed("x-2-cp310-cp310-manylinux_2_28_x86_64.whl"),
        _listed("x-1-cp310-cp310-manylinux_2_28_x86_64.whl"),
        _listed(f"x-2-{_TAGS}.whl"),
    )
    assert _out(options) == [("1", "python", 1), ("2", "python", 2)]
    assert [str(candidate) for candidate in options.candidates] == ["x 2"]


def test_files_that_were_only_glanced_at_count_as_well() -> None:
    listing = ProjectListing(
        project="x",
        files=(_listed("x-2-cp311-cp311-manylinux_2_28_x86_64.whl"),),
        unfit=("x-2-cp39-cp39-manylinux_2_28_x86_64.whl", "x-1-cp312-cp312-win_amd64.whl", "x.whl"),
    )
    assert _out(_options(listing=listing)) == [("1", "platform", 1), ("2", "python", 2)]


def test_a_pin_sets_aside_that_a_release_was_yanked_and_nothing_else() -> None:
    plain = _listed(f"x-1-{_TAGS}.whl", yanked=True)
    cpu = _listed(f"x-1+cpu-{_TAGS}.whl", yanked=True)
    assert [c.file for c in _options(plain, cpu, pinned="1").candidates] == [plain]
    assert _options(plain, pinned="2").candidates == ()
    assert _options(cpu, pinned="1+cpu").candidates == ()


def test_a_target_without_cuda_keeps_the_cpu_build_and_holds_cuda_against_it() -> None:
    target = Target(python="3.12", platform="manylinux_2_28_x86_64", cpu=True)
    options = _options(
        _listed(f"x-1+cpu-{_TAGS}.whl"), _listed(f"x-1+cu130-{_TAGS}.whl"), target=target
    )
    usable = [str(candidate) for candidate in options.candidates if not candidate.violations]
    assert usable == ["x 1+cpu"]


def test_only_wheels_of_a_hash_that_was_asked_for_are_kept() -> None:
    one, two = "a" * 64, "b" * 64
    both = _listed(f"x-1-1-{_TAGS}.whl", sha256=(one, two))
    first = _listed(f"x-1-2-{_TAGS}.whl", sha256=(one,))
    options = _options(both, first, sha256=frozenset({two}))
    assert [candidate.file.sha256 for candidate in options.candidates] == [(two,)]
    assert _out(options) == [("1", "hash", 1)]
    assert _options(both).candidates[0].file.sha256 == (one, two)


def test_the_claims_that_were_not_asked_for_are_set_aside_and_kept() -> None:
    one, two, three = "a" * 64, "b" * 64, "c" * 64
    (candidate,) = _options(
        _listed(f"x-1-{_TAGS}.whl", sha256=(one, two, three)), sha256=frozenset({two})
    ).candidates
    assert candidate.file.sha256 == (two,)
    assert [aside.sha256 for aside in candidate.file.aside] == [one, three]


def test_a_wheel_whose_hash_is_open_may_be_the_one_that_was_asked_for() -> None:
    one, two, asked = "a" * 64, "b" * 64, frozenset({"c" * 64})
    none = _listed(f"x-1-{_TAGS}.whl", sha256=())
    several = _listed(f"x-2-{_TAGS}.whl", sha256=(one, two))
    options = _options(none, several, sha256=asked)
    assert [str(candidate) for candidate in options.candidates] == ["x 2", "x 1"]
    # Unless another wheel for this target is claimed to be it.
    other = _listed("x-3-cp39-cp39-win_amd64.whl", sha256=tuple(asked))
    assert len(_options(none, several, other, sha256=asked).candidates) == 2
    known = _listed(f"x-0.5-{_TAGS}.whl", sha256=tuple(asked))
    options = _options(none, several, known, sha256=asked)
    assert [str(candidate) for candidate in options.candidates] == ["x 0.5"]
    assert _out(options) == [("1", "hash-open", 1), ("2", "hash-open", 1)]
    # Nobody looked at them, so nothing is proved by their being left out.
    assert {ghost.fact.kind.proves_nothing for ghost in options.ghosts} == {True}


def test_a_project_in_quarantine_is_a_fact_of_its_own() -> None:
    rejection = FileRejection(filename="x", kind="quarantined", reason="PEP 792", where="page")
    listing = ProjectListing(project="x", rejections=(rejection,))
    (ghost,) = _options(listing=listing).ghosts
    assert (ghost.version, ghost.fact.detail) == (
        None,
        "in quarantine: its index offers none of its files",
    )
    assert not ghost.fact.kind.proves_nothing


def test_a_wheel_that_serves_the_gpu_by_ptx_only_is_marked() -> None:
    options = _options(
        _listed(f"x-1+cu126-{_TAGS}.whl"),
        target=Target(
            python="3.12",
            platform="manylinux_2_28_x86_64",
            cuda=CudaVersion(12, 8),
            capabilities=(parse_compute_capability("9.0"), parse_compute_capability("12.0")),
        ),
    )
    assert "CUDA 12.6 has no sm_120" in (options.candidates[0].last_resort or "")


def test_a_file_that_nobody_can_read_may_be_what_is_missing() -> None:
    rejections = [
        FileRejection(filename=name, kind=kind, reason="", where="https://wheels.test/#a")
        for name, kind in [
            (f"x-1-{_TAGS}.whl", "bad-hash"),
            ("x.whl", "bad-url"),
            (f"x-one-{_TAGS}.whl", "bad-name"),
            ("x-1.tar.gz", "not-a-wheel"),
        ]
    ]
    listing = ProjectListing(project="x", rejections=tuple(rejections))
    ghosts = _options(listing=listing).ghosts
    assert [(str(g.version), g.fact.object) for g in ghosts] == [
        ("1", "bad-hash"),
        ("None", "bad-url"),
        ("None", "bad-name"),
    ]
    assert all(ghost.fact.kind.proves_nothing for ghost in ghosts)


@pytest.mark.parametrize("status", ["partial", "unrecorded"])
def test_a_page_that_was_not_seen_whole_leaves_anything_open(status: str) -> None:
    answers = [
        IndexAnswer(index="i", url=f"https://wheels.test/{name}/", folder=name, status=each)  # type: ignore[arg-type]  # the test's own words
        for name, each in [("cu130", "listed"), ("cu131", status), ("cu132", "absent")]
    ]
    listing = ProjectListing(project="x", answers=tuple(answers))
    options = _options(listing=listing, cuda_project=True)
    assert not options.complete
    assert [(g.version, g.fact.kind) for g in options.ghosts] == [(None, FactKind.INCOMPLETE)]
    assert options.ghosts[0].fact.source == "https://wheels.test/cu131/"
    # Nothing of CUDA 13 serves 7.0, and so nothing that a whole page could list would.
    old = Target(
        python="3.12",
        platform="manylinux_2_28_x86_64",
        cuda=CudaVersion(13, 0),
        capabilities=(parse_compute_capability("7.0"),),
    )
    assert _options(listing=listing, target=old, cuda_project=True).ghosts == ()
    assert len(_options(listing=listing, target=old, cuda_project=False).ghosts) == 1


def test_a_reason_that_has_no_words_of_its_own_is_said_by_its_name() -> None:
    assert rejection_fact("x", "strange").detail == "strange"
    assert rejection_fact("x", "unknown").kind is FactKind.UNKNOWN
    assert rejection_fact("x", "unreadable").kind is FactKind.UNKNOWN
    assert rejection_fact("x", "yanked").kind is FactKind.REJECTION
