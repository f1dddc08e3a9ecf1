import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from calibration_files import raw, record, written

from hwprofiles import calibration
from hwprofiles.calibration import EMPTY, file_name, read_calibration, shelf_of, write_calibration
from hwprofiles.errors import InputError
from hwprofiles.processor import processor_name, processor_name_in


def test_what_is_written_reads_back_equal(tmp_path: Path) -> None:
    kept = record(power_limit_w=450.0, gpu_uuid="GPU-1", engine="vllm==0.33.0")
    write_calibration(kept, tmp_path / "a" / "b.yaml")
    assert read_calibration(tmp_path / "a" / "b.yaml").record == kept
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.yaml"]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"surprise": 1}, "surprise"),
        ({"schema_version": 2}, "schema_version"),
        ({"created": "yesterday"}, "created"),
        ({"engine": "vllm"}, "engine"),
        ({"constants": {}}, "constants"),
        ({"constants": {"smooth_power": {"value": float("inf"), "kind": "measured"}}}, "finite"),
        ({"constants": {"smooth_power": {"value": 2.0, "kind": "guessed"}}}, "kind"),
        ({"samples_file": "../../etc/passwd"}, "samples_file"),
        ({"power_limit_w": -5}, "power_limit_w"),
    ],
)
def test_a_file_that_breaks_a_rule_is_refused_by_name(
    tmp_path: Path, fields: dict[str, object], complaint: str
) -> None:
    path = raw(tmp_path / "c.yaml", **fields)
    with pytest.raises(InputError, match=complaint) as caught:
        read_calibration(path)
    assert str(path) in str(caught.value)


def test_a_file_must_say_what_was_measured(tmp_path: Path) -> None:
    path = written(tmp_path / "c.yaml", cpu_name="a", gpu_name=None)
    path.write_text(path.read_text().replace("cpu_name: a\n", ""))
    with pytest.raises(InputError, match="gpu_name or cpu_name"):
        read_calibration(path)


def test_hostile_yaml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    for text in ("a: &x [1]\nb: *x\n", "!!python/object/apply:os.system [true]", "a" * 300_000):
        path.write_text(text)
        with pytest.raises(InputError):
            read_calibration(path)


def test_none_and_an_absent_folder_are_empty() -> None:
    assert shelf_of("none") is EMPTY
    assert shelf_of(" None ") is EMPTY
    assert shelf_of(None) is EMPTY


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        shelf_of(str(tmp_path / "absent.yaml"))


def test_the_folder_gives_the_newest_first_and_names_what_it_cannot_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "user_folder", lambda: tmp_path)
    written(tmp_path / "a.yaml", created="2026-01-01")
    written(tmp_path / "b.yaml", created="2026-11-30T10:00:00Z")
    (tmp_path / "c.yaml").write_text("no: calibration")
    (tmp_path / ".d.yaml.x.part").write_text("half a fi")
    shelf = shelf_of(None)
    assert [file.path.name for file in shelf.files] == ["b.yaml", "a.yaml"]
    assert len(shelf.problems) == 1
    assert "c.yaml" in shelf.problems[0]
    assert shelf_of(None) is shelf
    written(tmp_path / "a.yaml", created="2026-12-01")
    assert [file.path.name for file in shelf_of(None).files] == ["a.yaml", "b.yaml"]


def test_the_users_folder_follows_the_system_convention(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert calibration.user_folder() == tmp_path / "specplanner" / "calibrations"
    assert calibration.user_folder().name == "calibrations"


def test_names_tell_cards_caps_and_engines_apart() -> None:
    names = {
        file_name(record(**fields))
        for fields in (
            {},
            {"gpu_uuid": "GPU-12345678-x"},
            {"power_limit_w": 300.0},
            {"engine": "vllm==0.33.0"},
            {"engine": "vllm==0.32.0"},
            {"gpu_name": "../../x/y"},
        )
    }
    assert len(names) == 6
    assert all("/" not in name and not name.startswith(".") for name in names)


_WRITER = """
import sys
from calibration_files import record
from hwprofiles.calibration import write_calibration
from pathlib import Path
n = 0
while True:
    n += 1
    many = {f"engines.vllm.{k}": float(n) for k in ("layer_us", "step_us", "round_us", "pass_us")}
    write_calibration(record(engine="vllm==1", constants=many), Path(sys.argv[1]))
    if n == 1:
        print("ready", flush=True)
"""


def _writer(path: Path) -> "subprocess.Popen[str]":
    here = Path(__file__).parents[1]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(here), str(here.parent)])}
    return subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True, env=env
    )


def test_several_writers_killed_at_any_moment_leave_the_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    writers = [_writer(path) for _ in range(2)]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        for moment in range(40):
            values = {c.value for c in read_calibration(path).record.constants.values()}
            assert len(values) == 1
            time.sleep(0.0007 * moment)
    finally:
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
    assert len({c.value for c in read_calibration(path).record.constants.values()}) == 1


def test_threads_of_one_process_may_write_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    writers = [threading.Thread(target=written, args=(path,)) for _ in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert read_calibration(path).record == record()
    assert [p.name for p in tmp_path.iterdir()] == ["c.yaml"]


def test_the_processor_is_named_as_the_system_names_it(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("vendor : x\nmodel name\t: AMD  EPYC 7402\nmodel name : b\n")
    assert processor_name_in(tmp_path) == "AMD EPYC 7402"
    assert processor_name_in(tmp_path / "absent") is None
    assert processor_name()
