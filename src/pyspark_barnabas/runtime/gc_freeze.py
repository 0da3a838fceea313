"""Freeze long-lived objects, so that the garbage collection after each task skips them.

Spark collects garbage when a task is over, before a worker takes its next one. All modules of Spark, pandas, pyarrow
and numba are looked at then, which takes longer than reading a small task.
"""

import gc
import os
from collections.abc import Mapping
from functools import cache

#: What Spark gives the Python processes that are to do one thing after the other.
REUSED = "SPARK_REUSE_WORKER"


def freeze_long_lived_objects(environment: Mapping[str, str] = os.environ) -> None:
    """Call it when the first work of a process is done: what there is then is taken to stay as long as the process.

    Does nothing outside of Spark's own Python processes, and nothing the second time.
    """
    if REUSED in environment:
        _freeze()


@cache
def _freeze() -> None:
    gc.freeze()
