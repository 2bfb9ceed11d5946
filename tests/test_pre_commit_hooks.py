"""The hooks of `.pre-commit-hooks.yaml`, run by the real pre-commit in a real git repository.

pre-commit clones a repository that holds our hook file as it is, makes its own environment and
installs a package there. So that nothing is downloaded, that package is a stand-in whose one file
points at this checkout; the test marked ``network`` installs the checkout itself.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builders import make_wheel
from cudalock.cli.main import main
from default_index_site import Site, default_index
from loopback import Reply

_BIN = Path(sys.executable).parent
_BACKEND = """
import pathlib, shutil

def build_wheel(directory, settings=None, metadata=None):
    (wheel,) = pathlib.Path(__file__).parent.glob("*.whl")
    shutil.copy(wheel, directory)
    return wheel.name
"""
_PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "cudalock"
version = "1.0"
"""
Git = Callable[..., str]


def _git(folder: Path) -> Git:
    def run(*arguments: str) -> str:
        names = [
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@example.org",
            "-c",
            "commit.gpgsign=false",
        ]
        done = subprocess.run(
            ["git", *names, *arguments], cwd=folder, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    return run


@pytest.fixture
def hooks(tmp_path: Path, repository: Path) -> tuple[Path, str]:
    """Make a repository with our hook file and the stand-in package; return it and its revision."""
    folder = tmp_path / "hooks"
    folder.mkdir()
    text = (repository / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    (folder / ".pre-commit-hooks.yaml").write_text(text, encoding="utf-8")
    (folder / "pyproject.toml").write_text(_PYPROJECT, encoding="utf-8")
    (folder / "backend.py").write_text(_BACKEND, encoding="utf-8")
    paths = f"{repository / 'src'}\n{sysconfig.get_path('purelib')}\n"
    make_wheel(
        folder,
        "cudalock",
        "1.0",
        files={
            "checkout.pth": paths.encode(),
            "cudalock-1.0.dist-info/entry_points.txt": (
                b"[console_scripts]\ncudalock = cudalock.cli.main:main\n"
            ),
        },
    )
    git = _git(folder)
    git("init", "-q", "-b", "main")
    git("add", "-A", "-f")
    git("commit", "-q", "-m", "hooks")
    return folder, git("rev-parse", "HEAD")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with default_index(tmp_path / "files") as found:
        found.add("left", "1.0", requires=["right"])
        found.add("right", "1.0")
        yield found


@pytest.fixture
def project(
    hooks: tuple[Path, str], site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Make a git repository of a project with a lock of a real resolve and both hooks."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "pre-commit"))
    monkeypatch.setenv("CUDALOCK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{_BIN}{os.pathsep}{os.environ['PATH']}")
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "x")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "x@example.org")
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "mine"\nversion = "1"\ndependencies = ["left"]\n', encoding="utf-8"
    )
    flags = ["--cpu", "--python", "3.12", "--platform", "linux-x86_64", "-q"]
    assert main(["resolve", "--default-index", site.url, *flags]) == 0
    source, revision = hooks
    (folder / ".pre-commit-config.yaml").write_text(
        f"repos:\n  - repo: {source}\n    rev: {revision}\n    hooks:\n"
        "      - id: cudalock-check\n      - id: cudalock-drift\n",
        encoding="utf-8",
    )
    git = _git(folder)
    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-q", "-m", "begin", "--no-verify")
    return folder


def _pre_commit(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pre_commit", *arguments],
        check=False,
        capture_output=True,
        text=True,
    )


def test_a_commit_passes_while_the_lock_is_true_and_fails_when_it_is_not(project: Path) -> None:
    git = _git(project)
    installed = _pre_commit("install")
    assert installed.returncode == 0, installed.stdout + installed.stderr
    path = project / "pyproject.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(f"{text}# a comment\n", encoding="utf-8")
    git("commit", "-q", "-a", "-m", "a comment changes nothing")
    path.write_text(text.replace('"left"', '"left", "right>=1"'), encoding="utf-8")
    with pytest.raises(subprocess.CalledProcessError) as refused:
        git("commit", "-q", "-a", "-m", "a requirement does")
    told = refused.value.stderr + refused.value.stdout
    assert "cudalock check" in told
    assert "found that they changed since" in " ".join(told.split())
    # What has nothing to do with locks does not run it.
    git("checkout", "-q", "--", "pyproject.toml")
    (project / "notes.md").write_text("x\n", encoding="utf-8")
    git("add", "notes.md")
    run = _pre_commit("run")
    assert "Skipped" in run.stdout
    assert run.returncode == 0


def _forget_pages() -> None:
    """Empty the cache: a page that is still fresh is not asked for again."""
    shutil.rmtree(os.environ["CUDALOCK_CACHE_DIR"])


def test_drift_runs_by_hand_only_and_asks_the_index(project: Path, site: Site) -> None:
    before = len(site.asked)
    run = _pre_commit("run", "--all-files")
    assert (run.returncode, len(site.asked)) == (0, before), run.stdout
    assert "cudalock check --online" not in run.stdout
    by_hand = ("run", "--all-files", "--hook-stage", "manual", "cudalock-drift")
    _forget_pages()
    assert _pre_commit(*by_hand).returncode == 0
    assert len(site.asked) > before
    site.faults["right"] = Reply(404)
    _forget_pages()
    run = _pre_commit(*by_hand)
    assert run.returncode == 1
    assert "right 1.0 is gone from its index" in " ".join(run.stdout.split())


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("pylock.toml", True),
        ("deep/pylock.cu130.toml", True),
        ("pyproject.toml", True),
        ("requirements-dev.txt", True),
        ("my-pylock.toml", False),
        ("pylock.a.b.toml", False),
        ("pylock.toml.orig", False),
        ("docs/pyproject.toml.md", False),
    ],
)
def test_the_files_that_make_it_run_are_named_exactly(
    repository: Path, name: str, counts: bool
) -> None:
    text = (repository / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    (pattern,) = re.findall(r"^  files: (.*)$", text, re.MULTILINE)
    assert bool(re.search(pattern, name)) is counts


@pytest.mark.network
def test_the_checkout_itself_installs_as_a_hook(project: Path, repository: Path) -> None:
    config = project / ".pre-commit-config.yaml"
    revision = _git(repository)("rev-parse", "HEAD")
    config.write_text(
        f"repos:\n  - repo: {repository}\n    rev: {revision}\n"
        "    hooks: [{id: cudalock-check}]\n",
        encoding="utf-8",
    )
    run = _pre_commit("run", "--all-files")
    assert run.returncode == 0, run.stdout + run.stderr
