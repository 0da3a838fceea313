"""`barnabas tables`: keep Delta and Iceberg tables of topics."""

import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from random import SystemRandom
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barnabas.base.arguments import conceal
from barnabas.base.clock import SystemClock
from barnabas.cli.support import candidates
from barnabas.cli.support.commands import command, command_group
from barnabas.cli.support.extras import check_spark_installed, check_tables_installed
from barnabas.cli.support.failures import FAILED, CommandError, warn, wrong_use
from barnabas.cli.support.login import current_login, current_tls
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, key_value_pairs
from barnabas.cli.support.output import print_json, print_table
from barnabas.cli.support.registry import Registry
from barnabas.cli.support.stores import StoreOption, store_settings
from barnabas.cli.support.times import format_timestamp
from barnabas.client.core.address import parse_bootstrap
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.objects.location import Location
    from barnabas.objects.settings import StoreSettings
    from barnabas.reading.connection import ConnectionOptions
    from barnabas.tables.building import TableStores
    from barnabas.tables.discovery import FoundTables
    from barnabas.tables.range_writing import RangesWriter
    from barnabas.tables.service import ServiceOptions, TableService
    from barnabas.tables.settings import TableSettings
    from barnabas.tables.status import TableReport

_COLUMNS = (
    "topic",
    "format",
    "location",
    "version",
    "rows",
    "files",
    "bytes",
    "missing offsets",
    "last commit",
)

_Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="TOPIC",
        help="Only this topic; may be repeated (default: all topics whose configs ask for a table).",
        autocompletion=candidates.topics,
    ),
]
_Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Config of the topics, such as barnabas.table.format=delta; overrides their own and needs --topic. "
        "For brokers of Apache Kafka, which do not know these configs. May be repeated.",
    ),
]
_Base = Annotated[
    str | None,
    typer.Option(
        "--location",
        metavar="LOCATION",
        help="Directory or URL (s3://bucket/path) of the tables whose topics have no barnabas.table.location.",
    ),
]
_Catalog = Annotated[
    list[str] | None,
    typer.Option(
        "--catalog",
        metavar="KEY=VALUE",
        help="Property of Iceberg's catalog, such as uri=https://HOST/api/catalog, name=NAME of one in "
        ".pyiceberg.yaml, or namespace=NAME; may be repeated (default: a file iceberg-catalog.db beside the table).",
    ),
]
_Processes = Annotated[
    int,
    typer.Option(
        "--processes",
        metavar="N",
        min=1,
        help="Number of processes, which share the topics; each uses one core.",
    ),
]
_Threads = Annotated[
    int, typer.Option("--threads", metavar="N", min=1, help="Tables that a process works on at a time.")
]
_SparkMaster = Annotated[
    str | None,
    typer.Option(
        "--spark-master",
        metavar="URL",
        help="Write rows in tasks of Spark: local[N], spark://HOST:7077 or another (default: without Spark).",
    ),
]
_Metrics = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        metavar="HOST:PORT",
        help="Address of the metrics for Prometheus; further processes use the next ports (default: none).",
    ),
]


@command(
    "run",
    example="tables run --bootstrap 127.0.0.1:9092 --location /var/lib/tables",
    apis=("Metadata", "DescribeConfigs", "ListOffsets", "Fetch"),
    needs=("describe topic", "describe-configs topic", "read topic"),
)
def run_tables(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    topics: _Topics = None,
    settings: _Settings = None,
    location: _Base = None,
    registry: Registry = None,
    store_options: StoreOption = None,
    catalog: _Catalog = None,
    processes: _Processes = 1,
    threads: _Threads = 4,
    spark_master: _SparkMaster = None,
    metrics: _Metrics = None,
) -> None:
    """Keep the tables of topics until it is stopped: every record exactly once, compacted, with their own retention.

    Topics ask for a table with barnabas.table.format=delta or iceberg; changes of their configs take effect within
    seconds. A process that ends is started again, and continues where its last commit ended. Several services may keep
    the same tables.
    """
    check_tables_installed()
    parse_bootstrap(bootstrap)
    from barnabas.tables.supervision import supervised_share

    share = supervised_share()
    if share is None:
        _check_settings(topics, settings)
        _check_spark(spark_master, processes)
        _checked_stores(store_options, catalog)
        raise typer.Exit(_supervise(processes))
    service = _service(
        share,
        bootstrap=bootstrap,
        topics=topics,
        settings=settings,
        location=location,
        registry=registry,
        store_options=store_options,
        catalog=catalog,
        threads=threads,
        spark_master=spark_master,
    )
    with ExitStack() as stack:
        if metrics is not None:
            _serve_metrics(stack, service, metrics, share[0])
        _run_until_stopped(service)


