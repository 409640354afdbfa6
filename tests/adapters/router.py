"""The router example: one record with people's verdicts, on which the frameworks' own code gives known numbers.

Five chunks in rank order, of which the 2nd and the 4th are relevant. The answer makes five claims: three supported, one
contradicted (2 instead of 5 business days), one in no chunk (free shipping). The reference makes five claims, of which
the chunks support four and the answer three.
"""

from __future__ import annotations

from adapters.schema import Chunk, Question, Ranked, Record, Span

PASSAGES = (
    "Model R1: the hardware is covered for 12 months after the day of purchase.",
    "Model R2: the hardware is covered for 24 months after the day of purchase.",
    "Goods that were never opened may be sent back within 30 days.",
    "Open a case with the serial number and the receipt. Once it is approved, a new unit is sent in 5 business days.",
    "A unit that fails in its first 30 days is swapped at once.",
)
SUPPORTED, CONTRADICTED, ABSENT = "supported", "contradicted", "absent"
CLAIMS = (
    ("The R2 is covered for 24 months.", SUPPORTED),
    ("A failure after 14 months falls within the cover of the R2.", SUPPORTED),
    ("A case needs the serial number and the receipt.", SUPPORTED),
    ("A new unit is sent in 2 business days.", CONTRADICTED),
    ("Shipping is free of charge.", ABSENT),
)
REFERENCE_CLAIMS = (
    ("The R2 is covered for 24 months after purchase.", True, True),
    ("At 14 months the R2 is still covered.", True, True),
    ("To open a case you need the serial number and the receipt.", True, True),
    ("After approval a new unit is sent in 5 business days.", True, False),
    ("Damage by lightning is not covered.", False, False),
)
"""Text, whether the chunks hold it, whether the answer says it."""
ANSWER = (
    "Yes: the R2 is covered for 24 months, so a failure after 14 months falls within it. Open a case with the serial "
    "number and the receipt, and a new unit is sent in 2 business days. Shipping is free of charge."
)
REFERENCE = " ".join(text for text, _, _ in REFERENCE_CLAIMS)

QUESTION = Question(
    id="router",
    text="My R2 router died after 14 months. Is it still covered, and how do I get a new one?",
    reference_answer=REFERENCE,
    relevant=(Span("doc2", 0, len(PASSAGES[1])), Span("doc4", 0, len(PASSAGES[3]))),
    human={
        "answer": ANSWER,
        "context": list(PASSAGES),
        "reference": REFERENCE,
        "claims": [
            {"text": text, "verdict": verdict, "in_reference": verdict == SUPPORTED} for text, verdict in CLAIMS
        ],
        "reference_claims": [
            {"text": text, "in_context": in_context, "in_answer": in_answer}
            for text, in_context, in_answer in REFERENCE_CLAIMS
        ],
        "addresses_question": 1.0,
        "declines": False,
    },
)


def record(question_id: str = "router", answer: str | None = ANSWER) -> Record:
    """The record of the example, under another question id or with another answer if asked."""
    chunks = tuple(Chunk(f"doc{n}", 0, len(text), text) for n, text in enumerate(PASSAGES, 1))
    ranking = tuple(Ranked(chunk, 1.0 - n / 10, n) for n, chunk in enumerate(chunks, 1))
    return Record(
        question_id,
        asked_k=5,
        retrieved=ranking,
        reranked=ranking,
        context=chunks,
        answer=answer,
        citations=(1, 3),
        refused=False,
    )
