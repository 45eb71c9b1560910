import unittest

from calendar_of_room import RoomCalendar
from finder import first_room, free_times
from interval import Interval, merge


class Bookings(unittest.TestCase):
    def test_adjacent_bookings_do_not_overlap(self):
        room = RoomCalendar("A")
        room.book(Interval(60, 120))
        room.book(Interval(120, 180))
        self.assertEqual(room.busy_minutes(), 120)

    def test_two_rooms_have_their_own_bookings(self):
        a, b = RoomCalendar("A"), RoomCalendar("B")
        a.book(Interval(0, 10))
        self.assertEqual(first_room([a, b], Interval(5, 8)), "B")

    def test_merging_keeps_the_longer_end(self):
        self.assertEqual(merge([Interval(0, 100), Interval(10, 20)]), [Interval(0, 100)])

    def test_free_times_of_exactly_the_shortest_length(self):
        room = RoomCalendar("A", [Interval(30, 60)])
        self.assertEqual(free_times(room, 0, 90, shortest=30), [Interval(0, 30), Interval(60, 90)])


if __name__ == "__main__":
    unittest.main()
