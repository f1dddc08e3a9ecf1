"""`spec_kernels.load(folder)`: a build, checked, ready to launch.

build = spec_kernels.load("plan/kernels")
plan = build.plan_launch(queries, cache, max_kv_len=32768)
spec_kernels.verify_attention(queries, cache, plan=plan)
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spec_kernels.driver import Driver, LibCuda, packed
from spec_kernels.errors import BuildMismatch, UnsupportedShape
from spec_kernels.manifest import (
    BuildManifest,
    Kernel,
    read_checked,
    read_manifest,
    source_sha256,
)
from spec_kernels.verify_attention.spec import TileConfig, VerifySpec, choose_splits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spec_kernels.verify_attention.launch import LaunchPlan
    from spec_kernels.verify_attention.tensors import Options, PagedCache, QueryBlock


def load(folder: str | Path, *, driver: Driver | None = None) -> LoadedBuild:
    """The kernels of a build folder, loaded onto this machine's card.

    Raises:
        BuildMismatch: a file is damaged, or the build is for another arch or version.
    """
    place = Path(folder)
    manifest = read_manifest(place)
    contents = {one.cubin.name: read_checked(place, one.cubin) for one in manifest.kernels}
    _check_versions(manifest)
    card = driver or LibCuda()
    have = card.capability()
    if have != manifest.target.capability:
        raise BuildMismatch(
            f"the build is for sm_{manifest.target.capability} and this card is sm_{have}; "
            "build for this card"
        )
    handles = {
        one.cubin.name: card.load(contents[one.cubin.name], one.entry, one.usage.smem_bytes)
        for one in manifest.kernels
    }
    return LoadedBuild(manifest, card, handles)


def _check_versions(manifest: BuildManifest) -> None:
    if manifest.source_sha256 != source_sha256():
        raise BuildMismatch(
            "the build was made from other kernel sources than are installed "
            f"(spec_kernels {manifest.versions.spec_kernels}); build anew"
        )
    try:
        installed = version("triton")
    except PackageNotFoundError:
        return
    if installed.split("+")[0] != manifest.versions.triton.split("+")[0]:
        raise BuildMismatch(
            f"the build was made and validated with Triton {manifest.versions.triton} and "
            f"{installed} is installed; build anew"
        )


@dataclass(frozen=True, slots=True)
class LoadedBuild:
    """A build on a card."""

    manifest: BuildManifest
    driver: Driver
    handles: Mapping[str, Any]
    """cubin file -> function."""

    def plan_launch(
        self,
        queries: QueryBlock,
        cache: PagedCache,
        *,
        max_kv_len: int,
        options: Options | None = None,
    ) -> LaunchPlan:
        """Tile of the build and splits for contexts up to `max_kv_len`, with scratch.

        Raises:
            UnsupportedShape: the build holds no kernel for these tensors.
        """
        from spec_kernels.verify_attention.launch import (  # noqa: PLC0415
            LaunchPlan,
            Workspace,
            kv_reach,
            query_rows,
        )
        from spec_kernels.verify_attention.tensors import PLAIN, checked_spec  # noqa: PLC0415

        options = options or PLAIN
        spec = checked_spec(queries, cache, options)
        rows = query_rows(queries, cache)
        chosen = self.kernel_for(spec, rows)
        slots = self.manifest.target.sm_count * chosen.usage.blocks_per_sm
        reach = kv_reach(queries, options, max_kv_len)
        programs = -(-rows // chosen.tile.block_m) * cache.k_PSHD.shape[2] * cache.kv_len_B.numel()
        splits = choose_splits(programs, slots, -(-reach // chosen.tile.block_n))
        space = Workspace.empty(queries, spec.head_dim, splits)
        return LaunchPlan(chosen.config, splits, space, launcher=self)

    def kernel_for(self, spec: VerifySpec, rows: int) -> Kernel:
        """The kernel whose tile takes these rows in one piece, or the tallest.

        Raises:
            UnsupportedShape: none was built for this shape.
        """
        fitting = [one for one in self._kernels(spec) if one.role != "merge"]
        if not fitting:
            shapes = {str(one.shape) for one in self.manifest.kernels}
            raise UnsupportedShape(f"no kernel was built for {spec}; built: {'; '.join(shapes)}")
        fitting.sort(key=lambda one: one.tile.block_m)
        return next((one for one in fitting if one.tile.block_m >= rows), fitting[-1])

    def _kernels(self, spec: VerifySpec) -> list[Kernel]:
        return [one for one in self.manifest.kernels if one.spec == spec]

    def attend(
        self, spec: VerifySpec, config: TileConfig, grid: Sequence[int], arguments: Sequence[Any]
    ) -> None:
        """Launch the attention kernel of a shape and tile."""
        for one in self._kernels(spec):
            if one.role != "merge" and one.config == config:
                self._launch(one, grid, arguments)
                return
        raise UnsupportedShape(f"{spec} with {config} is not in this build; plan anew")

    def merge(self, spec: VerifySpec, grid: Sequence[int], arguments: Sequence[Any]) -> None:
        """Launch the merge kernel of a shape."""
        for one in self._kernels(spec):
            if one.role == "merge":
                self._launch(one, grid, arguments)
                return
        raise UnsupportedShape(f"{spec} has no merge kernel in this build; build anew")

    def _launch(self, kernel: Kernel, grid: Sequence[int], arguments: Sequence[Any]) -> None:
        numbers = [one.data_ptr() if hasattr(one, "data_ptr") else one for one in arguments]
        x, y, z = (*grid, 1, 1)[:3]
        self.driver.launch(
            self.handles[kernel.cubin.name],
            (x, y, z),
            (32 * kernel.tile.num_warps, kernel.usage.smem_bytes),
            packed(kernel.parameters, numbers),
        )
