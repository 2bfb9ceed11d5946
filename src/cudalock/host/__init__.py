"""The machine a lock is made for: given by a person, named by a project, or the one we run on.

`Target` is the value that every other room takes. `detect` and `detect_interpreter` alone ask the
machine; everything else here is pure. What runs on which GPU and driver is `cuda`'s business.
"""

from cudalock.lazy import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cudalock.host.detection import Detection, Gpu, SourceAnswer
    from cudalock.host.forward import compat_package
    from cudalock.host.interpreter import Interpreter
    from cudalock.host.options import NamedTarget, TargetOptions
    from cudalock.host.platforms import Platform, parse_platform
    from cudalock.host.precedence import make_target, needs_detection
    from cudalock.host.target import (
        Origin,
        Target,
        TargetWarning,
        every_release,
        marker_environment,
        releases_to_try,
        supported_tags,
    )
    from cudalock.host.this_machine import detect, detect_interpreter

__all__ = [
    "Detection",
    "Gpu",
    "Interpreter",
    "NamedTarget",
    "Origin",
    "Platform",
    "SourceAnswer",
    "Target",
    "TargetOptions",
    "TargetWarning",
    "compat_package",
    "detect",
    "detect_interpreter",
    "every_release",
    "make_target",
    "marker_environment",
    "needs_detection",
    "parse_platform",
    "releases_to_try",
    "supported_tags",
]

__getattr__ = lazy_names(
    __name__,
    {
        "this_machine": ("detect", "detect_interpreter"),
        "detection": ("Detection", "Gpu", "SourceAnswer"),
        "forward": ("compat_package",),
        "interpreter": ("Interpreter",),
        "options": ("NamedTarget", "TargetOptions"),
        "platforms": ("Platform", "parse_platform"),
        "precedence": ("make_target", "needs_detection"),
        "target": (
            "Origin",
            "Target",
            "TargetWarning",
            "every_release",
            "marker_environment",
            "releases_to_try",
            "supported_tags",
        ),
    },
)
