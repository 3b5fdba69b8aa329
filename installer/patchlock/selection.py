"""Match profiles against a machine and choose one; pure, never guesses."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.version import Version

from patchlock.errors import NoProfileFitsError, UnknownProfileError, nearest
from patchlock.hosts import Host
from patchlock.model import Accepted, Profile, Rejected
from patchlock.platforms import GLIBC_FLOOR, platform_of


def judge(profile: Profile, host: Host) -> Accepted | Rejected:
    """Say whether a profile fits a machine, or every reason why not."""
    platform = platform_of(host)
    reasons: list[str] = []
    if platform is None:
        reasons.append(f"no lock can be made for {host.os} on {host.machine}")
    elif platform not in profile.platforms:
        reasons.append(f"it is for {', '.join(p.name for p in profile.platforms)}; this is {platform.name}")
    if host.os == "linux" and host.libc.startswith("musl"):
        reasons.append("the wheels need glibc; this system has musl")
    elif host.libc.startswith("glibc ") and Version(host.libc.removeprefix("glibc ")).release < GLIBC_FLOOR:
        needed = ".".join(map(str, GLIBC_FLOOR))
        reasons.append(f"the wheels need glibc {needed} or later; this system has {host.libc}")
    if reasons or platform is None:
        return Rejected(profile=profile, reasons=tuple(reasons))
    return Accepted(profile=profile, platform=platform, specificity=profile.specificity)


def choose(profiles: Iterable[Profile], host: Host, name: str | None) -> Accepted:
    """Choose the named profile, or the narrowest that fits.

    Raises:
        UnknownProfileError: there is no profile of that name.
        NoProfileFitsError: the named one does not fit, none fits, or two are equally narrow.
    """
    judged = {profile.name: judge(profile, host) for profile in profiles}
    if name is not None:
        if name not in judged:
            raise UnknownProfileError(f'there is no profile "{name}"', remedy=nearest(name, judged))
        match judged[name]:
            case Accepted() as accepted:
                return accepted
            case Rejected(reasons=reasons):
                raise NoProfileFitsError(f'the profile "{name}" does not fit this machine: {"; ".join(reasons)}')
    judged |= {name: _on_request(found) for name, found in judged.items()}
    fitting = sorted((a for a in judged.values() if isinstance(a, Accepted)), key=lambda a: -a.specificity)
    if not fitting:
        why = "; ".join(
            f"{r.profile.name}: {' and '.join(r.reasons)}" for r in judged.values() if isinstance(r, Rejected)
        )
        raise NoProfileFitsError(f"no profile fits this machine ({why})", remedy="see `patchlock list`")
    best, *others = fitting
    ties = [best.profile.name, *(a.profile.name for a in others if a.specificity == best.specificity)]
    if len(ties) > 1:
        raise NoProfileFitsError(
            f"the profiles {' and '.join(ties)} fit this machine equally well",
            remedy=f"name one: --profile {ties[0]}",
        )
    return best


def _on_request(found: Accepted | Rejected) -> Accepted | Rejected:
    """Turn down what may not be chosen unnamed."""
    if isinstance(found, Rejected) or found.profile.automatic:
        return found
    return Rejected(
        profile=found.profile, reasons=("it is chosen by --profile only, until patchlock can see the card",)
    )
