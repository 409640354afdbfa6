"""The extension surface: one abstract class a stage. Implementations are one file each in the folder of that name.

A stage sees texts and numbers, never the configuration of another stage, and never the labels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import PositiveInt

from adapters.schema import Chunk, Dropped, Ranked
from runner.component import Component
from runner.errors import ConfigError

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    Vectors = NDArray[float32]
    """Shape (number of texts, dimensions); rows have length 1 (or 0 for a text without a known token)."""


class Chunker(Component, ABC):
    """Cuts a document into spans. Texts are cut out by the pipeline, so a chunk always equals its slice."""

    @abstractmethod
    def spans(self, text: str) -> list[tuple[int, int]]:
        """Half-open [start, end) in code points, sorted by start, inside the text. Every character that is not white
        space is in at least one span. Blank text: no spans."""


@dataclass(frozen=True)
class Embedding:
    """Vectors of the passages and of the queries, in the same space."""

    passages: Vectors
    queries: Vectors


class Embedder(Component, ABC):
    """Turns texts into vectors whose dot product is their similarity."""

    @abstractmethod
    def embed(self, passages: Sequence[str], queries: Sequence[str]) -> Embedding:
        """Vectors of both, in the given order. May fit itself to `passages`, never to `queries`."""


class TextEmbedder(Embedder):
    """An embedder that maps each text by itself, so that passages and queries are embedded and stored apart."""

    @abstractmethod
    def encode(self, texts: Sequence[str], role: Literal["passage", "query"]) -> Vectors:
        """Vectors of `texts`, in the given order; some models prefix queries."""

    def embed(self, passages: Sequence[str], queries: Sequence[str]) -> Embedding:
        """Both, each encoded by itself."""
        return Embedding(self.encode(passages, "passage"), self.encode(queries, "query"))


@dataclass(frozen=True)
class Query:
    """A question as a retriever sees it. vector is None where the retriever does not use vectors."""

    text: str
    vector: Vectors | None = None


class Retriever(Component, ABC):
    """Ranks the chunks of the corpus for a query."""

    uses_vectors: ClassVar[bool]
    """Whether `search` needs vectors; embedding is skipped where no stage needs it."""

    k: PositiveInt
    """How many chunks the system passes on."""

    def index(self, texts: Sequence[str]) -> Any:
        """What `search` needs besides vectors, made once per corpus and stored. Must be picklable."""
        return None

    @abstractmethod
    def search(self, index: Any, vectors: Vectors | None, query: Query, depth: int) -> list[tuple[int, float]]:
        """At most `depth` (position in the corpus, score), best first. Equal scores: the smaller position first; the
        corpus is in order of document id, then start."""


class Reranker(Component, ABC):
    """Scores the candidates of the retriever anew."""

    candidates: int
    """How many chunks are fetched for it, at least; 0 = just the k that are passed on."""

    @abstractmethod
    def scores(self, query: str, passages: Sequence[str]) -> list[float] | None:
        """A score for each passage, higher is better, in the given order. None = keep the retriever's order. Equal
        scores keep the retriever's order."""


@dataclass(frozen=True)
class Context:
    """The chunks that reach the prompt, in prompt order, and those that do not, with the reason."""

    chunks: tuple[Chunk, ...]
    dropped: tuple[Dropped, ...]


class Assembler(Component, ABC):
    """Chooses and orders what reaches the prompt."""

    @abstractmethod
    def assemble(self, ranking: Sequence[Ranked]) -> Context:
        """Every chunk of `ranking` is either in `chunks` or in `dropped`, once."""


@dataclass(frozen=True)
class Message:
    """One message of a chat prompt."""

    role: Literal["system", "user"]
    content: str


@dataclass(frozen=True)
class Request:
    """What a generator gets: the finished prompt, and the parts it was made of."""

    question: str
    passages: tuple[str, ...]
    messages: tuple[Message, ...]


@dataclass(frozen=True)
class Answer:
    """What a generator gave back. tokens are None where nothing counted them."""

    text: str
    refused: bool
    citations: tuple[int, ...] = ()
    tokens_in: int | None = None
    tokens_out: int | None = None


class Generator(Component, ABC):
    """Answers a request."""

    concurrency: PositiveInt = 1
    """How many requests may be under way at once (threads)."""

    incidental: ClassVar[frozenset[str]] = frozenset({"concurrency"})

    @abstractmethod
    def generate(self, request: Request) -> Answer:
        """The answer. Raises ComponentError when there is none; that question then fails, the others go on."""


@dataclass(frozen=True)
class Passage:
    """A passage as a system hands it over. doc_id, start: where it stands in which document, in code points; None = it
    is looked for. score: higher is better; None = the order is all there is."""

    text: str
    doc_id: str | None = None
    start: int | None = None
    score: float | None = None


@dataclass(frozen=True)
class SystemReply:
    """What a whole system gave back. retrieved: its ranking, best first. context: what reached its prompt, in order;
    None = all that it retrieved. citations: positions in the context, from 0. refused: None = told by the answer.
    tokens are None where nothing counted them."""

    answer: str
    retrieved: tuple[Passage, ...] = ()
    context: tuple[Passage, ...] | None = None
    citations: tuple[int, ...] = ()
    refused: bool | None = None
    prompt: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None


class System(Component, ABC):
    """A RAG system of one's own, in place of all stages."""

    k: PositiveInt | None = None
    """How many passages it is asked for; None = it is not told, and all that come back count."""
    concurrency: PositiveInt = 1
    """How many questions may be under way at once (threads)."""
    version: str | None = None
    """What the owner calls this state of the system. Answers are stored and read again; another version asks anew."""

    incidental: ClassVar[frozenset[str]] = frozenset({"concurrency"})

    def told(self, name: str) -> str:
        """The text of a field that has no default. Raises ConfigError where it is null."""
        value: str | None = getattr(self, name)
        if value is None:
            raise ConfigError(f"system.{name} is missing; it has no default: system.{name}=…")
        return value

    @abstractmethod
    def answer(self, id: str, question: str) -> SystemReply:
        """The answer to the question with this id. Raises ComponentError when there is none; that question then fails,
        the others go on."""
