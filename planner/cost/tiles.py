"""Tile charges of a deployment's layers for every q_len, as arrays."""

from dataclasses import dataclass

import numpy as np

from hwprofiles.errors import MissingFact
from planner.arch.records import LayerGroup
from planner.cost.deployment import Deployment, attention_query, split_groups
from planner.cost.smooth import Floats
from planner.cost.step import TileCharges
from planner.tile.lookup import MAX_Q_LEN, TileTable, tile_table


@dataclass(frozen=True, slots=True)
class DeploymentTiles:
    """Six columns (passes, rows, split of unwindowed and windowed layers) by q_len - 1."""

    columns: Floats
    """Shape (6, MAX_Q_LEN)."""
    full: TileTable | None
    window: TileTable | None

    def at(self, q_len: Floats | float) -> TileCharges:
        """Charges at q_len tokens; longer ones grow in proportion."""
        return charges_at(self.columns, q_len)


def charges_at(columns: Floats, q_len: Floats | float) -> TileCharges:
    """Charges from columns of shape (6, MAX_Q_LEN), or (6, N, MAX_Q_LEN) with q_len of shape (N,).

    Beyond the table, tiles grow in proportion to the rows.
    """
    q = np.asarray(q_len, float)
    index = np.clip(np.ceil(q).astype(int) - 1, 0, MAX_Q_LEN - 1)
    over = np.maximum(1.0, q / MAX_Q_LEN)
    if columns.ndim == 3:
        values = columns[:, np.arange(columns.shape[1]), index]
    else:
        values = columns[:, index]
    full_passes, full_rows, full_split, window_passes, window_rows, window_split = values
    return TileCharges(
        full_passes * over,
        full_rows * over,
        full_split,
        window_passes * over,
        window_rows * over,
        window_split,
    )


def _table(d: Deployment, group: LayerGroup | None) -> tuple[TileTable | None, str]:
    if group is None or group.attention is None:
        return None, ""
    try:
        return tile_table(attention_query(d, group.attention)), ""
    except MissingFact as error:
        return None, f"{error}; charged as one packed pass with split-KV"


def deployment_tiles(d: Deployment) -> tuple[DeploymentTiles, tuple[str, ...]]:
    """(tiles, notes about paths that are not known)."""
    full, window, _, _ = split_groups(d.arch)
    tables, notes, rows = [], [], []
    for group in (full, window):
        table, note = _table(d, group)
        tables.append(table)
        notes += [note] if note else []
        if table is None:
            rows += [np.ones(MAX_Q_LEN), np.full(MAX_Q_LEN, 16.0), np.ones(MAX_Q_LEN)]
        else:
            rows += [table.kv_passes, table.rows_charged, table.split_kv.astype(float)]
    return DeploymentTiles(np.array(rows), tables[0], tables[1]), tuple(notes)
