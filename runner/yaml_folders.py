"""Where YAML is looked for: the packaged folder, then those of --config-dir."""

from __future__ import annotations

from pathlib import Path

extra_folders: list[Path] = []
"""Folders with more YAML, searched after the packaged ones (--config-dir)."""


def conf_dir() -> Path:
    """The folder of the packaged YAML: inside the wheel, or at the top of a checkout."""
    package = Path(__file__).resolve().parent
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"
