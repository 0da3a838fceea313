"""Progress bars on stderr, only on a terminal."""

import contextlib
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def progress(total: int, *, in_bytes: bool = False) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances the progress by a number of items, or of bytes.

    No bar is shown if stderr is not a terminal, or if the total is 0, which stands for unknown.
    """
    if not total or not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich import progress as rich
    from rich.console import Console

    amount = (rich.DownloadColumn(), rich.TransferSpeedColumn()) if in_bytes else (rich.MofNCompleteColumn(),)
    columns = (rich.BarColumn(), *amount, rich.TimeRemainingColumn())
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda count: bar.advance(task, count)