@command(
    "status",
    example="tables status --bootstrap 127.0.0.1:9092 --location /var/lib/tables",
    apis=("Metadata", "DescribeConfigs", "ListOffsets"),
    needs=("describe topic", "describe-configs topic"),
)
def show_status(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    topics: _Topics = None,
    settings: _Settings = None,
    location: _Base = None,
    store_options: StoreOption = None,
    catalog: _Catalog = None,
    as_json: Json = False,
) -> None:
    """Show the tables of topics: version, rows, files, and what they lack of their topics.

    It reads the tables and needs no service. Exits with 1 if a table cannot be kept or read.
    """
    check_tables_installed()
    _check_settings(topics, settings)
    from barnabas.tables.source import TopicSource
    from barnabas.tables.status import report_table

    connection, stores = _connection(bootstrap), _stores(store_options, catalog)
    found = _find(connection, topics, settings, location)
    with closing(TopicSource(connection)) as source:
        reports = [
            report_table(table, stores, source, SystemClock()) for _, table in sorted(found.tables.items())
        ]
    problems = {topic: str(error) for topic, error in found.problems.items()}
    problems |= {report.topic: report.error for report in reports if report.error}
    if as_json:
        print_json(
            {"tables": [_json(report) for report in reports if not report.error], "problems": problems}
        )
    else:
        _print_reports([report for report in reports if not report.error], problems)
    if problems:
        raise typer.Exit(FAILED)


def _print_reports(reports: "Sequence[TableReport]", problems: dict[str, str]) -> None:
    if reports:
        print_table(_COLUMNS, [_row(report) for report in reports])
    elif not problems:
        print("no topic asks for a table: set barnabas.table.format=delta or iceberg on one")
    for topic, problem in sorted(problems.items()):
        warn(f"{topic}: {problem}", as_json=False)


def _row(report: "TableReport") -> tuple[object, ...]:
    committed = "" if report.committed_ms is None else format_timestamp(report.committed_ms)
    return (
        report.topic,
        report.format,
        report.location,
        report.version or "not created yet",
        report.rows_count,
        report.files_count,
        report.size_bytes,
        report.missing_offsets_count,
        committed,
    )


def _json(report: "TableReport") -> dict[str, Any]:
    fields = report._asdict()
    del fields["error"]
    return {**fields, "version": report.version or None}


def _check_settings(topics: list[str] | None, settings: list[str] | None) -> None:
    if settings and not topics:
        raise wrong_use("--set needs --topic: the configs are for these topics only")


def _connection(bootstrap: str) -> "ConnectionOptions":
    from barnabas.reading.connection import ConnectionOptions

    return ConnectionOptions(bootstrap, client_id="barnabas-tables", login=current_login(), tls=current_tls())


def _base_location(location: str | None) -> "Location | None":
    from pathlib import Path

    from barnabas.objects.location import LocationError, parse_location

    if location is None:
        return None
    try:
        base = parse_location(location)
    except LocationError as error:
        raise wrong_use(f"--location: {error}") from None
    return base.absolute() if isinstance(base, Path) else base


def _stores(store_options: list[str] | None, catalog: list[str] | None) -> "TableStores":
    from barnabas.tables.building import TableStores

    return TableStores(*_checked_stores(store_options, catalog))


