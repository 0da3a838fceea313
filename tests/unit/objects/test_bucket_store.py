import pickle
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.objects.location import LocationError, ObjectLocation, parse_location
from barnabas.objects.opening import open_store
from barnabas.objects.settings import StoreSettings
from barnabas.objects.store import ObjectStoreError
from support.object_server import SECRET, ObjectServer, losing_responses
from support.waiting import until


def test_settings_come_from_the_environment(
    server: ObjectServer, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in server.options.items():
        monkeypatch.setenv(name.upper(), value)
    store = open_store(parse_location(f"s3://{bucket}"))
    assert store.create("a", b"x")
    assert [key for key, _ in store.list()] == ["a"]


def test_more_objects_than_one_response_has_are_listed_and_deleted(server: ObjectServer, bucket: str) -> None:
    store = open_store(ObjectLocation("s3", bucket, "many"), server.settings)
    for number in range(1050):
        store.write(f"a/{number}", [b""])
    keys = [key for key, _ in store.list("a")]
    assert len(keys) == 1050
    store.delete(keys)
    assert list(store.list()) == []


def test_the_parts_of_a_failed_upload_are_removed(server: ObjectServer, bucket: str) -> None:
    store = open_store(ObjectLocation("s3", bucket), server.settings)
    store.write("complete", [b"x" * (9 << 20)] * 3)
    with pytest.raises(ZeroDivisionError):
        store.write("failed", (b"x" * (9 << 20) for number in (1, 1, 0) if 1 / number))
    assert server.unfinished_uploads_count(bucket) == 0


def test_an_object_that_is_replaced_while_it_is_read_is_an_error(server: ObjectServer, bucket: str) -> None:
    store = open_store(ObjectLocation("s3", bucket), server.settings)
    store.write("a", [b"x" * (9 << 20)])
    with store.open("a") as file:
        assert file.read(1) == b"x"
        store.write("a", [b"y" * (9 << 20)])
        file.seek(8 << 20)
        with pytest.raises(ObjectStoreError, match=f"cannot read s3://{bucket}/a"):
            file.read(1)


def test_a_missing_bucket_is_an_error_with_its_name(server: ObjectServer) -> None:
    store = open_store(ObjectLocation("s3", "none", "a"), server.settings)
    for action, attempt in (
        ("read", lambda: store.read("b")),
        ("write", lambda: store.write("b", [b"x"])),
        ("write", lambda: store.create("b", b"x")),
    ):
        with pytest.raises(
            ObjectStoreError, match=f"^cannot {action} s3://none/a/b: bucket 'none' does not exist$"
        ):
            attempt()
    with pytest.raises(ObjectStoreError, match=r"^cannot list s3://none/a: bucket 'none' does not exist$"):
        list(store.list())


def test_a_server_that_cannot_be_reached_is_an_error_in_one_line_without_secrets(
    server: ObjectServer,
) -> None:
    options = {**server.options, "aws_endpoint_url": "http://127.0.0.1:1", "max_retries": "0"}
    store = open_store(ObjectLocation("s3", "bucket"), StoreSettings(options))
    with pytest.raises(ObjectStoreError) as error:
        store.read("a")
    message = str(error.value)
    assert message.startswith("cannot read s3://bucket/a: ")
    assert "\n" not in message
    assert SECRET not in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"aws_nonsense": "hidden"}, "aws_nonsense"),
        ({"aws_skip_signature": "maybe"}, "maybe"),
        ({"aws_allow_http": "maybe"}, "maybe"),
        ({"timeout": "soon"}, "soon"),
    ],
)
def test_invalid_settings_are_errors_of_the_location(options: dict[str, str], message: str) -> None:
    with pytest.raises(LocationError, match=r"^s3://bucket: ") as error:
        open_store(ObjectLocation("s3", "bucket"), StoreSettings(options))
    assert message in str(error.value)
    assert "hidden" not in str(error.value)


def test_stores_of_google_and_azure_are_opened() -> None:
    open_store(ObjectLocation("gs", "bucket"), StoreSettings({"google_skip_signature": "true"}))
    open_store(ObjectLocation("az", "container"), StoreSettings({"azure_storage_account_name": "account"}))
    with pytest.raises(LocationError, match="Account must be specified"):
        open_store(ObjectLocation("az", "container"))


def test_store_options_do_not_apply_to_paths(tmp_path: Path) -> None:
    with pytest.raises(LocationError, match="store options apply only to object stores"):
        open_store(tmp_path, StoreSettings({"aws_region": "x"}))


def test_a_missing_package_is_an_error_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.objects.opening.find_spec", lambda _: None)
    with pytest.raises(LocationError, match=r"pip install '\.\[objects\]'"):
        open_store(ObjectLocation("s3", "bucket"))


def test_settings_travel_to_workers_with_their_secrets(server: ObjectServer) -> None:
    assert pickle.loads(pickle.dumps(server.settings)) == server.settings


@pytest.mark.parametrize("lost_count", [1, 2])
def test_a_creation_whose_response_was_lost_is_repeated_and_finds_its_own_object(
    server: ObjectServer, bucket: str, lost_count: int
) -> None:
    with losing_responses(server.url, "PUT", lost_count) as url:
        store = open_store(
            ObjectLocation("s3", bucket), StoreSettings({**server.options, "aws_endpoint_url": url})
        )
        assert store.create("claim", b"mine")
        assert not store.create("claim", b"other")
    assert open_store(ObjectLocation("s3", bucket), server.settings).read("claim") == b"mine"


def test_a_server_that_always_fails_is_an_error_after_the_retries(server: ObjectServer, bucket: str) -> None:
    with losing_responses(server.url, "GET", 1_000) as url:
        store = open_store(
            ObjectLocation("s3", bucket), StoreSettings({**server.options, "aws_endpoint_url": url})
        )
        with pytest.raises(ObjectStoreError, match=f"^cannot read s3://{bucket}/a: "):
            store.read("a")


def test_an_upload_whose_process_is_killed_is_not_visible(server: ObjectServer, bucket: str) -> None:
    program = f"""
from itertools import repeat
from barnabas.objects.location import ObjectLocation
from barnabas.objects.opening import open_store
from barnabas.objects.settings import StoreSettings
store = open_store(ObjectLocation("s3", "{bucket}"), StoreSettings({server.options!r}))
store.write("endless", repeat(b"x" * (1 << 20)))
"""
    with subprocess.Popen([sys.executable, "-c", program]) as writer:
        until(lambda: server.unfinished_uploads_count(bucket) or writer.poll() is not None)
        writer.kill()
    assert writer.returncode == -signal.SIGKILL
    store = open_store(ObjectLocation("s3", bucket), server.settings)
    assert list(store.list()) == []
    assert server.unfinished_uploads_count(bucket) == 1
    assert store.create("endless", b"complete")


def test_large_objects_are_written_and_read_with_little_memory(server: ObjectServer, bucket: str) -> None:
    program = f"""
from pathlib import Path
from barnabas.objects.location import ObjectLocation
from barnabas.objects.opening import open_store
from barnabas.objects.settings import StoreSettings
store = open_store(ObjectLocation("s3", "{bucket}"), StoreSettings({server.options!r}))
def peak_bytes():
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) << 10
before = peak_bytes()
store.write("large", (b"x" * (1 << 20) for _ in range(160)))
with store.open("large") as file:
    while file.read(1 << 20):
        pass
print(peak_bytes() - before)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(ended.stdout) < 80 << 20
