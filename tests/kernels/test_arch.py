"""How many blocks share an SM, by hand."""

import pytest

from spec_kernels.arch import Resources, arch_limits, blocks_per_sm


@pytest.mark.parametrize(
    ("registers", "smem_kib", "warps", "blocks", "limit"),
    [
        (33, 1, 4, 12, "33 * 32 registers a warp are handed out as 1280: 65536 / (4 * 1280)"),
        (32, 1, 4, 16, "64 warps"),
        (16, 1, 1, 32, "32 blocks"),
        (32, 40, 4, 4, "164 KiB / (40 + 1)"),
        (32, 164, 4, 0, "163 KiB a block"),
    ],
)
def test_the_scarcest_resource_of_an_a100_decides(
    registers: int, smem_kib: int, warps: int, blocks: int, limit: str
) -> None:
    used = Resources(registers, 0, smem_kib * 1024, warps)
    assert blocks_per_sm(arch_limits(80), used) == blocks, limit
