"""Declaration of databases, without revealing credentials."""

from pathlib import Path

import pytest

from pyspark_barnabas.failures import FlowError
from pyspark_barnabas.pipelines.declaration import JdbcSink, Pipeline
from pyspark_barnabas.pipelines.parser import PipelineFileError, read_pipeline
from pyspark_barnabas.writers.database import Database, PasswordRef

HIDDEN = "open-sesame"


def declared(folder: Path, database: str) -> Pipeline:
    position = folder / "pipelines.yml"
    position.write_text(
        "bootstrap: b:9092\nflows:\n  one:\n    from: {topic: in, format: raw}\n"
        f"    to:\n      jdbc: {database}\n"
    )
    return read_pipeline(position)


def database_of(pipeline: Pipeline) -> Database:
    sink = pipeline.flows[0].sink
    assert isinstance(sink, JdbcSink)
    return sink.database


def test_a_database_is_shown_without_the_parameters_of_its_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "{url: 'jdbc:postgresql://db/shop?ssl=true', table: sales.orders, user: me,"
        " password: {env: SHOP_PASSWORD}, driver: org.postgresql.Driver, options: {batchsize: 500}}"
    )
    pipeline = declared(tmp_path, text)
    database = database_of(pipeline)
    assert pipeline.flows[0].sink.label == "jdbc sales.orders at jdbc:postgresql://db/shop"
    assert database.beside("marks") == "sales.marks"
    monkeypatch.setenv("SHOP_PASSWORD", HIDDEN)
    assert database.spark_options() == {
        "url": "jdbc:postgresql://db/shop?ssl=true",
        "dbtable": "sales.orders",
        "user": "me",
        "password": HIDDEN,
        "driver": "org.postgresql.Driver",
        "batchsize": "500",
    }
    assert HIDDEN not in repr(pipeline)
    assert database.without_secrets(f"no such user: {HIDDEN}!") == "no such user: ***!"
    monkeypatch.delenv("SHOP_PASSWORD")
    assert database.without_secrets("nothing known") == "nothing known"


@pytest.mark.parametrize(
    ("url", "spark_url"),
    [
        ("jdbc:mariadb://db:3306/shop", "jdbc:mysql://db:3306/shop?permitMysqlScheme"),
        ("jdbc:mariadb://db/shop?useSSL=true", "jdbc:mysql://db/shop?useSSL=true&permitMysqlScheme"),
        ("jdbc:mysql://db/shop", "jdbc:mysql://db/shop"),
    ],
)
def test_mariadb_is_passed_to_spark_as_mysql(url: str, spark_url: str) -> None:
    database = Database(url, "t", None, None, None, {})
    assert database.spark_options()["url"] == spark_url
    assert database.label == f"jdbc t at {url.partition('?')[0]}"
    assert database.spark_options()["driver"].startswith("org.mariadb" if "mariadb" in url else "com.mysql")


def test_a_password_comes_from_a_file_beside_the_pipeline_or_is_reported_missing(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{HIDDEN}\n")
    database = database_of(
        declared(tmp_path, "{url: 'jdbc:x:y', table: t, user: me, password: {file: secret}}")
    )
    assert database.password is not None
    assert database.password.text() == HIDDEN
    assert database.beside("marks") == "marks"
    with pytest.raises(FlowError, match="environment variable BARNABAS_NONE does not exist"):
        PasswordRef("env", "BARNABAS_NONE").text()
    with pytest.raises(FlowError, match="none cannot be read: No such file"):
        PasswordRef("file", "/none").text()


@pytest.mark.parametrize(
    ("database", "says"),
    [
        ("{table: t}", "must have url: jdbc:..."),
        ("{url: 'jdbc:x:y'}", "must have table: a table's name"),
        ("{url: 'postgresql://db', table: t}", "must begin with jdbc:"),
        (
            f"{{url: 'jdbc:postgresql://db/x?user=me&password={HIDDEN}', table: t}}",
            "must not contain a password",
        ),
        (f"{{url: 'jdbc:derby:x;PWD={HIDDEN}', table: t}}", "must not contain a password"),
        (f"{{url: 'jdbc:mysql://me:{HIDDEN}@db/x', table: t}}", "must not contain a password"),
        (f"{{url: 'jdbc:oracle:thin:me/{HIDDEN}@db', table: t}}", "must not contain a password"),
        ("{url: 'jdbc:x:y', table: '(SELECT 1) t'}", "must be the name of a table"),
        (
            f"{{url: 'jdbc:x:y', table: t, user: me, password: {HIDDEN}}}",
            "must be {env: NAME} or {file: PATH}",
        ),
        (
            f"{{url: 'jdbc:x:y', table: t, user: me, password: {{text: {HIDDEN}}}}}",
            "must be {env: NAME} or",
        ),
        ("{url: 'jdbc:x:y', table: t, password: {env: A}}", "needs user: NAME"),
        ("{url: 'jdbc:x:y', table: t, options: {dbTable: u}}", "because the flow sets it"),
        (f"{{url: 'jdbc:x:y', table: t, options: {{sslPassword: {HIDDEN}}}}}", "must not be set here"),
        ("{url: 'jdbc:x:y', table: t, users: me}", "did you mean user?"),
    ],
)
def test_an_error_has_valid_values_and_no_secret(tmp_path: Path, database: str, says: str) -> None:
    with pytest.raises(PipelineFileError) as caught:
        declared(tmp_path, database)
    assert says in str(caught.value)
    assert f"{tmp_path}/pipelines.yml:6: " in str(caught.value)
    assert HIDDEN not in str(caught.value)


def test_a_driver_that_spark_includes_is_passed_to_java() -> None:
    for url, driver in (
        ("jdbc:postgresql://db/shop", "org.postgresql.Driver"),
        ("jdbc:sqlite:/data/shop", "org.sqlite.JDBC"),
        ("jdbc:derby:/data/shop", None),
    ):
        assert Database(url, "orders", None, None, None, {}).spark_options().get("driver") == driver
    own = Database("jdbc:postgresql://db/shop", "orders", None, None, "org.own.Driver", {})
    assert own.spark_options()["driver"] == "org.own.Driver"
