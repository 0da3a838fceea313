from pathlib import Path

import pytest

from barnabas.objects.location import LocationError, ObjectLocation, parse_location


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("archive", Path("archive")),
        ("/data/a:b/c", Path("/data/a:b/c")),
        ("file:///data/a%20b", Path("/data/a b")),
        ("file://localhost/data", Path("/data")),
        ("s3://bucket", ObjectLocation("s3", "bucket")),
        ("s3://bucket/a/b/", ObjectLocation("s3", "bucket", "a/b")),
        ("S3A://bucket/a%20b", ObjectLocation("s3", "bucket", "a%20b")),
        ("gs://bucket/a", ObjectLocation("gs", "bucket", "a")),
        ("az://container/a", ObjectLocation("az", "container", "a")),
    ],
)
def test_a_location_is_a_path_or_a_prefix_of_a_bucket(text: str, location: Path | ObjectLocation) -> None:
    assert parse_location(text) == location


def test_a_location_is_extended_like_a_path() -> None:
    assert str(parse_location("s3://bucket") / "a" / "b") == "s3://bucket/a/b"
    assert str(parse_location("/data") / "a" / "b") == "/data/a/b"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must not be empty"),
        (
            "ftp://host/a",
            "location ftp://host/a: must be a path, or begin with s3://, gs://, az:// or file://",
        ),
        ("s3://", "'' is not the name of a bucket"),
        ("s3:///a", "'' is not the name of a bucket"),
        ("s3://bucket:9000/a", "'bucket:9000' is not the name of a bucket"),
        ("s3://bucket/a//b", "must not contain empty parts"),
        ("s3://bucket/a/../b", "must not contain empty parts"),
        ("s3://bucket/a#b", "must not contain"),
        ("file://host/a", "must have the form file:///path"),
    ],
)
def test_an_invalid_location_is_an_error(text: str, message: str) -> None:
    with pytest.raises(LocationError) as error:
        parse_location(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "text", ["s3://user:hidden@bucket/a", "az://c/a?sig=hidden", "ftp://u:hidden@h/a?hidden"]
)
def test_credentials_in_a_url_are_an_error_that_does_not_show_them(text: str) -> None:
    with pytest.raises(LocationError) as error:
        parse_location(text)
    assert "hidden" not in str(error.value)
