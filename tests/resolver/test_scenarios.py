"""Every scenario through both searches: they agree, and a refusal is proved and minimal."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from cudalock.errors import CudalockError, ResolutionStoppedError
from cudalock.explain.remedies import find_remedies
from cudalock.host import Target
from cudalock.resolver.conflict import ConflictFact, NoSolutionError
from cudalock.resolver.engine import Solution
from cudalock.resolver.exhaustive import Refusal, Witness, prove, search_facts
from cudalock.resolver.notes import describe
from cudalock.resolver.request import Request
from cudalock.resolver.resolution import Resolution
from cudalock.resolver.world import World
from cudalock.wheel import parse_wheel_file
from scenario_renaming import rename_projects
from scenario_worlds import ExpectedFact, Scenario, read_scenario, scenario_paths

_READ = [read_scenario(path) for path in scenario_paths()]
_SCENARIOS = [pytest.param(scenario, id=scenario.name) for scenario in _READ]
# No project is special: with all their names changed they come out the same.
_RENAMED = [pytest.param(rename_projects(s), id=f"{s.name}-renamed") for s in _READ]


def test_there_are_scenarios() -> None:
    assert len(_SCENARIOS) > 40


@pytest.mark.parametrize("scenario", _SCENARIOS + _RENAMED)
def test_a_scenario_comes_out_as_written(scenario: Scenario) -> None:
    world, outcome = scenario.attempt()
    if scenario.pins is not None:
        assert isinstance(outcome, Solution), _told(outcome)
        chosen = {p: str(candidate.version) for p, candidate in outcome.candidates.items()}
        assert chosen == scenario.pins
        labels = {p: c.file.wheel.variant_label or "" for p, c in outcome.candidates.items()}
        assert {p: labels[p] for p in scenario.labels} == scenario.labels
        said = [warning.message for warning in describe(world, outcome).warnings]
        for words in scenario.warns:
            assert any(words in message for message in said), f"{words!r} is not in {said}"
        if scenario.silent:
            assert said == []
    elif scenario.stopped is not None:
        assert isinstance(outcome, ResolutionStoppedError), _told(outcome)
        assert all(word in str(outcome) for word in scenario.stopped)
    else:
        assert isinstance(outcome, NoSolutionError), _told(outcome)
        _assert_same(outcome.conflict.facts, scenario.refused)
        _assert_proved(world, outcome)


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(scenario, id=f"{scenario.name}{'-renamed' * renamed}")
        for renamed, scenarios in enumerate((_READ, map(rename_projects, _READ)))
        for scenario in scenarios
        if scenario.remedies is not None
    ],
)
def test_a_refused_scenario_offers_what_was_tried_and_solves(scenario: Scenario) -> None:
    world, refused = scenario.attempt()
    assert isinstance(refused, NoSolutionError)

    def attempt(request: Request, target: Target) -> Resolution | None:
        changed, outcome = scenario.attempt(request, target)
        return describe(changed, outcome) if isinstance(outcome, Solution) else None

    found = find_remedies(
        refused.conflict,
        request=world.request,
        target=world.target,
        knowledge=world.knowledge,
        solve=attempt,
    )
    assert [" and ".join(remedy.changes) for remedy in found] == scenario.remedies


@pytest.mark.parametrize("scenario", _SCENARIOS)
def test_the_second_search_agrees_when_it_is_asked_first(scenario: Scenario) -> None:
    world, outcome = scenario.attempt()
    answer = prove(world)
    if world.request.verify_sm == "strict" and isinstance(outcome, ResolutionStoppedError):
        # The set holds together, and what is not known of it stops the answer.
        assert isinstance(answer, Witness)
        return
    assert isinstance(answer, Witness) is (scenario.pins is not None)


@pytest.mark.parametrize("path", scenario_paths(), ids=lambda path: path.stem)
def test_a_scenario_says_what_it_shows(path: Path) -> None:
    about = read_scenario(path).table["about"]
    assert about.endswith(".")
    assert len(about) < 200


def _told(outcome: Solution | CudalockError) -> str:
    """Say what came out instead, for whoever reads the failed test."""
    if isinstance(outcome, Solution):
        return f"solved: { {p: str(c.version) for p, c in outcome.candidates.items()} }"
    if isinstance(outcome, NoSolutionError):
        facts = [described.fact for described in outcome.conflict.facts]
        return f"refused: {[(f.kind.word, f.subject, f.detail) for f in facts]}"
    return f"stopped: {outcome}"


def _assert_same(facts: Iterable[ConflictFact], expected: list[ExpectedFact]) -> None:
    """Every expected fact is one of the conflict, and there is no other."""
    left = list(facts)
    for wanted in expected:
        found = [
            described
            for described in left
            if (described.fact.kind.word, described.fact.subject) == (wanted.kind, wanted.subject)
            and wanted.says in described.fact.detail
            and wanted.note in described.note
            and any(wanted.seen in source for source in described.sources)
        ]
        told = [(d.fact.kind.word, d.fact.subject, d.fact.detail, d.note, d.sources) for d in left]
        assert len(found) == 1, f"{wanted} is {len(found)} of {told}"
        left.remove(found[0])
    assert left == []


def _assert_proved(world: World, error: NoSolutionError) -> None:
    """The facts cannot hold together, and without any one of them they can."""
    for described in (error.conflict.facts, *error.conflict.also):
        core = frozenset(entry.fact for entry in described)
        assert isinstance(search_facts(world, core.__contains__), Refusal)
        for fact in core:
            assert isinstance(search_facts(world, (core - {fact}).__contains__), Witness)


@pytest.mark.parametrize("scenario", _READ, ids=lambda scenario: scenario.name)
def test_a_renamed_scenario_keeps_no_name(scenario: Scenario) -> None:
    def projects(table: Mapping[str, Any]) -> set[str]:
        return {parse_wheel_file(wheel["file"]).project for wheel in table["wheels"]}

    old, new = projects(scenario.table), projects(rename_projects(scenario).table)
    assert len(new) == len(old)
    assert not new & old
