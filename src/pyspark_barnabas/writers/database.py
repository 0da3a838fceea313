"""Tables of databases behind JDBC. Passwords are not stored in any value, so they cannot appear in messages."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pyspark_barnabas.failures import FlowError

#: Drivers by the URL's second word. Java finds only those on its own class path, not those of `spark.jars`.
_DRIVERS = {
    "h2": "org.h2.Driver",
    "mariadb": "org.mariadb.jdbc.Driver",
    "mysql": "com.mysql.cj.jdbc.Driver",
    "oracle": "oracle.jdbc.OracleDriver",
    "postgresql": "org.postgresql.Driver",
    "sqlite": "org.sqlite.JDBC",
    "sqlserver": "com.microsoft.sqlserver.jdbc.SQLServerDriver",
}
_MARIADB = "jdbc:mariadb:"


class PasswordRef(NamedTuple):
    """A reference to a password, which is read when needed."""

    kind: str  #: env or file
    name: str

    def text(self) -> str:
        """Return the password.

        :raises FlowError: It does not exist.
        """
        if self.kind == "env":
            password = os.environ.get(self.name)
            if password is None:
                raise FlowError(f"password: environment variable {self.name} does not exist")
            return password
        try:
            return Path(self.name).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise FlowError(f"password: file {self.name} cannot be read: {why}") from None


class Database(NamedTuple):
    """A table behind JDBC."""

    url: str
    table: str  #: as in SQL, with its schema if needed
    user: str | None = None
    password: PasswordRef | None = None
    driver: str | None = None  #: the class; None if the URL determines it
    options: Mapping[str, str] = {}  #: of Spark's data source

    @property
    def label(self) -> str:
        """The table, and the URL without its parameters, for messages."""
        return f"jdbc {self.table} at {re.split('[?;]', self.url, maxsplit=1)[0]}"

    def beside(self, name: str) -> str:
        """Return a table of this name in the table's schema."""
        schema = self.table[: self.table.rindex(".") + 1] if "." in self.table else ""
        return f"{schema}{name}"

    @property
    def spark_url(self) -> str:
        """The URL by which Spark detects the SQL dialect: it knows MariaDB only as MySQL."""
        if not self.url.startswith(_MARIADB):
            return self.url
        separator = "&" if "?" in self.url else "?"
        return f"jdbc:mysql:{self.url.removeprefix(_MARIADB)}{separator}permitMysqlScheme"

    def spark_options(self) -> dict[str, str]:
        """Return Spark's options for the connection, with the password.

        :raises FlowError: The password does not exist.
        """
        options = {**self.options, "url": self.spark_url, "dbtable": self.table}
        if self.user is not None:
            options["user"] = self.user
        if self.password is not None:
            options["password"] = self.password.text()
        driver = self.driver or _DRIVERS.get(self.url.split(":")[1])
        if driver is not None:
            options["driver"] = driver
        return options

    def without_secrets(self, text: str) -> str:
        """Return a text with the password removed."""
        try:
            secret = "" if self.password is None else self.password.text()
        except FlowError:
            return text
        return text.replace(secret, "***") if secret else text
