"""The second search: budgets, reading, and what lets a wheel in that is otherwise left out."""

import pytest

from cudalock.errors import ResolutionStoppedError, WheelError
from cudalock.resolver import exhaustive
from cudalock.resolver.exhaustive import Refusal, Witness, prove, search_facts
from cudalock.resolver.facts import FactKind
from random_worlds import Oracle, RandomWorld, Wheel, make_world


def _prove(spec: RandomWorld) -> dict[str, str] | set[tuple[str, str]]:
    """Return the set, or the facts of the refusal."""
    answer = prove(make_world(spec))
    if isinstance(answer, Refusal):
        return {(fact.subject, fact.detail) for fact in answer.facts}
    return {
        node: str(option.version)
        for node, option in answer.chosen.items()
        if hasattr(option, "version")
    }


_CLASH = RandomWorld(
    requirements=("a", "b"),
    wheels=(
        Wheel(project="a", version="1.0", requires=("c==1.0",)),
        Wheel(project="b", version="1.0", requires=("c==2.0",)),
        Wheel(project="c", version="1.0"),
        Wheel(project="c", version="2.0"),
    ),
)


def test_a_refusal_names_the_facts_that_clash() -> None:
    assert _prove(_CLASH) == {("", "a"), ("", "b"), ("a", "c==1.0"), ("b", "c==2.0")}


def test_what_was_never_read_is_taken_to_require_nothing() -> None:
    answer = search_facts(make_world(_CLASH), lambda _: True)
    assert isinstance(answer, Witness)
    assert sorted(str(candidate) for candidate in answer.unread) == ["a 1.0", "b 1.0"]


def test_what_knowledge_says_of_a_version_holds_before_the_wheel_is_read() -> None:
    spec = RandomWorld(
        requirements=("a", "b"),
        wheels=(Wheel(project="a", version="1.0"), Wheel(project="b", version="2.0")),
        families=(("a", "b"),),
    )
    assert isinstance(search_facts(make_world(spec), lambda _: True), Refusal)


def test_a_wheel_that_the_page_rules_out_still_has_its_pairing() -> None:
    spec = RandomWorld(
        requirements=("a", "b==2.0"),
        wheels=(Wheel(project="a", version="1.0+cu126"), Wheel(project="b", version="2.0")),
        pairings=(("a", "==1.0", "b", "1.0"),),
    )
    world = make_world(spec)
    without = search_facts(world, lambda fact: fact.kind is not FactKind.DEMAND)
    assert isinstance(without, Refusal)
    assert {fact.kind.word for fact in without.facts} == {"requirement", "pairing", "release"}


def test_past_its_steps_it_proves_nothing() -> None:
    with pytest.raises(ResolutionStoppedError, match="ran out of steps"):
        prove(make_world(_CLASH), step_limit=2)


def test_past_what_it_may_read_it_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exhaustive, "_READ_LIMIT", 1)
    with pytest.raises(ResolutionStoppedError, match="read too many wheels"):
        prove(make_world(_CLASH))


def test_a_chain_of_a_thousand_requirements_is_no_recursion() -> None:
    chain = tuple(
        Wheel(project=f"p{n}", version="1.0", requires=(f"p{n + 1}",)) for n in range(1200)
    )
    world = make_world(RandomWorld(requirements=("p0",), wheels=chain))
    for wheel in chain:
        world.details(world.options(wheel.project).candidates[0])
    answer = search_facts(world, lambda _: True)
    assert isinstance(answer, Refusal)
    assert len(answer.facts) == 1201


def test_extras_that_ask_for_each_other_have_an_end() -> None:
    spec = RandomWorld(
        requirements=("a[x]",),
        wheels=(
            Wheel(project="a", version="1.0", requires=("b[x]; extra == 'x'",)),
            Wheel(project="b", version="1.0", requires=("a[x]; extra == 'x'", "c>1; extra == 'x'")),
            Wheel(project="c", version="1.0"),
        ),
    )
    assert _prove(spec) == {("", "a[x]"), ("a", "b[x]"), ("b", "c>1")}


def test_an_extra_asked_for_late_adds_its_edges_to_what_is_decided() -> None:
    spec = RandomWorld(
        requirements=("a==1.0", "b", "c"),
        wheels=(
            Wheel(project="a", version="1.0", requires=("c<2; extra == 'x'",)),
            Wheel(project="b", version="1.0"),
            Wheel(project="b", version="2.0", requires=("a[x]",)),
            Wheel(project="c", version="2.0"),
            Wheel(project="c", version="1.0", requires=("b==2.0",)),
        ),
    )
    found = _prove(spec)
    assert isinstance(found, dict)
    assert found in ({"a": "1.0", "b": "1.0", "c": "2.0"}, {"a": "1.0", "b": "2.0", "c": "1.0"})


_EARLY = (
    Wheel(project="a", version="1.0", requires=("missing",)),
    Wheel(project="a", version="2.0rc1"),
)


