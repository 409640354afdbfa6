"""Whether an answer declines to answer: one rule for every generator."""

from __future__ import annotations

import re

from adapters.sentences import sentence_spans

_SORRY = r"(?:(?:(?:i am|i'm) )?(?:so |very )?sorry|apologies|i apologi[sz]e|unfortunately)"
_LEAD_IN = (
    rf"(?:{_SORRY}|therefore|thus|so|(?:based|according|given|judging)\b[^,]{{0,80}})[,.:;!]*\s+(?:but\s+|that\s+)*"
)
_SOURCE = (
    r"(?:(?:none|neither|nothing) (?:of|in) )?(?:(?:the|these|this|those|my|your|any|no) )?(?:\w+ ){0,2}?"
    r"(?:contexts?|passages?|documents?|texts?|sources?|excerpts?|articles?|materials?|information)"
    r"(?: provided| given| available| supplied| above| i have)*"
)
_SAY = (
    r"(?:contain|provide|mention|say|state|specify|include|give|answer|address|discuss|offer|indicate|tell|cover|have"
    r"|describe|explain|name|list|reveal|report)s?\b"
)
_FIND = r"(?:answer|find|determine|say|tell|provide|give|help|locate|assist)\b"
_MATTER = r"(?:information|knowledge|mention|answer|evidence|details?|indication|idea|context)\b"
_DECLINES = re.compile(
    rf"\W*(?:{_LEAD_IN})*(?:"
    rf"i (?:really |still )?(?:do not|don't|did not|didn't) (?:know|have|find|see)\b"
    rf"|i(?:'m| am| was)? (?:cannot|can not|can't|could not|couldn't|unable to|not able to) (?:\w+ )?{_FIND}"
    rf"|(?:(?:i(?: have|'ve)(?: found| been given)?|there (?:is|are|was)) )?"
    rf"(?:no|not enough|insufficient) (?:\w+ ){{0,3}}?{_MATTER}"
    rf"|{_SOURCE} (?:do|does|did)(?: not|n't) (?:\w+ )?{_SAY}"
    rf"|(?:no|none of the) (?:\w+ )?(?:passages?|documents?|sources?|texts?) {_SAY}"
    rf"|{_SOURCE} (?:is|are) (?:not sufficient|not enough|insufficient)\b"
    rf"|(?:it|this|that|the (?:answer|question|information)|this question)"
    rf" (?:(?:is|are|was)(?: not|n't)|(?:can|could)(?:not| not|n't|'t) be) (?:\w+ )?"
    rf"(?:answered|answerable|determined|stated|mentioned|specified|given|provided|found|possible to)\b"
    rf"|not (?:stated|mentioned|specified|given|answerable|provided|found|in the)\b|unanswerable\b|(?:unknown|n/a)\W*$"
    rf")"
)
_TURN = re.compile(r"[,;:—–-] ?(?:but|however|although|though)\b|\bhowever\b")
_ONLY = re.compile(rf"\W*(?:{_SOURCE}|they|it) (?:\w+ )?(?:only|merely|just|solely)\b")
_COURTESY = re.compile(
    r"\W*(?:please\b|let me know|if you\b|feel free|would you|you (?:may|can|could) (?:try|want|wish|consult|check)\b"
    r"|(?:i would|i'd) (?:need|recommend|suggest)\b|thank)"
)


def declines(answer: str) -> bool:
    """Whether `answer` says that it does not answer, by fixed English phrases.

    Its first sentence must open with a phrase that declines ("I don't know", "The passages do not mention", "There is
    no information"), after an apology or not, and go on with no "but" or "however". Each sentence after it must decline
    too, say what little the sources hold ("They only cover ..."), or be a courtesy. So a partial answer ("The text does
    not say when. It was built by ...") is an answer.

    On the 477 answers of mt-rag-human (IBM/mt-rag-benchmark, cc5b1d4) it finds 15; read one by one, all 15 decline.
    Among the others, those with a declining word in their first 150 characters were read: none declines as a whole. The
    rule was written with these answers in view, so this is no independent measure. English only.
    """
    text = answer.replace("’", "'").lower()
    sentences = [text[start:end].strip() for start, end in sentence_spans(text)]
    sentences = [sentence for sentence in sentences if re.search(r"\w", sentence)]
    if sentences and re.fullmatch(rf"\W*{_SORRY}\W*", sentences[0]):
        sentences = sentences[1:]
    return bool(
        sentences
        and _says_no(sentences[0])
        and all(_says_no(rest) or _ONLY.match(rest) or _COURTESY.match(rest) for rest in sentences[1:])
    )


def _says_no(sentence: str) -> bool:
    found = _DECLINES.match(sentence)
    return found is not None and not _TURN.search(sentence, found.end())
