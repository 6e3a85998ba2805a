"""Advice on how to install packages and change kernel settings, with commands for this system."""

from __future__ import annotations

import os
import re
from pathlib import Path

INSTALLERS = {"debian": "apt install", "fedora": "dnf install", "arch": "pacman -S"}
NAMESPACE_SETTINGS = {
    "user.max_user_namespaces": (0, 15000),
    "kernel.unprivileged_userns_clone": (0, 1),
    "kernel.apparmor_restrict_unprivileged_userns": (1, 0),
}
"""Kernel settings that can forbid user namespaces: the value that does, and one that doesn't."""
APPLIES_TO_ROOT = "user.max_user_namespaces"
SYSCTL_FILE = "/etc/sysctl.d/60-namespaces.conf"
FAMILIES = {"ubuntu": "debian", "rhel": "fedora", "centos": "fedora"}


def format_root_command(command: str) -> str:
    """Return a shell line for a command that needs root, with sudo unless the user is root."""
    return f"$ {command}" if os.geteuid() == 0 else f"$ sudo {command}"


def install_hint(package: str, release: str | None = None) -> str:
    """Return the command that installs a package; one per system family if this one is unknown.

    release: the content of /etc/os-release
    """
    family = _find_family(_read_release() if release is None else release)
    if family is not None:
        return format_root_command(f"{INSTALLERS[family]} {package}")
    labels = {"debian": "Debian, Ubuntu", "fedora": "Fedora", "arch": "Arch"}
    return "\n".join(
        f"{format_root_command(f'{installer} {package}')}    # {labels[family]}"
        for family, installer in INSTALLERS.items()
    )


def find_blocking_settings(settings: Path = Path("/proc/sys")) -> list[str]:
    """Return the names of kernel settings that forbid namespaces to this user."""
    blocking = []
    for name, (blocking_value, _) in NAMESPACE_SETTINGS.items():
        try:
            value = int((settings / name.replace(".", "/")).read_text())
        except (OSError, ValueError):
            continue
        if value == blocking_value and (name == APPLIES_TO_ROOT or os.geteuid() != 0):
            blocking.append(name)
    return blocking


def settings_hint(blocking: list[str]) -> str:
    """Return the commands that allow namespaces now, and after the next start of the machine.

    blocking: the settings that forbid them
    """
    lines = []
    for name in blocking:
        setting = f"{name}={NAMESPACE_SETTINGS[name][1]}"
        lines.append(format_root_command(f"sysctl -w {setting}"))
        lines.append(
            f"$ echo {setting} | {format_root_command(f'tee -a {SYSCTL_FILE}').removeprefix('$ ')}"
        )
    if "kernel.apparmor_restrict_unprivileged_userns" in blocking:
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
    families = (FAMILIES.get(name, name) for name in ids)
    return next((family for family in families if family in INSTALLERS), None)
