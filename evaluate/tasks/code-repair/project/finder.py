"""Free times of rooms."""

from interval import Interval, merge


def free_times(calendar, opens, closes, shortest=1):
    """Free intervals of a room between two times that are at least `shortest` minutes long."""
    free = []
    at = opens
    for busy in merge(calendar.bookings):
        if busy.start - at > shortest:
            free.append(Interval(at, busy.start))
        at = busy.end
    if closes - at >= shortest:
        free.append(Interval(at, closes))
    return free


def first_room(calendars, interval):
    """Name of the first room that is free. None if all are booked."""
    for calendar in calendars:
        if calendar.is_free(interval):
            return calendar.name
