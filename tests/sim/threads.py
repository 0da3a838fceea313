"""Thread pools of the log that do not go through the event loop: here their work runs at once, in order."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from barnabas.log import closing, log_manager


class InlineExecutor(Executor):
    """Runs a function when it is submitted."""

    def __init__(self, *_arguments: Any, **_keywords: Any) -> None:
        pass

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


@contextmanager
def inline_pools() -> Iterator[None]:
    with ExitStack() as stack:
        for module in (closing, log_manager):
            stack.enter_context(patch.object(module, "ThreadPoolExecutor", InlineExecutor))
        yield
