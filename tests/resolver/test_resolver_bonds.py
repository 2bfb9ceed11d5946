"""What binds wheels to each other by name, version and label, whatever the machine."""

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from cudalock.cuda import parse_cuda_version
from cudalock.resolver.bonds import (
    abi_demands,
    knowledge_demands,
    label_requirement,
    labelled_release,
)
from cudalock.wheel.build_facts import CxxAbi
from cudalock.wheel.knowledge import Family, Knowledge, Pairing, ProjectMark

_KNOWLEDGE = Knowledge(
    families=(Family(name="flash", projects=("flash-python", "flash-cubin"), source="s"),),
    pairings=(
        Pairing(
            project="kernel",
            versions=SpecifierSet("==0.3.21"),
            partner="torch",
            minor="2.9",
            source="s",
        ),
    ),
)
_LABELS = Knowledge(
    pairings=_KNOWLEDGE.pairings,
    marks=(ProjectMark(kind="label-word", project="torch", value="", source="s"),),
    cxx_abis=(
        CxxAbi(project="torch", versions=SpecifierSet(">=2.7"), new=True, source="s"),
        CxxAbi(project="torch", versions=SpecifierSet("<2.6"), new=False, source="s"),
        CxxAbi(
            project="torch",
            versions=SpecifierSet(">=2.6,<2.7"),
            new=False,
            cuda=frozenset({parse_cuda_version("12.4")}),
            source="s",
        ),
    ),
)
_ABI = "<torch C++ ABI>"


@pytest.mark.parametrize(
    ("project", "version", "demands"),
    [
        ("flash-cubin", "0.6.4+cu130", [("<flash>", {"0.6.4"})]),
        ("kernel", "0.3.21+cu130", [("<libtorch>", {"2.9"})]),
        ("kernel", "0.4", []),
        ("torch", "2.9.1+cu130", [("<libtorch>", {"2.9"})]),
        ("torch", "2.11.0.dev20260212+cu130", [("<libtorch>", {"2.11.0.dev20260212"})]),
        ("numpy", "2.0", []),
    ],
)
def test_a_name_and_a_version_alone_demand_what_knowledge_says(
    project: str, version: str, demands: list[tuple[str, set[str]]]
) -> None:
    found = knowledge_demands(project, Version(version), _KNOWLEDGE)
    assert [(demand.package, set(demand.values)) for demand in found] == demands


@pytest.mark.parametrize(
    ("project", "version", "demands"),
    [
        ("scatter", "2.1.2+pt28cu128", [("<libtorch>", {"2.8"})]),
        ("scatter", "2.1.2+pt210cu128", [("<libtorch>", {"2.10"})]),
        ("flash", "2.8+cu12torch2.8cxx11abiTRUE", [("<libtorch>", {"2.8"}), (_ABI, {"1"})]),
        ("flash", "2.8+cu12torch2.4cxx11abiFALSE", [("<libtorch>", {"2.4"}), (_ABI, {"0"})]),
        ("natten", "0.21+cu.13.0.torch.2.11", [("<libtorch>", {"2.11"})]),
        ("natten", "0.21+cu130torch2.13.dev20260610", [("<libtorch>", {"2.13.0.dev20260610"})]),
        ("natten", "0.21+cu130torch2.9.0rc1", [("<libtorch>", {"2.9.0rc1"})]),
        ("natten", "0.21+cu130torch2.9.1", [("<libtorch>", {"2.9"})]),
        ("natten", "0.21+cu130torch2", []),
        ("natten", "0.21+cu130", []),
        ("sage", "2.2+cu128torch2.9.0andhigher.post4", []),
        # A pairing outranks the label.
        ("kernel", "0.3.21+cu130torch2.8", [("<libtorch>", {"2.9"})]),
        ("torch", "2.8.0+cpu.cxx11.abi", [("<libtorch>", {"2.8"})]),
    ],
)
def test_a_label_binds_to_the_release_and_the_abi_that_it_names(
    project: str, version: str, demands: list[tuple[str, set[str]]]
) -> None:
    found = knowledge_demands(project, Version(version), _LABELS)
    assert [(demand.package, set(demand.values)) for demand in found] == demands


def test_a_label_binds_nobody_where_no_project_is_known_to_be_meant() -> None:
    version = Version("2.8+cu12torch2.8cxx11abiTRUE")
    assert knowledge_demands("flash", version, _KNOWLEDGE) == []
    assert labelled_release("flash", version, _KNOWLEDGE) == ("", None)


@pytest.mark.parametrize(
    ("project", "version", "required"),
    [
        ("sage", "2.2+cu128torch2.9.0andhigher.post4", "torch>=2.9.0"),
        ("sage", "2.2+cu128torch2.9andhigher", "torch>=2.9"),
        ("sage", "2.2+cu130torch2.13.0.dev20260610andhigher", "torch>=2.13.0.dev20260610"),
        ("sage", "2.2+cu130torch2andhigher", None),
        ("sage", "2.2+cu128torch2.9.0", None),
        ("kernel", "0.3.21+cu128torch2.8andhigher", None),
        ("torch", "2.9.0", None),
    ],
)
def test_a_label_that_allows_newer_releases_is_a_requirement(
    project: str, version: str, required: str | None
) -> None:
    found = label_requirement(project, Version(version), _LABELS)
    assert (None if found is None else str(found)) == required


@pytest.mark.parametrize(
    ("version", "cuda", "new"),
    [
        ("2.7.0", None, "1"),
        ("2.5.1+cu121", "12.1", "0"),
        ("2.6.0", "12.4", "0"),
        ("2.6.0", "12.6", None),
        ("2.6.0", None, None),
    ],
)
def test_the_abi_of_a_build_is_that_of_its_release_and_cuda(
    version: str, cuda: str | None, new: str | None
) -> None:
    release = parse_cuda_version(cuda) if cuda is not None else None
    found = abi_demands("torch", Version(version), release, _LABELS)
    assert [(d.package, set(d.values)) for d in found] == ([(_ABI, {new})] if new else [])
    assert abi_demands("flash", Version(version), release, _LABELS) == []
