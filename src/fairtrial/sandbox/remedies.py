"""How people get what their machine lacks: sentences, and commands for their own system."""

from __future__ import annotations

import os
import re
from pathlib import Path

INSTALLERS = {"debian": "apt install", "fedora": "dnf install", "arch": "pacman -S"}
SWITCHES = {
    "user.max_user_namespaces": (0, 15000),
    "kernel.unprivileged_userns_clone": (0, 1),
    "kernel.apparmor_restrict_unprivileged_userns": (1, 0),
}
"""Kernel settings that keep users from namespaces: the value that does, and one that doesn't."""
FOR_ROOT_TOO = "user.max_user_namespaces"
CONFIGURED = "/etc/sysctl.d/60-namespaces.conf"
FAMILIES = {"ubuntu": "debian", "rhel": "fedora", "centos": "fedora"}


def as_root(command: str) -> str:
    """A command that needs root, as this user would type it."""
    return f"$ {command}" if os.geteuid() == 0 else f"$ sudo {command}"


def install(package: str, release: str | None = None) -> str:
    """How to install a package here; for each family of systems where this one isn't known.

    release: what /etc/os-release says
    """
    family = _find_family(_read_release() if release is None else release)
    if family is not None:
        return as_root(f"{INSTALLERS[family]} {package}")
    named = {"debian": "Debian, Ubuntu", "fedora": "Fedora", "arch": "Arch"}
    return "\n".join(
        f"{as_root(f'{installer} {package}')}    # {named[each]}"
        for each, installer in INSTALLERS.items()
    )


def closed_switches(settings: Path = Path("/proc/sys")) -> list[str]:
    """Kernel settings that forbid namespaces to this user."""
    found = []
    for name, (closed, _) in SWITCHES.items():
        try:
            value = int((settings / name.replace(".", "/")).read_text())
        except (OSError, ValueError):
            continue
        if value == closed and (name == FOR_ROOT_TOO or os.geteuid() != 0):
            found.append(name)
    return found


def open_switches(closed: list[str]) -> str:
    """How to allow namespaces where these settings forbid them: now, and after the next start."""
    lines = []
    for name in closed:
        setting = f"{name}={SWITCHES[name][1]}"
        lines.append(as_root(f"sysctl -w {setting}"))
        lines.append(f"$ echo {setting} | {as_root(f'tee -a {CONFIGURED}').removeprefix('$ ')}")
    if "kernel.apparmor_restrict_unprivileged_userns" in closed:
        lines.append(
            "This lifts Ubuntu's restriction for all programs; an AppArmor profile for bwrap with "
            "the rule `userns,` lifts it for bubblewrap alone."
        )
    return "\n".join(lines)


def _read_release() -> str:
    try:
        return Path("/etc/os-release").read_text("utf-8", "replace")
    except OSError:
        return ""


def _find_family(release: str) -> str | None:
    values = dict(line.split("=", 1) for line in release.splitlines() if "=" in line)
    ids = re.findall(r"[\w.-]+", f"{values.get('ID')} {values.get('ID_LIKE')}")
    families = (FAMILIES.get(each, each) for each in ids)
    return next((family for family in families if family in INSTALLERS), None)
