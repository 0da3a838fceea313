"""Determines what a pipeline would do, without running it."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from barnabas.reading.offset_range_limits import ending_offsets, starting_offsets
from barnabas.reading.opening import open_logs
from barnabas.reading.option_values import nested
from pyspark_barnabas.failures import FlowError, one_line_error
from pyspark_barnabas.paths import PathError
from pyspark_barnabas.pipelines.building import built, source_options
from pyspark_barnabas.pipelines.declaration import Flow, Pipeline, TopicInput
from pyspark_barnabas.pipelines.state import StateDirectory, starting_at
from pyspark_barnabas.source.options import batch_options


@dataclass(frozen=True)
class FlowPlan:
    """What a flow would do."""

    flow: str
    source: str
    sink: str
    dead_letters: str | None
    schema: str = ""  #: of the written rows, as DDL
    expectations: tuple[str, ...] = ()
    trigger: str = ""
    offsets: tuple[tuple[str, int, int, int], ...] = ()  #: topic, partition, from, to
    error: str | None = None  #: the error if it would fail


def pipeline_plan(spark: SparkSession, pipeline: Pipeline) -> list[FlowPlan]:
    """Return what each flow would do now; nothing is run, and nothing but an inferred schema is stored."""
    return [_planned(spark, pipeline, flow) for flow in pipeline.flows]


def _planned(spark: SparkSession, pipeline: Pipeline, flow: Flow) -> FlowPlan:
    plan: dict[str, Any] = {
        "flow": flow.name,
        "source": flow.source,
        "sink": flow.sink.label,
        "dead_letters": flow.dead_letters,
        "expectations": tuple(
            f"{expectation.name}: {expectation.condition.text}, else {expectation.action.value}"
            for expectation in flow.expectations
        ),
        "trigger": f"{flow.trigger.kind.value} {flow.trigger.interval}".strip(),
    }
    try:
        plan["schema"] = _ddl(built(spark, pipeline, flow).schema)
        plan["offsets"] = _offsets(pipeline, flow)
    except (FlowError, PathError) as error:
        plan["error"] = str(error)
    except Exception as error:  # any error affects only this flow
        plan["error"] = f"{type(error).__name__}: {one_line_error(error)}"
    return FlowPlan(**plan)


def _ddl(schema: StructType) -> str:
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema.fields)


def _offsets(pipeline: Pipeline, flow: Flow) -> tuple[tuple[str, int, int, int], ...]:
    """Return the offsets that a flow would read of each partition; new partitions are read from the first record."""
    if not isinstance(flow.input, TopicInput):
        return ()
    given = source_options(pipeline, flow.input)
    begun = starting_at(StateDirectory(pipeline.state), flow)
    options = batch_options(
        {key: value for key, value in given.items() if key not in ("maxOffsetsPerTrigger", "startingOffsets")}
    )
    logs = open_logs(options)
    try:
        positions = logs.partitions(options.selection)
        ends = nested(ending_offsets(logs, positions, options))
        first = nested(starting_offsets(logs, positions, options))
    finally:
        logs.close()
    if begun is None and flow.input.starting == "latest":
        first = ends
    starts = {topic: {**first[topic], **(begun or {}).get(topic, {})} for topic in ends}
    return tuple(
        (topic, int(partition), starts[topic][partition], end)
        for topic, partitions in sorted(ends.items())
        for partition, end in sorted(partitions.items(), key=lambda each: int(each[0]))
    )
