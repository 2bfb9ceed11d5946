"""A lock of several targets gives each of them its own set, by the standard's own selection."""

import tomllib
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.markers import Environment
from packaging.pylock import PackageWheel, Pylock

from builders import locked_wheel
from cudalock.cuda import CudaVersion
from cudalock.errors import UsageError
from cudalock.host import Target, marker_environment, supported_tags
from cudalock.lock import Lock, LockedPackage, format_lock, parse_lock
from cudalock.lock.preferences import ALL, preferences_of
from cudalock.lock.several import TargetLock, join_locks, lock_of_target, target_extras

_ENVIRONMENT = (
    "implementation_name == 'cpython' and platform_machine == '{machine}' and "
    "platform_system == 'Linux' and python_version == '{python}'"
)
_MACHINES = ("x86_64", "aarch64")
_PYTHONS = ("3.11", "3.12")


def target_of(
    name: str, *, python: str = "3.12", machine: str = "x86_64", glibc: int = 28
) -> Target:
    return Target(
        python=python,
        platform=f"manylinux_2_{glibc}_{machine}",
        cuda=CudaVersion(major=13, minor=0),
        name=name,
    )


def member(target: Target, packages: tuple[LockedPackage, ...]) -> TargetLock:
    environment = _ENVIRONMENT.format(machine=target.machine, python=target.python_minor)
    lock = Lock(
        requires_python=f"=={target.python_minor}.*",
        environments=(environment,),
        packages=packages,
        tool={"target": {"name": target.name or "", "cuda": "13.0"}, "requirements": ["left"]},
    )
    return TargetLock(target=target, lock=lock)


def package(name: str, version: str, tag: str, note: str = "") -> LockedPackage:
    wheel = locked_wheel(name, version, tag=tag, sha256=f"{hash_of(name, version, tag):064x}")
    return LockedPackage(
        name=name, version=version, wheels=(wheel,), tool={wheel.name: {"built-for": "x" + note}}
    )


def hash_of(*parts: str) -> int:
    return int.from_bytes("/".join(parts).encode()[:31], "big")


def native_tag(target: Target, *, plain: bool = False) -> str:
    python = f"cp{target.python_minor.replace('.', '')}"
    interpreter = "cp39-abi3" if plain else f"{python}-{python}"
    return f"{interpreter}-{target.platform}"


@st.composite
def fleets(draw: st.DrawFn) -> list[TargetLock]:
    members = []
    for number in range(draw(st.integers(2, 4))):
        target = target_of(
            f"t{number}",
            python=draw(st.sampled_from(_PYTHONS)),
            machine=draw(st.sampled_from(_MACHINES)),
            glibc=draw(st.sampled_from((28, 34))),
        )
        packages = []
        for name in draw(st.sets(st.sampled_from(("left", "right", "top")), min_size=1)):
            version = draw(st.sampled_from(("1.0", "1.0+cu128", "2.0")))
            kind = draw(st.sampled_from(("pure", "native", "abi3")))
            tag = "py3-none-any" if kind == "pure" else native_tag(target, plain=kind == "abi3")
            packages.append(package(name, version, tag, draw(st.sampled_from(("", "y")))))
        members.append(member(target, tuple(packages)))
    return members


def selected(lock: Lock, target: Target, extra: str | None) -> dict[str, str]:
    """Select as installers do, with packaging's own reading of the text."""
    pylock = Pylock.from_dict(tomllib.loads(format_lock(lock)))
    environment: Mapping[str, str] = marker_environment(target)
    found = {}
    for entry, artifact in pylock.select(
        environment=Environment(**environment),  # type: ignore[typeddict-item]  # every key is one of its own
        tags=supported_tags(target),
        extras=[] if extra is None else [extra],
    ):
        assert isinstance(artifact, PackageWheel)
        found[str(entry.name)] = artifact.filename
    return found


def wheels(lock: Lock) -> dict[str, str]:
    return {package.name: package.wheels[0].name for package in lock.packages}


