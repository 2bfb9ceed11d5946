"""Which files of a survey are for one Python, one platform, or both; the others stay known as such.

Wheels are told by their tags (platform compatibility tags specification), and by what the index
says of ``Requires-Python``. What is not given rules nothing out.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from cudalock.host.interpreter import PythonChoice
from cudalock.host.platforms import Platform
from cudalock.host.target import Target, supported_tags
from cudalock.index.survey import Survey
from cudalock.wheel.listing import ListedFile

__all__ = ["fitting"]

# Interpreters and ABIs are those of a Python on any platform, and platforms those of any Python.
_ANY_PYTHON = PythonChoice(version="3.12")
_ANY_PLATFORM = "manylinux_2_28_x86_64"


def fitting(survey: Survey, *, python: PythonChoice | None, platform: Platform | None) -> Survey:
    """Return the survey with the files for other machines moved to ``others`` of their project."""
    admits = _filter(python, platform)
    projects = []
    for project in survey.projects:
        kept: list[ListedFile] = []
        others = list(project.others)
        for file in project.files:
            (kept if admits(file) else others).append(file)
        projects.append(replace(project, files=tuple(kept), others=tuple(others)))
    return replace(
        survey,
        projects=tuple(projects),
        python=None if python is None else str(python),
        platform=None if platform is None else str(platform),
    )


def _filter(python: PythonChoice | None, platform: Platform | None) -> Callable[[ListedFile], bool]:
    choice = python or _ANY_PYTHON
    tags = supported_tags(
        Target(
            python=choice.version,
            free_threaded=choice.free_threaded,
            platform=_ANY_PLATFORM if platform is None else str(platform),
        )
    )
    builds = {(tag.interpreter, tag.abi) for tag in tags}
    platforms = {tag.platform for tag in tags}

    def admits(file: ListedFile) -> bool:
        if python is not None and not _requires(file.requires_python, python.version):
            return False
        return any(
            (python is None or (tag.interpreter, tag.abi) in builds)
            and (platform is None or tag.platform in platforms)
            for tag in file.wheel.tags
        )

    return admits


def _requires(text: str | None, version: str) -> bool:
    """Whether ``Requires-Python`` admits a version; what cannot be read rules nothing out."""
    full = version if version.count(".") > 1 else f"{version}.0"
    with suppress(InvalidSpecifier):
        return SpecifierSet(text or "").contains(full, prereleases=True)
    return True
