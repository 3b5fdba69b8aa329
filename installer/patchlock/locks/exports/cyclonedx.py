"""Write a lock as a CycloneDX 1.6 SBOM in JSON: the app with our patches as its pedigree, each distribution; pure.

The same inputs give the same bytes: the serial number is made from the content, the time is that of upstream's commit.
"""

from __future__ import annotations

import dataclasses
import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import quote

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.utils import NormalizedName

from patchlock import __version__
from patchlock.model.app import App, EmbeddedUpstream
from patchlock.model.lockfile import Lock, LockedPackage

_Json = dict[str, object]
_NO_LICENCE = frozenset({"none stated", "unknown"})
"""What the catalogue says of an app whose repository has no licence; an SBOM leaves the licence out then."""


@dataclass(frozen=True, kw_only=True)
class AppliedPatch:
    """A patch that has changed something."""

    id: str
    why: str
    source: str
    """URL or document that shows the trouble."""
    diff: str
    """A unified diff, against the files as the patches before it left them."""


def document(
    app: App,
    lock: Lock,
    *,
    date: str,
    patches: Iterable[AppliedPatch],
    distributions: Mapping[NormalizedName, tuple[AppliedPatch, ...]] = MappingProxyType({}),
) -> str:
    """Write the SBOM of an app as it is installed.

    Args:
        app: the app.
        lock: what is installed with it.
        date: of upstream's commit, RFC 3339, UTC.
        patches: what was changed in the app's source, in order.
        distributions: what was changed in distributions of the lock, by name.

    Source: CycloneDX 1.6, https://cyclonedx.org/docs/1.6/json/.
    """
    bom: _Json = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": date,
            "tools": {
                "components": [
                    {"type": "application", "name": "patchlock", "version": __version__},
                    {"type": "application", "name": "uv", "version": lock.provenance.uv},
                ]
            },
            "component": _app(app, lock, date, tuple(patches)),
        },
        "components": [_distribution(package, distributions.get(package.name, ())) for package in lock.packages],
        "dependencies": _dependencies(app, lock),
    }
    content = json.dumps(bom, ensure_ascii=False)
    head: _Json = {"$schema": bom.pop("$schema"), "bomFormat": bom.pop("bomFormat")}
    head |= {
        "specVersion": bom.pop("specVersion"),
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, content).urn,
    }
    return json.dumps(head | bom, ensure_ascii=False, indent=2) + "\n"


def _app(app: App, lock: Lock, date: str, patches: tuple[AppliedPatch, ...]) -> _Json:
    p = lock.provenance
    references: list[_Json] = [{"type": "website", "url": app.source}] if _is_address(app.source) else []
    if not isinstance(app.upstream, EmbeddedUpstream):
        references.insert(0, {"type": "vcs", "url": app.upstream.url})
    upstream: _Json = {"type": "application", "name": app.name, "version": p.commit, "externalReferences": references}
    pedigree: _Json = {
        "ancestors": [upstream],
        "commits": [{"uid": p.commit, "committer": {"timestamp": date}}],
        "patches": [_patch(patch) for patch in patches],
        "notes": "upstream's commit, changed by the patches in this order",
    }
    return {
        "type": "application",
        "bom-ref": _reference(app, lock),
        "name": app.name,
        "version": p.commit,
        "description": app.title,
        **({"licenses": [_license(app.license)]} if app.license not in _NO_LICENCE else {}),
        "externalReferences": references,
        "pedigree": pedigree,
        "properties": [
            {"name": f"patchlock:{name}", "value": value}
            for name, value in (
                ("profile", p.profile),
                ("platform", p.platform),
                ("python", p.python),
                ("as-of", p.as_of),
                ("resolver-input", p.resolver_input),
            )
        ],
    }


def _reference(app: App, lock: Lock) -> str:
    return f"app:{app.name}@{lock.provenance.commit}"


def _license(words: str) -> _Json:
    try:
        return {"expression": canonicalize_license_expression(words)}
    except InvalidLicenseExpression:
        return {"license": {"name": words}}


def _patch(patch: AppliedPatch) -> _Json:
    defect: _Json = {"type": "defect", "id": patch.id, "description": patch.why}
    if _is_address(patch.source):
        defect["source"] = {"url": quote(patch.source, "/:?#[]@!$&'()*+,;=%")}
    return {
        "type": "unofficial",
        "diff": {"text": {"contentType": "text/x-diff", "content": patch.diff}},
        "resolves": [defect],
    }


def _is_address(source: str) -> bool:
    """Tell an address from a file of the catalogue, which is nothing to whoever reads the SBOM."""
    return "://" in source


def _distribution(package: LockedPackage, patches: tuple[AppliedPatch, ...]) -> _Json:
    component: _Json = {
        "type": "library",
        "bom-ref": purl(package),
        "name": package.name,
        "version": str(package.version),
        "scope": "required",
        "hashes": [{"alg": "SHA-256", "content": package.sha256}],
        "purl": purl(package),
    }
    if package.url:
        component["externalReferences"] = [{"type": "distribution", "url": package.url}]
    if patches or package.original is not None:
        ancestors = [_distribution(dataclasses.replace(package.upstream, why=""), ())] if package.original else []
        component["pedigree"] = {
            **({"ancestors": ancestors} if ancestors else {}),
            "patches": [_patch(patch) for patch in patches],
            "notes": "upstream's wheel, changed by the patches in this order",
        }
    if package.why:
        component["properties"] = [{"name": "patchlock:why", "value": package.why}]
    return component


def purl(package: LockedPackage) -> str:
    """Name a distribution as a package URL.

    Source: https://github.com/package-url/purl-spec, type `pypi`.
    """
    where = f"?download_url={quote(package.url, safe=':/')}" if package.url else ""
    return f"pkg:pypi/{package.name}@{quote(str(package.version), safe='')}{where}"


def _dependencies(app: App, lock: Lock) -> list[_Json]:
    """Say who needs whom, as the lock's lines do; what no distribution asked for, the app needs itself."""
    references: dict[str, str] = {package.name: purl(package) for package in lock.packages}
    needs: dict[str, list[str]] = {reference: [] for reference in (_reference(app, lock), *references.values())}
    for package in lock.packages:
        dependents = [references[name] for name in _dependents(package) if name in references]
        is_direct = not dependents or not package.why.startswith(("via ", "profile ", "app:"))
        for dependent in (*dependents, *([_reference(app, lock)] if is_direct else [])):
            needs[dependent].append(references[package.name])
    return [{"ref": reference, "dependsOn": sorted(set(on))} for reference, on in needs.items()]


def _dependents(package: LockedPackage) -> list[str]:
    via = next((part for part in package.why.split(" · ") if part.startswith("via ")), "")
    return via.removeprefix("via ").split(", ") if via else []
