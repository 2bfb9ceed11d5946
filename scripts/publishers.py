"""Which folders of which publisher the gathered facts record: one rule a publisher.

A publisher's folders are listed as far as they are known, recorded or not, with the lists they
were taken from: `cudalock.index.recorded` tells "absent" from "not recorded" by them. Pages are
written by `record_indices`.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from scripts.stand_ins import Fact, Record, family_of, python_of

from cudalock.wheel.filename import parse_wheel_file

__all__ = ["PUBLISHERS", "Folder", "Index", "read_facts"]

Index = dict[str, dict[str, dict[str, list[Fact]]]]

# What the repository behind flashinfer.ai/whl holds: one folder of pages a CUDA release. The
# folders of 2024 and 2025 (cu118 .. cu126) have pages only below torchX.Y/, for older projects.
_SMS = "sm80 sm89 sm90a sm100a sm103a"
_FLASHINFER = {
    "": "flashinfer-cubin flashinfer-python",
    "cu118": "",
    "cu121": "",
    "cu124": "",
    "cu126": "",
    "cu128": "jit",
    "cu129": f"jit {_SMS} sm120f",
    "cu130": f"jit {_SMS} sm110a sm120f sm121a",
    "cu134": f"jit {_SMS} sm107a sm110a sm120f sm121a",
    "nightly": "flashinfer-cubin flashinfer-python",
    "nightly/cu126": "",
    "nightly/cu128": "jit",
    "nightly/cu129": f"jit {_SMS} sm120f",
    "nightly/cu130": f"jit {_SMS} sm110a sm120f sm121a",
    "nightly/cu134": f"jit {_SMS} sm107a sm110a sm120f sm121a",
}


@dataclass(frozen=True, kw_only=True)
class Folder:
    """One folder of a publisher: its address, and the facts file that records it, if any.

    ``projects`` is every project it has a page for, None where that is not known. A ``narrow``
    folder is recorded for Python 3.10 to 3.13 on Linux and Windows only, and of a facts file that
    holds several places ``prefix`` tells the files of this one.
    """

    url: str
    name: str | None
    facts: str | None = None
    nightly: bool = False
    projects: tuple[str, ...] | None = None
    narrow: bool = False
    prefix: str = ""

    def keeps(self, fact: Fact) -> bool:
        """Whether a file is recorded."""
        if not str(fact["url"]).startswith(self.prefix):
            return False
        if not self.narrow:
            return True
        wheel = parse_wheel_file(str(fact["filename"]))
        return family_of(wheel) != "other" and 10 <= python_of(wheel) <= 13


def read_facts(path: Path) -> Index:
    """Return one facts file."""
    loaded: Index = json.loads(path.read_bytes())
    return loaded


def _paths(index: Index) -> Iterable[str]:
    for page in index["projects"].values():
        for file in page["files"]:
            yield urlsplit(str(file["url"])).path


def _pytorch(facts: Path) -> tuple[list[Folder], list[Record]]:
    base = "https://download.pytorch.org/whl"
    root = read_facts(facts / "pytorch-root.json")
    # The root pages list the wheels of every folder, so they list the folders.
    names = {path.split("/")[2] for path in _paths(root) if path.count("/") == 3}
    names |= {path.stem.removeprefix("pytorch-") for path in facts.glob("pytorch-cu*.json")}
    nightly = {p.stem.removeprefix("pytorch-nightly-") for p in facts.glob("pytorch-nightly-*")}
    recorded = {"cu126", "cu128", "cu129", "cu130"}
    folders = [
        Folder(
            url=f"{base}/{name}",
            name=name,
            facts=f"pytorch-{name}.json" if name in recorded else None,
        )
        for name in sorted(names)
    ]
    folders += [
        Folder(
            url=f"{base}/nightly/{name}",
            name=name,
            facts=f"pytorch-nightly-{name}.json" if name in ("cu130", "cu134") else None,
            nightly=True,
        )
        for name in sorted(nightly)
    ]
    folders += [
        Folder(url=f"{base}/test/{name}", name=name, facts=f"pytorch-test-{name}.json")
        for name in sorted(
            p.stem.removeprefix("pytorch-test-") for p in facts.glob("pytorch-test-*")
        )
    ]
    source = "saved copies of the root pages, nvidia-cosmos/cosmos-dependencies at e289b1be"
    parents: list[Record] = [
        {"url": base, "complete": True, "source": f"{source}; lock files since"},
        {"url": f"{base}/nightly", "complete": False, "source": "lock files"},
        {"url": f"{base}/test", "complete": False, "source": "lock files"},
    ]
    return folders, parents


def _sglang(facts: Path) -> tuple[list[Folder], list[Record]]:
    base = "https://docs.sglang.ai/whl"
    folders = []
    for path in sorted(facts.glob("sglang-*.json")):
        name = path.stem.removeprefix("sglang-").replace("-", "/")
        if name in ("nightly", "pr"):
            # These are lists of folders.
            continue
        folders.append(
            Folder(
                url=f"{base}/{name}",
                name=name.rpartition("/")[2],
                facts=path.name,
                nightly=name.startswith("nightly"),
                projects=tuple(sorted(read_facts(path)["projects"])),
            )
        )
    source = "sgl-project/whl at 2504c0a (2026-07-01)"
    parents: list[Record] = [
        {"url": f"{base}{path}", "complete": True, "source": source}
        for path in ("", "/nightly", "/pr")
    ]
    return folders, parents


def _flashinfer(facts: Path) -> tuple[list[Folder], list[Record]]:
    base = "https://flashinfer.ai/whl"
    folders = []
    for name, short in _FLASHINFER.items():
        file = f"flashinfer-{name.replace('/', '-') or 'root'}.json"
        cuda = name.rpartition("/")[2]
        folders.append(
            Folder(
                url=f"{base}/{name}".rstrip("/"),
                name=cuda if cuda.startswith("cu") else None,
                facts=file if (facts / file).exists() else None,
                nightly=name.startswith("nightly"),
                projects=tuple(sorted(_flashinfer_name(word) for word in short.split())),
            )
        )
    source = "pages of flashinfer-ai/whl at 0bdc76f9 and before"
    parents: list[Record] = [
        {"url": base, "complete": True, "source": source},
        {"url": f"{base}/nightly", "complete": True, "source": source},
    ]
    return folders, parents


def _flashinfer_name(word: str) -> str:
    if word.startswith("flashinfer"):
        return word
    return "flashinfer-jit-cache" if word == "jit" else f"flashinfer-jit-cache-{word}"


def _vllm(facts: Path) -> tuple[list[Folder], list[Record]]:
    folders = [
        Folder(
            url=f"https://wheels.vllm.ai/{version}/{cuda}",
            name=cuda,
            facts=path.name,
            projects=("vllm",),
        )
        for path in sorted(facts.glob("vllm-*.json"))
        for _, version, cuda in [path.stem.split("-")]
    ]
    return folders, []


def _by_folder(
    facts: Path, pattern: str, url: str, *, prefix: str = "", source: str
) -> tuple[list[Folder], list[Record]]:
    """List the folders whose facts are named by ``pattern``; ``{}`` of ``url`` is what ``*`` was."""
    start, _, end = pattern.partition("*")
    folders = []
    for path in sorted(facts.glob(pattern)):
        name = path.name.removeprefix(start).removesuffix(end)
        parts = name.replace("-", "/") if "torch" in name else name
        cuda = name.partition("-")[0].partition("_")[0]
        folders.append(
            Folder(
                url=url.replace("{}", parts),
                name=cuda if cuda.startswith("cu") else None,
                facts=path.name,
                narrow=True,
                prefix=prefix,
            )
        )
    base = url.partition("{}")[0].rstrip("/")
    return folders, [{"url": base, "complete": False, "source": source}]


def _astral(facts: Path) -> tuple[list[Folder], list[Record]]:
    url = "https://wheels.astral.sh/simple/{}"
    return _by_folder(facts, "astral-*.json", url, source="lock files")


def _natten(facts: Path) -> tuple[list[Folder], list[Record]]:
    url = "https://whl.natten.org/{}"
    return _by_folder(facts, "natten-*.json", url, source="lock files")


def _windreamer(facts: Path) -> tuple[list[Folder], list[Record]]:
    url = "https://windreamer.github.io/flash-attention3-wheels/{}"
    return _by_folder(facts, "windreamer-fa3-*.json", url, source="a lock file")


def _jetson(facts: Path) -> tuple[list[Folder], list[Record]]:
    # The facts were gathered under the server's former domain.
    url = "https://pypi.jetson-ai-lab.io/jp6/{}/+simple"
    return _by_folder(facts, "jetson-jp6-*.json", url, source="a lock file")


def _nvidia(_: Path) -> tuple[list[Folder], list[Record]]:
    url = "https://pypi.nvidia.com"
    return [Folder(url=url, name=None, facts="nvidia-pypi.json", narrow=True)], []


def _cosmos(facts: Path) -> tuple[list[Folder], list[Record]]:
    """Return the releases of the repository, which hold every file of their pairs' folders."""
    base = "https://nvidia-cosmos.github.io/cosmos-dependencies"
    folders = [
        Folder(
            url=f"{base}/{release}{path}",
            name=None,
            facts=f"nvidia-cosmos-{release}.json",
            projects=tuple(sorted(read_facts(facts / f"nvidia-cosmos-{release}.json")["projects"])),
            narrow=True,
        )
        for release, path in (("v1.2.0", "/simple"), ("v1.4.0", "/simple"), ("v1.5.0", ""))
    ]
    return folders, []


