"""What is said of the builds in a set: GPUs without code, compilers, labels, names."""

from dataclasses import replace

import pytest

from cudalock.cuda import CudaVersion, parse_compute_capability, parse_driver_version
from cudalock.host import Target
from cudalock.index.knowledge_files import parse_knowledge
from cudalock.resolver.build_notes import build_warnings
from cudalock.resolver.resolution import ResolvedPackage
from cudalock.wheel.device_code import DeviceCode, Library, parse_image
from cudalock.wheel.evidence import Variant
from random_worlds import Wheel

_TARGET = Target(
    python="3.12",
    platform="manylinux_2_28_x86_64",
    driver=parse_driver_version("570.26"),
    driver_cuda=CudaVersion(12, 8),
    cuda=CudaVersion(12, 8),
    capabilities=(parse_compute_capability("12.0"), parse_compute_capability("9.0")),
)
_KNOWLEDGE = parse_knowledge(
    """
[[entry]]
kind = "label-word"
project = "torch"
source = "s"
date = "2026-01-01"

[[entry]]
kind = "pairing"
project = "kernel"
versions = "==1.0"
value = { torch = "2.9" }
source = "its notes"
date = "2026-01-01"

[[entry]]
kind = "jit-floor"
project = "jit"
value = { capabilities = ["12.0", "12.1"], toolkit = "12.9" }
source = "a thread"
date = "2026-01-01"

[[entry]]
kind = "family"
project = "jit"
value = ["jit", "jit-cubin", "jit-cache"]
source = "s"
date = "2026-01-01"

[[entry]]
kind = "architectures"
project = "jit-cache"
value = { images = ["sm_120a"] }
source = "s"
date = "2026-01-01"

[[entry]]
kind = "architectures"
project = "jit-cubin"
value = { images = ["sm_100a"], as-data = true }
source = "s"
date = "2026-01-01"

[[entry]]
kind = "jit-floor"
project = "alone"
value = { capabilities = ["12.0"], toolkit = "12.9" }
source = "a thread"
date = "2026-01-01"

[[entry]]
kind = "bundled-compiler"
project = "bundled"
versions = "<2"
value = { cuda = "12.6", remedy = "set THE_COMPILER" }
source = "a thread"
date = "2026-01-01"

[[entry]]
kind = "bundled-compiler"
project = "bundled"
versions = ">=2"
value = { cuda = "99.0", remedy = "set THE_COMPILER" }
source = "a thread"
date = "2026-01-01"

[[entry]]
kind = "squatted"
project = "taken"
value = "somebody holds it"
source = "a thread"
date = "2026-01-01"
""",
    where="test",
)


def _package(
    project: str,
    version: str = "1.0",
    code: DeviceCode | None = None,
    index: str = "wheels",
) -> ResolvedPackage:
    file = Wheel(project=project, version=version).listed()
    assert file.metadata is not None
    return ResolvedPackage(
        project=project,
        version=file.wheel.version,
        file=replace(file, index=index),
        metadata=file.metadata,
        variant=Variant(state="known", cuda=CudaVersion(12, 8), runtime=12, device_code=code),
        extras=frozenset(),
        dependencies=(),
    )


def _said(
    package: ResolvedPackage, target: Target = _TARGET, toolkit: str | None = None
) -> list[tuple[str, str]]:
    release = CudaVersion(*map(int, toolkit.split("."))) if toolkit is not None else None
    found = build_warnings((package,), target=target, knowledge=_KNOWLEDGE, toolkit=release)
    return [(warning.code, warning.message) for warning in found]


def _code(*, as_data: bool = False, **libraries: str) -> DeviceCode:
    return DeviceCode(
        libraries=tuple(
            Library(name=name, images=tuple(parse_image(word) for word in text.split()))
            for name, text in libraries.items()
        ),
        source="read",
        as_data=as_data,
    )


def test_libraries_that_lack_a_gpu_are_named_with_what_they_hold() -> None:
    package = _package("a", code=_code(common="sm_90 sm_120", flash="sm_80 sm_90a"))
    assert _said(package) == [
        (
            "gpu-in-part",
            "a 1.0 serves sm_120 in part: nothing for it in flash (holds sm_80 and sm_90a) (read)",
        )
    ]
    found = build_warnings((package,), target=_TARGET, knowledge=_KNOWLEDGE, toolkit=None)
    assert next(found).facts == ("flash: sm_80 and sm_90a",)


