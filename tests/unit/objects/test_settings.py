import pytest

from barnabas.objects.location import LocationError
from barnabas.objects.settings import StoreSettings, is_secret, parse_settings


def test_names_are_those_of_the_environment_or_of_obstore() -> None:
    settings = parse_settings(["AWS_REGION=eu-central-1", "endpoint=http://h=1"])
    assert settings.values == {"aws_region": "eu-central-1", "endpoint": "http://h=1"}


def test_settings_of_connections_and_retries_are_separate_arguments() -> None:
    settings = parse_settings(["AWS_ALLOW_HTTP=true", "region=r", "timeout=3s", "max_retries=2"])
    assert settings.arguments() == {
        "config": {"region": "r"},
        "client_options": {"allow_http": "true", "timeout": "3s"},
        "retry_config": {"max_retries": 2},
    }


@pytest.mark.parametrize("text", ["hidden", "=hidden", ""])
def test_another_form_is_an_error_without_the_value(text: str) -> None:
    with pytest.raises(LocationError, match="must have the form KEY=VALUE") as error:
        parse_settings([text])
    assert "hidden" not in str(error.value)


def test_a_number_of_retries_must_be_a_number() -> None:
    with pytest.raises(LocationError, match="store option max_retries=many: must be a number"):
        parse_settings(["max_retries=many"]).arguments()


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("aws_secret_access_key", True),
        ("AWS_SESSION_TOKEN", True),
        ("azure_storage_account_key", True),
        ("azure_storage_sas_key", True),
        ("azure_client_secret", True),
        ("google_service_account_key", True),
        ("proxy_url", True),
        ("aws_access_key_id", False),
        ("aws_region", False),
        ("google_service_account", False),
        ("aws_sse_kms_key_id", False),
        ("aws_web_identity_token_file", False),
    ],
)
def test_secrets_are_known_by_their_names(name: str, secret: bool) -> None:
    assert is_secret(name) is secret


def test_secrets_of_settings_and_environment_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "from-environment")
    settings = StoreSettings({"aws_secret_access_key": "from-option", "aws_region": "somewhere"})
    assert "from-option" not in f"{settings!r} {settings}"
    text = settings.redacted("from-option from-environment somewhere https://h/a?comp=list&sig=abc%2F&x=1")
    assert text == "*** *** somewhere https://h/a?comp=list&sig=***&x=1"
