"""Broker keys that only Barnabas has."""

from barnabas.config.definition import ConfigKey
from barnabas.config.keys import BOOLEAN, HONOURED, INT, LIST, LONG, READ_ONLY, STRING
from barnabas.config.validators import Networks, NonNull, OneOfIgnoreCase, Range

# fmt: off
BARNABAS_KEYS: tuple[ConfigKey, ...] = (
    ConfigKey("barnabas.metrics.listener", STRING, "", NonNull(), READ_ONLY, HONOURED,
              "Where metrics are served to Prometheus under /metrics, as HOST:PORT; empty for nowhere.",
              since="Barnabas"),
    ConfigKey("barnabas.console.enable", BOOLEAN, True, None, READ_ONLY, HONOURED,
              "Whether barnabas.metrics.listener serves the web console, too, under /.", since="Barnabas"),
    ConfigKey("barnabas.console.read.only", BOOLEAN, False, None, READ_ONLY, HONOURED,
              "Whether nobody can change anything with the console.", since="Barnabas"),
    ConfigKey("barnabas.console.hosts", LIST, (), None, READ_ONLY, HONOURED,
              "Names, beside this machine's own and the advertised ones, by which browsers may call the console and "
              "scrapers /metrics.", since="Barnabas"),
    ConfigKey("barnabas.console.trusted.proxies", LIST, (), Networks(), READ_ONLY, HONOURED,
              "Addresses or networks (10.0.0.0/8) of proxies before the console, whose X-Forwarded-For and "
              "X-Forwarded-Proto are believed.", since="Barnabas"),
    ConfigKey("barnabas.sasl.plain.users.file", STRING, "", NonNull(), READ_ONLY, HONOURED,
              "A file of users of SASL/PLAIN, NAME=PASSWORD in each line, read anew when it changes; empty for none.",
              since="Barnabas"),
    ConfigKey("barnabas.tracing.enable", BOOLEAN, False, None, READ_ONLY, HONOURED,
              "Whether operations are traced with OpenTelemetry.", since="Barnabas"),
    ConfigKey("barnabas.policy.file", STRING, "", NonNull(), READ_ONLY, HONOURED,
              "A YAML file with rules on topics, configurations and ACLs (policies.md); empty for none.",
              since="Barnabas"),
    ConfigKey("barnabas.policy.timeout.ms", INT, 1000, Range(1), READ_ONLY, HONOURED,
              "Time limit in milliseconds for one call of a policy class; a call that takes longer rejects the "
              "change.", since="Barnabas"),
    ConfigKey("barnabas.audit.enable", BOOLEAN, True, None, READ_ONLY, HONOURED,
              "Whether cluster changes are published as audit events to the topic __barnabas_audit.", since="Barnabas"),
    ConfigKey("barnabas.audit.retention.ms", LONG, 365 * 24 * 3600 * 1000, Range(-1), READ_ONLY, HONOURED,
              "How long in milliseconds audit events are kept. Set when the audit topic is created; -1 means for ever.",
              since="Barnabas"),
    ConfigKey("barnabas.trash.retention.ms", LONG, 3600 * 1000, Range(0), READ_ONLY, HONOURED,
              "How long in milliseconds a deleted topic can be brought back, during which its records stay on disk; "
              "0 deletes at once.", since="Barnabas"),
    ConfigKey("barnabas.trash.retention.bytes", LONG, -1, Range(-1), READ_ONLY, HONOURED,
              "Maximum total size in bytes of deleted topics in the trash; the oldest are purged first. -1 means no "
              "limit.", since="Barnabas"),
    ConfigKey("barnabas.log.format", STRING, "console", OneOfIgnoreCase(("console", "json")), READ_ONLY,
              HONOURED, "Whether log lines are for people (console) or for machines (json).",
              since="Barnabas"),
    ConfigKey("barnabas.log.level", STRING, "info",
              OneOfIgnoreCase(("debug", "info", "warning", "error", "critical")), READ_ONLY, HONOURED,
              "Minimum level of log messages.", since="Barnabas"),
)
# fmt: on
