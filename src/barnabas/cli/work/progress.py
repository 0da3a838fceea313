"""A progress bar for long work, on stderr and only on a terminal."""

import contextlib
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def progress(total: int, *, of_records: bool = False) -> Iterator[Callable[[int], None]]:
    """Gives a function that takes note of bytes, or records, done.

    Nothing is shown off a terminal, and for a total of 0, which stands for one that is not known.
    """
    if not total or not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich import progress as rich
    from rich.console import Console

    amount = (
        (rich.MofNCompleteColumn(),) if of_records else (rich.DownloadColumn(), rich.TransferSpeedColumn())
    )
    columns = (rich.BarColumn(), *amount, rich.TimeRemainingColumn())
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda count: bar.advance(task, count)
