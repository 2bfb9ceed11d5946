"""How what a publisher serves, and what is wrong with it, is shown: tables, text and JSON.

Tables fit 80 columns and need no colour. A cell of ``show`` is the newest version of a project for a
CUDA release: ``-`` is "none there", ``?`` "not seen".
"""

import textwrap
from collections.abc import Iterable, Mapping, Sequence

from cudalock.cuda import CudaVersion
from cudalock.index.doctor import Finding
from cudalock.index.survey import Cell, ProjectSurvey, Survey
from cudalock.wheel.published import parse_upload_time

__all__ = [
    "doctor_form",
    "doctor_text",
    "show_form",
    "show_text",
]

_SHOW_SCHEMA = "cudalock/index-show/1"
_DOCTOR_SCHEMA = "cudalock/index-doctor/1"
_GAP = "  "

_Cells = Mapping[CudaVersion | None, Cell]


def show_form(survey: Survey) -> dict[str, object]:
    """Return the JSON form of ``index show``; ``cuda`` null stands for files that name none."""
    return {
        "schema": _SHOW_SCHEMA,
        "name": survey.definition.name,
        "recorded": survey.recorded,
        "python": survey.python,
        "platform": survey.platform,
        "projects": [
            {
                "project": project.project,
                "other_files": len(project.others),
                "whole": project.whole,
                "error": project.error or None,
                "releases": [
                    {
                        "cuda": None if cuda is None else str(cuda),
                        "newest": str(cell.newest),
                        "files": cell.count,
                        "uploaded": cell.uploaded,
                        "pythons": list(cell.pythons),
                        "platforms": list(cell.platforms),
                    }
                    for cuda, cell in _by_release(project.cells())
                ],
            }
            for project in survey.projects
        ],
    }


def _by_release(cells: _Cells) -> list[tuple[CudaVersion | None, Cell]]:
    none = CudaVersion(major=0, minor=0)
    return sorted(cells.items(), key=lambda entry: entry[0] or none)


def show_text(survey: Survey, *, width: int) -> str:
    """Return a table of projects by CUDA release, in as many parts as the width takes."""
    # Grouped once: an index may name any number of releases, each a column.
    table = [(project, project.cells()) for project in survey.projects]
    heads = [None, *survey.releases]
    names = ["any CUDA" if head is None else head.label for head in heads]
    rows = [(p.project, [_cell_text(p, cells.get(head)) for head in heads]) for p, cells in table]
    first = max([len("project"), *(len(name) for name, _ in rows)])
    widths = [
        max([len(name), *(len(cells[column]) for _, cells in rows)])
        for column, name in enumerate(names)
    ]
    lines: list[str] = []
    for part in _parts(widths, width - first):
        lines += [""] if lines else []
        lines.append(_row("project", first, [names[c] for c in part], [widths[c] for c in part]))
        lines += [
            _row(name, first, [cells[c] for c in part], [widths[c] for c in part])
            for name, cells in rows
        ]
    dates = sorted(
        time.date()
        for _, cells in table
        for cell in cells.values()
        if (time := parse_upload_time(cell.uploaded)) is not None
    )
    lines += ["", *_wrapped(_legend(survey), width)]
    lines += ["", "Of the newest CUDA release of each:"]
    lines += [line for p, cells in table for line in _made_for(p.project, cells, first, width)]
    if dates:
        lines += ["", f"Newest upload {dates[-1]}."]
    return "\n".join(lines) + "\n"


def _legend(survey: Survey) -> str:
    """Say which machine the wheels are for, and what a cell means."""
    python = None if survey.python is None else f"Python {survey.python}"
    given = [each for each in (python, survey.platform) if each is not None]
    told = f"Wheels for {' on '.join(given)}" if given else "Wheels for any machine"
    others = sum(len(project.others) for project in survey.projects)
    if others:
        told += f" ({others} for others left out)"
    return f"{told}: the newest version and the number of files; - none there, ? not seen."


def _made_for(project: str, cells: _Cells, first: int, width: int) -> list[str]:
    """Say for which Python and platform the files are that a person would look for first."""
    if not cells:
        return []
    cuda, cell = _by_release(cells)[-1]
    told = "any CUDA" if cuda is None else cuda.label
    text = f"{told}: Python {', '.join(cell.pythons)}; {', '.join(cell.platforms)}"
    lead = project.ljust(first) + _GAP
    return textwrap.wrap(
        text,
        width,
        initial_indent=lead,
        subsequent_indent=" " * len(lead),
        break_on_hyphens=False,
    )


def _cell_text(project: ProjectSurvey, cell: Cell | None) -> str:
    if cell is not None:
        return f"{cell.newest} ({cell.count})"
    return "-" if project.whole else "?"


def _parts(widths: Sequence[int], room: int) -> Iterable[list[int]]:
    part: list[int] = []
    for column, needed in enumerate(widths):
        if part and sum(widths[c] + len(_GAP) for c in part) + needed + len(_GAP) > room:
            yield part
            part = []
        part.append(column)
    yield part


def _row(name: str, first: int, cells: Sequence[str], widths: Sequence[int]) -> str:
    told = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
    return (name.ljust(first) + _GAP + _GAP.join(told)).rstrip()


def doctor_form(survey: Survey, findings: Sequence[Finding]) -> dict[str, object]:
    """Return the JSON form of ``index doctor``."""
    return {
        "schema": _DOCTOR_SCHEMA,
        "name": survey.definition.name,
        "recorded": survey.recorded,
        "findings": [
            {
                "code": finding.code,
                "severity": finding.severity,
                "message": finding.message,
                "where": finding.where or None,
                "advice": finding.advice or None,
                "facts": list(finding.facts),
            }
            for finding in findings
        ],
    }


def doctor_text(survey: Survey, findings: Sequence[Finding], *, verbose: bool, width: int) -> str:
    """Return the findings, each with where it is and what to do; all its facts if ``verbose``."""
    lines: list[str] = []
    for finding in findings:
        word = {"unread": "not read", "problem": "problem", "note": "note"}[finding.severity]
        lines += _wrapped(f"{word}: {finding.message} [{finding.code}]", width)
        lines += [f"  at {finding.where}"] if finding.where else []
        lines += [line for fact in finding.facts if verbose for line in [f"  - {fact}"]]
        lines += _wrapped(f"  {finding.advice}", width) if finding.advice else []
    problems = sum(finding.severity != "note" for finding in findings)
    lines += [""] if lines else []
    lines.append(
        f"{survey.definition.name}: {problems} problem{'s' if problems != 1 else ''},"
        f" {len(findings) - problems} note{'s' if len(findings) - problems != 1 else ''}"
    )
    return "\n".join(lines) + "\n"


def _wrapped(text: str, width: int) -> list[str]:
    lead = text[: len(text) - len(text.lstrip())]
    return textwrap.wrap(
        text.strip(),
        width,
        initial_indent=lead,
        subsequent_indent=lead + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
