"""Any text may stand where a path is expected."""

from pathlib import Path

import pytest

from hwprofiles.paths import existing_path, typed_path


def test_a_home_that_nobody_has_is_left_as_typed() -> None:
    assert typed_path("~nobody-of-that-name/x.json") == Path("~nobody-of-that-name/x.json")
    assert typed_path("~") == Path.home()


@pytest.mark.parametrize(
    "text", ["", "\0", "x" * 300, "x" * 5000, "~nobody-of-that-name/x", "\ud800", "no-such-file"]
)
def test_what_can_be_no_path_exists_nowhere(text: str) -> None:
    assert existing_path(text) is None


def test_a_file_that_is_there_is_found(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text("{}")
    assert existing_path(str(file)) == file
