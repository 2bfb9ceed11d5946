"""What a wheel says: its file name, its metadata, and what those are evidence of.

Specifications: binary distribution format (file names, tags), core metadata, version specifiers,
dependency specifiers. Reading a wheel's bytes beyond METADATA begins in `contents.py`, which is
imported by those who need it; which index a file comes from is `index/`'s business.
"""

from cudalock.lazy import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cudalock.wheel.filename import WheelFile, parse_wheel_file
    from cudalock.wheel.knowledge import Knowledge
    from cudalock.wheel.listing import FileRejection, IndexAnswer, ListedFile, ProjectListing
    from cudalock.wheel.metadata import CoreMetadata, parse_core_metadata

__all__ = [
    "CoreMetadata",
    "FileRejection",
    "IndexAnswer",
    "Knowledge",
    "ListedFile",
    "ProjectListing",
    "WheelFile",
    "parse_core_metadata",
    "parse_wheel_file",
]

__getattr__ = lazy_names(
    __name__,
    {
        "filename": ("WheelFile", "parse_wheel_file"),
        "knowledge": ("Knowledge",),
        "listing": ("FileRejection", "IndexAnswer", "ListedFile", "ProjectListing"),
        "metadata": ("CoreMetadata", "parse_core_metadata"),
    },
)
