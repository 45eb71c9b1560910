"""The bookings of one room."""

from interval import merge


class RoomCalendar:
    def __init__(self, name, bookings=[]):
        self.name = name
        self.bookings = bookings

    def is_free(self, interval):
        return not any(booking.overlaps(interval) for booking in self.bookings)

    def book(self, interval):
        if not self.is_free(interval):
            raise ValueError(f"{self.name} is booked")
        self.bookings.append(interval)

    def busy_minutes(self):
        return sum(interval.length for interval in merge(self.bookings))
