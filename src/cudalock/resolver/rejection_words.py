"""What is said of wheels that are ruled out, by the kind of the reason: "3 wheels of x are …"."""

__all__ = ["REASONS"]

REASONS = {
    "python": "for another Python",
    "platform": "for another platform",
    "requires-python": "for another Python (Requires-Python)",
    "cpu": "CPU only",
    "rocm": "ROCm",
    "xpu": "XPU",
    "musa": "MUSA",
    "vulkan": "Vulkan",
    "hash": "of another hash than was asked for",
    "hash-open": "of an open hash beside one that was asked for",
    "quarantined": "in quarantine: its index offers none of its files",
    "yanked": "yanked",
    "placeholder": "a placeholder",
    "variant": "a wheel variant, which few installers take from a lock",
    "variant-unfit": "a wheel variant for another machine",
    "pre-release": "a pre-release",
    "unpaired": "without a known pairing",
    "unknown": "without metadata that can be had",
    "unreadable": "without metadata that can be read",
    "bad-hash": "with a malformed hash",
    "other-project": "of another project",
    "bad-name": "with a name that is no wheel's",
    "bad-url": "with an address that is no wheel's",
    "unlisted": "not seen: the index could not be read whole",
}
