"""The built wheel holds what it should and nothing else; an editable install finds the data."""

import subprocess
import sys
import zipfile
from pathlib import Path

import cudalock
from cudalock.index.locate import find_indices


def _build(repository: Path, folder: Path, *kinds: str) -> list[Path]:
    """Build with the real backend, from this environment: isolation would need a network."""
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), *kinds],
        cwd=repository,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return sorted(folder.iterdir())


def _expected(repository_files: tuple[str, ...]) -> set[str]:
    """List what the repository says is in the wheel, without the wheel's own records."""
    names = set()
    for name in repository_files:
        if name.startswith("src/cudalock/"):
            names.add(name.removeprefix("src/"))
        elif name.startswith("indices/"):
            names.add(f"cudalock/{name}")
    return names


def test_the_wheel_holds_the_sources_the_data_and_its_records_only(
    repository: Path, repository_files: tuple[str, ...], tmp_path: Path
) -> None:
    # Built by way of the source distribution, so that what is missing there is missed here.
    _, wheel = sorted(_build(repository, tmp_path), key=lambda path: path.suffix == ".whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        entry_points = archive.read(
            next(name for name in names if name.endswith("/entry_points.txt"))
        ).decode()
    info = f"cudalock-{wheel.name.split('-')[1]}.dist-info"
    records = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    assert len(set(names)) == len(names)
    assert set(names) == _expected(repository_files) | {f"{info}/{name}" for name in records}
    assert wheel.name.endswith("-py3-none-any.whl")
    assert "cudalock = cudalock.cli.main:main" in entry_points


def test_what_the_package_cannot_do_without_is_in_the_repository(
    repository_files: tuple[str, ...],
) -> None:
    expected = _expected(repository_files)
    assert {"cudalock/__init__.py", "cudalock/py.typed", "cudalock/cuda/tables.toml"} <= expected
    for folder in ("cudalock/indices/knowledge/", "cudalock/indices/recorded/"):
        assert any(name.startswith(folder) for name in expected)
    assert {"cudalock/indices/pytorch.toml", "cudalock/indices/sglang.toml"} <= expected


def test_an_editable_install_finds_the_folder_at_the_top_of_the_repository(
    repository: Path,
) -> None:
    assert Path(cudalock.__file__).resolve().is_relative_to(repository / "src")
    assert find_indices() == repository / "indices"
