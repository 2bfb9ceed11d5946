"""Comparing two locks."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from builders import locked_package, locked_wheel
from cudalock.lock import Lock, compare_locks, format_difference
from cudalock.lock.pairing import pair_entries


def test_a_lock_does_not_differ_from_itself_in_another_order() -> None:
    packages = (locked_package(), locked_package("right", "2.0"))
    difference = compare_locks(Lock(packages=packages), Lock(packages=packages[::-1]))
    assert not difference
    assert format_difference(difference) == ""


def test_what_changed_is_worded_one_line_a_change() -> None:
    wheel = replace(locked_wheel("same", "1"), hashes={"sha256": "cd" * 32})
    old = Lock(
        requires_python=">=3.11",
        packages=(
            locked_package("gone", "1"),
            locked_package("moved", "1.0+cu128"),
            locked_package("same", "1"),
            locked_package("split", "1", marker="'a' not in extras"),
        ),
    )
    new = Lock(
        requires_python=">=3.12",
        extras=("b", "a"),
        packages=(
            locked_package("fresh", "3"),
            locked_package("moved", "1.0+cu130"),
            locked_package("same", "1", wheels=(wheel,), tool={"x": 1}),
            locked_package("split", "2", marker="'a' in extras"),
            locked_package("split", "1", marker="'a' not in extras"),
        ),
    )
    difference = compare_locks(old, new)
    assert difference
    assert format_difference(difference).splitlines() == [
        "requires-python: >=3.11 -> >=3.12",
        "extras: - -> a, b",
        "- gone 1",
        "+ fresh 3",
        "+ split 2",
        "~ moved 1.0+cu128 -> 1.0+cu130",
        "~ same 1: hashes, evidence",
    ]
    assert difference.changed[0].parts == ("version", "wheels", "hashes")
    back = compare_locks(new, old)
    assert (back.added, back.removed) == (difference.removed, difference.added)


def test_each_part_of_an_entry_is_told_apart() -> None:
    package = locked_package()
    changes = {
        "marker": replace(package, marker="os_name == 'posix'"),
        "requires-python": replace(package, requires_python=">=3.12"),
        "index": replace(package, index=None),
        "dependencies": replace(package, dependencies=(("left", None),)),
        "wheels": replace(package, wheels=(replace(package.wheels[0], size=1),)),
    }
    for part, changed in changes.items():
        difference = compare_locks(Lock(packages=(package,)), Lock(packages=(changed,)))
        assert [change.parts for change in difference.changed] == [(part,)]


_markers = st.lists(st.sampled_from(["", "a", "b", "c"]), max_size=6)


@given(_markers, _markers)
def test_entries_are_paired_once_each_and_equal_markers_first(
    old: list[str], new: list[str]
) -> None:
    pairing = pair_entries(old, new)
    olds = [place for place, _ in pairing.matched] + list(pairing.only_old)
    news = [place for _, place in pairing.matched] + list(pairing.only_new)
    assert sorted(olds) == list(range(len(old)))
    assert sorted(news) == list(range(len(new)))
    equal = sum(min(old.count(marker), new.count(marker)) for marker in ("", "a", "b", "c"))
    assert sum(old[before] == new[after] for before, after in pairing.matched) == equal
    assert not (pairing.only_old and pairing.only_new)
