"""500 mutations of a good lock: a broken promise never passes, and nothing else ever fails.

A mutation is drawn as any number of harmless edits and at most one that breaks a promise. Each
breaking edit says which promise it breaks; whether the check names that one is tested elsewhere, here
only that it never passes.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cudalock.errors import InvalidLockError
from cudalock.lock import Lock, LockedPackage, LockedWheel, format_lock, parse_lock
from cudalock.verify.lock_check import InputState, check_lock
from cudalock.verify.problems import CheckResult
from locked_worlds import TODAY, change_package, edit_record, good_lock, rename_wheel

_LOCK, _KNOWLEDGE = good_lock()
_NAMES = sorted(package.name for package in _LOCK.packages)
_NATIVE = sorted(p.name for p in _LOCK.packages if not p.wheels[0].name.endswith("-any.whl"))
_CUDA = ["flash-jit", "kernel", "torch"]
_PLAIN = "manylinux_2_28_x86_64"


@dataclass(frozen=True)
class Edit:
    """An edit of the lock's values, or of its text; ``broken`` is the promise it breaks, if one."""

    about: str
    lock: Callable[[Lock], Lock] = lambda lock: lock
    text: Callable[[str], str] = lambda text: text
    broken: bool = True

    def __repr__(self) -> str:
        return self.about


def _of(lock: Lock, name: str) -> LockedPackage:
    return next(package for package in lock.packages if package.name == name)


def _package(
    about: str,
    name: str,
    change: Callable[[LockedPackage], LockedPackage],
    *,
    broken: bool = True,
) -> Edit:
    return Edit(f"{about} {name}", lambda lock: change_package(lock, name, change), broken=broken)


def _wheel(about: str, name: str, *, broken: bool, **values: object) -> Edit:
    def change(package: LockedPackage) -> LockedPackage:
        first, *rest = package.wheels
        return replace(package, wheels=(replace(first, **values), *rest))  # type: ignore[arg-type]  # fields of a wheel.

    return _package(about, name, change, broken=broken)


def _without(name: str) -> Edit:
    """Take an entry out, and what other entries say of it."""

    def change(lock: Lock) -> Lock:
        return replace(
            lock,
            packages=tuple(
                replace(p, dependencies=tuple(d for d in p.dependencies if d[0] != name))
                for p in lock.packages
                if p.name != name
            ),
        )

    return Edit(f"without {name}", change)


def _version(name: str, version: str, *, broken: bool = True) -> Edit:
    """Change a version everywhere: entry, file name, address, record, and who depends on it."""

    def change(lock: Lock) -> Lock:
        old = _of(lock, name)
        new = old.wheels[0].name.replace(f"-{old.version}-", f"-{version}-", 1)
        changed = rename_wheel(replace(old, version=version), new)
        return replace(
            lock,
            packages=tuple(
                changed
                if p.name == name
                else replace(
                    p,
                    dependencies=tuple((d, version if d == name else v) for d, v in p.dependencies),
                )
                for p in lock.packages
            ),
        )

    return Edit(f"{name} {version}", change, broken=broken)


def _retagged(name: str, tag: str, *, broken: bool = True) -> Edit:
    def change(package: LockedPackage) -> LockedPackage:
        stem = "-".join(package.wheels[0].name.split("-")[:2])
        return rename_wheel(package, f"{stem}-{tag}.whl")

    return _package(f"tag {tag} of", name, change, broken=broken)


def _target(about: str, *, broken: bool = True, **values: object) -> Edit:
    def change(lock: Lock) -> Lock:
        table: dict[str, object] = {**lock.tool["target"]}  # type: ignore[dict-item]  # a table.
        for key, value in values.items():
            table[key.replace("_", "-")] = value
        return replace(lock, tool={**lock.tool, "target": table})  # type: ignore[dict-item]  # plain TOML.

    return Edit(f"target {about}", change, broken=broken)


