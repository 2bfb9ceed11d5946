"""What a target installs of a lock, for whoever embeds cudalock in an installer."""

import pytest

import cudalock
from builders import locked_package, locked_wheel
from cudalock.errors import LockMismatchError, UsageError
from cudalock.host import Target
from cudalock.lock import Lock, LockedPackage

_TARGET = Target(python="3.12", platform="manylinux_2_28_x86_64")
_TAG = "cp312-cp312-manylinux_2_28_x86_64"


def test_the_best_wheel_of_each_entry_whose_marker_holds() -> None:
    native = locked_wheel("left", "1.0", tag=_TAG)
    lock = Lock(
        extras=("cu128",),
        default_groups=("main",),
        packages=(
            locked_package("left", "1.0", wheels=(locked_wheel("left", "1.0"), native)),
            locked_package("top", "1.0", marker="'cu128' in extras"),
            locked_package("right", "2.0", marker="'main' in dependency_groups"),
            locked_package("bottom", "2.0", marker="sys_platform == 'win32'"),
        ),
    )
    chosen = cudalock.select(lock, _TARGET)
    assert [(one.package.name, one.wheel.name) for one in chosen] == [
        ("left", native.name),
        ("right", "right-2.0-py3-none-any.whl"),
    ]
    more = cudalock.select(lock, _TARGET, extras={"cu128"}, groups=frozenset())
    assert [one.package.name for one in more] == ["left", "top"]


@pytest.mark.parametrize(
    ("lock", "words"),
    [
        (Lock(requires_python=">=3.13"), "expected Python >=3.13, found Python 3.12"),
        (Lock(environments=("sys_platform == 'win32'",)), "expected an environment of"),
        (Lock(packages=(locked_package("left", "1.0", wheels=(
            locked_wheel("left", "1.0", tag="cp311-cp311-win_amd64"),)),)),
         "expected a wheel of left for Python 3.12 on manylinux_2_28_x86_64"),
        (Lock(packages=(locked_package("left", "1.0", marker="python_version > '3'"),
                        locked_package("left", "2.0", marker="sys_platform == 'linux'"))),
         "expected one entry of left, found several"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_a_mismatch(lock: Lock, words: str) -> None:
    with pytest.raises(LockMismatchError, match=words):
        cudalock.select(lock, _TARGET)


def test_a_name_that_the_lock_does_not_declare_is_asked_wrongly() -> None:
    lock = Lock(extras=("cu128",), packages=(locked_package(),))
    with pytest.raises(UsageError, match=r"an extra of the lock \(`cu128`\), found `cu130`"):
        cudalock.select(lock, _TARGET, extras={"cu130"})
    with pytest.raises(UsageError, match=r"a group of the lock \(none\), found `dev`"):
        cudalock.select(lock, _TARGET, groups={"dev"})


def test_this_python_installs_pure_wheels() -> None:
    package: LockedPackage = locked_package("left", "1.0")
    [chosen] = cudalock.select(Lock(packages=(package,)), cudalock.this_python())
    assert chosen.package == package
