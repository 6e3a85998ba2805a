"""Where an output directory lies: on a disk of this machine, or on somebody else's."""

from __future__ import annotations

import os
import re
from pathlib import Path

MOUNTINFO = Path("/proc/self/mountinfo")
_KERNEL = (
    "9p acfs afs afpfs beegfs ceph cifs coda davfs drvfs fakeowner gfs gfs2 glusterfs gpfs "
    "lustre ncpfs nfs nfs4 nfsd ocfs2 orangefs panfs prl_fs pvfs2 smb2 smb3 smbfs vboxsf "
    "vmhgfs wekafs "
)
_FUSE = (
    "beegfs ceph ceph-fuse cvmfs davfs gcsfuse glusterfs goofys grpcfuse juicefs mfs moosefs "
    "nfs osxfs rclone s3fs sshfs vmhgfs-fuse "
)
NETWORK = {*_KERNEL.split(), *(f"fuse.{name}" for name in _FUSE.split())}
"""File systems on which processes may fail to share memory through a file, as a write-ahead log
needs it; those that a virtual machine's host lends it are among them."""


def network_file_system(path: Path, mountinfo: str | None = None) -> str | None:
    """The type of the network file system that `path` lies on; None on a disk of this machine.

    None also where nothing tells: only Linux has `mountinfo`, which is that of this process unless
    it is given.
    """
    if mountinfo is None:
        try:
            mountinfo = MOUNTINFO.read_text("utf-8", "surrogateescape")
        except OSError:
            return None
    place = os.path.realpath(path)
    longest, kind = "", None
    for line in mountinfo.splitlines():
        mount, _, kinds = line.partition(" - ")
        fields = mount.split()
        if len(fields) < 5 or not kinds:
            continue
        point = _unescape(fields[4])
        # Of two on one point the later one is on top.
        if len(point) >= len(longest) and _lies_under(place, point):
            longest, kind = point, kinds.split()[0]
    return kind if kind in NETWORK else None


def _lies_under(place: str, point: str) -> bool:
    return place == point or place.startswith(point if point.endswith("/") else f"{point}/")


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