@settings(max_examples=60)
@given(fleets())
def test_each_target_installs_exactly_the_wheels_that_were_chosen_for_it(
    members: list[TargetLock],
) -> None:
    lock = join_locks(members)
    seen = set()
    for place, each in enumerate(members):
        if place:
            assert selected(lock, each.target, each.extra) == wheels(each.lock)
        # Without an extra an environment gets the set of the first target that is for it.
        if each.lock.environments not in seen:
            seen.add(each.lock.environments)
            assert selected(lock, each.target, None) == wheels(each.lock)


@settings(max_examples=60)
@given(fleets())
def test_the_lock_of_a_target_comes_out_of_the_shared_one_whole(members: list[TargetLock]) -> None:
    lock = join_locks(members)
    text = format_lock(lock)
    assert parse_lock(text, where="x").extras == lock.extras
    assert list(target_extras(lock)) == [each.name for each in members]
    for each in members:
        assert format_lock(lock_of_target(lock, each.target)) == format_lock(each.lock)


@settings(max_examples=20)
@given(fleets(), st.randoms())
def test_the_order_of_what_is_shared_changes_nothing(
    members: list[TargetLock], order: object
) -> None:
    others = members[1:]
    order.shuffle(others)  # type: ignore[attr-defined]  # hypothesis' own random
    turned = [TargetLock(target=m.target, lock=_turned(m.lock)) for m in [members[0], *others]]
    one, two = join_locks(members), join_locks(turned)
    for each in members:
        assert selected(one, each.target, _extra(one, each)) == selected(
            two, each.target, _extra(two, each)
        )


def _extra(lock: Lock, member: TargetLock) -> str | None:
    return target_extras(lock)[member.name]


def _turned(lock: Lock) -> Lock:
    return Lock(
        requires_python=lock.requires_python,
        environments=lock.environments,
        packages=lock.packages[::-1],
        tool=lock.tool,
    )


def test_one_release_for_two_machines_is_one_entry_with_two_wheels() -> None:
    targets = [target_of("here"), target_of("spark", machine="aarch64")]
    lock = join_locks(
        [member(each, (package("left", "1.0", native_tag(each)),)) for each in targets]
    )
    [entry] = lock.packages
    assert entry.marker is None
    assert len(entry.wheels) == 2


def test_files_that_only_a_marker_could_tell_apart_are_two_entries() -> None:
    # Nothing in an environment tells one glibc from another.
    targets = [target_of("old"), target_of("new", glibc=34)]
    lock = join_locks(
        [member(each, (package("left", "1.0", native_tag(each)),)) for each in targets]
    )
    assert {entry.marker for entry in lock.packages} == {
        "'new' in extras",
        "'new' not in extras",
    }


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("a",), "fewer than two"),
        (("a", "a"), "each target once"),
        (("a_b", "a-b"), "both `a-b`"),
        (("a", ""), "both ``"),
    ],
)
def test_targets_that_no_extra_tells_apart_are_refused(names: tuple[str, ...], words: str) -> None:
    members = [member(target_of(name), ()) for name in names]
    with pytest.raises(UsageError, match=words):
        join_locks(members)


def test_a_target_that_the_lock_does_not_have_is_refused() -> None:
    lock = member(target_of("a"), (package("left", "1.0", "py3-none-any"),)).lock
    with pytest.raises(UsageError, match="found `b`"):
        lock_of_target(lock, target_of("b"))
    assert target_extras(Lock()) == {}


def test_a_lock_that_nobody_recorded_a_target_in_prefers_what_it_has_once() -> None:
    lock = Lock(
        extras=("x",),
        packages=(
            package("left", "1.0", "py3-none-any"),
            LockedPackage(name="top", version="1.0", marker="'x' in extras",
                          wheels=(locked_wheel("top", "1.0"),)),
            LockedPackage(name="top", version="2.0", marker="'x' not in extras",
                          wheels=(locked_wheel("top", "2.0"),)),
        ),
    )  # fmt: skip
    found = preferences_of(lock, target_of("a"))
    assert {name: p.public for name, p in found.items()} == {"left": "1.0"}
    assert found["left"].filename is None
    assert preferences_of(lock, target_of("a"), upgrade=[ALL]) == {}
    assert preferences_of(lock, target_of("a"), upgrade=["Left"]) == {}