def test_a_pre_release_is_let_in_by_a_wheel_that_is_read_only_for_that() -> None:
    spec = RandomWorld(
        requirements=("a", "b"),
        wheels=(*_EARLY, Wheel(project="b", version="1.0", requires=("a==2.0rc1",))),
    )
    assert _prove(spec) == {"a": "2.0rc1", "b": "1.0"}


def test_a_pre_release_that_only_an_unchosen_wheel_pins_is_out() -> None:
    spec = RandomWorld(
        requirements=("a", "b<2"),
        wheels=(
            *_EARLY,
            Wheel(project="b", version="1.0"),
            Wheel(project="b", version="2.0", requires=("a==2.0rc1",)),
        ),
    )
    world = make_world(spec)
    for candidate in world.options("b").candidates:
        world.details(candidate)
    answer = prove(world)
    assert isinstance(answer, Refusal)
    assert ("a", "a pre-release") in {(fact.subject, fact.detail) for fact in answer.facts}


def test_a_pin_in_an_extra_that_nobody_asks_for_lets_nothing_in() -> None:
    spec = RandomWorld(
        requirements=("a", "b", "c"),
        wheels=(
            *_EARLY,
            Wheel(project="b", version="1.0", requires=("a==2.0rc1; extra == 'x'",)),
            Wheel(project="c", version="1.0"),
            Wheel(project="c", version="2.0"),
        ),
    )
    world = make_world(spec)
    world.details(world.options("b").candidates[0])
    assert isinstance(prove(world), Refusal)
    asked = RandomWorld(
        requirements=("a", "b", "c"),
        wheels=(*spec.wheels, Wheel(project="c", version="0.1", requires=("b[x]",))),
        constraints=("c<1",),
    )
    assert _prove(asked) == {"a": "2.0rc1", "b": "1.0", "c": "0.1"}


def test_no_wheel_lets_itself_in() -> None:
    wheels = (_EARLY[0], Wheel(project="a", version="2.0rc1", requires=("a==2.0rc1",)))
    spec = RandomWorld(requirements=("a",), wheels=wheels)
    world = make_world(spec)
    for candidate in world.options("a").candidates:
        world.details(candidate)
    assert isinstance(prove(world), Refusal)
    assert not Oracle(spec).satisfiable()


def test_a_wheel_by_url_is_there_only_while_somebody_asks_for_it() -> None:
    hidden = Wheel(project="a", version="2.0")
    spec = RandomWorld(
        requirements=("a", "b", "c"),
        wheels=(
            Wheel(project="a", version="1.0"),
            hidden,
            Wheel(project="b", version="1.0", requires=(f"a @ {hidden.url}",)),
            Wheel(project="b", version="2.0"),
            Wheel(project="c", version="1.0", requires=("a>=2.0",)),
        ),
        constraints=("b<2",),
    )
    assert _prove(spec) == {"a": "2.0", "b": "1.0", "c": "1.0"}


def test_a_url_that_fails_counts_only_where_it_is_asked_for() -> None:
    bad = "https://wheels.test/other-1.0-py3-none-any.whl"
    wheels = (
        Wheel(project="a", version="1.0", requires=("missing",)),
        Wheel(project="b", version="1.0"),
        Wheel(project="b", version="2.0", requires=(f"a @ {bad}",)),
    )
    unasked = RandomWorld(requirements=("a", "b<2"), wheels=wheels)
    world = make_world(unasked)
    for candidate in world.options("b").candidates:
        world.details(candidate)
    assert isinstance(prove(world), Refusal)
    asked = RandomWorld(requirements=("b>=2",), wheels=wheels)
    with pytest.raises(WheelError):
        prove(make_world(asked))


def test_a_page_that_is_not_whole_may_hold_what_is_pinned() -> None:
    wheels = (
        Wheel(project="a", version="1.0"),
        Wheel(project="b", version="1.0", requires=("a==1.0",)),
    )
    spec = RandomWorld(requirements=("a==2.0",), wheels=wheels, partial=frozenset({"a"}))
    refused = prove(make_world(spec))
    assert isinstance(refused, Refusal)
    assert any(fact.kind is FactKind.INCOMPLETE for fact in refused.facts)
    unseen = search_facts(make_world(spec), lambda fact: fact.kind is not FactKind.INCOMPLETE)
    assert isinstance(unseen, Witness)
    # `==2.0+cu130` says more than `==2.0`; both may be the same wheel, and `==2.1` is another.
    for other, satisfiable in [("a==2.0+cu130", True), ("a==2.1", False)]:
        both = RandomWorld(requirements=("a==2.0", other), wheels=wheels, partial=frozenset({"a"}))
        answer = search_facts(make_world(both), lambda fact: fact.kind is not FactKind.INCOMPLETE)
        assert isinstance(answer, Witness) is satisfiable
