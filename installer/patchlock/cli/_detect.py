"""`detect`: what this machine is, which profile fits it, and why the others do not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import _options, _output

if TYPE_CHECKING:
    from patchlock.hardware.report import HostReport
    from patchlock.model.devices import KnownDevice, UnknownDevice
    from patchlock.model.hosts import Host, Node


@click.command("detect")
@click.option("--why-not", "why_not", metavar="PROFILE", help="Explain in full why this profile is not chosen.")
@_options.common
def detect_command(why_not: str | None, catalogue: Path | None, as_json: bool) -> int:
    """Show this machine, and which profile fits it and why.

    --json prints a recorded machine, which names neither you nor this computer. Attach it to an issue, or set
    PATCHLOCK_HOST=FILE on another computer to simulate it there.

    \b
    Example:
      patchlock detect
      patchlock detect --why-not rocm-linux
    """
    return _show(why_not, catalogue, as_json=as_json)


def _show(why_not: str | None, catalogue: Path | None, *, as_json: bool) -> int:
    """Look at this machine, or the simulated one, and print what follows; gives the exit code.

    Args:
        why_not: a profile of which the reasons against it are printed, and nothing else.
        catalogue: its folder, or None for the one patchlock came with.
        as_json: whether a program reads it.

    Raises:
        PatchlockError: there is no such profile, or what is simulated or the catalogue has mistakes.
    """
    from patchlock.hardware import report

    root = _options.root(catalogue)
    look = report.build_report(root, _options.observe(root))
    if why_not is not None:
        reasons = look.why_not(why_not)
        if as_json:
            _output.succeed("detect", {"profile": why_not, "reasons": list(reasons)})
        else:
            _output.echo(f"{why_not}\n{_output.sentences(reasons)}")
    elif as_json:
        _output.succeed("detect", report.data(look))
    else:
        _output.echo(_text(look))
    return 0


def _text(look: HostReport) -> str:
    host = look.observed.host
    parts = [f"Machine\n{_output.rows(_machine(host))}"]
    devices = [_device(one) for one in look.devices]
    parts.append("Devices\n" + (_columns(devices) if devices else "  none found"))
    parts.append("Profile\n" + _output.rows([_chosen(look)]))
    others = [(one.profile.name, _short(one.profile.name, reasons)) for one, reasons in look.others]
    if others:
        parts.append(f"Others\n{_output.rows(others)}")
    if host.failures:
        parts.append("Not seen\n" + _output.rows([(failure.probe, failure.why) for failure in host.failures]))
    if look.notes:
        parts.append("Notes\n" + _output.sentences(look.notes))
    if warnings := _output.warnings((*look.doubts, *look.warnings)):
        parts.append(warnings)
    parts.append("Next: `patchlock list` names the apps, and `patchlock info APP` says what an app would run on here.")
    return "\n\n".join(parts)


def _machine(host: Host) -> list[tuple[str, str]]:
    inside = ["WSL2"] if host.is_wsl else []
    inside += [f"{host.container} container"] if host.container else []
    inside += [f"Jetson Linux {host.tegra}"] if host.tegra else []
    system = ", ".join(filter(None, [host.distribution or host.os, host.release, host.libc, *inside]))
    memory = f"{_size(host.memory)}, {_size(host.available)} available" if host.available else _size(host.memory)
    rows = [
        ("system", system),
        ("board", host.board),
        ("CPU", ", ".join(filter(None, [host.processor, host.machine]))),
        ("memory", memory),
        ("disk", f"{_size(host.disk)} free" if host.disk else ""),
        ("nodes", ", ".join(_node(node) for node in host.nodes)),
        ("groups", ", ".join(host.groups)),
        ("versions", ", ".join(f"{name} {version}" for name, version in host.versions.items())),
        ("python", host.python + (f" ({host.python_maker})" if host.python_maker else "")),
    ]
    return [(name, value) for name, value in rows if value]


def _node(node: Node) -> str:
    if node.is_usable:
        return node.path
    return f"{node.path} (not yours to open{f', only the group {node.group} may' if node.group else ''})"


def _device(one: KnownDevice | UnknownDevice) -> tuple[str, ...]:
    from patchlock.model.devices import KnownDevice

    device = one.device
    ids = ":".join(filter(None, [device.vendor, device.device])) + (
        f" rev {device.revision}" if device.revision else ""
    )
    state = "; ".join(filter(None, [device.trouble, "hidden" if device.is_hidden else ""]))
    family = one.card.family if isinstance(one, KnownDevice) else "unknown"
    driver = f"driver {device.driver}" if device.driver else ""
    return card_name(one), one.arch or "-", family, _size(device.memory) or "-", ids, device.address, driver, state


def card_name(one: KnownDevice | UnknownDevice) -> str:
    """Name a card with its maker, for a person."""
    from patchlock.model.devices import VENDORS, shown_name

    name, maker = shown_name(one), VENDORS.get(one.device.vendor, "")
    return name if not maker or maker in name else f"{maker} {name or 'card'}"


def _columns(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True) if width).rstrip()
        for row in rows
    )


def _chosen(look: HostReport) -> tuple[str, str]:
    if look.choice is None:
        return "none", look.refusal
    return look.choice.chosen.profile.name, f"{look.choice.chosen.profile.title}\n{look.choice.why}"


def _short(name: str, reasons: tuple[str, ...]) -> str:
    more = f" (and {len(reasons) - 1} more: --why-not {name})" if len(reasons) > 1 else ""
    return f"{reasons[0]}{more}"


def _size(size: int) -> str:
    return _output.size(size) if size else ""
