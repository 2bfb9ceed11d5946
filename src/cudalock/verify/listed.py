"""Whether the wheels of a lock are still on their index, with the same hash and not yanked.

The one module of this room that asks an index. Four answers are kept apart: the file is *gone* (the
page is there and does not list it, or the index says that it has no such page), it is there with *other
bytes*, it was *yanked*, or the index gave *no usable answer*, which proves nothing.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor

from cudalock.errors import IndexAccessError, UsageError
from cudalock.index.client import Client
from cudalock.index.definitions import Definition
from cudalock.index.pages import PageAnswer, PageReader
from cudalock.index.routes import ABSENT_STATUSES, FolderRequest, Route
from cudalock.lock.model import Lock, LockedPackage, LockedWheel
from cudalock.verify.closure import parse
from cudalock.verify.problems import CheckResult, Problem
from cudalock.verify.recorded import texts

__all__ = ["ask_listed", "page_request"]


def page_request(index: str, project: str, definitions: Sequence[Definition]) -> FolderRequest:
    """Return the request for a project's page on an index that a lock records.

    Its publisher, known by the beginning of the address, says which answers mean "absent" and
    whether one flat page lists every project.
    """
    absent, flat = ABSENT_STATUSES, False
    for definition in definitions:
        for template in definition.templates:
            stem = template.partition("{")[0]
            if stem.count("/") > 2 and index.startswith(stem):
                absent, flat = definition.absent, definition.dialect == "flat"
    url = index if flat else f"{index.rstrip('/')}/{project}/"
    return FolderRequest(url=url, index_url=index, absent=absent, flat=flat)


def ask_listed(
    lock: Lock, *, client: Client, definitions: Sequence[Definition], executor: Executor
) -> CheckResult:
    """Ask the index of every entry for its page, each page once; the entries of all targets count."""
    reader = PageReader(client)

    def ask(package: LockedPackage) -> PageAnswer | IndexAccessError | UsageError:
        index = package.index or ""
        request = page_request(index, package.name, definitions)
        route = Route(project=package.name, index=index, folders=(request,), reason="the lock")
        try:
            return reader.ask(route, [request], None)[0]
        except (IndexAccessError, UsageError) as error:
            return error

    listed = [package for package in lock.packages if package.index is not None]
    pages = {(package.name, package.index): package for package in listed}
    try:
        answers = dict(zip(pages, executor.map(ask, pages.values()), strict=True))
    finally:
        reader.close()
    problems: list[Problem] = []
    pinned = _pinned(lock)
    for package in lock.packages:
        if package.index is None:
            problems.append(
                Problem(
                    code="no-index",
                    severity="warning",
                    message=f"{package.name} {package.version} is of no index: not asked for",
                    package=package.name,
                )
            )
            continue
        answer = answers[package.name, package.index]
        if isinstance(answer, PageAnswer):
            for wheel in package.wheels:
                problems += _judge(package, wheel, answer, pinned)
        else:
            problems.append(
                Problem(
                    code="index-unread",
                    severity="unknown",
                    message=f"whether {package.name} {package.version} is still there could not be "
                    f"told: {answer}",
                    package=package.name,
                )
            )
    return CheckResult(problems=tuple(problems), packages=len(lock.packages), name="online")


def _pinned(lock: Lock) -> frozenset[str]:
    """Return the projects that a person pins to one version."""
    found = [parse(text) for text in texts(lock.tool, "requirements") or ()]
    return frozenset(
        requirement.name.lower()
        for requirement in found
        if requirement is not None and any(c.operator == "==" for c in requirement.specifier)
    )


def _judge(
    package: LockedPackage, wheel: LockedWheel, answer: PageAnswer, pinned: frozenset[str]
) -> Iterator[Problem]:
    def problem(code: str, message: str, **other: str) -> Problem:
        severity = other.get("severity", "broken")
        return Problem(
            code=code,
            severity=severity,  # type: ignore[arg-type]  # one of the severities, see below.
            message=message,
            package=package.name,
            hint=other.get("hint"),
        )

    who = f"{package.name} {package.version}"
    same = [file for file in answer.files if file.filename == wheel.name]
    if answer.absent or (not same and not answer.rejections):
        found = "has no such project" if answer.absent else f"lists {len(answer.files)} others"
        yield problem(
            "gone",
            f"{who} is gone from its index: {package.index} {found}, and no {wheel.name}",
            hint="lock again with `cudalock resolve`, or install from a mirror",
        )
        return
    if not same:
        reasons = {r.reason for r in answer.rejections if r.filename == wheel.name}
        if reasons or any(r.kind == "quarantined" for r in answer.rejections):
            why = "; ".join(sorted(reasons)) or "the project is in quarantine"
            yield problem("withdrawn", f"{who} cannot be taken from its index: {why}")
        else:
            yield problem("gone", f"{who} is gone: {package.index} lists no {wheel.name}")
        return
    claims = {digest for file in same for digest in file.sha256}
    locked = wheel.hashes.get("sha256", "")
    if claims and locked not in claims:
        told = " and ".join(sorted(claims))
        yield problem(
            "hash-mismatch",
            f"{who}: expected {wheel.name} with sha256 {locked}, found that its index lists {told}",
            hint="do not install: the file was replaced, or an index lies",
        )
    elif not claims:
        message = f"{who}: its index lists no sha256 of {wheel.name}, so it was not compared"
        yield problem("no-hash", message, severity="warning")
    for file in same:
        if file.yanked is not False:
            why = f": {file.yanked}" if isinstance(file.yanked, str) else ""
            severity = "warning" if package.name in pinned else "broken"
            yield problem("yanked", f"{who} was yanked{why}", severity=severity)
            break
