"""The event loop in which systems answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import cache
from threading import Lock, Thread
from typing import TypeVar

T = TypeVar("T")
_STARTING = Lock()


def awaited(value: Awaitable[T], seconds: float | None = None) -> T:
    """What `value` comes to, in the one loop of this process for systems: clients that keep connections open are bound
    to the loop of their first call. May be called from any thread but the loop's. Raises TimeoutError after `seconds`.
    """

    async def guarded() -> T:
        try:
            return await value
        except SystemExit as error:  # it would end the loop, and with it all that is under way
            raise RuntimeError(f"sys.exit({error})") from error

    async def ended() -> T:
        return await asyncio.wait_for(guarded(), seconds)

    with _STARTING:
        loop = _started()
    future = asyncio.run_coroutine_threadsafe(ended(), loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()  # Ctrl-C stops what is under way
        raise


@cache
def _started() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="paribus-system", daemon=True).start()
    return loop
