"""What answering a question costs, from what a run has stored: time, prompt, tokens and money."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, fsum
from statistics import median
from typing import Any, Literal

from adapters.schema import Record
from runner.recommendation.findings import Cost
from runner.results import StoredRun

ANSWERING = ("embedder", "retriever", "reranker", "generator")
"""Config groups of stages that may ask a paid model for each question."""
Asks = Literal["nobody", "an endpoint", "unknown"]


def cost(run: StoredRun) -> Cost | None:
    """The cost of answering, over the questions that have an answer; None where none has.

    Money and tokens are those that answering takes, not those that this run was charged: what was read from the store
    or from kept replies was charged to an earlier run. Where they cannot be known they are None, and `unknown` says
    why.
    """
    answered = [record for record in run.records.values() if record.error is None]
    if not answered:
        return None
    unknown: dict[str, str] = {}

    def known(name: str, found: float | str) -> float | None:
        if isinstance(found, str):
            unknown[name] = found
            return None
        return found

    seconds = _seconds(run, answered)
    p50, p95 = (seconds, seconds) if isinstance(seconds, str) else (median(seconds), percentile(seconds, 0.95))
    prompts = [len(record.prompt) for record in answered if record.prompt]
    return Cost(
        n=len(answered),
        p50=known("p50", p50),
        p95=known("p95", p95),
        prompt_characters=known(
            "prompt_characters", fsum(prompts) / len(prompts) if prompts else "no prompt was stored"
        ),
        tokens=known("tokens", _tokens(run, answered)),
        dollars=known("dollars", _dollars(run, answered)),
        unknown=unknown,
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed (nearest rank)."""
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]


def _seconds(run: StoredRun, answered: Sequence[Record]) -> list[float] | str:
    for stage in ("generator", "reranker"):
        used = _used(run, stage)
        if used.get("cached"):
            return f"{used['cached']} of {used['calls']} replies to the {stage} were kept from before and took no time"
    if not all(record.usage for record in answered):
        return "the stages were not timed"
    return [fsum(used.seconds for used in record.usage) for record in answered]


def _tokens(run: StoredRun, answered: Sequence[Record]) -> float | str:
    asks = {stage: _asks(run, stage) for stage in _stages(run)}
    counted = [_generated(record) for record in answered]
    tokens = [sum(each) for each in counted if each]
    if len(tokens) < len(counted):
        return f"the {'system' if run.config.get('system') else 'generator'} counts no tokens"
    mean = fsum(tokens) / len(tokens)
    for stage, asked in asks.items():
        if stage == "generator" or asked == "nobody":
            continue
        used = _used(run, stage)
        if stage != "reranker" or used.get("tokens") is None or not _whole(run):
            return f"the tokens of the {stage} are not known for each question"
        mean += used["tokens"] / len(run.records)
    return mean


def _dollars(run: StoredRun, answered: Sequence[Record]) -> float | str:
    if run.config.get("system"):
        return "nothing says what a system of your own pays"
    total = 0.0
    for stage in _stages(run):
        asked = _asks(run, stage)
        if asked == "nobody":
            continue
        if asked == "unknown":
            return f"nothing says whether {_part(run, stage).get('_target_')} asks a paid model"
        prices = _part(run, stage).get("prices")
        if stage == "embedder":
            return "what embedding a question costs is not kept apart from the documents"
        if not prices:
            return f"{stage}.prices is not set"
        if stage == "generator":
            counted = [_generated(record) for record in answered]
            if not all(counted):
                return "the generator counts no tokens"
            paid = fsum(each[0] * prices["input"] + each[1] * prices["output"] for each in counted if each)
            total += paid / 1e6 / len(counted)
        else:
            used = _used(run, stage)
            if used.get("cost") is None or used.get("cached") or not _whole(run):
                return f"this run did not pay for all that the {stage} takes: some of it was kept from before"
            total += used["cost"] / len(run.records)
    return 1000 * total


def _stages(run: StoredRun) -> tuple[str, ...]:
    """The stages that this run asked; contexts from an earlier run cost nothing more, and a system of one's own has no
    stages."""
    if run.config.get("system"):
        return ()
    frozen = (run.config.get("records") or {}).get("frozen")
    return ("generator",) if frozen else ANSWERING


def _part(run: StoredRun, stage: str) -> Mapping[str, Any]:
    return run.config.get(stage) or {}


def _used(run: StoredRun, stage: str) -> Mapping[str, Any]:
    """What the calls of a stage came to in this run; empty where it asked nothing."""
    found: Mapping[str, Any] = ((run.summary.get("usage") or {}).get("stages") or {}).get(stage) or {}
    return found


def _asks(run: StoredRun, stage: str) -> Asks:
    """Who is asked, by the settings: parts of paribus that ask an endpoint have its address, and weights on this
    machine cost no money. Nobody knows of others, unless they name a price or were seen to ask."""
    part = _part(run, stage)
    if "base_url" in part or "prices" in part:
        return "an endpoint"
    if str(part.get("_target_", "")).startswith("runner."):
        return "nobody"
    return "an endpoint" if _used(run, stage) else "unknown"


def _generated(record: Record) -> tuple[int, int] | None:
    for used in record.usage:
        if used.stage in ("generate", "answer") and used.tokens_in is not None and used.tokens_out is not None:
            return used.tokens_in, used.tokens_out
    return None


def _whole(run: StoredRun) -> bool:
    """Whether every call of the reranker was made in this run."""
    calls = run.summary.get("calls") or {}
    computed, reused = calls.get("computed") or {}, calls.get("reused") or {}
    return bool(computed.get("rerank")) and not reused.get("rerank") and not reused.get("rerank_one")
