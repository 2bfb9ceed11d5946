"""Findings that need a publisher of a special kind: nightlies that stopped, rivals, names held by others."""

from datetime import date

from cudalock.index.definitions import Definition
from cudalock.index.doctor import Finding, examine
from cudalock.index.survey import ProjectSurvey, Survey
from cudalock.wheel.filename import parse_wheel_file
from cudalock.wheel.knowledge import Knowledge, ProjectMark
from cudalock.wheel.listing import IndexAnswer, ListedFile

_TODAY = date(2026, 12, 1)
_TAG = "cp312-cp312-manylinux_2_28_x86_64.whl"
_PAGE = "https://index.example.org/whl"


def _file(
    name: str, folder: str = "cu130", *, sha256: str = "a", nightly: bool = False
) -> ListedFile:
    return ListedFile(
        wheel=parse_wheel_file(f"{name}-{_TAG}"),
        url=f"{_PAGE}/{folder}/{name}-{_TAG}",
        index="acme",
        index_url=f"{_PAGE}/{folder}",
        folder=folder,
        sha256=(sha256 * 64,),
        nightly=nightly,
    )


def _project(name: str, *files: ListedFile, statuses: tuple[str, ...] = ()) -> ProjectSurvey:
    answer = IndexAnswer(
        index="acme",
        url=f"{_PAGE}/cu130/{name}/",
        folder="cu130",
        status="listed" if files else "absent",
    )
    return ProjectSurvey(project=name, files=files, answers=(answer,), statuses=statuses)


def _examine(
    *projects: ProjectSurvey, knowledge: Knowledge | None = None, recorded: bool = False
) -> list[Finding]:
    definition = Definition(
        name="acme",
        stable=(f"{_PAGE}/{{cuda}}",),
        nightly=(f"{_PAGE}/nightly/{{cuda}}",),
        projects=frozenset(project.project for project in projects),
        nightly_days=60,
    )
    survey = Survey(definition=definition, projects=projects, recorded=recorded)
    return list(examine(survey, knowledge=knowledge or Knowledge(), today=_TODAY))


def _codes(*findings: Finding) -> dict[str, str]:
    return {finding.code: finding.severity for finding in findings}


def test_nightlies_older_than_they_are_kept_have_stopped() -> None:
    old = _file("left-1.0.dev20260901+cu130", nightly=True)
    new = _file("left-1.0.dev20261120+cu130", nightly=True)
    assert _codes(*_examine(_project("left", old))) == {"nightlies-stale": "problem"}
    (finding,) = _examine(_project("left", old, new))
    assert (finding.code, finding.severity) == ("nightlies", "note")
    assert "2026-09-01 to 2026-11-20" in finding.message
    # A recording is of its day and says nothing of today.
    assert _codes(*_examine(_project("left", old), recorded=True)) == {"nightlies": "note"}


def test_one_name_for_different_files_is_a_problem_and_for_the_same_file_none() -> None:
    files = _file("left-1.0", "cu128"), _file("left-1.0", "cu130", sha256="b")
    assert _codes(*_examine(_project("left", *files)))["one-name-several-files"] == "problem"
    same = _file("left-1.0", "cu128"), _file("left-1.0", "cu130")
    assert _examine(_project("left", *same)) == []


def test_a_project_that_no_folder_has_is_told_beside_others_that_are_there() -> None:
    there, missing = _project("left", _file("left-1.0+cu130")), _project("right")
    (finding,) = _examine(there, missing)
    assert (finding.code, finding.severity) == ("project-missing", "note")
    # Without any file at all it is the index that is wrong.
    assert _codes(*_examine(missing)) == {"not-populated": "problem"}


def test_what_an_index_says_of_a_project_is_told() -> None:
    (finding,) = _examine(
        _project("left", _file("left-1.0+cu130"), statuses=("left is archived by its publisher",))
    )
    assert (finding.code, finding.message) == (
        "project-status",
        "left is archived by its publisher",
    )


def test_a_name_that_somebody_else_holds_is_told_with_its_source() -> None:
    mark = ProjectMark(kind="squatted", project="left", value="held by others", source="a thread")
    (finding,) = _examine(
        _project("left", _file("left-1.0+cu130")), knowledge=Knowledge(marks=(mark,))
    )
    assert (finding.code, finding.where) == ("squatted", "a thread")
