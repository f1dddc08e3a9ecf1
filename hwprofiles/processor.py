"""The processor of this machine by the name that the system gives it."""

import platform
import re
from functools import lru_cache
from pathlib import Path

PROC = Path("/proc")


def processor_name_in(proc: Path) -> str | None:
    """Model name in `cpuinfo`; None where the system describes its processor otherwise."""
    try:
        text = (proc / "cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return " ".join(found[1].split())[:120] if found else None


@lru_cache(maxsize=1)
def processor_name() -> str:
    """What this machine runs on; the architecture alone where nothing more is known."""
    return processor_name_in(PROC) or platform.processor() or platform.machine() or "unknown"
