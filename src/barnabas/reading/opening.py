"""The logs and readers of options: those of a cluster, or of log directories."""

from barnabas.client.core.cluster import ClusterClient
from barnabas.reading.cluster_logs import ClusterLogs
from barnabas.reading.fetch_reader import FetchReader
from barnabas.reading.file_logs import FileLogs
from barnabas.reading.file_reader import FileReader
from barnabas.reading.logs import Logs
from barnabas.reading.options import ReadOptions, Transport
from barnabas.reading.range_reader import RangeReader


def open_logs(options: ReadOptions) -> Logs:
    """Return the logs of the cluster, or of files if no cluster is given."""
    if options.transport is Transport.FILES and not options.connection.bootstrap:
        return FileLogs(options)
    return ClusterLogs(options)


def connected_logs(options: ReadOptions) -> Logs:
    """Return what `open_logs` returns; try once to connect to a cluster.

    :raises BrokerConnectionError: No broker answers.
    :raises KafkaError: The login fails.
    """
    logs = open_logs(options)
    if isinstance(logs, ClusterLogs):
        try:
            logs.run(ClusterClient.connect)
        except BaseException:
            logs.close()
            raise
    return logs


def open_reader(options: ReadOptions) -> RangeReader:
    """Return the reader of the selected transport."""
    return FileReader(options) if options.transport is Transport.FILES else FetchReader(options)
