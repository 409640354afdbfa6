"""The registry of definitions as a person or a machine reads it: lists, cards, differences, and docs/definitions.md.

    python -m runner.definitions > docs/definitions.md

Lists and the page need the prose of the classes only, so no framework is imported for them; a whole card has the hashes
of the prompts, which are read from the framework.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from runner.errors import ConfigError

if TYPE_CHECKING:
    from adapters.base import Measure

By = Literal["asks", "framework"]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a definition. allowed: its values in words. default: None also where it is required."""

    name: str
    default: Any
    required: bool
    allowed: str
    description: str | None

    def __str__(self) -> str:
        told = "required" if self.required else f"default {json.dumps(self.default)}"
        return "; ".join(filter(None, (told, self.allowed, self.description)))


def catalogue() -> tuple[tuple[Measure, ...], tuple[str, ...]]:
    """Every registered definition in the order of the registry, parameters at their defaults, and why others cannot be
    shown."""
    from adapters.base import SCORERS, UnknownDefinition, scorer

    found: list[Measure] = []
    problems = []
    for name in SCORERS:
        try:
            found.append(scorer(name))
        except UnknownDefinition as error:
            problems.append(str(error))
    return tuple(found), tuple(problems)


def grouped(found: Iterable[Measure], by: By) -> dict[str, list[Measure]]:
    """The definitions by what they ask, or by framework, in the order in which each comes first."""
    groups: dict[str, list[Measure]] = {}
    for measure in found:
        groups.setdefault(measure.asks if by == "asks" else measure.framework, []).append(measure)
    return groups


def entry(measure: Measure) -> dict[str, Any]:
    """What a list says of a definition, for machines: its card but for what only the framework knows."""
    return {
        "id": measure.id,
        "asks": measure.asks,
        "framework": measure.framework,
        "unit": measure.unit_judged,
        "hit": measure.hit,
        "formula": measure.formula,
        "aggregation": measure.aggregation,
        "range": measure.value_range,
        "direction": measure.direction,
        "nothing_to_judge": measure.nothing_to_judge,
        "requires": measure.requires,
        "calls": measure.calls,
        "declared": [asdict(parameter) for parameter in parameters(measure)],
        "hazards": measure.hazards,
        "source": measure.source,
    }


def specs(words: Sequence[str], expected: int) -> list[dict[str, Any]]:
    """`ID [param=value ...]`, `expected` times, as adapters.base.scorer takes them. Values are JSON, or text.

    Raises ConfigError.
    """
    found: list[dict[str, Any]] = []
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            found.append({"id": word})
        elif found:
            found[-1][name] = _value(value)
        else:
            raise ConfigError(f"{word} stands before any id; the form is ID [parameter=value ...]")
    if len(found) != expected:
        got = ", ".join(spec["id"] for spec in found) or "none"
        raise ConfigError(f"{expected} definition{'s' * (expected > 1)} expected, got {got}")
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def card(spec: Mapping[str, Any], prompts: bool = False) -> dict[str, Any]:
    """The whole card of one definition, with what each parameter may be. Raises ConfigError.

    prompts: with the text of every prompt, or why it cannot be read.
    """
    from adapters.base import JudgedScorer, Unavailable, UnknownDefinition, scorer

    try:
        found = scorer(spec)
    except UnknownDefinition as error:
        raise ConfigError(str(error)) from error
    shown = {**found.definition.card(), "declared": [asdict(parameter) for parameter in parameters(found)]}
    if prompts:
        shown["prompt_texts"] = {}
        if isinstance(found, JudgedScorer):
            try:
                shown["prompt_texts"] = found.prompts()
            except Unavailable as error:
                shown["prompt_texts"] = {"unavailable": str(error)}
    return shown


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The fields in which two cards differ; parameters and prompts one by one."""
    flat = [_flat(one), _flat(other)]
    return {
        name: (flat[0].get(name), flat[1].get(name))
        for name in dict.fromkeys((*flat[0], *flat[1]))
        if flat[0].get(name) != flat[1].get(name)
    }


def _flat(shown: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in shown.items():
        if name in ("parameters", "prompts"):
            flat.update({f"{name}.{inner}": found for inner, found in value.items()})
        elif name != "declared":
            flat[name] = value
    return flat


def parameters(measure: Measure) -> tuple[Parameter, ...]:
    """What each parameter of a definition may be."""
    declared = type(measure).model_fields
    properties: dict[str, Any] = type(measure).model_json_schema()["properties"] if declared else {}
    return tuple(
        Parameter(
            name,
            properties[name].get("default"),
            field.is_required(),
            allowed(properties[name]),
            field.description,
        )
        for name, field in declared.items()
    )


BOUNDS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}


def allowed(schema: Mapping[str, Any]) -> str:
    """What a JSON Schema of one parameter allows, in words: `integer >= 1 or null`, `"chunk" or "document"`."""
    if "anyOf" in schema:
        return " or ".join(allowed(option) for option in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(json.dumps(option) for option in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "prefixItems" in schema:
        return f"[{', '.join(allowed(item) for item in schema['prefixItems'])}]"
    bounds = [f"{sign} {schema[name]:g}" for name, sign in BOUNDS.items() if name in schema]
    return " ".join((str(schema.get("type", "any value")), " and ".join(bounds))).strip()


SCHEMAS = {"score": "Score", "record": "Record", "question": "Question", "definition": "Definition"}
"""Name on the command line -> type of adapters.schema."""
FILES = ("baseline",)
"""Names of the schemas of files; baseline: what `paribus accept` writes."""


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema of one of SCHEMAS or FILES."""
    if name in FILES:
        from runner.gate.accepted import BASELINE_VERSION, Accepted

        return {**Accepted.model_json_schema(), "$comment": f"paribus baseline version {BASELINE_VERSION}"}
    from adapters import schema

    return schema.json_schema(getattr(schema, SCHEMAS[name]))


