"""Config files of paribus, read so that the text of a prompt stays as it is.

In files of the group `prompt`, `${...}` is text, not interpolation: a prompt may speak about prices, shells or templates.
A mistyped keyword in a defaults list, which Hydra would skip, is an error.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra.core.config_search_path import ConfigSearchPath
from hydra.plugins.config_source import ConfigLoadError, ConfigResult, ConfigSource
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import OmegaConf

VERBATIM_GROUP = "prompt"
KEYWORDS = {"optional", "override"}
_INTERPOLATION = re.compile(r"(\\*)\$\{")


def escape(value: Any) -> Any:
    """Escape every `${` (and the backslashes before it) so that OmegaConf gives the text back unchanged."""
    if isinstance(value, str):
        return _INTERPOLATION.sub(lambda match: "\\" * (2 * len(match[1]) + 1) + "${", value)
    if isinstance(value, dict):
        return {key: escape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [escape(inner) for inner in value]
    return value


class VerbatimConfigSource(FileConfigSource):
    """`paribus:///folder`: YAML files in a folder."""

    @staticmethod
    def scheme() -> str:
        return "paribus"

    def load_config(self, config_path: str) -> ConfigResult:
        path = Path(self.path, self._normalize_file_name(config_path))
        if not path.exists():
            raise ConfigLoadError(f"Config not found : {path}")
        if config_path.split("/")[0] != VERBATIM_GROUP:
            result = super().load_config(config_path)
            _check_keywords(result.config, path)
            return result
        import yaml

        text = path.read_text(encoding="utf-8")
        return ConfigResult(
            config=OmegaConf.create(escape(yaml.safe_load(text) or {})),
            path=f"{self.scheme()}://{self.path}",
            provider=self.provider,
            header=ConfigSource._get_header_dict(text[:512]),
        )


def _check_keywords(config: Any, path: Path) -> None:
    from runner.errors import ConfigError

    defaults = config.get("defaults") if OmegaConf.is_dict(config) else None
    for entry in defaults or []:
        for key in entry if OmegaConf.is_dict(entry) else []:
            *keywords, _ = str(key).split()
            for keyword in keywords:
                if keyword not in KEYWORDS:
                    raise ConfigError(
                        f"{path}: defaults list: {keyword!r} in {key!r} is not a keyword; allowed: "
                        f"{', '.join(sorted(KEYWORDS))}"
                    )


class VerbatimSearchPath(SearchPathPlugin):
    """Has the folders of paribus read by `VerbatimConfigSource`. Other Hydra applications are left alone."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        from runner.app import conf_dir, extra_folders

        for element in search_path.get_path():
            if element.provider == "main" and element.path == str(conf_dir()):
                element.path = f"{VerbatimConfigSource.scheme()}://{element.path}"
                for folder in extra_folders:
                    search_path.append("command-line", f"{VerbatimConfigSource.scheme()}://{folder}")
                return
