"""A study over several processes and kills: every finished trial is one row."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

pytest.importorskip("optuna")

from autotune.tune.records import OFF, Arm
from autotune.tune.space import Knob, Space, space_of, with_flag
from autotune.tune.storage import JournalLock, open_study
from autotune.tune.study import Lease, best_settings, release_lost, rows, run_trials
from planner.errors import InputError, OutsideFailure

WORKER = Path(__file__).with_name("study_worker.py")
ROOT = Path(__file__).parents[3]
ARMS = tuple(Arm(name=f"draft_len={d}", family="ngram", draft_len=d) for d in (2, 4, 8))
SPACE = Space(ARMS, (Knob("-n", ("2", "3")),))


def _gain(settings: Mapping[str, str], _: int = 0) -> float:
    return 1.0 + int(settings["arm"].split("=")[1]) / 10 + int(settings["-n"]) / 100


def _worker(where: str, trials: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(WORKER), where, str(trials)],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}", "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )


def _measured(output: str) -> list[tuple[int, float]]:
    pairs = [line.split() for line in output.splitlines() if line[:1].isdigit()]
    return [(int(pair[0]), float(pair[1])) for pair in pairs if len(pair) == 2]


def _kill_and_resume(where: str, wait_s: float, trials: int = 8) -> None:
    first = _worker(where, trials)
    assert first.stdout is not None
    first.stdout.readline()  # one trial is measured: imports are over, and kills hit the work
    time.sleep(wait_s)
    first.send_signal(signal.SIGKILL)
    before = _measured(first.communicate()[0])
    study = open_study(where, "tune", seed=0)
    finished = {row.number: row.speedup for row in rows(study)}
    second = _worker(where, trials)
    after = _measured(second.communicate(timeout=60)[0])
    kept = {row.number: row.speedup for row in rows(open_study(where, "tune", seed=0))}
    assert second.returncode == 0
    assert finished.items() <= kept.items(), "a finished trial was lost"
    assert len(kept) == trials
    # What was measured in full and told is there once; the trial that the kill hit is not a row.
    assert all(kept[number] == value for number, value in [*before[:-1], *after] if number in kept)
    settings = Counter(tuple(sorted(row.settings.items())) for row in rows(study))
    assert max(settings.values(), default=1) == 1, "settings were counted twice"
    states = Counter(trial.state.name for trial in open_study(where, "tune", seed=0).trials)
    assert states["RUNNING"] == 0


@pytest.mark.parametrize("moment", range(3))
def test_a_kill_loses_no_finished_trial(tmp_path: Path, moment: int) -> None:
    wait_s = random.Random(moment).uniform(0.0, 0.25)
    _kill_and_resume(str(tmp_path / "study.journal"), wait_s)


@pytest.mark.slow
@pytest.mark.parametrize("moment", range(20))
def test_twenty_kills_lose_no_finished_trial(tmp_path: Path, moment: int) -> None:
    wait_s = random.Random(100 + moment).uniform(0.0, 0.5)
    _kill_and_resume(str(tmp_path / "study.journal"), wait_s, trials=12)


def test_two_processes_share_one_study(tmp_path: Path) -> None:
    where = str(tmp_path / "study.journal")
    workers = [_worker(where, 10) for _ in range(2)]
    shares = [len(_measured(worker.communicate(timeout=60)[0])) for worker in workers]
    found = rows(open_study(where, "tune", seed=0))
    assert len(found) == 10
    assert sum(shares) == 10
    assert min(shares) > 0
    # Both may ask before either has told the other what it tries.
    assert len({tuple(sorted(row.settings.items())) for row in found}) >= 8


def test_a_database_works_as_the_journal_does(tmp_path: Path) -> None:
    study = open_study(f"sqlite:///{tmp_path / 'study.db'}", "tune", seed=0)
    assert run_trials(study, SPACE, _gain, 4, Lease(0.1, 0.5)) == 4
    assert len(rows(study)) == 4


def test_every_settings_once_and_the_best_is_found(tmp_path: Path) -> None:
    study = open_study(str(tmp_path / "study.journal"), "tune", seed=0)
    run_trials(study, SPACE, _gain, 100, Lease(0.1, 0.5))
    assert len(rows(study)) == SPACE.size
    assert best_settings(study, 1) == ({"arm": "draft_len=8", "-n": "3"},)


def test_a_late_result_of_a_given_away_trial_is_dropped(tmp_path: Path) -> None:
    study = open_study(str(tmp_path / "study.journal"), "tune", seed=0)

    def paused(settings: Mapping[str, str], number: int) -> float:
        if number == 0:  # the process slept beyond its lease, and another one noticed
            study.trials[0]
            study._storage.set_trial_user_attr(study.trials[0]._trial_id, "lease_until", 0.0)
            release_lost(study, Lease(9.0, 9.0))
        return _gain(settings)

    assert run_trials(study, SPACE, paused, 3, Lease(9.0, 9.0)) == 3
    states = [trial.state.name for trial in study.trials]
    assert states[0] == "FAIL"
    assert states.count("COMPLETE") == 3


def test_settings_that_the_engine_refuses_are_not_tried_again(tmp_path: Path) -> None:
    study = open_study(str(tmp_path / "study.journal"), "tune", seed=0)
    asked = []

    def picky(settings: Mapping[str, str], _: int) -> float:
        asked.append(tuple(settings.items()))
        if settings["-n"] == "2":
            raise OutsideFailure("the engine ended with code 1")
        return _gain(settings)

    run_trials(study, SPACE, picky, SPACE.size, Lease(0.1, 0.5))
    assert len(asked) == len(set(asked)) == SPACE.size
    assert all(row.settings["-n"] == "3" for row in rows(study))


def test_an_engine_that_always_fails_ends_the_study(tmp_path: Path) -> None:
    def broken(_: Mapping[str, str], __: int) -> float:
        raise OutsideFailure("nobody answers")

    study = open_study(str(tmp_path / "study.journal"), "tune", seed=0)
    with pytest.raises(OutsideFailure, match="nobody answers"):
        run_trials(study, SPACE, broken, SPACE.size, Lease(0.1, 0.5))


def test_a_line_that_a_kill_cut_off_is_mended_by_the_next_writer(tmp_path: Path) -> None:
    where = tmp_path / "study.journal"
    run_trials(open_study(str(where), "tune", seed=0), SPACE, _gain, 2, Lease(0.1, 0.5))
    whole = where.read_bytes()
    where.write_bytes(whole + b'{"op_code":4,"worker_id":"x"')
    lock = JournalLock(where)
    lock.acquire()
    lock.release()
    assert where.read_bytes() == whole
    assert len(rows(open_study(str(where), "tune", seed=0))) == 2


def test_flags_are_set_added_and_left_out() -> None:
    argv = ["serve", "-n", "2", "--metrics", "--size=7"]
    assert with_flag(argv, "-n", "3") == ["serve", "-n", "3", "--metrics", "--size=7"]
    assert with_flag(argv, "-n", "-") == ["serve", "--metrics", "--size=7"]
    assert with_flag(argv, "--size", "9") == ["serve", "-n", "2", "--metrics", "--size=9"]
    assert with_flag(argv, "-b", "512")[-2:] == ["-b", "512"]


@pytest.mark.parametrize("text", ["n=2,3", "--n", "--n=", "--n=2,,3", ""])
def test_a_flag_that_does_not_read_is_an_error(text: str) -> None:
    with pytest.raises(InputError, match="--vary"):
        space_of(ARMS, [text])


def test_off_is_no_trial() -> None:
    off = Arm(name=OFF, family="none", draft_len=0)
    assert [arm.name for arm in space_of((off, *ARMS), ["-n=2,3"]).arms] == [a.name for a in ARMS]


@pytest.mark.parametrize(
    "text", ["my notes\nwithout an end", '{"one": "line"}', '{"a": 1}\n{"b": 2}\n', "\0" * 50]
)
def test_a_file_that_is_no_study_stays_as_it_is(tmp_path: Path, text: str) -> None:
    """A journal's torn last line is cut off: another file's last line must not be."""
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=r"no study|something else"):
        open_study(str(path), "tune", seed=0)
    assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX")
def test_what_is_no_file_is_no_study(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(InputError, match="not a regular file"):
            open_study(str(place), "tune", seed=0)


@pytest.mark.parametrize("line", ['{"op_code":0}', '{"op_code":99}', '{"op_code":[]}', "[1]", "{"])
def test_a_journal_of_nonsense_is_an_error(tmp_path: Path, line: str) -> None:
    path = tmp_path / "study.journal"
    path.write_text('{"op_code":0,"worker_id":"w","study_name":"x","directions":[2]}\n')
    with path.open("a") as stream:
        stream.write(line + "\n" + line + "\n")
    with pytest.raises(InputError, match="no study"):
        open_study(str(path), "tune", seed=0)


@pytest.mark.parametrize(
    "address", ["sqlite:////no/such/folder/x.db", "nosuch://x", "mysql://h/x", "sqlite://\0"]
)
def test_a_database_that_cannot_be_opened_is_an_error(address: str) -> None:
    with pytest.raises(InputError, match="study"):
        open_study(address, "tune", seed=0)
