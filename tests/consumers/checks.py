"""Counts comparisons, and reports differences."""

import sys


class Checks:
    def __init__(self, of):
        self.of = of
        self.count = self.failed = 0

    def equal(self, what, found, wanted, within=0.0):
        """Compares two values. Numbers may differ by `within`."""
        self.count += 1
        try:
            is_right = abs(float(found) - float(wanted)) <= within + 1e-9 * abs(float(wanted))
        except (TypeError, ValueError):
            is_right = found == wanted
        if not is_right:
            self.failed += 1
            print(f"{self.of}: {what} is {found!r}, not {wanted!r}", file=sys.stderr)

    def done(self):
        """Prints the number of comparisons. Returns the exit status."""
        state = f"{self.failed} of {self.count} differ" if self.failed else f"{self.count} right"
        print(f"{self.of}: {state}")
        return 1 if self.failed or not self.count else 0