def test_code_that_is_carried_as_data_is_said_for_each_gpu_it_does_not_serve() -> None:
    package = _package("a", code=_code(as_data=True, cubins="sm_100a sm_100f"))
    assert [message for _, message in _said(package)] == [
        f"a 1.0 holds sm_100a and sm_100f only, none of which runs on {sm} (read)"
        for sm in ("sm_120", "sm_90")
    ]


def test_ptx_newer_than_the_driver_serves_nothing() -> None:
    package = _package("a", code=_code(one="sm_90 sm_120", two="sm_90 compute_90@8.8"))
    assert [code for code, _ in _said(package)] == ["gpu-in-part"]
    newer = replace(_TARGET, driver=None, driver_cuda=CudaVersion(12, 9))
    assert _said(package, newer) == []


def test_what_is_served_or_not_known_or_asked_of_no_gpu_is_not_told() -> None:
    package = _package("a", code=_code(one="sm_90 sm_120"))
    assert _said(package) == []
    assert _said(_package("a")) == []
    lacking = _package("a", code=_code(one="sm_80 sm_90a", two="sm_120"))
    assert _said(lacking, replace(_TARGET, cpu=True, cuda=None)) == []


@pytest.mark.parametrize(
    ("toolkit", "told"), [(None, True), ("12.8", True), ("12.9", False), ("13.0", False)]
)
def test_what_compiles_here_needs_a_toolkit_that_knows_the_gpu(
    toolkit: str | None, told: bool
) -> None:
    found = _said(_package("jit", "0.6.18"), toolkit=toolkit)
    assert [code for code, _ in found] == (["compiler-too-old"] if told else [])
    assert not told or (
        "jit 0.6.18 compiles for sm_120 only with CUDA 12.9 or newer" in found[0][1]
        and found[0][1].endswith(
            "`--cuda 12.9` would allow one that does, and jit-cache may bring its kernels compiled"
        )
    )
    [(_, message)] = _said(_package("alone"))
    assert message.endswith("`--cuda 12.9` would allow one that does")


def test_a_toolkit_that_is_not_known_and_another_gpu_need_no_words() -> None:
    assert _said(_package("jit"), replace(_TARGET, cuda=None)) == []
    hopper = replace(_TARGET, capabilities=(parse_compute_capability("9.0"),))
    assert _said(_package("jit"), hopper) == []


def test_a_compiler_in_a_wheel_that_does_not_know_the_gpu_is_named_with_what_helps() -> None:
    [(code, message)] = _said(_package("bundled"))
    assert code == "compiler-too-old"
    assert message == (
        "bundled 1.0 compiles with a ptxas of CUDA 12.6, which has no sm_120a: "
        "set THE_COMPILER (a thread)"
    )
    # Of a release that no table knows nothing is said.
    assert _said(_package("bundled", "2.0")) == []


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("1.0+cu128torch2.8", "its label says torch 2.8, and it was built for torch 2.9"),
        ("1.0+cu128torch2.10andhigher", "its label says torch 2.10, and it was built for"),
        ("1.0+cu128torch2.8andhigher", None),
        ("1.0+cu128torch2.9.1", None),
        ("1.0+cu128", None),
        ("2.0+cu128torch2.8", None),
    ],
)
def test_a_label_that_contradicts_a_pairing_is_shown(version: str, told: str | None) -> None:
    found = _said(_package("kernel", version))
    assert [code for code, _ in found] == (["evidence-disagrees"] if told else [])
    assert told is None or told in found[0][1]


def test_the_unread_part_of_a_label_is_named() -> None:
    [(code, message)] = _said(_package("a", "1.0+cu128.fastpath.x.slow"))
    assert code == "unread-label"
    assert "a 1.0+cu128.fastpath.x.slow: `fastpath.x.slow` in its label" in message


def test_a_name_that_is_somebody_elses_is_told_where_it_comes_from_the_default_index() -> None:
    [(code, message)] = _said(_package("taken", index="default"))
    assert (code, message) == (
        "squatted",
        "taken 1.0 comes from the default index: somebody holds it (a thread)",
    )
    assert _said(_package("taken", index="pytorch")) == []
