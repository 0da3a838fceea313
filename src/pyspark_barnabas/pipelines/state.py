"""A pipeline's state directory: for each flow a checkpoint, its inferred schema, and its status."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from barnabas.base.file_lock import is_held, locked
from pyspark_barnabas.pipelines.declaration import Flow, Pipeline
from pyspark_barnabas.stream_offsets import positions_only

_LOCK = "lock"


class FlowState(Enum):
    """The state of a flow."""

    NEW = "new"  #: it never ran
    RUNNING = "running"
    DONE = "done"  #: all available rows are written
    STOPPED = "stopped"  #: stopped by its user; it can continue
    FAILED = "failed"
    KILLED = "killed"  #: running when its process ended; it continues from its checkpoint


@dataclass(frozen=True)
class FlowStatus:
    """The status of a flow; counts are of its last run."""

    flow: str
    state: FlowState = FlowState.NEW
    batch: int | None = None  #: the last written one
    rows_in: int = 0
    rows_out: int = 0
    dead_letters: int = 0
    dropped: int = 0
    rows_per_second: float = 0.0  #: of its last batch
    lag: int | None = None  #: unread records; None for files
    error: str | None = None


class PipelineRuns(Exception):
    """Another process runs on the same state directory."""


class StateDirectory:
    """The directory with everything that a restart needs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def checkpoint(self, flow: str) -> Path:
        """Spark's checkpoint."""
        return self.path / flow / "checkpoint"

    def schema(self, flow: str) -> Path:
        """Return the schema inferred from a sample."""
        return self.path / flow / "schema.json"

    def query_id(self, flow: str) -> str:
        """Return the query of the checkpoint; Spark writes it when the query starts."""
        found: str = json.loads((self.checkpoint(flow) / "metadata").read_text())["id"]
        return found

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the directory; the operating system releases the lock when this process ends.

        :raises PipelineRuns: Another process holds the lock.
        """
        busy = PipelineRuns(f"the pipeline runs already: its state directory {self.path} is held")
        with locked(self.path / _LOCK, busy):
            yield

    def is_held(self) -> bool:
        """Whether a run is in progress."""
        return is_held(self.path / _LOCK)

    def write_status(self, status: FlowStatus) -> None:
        """Replace the status atomically."""
        path = self.path / status.flow / "status.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".fresh")
        fresh.write_text(json.dumps(status_json(status)))
        os.replace(fresh, path)

    def status(self, flow: str) -> FlowStatus:
        """Return the last written status of a flow, or a new one."""
        path = self.path / flow / "status.json"
        if not path.exists():
            return FlowStatus(flow)
        fields = json.loads(path.read_text())
        return FlowStatus(**{**fields, "state": FlowState(fields["state"])})


def status_json(status: FlowStatus) -> dict[str, Any]:
    """Return the status for programs."""
    return {**asdict(status), "state": status.state.value}


def pipeline_status(pipeline: Pipeline) -> list[FlowStatus]:
    """Return the status of each flow, whether or not a run is in progress."""
    state = StateDirectory(pipeline.state)
    runs = state.is_held()
    return [_seen(state.status(flow.name), runs) for flow in pipeline.flows]


def _seen(status: FlowStatus, runs: bool) -> FlowStatus:
    if status.state is FlowState.RUNNING and not runs:
        return replace(status, state=FlowState.KILLED)
    return status


def starting_at(state: StateDirectory, flow: Flow) -> dict[str, dict[str, int]] | None:
    """Return the offsets behind the last finished batch of a flow that reads a topic; None before the first."""
    checkpoint = state.checkpoint(flow.name)
    batches = [int(path.name) for path in (checkpoint / "commits").glob("[0-9]*") if path.name.isdigit()]
    if not batches:
        return None
    lines = (checkpoint / "offsets" / str(max(batches))).read_text().splitlines()
    return positions_only(json.loads(lines[-1]))
