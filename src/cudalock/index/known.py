"""The names of projects met in data, for those who misspell one; nothing is asked."""

from collections.abc import Iterable
from contextlib import suppress

from cudalock.errors import WheelError
from cudalock.index.definitions import Definition
from cudalock.index.recorded import Recording
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.names import parse_project_name

__all__ = ["known_names"]


def known_names(
    definitions: Iterable[Definition],
    recordings: Iterable[Recording],
    knowledge: Knowledge,
    page_addresses: Iterable[str],
) -> frozenset[str]:
    """Return every project that a definition, a recording, knowledge or a cached page names."""
    names: set[str] = set()
    for address in page_addresses:
        # The last part of a page's address is its project; one that is no name is left out.
        with suppress(WheelError):
            names.add(parse_project_name(address.rstrip("/").rpartition("/")[2]))
    for definition in definitions:
        names.update(definition.projects, definition.nightly_projects, definition.serves)
    for recording in recordings:
        names.update(recording.project_names)
    for family in knowledge.families:
        names.update(family.projects)
    for rename in knowledge.renames:
        names.update((rename.project, rename.successor))
    for pairing in knowledge.pairings:
        names.update((pairing.project, pairing.partner))
    for entries in (
        knowledge.tested_sets,
        knowledge.stand_ins,
        knowledge.toolkits,
        knowledge.toolkit_parts,
        knowledge.runtime_libraries,
        knowledge.cuda_numbers,
        knowledge.marks,
    ):
        names.update(entry.project for entry in entries)
    return frozenset(names)
