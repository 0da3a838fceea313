from collections.abc import Mapping
from pathlib import Path

import pytest

from barnabas.config.definition import ConfigError
from barnabas.config.load import load_broker_config
from barnabas.config.providers import resolve_variables
from barnabas.net.listener import StartError
from barnabas.tls.settings import TlsError

PACKAGE = "org.apache.kafka.common.config.provider."
PROVIDERS = {
    "config.providers": "file,dir,env",
    "config.providers.file.class": f"{PACKAGE}FileConfigProvider",
    "config.providers.dir.class": f"{PACKAGE}DirectoryConfigProvider",
    "config.providers.env.class": f"{PACKAGE}EnvVarConfigProvider",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "password").write_text("from the directory\n")
    (tmp_path / "passwords.properties").write_text("broker=from the file\nempty=\n")
    return tmp_path


def resolved(text: str, **parameters: str) -> str:
    """Resolve one value; parameters are named like file_allowed_paths."""
    given: dict[str, str] = {}
    for name, value in parameters.items():
        provider, _, parameter = name.partition("_")
        given[f"config.providers.{provider}.param.{parameter.replace('_', '.')}"] = value
    environment: Mapping[str, str] = {"SECRET": "from the environment", "OTHER": "x"}
    return resolve_variables({**PROVIDERS, **given, "key": text}, environment).properties["key"]


def test_a_variable_is_replaced_wherever_it_is_in_a_value(home: Path) -> None:
    file = f"${{file:{home}/passwords.properties:broker}}"
    assert resolved(file) == "from the file"
    assert resolved(f'x required password="{file}" other="{file}";') == (
        'x required password="from the file" other="from the file";'
    )
    assert resolved(f"[${{file:{home}/passwords.properties:empty}}]") == "[]"


def test_each_provider_has_values(home: Path) -> None:
    assert resolved(f"${{dir:{home}/secrets:password}}") == "from the directory"
    assert resolved("${env:SECRET}") == "from the environment"
    assert resolved("${env::SECRET}") == "from the environment"


@pytest.mark.parametrize(
    "text", ["plain", "$SECRET", "${SECRET}", "${other:SECRET}", "${env:SECRET", "{env:SECRET}"]
)
def test_other_text_is_kept(text: str) -> None:
    assert resolved(text) == text


def test_values_are_not_resolved_again(home: Path) -> None:
    (home / "secrets" / "nested").write_text("${env:SECRET}")
    assert resolved(f"${{dir:{home}/secrets:nested}}") == "${env:SECRET}"


def test_without_providers_everything_is_kept() -> None:
    properties = {"key": "${env:SECRET}"}
    assert resolve_variables(properties, {"SECRET": "x"}).properties == properties


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("${env:MISSING}", "the environment has no such variable"),
        ("${env:path:SECRET}", r"the provider env has no paths: use \$\{env:SECRET\}"),
        ("${file:HOME/missing.properties:key}", "HOME/missing.properties cannot be read: No such file"),
        ("${file:HOME/passwords.properties:missing}", "HOME/passwords.properties has no such key"),
        ("${dir:HOME/secrets:missing}", "HOME/secrets/missing cannot be read: No such file"),
        ("${dir:HOME/secrets:../passwords.properties}", "must be the name of a file in the directory"),
        ("${dir:HOME:secrets}", "HOME/secrets cannot be read: Is a directory"),
        ("${dir::etc}", "has no path: use"),
        ("${file:HOME/passwords.properties}", "has no path: use"),
        ("${file:\0:key}", "is not a valid path"),
        ("${dir:HOME/loop:key}", r"loop.* (is not a valid path|cannot be read)"),
    ],
)
def test_a_variable_without_a_value_is_an_error_that_names_it(home: Path, text: str, reason: str) -> None:
    (home / "loop").symlink_to(home / "loop")
    with pytest.raises(ConfigError, match=reason.replace("HOME", str(home))) as raised:
        resolved(text.replace("HOME", str(home)))
    assert raised.value.key == "key"


def test_paths_and_names_can_be_restricted(home: Path) -> None:
    file = f"${{file:{home}/passwords.properties:broker}}"
    assert resolved(file, file_allowed_paths=f"/nowhere, {home}") == "from the file"
    for allowed in (f"{home}/secrets", f"{home}/pass"):
        with pytest.raises(ConfigError, match=r"allowed\.paths of the provider allows"):
            resolved(file, file_allowed_paths=allowed)
    sly = f"${{dir:{home}/secrets/..:passwords.properties}}"
    with pytest.raises(ConfigError, match=r"allowed\.paths"):
        resolved(sly, dir_allowed_paths=f"{home}/secrets")
    assert resolved("${env:SECRET}", env_allowlist_pattern="SEC.*") == "from the environment"
    with pytest.raises(ConfigError, match=r"allowlist\.pattern"):
        resolved("${env:OTHER}", env_allowlist_pattern="SEC.*")


def test_a_pattern_that_is_not_valid_is_an_error() -> None:
    with pytest.raises(ConfigError, match="must be a regular expression") as raised:
        resolved("${env:SECRET}", env_allowlist_pattern="*")
    assert raised.value.key == "config.providers.env.param.allowlist.pattern"


