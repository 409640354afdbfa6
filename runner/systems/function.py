"""A Python function as the system."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from copy import deepcopy
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from traceback import extract_tb
from typing import Any

from pydantic import Field, field_validator, model_validator

from adapters.schema import fingerprint
from runner.component import source_hash
from runner.errors import ComponentError
from runner.stage import System, SystemReply
from runner.systems.loop import awaited
from runner.systems.replies import FIELDS, known, read


class FunctionSystem(System):
    """Calls `module:function(question, **parameters)`, with `k` where it is set; the function may be async, and then
    all calls run in one event loop.

    What it returns: see runner.systems.replies.read. Whatever it raises costs that question only. What it prints goes
    to stderr. With concurrency above 1 it is called from several threads. Its fingerprint covers parameters, version
    and the file of the function, not what that file imports.
    """

    function: str | None = None
    """`module:function` or `module:object.method`; the module must be importable where the command is typed."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments; these can be swept."""
    fields: dict[str, str] = Field(default_factory=dict)
    """Our field -> its path in what is returned, where it is not of the same name."""

    @field_validator("function")
    @classmethod
    def _importable(cls, function: str | None) -> str | None:
        if function is not None:
            _function(function)
        return function

    @field_validator("fields")
    @classmethod
    def _ours(cls, fields: dict[str, str]) -> dict[str, str]:
        return known(fields)

    @model_validator(mode="after")
    def _can_be_called(self) -> FunctionSystem:
        if self.function is None:
            return self
        function = _function(self.function)
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # of something written in C, which does not tell
            return self
        try:
            signature.bind("", **self._arguments())
        except TypeError as error:
            raise ValueError(
                f"{self.function}{signature} cannot be called with a question"
                f"{''.join(f' and {name}' for name in self._arguments())}: {error}"
            ) from None
        return self

    def _arguments(self) -> dict[str, Any]:
        """Those besides the question; a function may change its own."""
        return deepcopy(self.parameters) | ({} if self.k is None else {"k": self.k})

    @property
    def fingerprint(self) -> str:
        """See Component; the file of the function counts too."""
        return fingerprint([super().fingerprint, source_hash(self.told("function").partition(":")[0])])

    def answer(self, id: str, question: str) -> SystemReply:
        """See System."""
        try:
            value = _function(self.told("function"))(question, **self._arguments())
            if inspect.isawaitable(value):
                value = awaited(value)
        except (Exception, SystemExit) as error:
            raise ComponentError(f"{self.function} raised {type(error).__name__}: {error}{_where(error)}") from error
        try:
            return read(value, {**FIELDS, **self.fields})
        except ComponentError as error:
            raise ComponentError(f"{self.function}: {error}") from None


def _function(target: str) -> Callable[..., Any]:
    """The function that `target` names. Raises ValueError."""
    module, _, name = target.partition(":")
    try:
        with redirect_stdout(sys.stderr):
            found: Any = attrgetter(name)(import_module(module))
    except (Exception, SystemExit) as error:  # a module of somebody's may raise anything
        raise ValueError(
            f"{target!r} cannot be imported ({type(error).__name__}: {error}{_where(error)}); write module:function, "
            "and set PYTHONPATH to the folder of the module"
        ) from error
    if not callable(found):
        raise ValueError(f"{target!r} is of type {type(found).__name__}, which cannot be called")
    function: Callable[..., Any] = found
    return function


def _where(error: BaseException) -> str:
    """The line that raised; nothing where that is none of the system's."""
    files = [(Path(frame.filename), frame.lineno) for frame in extract_tb(error.__traceback__)[1:]]
    theirs = [f"{file.name}, line {line}" for file, line in files if "importlib" not in str(file)]
    return f" ({theirs[-1]})" if theirs else ""
