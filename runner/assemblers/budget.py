"""What reaches the prompt: the best chunks that fit a budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import PositiveInt

from adapters.schema import Chunk, Dropped, Ranked
from runner.stage import Assembler, Context
from runner.tokens import TokenizerName, count


class BudgetAssembler(Assembler):
    """Takes the ranking from the top until the budget is spent, then puts what it took in order.

    The first chunk that does not fit ends the taking: smaller ones below it are dropped too, so that a larger budget
    always holds all that a smaller one held, and a chunk never gains its place by being short. Where not even the
    first chunk fits, the context is empty.
    """

    packages = ("tokenizers",)
    sources = ("runner.tokens",)

    max_tokens: PositiveInt | None = None
    """The budget for the texts of the chunks, in tokens; the prompt around them does not count. None = all."""
    tokenizer: TokenizerName = "llama2"
    """What counts tokens; see runner/tokens.py."""
    order: Literal["rank", "reversed", "edges"] = "rank"
    """rank = best first. reversed = best last, next to a question that follows. edges = best first, second best last,
    and so on towards the middle, where models overlook most (Liu et al. 2023, "Lost in the Middle")."""
    drop_duplicates: bool = True
    """Leave out a chunk with the span or, white space aside, the text of a better one. It costs no budget."""

    def assemble(self, ranking: Sequence[Ranked]) -> Context:
        """The chosen chunks in prompt order, the dropped ones in rank order."""
        taken: list[Chunk] = []
        dropped: list[Dropped] = []
        seen: set[object] = set()
        spent, full = 0, False
        for chunk in (ranked.chunk for ranked in ranking):
            marks = {(chunk.doc_id, chunk.start, chunk.end), " ".join(chunk.text.split())}
            if self.drop_duplicates and marks & seen:
                dropped.append(Dropped(chunk, "duplicate"))
                continue
            seen |= marks
            if self.max_tokens is not None:
                spent += count(chunk.text, self.tokenizer)
                full = full or spent > self.max_tokens
            if full:
                dropped.append(Dropped(chunk, "budget"))
            else:
                taken.append(chunk)
        return Context(tuple(self._ordered(taken)), tuple(dropped))

    def _ordered(self, chunks: list[Chunk]) -> list[Chunk]:
        match self.order:
            case "rank":
                return chunks
            case "reversed":
                return chunks[::-1]
            case "edges":
                return chunks[::2] + chunks[1::2][::-1]