def test_an_error_in_a_file_does_not_quote_it(home: Path) -> None:
    (home / "passwords.properties").write_text("other=1\nbroker=\\uSECRET")
    with pytest.raises(ConfigError, match="line 2") as raised:
        resolved(f"${{file:{home}/passwords.properties:broker}}")
    assert "SECR" not in str(raised.value)


@pytest.mark.parametrize("class_name", ["", "com.example.Vault", "FileConfigProvider2"])
def test_an_unknown_class_is_an_error_that_lists_the_known_ones(class_name: str) -> None:
    properties = {"config.providers": "mine", "config.providers.mine.class": class_name}
    with pytest.raises(ConfigError, match=r"config\.provider\.FileConfigProvider"):
        resolve_variables(properties, {})


def test_the_configuration_of_a_broker_has_the_values(home: Path) -> None:
    settings = [f"{key}={value}" for key, value in PROVIDERS.items()]
    loaded = load_broker_config(
        file={"delegation.token.secret.key": f"${{dir:{home}/secrets:password}}"},
        environment={"RACK": "a"},
        settings=[*settings, "broker.rack=${env:RACK}"],
    )
    assert loaded.warnings == ()
    assert loaded.config.text("delegation.token.secret.key") == "from the directory"
    assert loaded.config.text("broker.rack") == "a"


def error_of(environment: Mapping[str, str], **properties: str) -> str:
    """Return the error of a broker's configuration; `_` stands for a dot."""
    given = [f"{name.replace('_', '.')}={text}" for name, text in properties.items()]
    settings = [*(f"{key}={value}" for key, value in PROVIDERS.items()), *given]
    with pytest.raises(ConfigError) as refused:
        load_broker_config(environment=environment, settings=settings)
    return str(refused.value)


@pytest.mark.parametrize(
    ("key", "text", "value", "reason"),
    [
        ("num_partitions", "${env:X}", "hunter2", "must be a whole number of 32 bits"),
        ("num_partitions", "1${env:X}", "x", "must be a whole number of 32 bits"),
        ("num_partitions", " ${env:X}", "-1", "must be at least 1"),
        ("log_cleanup_policy", "${env:X}", "compact,hunter2", "'${env:X}' is not valid; must be a list of"),
        ("listeners", "PLAINTEXT://:9092,${env:X}", "hunter2", "must be NAME://host:port"),
        ("super_users", "${env:X}", "User:a;hunter2", "'${env:X}' is not valid: must be Type:name"),
        ("max_connections_per_ip_overrides", "${env:X}", "hunter2, x", "'${env:X}' must be host:count"),
        ("listener_name_a_ssl_client_auth", "${env:X}", "hunter2", "must be one of required"),
        ("group_consumer_assignors", "${env:X}", "hunter2", "must be"),
    ],
)
def test_an_error_shows_the_variable_instead_of_its_value(
    key: str, text: str, value: str, reason: str
) -> None:
    shown = error_of({"X": value}, **{key: text})
    assert shown.startswith(f"Invalid value '{text.strip()}' for {key.replace('_', '.')}: ")
    assert reason in shown
    assert "hunter" not in shown


def test_an_error_shows_values_that_are_not_of_variables() -> None:
    assert "Invalid value 'many' for num.partitions" in error_of(
        {"X": "9092"}, num_partitions="many", broker_rack="${env:X}"
    )


#: Of a listener A, whose own settings override the common ones.
VARIABLES = resolve_variables(
    {
        **PROVIDERS,
        "listener.name.a.ssl.keystore.location": "${env:OWN}",
        "ssl.keystore.location": "${env:COMMON}",
        "barnabas.metrics.ssl.enable": "${env:HTTPS}",
        "broker.rack": "${env:RACK}",
        "num.partitions": "${env:COUNT}",
    },
    {"OWN": "/run/hunter2", "COMMON": "/run/common", "HTTPS": "true", "RACK": "a", "COUNT": "1000"},
).variables


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (
            TlsError("ssl.keystore.location", "/run/hunter2", "cannot be read"),
            "ssl.keystore.location=${env:OWN}: cannot be read",
        ),
        (
            ConfigError("ssl.keystore.location", "/run/common", "cannot be read"),
            "Invalid value '${env:COMMON}' for ssl.keystore.location: cannot be read",
        ),
        (
            TlsError("ssl.keystore.location", "/run/literal", "cannot be read"),
            "ssl.keystore.location=/run/literal: cannot be read",
        ),
        (
            StartError("Listener A cannot use TLS: /RUN/HUNTER2, '/run/common' and /run/common2."),
            "Listener A cannot use TLS: ${env:OWN}, '${env:COMMON}' and /run/common2.",
        ),
        (ValueError("must be a list, true or at least 1000"), "must be a list, true or at least 1000"),
    ],
)
def test_other_errors_of_a_start_show_variables_too(error: Exception, shown: str) -> None:
    assert VARIABLES.message_of(error) == shown
