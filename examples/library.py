"""Resolve through the library: a set for one machine, or the facts that rule it out.

Run with the address of the default index: ``python examples/library.py URL``.
"""

import sys

import cudalock


def main(default_index: str) -> int:
    """Resolve torch and its kernels for a Blackwell box, from recorded CUDA indices."""
    target = cudalock.Target(
        python="3.12",
        platform="manylinux_2_28_x86_64",
        driver=cudalock.parse_driver_version("590.48.01"),
        cuda=cudalock.CudaVersion(major=13, minor=0),
        capabilities=(cudalock.ComputeCapability(major=12, minor=0),),
    )
    indices = cudalock.IndexOptions(default_index=default_index, recorded=True)
    try:
        resolution = cudalock.resolve(["torch", "sglang-kernel"], target=target, indices=indices)
    except cudalock.NoSolutionError as error:
        for fact in error.conflict.facts:
            print(fact.fact.kind.word, fact.fact.subject, fact.fact.detail)
        return 1
    for package in resolution.packages:
        if package.variant.cuda is not None:
            print(package.project, package.version, f"CUDA {package.variant.cuda}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
