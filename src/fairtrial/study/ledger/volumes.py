"""Detect output directories on network file systems."""

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
"""File systems on which processes may fail to share memory through a file, which a write-ahead log
needs; they include those that a host shares with a virtual machine."""


def network_file_system(path: Path, mountinfo: str | None = None) -> str | None:
    """Return the type of the network file system that holds `path`; None on a local disk.

    Also None if that is unknown: only Linux has `mountinfo`.

    mountinfo: the mount table; by default that of this process
    """
    if mountinfo is None:
        try:
            mountinfo = MOUNTINFO.read_text("utf-8", "surrogateescape")
        except OSError:
            return None
    real_path = os.path.realpath(path)
    longest, file_system = "", None
    for line in mountinfo.splitlines():
        mount, _, options = line.partition(" - ")
        fields = mount.split()
        if len(fields) < 5 or not options:
            continue
        point = _unescape(fields[4])
        # Of two mounts on one point the later one is visible.
        if len(point) >= len(longest) and _lies_under(real_path, point):
            longest, file_system = point, options.split()[0]
    return file_system if file_system in NETWORK else None


def _lies_under(real_path: str, point: str) -> bool:
    return real_path == point or real_path.startswith(point if point.endswith("/") else f"{point}/")


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
