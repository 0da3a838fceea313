"""Run the job `compact` without Spark: the same plans, tasks and installation, with tables in plain Python."""

import sys
import time
from contextlib import ExitStack

import numpy as np

from barnabas.client.admin.offsets import Isolation
from pyspark_barnabas.jobs.compact import job
from pyspark_barnabas.jobs.compact.partition import (
    PartitionPlan,
    Survey,
    clean_group,
    read_keys,
    slices_of,
    survey,
)
from pyspark_barnabas.source.options import batch_options
from pyspark_barnabas.source.segment_files import SegmentFiles


def obsolete_of(
    plan: PartitionPlan, surveyed: Survey
) -> dict[int, "np.ndarray[tuple[int], np.dtype[np.int64]]"]:
    """Compute the obsolete offsets of each group, as the job does on Spark."""
    rows = [
        row
        for segment_slice in slices_of(plan, surveyed, 0, 0)
        for batch in read_keys(plan, segment_slice)
        for row in batch.to_pylist()
    ]
    latest: dict[bytes, int] = {}
    for row in rows:
        if row["dirty"]:
            latest[row["key"]] = max(row["offset"], latest.get(row["key"], -1))
    found: dict[int, list[int]] = {group: [] for group in range(len(plan.groups))}
    for row in rows:
        if row["offset"] < latest.get(row["key"], -1):
            found[row["grp"]].append(row["offset"])
    return {group: np.array(offsets, np.int64) for group, offsets in found.items()}


def compact_without_spark(bootstrap: str, log_dir: str, wait_s: float) -> list[job.Compacted]:
    """Run the job once over the topic "t"."""
    options = batch_options(
        {
            "kafka.bootstrap.servers": bootstrap,
            "kafka.isolation.level": Isolation.READ_COMMITTED.name.lower(),
            "subscribe": "t",
            "transport": "files",
            "logDirs": log_dir,
        }
    )
    done: list[job.Compacted] = []
    with ExitStack() as stack:
        works = list(job._begin(options, stack, done, pause=time.sleep, dry_run=False))
        cleaned = {}
        for part, work in enumerate(works):
            assert work.target is not None
            surveyed = survey(work.plan, SegmentFiles(work.plan.directory, time.sleep), 10_000)
            cleaned[part] = [
                clean_group(work.plan, surveyed, index, offsets, work.target)
                for index, offsets in obsolete_of(work.plan, surveyed).items()
            ]
        return done + list(job._finish(works, cleaned, wait_s, time.sleep))


if __name__ == "__main__":
    while True:
        try:
            states = [each.state for each in compact_without_spark(*sys.argv[1:3], 2.0)]
            print(*states, flush=True)
        except Exception as error:
            print(
                repr(error), file=sys.stderr, flush=True
            )  # the broker is down, or has cleaned the log first
