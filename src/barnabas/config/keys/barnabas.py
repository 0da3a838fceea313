"""Broker keys that only Barnabas has."""

from barnabas.config.definition import ConfigKey
from barnabas.config.keys import BOOLEAN, HONOURED, INT, LIST, LONG, PASSWORD, READ_ONLY, STRING
from barnabas.config.keys.store import STORE_KEYS
from barnabas.config.validators import ANY_LIST, Networks, NonNull, OneOfIgnoreCase, Range

# fmt: off
FAILURE_DETECTION_KEY = "barnabas.failure.detection.timeout.ms"

BARNABAS_KEYS: tuple[ConfigKey, ...] = (
    *STORE_KEYS,
    ConfigKey(FAILURE_DETECTION_KEY, INT, 2_000, Range(0), READ_ONLY, HONOURED,
              "How long a broker of a cluster may take to respond to the controller before its session is ended; "
              "0 relies on broker.session.timeout.ms alone.", since="Barnabas"),
    ConfigKey("barnabas.metrics.listener", STRING, "", NonNull(), READ_ONLY, HONOURED,
              "Address (HOST:PORT) at which /metrics is served to Prometheus; empty serves nothing.",
              since="Barnabas"),
    ConfigKey("barnabas.metrics.ssl.enable", BOOLEAN, False, None, READ_ONLY, HONOURED,
              "Whether barnabas.metrics.listener uses HTTPS, with the keystore of listener.name.https.ssl.*, or "
              "else of ssl.*.", since="Barnabas"),
    ConfigKey("barnabas.console.enable", BOOLEAN, True, None, READ_ONLY, HONOURED,
              "Whether barnabas.metrics.listener also serves the web console, at /.", since="Barnabas"),
    ConfigKey("barnabas.console.read.only", BOOLEAN, False, None, READ_ONLY, HONOURED,
              "Whether the console refuses all changes.", since="Barnabas"),
    ConfigKey("barnabas.console.hosts", LIST, (), None, READ_ONLY, HONOURED,
              "Host names under which browsers may open the console and scrapers /metrics, besides the "
              "names of this machine and the advertised ones.", since="Barnabas"),
    ConfigKey("barnabas.console.trusted.proxies", LIST, (), Networks(), READ_ONLY, HONOURED,
              "Addresses or networks (10.0.0.0/8) of proxies in front of the console whose X-Forwarded-For "
              "and X-Forwarded-Proto headers are used.", since="Barnabas"),
    ConfigKey("barnabas.console.registry.url", PASSWORD, None, None, READ_ONLY, HONOURED,
              "URL of the schema registry with which the console decodes records (http://USER:PASSWORD@HOST:PORT); "
              "empty for that of barnabas.registry.listener, if it asks for no user and does not use HTTPS.",
              since="Barnabas"),
    ConfigKey("barnabas.registry.listener", STRING, "", NonNull(), READ_ONLY, HONOURED,
              "Address (HOST:PORT) at which the broker serves a schema registry; empty serves none.",
              since="Barnabas"),
    ConfigKey("barnabas.registry.ssl.enable", BOOLEAN, False, None, READ_ONLY, HONOURED,
              "Whether barnabas.registry.listener uses HTTPS, with the keystore of listener.name.https.ssl.*, or "
              "else of ssl.*.", since="Barnabas"),
    ConfigKey("barnabas.registry.topic", STRING, "_schemas", NonNull(), READ_ONLY, HONOURED,
              "Topic in which the schema registry keeps its schemas.", since="Barnabas"),
    ConfigKey("barnabas.registry.users.file", STRING, "", NonNull(), READ_ONLY, HONOURED,
              "File with the users of the schema registry, one NAME=PASSWORD in each line, who log in with HTTP basic "
              "authentication. If empty, every client is admitted.", since="Barnabas"),
    ConfigKey("barnabas.sasl.oauthbearer.required.scopes", LIST, (), ANY_LIST, READ_ONLY, HONOURED,
              "Scopes that a token for OAUTHBEARER must all contain.",
              since="Barnabas"),
    ConfigKey("barnabas.sasl.oauthbearer.unsecured", BOOLEAN, False, None, READ_ONLY, HONOURED,
              "Whether OAUTHBEARER accepts tokens without a valid signature; only for tests.",
              since="Barnabas"),
    ConfigKey("barnabas.sasl.plain.users.file", STRING, "", NonNull(), READ_ONLY, HONOURED,
              "File with the users of SASL/PLAIN, one NAME=PASSWORD in each line; read again when it "
              "changes. Empty for none.",
              since="Barnabas"),
    ConfigKey("barnabas.tracing.enable", BOOLEAN, False, None, READ_ONLY, HONOURED,
              "Whether requests are traced with OpenTelemetry.", since="Barnabas"),
    ConfigKey("barnabas.policy.file", STRING, "", NonNull(), READ_ONLY, HONOURED,
              "YAML file with rules for topics, configs and ACLs (policies.md); empty for none.",
              since="Barnabas"),
    ConfigKey("barnabas.policy.timeout.ms", INT, 1000, Range(1), READ_ONLY, HONOURED,
              "Time limit in milliseconds for one call of a policy class, authorizer or principal builder; a call "
              "that takes longer rejects the change, denies the request or refuses the client.", since="Barnabas"),
    ConfigKey("barnabas.authorizer.cache.ms", INT, 5000, Range(0), READ_ONLY, HONOURED,
              "How long a decision of a Python class in authorizer.class.name is used again, in milliseconds; 0 to ask "
              "for each request.", since="Barnabas"),
    ConfigKey("barnabas.audit.enable", BOOLEAN, True, None, READ_ONLY, HONOURED,
              "Whether cluster changes are published as audit events to the topic __barnabas_audit.", since="Barnabas"),
    ConfigKey("barnabas.audit.retention.ms", LONG, 365 * 24 * 3600 * 1000, Range(-1), READ_ONLY, HONOURED,
              "How long audit events are kept, in milliseconds. Set when the audit topic is created; -1 "
              "keeps them without limit.",
              since="Barnabas"),
    ConfigKey("barnabas.security.log.topic.enable", BOOLEAN, False, None, READ_ONLY, HONOURED,
              "Whether logins and denials, which are logged, are also published to the topic __barnabas_security.",
              since="Barnabas"),
    ConfigKey("barnabas.security.log.retention.ms", LONG, 30 * 24 * 3600 * 1000, Range(-1), READ_ONLY, HONOURED,
              "How long the topic keeps logins and denials, in milliseconds, within 1 GiB. Set when the topic is "
              "created; -1 keeps them without limit.", since="Barnabas"),
    ConfigKey("barnabas.trash.retention.ms", LONG, 3600 * 1000, Range(0), READ_ONLY, HONOURED,
              "How long a deleted topic can be undeleted, in milliseconds. Its records stay on disk for "
              "this time; with 0, topics are deleted immediately.", since="Barnabas"),
    ConfigKey("barnabas.trash.retention.bytes", LONG, -1, Range(-1), READ_ONLY, HONOURED,
              "Maximum total size in bytes of deleted topics in the trash of the broker; the oldest are purged "
              "first. -1 means no limit.", since="Barnabas"),
    ConfigKey("barnabas.log.format", STRING, "console", OneOfIgnoreCase(("console", "json")), READ_ONLY,
              HONOURED,
              "Format of log lines: text (console) or one JSON object per line (json).",
              since="Barnabas"),
    ConfigKey("barnabas.log.level", STRING, "info",
              OneOfIgnoreCase(("debug", "info", "warning", "error", "critical")), READ_ONLY, HONOURED,
              "Minimum level of log messages.", since="Barnabas"),
)
# fmt: on
