import json
import subprocess
import sys

import pytest

from barnabas.security.tls_server import TlsServer
from barnabas.tls.settings import ClientAuth, KeyStore, TlsError, TlsSettings
from support.certificates import Authority

BROKER = Authority().issue()
KEYS = KeyStore("PEM", key=BROKER.key_pem(), certificate_chain=BROKER.certificate_pem)

PROGRAM = """
import json, sys
from barnabas.security.tls_server import TlsServer
from barnabas.tls.settings import TlsSettings
settings = TlsSettings.from_plain(json.load(sys.stdin))
TlsServer(settings, lambda: 0, lambda event: None, "SSL")
print("cryptography.x509" in sys.modules)
"""


@pytest.mark.parametrize(
    ("client_auth", "is_imported"), [(ClientAuth.NONE, False), (ClientAuth.REQUESTED, True)]
)
def test_what_reads_certificates_is_imported_before_clients_connect_but_only_if_they_have_some(
    client_auth: ClientAuth, is_imported: bool
) -> None:
    settings = json.dumps(TlsSettings(KEYS, client_auth=client_auth).to_plain())
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=settings, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(is_imported)


def test_client_certificates_need_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.x509", None)
    with pytest.raises(
        TlsError, match=r"ssl.client.auth=required: needs the package cryptography: pip install"
    ):
        TlsServer(TlsSettings(KEYS, client_auth=ClientAuth.REQUIRED), lambda: 0, lambda event: None, "SSL")
