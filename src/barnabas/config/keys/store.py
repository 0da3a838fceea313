"""Broker keys of the metadata store. Those of TLS have the names and forms of a listener's, after `STORE_PREFIX`."""

from barnabas.config.definition import ConfigKey
from barnabas.config.keys import HONOURED, LIST, PASSWORD, READ_ONLY, STRING
from barnabas.config.validators import ANY_LIST, NonNull

STORE_PREFIX = "barnabas.store."

# fmt: off
STORE_KEYS: tuple[ConfigKey, ...] = (
    ConfigKey("barnabas.store", STRING, "", NonNull(), READ_ONLY, HONOURED,
              "The metadata store of a cluster of several brokers: etcd://HOST:PORT,HOST:PORT/PREFIX (etcds:// with "
              "TLS; without a prefix, barnabas), or sqlite:FILE for brokers of one machine. Empty for a file of its "
              "own in metadata.log.dir, which no other broker can use.", since="Barnabas"),
    ConfigKey("barnabas.store.user", STRING, "", NonNull(), READ_ONLY, HONOURED,
              "The user of etcd; empty if etcd has no authentication.", since="Barnabas"),
    ConfigKey("barnabas.store.password", PASSWORD, "", NonNull(), READ_ONLY, HONOURED,
              "The password of barnabas.store.user.", since="Barnabas"),
    ConfigKey("barnabas.store.ssl.cipher.suites", LIST, (), ANY_LIST, READ_ONLY, HONOURED,
              "Cipher suites of connections to etcd; empty for all secure ones.", since="Barnabas"),
    ConfigKey("barnabas.store.ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), ANY_LIST, READ_ONLY, HONOURED,
              "TLS versions of connections to etcd.", since="Barnabas"),
    ConfigKey("barnabas.store.ssl.key.password", PASSWORD, None, None, READ_ONLY, HONOURED,
              "The password of the private key that this broker presents to etcd.", since="Barnabas"),
    ConfigKey("barnabas.store.ssl.keystore.certificate.chain", PASSWORD, None, None, READ_ONLY, HONOURED,
              "The certificate that this broker presents to etcd, and its chain, as PEM text.", since="Barnabas"),
    ConfigKey("barnabas.store.ssl.keystore.key", PASSWORD, None, None, READ_ONLY, HONOURED,
              "The private key of barnabas.store.ssl.keystore.certificate.chain, as PEM text.", since="Barnabas"),
    ConfigKey("barnabas.store.ssl.keystore.location", STRING, None, None, READ_ONLY, HONOURED,
              "File with the certificate and key that this broker presents to etcd.", since="Barnabas"),
    ConfigKey("barnabas.store.ssl.keystore.password", PASSWORD, None, None, READ_ONLY, HONOURED,
              "The password of barnabas.store.ssl.keystore.location.", since="Barnabas"),
    ConfigKey("barnabas.store.ssl.keystore.type", STRING, "JKS", None, READ_ONLY, HONOURED,
              "The format of barnabas.store.ssl.keystore.location: PEM or PKCS12. With JKS, the default, a file may "
              "have either.", since="Barnabas"),
    ConfigKey("barnabas.store.ssl.truststore.certificates", PASSWORD, None, None, READ_ONLY, HONOURED,
              "Trusted certificates for connections to etcd, as PEM text.", since="Barnabas"),
    ConfigKey("barnabas.store.ssl.truststore.location", STRING, None, None, READ_ONLY, HONOURED,
              "File with the trusted certificates for connections to etcd. Without it the system's are trusted.",
              since="Barnabas"),
    ConfigKey("barnabas.store.ssl.truststore.password", PASSWORD, None, None, READ_ONLY, HONOURED,
              "The password of barnabas.store.ssl.truststore.location.", since="Barnabas"),
    ConfigKey("barnabas.store.ssl.truststore.type", STRING, "JKS", None, READ_ONLY, HONOURED,
              "The format of barnabas.store.ssl.truststore.location: PEM or PKCS12. With JKS, the default, a file may "
              "have either.", since="Barnabas"),
)
# fmt: on
