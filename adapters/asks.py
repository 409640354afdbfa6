"""The questions that judged definitions ask. Definitions with the same one are shown and audited side by side."""

from __future__ import annotations

SUPPORTED = "is the answer supported by the context?"
ADDRESSES = "does the answer address the question?"
CORRECT = "does the answer say what the reference says?"
COMPLETE = "does the answer say all that the reference says?"
PRECISE = "does the answer say only what the reference says?"
COVERS_CONTEXT = "does the answer say all that the context says?"
RANKED_FIRST = "are the relevant ones found, and ranked before the others?"
CONTEXT_RELEVANT = "is the context relevant to the question?"
CONTEXT_SUFFICES = "does the context hold what the reference says?"
MISLED = "does the context mislead the answer?"
CONTRIBUTES = "did the chunks contribute to the answer?"
CITED = "do the cited chunks hold what they are cited for?"
DECLINES = "does the system decline what it cannot answer?"
DECLINES_FALSELY = "does the system decline what it could answer?"
