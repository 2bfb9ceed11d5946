"""What is wrong with a publisher's index, as far as its pages tell: findings, each with a stable code.

A *problem* makes a resolve fail or choose wrongly, or leaves a lock without a hash; a *note* is worth
knowing. Nothing is called missing on a page that was not seen whole.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from packaging.version import Version

from cudalock.index.survey import ProjectSurvey, Survey, cuda_of
from cudalock.wheel.evidence import label_of
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.listing import ListedFile
from cudalock.wheel.published import nightly_day

__all__ = ["Finding", "examine"]

_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was found.

    ``code`` is stable, ``where`` a page or a file, ``advice`` what helps; ``facts`` are all the files
    or names it is about.
    """

    code: str
    severity: Literal["problem", "note", "unread"]
    message: str
    where: str = ""
    advice: str = ""
    facts: tuple[str, ...] = ()


def examine(survey: Survey, *, knowledge: Knowledge, today: date) -> tuple[Finding, ...]:
    """Return every finding: what could not be read, then problems, then notes; by project."""
    found = [
        *_unread(survey),
        *_populated(survey),
        *(f for project in survey.projects for f in _project(project)),
        *_gaps(survey),
        *_machines(survey),
        *_nightlies(survey, today),
        *_names(survey, knowledge),
    ]
    order = ("unread", "problem", "note")
    return tuple(sorted(found, key=lambda finding: order.index(finding.severity)))


def _unread(survey: Survey) -> Iterator[Finding]:
    failed = [project for project in survey.projects if project.error]
    for error in dict.fromkeys(project.error for project in failed):
        names = [project.project for project in failed if project.error == error]
        yield Finding(
            code="unreadable",
            severity="unread",
            message=f"{_some(names)}: {error}",
            advice="what it would have said is not known; ask again later",
            facts=tuple(names),
        )
    partial = sorted({p.project for p in survey.projects if not p.error and not p.whole})
    if partial:
        yield Finding(
            code="not-whole",
            severity="note",
            message=f"not every page was seen whole: {_some(partial)}",
            advice="what is missing there proves nothing"
            + ("; without `--recorded` the index itself is asked" if survey.recorded else ""),
        )
    if survey.unasked:
        folders = tuple(cuda.label for cuda in sorted(survey.unasked))
        yield Finding(
            code="folders-not-asked",
            severity="note",
            message=f"it lists folders of CUDA releases beyond those asked for: {_some(folders)}",
            advice="what they hold is not known",
            facts=folders,
        )


def _populated(survey: Survey) -> Iterator[Finding]:
    if not any(project.files for project in survey.projects):
        if not any(project.error for project in survey.projects):
            yield Finding(
                code="not-populated",
                severity="problem",
                message=f"`{survey.definition.name}` lists no wheel of any project it is asked for",
                where=survey.definition.templates[0],
                advice="its address or its projects may have changed",
            )
        return
    for project in survey.projects:
        if not project.files and project.whole:
            yield Finding(
                code="project-missing",
                severity="note",
                message=f"no folder has {project.project}",
                advice="it comes from the default index instead, unless its family is here",
            )


def _project(project: ProjectSurvey) -> Iterator[Finding]:
    name, files = project.project, project.files
    open_files = [file for file in files if not file.sha256 and not file.aside]
    if open_files:
        # Nightly pages of the largest publisher never carry hashes, which is known and told once.
        nightly = all(file.nightly for file in open_files)
        yield Finding(
            code="no-hash",
            severity="note" if nightly else "problem",
            message=f"{name}: {len(open_files)} of {_count(files, 'file')} without a hash"
            + (", all of them nightlies" if nightly else ""),
            where=_newest(open_files).url,
            advice="`--hash-missing download` computes the hash of what is chosen",
        )
    yield from _claims(name, files)
    confused = [file for file in files if file.aside]
    if confused:
        yield Finding(
            code="hash-of-metadata",
            severity="problem",
            message=f"{name}: {_count(confused, 'file')} with a hash of something else"
            f" ({confused[0].aside[0].why})",
            where=_newest(confused).url,
            advice="such a hash does not count",
        )
    yield from _folders(name, files)
    unread = sorted({part for file in files for part in label_of(file.wheel.version.local).unread})
    if unread:
        yield Finding(
            code="unread-label",
            severity="note",
            message=f"{name}: parts of labels that were not understood: {_some(unread)}",
        )
    yanked = [file for file in files if file.yanked is not False]
    if yanked:
        yield Finding(
            code="yanked", severity="note", message=f"{name}: {_count(yanked, 'file')} yanked"
        )
    for status in project.statuses:
        yield Finding(code="project-status", severity="note", message=status)
    kinds = Counter(r.kind for r in project.rejections if r.kind != "not-a-wheel")
    if kinds:
        told = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        yield Finding(
            code="unusable-links",
            severity="note",
            message=f"{name}: links that are no usable wheel of it: {told}",
            where=next(r.where for r in project.rejections if r.kind != "not-a-wheel"),
        )


