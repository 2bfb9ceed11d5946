"""Whether a lock keeps its promises: each broken one is found, and a good lock is good."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from cudalock import check
from cudalock.lock import Lock, LockedPackage
from cudalock.verify.lock_check import InputState, check_lock, first_expiry
from cudalock.verify.problems import Problem
from cudalock.wheel.knowledge import Knowledge
from locked_worlds import TODAY, change_package, edit_record, good_lock, lock_of, rename_wheel
from scenario_worlds import read_scenario, scenario_paths


@pytest.fixture(scope="module")
def good() -> tuple[Lock, Knowledge]:
    return good_lock()


def _problems(good: tuple[Lock, Knowledge], lock: Lock) -> list[Problem]:
    return list(check_lock(lock, knowledge=good[1], today=TODAY).problems)


def _said(good: tuple[Lock, Knowledge], lock: Lock) -> dict[str, str]:
    return {problem.code: problem.message for problem in _problems(good, lock)}


def test_a_good_lock_is_good(good: tuple[Lock, Knowledge]) -> None:
    result = check_lock(good[0], knowledge=good[1], today=TODAY)
    assert result.problems == ()
    assert result.ok
    assert result.packages == 8


_SOLVED = [path for path in scenario_paths() if read_scenario(path).pins is not None]


@pytest.mark.parametrize("path", _SOLVED, ids=lambda path: path.stem)
def test_a_lock_of_any_scenario_that_has_one_is_good(path: Path) -> None:
    scenario = read_scenario(path)
    assert scenario.pins is not None
    lock, knowledge = lock_of(scenario)
    result = check_lock(lock, knowledge=knowledge, today=date(2000, 1, 1))
    assert [p.message for p in result.problems if p.severity != "warning"] == []
    assert result.packages == len(scenario.pins)


def _to(version: str, file: str) -> Callable[[LockedPackage], LockedPackage]:
    return lambda package: rename_wheel(replace(package, version=version), file)


_LINUX = "cp312-cp312-manylinux_2_28_x86_64.whl"


@pytest.mark.parametrize(
    ("name", "change", "code", "says"),
    [
        (
            "filelock",
            _to("3.9.0", "filelock-3.9.0-py3-none-any.whl"),
            "unmet",
            "torch 2.11.0+cu130 requires `filelock>=3.10`, found filelock 3.9.0",
        ),
        (
            "filelock",
            _to("5.1", "filelock-5.1-py3-none-any.whl"),
            "unmet",
            "you constrain `filelock<5`, found filelock 5.1",
        ),
        (
            "torch",
            _to("2.10.0+cu130", f"torch-2.10.0+cu130-{_LINUX}"),
            "bond",
            "kernel 0.4.4+cu130 is built for torch 2.11 (METADATA of the engine) and torch 2.10.0+cu130",
        ),
        (
            "flash-python",
            _to("0.6.2", "flash_python-0.6.2-py3-none-any.whl"),
            "bond",
            "no one <flash> suits both",
        ),
        (
            "torch",
            _to("2.11.0+cu128", f"torch-2.11.0+cu128-{_LINUX}"),
            "evidence",
            "label +cu128 says CUDA 12.8, and its record says CUDA 13.0",
        ),
        (
            "numpy",
            lambda p: rename_wheel(p, "numpy-2.3.1-cp311-cp311-manylinux_2_28_x86_64.whl"),
            "tags",
            "needs another Python or platform",
        ),
        (
            "numpy",
            lambda p: rename_wheel(p, "numpy-2.3.1-cp312-cp312-manylinux_2_34_x86_64.whl"),
            "glibc",
            "numpy 2.3.1 needs glibc 2.34, found Python 3.12 on manylinux_2_28_x86_64",
        ),
        (
            "filelock",
            lambda p: replace(p, requires_python=">=3.13"),
            "python",
            "filelock 3.20.0 needs Python >=3.13",
        ),
        (
            "filelock",
            lambda p: replace(p, marker="sys_platform == 'win32'"),
            "missing",
            "found no entry of filelock for this target",
        ),
        (
            "kernel",
            lambda p: edit_record(p, extras=None),
            "missing-extra",
            "kernel 0.4.4+cu130 was locked without the extra fast",
        ),
        ("kernel", lambda p: replace(p, tool=None), "not-recorded", "kernel 0.4.4+cu130"),
        (
            "flash-jit",
            lambda p: edit_record(p, cuda="12.8", runtime=12),
            "evidence",
            "label +cu130 says CUDA 13.0, and its record says CUDA 12.8",
        ),
        (
            "ninja",
            lambda p: edit_record(p, built_for="known", runtime=12, cuda="12.8"),
            "cuda-runtime",
            "is built for CUDA 12 (CUDA 12.8), and the target takes CUDA 13",
        ),
        (
            "ninja",
            lambda p: edit_record(p, built_for="known", runtime=13, cuda="13.1"),
            "cuda",
            "newer than CUDA 13.0",
        ),
    ],
)
def test_a_broken_promise_is_found_and_told(
    good: tuple[Lock, Knowledge],
    name: str,
    change: Callable[[LockedPackage], LockedPackage],
    code: str,
    says: str,
) -> None:
    problems = _problems(good, change_package(good[0], name, change))
    found = [p for p in problems if p.code == code and says in p.message]
    assert found, [(p.code, p.message) for p in problems]
    assert all(problem.severity != "warning" for problem in found)


def test_an_entry_that_went_is_missed_by_those_who_require_it(
    good: tuple[Lock, Knowledge],
) -> None:
    lock = replace(good[0], packages=tuple(p for p in good[0].packages if p.name != "numpy"))
    messages = [p.message for p in _problems(good, lock) if p.code == "missing"]
    assert any("kernel 0.4.4+cu130 requires `numpy>=2`" in message for message in messages)


def test_a_set_for_another_target_than_it_says_is_told(good: tuple[Lock, Knowledge]) -> None:
    def with_target(**values: object) -> Lock:
        target = dict(good[0].tool["target"])  # type: ignore[arg-type]  # the target's table.
        return replace(good[0], tool={**good[0].tool, "target": {**target, **values}})  # type: ignore[dict-item]  # as above.

    assert "570.124.06" in _said(good, with_target(driver="570.124.06"))["driver"]
    assert "580.65.06" in _said(good, with_target(driver="570.124.06"))["driver"]
    assert "no sm_70" in _said(good, with_target(sm=["7.0"]))["gpu"]
    assert "nothing for sm_90" in _said(good, with_target(sm=["9.0", "12.0"]))["gpu"]
    assert "newer than CUDA 13.0" not in str(_said(good, with_target(cuda="13.1")))
    assert "Python ==3.12.*" in _said(good, with_target(python="3.13"))["python"]
    assert "not-recorded" in _said(good, with_target(sm="12.0", platform="beos"))


def test_a_changed_input_is_told_and_an_unread_one_is_not_taken_for_one(
    good: tuple[Lock, Knowledge],
) -> None:
    lock, knowledge = good
    inputs = lock.tool["inputs"]
    digest = inputs["digest"]  # type: ignore[index,call-overload]  # a table with a text.

    def status(state: InputState) -> tuple[str, list[str]]:
        found = check_lock(lock, knowledge=knowledge, today=TODAY, inputs=state)
        return found.status, [p.code for p in found.problems]

    assert status(InputState(digest=str(digest))) == ("ok", [])
    assert status(InputState(digest="sha256:00")) == ("broken", ["inputs"])
    assert status(InputState(unread="it has gone")) == ("unknown", ["inputs"])


def test_a_lock_of_another_tool_could_not_be_told(good: tuple[Lock, Knowledge]) -> None:
    lock = replace(good[0], tool={}, created_by="pip")
    result = check_lock(lock, knowledge=good[1], today=TODAY)
    assert result.status == "unknown"
    assert "made by pip" in result.problems[0].message


def test_what_nothing_requires_is_a_warning(good: tuple[Lock, Knowledge]) -> None:
    lock = change_package(good[0], "kernel", lambda p: edit_record(p, requires=["numpy>=2"]))
    assert _said(good, lock) == {"unneeded": "nothing that was asked for requires ninja 1.13.0"}


@pytest.mark.parametrize(
    ("day", "severity"),
    [("2026-03-09", None), ("2026-03-08", "warning"), ("2026-03-01", "unknown")],
)
def test_a_nightly_near_its_end_is_told_before_it_is_dropped(
    good: tuple[Lock, Knowledge], day: str, severity: str | None
) -> None:
    lock = change_package(good[0], "torch", lambda p: edit_record(p, expires=day))
    told = [p.severity for p in _problems(good, lock) if p.code == "nightly"]
    assert told == ([] if severity is None else [severity])
    first = first_expiry(lock)
    assert first is not None
    assert (first <= TODAY) is (severity is not None)


def test_the_library_checks_a_lock_with_the_knowledge_that_comes_along(
    good: tuple[Lock, Knowledge],
) -> None:
    assert check(good[0], today=TODAY).ok
