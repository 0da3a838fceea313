"""A pipeline's state directory: for each flow a checkpoint, the schema that was found, and how it is doing."""

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
from pyspark_barnabas.stream_offsets import without_ids

_LOCK = "lock"


class FlowState(Enum):
    """How a flow is doing."""

    NEW = "new"  #: it never ran
    RUNNING = "running"
    DONE = "done"  #: all there was is written
    STOPPED = "stopped"  #: by whoever ran it; it goes on from there
    FAILED = "failed"
    KILLED = "killed"  #: it was running when its process ended; it goes on from its checkpoint


@dataclass(frozen=True)
class FlowStatus:
    """What is known of a flow; counts are of its last run."""

    flow: str
    state: FlowState = FlowState.NEW
    batch: int | None = None  #: the last one that is written
    rows_in: int = 0
    rows_out: int = 0
    dead_letters: int = 0
    dropped: int = 0
    rows_per_second: float = 0.0  #: of its last batch
    lag: int | None = None  #: records that it has not read; None for files
    error: str | None = None


class PipelineRuns(Exception):
    """Somebody else runs on the same state directory."""


class StateDirectory:
    """Where a pipeline keeps what a restart needs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def checkpoint(self, flow: str) -> Path:
        """Spark's own."""
        return self.path / flow / "checkpoint"

    def schema(self, flow: str) -> Path:
        """The schema that was taken from a sample."""
        return self.path / flow / "schema.json"

    def query_id(self, flow: str) -> str:
        """Which query the checkpoint is of; Spark writes it when the query starts."""
        found: str = json.loads((self.checkpoint(flow) / "metadata").read_text())["id"]
        return found

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from running on it; the system lets go of it, however this process ends.

        :raises PipelineRuns: Somebody else holds it.
        """
        busy = PipelineRuns(f"the pipeline runs already: its state directory {self.path} is held")
        with locked(self.path / _LOCK, busy):
            yield

    def is_held(self) -> bool:
        """Whether a run is going on."""
        return is_held(self.path / _LOCK)

    def write_status(self, status: FlowStatus) -> None:
        """Readers see the old one or the new one."""
        path = self.path / status.flow / "status.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".fresh")
        fresh.write_text(json.dumps(status_json(status)))
        os.replace(fresh, path)

    def status(self, flow: str) -> FlowStatus:
        """What was last told of a flow, or that nothing was."""
        path = self.path / flow / "status.json"
        if not path.exists():
            return FlowStatus(flow)
        fields = json.loads(path.read_text())
        return FlowStatus(**{**fields, "state": FlowState(fields["state"])})


def status_json(status: FlowStatus) -> dict[str, Any]:
    """For programs."""
    return {**asdict(status), "state": status.state.value}


def pipeline_status(pipeline: Pipeline) -> list[FlowStatus]:
    """How each flow is doing, whether or not a run is going on."""
    state = StateDirectory(pipeline.state)
    runs = state.is_held()
    return [_seen(state.status(flow.name), runs) for flow in pipeline.flows]


def _seen(status: FlowStatus, runs: bool) -> FlowStatus:
    if status.state is FlowState.RUNNING and not runs:
        return replace(status, state=FlowState.KILLED)
    return status


def starting_at(state: StateDirectory, flow: Flow) -> dict[str, dict[str, int]] | None:
    """The offsets behind the last batch that a flow of a topic has finished; None before the first."""
    checkpoint = state.checkpoint(flow.name)
    done = [int(each.name) for each in (checkpoint / "commits").glob("[0-9]*") if each.name.isdigit()]
    if not done:
        return None
    lines = (checkpoint / "offsets" / str(max(done))).read_text().splitlines()
    return without_ids(json.loads(lines[-1]))
