import pytest

from planner.tile.ladder import tile_heights
from planner.tile.lookup import AttentionQuery, find_path
from spec_kernels.verify_attention.spec import VerifySpec, ladder


@pytest.mark.parametrize("kv_dtype", ["same", "fp8_e4m3"])
@pytest.mark.parametrize("head_dim", [64, 128, 192, 256, 512])
@pytest.mark.parametrize("capability", ["8.0", "8.6", "8.9", "9.0", "10.0", "12.0"])
def test_the_planner_charges_the_tiles_that_the_kernel_has(
    capability: str, head_dim: int, kv_dtype: str
) -> None:
    cache = "bf16" if kv_dtype == "same" else kv_dtype
    query = AttentionQuery("spec_kernels", capability, "gqa", head_dim, 8, cache)
    spec = VerifySpec(head_dim=head_dim, page_size=16, kv_dtype=kv_dtype)  # type: ignore[arg-type]
    built = ladder(int(capability.replace(".", "")), spec)
    assert tuple(tile_heights(find_path(query), head_dim, 8, 8)) == built
