"""A context that is made again when its files have changed."""

import os
import ssl
from collections.abc import Callable

from barnabas.telemetry.logs import get_logger
from barnabas.tls.certificate_names import CertificateNames, check_names, names_of
from barnabas.tls.settings import TlsSettings

#: How often the files are looked at, at most.
CHECK_INTERVAL_MS = 1_000

_log = get_logger("barnabas.tls")

#: (modification time in ns, size) of a file; None if it cannot be read
_Stamp = tuple[int, int] | None


class ReloadingContext:
    """The context of some settings. New connections get a new one after the files of keys and certificates change.

    Files that cannot be used are logged, and the old context stays: perhaps they are still being written, or the
    certificate lacks names of the old one.
    """

    def __init__(
        self,
        settings: TlsSettings,
        make: Callable[[TlsSettings], ssl.SSLContext],
        now_ms: Callable[[], int],
    ) -> None:
        """:param make: Makes a context, such as `server_context`.
        :raises TlsError: When a setting cannot be used.
        """
        self.settings = settings
        self._make = make
        self._now_ms = now_ms
        self._stamps = self._look()
        self._context = make(settings)
        self._names = _names_of(settings)
        self._checked_ms = now_ms()
        self.loads_count = 1
        self.failures_count = 0

    def following(self) -> ssl.SSLContext:
        """Return a context for a server that keeps one context: each handshake uses the current one."""
        context = self._make(self.settings)

        def follow(connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _: ssl.SSLContext) -> None:
            connection.context = self.current()

        context.sni_callback = follow
        return context

    def current(self) -> ssl.SSLContext:
        """Return the context for a new connection."""
        now_ms = self._now_ms()
        if self.settings.files and now_ms - self._checked_ms >= CHECK_INTERVAL_MS:
            self._checked_ms = now_ms
            stamps = self._look()
            if stamps != self._stamps:
                self._stamps = stamps
                self._reload()
        return self._context

    def check(self, settings: TlsSettings) -> CertificateNames | None:
        """Refuse settings whose certificate lacks names of the one in use, unless they allow it; return its names.

        :raises TlsError: When it does, or the key store cannot be read.
        """
        names = _names_of(settings)
        if names is not None and self._names is not None:
            check_names(self._names, names, settings)
        return names

    def _reload(self) -> None:
        try:
            context = self._make(self.settings)
            names = self.check(self.settings)
        except Exception as error:  # a connection must not fail because of a file
            self.failures_count += 1
            _log.error(
                "cannot load changed keys or certificates; the former ones stay in use", why=str(error)
            )
        else:
            self._context, self._names = context, names
            self.loads_count += 1
            _log.info("loaded changed keys or certificates", files=list(self.settings.files))

    def _look(self) -> list[_Stamp]:
        return [_stamp(path) for path in self.settings.files]

    def statistics(self) -> dict[str, int]:
        return {"loads_count": self.loads_count, "failures_count": self.failures_count}


def _names_of(settings: TlsSettings) -> CertificateNames | None:
    """Return the names that a later certificate must have; None if it may have any."""
    return None if settings.keys is None or settings.allows_name_changes else names_of(settings.keys)


def _stamp(path: str) -> _Stamp:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