def _asked(text: str, *, broken: bool = True) -> Edit:
    def change(lock: Lock) -> Lock:
        asked = [*lock.tool["requirements"], text]  # type: ignore[misc]  # a list of texts.
        return replace(lock, tool={**lock.tool, "requirements": asked})

    return Edit(f"asked {text}", change, broken=broken)


def _breaking() -> st.SearchStrategy[Edit]:
    name, native, cuda = (st.sampled_from(names) for names in (_NAMES, _NATIVE, _CUDA))
    digest = re.compile(r'sha256 = "aa(\w*)"')
    return st.one_of(
        name.map(_without),
        st.sampled_from(
            [
                _version("torch", "2.10.0+cu130"),
                _version("torch", "2.8.0+cu130"),
                _version("torch", "2.12.0+cu130"),
                _version("torch", "2.11.0.dev20260101+cu130"),
                _version("torch", "2.11.0+cu128"),
                _version("torch", "2.11.0+cu131"),
                _version("torch", "2.11.0+rocm6.4"),
                _version("kernel", "0.3.9+cu130"),
                _version("kernel", "0.4.4+cu128"),
                _version("flash-python", "0.6.2"),
                _version("flash-jit", "0.6.0+cu130"),
                _version("flash-jit", "0.6.1+cu128"),
                _version("filelock", "3.9.0"),
                _version("filelock", "5.0.0"),
                _version("numpy", "1.26.4"),
                _version("ninja", "1.10.2"),
                _version("nvidia-runtime", "13.0.88"),
                _version("nvidia-runtime", "12.8.90"),
                _target("of another Python", python="3.13"),
                _target("of another machine", platform="manylinux_2_28_aarch64"),
                _target("of an older glibc", platform="manylinux_2_17_x86_64"),
                _target("of Windows", platform="win_amd64"),
                _target("of an older driver", driver="570.124.06", driver_cuda="12.8"),
                _target("of an older CUDA", cuda="12.8"),
                _target("without CUDA", cpu=True),
                _target("of an older GPU", sm=["7.0"]),
                _target("with one more GPU", sm=["9.0", "12.0"]),
                _target("that cannot be read", python=312),
                Edit("no target", lambda k: replace(k, tool={**k.tool, "target": {}})),
                Edit("no record of cudalock", lambda k: replace(k, tool={})),
                Edit("other inputs", lambda k: replace(
                    k, tool={**k.tool, "inputs": {"digest": "sha256:" + "0" * 64}})),
                Edit("no inputs", lambda k: replace(k, tool={**k.tool, "inputs": {}})),
                Edit("another Python", lambda k: replace(k, requires_python="==3.11.*")),
                Edit("another system", lambda k: replace(
                    k, environments=("sys_platform == 'win32'",))),
                _asked("pandas"),
                _asked("numpy<2"),
                _asked("kernel[slow]"),
                _asked("torch==2.9.1"),
                Edit("no sha256", text=lambda t: digest.sub(r'md5 = "aa\1"', t, count=1)),
                Edit("short sha256", text=lambda t: digest.sub('sha256 = "aa"', t, count=1)),
                Edit("upper sha256", text=lambda t: digest.sub(r'sha256 = "AA\1"', t, count=1)),
                Edit("no hashes", text=lambda t: re.sub(r"hashes = \{[^}]*\}", "hashes = {}", t, count=1)),
                Edit("http", text=lambda t: t.replace('url = "https:', 'url = "http:', 1)),
                Edit("cut short", text=lambda t: t[: len(t) // 2]),
                Edit("no version", text=lambda t: re.sub(r'\nversion = "[^"]*"', "", t, count=1)),
                Edit("misspelt marker", text=lambda t: t.replace("\nwheels =", "\nmarkers = 'x'\nwheels =", 1)),
            ]
        ),
        name.map(lambda n: _package("for a newer Python", n, lambda p: replace(p, requires_python=">=3.13"))),
        name.map(lambda n: _package("elsewhere", n, lambda p: replace(p, marker="sys_platform == 'win32'"))),
        name.map(lambda n: _package("only with an extra", n, lambda p: replace(p, marker="'x' in extras"))),
        name.map(lambda n: _package("no record of", n, lambda p: replace(p, tool=None))),
        name.map(lambda n: _package("unread record of", n, lambda p: edit_record(p, requires="all"))),
        name.map(lambda n: _package("another CUDA of", n, lambda p: edit_record(
            p, built_for="known", runtime=12, cuda="12.8"))),
        name.map(lambda n: _package("one more need of", n, lambda p: edit_record(p, requires=["pandas>=2"]))),
        name.map(lambda n: _package("a bond of", n, lambda p: edit_record(p, binds=[
            {"package": "<libtorch>", "values": ["2.9"], "because": "is built for torch 2.9"},
            {"package": "<cuda-toolkit>", "values": ["12.9"], "because": "is a part of CUDA 12.9"},
            {"package": "<cuda-toolkit>", "values": ["13.0"], "because": "is a part of CUDA 13.0"},
        ]))),
        name.map(lambda n: _package("dropped nightly", n, lambda p: edit_record(p, expires="2026-01-31"))),
        cuda.map(lambda n: _package("no CUDA of", n, lambda p: edit_record(
            p, built_for="unknown", runtime=None, cuda=None))),
        native.map(lambda n: _retagged(n, f"cp311-cp311-{_PLAIN}")),
        native.map(lambda n: _retagged(n, "cp312-cp312-manylinux_2_34_x86_64")),
        native.map(lambda n: _retagged(n, "cp312-cp312-manylinux_2_28_aarch64")),
        native.map(lambda n: _retagged(n, "cp312-cp312-win_amd64")),
    )  # fmt: skip


def _second_wheel(package: LockedPackage) -> LockedPackage:
    """Add the wheel of another system, with a record of its own."""
    first = package.wheels[0]
    if first.name.endswith("-any.whl"):
        return package
    name = f"{'-'.join(first.name.split('-')[:2])}-cp312-cp312-win_amd64.whl"
    other = LockedWheel(name=name, url=f"https://mirror.test/{name}", hashes={"sha256": "c" * 64})
    record = dict((package.tool or {})[first.name])  # type: ignore[arg-type]  # a table.
    return replace(package, wheels=(first, other), tool={**(package.tool or {}), name: record})


def _harmless() -> st.SearchStrategy[Edit]:
    name = st.sampled_from(_NAMES)

    def mirrored(package: LockedPackage) -> LockedPackage:
        (wheel, *rest) = package.wheels
        file = (wheel.url or "").rpartition("/")[2]
        moved = replace(wheel, url=f"https://mirror.test/cu130/{file}")
        return replace(package, wheels=(moved, *rest), index="https://mirror.test/cu130/")

    return st.one_of(
        st.permutations(_NAMES).map(
            lambda order: Edit(
                "order",
                lambda lock: replace(
                    lock,
                    packages=tuple(sorted(lock.packages, key=lambda p: order.index(p.name))),
                ),
                broken=False,
            )
        ),
        st.sampled_from(
            [
                Edit("comment", text=lambda t: f"# mine: no\n{t}# end\n", broken=False),
                Edit("blank lines", text=lambda t: t.replace("[[packages]]", "\n\n[[packages]]"), broken=False),
                Edit("line ends", text=lambda t: t.replace("\n", "\r\n"), broken=False),
                Edit("another tool", text=lambda t: f"{t}\n[tool.other]\nkey = 1\n", broken=False),
                Edit("made by", lambda k: replace(k, created_by="cudalock 9"), broken=False),
                Edit("any system", lambda k: replace(k, environments=()), broken=False),
                Edit("any Python", lambda k: replace(k, requires_python=None), broken=False),
                Edit("no notes", lambda k: replace(
                    k, tool={key: k.tool[key] for key in ("inputs", "requirements", "constraints", "target")}),
                    broken=False),
                _asked("numpy>=2.1", broken=False),
                _asked("pandas; sys_platform == 'win32'", broken=False),
                _target("of a newer driver", driver="595.10", broken=False),
                _target("of a newer glibc", platform="manylinux_2_39_x86_64", broken=False),
                _target("of a named machine", name="blackwell", broken=False),
                _retagged("numpy", "cp312-cp312-manylinux_2_17_x86_64", broken=False),
                _retagged("numpy", "py3-none-any", broken=False),
            ]
        ),
        name.map(lambda n: _package("mirror of", n, mirrored, broken=False)),
        name.map(lambda n: _wheel("size of", n, size=7, broken=False)),
        name.map(lambda n: _wheel("one more hash of", n, hashes={"sha256": "aa" * 32, "blake2b": "b" * 128}, broken=False)),
        name.map(lambda n: _package("marker of", n, lambda p: replace(p, marker="sys_platform == 'linux'"), broken=False)),
        name.map(lambda n: _package("no Python of", n, lambda p: replace(p, requires_python=None), broken=False)),
        name.map(lambda n: _package("second wheel of", n, _second_wheel, broken=False)),
        name.map(lambda n: _package("distant end of", n, lambda p: edit_record(p, expires="2027-01-01"), broken=False)),
    )  # fmt: skip


def _check(edits: list[Edit]) -> CheckResult | InvalidLockError:
    lock = _LOCK
    for edit in edits:
        lock = edit.lock(lock)
    try:
        text = format_lock(lock)
    except Exception as error:  # noqa: BLE001 - what cannot be written is read from broken text below.
        return InvalidLockError(str(error))
    for edit in edits:
        text = edit.text(text)
    recorded = _LOCK.tool["inputs"]
    digest = str(recorded["digest"])  # type: ignore[index,call-overload]  # a table with a text.
    try:
        read = parse_lock(text, where="pylock.toml")
    except InvalidLockError as error:
        return error
    return check_lock(read, knowledge=_KNOWLEDGE, today=TODAY, inputs=InputState(digest=digest))


def _told(result: CheckResult | InvalidLockError) -> list[str]:
    if isinstance(result, InvalidLockError):
        return [str(result)]
    return [p.message for p in result.problems if p.severity != "warning"]


@settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow])
@given(
    edits=st.lists(_harmless(), max_size=4, unique_by=repr),
    breaking=st.one_of(st.none(), _breaking()),
)
def test_a_mutated_lock_passes_if_and_only_if_no_promise_is_broken(
    edits: list[Edit], breaking: Edit | None
) -> None:
    if breaking is None:
        assert _told(_check(edits)) == []
        return
    # What breaks comes first, so that no harmless edit undoes it.
    assert _told(_check([breaking])), breaking
    conflicting = _subjects([breaking])
    kept = [edit for edit in edits if not _subjects([edit]) & conflicting]
    assert _told(_check([breaking, *kept])), (breaking, kept)


def _subjects(edits: list[Edit]) -> set[str]:
    """What edits are about, so that two on one thing are not drawn together."""
    words: set[str] = set()
    for edit in edits:
        words |= {name for name in _NAMES if name in edit.about.split()}
        words |= {"target"} & set(edit.about.split())
        if edit.about.startswith("tag "):
            # Whether a tag fits is a matter of both.
            words.add("target")
        if edit.about in {"any system", "any Python", "another Python", "another system"}:
            words.add("lock")
        if edit.about in {
            "no notes",
            "no target",
            "no record of cudalock",
            "other inputs",
            "no inputs",
        }:
            words.add("tool")
    return words


@pytest.mark.parametrize("name", _NAMES)
def test_every_entry_of_the_good_lock_is_missed_when_it_goes(name: str) -> None:
    assert _told(_check([_without(name)]))