def _flash_attn(facts: Path) -> tuple[list[Folder], list[Record]]:
    """Return one folder a release on GitHub that a lock file took a wheel of."""
    base = "https://github.com/Dao-AILab/flash-attention/releases"
    index = read_facts(facts / "direct-urls.json")
    urls = [str(file["url"]) for file in index["projects"]["flash-attn"]["files"]]
    tags = {u.removeprefix(base).split("/")[2] for u in urls if u.startswith(f"{base}/download/v")}
    folders = [
        Folder(
            url=f"{base}/expanded_assets/{tag}",
            name=None,
            facts="direct-urls.json",
            narrow=True,
            prefix=f"{base}/download/{tag}/",
        )
        for tag in sorted(tags)
    ]
    return folders, []


def _xformers(_: Path) -> tuple[list[Folder], list[Record]]:
    base = "https://download.pytorch.org/whl"
    folders = [
        Folder(url=f"{base}/{name}", name=name, facts=file, narrow=True, prefix=f"{base}/{name}/")
        for name, file in (
            ("cu128", "pytorch-cu128.json"),
            # A saved copy of PyTorch's page.
            ("cu130", "nvidia-cosmos-v1.4.0-cu130_torch29.json"),
        )
    ]
    return folders, []


PUBLISHERS = {
    "astral": _astral,
    "cosmos": _cosmos,
    "flash-attn": _flash_attn,
    "flashinfer": _flashinfer,
    "jetson": _jetson,
    "natten": _natten,
    "nvidia": _nvidia,
    "pytorch": _pytorch,
    "sglang": _sglang,
    "vllm": _vllm,
    "windreamer": _windreamer,
    "xformers": _xformers,
}
"""What each publisher that has facts keeps, by the name of its definition; the rest has none."""
