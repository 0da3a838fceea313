"""Policy for records that are gone before they were read: `failOnDataLoss`."""

import logging

from barnabas.base.ids import uuid_to_text

_LOG = logging.getLogger(__name__)


class DataLossError(RuntimeError):
    """Records to be read no longer exist."""


class DataLossPolicy:
    """Raises an error for every loss, or logs a warning."""

    def __init__(self, *, fail: bool, option: str = "failOnDataLoss") -> None:
        """:param option: The name of the setting, for messages."""
        self._fail = fail
        self._option = option

    def report(self, what: str) -> None:
        """Report a loss.

        :raises DataLossError: If failOnDataLoss is set.
        """
        if self._fail:
            message = (
                f"{what}. Records were removed (by retention, DeleteRecords or with their topic) before they were "
                f"read; set {self._option} to false to continue without them"
            )
            raise DataLossError(message)
        _LOG.warning("%s; reading continues without them because %s is false", what, self._option)

    def report_recreated(self, topic: str, id_before: bytes, id_now: bytes) -> None:
        """Report a topic that was deleted and recreated since a checkpoint.

        :raises DataLossError: If failOnDataLoss is set.
        """
        before, now = uuid_to_text(id_before), uuid_to_text(id_now)
        what = (
            f"topic '{topic}' was deleted and created again: the checkpoint is of topic id {before}, "
            f"and the topic has id {now} now"
        )
        if self._fail:
            message = (
                f"{what}. What was not read of the old topic is lost. Set failOnDataLoss to false to read the new "
                "topic from its beginning, or begin a new checkpoint with startingOffsets of your choice; if "
                "another cluster was meant, correct kafka.bootstrap.servers or logDirs"
            )
            raise DataLossError(message)
        _LOG.warning("%s; it is read from its beginning because failOnDataLoss is false", what)
