"""Tables of what a publisher serves: what they cost on an index that names any number of releases."""

from counting_calls import calls_of
from cudalock.cli.index_tables import show_form, show_text
from cudalock.index.definitions import Definition
from cudalock.index.survey import ProjectSurvey, Survey
from cudalock.wheel.filename import parse_wheel_file
from cudalock.wheel.listing import ListedFile

_PAGE = "https://index.example.org/whl"


def _survey(count: int) -> Survey:
    """Return a survey of one project with ``count`` files, each of a CUDA release of its own."""
    names = [f"left-1.{n}+cu{100 + n}-cp312-cp312-linux_x86_64.whl" for n in range(count)]
    files = tuple(
        ListedFile(
            wheel=parse_wheel_file(name),
            url=f"{_PAGE}/{name}",
            index="acme",
            index_url=_PAGE,
        )
        for name in names
    )
    return Survey(
        definition=Definition(name="acme", stable=(_PAGE,), projects=frozenset({"left"})),
        projects=(ProjectSurvey(project="left", files=files),),
    )


def _shown(survey: Survey) -> None:
    show_text(survey, width=80)
    show_form(survey)


def test_a_table_of_many_releases_costs_as_much_as_there_are_files() -> None:
    small, large = _survey(75), _survey(300)
    assert len(large.releases) == 4 * len(small.releases)
    _shown(large)
    assert calls_of(lambda: _shown(large)) < 6 * calls_of(lambda: _shown(small))


def test_a_table_fits_the_width_however_many_releases_there_are() -> None:
    assert all(len(line) <= 80 for line in show_text(_survey(100), width=80).splitlines())
