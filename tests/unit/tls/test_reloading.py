import os
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from barnabas.base.clock import ManualClock
from barnabas.tls.contexts import client_context, server_context
from barnabas.tls.reloading import CHECK_INTERVAL_MS, ReloadingContext
from barnabas.tls.settings import KeyStore, TlsError, TlsSettings
from support.certificates import Authority


def touch(path: Path, seconds: int) -> None:
    os.utime(path, (seconds, seconds))


def test_changed_files_are_loaded_for_new_connections(tmp_path: Path) -> None:
    authority, clock = Authority(), ManualClock()
    path = authority.issue().write_pem(tmp_path / "own.pem")
    touch(path, 1)
    reloading = ReloadingContext(TlsSettings(KeyStore("PEM", str(path))), server_context, clock.monotonic_ms)
    first = reloading.current()
    authority.issue().write_pem(path)
    touch(path, 2)
    assert reloading.current() is first
    clock.advance(CHECK_INTERVAL_MS)
    second = reloading.current()
    assert second is not first
    clock.advance(CHECK_INTERVAL_MS)
    assert reloading.current() is second
    assert reloading.statistics() == {"loads_count": 2, "failures_count": 0}


@pytest.mark.parametrize("content", [None, "half a fi"])
def test_unusable_files_leave_the_former_ones_in_use(tmp_path: Path, content: str | None) -> None:
    authority, clock = Authority(), ManualClock()
    path = authority.issue().write_pem(tmp_path / "own.pem")
    reloading = ReloadingContext(TlsSettings(KeyStore("PEM", str(path))), server_context, clock.monotonic_ms)
    first = reloading.current()
    path.unlink()
    if content is not None:
        path.write_text(content)
    clock.advance(CHECK_INTERVAL_MS)
    assert reloading.current() is first
    authority.issue().write_pem(path)
    touch(path, 5)
    clock.advance(CHECK_INTERVAL_MS)
    assert reloading.current() is not first
    assert reloading.statistics() == {"loads_count": 2, "failures_count": 1}


@pytest.mark.parametrize("make", [server_context, client_context])
def test_a_renewed_certificate_without_the_former_names_is_not_used(
    tmp_path: Path, make: Callable[[TlsSettings], ssl.SSLContext]
) -> None:
    authority, clock = Authority(), ManualClock()
    path = authority.issue(name="first").write_pem(tmp_path / "own.pem")
    settings = TlsSettings(KeyStore("PEM", str(path)), allows_dn_changes=False)
    reloading = ReloadingContext(settings, make, clock.monotonic_ms)
    first = reloading.current()
    for at, name in enumerate(["second", "second", "first"], start=5):
        assert reloading.current() is first
        authority.issue(name=name).write_pem(path)
        touch(path, at)
        clock.advance(CHECK_INTERVAL_MS)
        reloading.current()
    assert reloading.current() is not first
    assert reloading.statistics() == {"loads_count": 2, "failures_count": 2}


def test_settings_with_a_certificate_without_the_present_names_are_refused(tmp_path: Path) -> None:
    authority = Authority()

    def settings_of(name: str, **allowed: bool) -> TlsSettings:
        path = authority.issue(name=name).write_pem(tmp_path / f"{name}.pem")
        return TlsSettings(KeyStore("PEM", str(path)), **{"allows_dn_changes": False, **allowed})

    reloading = ReloadingContext(settings_of("first"), server_context, ManualClock().monotonic_ms)
    with pytest.raises(TlsError, match=r"for CN=first, like the one in use, not for CN=second"):
        reloading.check(settings_of("second"))
    reloading.check(settings_of("second", allows_dn_changes=True))
    reloading.check(settings_of("first"))
    reloading.check(TlsSettings(allows_dn_changes=False))


def test_settings_that_cannot_be_used_fail_at_once(tmp_path: Path) -> None:
    with pytest.raises(TlsError):
        ReloadingContext(
            TlsSettings(KeyStore("PEM", str(tmp_path / "x"))), server_context, ManualClock().monotonic_ms
        )


def test_a_context_for_good_uses_the_current_files_in_each_handshake(tmp_path: Path) -> None:
    authority, clock = Authority(), ManualClock()
    first, second = authority.issue(name="first"), authority.issue(name="second")
    path = first.write_pem(tmp_path / "own.pem")
    reloading = ReloadingContext(TlsSettings(KeyStore("PEM", str(path))), server_context, clock.monotonic_ms)
    following = reloading.following()

    def presented() -> str:
        """Return the certificate that a client gets, which names no server."""
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        ours = client.wrap_bio(to_client, to_server)
        theirs = following.wrap_bio(to_server, to_client, server_side=True)
        for side in (ours, theirs, ours, theirs):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
        return ssl.DER_cert_to_PEM_cert(ours.getpeercert(binary_form=True) or b"")

    assert presented() in first.certificate_pem
    second.write_pem(path)
    touch(path, 5)
    clock.advance(CHECK_INTERVAL_MS)
    assert presented() in second.certificate_pem
