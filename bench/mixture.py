"""One-record Produce requests in the shapes that real clients send, measured individually and together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench import load
from bench.process import cpu_s
from bench.warm_memory import warm_memory


@dataclass(frozen=True)
class Shape:
    """The requests of one client; values have 20 B to 4 KiB, small ones more often."""

    name: str
    partitions: int
    connections: int
    depth: int  #: requests in flight on each connection
    versions: str = "7,9,12,13"
    per_request: int = 1  #: partitions in each request
    idempotent: bool = False

    @property
    def text(self) -> str:
        connections = "1 connection" if self.connections == 1 else f"{self.connections} connections"
        versions = "all versions" if "," in self.versions else f"v{self.versions}"
        keys = "1 partition" if self.partitions == 1 else f"keys over {self.partitions} partitions"
        several = f", {self.per_request} partitions in each request" if self.per_request > 1 else ""
        idempotent = ", idempotent" if self.idempotent else ""
        return f"{keys}, {versions}, {connections}, {self.depth} in flight on each{several}{idempotent}"


SHAPES = (
    Shape("one-64", 6, 1, 64),
    Shape("ten-1", 6, 10, 1),
    Shape("fifty-5", 6, 50, 5),
    Shape("many-keys", 100, 50, 16),
    Shape("many-connections", 100, 500, 1),
    Shape("old", 6, 10, 16, "7"),
    Shape("new", 100, 10, 16, "13"),
    Shape("several", 6, 10, 5, per_request=3),
    Shape("idempotent", 6, 10, 5, idempotent=True),
    Shape("one-partition", 1, 10, 16),
)


def measure(
    bootstrap: str, pid: int, seconds: float, shapes: Sequence[Shape] = SHAPES, **security: str
) -> Mapping[str, float]:
    """Return broker CPU per request in microseconds, and requests per second: of each shape, and of all together.

    The topics are `mixture-1-0`, `mixture-6-0` and so on, by their number of partitions.
    """
    measured: dict[str, float] = {}
    for shape in shapes:
        before_s = cpu_s(pid)
        with warm_memory():
            done = load.raw(
                "mixture",
                bootstrap,
                topic=topic(shape.partitions),
                partitions=shape.partitions,
                connections=shape.connections,
                depth=shape.depth,
                versions=shape.versions,
                per_request=shape.per_request,
                idempotent=str(shape.idempotent).lower(),
                seconds=seconds,
                **security,
            )
        measured[f"cpu {shape.name}"] = (cpu_s(pid) - before_s) / done["requests"] * 1e6
        measured[f"rate {shape.name}"] = done["requests_per_s"]
    count = len(shapes)
    measured["cpu"] = sum(measured[f"cpu {shape.name}"] for shape in shapes) / count
    measured["rate"] = count / sum(1 / measured[f"rate {shape.name}"] for shape in shapes)
    return measured


def prepare(bootstrap: str) -> None:
    for partitions in sorted({shape.partitions for shape in SHAPES}):
        load.raw(
            "create", bootstrap, topic=topic(partitions).removesuffix("-0"), count=1, partitions=partitions
        )


def topic(partitions: int) -> str:
    """Name the topic with that many partitions."""
    return f"mixture-{partitions}-0"
