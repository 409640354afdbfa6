"""Config files of paribus, read so that the text of a prompt stays as it is.

In files of the group `prompt`, `${...}` is text, not interpolation: a prompt may speak about prices, shells or
templates. The same holds for a quoted text for a key of a prompt on the command line.
A mistyped keyword in a defaults list, which Hydra would skip, is an error.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.plugins.config_source import ConfigLoadError, ConfigResult, ConfigSource
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import OmegaConf
from omegaconf._utils import get_yaml_loader
from yaml import YAMLError

from runner.errors import ConfigError

VERBATIM_GROUP = "prompt"
KEYWORDS = {"optional", "override"}
_INTERPOLATION = re.compile(r"(\\*)\$\{")


def is_verbatim(name: str) -> bool:
    """Whether a config file (`prompt/plain`) or a key (`prompt.template`) holds the text of a prompt."""
    return re.split(r"[./]", name.lstrip("+"), maxsplit=1)[0] == VERBATIM_GROUP


def escape(value: Any) -> Any:
    """Escape every `${` (and the backslashes before it) so that OmegaConf gives the text back unchanged."""
    if isinstance(value, str):
        return _INTERPOLATION.sub(lambda match: "\\" * (2 * len(match[1]) + 1) + "${", value)
    if isinstance(value, dict):
        return {key: escape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [escape(inner) for inner in value]
    return value


def quoted(value: Any) -> str:
    """A value in Hydra's override grammar, a text always in quotes."""
    if not isinstance(value, str):
        return "null" if value is None else str(value)
    return QuotedString(text=value, quote=Quote.single).with_quotes()


def verbatim(overrides: Sequence[str]) -> list[str]:
    """`overrides` with `${` escaped in each quoted text for a key of a prompt, where it is text as in the files."""
    parser = OverridesParser.create()
    lines = []
    for line in overrides:
        if "=" in line and is_verbatim(line):
            override = parser.parse_overrides([line])[0]
            value = override._value
            if isinstance(value, QuotedString):
                line = f"{override.get_key_element()}={replace(value, text=escape(value.text)).with_quotes()}"
        lines.append(line)
    return lines


class VerbatimConfigSource(FileConfigSource):
    """`paribus:///folder`: YAML files in a folder."""

    @staticmethod
    def scheme() -> str:
        """What stands before `://`."""
        return "paribus"

    def load_config(self, config_path: str) -> ConfigResult:
        """Read one file. Raises ConfigError naming the file where it is no YAML or has a misspelt keyword."""
        path = Path(self.path, self._normalize_file_name(config_path))
        if not path.exists():
            raise ConfigLoadError(f"Config not found : {path}")
        try:
            if is_verbatim(config_path):
                result = self._load_verbatim(path)
            else:
                result = super().load_config(config_path)
        except (YAMLError, UnicodeDecodeError, OSError) as error:
            told = re.sub(r'in "[^"]*", ', "", " ".join(str(error).split()))
            raise ConfigError(
                f"{path} cannot be read as YAML: {told}. Put texts in quotes, or in a block (|-)"
            ) from error
        if not OmegaConf.is_dict(result.config):
            raise ConfigError(f"{path} is no mapping of keys to values")
        _check_keywords(result.config, path)
        return result

    def _load_verbatim(self, path: Path) -> ConfigResult:
        text = path.read_text(encoding="utf-8")
        return ConfigResult(
            config=OmegaConf.create(escape(yaml.load(text, Loader=get_yaml_loader()) or {})),
            path=f"{self.scheme()}://{self.path}",
            provider=self.provider,
            header=ConfigSource._get_header_dict(text[:512]),
        )


def _check_keywords(config: Any, path: Path) -> None:
    for entry in config.get("defaults") or []:
        for key in entry if OmegaConf.is_dict(entry) else [entry]:
            *keywords, _ = str(key).split() or [""]
            for keyword in keywords:
                if keyword not in KEYWORDS:
                    near = get_close_matches(keyword, KEYWORDS, n=1)
                    raise ConfigError(
                        f"{path}: defaults list: {keyword!r} in {str(key)!r} is not a keyword"
                        f"{f'; did you mean {near[0]}?' if near else ''} Allowed: {', '.join(sorted(KEYWORDS))}"
                    )


class VerbatimSearchPath(SearchPathPlugin):
    """Has the folders of paribus read by `VerbatimConfigSource`. Other Hydra applications are left alone."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Put the scheme before the packaged folder, and the folders of --config-dir behind it."""
        from runner.yaml_folders import conf_dir, extra_folders

        for element in search_path.get_path():
            if element.provider == "main" and element.path == str(conf_dir()):
                element.path = f"{VerbatimConfigSource.scheme()}://{element.path}"
                for folder in extra_folders:
                    search_path.append("command-line", f"{VerbatimConfigSource.scheme()}://{folder}")
                return
