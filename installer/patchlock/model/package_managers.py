"""The command that installs something on a system, from its os-release; a closed table, asks nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MANAGERS: Mapping[str, str] = {
    # Source for each: the manual page of the program, or the home page of the project.
    "apt": "sudo apt-get install {}",
    "dnf": "sudo dnf install {}",
    "rpm-ostree": "sudo rpm-ostree install {} && systemctl reboot",
    "pacman": "sudo pacman -S {}",
    "zypper": "sudo zypper install {}",
    "transactional-update": "sudo transactional-update pkg install {} && sudo reboot",
    "apk": "sudo apk add {}",
    "xbps": "sudo xbps-install -S {}",
    "emerge": "sudo emerge {}",
    "nix": "nix-shell -p {}",
    "winget": "winget install --exact --id {}",
    "choco": "choco install {}",
    "brew": "brew install {}",
}
"""Package manager → its command; in it `{}` stands for the packages. Key of `[packages]` in `profiles/needs/`."""

DISTRIBUTIONS: Mapping[str, str] = {
    # ID and ID_LIKE of os-release. Source: https://www.freedesktop.org/software/systemd/man/latest/os-release.html
    "debian": "apt",
    "ubuntu": "apt",
    "fedora": "dnf",
    "rhel": "dnf",
    "centos": "dnf",
    "arch": "pacman",
    "steamos": "pacman",
    "opensuse": "zypper",
    "suse": "zypper",
    "opensuse-microos": "transactional-update",
    "alpine": "apk",
    "void": "xbps",
    "gentoo": "emerge",
    "nixos": "nix",
    "jetson": "apt",
}
"""Distribution → its package manager. A key of `[packages]` and `[commands]` too, where a distribution has other names;
`jetson` is a board of NVIDIA's, whatever its distribution calls itself."""

_SHARES_NAMES = {"rpm-ostree": "dnf", "transactional-update": "zypper", "choco": ""}
"""Manager → the one that has the same packages."""
_ONE_AT_A_TIME = frozenset({"winget"})
"""With `--id`, winget takes one package. Source: https://learn.microsoft.com/windows/package-manager/winget/install"""


@dataclass(frozen=True, kw_only=True)
class System:
    """An operating system, as far as installing something on it goes."""

    os: str
    """`linux`, `windows`, `macos`."""
    release: Mapping[str, str]
    """What os-release says; empty elsewhere than on Linux."""
    is_jetson: bool = False
    is_root: bool = False
    has: frozenset[str] = frozenset()
    """Which of sudo, doas, winget, choco and brew there are."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Name the distribution and what it is like, the narrowest first."""
        own = (self.release.get("ID", ""), *self.release.get("ID_LIKE", "").split())
        return (*(("jetson",) if self.is_jetson else ()), *filter(None, own))


@dataclass(frozen=True, kw_only=True)
class Way:
    """How something is installed: packages of a manager, or a command of its own."""

    manager: str = ""
    packages: tuple[str, ...] = ()
    command: str = ""

    @property
    def needs_new_window(self) -> bool:
        """Whether a shell that is open does not find what was installed: on Windows it keeps its PATH."""
        return self.manager in {"winget", "choco"}


def manager_of(system: System) -> str:
    """Name the package manager of a system, "" where we know none."""
    if system.os == "windows":
        return "choco" if "choco" in system.has and "winget" not in system.has else "winget"
    if system.os == "macos":
        return "brew"
    found = next((DISTRIBUTIONS[one] for one in system.ids if one in DISTRIBUTIONS), "")
    # Silverblue, Kinoite, Bazzite and others that are made from an image have this key in their os-release.
    return "rpm-ostree" if found == "dnf" and "OSTREE_VERSION" in system.release else found


def way(system: System, packages: Mapping[str, tuple[str, ...]], commands: Mapping[str, str]) -> Way | None:
    """Say how something is installed on a system, or None where nobody has written it down.

    Args:
        system: where.
        packages: by manager or distribution.
        commands: by distribution or operating system.
    """
    manager = manager_of(system)
    for key in (*system.ids, system.os):
        if key in commands:
            return Way(command=_as_root(commands[key], system))
        if key in packages:
            return Way(manager=manager, packages=packages[key]) if packages[key] else None
    named = packages.get(manager, packages.get(_SHARES_NAMES.get(manager, ""), ()))
    return Way(manager=manager, packages=named) if named else None


def commands(ways: Iterable[Way], system: System) -> tuple[str, ...]:
    """Write commands that can be pasted, one for all packages of a manager."""
    listed = tuple(ways)
    packages = dict.fromkeys(package for one in listed for package in one.packages)
    own = dict.fromkeys(one.command for one in listed if one.command)
    manager = next((one.manager for one in listed if one.packages), "")
    if not packages:
        return tuple(own)
    template = MANAGERS[manager]
    texts = (
        [template.format(p) for p in packages] if manager in _ONE_AT_A_TIME else [template.format(" ".join(packages))]
    )
    if "steamos" in system.ids:  # its root is read-only until then
        texts = [f"sudo steamos-readonly disable && {text}" for text in texts]
    return (*(_as_root(text, system) for text in texts), *own)


def joined(listed: Iterable[str], system: System) -> str:
    """Write commands in one line; PowerShell 5.1 has no `&&`."""
    return ("; " if system.os == "windows" else " && ").join(listed)


def _as_root(command: str, system: System) -> str:
    """Leave sudo out for root, and where only doas is there, as on Alpine, write that."""
    if system.is_root:
        return command.replace("sudo ", "")
    return command.replace("sudo ", "doas ") if "doas" in system.has and "sudo" not in system.has else command
