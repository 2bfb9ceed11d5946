"""The command that a remedy is shown as asks for what was solved: pasted, it locks."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from cudalock.cli.main import main
from default_index_site import Site, default_index

_FLAGS = ["--python", "3.12", "--platform", "manylinux_2_34_x86_64", "--only-default-index"]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with default_index(tmp_path / "files") as found:
        found.add("old", "1.0", tag="cp311-cp311-manylinux_2_28_x86_64")
        found.add("left", "1.0+cu130", tag="cp312-cp312-manylinux_2_28_x86_64")
        yield found


@pytest.mark.parametrize(
    ("asked", "change"),
    [
        (["old", "--cpu"], "--python 3.11"),
        (["left", "--driver", "570.26", "--sm", "9.0"], "--driver 580.65.06"),
    ],
)
def test_the_command_of_a_remedy_locks(
    site: Site,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    asked: list[str],
    change: str,
) -> None:
    where = ["--cache-dir", str(tmp_path / "cache"), "--dry-run"]
    assert main(["resolve", *asked, *_FLAGS, "--default-index", site.url, *where]) == 1
    told = capsys.readouterr().err
    assert f"hint: with `{change}` the set resolves" in told
    command = re.search(r"^  cudalock (resolve .*(?:\n    .*)*)", told, re.MULTILINE)
    assert command is not None
    assert change in " ".join(command[1].split())
    assert main([*shlex.split(command[1]), *where]) == 0
    assert "Resolved 1 package" in capsys.readouterr().err
