"""packse's scenarios of what cudalock decides as well: the same outcome, or another for a written reason.

`scenarios/packse/*.toml` is the list of those that were taken, a file a folder of packse: backtracking,
extras, local versions, post-releases, pre-releases, Requires-Python, wheels. Left out are its forks and
universal locks (a lock of ours is for one target), yanked releases, which have scenarios of our own, and
what asks for source distributions only.
"""

import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cudalock.resolver.conflict import NoSolutionError
from cudalock.resolver.exhaustive import Witness, prove
from cudalock.resolver.resolution import solve
from scenario_worlds import Scenario

_FOLDER = Path(__file__).resolve().parent.parent / "scenarios" / "packse"
_KEYS = {
    *("packse", "about", "requirements", "prereleases", "wheels", "python", "outcome"),
    *("theirs", "differs"),
}


def _read() -> list[Mapping[str, Any]]:
    paths = sorted(_FOLDER.glob("*.toml"))
    tables = [tomllib.loads(path.read_text(encoding="utf-8")) for path in paths]
    return [entry for table in tables for entry in table["scenario"]]


_ENTRIES = [pytest.param(entry, id=entry["packse"]) for entry in _read()]


def _scenario(entry: Mapping[str, Any]) -> Scenario:
    target = {"python": entry.get("python", "3.12"), "cpu": True}
    kept = {key: entry[key] for key in ("requirements", "wheels")}
    table = {**kept, "prereleases": entry.get("prereleases", []), "target": target}
    return Scenario(name=entry["packse"], table=table)


@pytest.mark.parametrize("entry", _ENTRIES)
def test_a_scenario_of_packse_has_the_outcome_that_is_written(entry: Mapping[str, Any]) -> None:
    scenario = _scenario(entry)
    try:
        chosen = solve(scenario.world()).candidates
        outcome: object = {project: str(c.version) for project, c in chosen.items()}
    except NoSolutionError:
        outcome = "no"
    assert outcome == entry["outcome"]
    assert isinstance(prove(scenario.world()), Witness) is (outcome != "no")


@pytest.mark.parametrize("entry", _ENTRIES)
def test_a_difference_has_a_reason_and_a_reason_a_difference(entry: Mapping[str, Any]) -> None:
    assert set(entry) <= _KEYS
    assert ("theirs" in entry) is ("differs" in entry)
    if "theirs" in entry:
        agree = entry["theirs"] == entry["outcome"]
        assert not agree
        assert not (entry["theirs"] == "yes" and entry["outcome"] != "no")


def test_how_many_agree() -> None:
    reasons = Counter(entry.get("differs", "the same") for entry in _read())
    for reason, count in reasons.most_common():
        print(f"{count:3} {reason}")  # noqa: T201 - shown with -s
    assert reasons["the same"] == 75
