"""Query rows of one KV head in the attention kernel's tiles: what is used and what is paid for."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.report.html.content import ASKED, Figure, Key, Layout, Number, Table, in_both_widths
from planner.report.html.drawing import Drawing, Mark, Spot, group, label, rect
from planner.report.wording import percent
from planner.search.records import TileUse

MOST_CELLS = 512
"""Cells that a picture has at most; beyond it a cell stands for several rows."""
MOST_TILES = 16
"""Tiles drawn; beyond it they are counted only."""
TABLE_LENGTHS = 32


def tile_figure(use: TileUse, draft_len: int, tiles: Sequence[tuple[int, TileUse]]) -> Figure:
    """The tiles at the plan's draft length, and the charge at every other in the table."""
    words = (
        f"{use.query_rows} of {use.rows_charged} rows used in {use.tiles} "
        f"tile{'s' if use.tiles != 1 else ''}"
    )
    return Figure(
        "tile",
        words,
        in_both_widths(lambda layout: _draw(use, layout)),
        _table(tiles),
        legend=[
            Key("s1", "rows used", _number(use.query_rows, use)),
            Key("idle", "charged and idle", _number(use.rows_charged - use.query_rows, use)),
        ],
        caption=_caption(use, draft_len),
    )


def _number(rows: int, use: TileUse) -> Number:
    return Number(str(rows), use.kind, f"kernel path {use.path_id}")


def _caption(use: TileUse, draft_len: int) -> str:
    idle = 1 - use.query_rows / use.rows_charged if use.rows_charged else 0.0
    split = "still split" if use.split_kv else "not split"
    ladder = ", ".join(map(str, use.ladder))
    return (
        f"G*(1+D) = {use.group_size}*(1+{draft_len}) = {use.query_rows} rows; {use.kernel} charges "
        f"{use.rows_charged} ({percent(idle)} idle). Tile heights {ladder} "
        f"{use.ladder_unit.replace('_', ' ')}; every tile reads the KV cache once, which is "
        f"{split} into parallel pieces at {1 + draft_len} query tokens."
    )


def filled(use: TileUse) -> list[int]:
    """Rows used in each tile: packed from the first on, or the same in every one."""
    height = use.rows_charged // max(1, use.tiles)
    if use.ladder_unit == "rows_per_kv_head":
        return [min(height, max(0, use.query_rows - n * height)) for n in range(use.tiles)]
    return [use.query_rows // max(1, use.tiles)] * use.tiles


def _draw(use: TileUse, layout: Layout) -> Drawing:
    drawn = min(use.tiles, MOST_TILES)
    height = max(1, use.rows_charged // max(1, use.tiles))
    rows_a_cell = max(1, math.ceil(height * drawn / MOST_CELLS))
    cells = math.ceil(height / rows_a_cell)
    across = 2 ** math.ceil(math.log2(math.sqrt(cells)) + 0.5) if cells > 1 else 1
    down = math.ceil(cells / across)
    columns = max(1, min(drawn, 2 if layout.narrow else 4))
    size = min(15.0, (layout.width - 16 * (columns - 1)) / columns / across)
    marks: list[Mark] = []
    for n, used in enumerate(filled(use)[:drawn]):
        place = Spot((n % columns) * (across * size + 16), (n // columns) * (down * size + 30))
        tile = [label(Spot(0.0, 13.0), f"tile {n + 1}: {used} of {height}", "small")]
        for cell in range(cells):
            corner = Spot((cell % across) * size, 20 + (cell // across) * size)
            css = "s1" if cell * rows_a_cell < used else "idle"
            tile.append(rect(corner, size - 1.5, size - 1.5, css))
        marks.append(group(tile, place, f"tile {n + 1}: {used} of {height} rows used"))
    lines = math.ceil(drawn / columns)
    bottom = lines * (down * size + 30) - 6
    note = f"each cell is {rows_a_cell} rows" if rows_a_cell > 1 else ""
    if use.tiles > drawn:
        note = f"{note}{'; ' if note else ''}{use.tiles - drawn} more tiles like these"
    if note:
        marks.append(label(Spot(0.0, bottom + 14), note, "small"))
    return Drawing(layout.width, bottom + (20 if note else 0), tuple(marks))


def _table(tiles: Sequence[tuple[int, TileUse]]) -> Table:
    rows = [
        (
            str(d),
            _number(use.query_rows, use),
            _number(use.rows_charged, use),
            _number(use.tiles, use),
            "yes" if use.split_kv else "no",
        )
        for d, use in tiles
        if d < TABLE_LENGTHS
    ]
    head = ("D", "rows used", "rows charged", "passes over the cache", "split-KV")
    return Table(head, tuple(rows), origins={"D": ASKED})
