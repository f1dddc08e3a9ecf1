"""One process of a shared study: measures by a stand-in process and says what it has told."""

import subprocess
import sys
from collections.abc import Mapping

from autotune.tune.records import Arm
from autotune.tune.space import Knob, Space
from autotune.tune.storage import open_study
from autotune.tune.study import Lease, rows, run_trials

ARMS = tuple(Arm(name=f"draft_len={d}", family="ngram", draft_len=d) for d in range(1, 9))
SPACE = Space(ARMS, (Knob("-n", ("2", "3", "4")),))
STAND_IN = (
    "import sys, time; time.sleep(0.03); print(1 + int(sys.argv[1]) / 10 - int(sys.argv[2]) / 100)"
)


def measure(settings: Mapping[str, str], number: int) -> float:
    words = [settings["arm"].removeprefix("draft_len="), settings["-n"]]
    command = [sys.executable, "-I", "-S", "-c", STAND_IN, *words]
    found = float(subprocess.run(command, capture_output=True, check=True).stdout)
    sys.stdout.write(f"{number} {found}\n")
    sys.stdout.flush()
    return found


def main() -> None:
    where, trials = sys.argv[1], int(sys.argv[2])
    study = open_study(where, "tune", seed=0)
    run_trials(study, SPACE, measure, trials, Lease(beat_s=0.1, lasts_s=0.6))
    sys.stdout.write(f"done {len(rows(study))}\n")


if __name__ == "__main__":
    main()
