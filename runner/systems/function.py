"""A Python function as the system."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from traceback import extract_tb
from typing import Any

from pydantic import Field, field_validator

from adapters.schema import fingerprint
from runner.component import source_hash
from runner.errors import ComponentError
from runner.scoring import in_own_loop
from runner.stage import System, SystemReply
from runner.systems.replies import read


class FunctionSystem(System):
    """Calls `module:function(question, **parameters)`, with `k` where it is set; the function may be async.

    What it returns: see runner.systems.replies.read. Whatever it raises costs that question only. With concurrency
    above 1 it is called from several threads. Its fingerprint covers parameters, version and the file of the function,
    not what that file imports.
    """

    function: str | None = None
    """`module:function`; the module must be importable where the command is typed."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments; these can be swept."""

    @field_validator("function")
    @classmethod
    def _callable(cls, function: str | None) -> str | None:
        if function is not None:
            _function(function)
        return function

    @property
    def fingerprint(self) -> str:
        """See Component; the file of the function counts too."""
        return fingerprint([super().fingerprint, source_hash(self.told("function").partition(":")[0])])

    def answer(self, id: str, question: str) -> SystemReply:
        """See System."""
        try:
            value = _function(self.told("function"))(
                question, **self.parameters, **({} if self.k is None else {"k": self.k})
            )
            if inspect.iscoroutine(value):
                value = in_own_loop(value)
        except Exception as error:
            raise ComponentError(f"{self.function} raised {type(error).__name__}: {error}{_where(error)}") from error
        try:
            return read(value)
        except ComponentError as error:
            raise ComponentError(f"{self.function}: {error}") from None


def _function(target: str) -> Callable[..., Any]:
    """The function that `target` names. Raises ValueError."""
    module, _, name = target.partition(":")
    try:
        found: Any = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{target!r} cannot be imported ({error}); write module:function, and set PYTHONPATH to the folder of the "
            "module"
        ) from error
    if not callable(found):
        raise ValueError(f"{target!r} is of type {type(found).__name__}, which cannot be called")
    function: Callable[..., Any] = found
    return function


def _where(error: Exception) -> str:
    """The line that raised."""
    frames = extract_tb(error.__traceback__)
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if len(frames) > 1 else ""
