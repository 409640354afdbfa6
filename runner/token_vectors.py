"""Static token vectors of wordllama: a lookup table and its tokenizer, read without the package's own code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from adapters.sentences import well_formed
from runner.component import Component
from runner.weights import weight_file

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

_TABLE = "package://wordllama/weights/l2_supercat_256.safetensors"
_TABLE_SHA256 = "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
_TOKENIZER = "package://wordllama/tokenizers/l2_supercat_tokenizer_config.json"
_TOKENIZER_SHA256 = "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"
_SLICE = 1000
"""Texts that are tokenised at once: the encodings of a whole corpus would fill the memory."""


class TokenVectors(Component):
    """A component that looks up one vector for each token (wordllama, l2_supercat: distilled from Llama-2-family
    embeddings; longer vectors hold shorter ones as their start, Kusupati et al. 2022).

    The package itself is not imported: it takes over a second, changes the root logger, and may ask a model hub.

    Raises MissingExtra without wordllama, ConfigError where its files are not those of the pinned version.
    """

    packages: ClassVar[tuple[str, ...]] = ("wordllama", "tokenizers")
    sources: ClassVar[tuple[str, ...]] = ("runner.tokens",)

    dimensions: Literal[64, 128, 256] = 256

    @property
    def vectors(self) -> NDArray[float32]:
        """The vector of each token, shape (32000, dimensions). A frequent token has a short one."""
        return _load(self.dimensions)[0]

    def tokens(self, texts: Sequence[str]) -> Iterator[list[int]]:
        """The tokens of each text, as rows of `vectors`; a blank text has none."""
        tokenizer = _load(self.dimensions)[1]
        for start in range(0, len(texts), _SLICE):
            part = [well_formed(text) for text in texts[start : start + _SLICE]]
            encodings = tokenizer.encode_batch_fast(part, add_special_tokens=False)
            for text, encoding in zip(part, encodings, strict=True):
                yield encoding.ids if text.strip() else []


@cache
def _load(dimensions: int) -> tuple[NDArray[float32], Any]:
    import numpy as np
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    install = "pip install wordllama==0.4.0.post1"
    table = load_file(weight_file(_TABLE, _TABLE_SHA256, install))["embedding.weight"][:, :dimensions]
    tokenizer = Tokenizer.from_file(str(weight_file(_TOKENIZER, _TOKENIZER_SHA256, install)))
    return np.ascontiguousarray(table, dtype=np.float32), tokenizer
