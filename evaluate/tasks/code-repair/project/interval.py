"""Half-open intervals of minutes: the start belongs to the interval, the end does not."""


class Interval:
    def __init__(self, start, end):
        if end <= start:
            raise ValueError("an interval ends after it starts")
        self.start = start
        self.end = end

    def __eq__(self, other):
        return (self.start, self.end) == (other.start, other.end)

    def __repr__(self):
        return f"Interval({self.start}, {self.end})"

    def overlaps(self, other):
        return self.start <= other.end and other.start <= self.end

    @property
    def length(self):
        return self.end - self.start


def merge(intervals):
    """Joins intervals that overlap or touch, in order."""
    merged = []
    for interval in sorted(intervals, key=lambda each: each.start):
        if merged and interval.start <= merged[-1].end:
            merged[-1] = Interval(merged[-1].start, interval.end)
        else:
            merged.append(interval)
    return merged