INTRO = """\
# Definitions

Generated by `python -m runner.definitions > docs/definitions.md` from the classes in `adapters/`; a test keeps the two
alike. `paribus definitions show ID` prints the whole card of one, with the hashes of its prompts and its fingerprint.

The same name does not mean the same quantity. Take an answer that makes five claims: the context supports three,
contradicts one, and does not mention one.

| definition | what it does with the claim that is not mentioned | value |
| --- | --- | --- |
| `ragas/faithfulness` | cannot be inferred, so no hit | 3 / 5 = 0.60 |
| `deepeval/faithfulness` | is not contradicted, so a hit | 4 / 5 = 0.80 |
| `deepeval/faithfulness` with `penalize_ambiguous_claims: true` | is ambiguous, so no hit | 3 / 5 = 0.60 |

Nothing about the answer changed between 0.60 and 0.80. And 0.60 twice is not the same either: DeepEval judges claims
against statements that the judge drew from the context first, Ragas against the context itself, and TruLens grades
sentences from 0 to 3, not claims. So paribus subtracts two scores only where their fingerprints agree, which cover the
framework's version, the class, the parameters and the text of every prompt.

"Calls" is how often a judge is asked for one record; 0 = it asks none. "Better" is the direction in which a system
improves. A definition counts the parameters below it at their defaults; another value is another definition with a key
of its own (`labels/recall@5.unit-document`).
"""


def page() -> str:
    """The text of docs/definitions.md."""
    found, problems = catalogue()
    parts = [INTRO]
    for asks, group in grouped(found, "asks").items():
        parts.append(f"## {asks[0].upper()}{asks[1:]}\n")
        parts.append(_table([_row(measure) for measure in group]))
        parts += [_notes(measure) for measure in group]
    parts += [f"Not available: {_cell(problem)}\n" for problem in problems]
    return "\n".join(parts)


HEADER = ("id", "framework", "unit", "hit", "formula", "range", "better", "calls")


def _row(measure: Measure) -> tuple[str, ...]:
    low, high = measure.value_range
    return (
        f"[{measure.id}](#{measure.id.replace('/', '')})",
        measure.framework,
        measure.unit_judged,
        measure.hit,
        measure.formula,
        f"{low:g} to {high:g}",
        measure.direction,
        measure.calls,
    )


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    lines = [HEADER, ("---",) * len(HEADER), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").split())


def _notes(measure: Measure) -> str:
    notes = [
        f"nothing to judge: {measure.nothing_to_judge}",
        *(f"parameter `{parameter.name}`: {parameter}" for parameter in parameters(measure)),
        *(f"hazard: {hazard}" for hazard in measure.hazards),
        f"source: {measure.source}",
    ]
    return f"### {measure.id}\n\n" + "".join(f"- {_cell(note)}\n" for note in notes)


if __name__ == "__main__":
    sys.stdout.write(page())
