"""What the name of a model tells: which family it is of, and whether it says which weights answered."""

from __future__ import annotations

import re

FAMILIES: dict[str, str] = {
    "gpt": r"gpt(?!q)|davinci|(?<![a-z0-9])o[134](?![a-z0-9])",
    "claude": r"claude",
    "gemini": r"gemini",
    "gemma": r"gemma",
    "llama": r"(?<!o)llama|vicuna|alpaca",
    "qwen": r"qwen|(?<![a-z])q[wv]q(?![a-z])",
    "mistral": r"m[ia]n?i?stral|mixtral|codestral|magistral|pixtral|devstral",
    "phi": r"(?<![a-z])phi(?![a-z])",
    "deepseek": r"deepseek",
    "command": r"(?<![a-z])command(?![a-z])|c4ai|(?<![a-z])aya(?![a-z])",
    "grok": r"grok",
    "glm": r"(?<![a-z])glm(?![a-z])",
    "granite": r"granite",
    "nova": r"(?<![a-z])nova(?![a-z])",
    "falcon": r"falcon",
    "olmo": r"olmo",
    "yi": r"(?<![a-z])yi(?![a-z])",
    "kimi": r"kimi|moonshot",
    "smollm": r"smollm",
}
"""Family -> what its names have in them, in small letters and after any vendor."""

DATED: dict[str, str] = {
    "gpt": "gpt-4o-mini-2024-07-18",
    "claude": "claude-3-5-haiku-20241022",
    "gemini": "gemini-2.0-flash-001",
}
"""A dated name of the families whose weights nobody can hold."""

_PINNED = re.compile(
    r"(?<!\d)20\d\d-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])(?!\d)"  # 2024-07-18, 20241022
    r"|-(?:0[1-9]|1[0-2])-20\d\d$"  # 08-2024
    r"|-\d{3,4}(?:$|:)"  # 0613, 2411, 001
    r"|sha256[:-][0-9a-f]{12,}|@[0-9a-f]{12,}"
    r"|(?<![a-z0-9])(?:i?q\d(?:_\w+)?|fp(?:4|8|16|32)|bf16|f16|f32|int[48]|w\da\d+|awq|gptq|exl2|\dbit)(?![a-z0-9])"
)


def family(model: str) -> frozenset[str]:
    """The families that a model is of: `meta-llama/Llama-3.1-8B-Instruct` is a llama, a distilled model is of two.

    A model of no known family is its own, named without vendor, tag and size.
    """
    name = _bare(model)
    known = frozenset(found for found, pattern in FAMILIES.items() if re.search(pattern, name))
    own = re.split(r"[:@]|[-_.]?\d", name)[0] or name
    return known or frozenset({own})


def pinned(model: str) -> bool:
    """Whether the name says which weights: by a date, a digest or a quantisation."""
    return bool(_PINNED.search(_bare(model))) and not re.search(r"[:-]latest$", _bare(model))


def model_warnings(model: str, revision: str | None, generator_model: str | None) -> tuple[str, ...]:
    """What a person should know before believing this model as a judge of answers that `generator_model` wrote."""
    told = family_warnings(model, generator_model)
    if revision or pinned(model):
        return told
    alias = f"judge model {model!r} is an alias: other weights may answer to it tomorrow. Write {_instead(model)}"
    return (alias, *told)


def family_warnings(model: str, generator_model: str | None) -> tuple[str, ...]:
    """What `model_warnings` says of the families of judge and generator."""
    shared = family(model) & family(generator_model) if generator_model else frozenset()
    if not shared:
        return ()
    return (
        f"judge {model!r} and generator {generator_model!r} are of one family ({', '.join(sorted(shared))}): "
        "models tend to prefer their own answers. Choose a judge of another family",
    )


def _bare(model: str) -> str:
    return model.strip().lower().rstrip("/").rpartition("/")[2]


def _instead(model: str) -> str:
    for name in family(model) & DATED.keys() if ":" not in model else ():
        return f"the dated name that its provider lists, like {DATED[name]}, or say in judge.revision what it is"
    stem = re.sub(r":?latest$", "", model).rstrip(":-") or model
    # Of a name that says nothing, no size can be made up.
    sized = ":" in stem or re.search(r"\d+b(?![a-z0-9])", stem.lower())
    full = f"{stem}-q4_K_M" if sized else f"{stem}:7b-instruct-q4_K_M"
    like = f", like {full}" if sized or family(model) & FAMILIES.keys() else ""
    return (
        f"the full tag with its quantisation{like}, or the digest of the weights (`ollama list`, or the commit "
        "of the repository) into judge.revision"
    )
