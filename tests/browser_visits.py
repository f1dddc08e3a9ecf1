"""Headless Chromium over pages that the command line wrote; needs playwright."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from tune_results import tune_result

from autotune.tune.html_page import tune_page
from planner.cli import main as cli
from planner.report.html.write import write_page

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = ["--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run", "--disable-quic"]  # fmt: skip
PICTURES = Path(__file__).parents[1] / "build" / "page"
"""Where screenshots are left for someone to look at."""
COMMANDS = {
    "recommend": ["recommend", "--model", "Qwen/Qwen3-8B", "--gpu", "4090"],
    "recommend-tp4": ["recommend", "--model", "Llama-3.3-70B-Instruct", "--gpu", "4xH100"],
    "recommend-offload": [
        "recommend", "--model", "DeepSeek-V4-Flash", "--gpu", "2x3090", "--offload", "auto",
        "--host", "dual EPYC 7642, 16 channels, 512 GB",
    ],
    "recommend-load": [
        "recommend", "--model", "Qwen3-8B", "--gpu", "h200", "--qps", "2", "--prompt-len", "1K",
        "--output-len", "256",
    ],
    "recommend-cards": [
        "recommend", "--model", "Qwen/Qwen3-8B", "--gpu", "4090", "--gpu", "2x3090", "--gpu",
        "H200", "--gpu", "5060 Ti 16G", "--gpu", "3050",
    ],
    "evidence": ["evidence"],
    "design": ["design", "--from", "Qwen/Qwen3-8B", "--gpu", "h100", "--gpu", "2x4090"],
}  # fmt: skip

NAMES = (*COMMANDS, "tune")


class Visit:
    """One page in one window, with all that it said and asked for."""

    def __init__(self, browser: Browser, file: Path, width: int, scheme: Any) -> None:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, device_scale_factor=1
        )
        self.page: Page = context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.address = file.resolve().as_uri()
        self.page.goto(self.address)


def started() -> Iterator[Browser]:
    """The browser, for a fixture."""
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine; Debian: apt-get install chromium")
    flags = [*FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield browser
        browser.close()


def written(folder: Path) -> dict[str, Path]:
    """Name -> page, written by the command that a user types."""
    files = {name: folder / f"{name}.html" for name in NAMES}
    for name, command in COMMANDS.items():
        own = ["--calibration", "none"] if command[0] == "recommend" else []
        assert cli.run([*command, *own, "--html", str(files[name])]) == 0
    write_page(files["tune"], tune_page(tune_result()))
    return files