def _claims(name: str, files: Sequence[ListedFile]) -> Iterator[Finding]:
    disputed = sorted((f for f in files if len(f.sha256) > 1), key=_disputes, reverse=True)
    if disputed:
        worst = disputed[0]
        yield Finding(
            code="several-hashes",
            severity="problem",
            message=f"{name}: {_count(disputed, 'address', 'addresses')} with more than one hash,"
            f" {worst.filename} has {len(worst.sha256)}",
            where=worst.url,
            advice="at most one is true; `--hash-missing download` finds out which",
            facts=tuple(f"{file.filename}: {len(file.sha256)} hashes" for file in disputed),
        )
    by_name: dict[str, set[str]] = defaultdict(set)
    for file in files:
        if len(file.sha256) == 1:
            by_name[file.filename].add(file.sha256[0])
    rivals = sorted(filename for filename, hashes in by_name.items() if len(hashes) > 1)
    if rivals:
        yield Finding(
            code="one-name-several-files",
            severity="problem",
            message=f"{name}: {_count(rivals, 'file name')} of several different files: {_some(rivals)}",
            advice="each address is a file of its own; a lock names address and hash",
            facts=tuple(rivals),
        )


def _folders(name: str, files: Sequence[ListedFile]) -> Iterator[Finding]:
    """Tell files in the folder of one CUDA release that are for another, or say nothing of it."""
    other = [
        file
        for file in files
        if file.folder is not None
        and (there := label_of(file.folder).cuda) is not None
        and (label := label_of(file.wheel.version.local).cuda) is not None
        and label != there
    ]
    if other:
        newest = _newest(other)
        yield Finding(
            code="folder-of-another-cuda",
            severity="note",
            message=f"{name}: {_count(other, 'file')} in the folder of another CUDA release:"
            f" {newest.filename} in {newest.folder}",
            where=newest.url,
            advice="the label counts, not the folder",
        )
    labelled = any(label_of(file.wheel.version.local).cuda is not None for file in files)
    untagged = [file for file in files if file.wheel.version.local is None and not file.nightly]
    if labelled and untagged:
        newest = _newest(untagged)
        yield Finding(
            code="untagged",
            severity="note",
            message=f"{name}: {_count(untagged, 'file')} without a label beside labelled ones,"
            f" the newest {newest.filename}",
            where=newest.index_url,
            advice="their CUDA is told by their metadata, or not at all; never by the folder",
        )


def _gaps(survey: Survey) -> Iterator[Finding]:
    """Tell a project that has nothing for a CUDA release which others of the publisher have."""
    every = survey.releases
    for project in survey.projects:
        there = {cuda for cuda in project.cells() if cuda is not None}
        missing = [cuda for cuda in every if cuda not in there and there and cuda > min(there)]
        if missing and project.whole:
            yield Finding(
                code="release-missing",
                severity="note",
                message=f"{project.project} has nothing for CUDA {_some([str(c) for c in missing])},"
                " which other projects have",
            )


def _machines(survey: Survey) -> Iterator[Finding]:
    if not survey.releases:
        return
    newest = survey.releases[-1]
    for project in survey.projects:
        before = {
            m
            for file in project.files
            if cuda_of(file, by_folder=project.by_folder) != newest
            for m in _machine(file)
        }
        now = {
            m
            for file in project.files
            if cuda_of(file, by_folder=project.by_folder) == newest
            for m in _machine(file)
        }
        if now and before - now and project.whole:
            yield Finding(
                code="machine-missing",
                severity="note",
                message=f"{project.project} for CUDA {newest} has wheels for"
                f" {_some(sorted(now))}, and none for {_some(sorted(before - now))}",
            )


def _machine(file: ListedFile) -> set[str]:
    return {
        machine
        for tag in file.wheel.tags
        for machine in ("x86_64", "aarch64", "win_amd64")
        if tag.platform.endswith(machine)
    }


def _nightlies(survey: Survey, today: date) -> Iterator[Finding]:
    days = [
        day
        for project in survey.projects
        for file in project.files
        if file.nightly and (day := nightly_day(file.wheel.version)) is not None
    ]
    if not days:
        return
    kept = survey.definition.nightly_days
    stale = kept is not None and (today - max(days)).days > kept and not survey.recorded
    yield Finding(
        code="nightlies-stale" if stale else "nightlies",
        severity="problem" if stale else "note",
        message=f"nightlies of {min(days)} to {max(days)}"
        + (f"; they are kept for about {kept} days" if kept is not None else ""),
        advice="the publisher may have stopped, or moved them" if stale else "",
    )


def _names(survey: Survey, knowledge: Knowledge) -> Iterator[Finding]:
    known = survey.definition.projects | survey.definition.nightly_projects
    known |= survey.definition.serves
    beside = sorted(survey.beside - known)
    if beside:
        yield Finding(
            code="shadows",
            severity="note",
            message=f"its folders also list {_count(beside, 'project')} of other indexes:"
            f" {_some(beside)}",
            advice="copies of other indexes, perhaps older; they are never taken from here",
            facts=tuple(beside),
        )
    for project in sorted(known):
        squatted = knowledge.squatted(project)
        if squatted is not None:
            yield Finding(
                code="squatted",
                severity="note",
                message=f"{project}: {squatted.value}",
                where=squatted.source,
                advice="it is never taken from the default index without being told",
            )


def _disputes(file: ListedFile) -> tuple[int, Version, str]:
    return len(file.sha256), file.wheel.version, file.filename


def _newest(files: Iterable[ListedFile]) -> ListedFile:
    return max(files, key=lambda file: (file.wheel.version, file.filename))


def _count(things: Sequence[object], one: str, several: str = "") -> str:
    return f"{len(things)} {one if len(things) == 1 else several or f'{one}s'}"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
