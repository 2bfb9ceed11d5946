"""Which target is meant: flags before variables before a named target before this machine.

The rules, in one place: values come from the highest level that gives them, field by field; the
driver and its CUDA are one field, so are the GPUs; once anybody says anything about CUDA, this
machine's driver and GPUs are not looked at. Nothing is silently CPU and nothing silently CUDA.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cudalock.cuda import (
    ComputeCapability,
    CudaVersion,
    DriverVersion,
    class_of,
    driver_cuda,
    is_tegra,
)
from cudalock.errors import UsageError
from cudalock.host.detection import DRIVER_TABLE, Detection
from cudalock.host.forward import Machine, forward_release
from cudalock.host.interpreter import Interpreter, PythonChoice, parse_python
from cudalock.host.options import (
    CudaCompat,
    NamedTarget,
    ParsedOptions,
    TargetOptions,
    options_from_environment,
    parse_options,
)
from cudalock.host.platforms import Platform, parse_platform
from cudalock.host.target import Origin, Target, TargetWarning

__all__ = ["make_target", "needs_detection"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    """One source of options: its values, and how it calls a key."""

    options: ParsedOptions
    place: Callable[[str], str]

    @property
    def speaks_of_cuda(self) -> bool:
        o = self.options
        release = o.cuda is not None or o.cuda_any
        driver = o.driver is not None or o.driver_cuda is not None
        return release or driver or o.capabilities is not None or o.cpu


def needs_detection(
    options: TargetOptions,
    *,
    named: NamedTarget | None,
    environ: Mapping[str, str] | None = None,
) -> bool:
    """Whether `make_target` will want this machine's driver and GPUs: nobody spoke of CUDA.

    Raises:
        UsageError: an option cannot be read.

    """
    if named is not None:
        return False
    return not any(level.speaks_of_cuda for level in _levels(options, environ or {}, None))


def make_target(
    options: TargetOptions,
    *,
    named: NamedTarget | None,
    detected: Detection | None,
    interpreter: Interpreter,
    environ: Mapping[str, str] | None = None,
) -> Target:
    """Make the target that is meant.

    ``detected`` is only used where `needs_detection` says so. ``--cuda`` above the driver's CUDA
    is kept as asked: whether that can work is for the resolver to prove.

    Raises:
        UsageError: an option cannot be read, two contradict each other, no driver is known, or
            the interpreter is one that no CUDA wheel is made for.

    """
    levels = _levels(options, environ or {}, named)
    maker = _Maker(levels)
    python = maker.python(interpreter)
    platform = maker.platform(interpreter)
    speaking = next((level for level in levels if level.speaks_of_cuda), None)
    if speaking is not None and speaking.options.cpu:
        maker.cpu(speaking)
    elif speaking is None and named is None:
        maker.detected(detected, platform)
    else:
        maker.given(platform)
    name = None if named is None else named.name
    return maker.finish(python=python, platform=platform, name=name)


def _levels(
    options: TargetOptions, environ: Mapping[str, str], named: NamedTarget | None
) -> list[_Level]:
    sources: list[tuple[TargetOptions, Callable[[str], str]]] = [
        (options, lambda key: f"--{key}"),
        (
            options_from_environment(environ),
            lambda key: f"CUDALOCK_{key.upper().replace('-', '_')}",
        ),
    ]
    if named is not None:
        sources.append((named.options, lambda key: f"{named.where}.{key}"))
    return [
        _Level(options=parse_options(source, place=place), place=place) for source, place in sources
    ]


class _Maker:
    """Collects the values of a target, where each is from, and what to warn of."""

    def __init__(self, levels: list[_Level]) -> None:
        self._levels = levels
        self._origins: dict[str, str] = {}
        self._warnings: list[TargetWarning] = []
        self._driver: DriverVersion | None = None
        self._driver_cuda: CudaVersion | None = None
        self._cuda: CudaVersion | None = None
        self._cuda_any = False
        self._compat: CudaCompat = "strict"
        self._capabilities: tuple[ComputeCapability, ...] = ()
        self._compat_release: CudaVersion | None = None
        self._gpu_names: tuple[str, ...] = ()
        self._tegra = False
        self._wsl = False
        self._cpu = False

    def finish(self, *, python: PythonChoice, platform: Platform, name: str | None) -> Target:
        return Target(
            python=python.version,
            platform=str(platform),
            free_threaded=python.free_threaded,
            driver=self._driver,
            driver_cuda=self._driver_cuda,
            cuda=self._cuda,
            cuda_any=self._cuda_any,
            cuda_compat=self._compat,
            compat=self._compat_release,
            capabilities=self._capabilities,
            tegra=self._tegra,
            wsl=self._wsl,
            cpu=self._cpu,
            name=name,
            origins=tuple(Origin(field=key, text=self._origins[key]) for key in self._origins),
            warnings=tuple(self._warnings),
        )

    def python(self, interpreter: Interpreter) -> PythonChoice:
        for level in self._levels:
            if level.options.python is not None:
                self._origins["python"] = level.place("python")
                return level.options.python
        if interpreter.implementation != "cpython":
            raise UsageError(
                f"expected CPython, found {interpreter.implementation[:40]}; say which CPython to"
                " lock for",
                where="this interpreter",
                flag="--python",
            )
        self._origins["python"] = "detected: this interpreter"
        suffix = "t" if interpreter.free_threaded else ""
        return parse_python(f"{interpreter.version}{suffix}")

    def platform(self, interpreter: Interpreter) -> Platform:
        for level in self._levels:
            if level.options.platform is not None:
                self._origins["platform"] = level.place("platform")
                return level.options.platform
        self._origins["platform"] = "detected: this interpreter"
        try:
            return parse_platform(interpreter.platform)
        except UsageError as error:
            raise UsageError(
                f"no CUDA wheel is made for `{interpreter.platform[:80]}`, which this machine is;"
                " say which platform to lock for",
                where="this machine",
                flag="--platform",
            ) from error

    def cpu(self, level: _Level) -> None:
        self._cpu = True
        self._origins["cpu"] = level.place("cpu")
        o = level.options
        given = (("driver", o.driver), ("driver-cuda", o.driver_cuda))
        ignored = [key for key, value in given if value is not None] + list(o.gpu_keys)
        if ignored:
            names = ", ".join(level.place(key) for key in ignored)
            self._warn("cpu-ignores", f"{names} says nothing about a CPU target and is not used")

    def detected(self, detected: Detection | None, platform: Platform) -> None:
        if detected is None or not detected.found:
            raise _no_driver("no NVIDIA driver was found on this machine and none was given")
        self._compat_from_levels()
        self._driver, self._driver_cuda = detected.driver, detected.driver_cuda
        self._capabilities, self._tegra = detected.capabilities, detected.tegra
        self._wsl = detected.wsl
        self._gpu_names = tuple(gpu.name for gpu in detected.gpus)
        for key, source in (
            ("driver", detected.driver_source),
            ("driver_cuda", detected.driver_cuda_source),
            ("capabilities", detected.gpus_source),
        ):
            if source is not None:
                self._origins[key] = f"detected: {source}"
        for sentence in detected.disagreements:
            self._warn("sources-disagree", sentence)
        if detected.driver is not None and detected.driver_cuda_source == DRIVER_TABLE:
            self._derive(detected.driver)
        self._forward(platform)
        self._default_cuda(f"which CUDA driver {detected.driver} supports is not known")
        unknown = sorted({gpu.name for gpu in detected.gpus if gpu.capability is None})
        if unknown and self._capabilities:
            names = ", ".join(f"`{name}`" for name in unknown)
            self._warn("unknown-gpu", f"the compute capability of {names} is not known; --sm says")
        self._warn_of_unknown_gpus()

    def given(self, platform: Platform) -> None:
        self._compat_from_levels()
        for level in self._levels:
            o = level.options
            if o.driver is not None or o.driver_cuda is not None:
                self._take_driver(level)
                break
        for level in self._levels:
            o = level.options
            if o.cuda is not None or o.cuda_any:
                self._cuda, self._cuda_any = o.cuda, o.cuda_any
                self._origins["cuda"] = level.place("cuda")
                break
        for level in self._levels:
            if level.options.capabilities is not None:
                self._capabilities = level.options.capabilities
                self._gpu_names = level.options.gpu_names
                self._origins["capabilities"] = " and ".join(
                    map(level.place, level.options.gpu_keys)
                )
                break
        # Thor has no desktop sibling to be told from, so only its name says that it is a Jetson.
        self._tegra = any(map(is_tegra, self._capabilities)) or any(
            class_of(name) == "jetson" for name in self._gpu_names
        )
        self._forward(platform)
        self._default_cuda("neither a driver nor a CUDA release was given")
        self._warn_of_unknown_gpus()

    def _compat_from_levels(self) -> None:
        for level in self._levels:
            if level.options.cuda_compat is not None:
                self._compat = level.options.cuda_compat
                self._origins["cuda_compat"] = level.place("cuda-compat")
                break

    def _forward(self, platform: Platform) -> None:
        """Take the release of forward compatibility, where that was asked for and is needed."""
        if self._compat != "forward":
            return
        machine = Machine(
            linux=platform.is_linux and not self._wsl,
            driver=self._driver,
            driver_cuda=self._driver_cuda,
            gpus=self._gpu_names,
            capabilities=self._capabilities,
        )
        try:
            release = forward_release(machine, self._cuda)
        except UsageError as error:
            where = self._origins["cuda_compat"]
            raise UsageError(
                error.message, where=where, flag=error.flag or "--cuda-compat"
            ) from error
        self._compat_release = release
        if release is not None and self._cuda is None and not self._cuda_any:
            self._cuda = release
            self._origins["cuda"] = (
                f"the newest that forward compatibility lists for {self._driver}"
            )

    def _take_driver(self, level: _Level) -> None:
        """Take a driver and its CUDA from one level: a lower one spoke of another machine."""
        driver, said = level.options.driver, level.options.driver_cuda
        self._driver, self._driver_cuda = driver, said
        if said is not None:
            self._origins["driver_cuda"] = level.place("driver-cuda")
        if driver is None:
            return
        self._origins["driver"] = level.place("driver")
        try:
            known = driver_cuda(driver)
        except UsageError as error:
            raise UsageError(error.message, where=level.place("driver"), flag="--driver") from error
        # A branch that the tables do not know supports no less than the nearest older one, so a
        # larger number beside it is news and not a contradiction.
        if said is not None and (said < known.cuda or (known.exact and said != known.cuda)):
            raise UsageError(
                f"expected a driver and a CUDA that agree, found driver {driver}, which supports"
                f" CUDA {known.cuda}, beside {said}",
                where=f"{level.place('driver')} and {level.place('driver-cuda')}",
                flag="--driver-cuda",
            )
        if said is None:
            self._derive(driver)

    def _derive(self, driver: DriverVersion) -> None:
        """Take the CUDA of a driver's branch."""
        known = driver_cuda(driver)
        self._driver_cuda = known.cuda
        self._origins["driver_cuda"] = f"{DRIVER_TABLE}: {driver}"
        if not known.exact:
            self._warn(
                "unknown-driver-branch",
                f"the branch of driver {driver} is not known and counts as the nearest older one,"
                f" which supports CUDA {known.cuda}; --driver-cuda says what it supports",
            )

    def _default_cuda(self, otherwise: str) -> None:
        """Take the driver's CUDA for the release; ``otherwise`` words that there is none."""
        if self._cuda is not None or self._cuda_any:
            return
        if self._driver_cuda is None:
            raise _no_driver(otherwise)
        self._cuda = self._driver_cuda
        self._origins["cuda"] = "the newest the driver supports"

    def _warn_of_unknown_gpus(self) -> None:
        if not self._capabilities:
            self._warn(
                "unknown-gpu",
                "which GPUs the target has is not known, so whether wheels hold code for them is"
                " not checked; --sm or --gpu says",
            )

    def _warn(self, code: str, message: str) -> None:
        self._warnings.append(TargetWarning(code=code, message=message))


def _no_driver(found: str) -> UsageError:
    return UsageError(
        f"{found}; say what to lock for: --driver 590.48.01 or --driver-cuda 13.1 for the driver,"
        " --cuda 13.0 for a CUDA release, --sm 12.0 or --gpu for the GPUs, or --cpu",
        where="target",
        flag="--driver",
    )
