"""Reads `indices/knowledge/*.toml`: what metadata fails to say, each entry with its source.

An entry is an ``[[entry]]`` table with ``kind``, ``project``, ``versions``, ``value``, ``source``
and ``date``. ``project`` may be a list, which stands for one entry a project. What ``value`` holds
depends on the kind:

===============  =================  ==========================================================
kind             versions           value
===============  =================  ==========================================================
family, train    none               list of projects; ``project`` is the group's name
pairing          required           ``{ partner = "2.9" }``
rename           ``>=``, required   the successor's name
tested-set       ``==``, required   ``{ project = "version" }``
metadata         required           list of Requires-Dist, perhaps empty
toolkit          none               none
toolkit-part     none               ``toolkit-number`` or ``own-number``
runtime-library  optional           the CUDA major, a number
cuda-number      none               none
placeholder      required           none
needs-pairing    none               the partner
compiles         none               none
optional-kernels none               none
cuda-project     none               none
label-word       none               none; ``project`` is what labels mean by ``torch`` and ``pt``
squatted         none               who holds the name on the default index
architectures    optional           ``{ cuda, machine, untagged, images | libraries, as-data }``:
                                    ``images`` is a list such as ``sm_90a``, ``compute_90@8.7``;
                                    ``libraries`` a table of such lists by the name of a library;
                                    ``cuda`` a release or a list of them; ``machine`` is x86_64 or
                                    aarch64 (Linux) or win_amd64; ``untagged = true`` means the
                                    build without a local label only
cpu-build        required           x86_64, aarch64 (Linux) or win_amd64
cxx11-abi        required           ``{ new = true, cuda }``
jit-floor        optional           ``{ capabilities = ["12.0"], toolkit = "12.9" }``
bundled-compiler required           ``{ cuda = "12.8", remedy }``
shared-library   none               ``{ names = ["libcudart"], numbers }`` of the projects that bring
                                    them; ``numbers`` is ``"cuda"`` where the number behind ``.so.``
                                    is the CUDA major, or a table from it to that major
===============  =================  ==========================================================

The types are those of `cudalock.wheel.knowledge`. Strict: every fault of a file is reported at
once, since an entry that is silently dropped changes an answer silently.
"""

from dataclasses import fields, replace
from pathlib import Path

from cudalock.index.knowledge_entry import Entry
from cudalock.index.knowledge_kinds import KINDS, make_values
from cudalock.index.locate import DataFileError, FaultList, parse_toml, read_data_file
from cudalock.wheel.knowledge import Family, Knowledge

__all__ = ["load_knowledge", "parse_knowledge"]


def parse_knowledge(text: str, *, where: str) -> Knowledge:
    """Parse one knowledge file, entries in their order; raise `DataFileError` with every fault."""
    table = parse_toml(text, where=where)
    faults = FaultList(where)
    faults.check_keys(table, ("entry",))
    entries = table.get("entry", [])
    if not isinstance(entries, list):
        faults.add("entry", "expected [[entry]] tables")
        entries = []
    found: dict[str, list[object]] = {}
    for number, item in enumerate(entries, 1):
        key = f"entry {number}"
        if not isinstance(item, dict):
            faults.add(key, f"expected a table, found `{item!r}`")
            continue
        entry = Entry(item, key, faults)
        if entry.kind in KINDS:
            found.setdefault(KINDS[entry.kind][0], []).extend(make_values(entry))
        elif entry.kind:
            faults.check_keys({entry.kind: None}, KINDS, f"{key}.kind: ")
    faults.raise_if_any()
    # Each list was filled by the maker of its own kind.
    return replace(Knowledge(), **{name: tuple(values) for name, values in found.items()})  # type: ignore[arg-type]


def load_knowledge(directory: Path) -> Knowledge:
    """Read every ``*.toml`` of a folder as one body of knowledge, by file name.

    Raises one `DataFileError` with all faults of all files. Cost: about 15 ms for 420 entries.
    """
    parts: list[Knowledge] = []
    faults: list[str] = []
    for path in sorted(directory.glob("*.toml")):
        try:
            parts.append(parse_knowledge(read_data_file(path).decode("utf-8"), where=path.name))
        except UnicodeDecodeError:
            faults.append(f"{path.name}: expected UTF-8")
        except DataFileError as error:
            faults += [f"{path.name}: {fault}" for fault in error.faults]
    names = [field.name for field in fields(Knowledge)]
    merged = {name: tuple(item for part in parts for item in getattr(part, name)) for name in names}
    faults += _find_contradictions(merged)
    if faults:
        raise DataFileError(faults, where=str(directory))
    return replace(Knowledge(), **merged)


def _find_contradictions(merged: dict[str, tuple[object, ...]]) -> list[str]:
    """Return what two entries say of one thing where a look-up would silently take the first."""
    faults = []
    for name, key in (
        ("toolkit_parts", ("project",)),
        ("renames", ("project",)),
        ("marks", ("kind", "project")),
        ("tested_sets", ("project", "version")),
        ("pairings", ("project", "versions", "partner")),
        ("shared_libraries", ("stem",)),
    ):
        seen: set[tuple[object, ...]] = set()
        for item in merged[name]:
            what = tuple(getattr(item, part) for part in key)
            if what in seen:
                faults.append(
                    f"{name}: expected one entry for {' '.join(map(str, what))}, found two"
                )
            seen.add(what)
    owners: dict[str, str] = {}
    for family in merged["families"]:
        if isinstance(family, Family):
            faults += [
                f"families: `{project}` is in two of them"
                for project in family.projects
                if owners.setdefault(project, family.name) != family.name
            ]
    return faults
