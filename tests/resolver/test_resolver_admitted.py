import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from cudalock.errors import UsageError
from cudalock.resolver.admitted import admitted_by_request
from cudalock.resolver.request import Request, Requested

_LINUX = {"sys_platform": "linux", "python_version": "3.12", "extra": ""}


def requested(*texts: str) -> tuple[Requested, ...]:
    return tuple(Requested(requirement=Requirement(text), where=f"line {text}") for text in texts)


def test_requirements_and_constraints_admit_together_where_their_markers_hold() -> None:
    request = Request(
        requirements=requested("torch>=2.9", "Numpy<3", "numpy>1; sys_platform == 'win32'"),
        constraints=requested("torch<2.11", "scipy==1.0", "torch<2; python_version < '3'"),
    )
    assert admitted_by_request(request, _LINUX) == {
        "torch": SpecifierSet(">=2.9,<2.11"),
        "numpy": SpecifierSet("<3"),
        "scipy": SpecifierSet("==1.0"),
    }


def test_an_override_takes_the_place_of_requirements_and_not_of_constraints() -> None:
    request = Request(
        requirements=requested("torch==2.9.1", "numpy<2"),
        constraints=requested("torch<3"),
        overrides=requested("torch>=2.10", "numpy; sys_platform == 'win32'"),
    )
    assert admitted_by_request(request, _LINUX) == {"torch": SpecifierSet(">=2.10,<3")}


def test_a_marker_that_means_nothing_is_refused_where_it_is_written() -> None:
    request = Request(requirements=requested("torch; sys_platform ~= '1'"))
    with pytest.raises(UsageError) as caught:
        admitted_by_request(request, _LINUX)
    assert caught.value.where == request.requirements[0].where
