"""What is done about records that are gone before they were read: `failOnDataLoss`."""

import logging

_LOG = logging.getLogger(__name__)


class DataLossError(RuntimeError):
    """Records that were to be read are not there any more."""


class Losses:
    """Raises for every loss, or warns of it."""

    def __init__(self, *, fail: bool) -> None:
        self._fail = fail

    def report(self, what: str) -> None:
        """Tell of a loss.

        :raises DataLossError: Unless losses are to be passed over.
        """
        if self._fail:
            message = (
                f"{what}. Records were removed (by retention, DeleteRecords or with their topic) before they were "
                "read; set failOnDataLoss to false to go on without them"
            )
            raise DataLossError(message)
        _LOG.warning("%s; reading goes on without them, as failOnDataLoss is false", what)
