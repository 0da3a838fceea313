"""Freeze long-lived objects, so that the garbage collection after each task skips them.

Spark runs the garbage collector after each task of a worker. It then scans all modules of Spark, pandas, pyarrow and
numba, which takes longer than reading a small task.
"""

import gc
import os
from collections.abc import Mapping
from functools import cache

#: Environment variable that Spark sets for Python processes that are reused for several tasks.
REUSED = "SPARK_REUSE_WORKER"


def freeze_long_lived_objects(environment: Mapping[str, str] = os.environ) -> None:
    """Freeze all current objects; call it after the first work of a process.

    Does nothing outside Spark's Python worker processes, and nothing on the second call.
    """
    if REUSED in environment:
        _freeze()


@cache
def _freeze() -> None:
    gc.freeze()
