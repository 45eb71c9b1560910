"""Which limits of the sandbox are reached."""

import os

from .processes import task_count
from .system import WRITABLE, settings


def limits_reached():
    """Limits that are reached now, or may have been: LimitHit of port.ts."""
    found = []
    for place in WRITABLE:
        room = os.statvfs(place)
        if room.f_blocks and not room.f_bavail:
            found.append({'kind': 'space', 'place': place, 'mebibytes': room.f_blocks * room.f_frsize >> 20})
        if room.f_files and not room.f_ffree:
            found.append({'kind': 'files', 'place': place, 'count': room.f_files})
    rlimits = settings.get('rlimits', {})
    if 'RLIMIT_DATA' in rlimits:
        found.append({'kind': 'process_memory', 'mebibytes': rlimits['RLIMIT_DATA'] >> 20})
    most = rlimits.get('RLIMIT_NPROC')
    if most and task_count() >= most:
        found.append({'kind': 'processes', 'count': most})
    return found
