"""Certificates for tests: an authority, and what it issues."""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

PASSWORD = "store-secret"
HOSTS = ("localhost", "127.0.0.1")
PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
_DAY = datetime.timedelta(days=1)
_SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True)
class Issued:
    """A private key and its certificate."""

    key: PrivateKey
    certificate: x509.Certificate
    issuer: x509.Certificate

    @property
    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def key_pem(self, password: str = "") -> str:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, _encryption(password)).decode()

    def write_pem(self, path: Path, password: str = "") -> Path:
        """Write key and certificate, as a keystore of type PEM."""
        path.write_text(self.key_pem(password) + self.certificate_pem)
        return path

    def write_pkcs12(self, path: Path) -> Path:
        """Write key, certificate and issuer, opened by `PASSWORD`."""
        content = pkcs12.serialize_key_and_certificates(
            b"own", self.key, self.certificate, [self.issuer], _encryption(PASSWORD)
        )
        path.write_bytes(content)
        return path


class Authority:
    """Issues certificates that are valid for a day."""

    def __init__(self, name: str = "Test Authority", *, has_key_ids: bool = True) -> None:
        """:param has_key_ids: Whether certificates name the keys of subject and issuer."""
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._has_key_ids = has_key_ids
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self.certificate = self._signed(subject, self._key.public_key(), is_authority=True)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def write_pem(self, path: Path) -> Path:
        path.write_text(self.pem)
        return path

    def write_pkcs12(self, path: Path) -> Path:
        """Write a trust store, opened by `PASSWORD`."""
        certificates = [pkcs12.PKCS12Certificate(self.certificate, b"authority")]
        path.write_bytes(pkcs12.serialize_java_truststore(certificates, _encryption(PASSWORD)))
        return path

    def issue(
        self,
        *relative_names: x509.RelativeDistinguishedName,
        name: str = "broker",
        hosts: Sequence[str] = HOSTS,
        days: int = 1,
        key: PrivateKey | None = None,
    ) -> Issued:
        """Issue a certificate.

        :param relative_names: The subject; `name` as CN without them.
        :param hosts: Its subject alternative names.
        :param days: How long it is valid from now on; negative if it has expired.
        :param key: The private key; by default a new one of the curve P-256.
        """
        common = x509.RelativeDistinguishedName([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        subject = x509.Name(relative_names or [common])
        key = key or ec.generate_private_key(ec.SECP256R1())
        signed = self._signed(subject, key.public_key(), hosts=hosts, days=days)
        return Issued(key, signed, self.certificate)

    def _signed(
        self,
        subject: x509.Name,
        public_key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey,
        *,
        hosts: Sequence[str] = (),
        days: int = 1,
        is_authority: bool = False,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if is_authority else self.certificate.subject)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 10 * _DAY)
            .not_valid_after(now + days * _DAY)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if self._has_key_ids:  # Python 3.13 requires them by default
            builder = builder.add_extension(
                x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False
            ).add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        if is_authority:
            builder = builder.add_extension(_SIGNS_CERTIFICATES, critical=True)
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName(list(map(_alternative, hosts))), critical=False
            )
        return builder.sign(self._key, hashes.SHA256())


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _encryption(password: str) -> KeySerializationEncryption:
    return BestAvailableEncryption(password.encode()) if password else NoEncryption()