def _checked_stores(
    store_options: list[str] | None, catalog: list[str] | None
) -> "tuple[StoreSettings, dict[str, str]]":
    """Return the settings of stores and catalog, and overwrite secret ones in this process's arguments."""
    from barnabas.objects.location import LocationError
    from barnabas.tables.settings import catalog_secrets

    try:
        settings = store_settings(store_options)
    except LocationError as error:
        raise wrong_use(f"--store-option: {error}") from None
    properties = dict(key_value_pairs(catalog, "--catalog"))
    conceal(catalog_secrets(properties))
    return settings, properties


def _find(
    connection: "ConnectionOptions",
    topics: list[str] | None,
    settings: list[str] | None,
    location: str | None,
) -> "FoundTables":
    from barnabas.reading.connection import connected
    from barnabas.tables.discovery import find_tables

    overrides = dict(key_value_pairs(settings, "--set"))
    with closing(connected(connection)) as client:
        found = find_tables(client, topics or None, overrides, _base_location(location))
    for error in found.problems.values():
        if isinstance(error, KafkaError):  # of a topic that was named
            raise error
    return found


def _service(
    share: tuple[int, int],
    *,
    bootstrap: str,
    topics: list[str] | None,
    settings: list[str] | None,
    location: str | None,
    registry: str | None,
    store_options: list[str] | None,
    catalog: list[str] | None,
    threads: int,
    spark_master: str | None,
) -> "TableService":
    from barnabas.tables.service import ServiceOptions, TableService

    options = ServiceOptions(
        connection=_connection(bootstrap),
        stores=_stores(store_options, catalog),
        base_location=_base_location(location),
        registry_url=registry,
        topics=tuple(topics) if topics else None,
        overrides=dict(key_value_pairs(settings, "--set")),
        share=share,
        threads_count=threads,
    )
    new_writer = None if spark_master is None else _spark_writer(options, spark_master)
    return TableService(options, SystemClock(), SystemRandom(), new_writer)


def _check_spark(master: str | None, processes: int) -> None:
    if master is None:
        return
    if processes > 1:
        raise wrong_use(
            "--spark-master and --processes: use one of them; Spark's tasks share the work already"
        )
    check_spark_installed()


def _spark_writer(options: "ServiceOptions", master: str) -> "Callable[[TableSettings], RangesWriter]":
    from pyspark_barnabas.runtime.session import spark_session
    from pyspark_barnabas.tables import SparkRangesWriter

    settings = {"spark.ui.showConsoleProgress": "false"}
    spark = spark_session("barnabas tables", master=master, settings=settings)
    writer = SparkRangesWriter(spark, options.connection, options.stores, options.registry_url)
    return lambda settings: writer


def _serve_metrics(stack: ExitStack, service: "TableService", address: str, number: int) -> None:
    from barnabas.tables.metrics import metrics_server
    from barnabas.telemetry.http import parse_listener

    host, port = parse_listener(address)
    try:
        bound = stack.enter_context(metrics_server(host, port and port + number, service.statistics))
    except OSError as error:
        raise CommandError(f"--metrics {address}: {error.strerror}") from error
    print(f"metrics: http://{host}:{bound}/metrics", file=sys.stderr, flush=True)


def _run_until_stopped(service: "TableService") -> None:
    from barnabas.tables.supervision import stop_without_supervisor
    from barnabas.telemetry import logs

    logs.configure("console", "INFO")
    stop_without_supervisor(service.stop)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: service.stop())
    service.run()


def _supervise(count: int) -> int:
    """Run the same command in processes that are started again when they end."""
    from barnabas.tables.supervision import ProcessSupervisor
    from barnabas.telemetry import logs

    logs.configure("console", "INFO")
    program = (sys.executable, "-P", "-m", "barnabas")

    async def run() -> int:
        supervisor = ProcessSupervisor((*program, *sys.argv[1:]), count)
        loop = asyncio.get_running_loop()
        stop: Callable[[], None] = supervisor.stop
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop)
        return await supervisor.run()

    return asyncio.run(run())


app = command_group(run_tables, show_status)
