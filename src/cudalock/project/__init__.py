"""What a person's project asks for: arguments, requirements files, pyproject.toml, scripts.

Specifications: dependency specifiers (PEP 508), pip's requirements file format, pyproject.toml
(PEP 621), dependency groups (PEP 735), inline script metadata (PEP 723), and the tables of uv and
of cudalock in ``[tool]``. Which wheels answer a requirement is the resolver's business.
"""

from cudalock.lazy import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cudalock.project.faults import Fault, ProjectFileError
    from cudalock.project.index_url import IndexUrl, parse_index_url, redact
    from cudalock.project.pyproject import (
        ProjectFile,
        RequirementGroup,
        parse_pyproject,
        project_requirements,
        select_target,
    )
    from cudalock.project.requirement import RequestedRequirement, parse_requirement
    from cudalock.project.requirements_file import (
        FileReference,
        RequirementsFile,
        parse_requirements,
        read_requirements,
    )
    from cudalock.project.script import parse_script
    from cudalock.project.uv_settings import UvConflict, UvIndex, UvSettings, UvSource

__all__ = [
    "Fault",
    "FileReference",
    "IndexUrl",
    "ProjectFile",
    "ProjectFileError",
    "RequestedRequirement",
    "RequirementGroup",
    "RequirementsFile",
    "UvConflict",
    "UvIndex",
    "UvSettings",
    "UvSource",
    "parse_index_url",
    "parse_pyproject",
    "parse_requirement",
    "parse_requirements",
    "parse_script",
    "project_requirements",
    "read_requirements",
    "redact",
    "select_target",
]

__getattr__ = lazy_names(
    __name__,
    {
        "faults": ("Fault", "ProjectFileError"),
        "index_url": ("IndexUrl", "parse_index_url", "redact"),
        "pyproject": (
            "ProjectFile",
            "RequirementGroup",
            "parse_pyproject",
            "project_requirements",
            "select_target",
        ),
        "requirement": ("RequestedRequirement", "parse_requirement"),
        "requirements_file": (
            "FileReference",
            "RequirementsFile",
            "parse_requirements",
            "read_requirements",
        ),
        "script": ("parse_script",),
        "uv_settings": ("UvConflict", "UvIndex", "UvSettings", "UvSource"),
    },
)
