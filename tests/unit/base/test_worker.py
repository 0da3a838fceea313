import threading

import pytest

from barnabas.base.worker import Worker
from support.loop import on_loop, turns


@on_loop
async def test_functions_run_in_a_thread_with_their_arguments() -> None:
    worker = Worker("large-requests")
    assert await worker.call(lambda: threading.current_thread()) is not threading.current_thread()
    assert await worker.call(sorted, [1, 2, 3], reverse=True) == [3, 2, 1]
    with pytest.raises(ZeroDivisionError):
        await worker.call(lambda: 1 // 0)
    worker.close()


class _Freed:
    def __init__(self, threads: list[int], done: threading.Event) -> None:
        self._threads = threads
        self._done = done

    def __del__(self) -> None:
        self._threads.append(threading.get_ident())
        self._done.set()


@on_loop
async def test_objects_are_freed_in_another_thread() -> None:
    worker, threads, done = Worker("large-requests"), list[int](), threading.Event()
    worker.free(_Freed(threads, done))
    await turns()
    assert await worker.call(done.wait, 10)
    assert threads != [threading.get_ident()]
    worker.close()


@on_loop
async def test_objects_are_freed_even_while_the_worker_closes() -> None:
    worker, done = Worker("large-requests"), threading.Event()
    worker.free(_Freed([], done))
    worker.close()
    await turns()
    assert done.is_set()
