"""Tests that the model does not see. They run beside those of the project."""

import unittest

from calendar_of_room import RoomCalendar
from finder import free_times
from interval import Interval, merge


class Hidden(unittest.TestCase):
    def test_a_booking_within_another_overlaps(self):
        room = RoomCalendar("A", [Interval(0, 100)])
        self.assertFalse(room.is_free(Interval(10, 20)))
        self.assertFalse(room.is_free(Interval(99, 200)))
        self.assertTrue(room.is_free(Interval(100, 200)))

    def test_touching_intervals_merge(self):
        self.assertEqual(merge([Interval(5, 9), Interval(0, 5)]), [Interval(0, 9)])
        self.assertEqual(merge([Interval(0, 9), Interval(1, 3), Interval(2, 12)]), [Interval(0, 12)])

    def test_bookings_before_the_opening_time_do_not_count(self):
        room = RoomCalendar("A", [Interval(0, 30), Interval(50, 70)])
        self.assertEqual(free_times(room, 40, 100, shortest=10), [Interval(40, 50), Interval(70, 100)])

    def test_a_booking_list_of_the_caller_is_not_changed(self):
        bookings = [Interval(0, 10)]
        RoomCalendar("A", bookings).book(Interval(20, 30))
        self.assertEqual(bookings, [Interval(0, 10)])


if __name__ == "__main__":
    unittest.main()
