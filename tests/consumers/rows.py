"""The numbers that files for viewers must show: rows of a summary or of a window, and its callers."""

import json
import pathlib


class Expected:
    """Reads STEM.rows.json and, if it exists, STEM.callers.json."""

    def __init__(self, stem):
        rows = json.loads(pathlib.Path(f"{stem}.rows.json").read_text())["rows"]
        self.rows = {row["name"]: row for row in rows if row["calls"]}
        if not self.rows:
            raise ValueError(f"{stem}.rows.json has no row with calls: there is nothing to compare")
        callers = pathlib.Path(f"{stem}.callers.json")
        self.edges = json.loads(callers.read_text()) if callers.exists() else None

    def within(self, calls):
        """Returns by how many nanoseconds a sum over calls may differ."""
        # The rows have one decimal. In a window, all starts and ends are rounded: of a call, its polls and its children.
        return 0.06 if self.edges is None else 5 * calls + 0.06

    def of(self, clock):
        """Returns the rows that have times of this clock."""
        return {name: row for name, row in self.rows.items() if row[clock]}

    def self_ns(self, clock):
        return {name: row[clock]["self_ns"] for name, row in self.of(clock).items()}
