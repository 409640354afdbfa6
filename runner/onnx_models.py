"""BERT-like ONNX models, run so that the output for a text never depends on the texts around it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, PositiveInt

from adapters.sentences import well_formed
from runner.component import Component
from runner.errors import ComponentError, ConfigError
from runner.weights import Sha256, weight_file

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray


class OnnxModel(Component):
    """A component that runs a transformer encoder from `model.onnx` and `tokenizer.json`.

    Each text is run by itself. Dynamic int8 quantisation takes its scale from the whole batch, padding included, so
    batches of 4 to 32 turned the vectors of bge-small by up to 8 degrees (cosine .989); several texts at once on one
    thread each are also faster than batches on short texts (2 cores: 60 texts/s against 39).

    The weights count by their content, so their place may differ between machines. Output is the same bit for bit on
    one kind of CPU; int8 kernels may differ between instruction sets.

    Raises MissingExtra without the extra `onnx`, ConfigError where a file is missing or is not the declared one.
    """

    extra: ClassVar[str | None] = "onnx"
    packages: ClassVar[tuple[str, ...]] = ("onnxruntime", "tokenizers")
    sources: ClassVar[tuple[str, ...]] = ("runner.tokens",)
    paid: ClassVar[bool] = True
    incidental: ClassVar[frozenset[str]] = frozenset({"model", "tokenizer", "threads"})

    model: str
    """model.onnx: a path, or `package://name/path/in/it`."""
    model_sha256: Sha256
    tokenizer: str
    """tokenizer.json: a path, or `package://name/path/in/it`."""
    tokenizer_sha256: Sha256
    max_length: Annotated[int, Field(ge=8)]
    """Tokens, special ones included; what is longer is cut at the end."""
    threads: PositiveInt | None = None
    """Texts at once; None = one a core."""

    def outputs(self, inputs: Sequence[str | tuple[str, str]]) -> Iterator[NDArray[float32]]:
        """The first output of the model for each text or pair of texts, in order, without the batch axis.

        Raises ComponentError where the model refuses an input.
        """
        from concurrent.futures import ThreadPoolExecutor

        session, tokenizer = self._session, self._tokenizer
        names = [node.name for node in session.get_inputs()]

        def output(text: str | tuple[str, str]) -> NDArray[float32]:
            import numpy as np

            encoding = tokenizer.encode(*map(well_formed, (text,) if isinstance(text, str) else text))
            values = {
                "input_ids": encoding.ids,
                "attention_mask": encoding.attention_mask,
                "token_type_ids": encoding.type_ids,
            }
            try:
                feed = {name: np.array([values[name]], dtype=np.int64) for name in names}
                first: NDArray[float32] = session.run(None, feed)[0][0]
            except Exception as error:
                raise ComponentError(
                    f"{self.model} does not run on a text of {len(encoding.ids)} tokens; it must take input_ids, "
                    f"attention_mask and token_type_ids, up to max_length={self.max_length} tokens: {error}"
                ) from error
            return first

        with ThreadPoolExecutor(self.threads or os.cpu_count()) as pool:
            yield from pool.map(output, inputs)

    @property
    def _session(self) -> Any:
        self._version("onnxruntime")
        return _load_session(weight_file(self.model, self.model_sha256, _INSTALL), self.model_sha256)

    @property
    def _tokenizer(self) -> Any:
        path = weight_file(self.tokenizer, self.tokenizer_sha256, _INSTALL)
        return _load_tokenizer(path, self.tokenizer_sha256, self.max_length)


_INSTALL = 'pip install "paribus[onnx]"'


@cache
def _load_session(path: Path, sha256: str) -> Any:
    """One session a process for each weight file; its runs may overlap in time."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.use_deterministic_compute = True
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ConfigError(f"onnxruntime {onnxruntime.__version__} cannot read the model {path}: {error}") from error


@cache
def _load_tokenizer(path: Path, sha256: str, max_length: int) -> Any:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:
        raise ConfigError(f"{path} is not a tokenizer.json of the package tokenizers: {error}") from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length)
    return tokenizer
