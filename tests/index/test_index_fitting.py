"""Files of a survey for one Python and platform: by tags, and by what the index says of Requires-Python."""

import pytest

from cudalock.host.interpreter import parse_python
from cudalock.host.platforms import parse_platform
from cudalock.index.definitions import Definition
from cudalock.index.fitting import fitting
from cudalock.index.survey import ProjectSurvey, Survey
from cudalock.wheel.filename import parse_wheel_file
from cudalock.wheel.listing import ListedFile

_PAGE = "https://index.example.org/whl"


def _fits(
    tag: str, *, python: str | None = None, platform: str | None = None, requires: str | None = None
) -> bool:
    name = f"left-1.0-{tag}.whl"
    file = ListedFile(
        wheel=parse_wheel_file(name),
        url=f"{_PAGE}/{name}",
        index="acme",
        index_url=_PAGE,
        requires_python=requires,
    )
    survey = Survey(
        definition=Definition(name="acme", stable=(_PAGE,), projects=frozenset({"left"})),
        projects=(ProjectSurvey(project="left", files=(file,)),),
    )
    (found,) = fitting(
        survey,
        python=None if python is None else parse_python(python),
        platform=None if platform is None else parse_platform(platform),
    ).projects
    # Nothing is lost: a file fits or is one of the others.
    assert len(found.files) + len(found.others) == 1
    return bool(found.files)


@pytest.mark.parametrize(
    ("tag", "python", "platform", "fits"),
    [
        ("cp312-cp312-manylinux_2_28_x86_64", "3.12", None, True),
        ("cp312-cp312-win_amd64", "3.12", None, True),
        ("cp312-cp312-win_amd64", "3.11", None, False),
        ("cp310-abi3-manylinux_2_28_x86_64", "3.13", "linux-x86_64", True),
        ("cp313-cp313t-manylinux_2_28_x86_64", "3.13", None, False),
        ("cp313-cp313t-manylinux_2_28_x86_64", "3.13t", None, True),
        ("cp39-cp39-manylinux_2_28_aarch64", None, "linux-aarch64", True),
        ("cp39-cp39-manylinux_2_34_aarch64", None, "linux-aarch64", False),
        ("cp39-cp39-manylinux_2_34_aarch64", None, "manylinux_2_34_aarch64", True),
        ("py3-none-any", "3.12", "win-amd64", True),
    ],
)
def test_a_file_is_told_by_its_tags(
    tag: str, python: str | None, platform: str | None, fits: bool
) -> None:
    assert _fits(tag, python=python, platform=platform) is fits


@pytest.mark.parametrize(
    ("requires", "python", "fits"),
    [
        (">=3.13", "3.12", False),
        (">=3.13", None, True),
        ("<3.12.4", "3.12", True),
        ("what?", "3.12", True),
    ],
)
def test_what_a_file_requires_of_python_counts_where_one_is_given(
    requires: str, python: str | None, fits: bool
) -> None:
    assert _fits("py3-none-any", python=python, requires=requires) is fits
