"""A stand-in for the binding of NVML: each field of each card may be missing."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

MIB = 2**20


class NVMLError(Exception):
    pass


class NotSupportedError(NVMLError):
    def __str__(self) -> str:
        return "Not Supported"


class FunctionNotFoundError(NVMLError):
    def __str__(self) -> str:
        return "Function Not Found"


@dataclass
class FakeCard:
    name: str | bytes = "NVIDIA GeForce RTX 4090"
    total_mib: float | None = 24564
    used_mib: float = 0
    power_w: float | None = 450
    default_w: float | None = 450
    pcie: tuple[int, int] | None = (4, 16)
    mig: tuple["FakeCard", ...] | None = None
    sms: int | None = None
    lost: str = ""


@dataclass
class FakeNvml:
    """Has what the tests need of `pynvml`; `old` drops what old drivers do not know."""

    cards: list[FakeCard]
    old: bool = False
    broken: str = ""
    shut: int = 0
    nvmlMemory_v2: int = 2  # noqa: N815
    NVMLError: type[Exception] = field(default=NVMLError)

    def nvmlInit(self) -> None:  # noqa: N802
        if self.broken:
            raise NVMLError(self.broken)

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.shut += 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeCard:  # noqa: N802
        card = self.cards[index]
        if card.lost:
            raise NVMLError(card.lost)
        return card

    def nvmlDeviceGetName(self, card: FakeCard) -> str | bytes:  # noqa: N802
        return card.name

    def nvmlDeviceGetMemoryInfo(self, card: FakeCard, version: int | None = None) -> Any:  # noqa: N802
        if version is not None and self.old:
            raise FunctionNotFoundError
        if card.total_mib is None:
            raise NotSupportedError
        total, used = card.total_mib * MIB, card.used_mib * MIB
        return SimpleNamespace(total=total, used=used, free=total - used)

    def nvmlDeviceGetEnforcedPowerLimit(self, card: FakeCard) -> float:  # noqa: N802
        return _milliwatts(card.power_w)

    def nvmlDeviceGetPowerManagementDefaultLimit(self, card: FakeCard) -> float:  # noqa: N802
        return _milliwatts(card.default_w)

    def nvmlDeviceGetMaxPcieLinkGeneration(self, card: FakeCard) -> int:  # noqa: N802
        if card.pcie is None:
            raise NotSupportedError
        return card.pcie[0]

    def nvmlDeviceGetCurrPcieLinkWidth(self, card: FakeCard) -> int:  # noqa: N802
        if card.pcie is None:
            raise NotSupportedError
        return card.pcie[1]

    def nvmlDeviceGetMigMode(self, card: FakeCard) -> list[int]:  # noqa: N802
        if self.old:
            raise FunctionNotFoundError
        if card.mig is None:
            raise NotSupportedError
        return [1, 1]

    def nvmlDeviceGetMaxMigDeviceCount(self, card: FakeCard) -> int:  # noqa: N802
        return 7 if card.mig is not None else 0

    def nvmlDeviceGetMigDeviceHandleByIndex(self, card: FakeCard, index: int) -> FakeCard:  # noqa: N802
        if card.mig is None or index >= len(card.mig):
            raise NVMLError("Not Found")
        return card.mig[index]

    def nvmlDeviceGetAttributes_v2(self, card: FakeCard) -> Any:  # noqa: N802
        if card.sms is None:
            raise NotSupportedError
        return SimpleNamespace(multiprocessorCount=card.sms)


def _milliwatts(watts: float | None) -> float:
    if watts is None:
        raise NotSupportedError
    return watts * 1000
