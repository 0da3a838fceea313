"""Databases in a pipelines file."""

import re

from barnabas.base.yaml_nodes import YamlNode
from barnabas.base.yaml_schema import SECRET_REFERENCE, TEXT, Custom, Key, Keyed, Text
from pyspark_barnabas.writers.database import Database, PasswordRef

#: Keys of URLs and options whose values are secret.
_SECRET = re.compile(r"pass|pwd|secret|token|credential|access.?key|private.?key", re.IGNORECASE)
_USER_INFO = re.compile(r"//[^/@]*:[^/@]*@|:[^/@:]+/[^/@]+@")
#: Spark options that the flow sets itself.
_OURS = frozenset(
    {"url", "dbtable", "query", "user", "driver", "partitioncolumn", "lowerbound", "upperbound"}
)


def _url(node: YamlNode) -> str:
    url = node.text()
    if not url.startswith("jdbc:"):
        node.fail_hidden("must begin with jdbc:, such as jdbc:postgresql://HOST/DATABASE")
    keys = [part.partition("=")[0] for part in re.split("[?;&]", url)[1:]]
    if _USER_INFO.search(url) or any(_SECRET.search(key) for key in keys):
        node.fail_hidden("must not contain a password; use password: {env: NAME} or {file: PATH} instead")
    return url


def _options(node: YamlNode) -> dict[str, str]:
    option_nodes = node.mapping()
    for key, option in option_nodes.items():
        if key.lower() in _OURS:
            option.fail_hidden("is not a valid option, because the flow sets it")
        if _SECRET.search(key):
            option.fail_hidden("must not be set here; use password: {env: NAME} or {file: PATH}")
    return {key: option.text() for key, option in option_nodes.items()}


def _password(reference: tuple[str, str], node: YamlNode) -> PasswordRef:
    kind, name = reference
    return PasswordRef(kind, name if kind == "env" else str(node.folder / name))


def _check_user(database: Database, node: YamlNode) -> Database:
    if database.password is not None and database.user is None:
        node.at("password").fail_hidden("needs user: NAME")
    return database


_NAME = r"[A-Za-z_][\w$]*"
#: A column that SQL accepts without quotes.
COLUMN = Text(_NAME, "must be the name of a column")
_PART = rf'(?:{_NAME}|"[^"]+")'
TABLE = Text(rf"(?:{_PART}\.)*{_PART}", "must be the name of a table, such as orders or sales.orders")
DATABASE = Keyed(
    Database,
    {
        "url": Key(Custom(_url), required="jdbc:..."),
        "table": Key(TABLE, required="a table's name"),
        "user": TEXT,
        "password": SECRET_REFERENCE.then(_password),
        "driver": TEXT,
        "options": Custom(_options),
    },
).then(_check_user)
