"""Upstream's git repositories: fetch, read and commit, in a cache of ours; never touches a branch or a working tree."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from patchlock.core import file_lock, process
from patchlock.core.atomic_files import remove_tree
from patchlock.model.errors import CommandFailedError, UpstreamError
from patchlock.model.identities import CommitId

if TYPE_CHECKING:
    from patchlock.model.app import App, EmbeddedUpstream, Submodule

_NO_CONVERSION = ("-c", "core.autocrlf=false")
_SETTINGS = (
    *("-c", "core.safecrlf=false", "-c", "core.hooksPath=/dev/null"),
    *("-c", "commit.gpgSign=false", "-c", "gc.auto=0", "-c", "advice.detachedHead=false", "-c", "core.longpaths=true"),
    *("-c", "safe.directory=*", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false"),
    # Git's default syncs packs alone, and a power cut leaves empty refs and objects (git 2.36 and later know these).
    *("-c", "core.fsync=objects,derived-metadata,reference", "-c", "core.fsyncMethod=batch"),
)
_NO_ANSWER = re.compile(
    r"Could not resolve (host|proxy)|Failed to connect|Couldn't connect|Could not connect|Connection (refused|reset)|"
    r"timed out|Network is unreachable|No route to host|returned error: 5\d\d|Name or service not known|name resolution"
)
"""In git's words, and those of curl and ssh: no server answers.

Source: https://curl.se/libcurl/c/libcurl-errors.html
"""
_IS_INCOMPLETE = "possible repository corruption on the remote side"
"""In git's words: the clone that a server gives lacks objects.

Source: https://github.com/git/git/blob/v2.47.0/upload-pack.c (create_pack_file)
"""
_OBJECT = re.compile(r"\b[0-9a-f]{40}\b")
_PATIENCE = 30.0
"""Seconds that a repository may take to say where a branch is."""
_SSH = re.compile(r"(?:ssh://)?git@(?P<host>[\w.-]+)[:/](?P<path>.+)")
_QUIETLY = ("fetch", "--quiet", "--force", "--no-tags", "--no-write-fetch-head")
_PROTOCOLS = "file:git:http:https:ssh"
"""What upstream may be fetched over; `ext` would run a program that the address names."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """One commit of upstream in our cache."""

    repository: Path
    """A bare repository; its branches are `refs/remotes/origin/*`."""
    commit: CommitId
    tree: CommitId
    """Whose files count: those of `commit`, and of the submodules that the app needs; the same where there are none."""
    date: str
    """When it was committed: RFC 3339, UTC."""
    directory: PurePosixPath
    """The app's folder in the clone."""


def git(
    *arguments: str,
    repository: Path,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    allowed: Sequence[int] = (0,),
    keep_open: Sequence[int] = (),
    converts: bool = False,
) -> process.Completed:
    """Run git in a repository, without the user's hooks and prompts.

    Only `fetch` may reach another repository, and so may no object that a partial clone lacks.

    Args:
        arguments: the command.
        repository: where.
        env: further variables.
        stdin: all of its standard input.
        allowed: exit codes that are not a failure.
        keep_open: file descriptors that the child inherits.
        converts: for a clone of the user's whose files are read or written: with the conversion of line endings and
            the filters that its configuration and attributes ask for, as the user's own git would.

    Raises:
        ProgramMissingError: git is not installed.
        CommandFailedError: git says no.
    """
    fixed = {
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": _PROTOCOLS if arguments[:1] == ("fetch",) else "none",
    }
    clean = process.environment(fixed | dict(env or {}))
    return process.run(
        *("git", *_SETTINGS, *(() if converts else _NO_CONVERSION), *arguments),
        cwd=repository,
        env=clean,
        stdin=stdin,
        allowed=allowed,
        keep_open=keep_open,
    )


def fetch(app: App, *, catalogue: Path, cache: Path, source: str | None, revision: str | None) -> Snapshot:
    """Bring the wanted commit of an app's upstream into the cache; asks the network only if it is not there yet.

    Args:
        app: the app.
        catalogue: root of the catalogue, for an embedded upstream.
        cache: our cache folder.
        source: another place to take upstream from, a path or a URL.
        revision: another commit than the catalogue's: an id, a branch or `HEAD` of the source.

    Raises:
        UpstreamError: upstream cannot be reached, or does not hold the commit.
    """
    from patchlock.model.app import EmbeddedUpstream  # all of them, which a quick look at an installation does without

    # Each source has a cache of its own: a branch of one must never be taken for a branch of another.
    name = app.name
    if source is not None:
        name += f"-{hashlib.sha256(absolute_address(source).encode()).hexdigest()[:12]}"
    repository = cache / "upstreams" / f"{name}.git"
    with file_lock.hold(cache / "upstreams" / f"{name}.lock", wait=600) as lock:
        _init(repository, lock)
        if isinstance(app.upstream, EmbeddedUpstream) and source is None:
            commit = _embed(app, app.upstream, catalogue, repository, lock)
            if revision not in {None, "HEAD", commit}:
                known = _at_hand(repository, revision or "")  # brought by a bundle
                if known is None:
                    raise UpstreamError(
                        f"the embedded upstream of {app.name} has the one commit {commit[:12]}, not {revision}",
                        remedy="leave --commit out",
                    )
                commit = known
        else:
            commit = _take(app, repository, source, revision, lock)
            if git("ls-tree", "-r", "--name-only", commit, repository=repository, allowed=(0, 128)).returncode:
                raise _incomplete(source or "", f"folders of commit {commit[:12]}")
        tree = _with_submodules(app, repository, commit, source, lock)
    date = _date(repository, commit)
    return Snapshot(repository=repository, commit=commit, tree=tree, date=date, directory=app.directory)


def is_at_hand(app: App, cache: Path) -> bool:
    """Say whether `fetch` needs no network for the catalogue's commit of an app."""
    from patchlock.model.app import EmbeddedUpstream, joined_ref

    repository = cache / "upstreams" / f"{app.name}.git"
    commit = app.upstream.commit
    wanted = joined_ref(commit, app.submodules) if app.submodules else commit
    return isinstance(app.upstream, EmbeddedUpstream) or (_is_whole(repository) and _has(repository, wanted))


def fetch_bundle(app: App, file: Path, cache: Path) -> None:
    """Bring all that a git bundle of `write_bundle` has into the cache, where `fetch` finds it.

    Args:
        app: whose upstream it has.
        file: the git bundle.
        cache: our cache folder.

    Raises:
        UpstreamError: git cannot read it.
    """
    repository = cache / "upstreams" / f"{app.name}.git"
    joined = "refs/patchlock/joined/*"
    with file_lock.hold(cache / "upstreams" / f"{app.name}.lock", wait=600) as lock:
        _init(repository, lock)
        refspecs = ("+refs/heads/*:refs/remotes/origin/*", f"+{joined}:{joined}")
        try:
            git(*_QUIETLY, "--", str(file.resolve()), *refspecs, repository=repository, keep_open=[lock])
        except CommandFailedError as error:
            raise UpstreamError(
                f"git cannot read the upstream of {app.name} in the bundle",
                where=str(file),
                remedy="make the bundle again with `patchlock bundle`",
                evidence=error.evidence[:1],
            ) from error


def join(snapshot: Snapshot, app: App, source: str | None) -> Snapshot:
    """Put the files of the submodules that an app needs into a snapshot.

    Args:
        snapshot: without them.
        app: the app.
        source: see `fetch`.

    Raises:
        UpstreamError: one cannot be fetched.
    """
    with file_lock.hold(snapshot.repository.with_suffix(".lock"), wait=600) as lock:
        tree = _with_submodules(app, snapshot.repository, snapshot.commit, source, lock)
    return dataclasses.replace(snapshot, tree=tree)


@contextlib.contextmanager
def held(repository: Path) -> Iterator[None]:
    """Keep others from one of our repositories while it is written: they would take our locks for a dead git's."""
    with file_lock.hold(repository.with_suffix(".lock"), wait=600):
        yield


def _init(repository: Path, lock: int) -> None:
    if _is_whole(repository):
        clear(repository)  # we hold the only right to it
        return
    if repository.exists():
        shutil.rmtree(repository)
    building = repository.with_suffix(".partial")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    git("init", "-q", "--bare", "--object-format=sha1", repository=building, keep_open=[lock])
    building.replace(repository)


def _is_whole(repository: Path) -> bool:
    """Say whether git can work with a repository of ours; `git init` does not sync: a power cut leaves empty files."""
    files = [repository / name for name in ("HEAD", "config")]
    return all(file.is_file() and file.stat().st_size for file in files)


def clear(repository: Path, *, since: float = 0) -> None:
    """Remove what a kill leaves: git's locks, objects and indexes that were not finished, journals that are over.

    Args:
        repository: a bare one, or the `.git` of a clone.
        since: younger than this alone, in seconds since 1970.
    """
    objects = repository / "objects"
    left = [*repository.rglob("*.lock"), *repository.glob("patchlock/index.*"), *repository.glob("fast_import_crash_*")]
    left += repository.glob("patchlock/dropped")
    left += [*objects.glob("tmp_*"), *objects.glob("*/tmp_*"), *objects.glob("*/*.temp")]
    for path in left:
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < since:
                continue
            if path.is_dir():
                remove_tree(path)
            else:
                path.unlink()


def _embed(app: App, upstream: EmbeddedUpstream, catalogue: Path, repository: Path, lock: int) -> CommitId:
    """Turn a folder of the catalogue into one commit, the same on every machine."""
    folder = catalogue / upstream.folder
    if not folder.is_dir():
        raise UpstreamError("the embedded upstream is missing", where=str(upstream.folder))
    files = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    seconds = int(datetime.datetime.fromisoformat(upstream.date).timestamp())
    stream = [
        b"commit refs/remotes/origin/%s\ncommitter %s <upstream@localhost> %d +0000\ndata 8\nupstream\ndeleteall\n"
        % (app.branch.encode(), app.name.encode(), seconds)
    ]
    for file in (f for f in files if "__pycache__" not in f):
        data = (folder / file).read_bytes()
        stream.append(b"M 100644 inline %s\ndata %d\n%s\n" % (file.encode(), len(data), data))
    git("fast-import", "--quiet", "--force", repository=repository, stdin=b"".join(stream), keep_open=[lock])
    commit = CommitId(git("rev-parse", f"refs/remotes/origin/{app.branch}", repository=repository).text)
    if commit != upstream.commit:
        raise UpstreamError(
            f"the embedded upstream has become commit {commit}, and the catalogue names {upstream.commit[:12]}",
            where=str(app.origin),
            remedy=f'undo the change in {upstream.folder}, or write commit = "{commit}"',
        )
    return commit


def _take(app: App, repository: Path, source: str | None, revision: str | None, lock: int) -> CommitId:
    from patchlock.model.app import GitUpstream

    wanted = revision or app.upstream.commit
    if known := _at_hand(repository, wanted):
        return known
    place = source or (app.upstream.url if isinstance(app.upstream, GitUpstream) else "")
    address = absolute_address(place)
    _fetch(app, repository, address, ("+refs/heads/*:refs/remotes/origin/*",), place, lock)
    if not _has(repository, wanted) or revision is not None:
        # Not on a branch: git servers give single commits too (protocol v2).
        _fetch(app, repository, address, (f"+{wanted}:refs/patchlock/wanted",), place, lock, must=False)
        for name in (("refs/patchlock/wanted",) if revision else ()) + (f"origin/{wanted}", wanted):
            if found := commit_of(repository, name):
                return found
        if (repository / "shallow").is_file():
            raise _unknown(
                f"the clone of upstream is shallow, and lacks commit {wanted[:12]} of {app.name}",
                where=place,
                remedy="fetch the rest there (`git fetch --unshallow`), or name a complete clone: --source PATH-OR-URL",
            )
        if not git("for-each-ref", "--count=1", repository=repository).text:
            raise UpstreamError(f"the upstream of {app.name} has no commits", where=place, remedy="check the address")
        raise UpstreamError(
            f"commit {wanted[:12]} of {app.name} is not in that upstream",
            where=place,
            remedy="give a clone that has it: --source PATH; or "
            + ("name another commit" if revision else f"correct `commit` in {app.origin.file}"),
        )
    return CommitId(wanted)


def _with_submodules(app: App, repository: Path, commit: CommitId, source: str | None, lock: int) -> CommitId:
    """Put the files of the submodules that an app needs in their places, by a commit of ours above upstream's."""
    from patchlock.model.app import GitUpstream

    if not app.submodules:
        return commit
    url = app.upstream.url if isinstance(app.upstream, GitUpstream) else source or ""
    there = {one.path: one for one in submodules(repository, commit, url)}
    unknown = [path for path in app.submodules if path not in there]
    # At another commit than the catalogue's, upstream may keep those files itself, or have no such files.
    if unknown and commit == app.upstream.commit:
        raise UpstreamError(
            f"commit {commit[:12]} of {app.name} has no submodule {unknown[0]}",
            where=str(app.origin),
            remedy=f"correct `submodules` in [upstream]; it has {', '.join(map(str, there)) or 'none'}",
        )
    return _joined(repository, commit, source or url, [there[path] for path in app.submodules if path in there], lock)


def _joined(repository: Path, commit: CommitId, place: str, wanted: Sequence[Submodule], lock: int) -> CommitId:
    """Commit the files of submodules over a commit; the same commit on every machine."""
    from patchlock.model.app import joined_ref

    ref = joined_ref(commit, [one.path for one in wanted])
    if not wanted or commit_of(repository, ref):
        return commit_of(repository, ref) or commit
    seconds = git("show", "-s", "--format=%ct", commit, repository=repository).text
    message = b"".join(b"%s at %s\n" % (os.fsencode(str(one.path)), one.commit.encode()) for one in wanted)
    stream = [
        f"commit {ref}\nmark :1\ncommitter upstream <upstream@localhost> {seconds} +0000\n".encode(),
        b"data %d\n%s\nfrom %s\n" % (len(message), message, commit.encode()),
    ]
    for one in wanted:
        tree, path = _files_of(repository, one, place, lock), quoted(one.path)
        stream.append(b"D %s\nM 040000 %s %s\n" % (path, tree.encode(), path))
    stream.append(b"get-mark :1\n")
    done = git("fast-import", "--quiet", "--force", repository=repository, stdin=b"".join(stream), keep_open=[lock])
    return CommitId(done.text)


def _files_of(repository: Path, one: Submodule, place: str, lock: int) -> str:
    """Bring the files of a submodule into a repository, with those of its own submodules: the id of their tree."""
    ref = f"refs/patchlock/files/{one.commit}"
    if not _has(repository, ref):
        # They come without their history: a shallow one would make the whole repository a shallow one.
        with tempfile.TemporaryDirectory(prefix="patchlock-submodule-") as folder:
            store = Path(folder)
            git("init", "-q", "--bare", "--object-format=sha1", ".", repository=store)
            taken_from = _take_submodule(store, one, place, lock)
            inner = submodules(store, one.commit, one.url)
            tree = f"{_joined(store, one.commit, taken_from, inner, lock)}^{{tree}}"
            git("update-ref", ref, _commit_alone(store, tree), repository=store)
            git(*_QUIETLY, "--update-shallow", "--", folder, f"+{ref}:{ref}", repository=repository, keep_open=[lock])
    return git("rev-parse", f"{ref}^{{tree}}", repository=repository).text


def _commit_alone(repository: Path, tree: str) -> str:
    """Commit a tree without a parent; the same tree gives the same commit."""
    who = {f"GIT_{who}_{what}": "upstream" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    when = {"GIT_AUTHOR_DATE": "@0 +0000", "GIT_COMMITTER_DATE": "@0 +0000"}
    return git("commit-tree", tree, "-m", "files", repository=repository, env=who | when).text


def _take_submodule(store: Path, one: Submodule, place: str, lock: int) -> str:
    """Bring the commit of a submodule from a clone on this machine, if one has it, or from its own address."""
    local = Path(absolute_address(place))
    near = (local / ".git" / "modules" / one.name, local / "modules" / one.name, local / one.path)
    wanted = f"+{one.commit}:refs/patchlock/wanted"
    everything = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
    evidence: tuple[str, ...] = ()
    for address in (
        *(str(folder) for folder in near if (folder / "HEAD").is_file() or (folder / ".git").exists()),
        one.url,
    ):
        for asked in (("--depth=1", "--", address, wanted), ("--", address, *everything)):
            try:
                git(*_QUIETLY, "--update-shallow", *asked, repository=store, keep_open=[lock])
            except CommandFailedError as error:
                evidence = error.evidence[:1]
            if _has(store, one.commit):
                return address
    failed = UpstreamError(
        f"the submodule {one.path} could not be fetched at commit {one.commit[:12]}",
        where=one.url,
        remedy="check the connection, or name a clone that has its submodules: "
        "`git clone --recurse-submodules`, then --source CLONE",
        evidence=evidence,
    )
    failed.is_unreachable = any(_NO_ANSWER.search(line) for line in evidence)
    raise failed


def absolute_address(place: str) -> str:
    """Make a local path absolute, as git runs elsewhere; leave URLs alone.

    Raises:
        UpstreamError: it is a path, and nothing is there.
    """
    path = Path(place).expanduser()
    if path.exists():
        return str(path.resolve())
    if ":" not in place:  # neither a URL, nor `host:path` of ssh
        raise UpstreamError(
            "there is no such folder", where=place, remedy="name a clone, or the address of a repository"
        )
    return place


def _fetch(
    app: App, repository: Path, address: str, refspecs: tuple[str, ...], place: str, lock: int, must: bool = True
) -> None:
    git("update-ref", "-d", "refs/patchlock/wanted", repository=repository)
    try:
        git(
            *_QUIETLY,
            "--update-shallow",
            *(["--prune"] if must else []),
            "--",
            address,
            *refspecs,
            repository=repository,
            keep_open=[lock],
        )
    except CommandFailedError as error:
        if not must or _borrow(repository, Path(address)):
            return
        if any(_IS_INCOMPLETE in line for line in error.evidence):
            lacks = next((found[0] for line in error.evidence if (found := _OBJECT.search(line))), "some")[:12]
            raise _incomplete(place, f"a file or folder ({lacks}) of a commit, which may be an older one") from error
        failed = UpstreamError(
            f"the upstream of {app.name} could not be fetched",
            where=place,
            remedy="check the address and the connection, or take it from elsewhere: --source PATH-OR-URL",
            evidence=error.evidence[:1],
        )
        failed.is_unreachable = any(_NO_ANSWER.search(line) for line in error.evidence)
        raise failed from error


def _incomplete(place: str, lacks: str) -> UpstreamError:
    """Say what a clone lacks; of a clone on this machine, only the commit itself is read."""
    return _unknown(
        f"the clone of upstream is incomplete: it lacks {lacks}",
        where=place,
        remedy="name a complete one, made without --filter, or a folder here whose clone has the whole commit: "
        "--source PATH-OR-URL",
    )


def _unknown(what: str, *, where: str, remedy: str) -> UpstreamError:
    failed = UpstreamError(what, where=where, remedy=remedy)
    failed.is_unreachable = True
    return failed


def _borrow(repository: Path, clone: Path) -> bool:
    """Read the objects of a local clone where they are; git fetches nothing from one that lacks some of its blobs.

    Returns:
        Whether it is a local clone at all.
    """
    if not clone.is_dir():
        return False
    try:
        common = git("rev-parse", "--git-common-dir", repository=clone).text
        listed = git("for-each-ref", "--format=%(objectname) %(refname:lstrip=2)", "refs/heads", repository=clone).text
    except CommandFailedError:
        return False
    alternates = repository / "objects" / "info" / "alternates"
    alternates.parent.mkdir(exist_ok=True)
    alternates.write_text(f"{(clone / common).resolve() / 'objects'}\n", encoding="utf-8")
    if (shallow := clone / common / "shallow").is_file():
        shutil.copyfile(shallow, repository / "shallow")
    for row in listed.splitlines():
        commit, _, name = row.partition(" ")
        git("update-ref", f"refs/remotes/origin/{name}", commit, repository=repository)
    return True


def write_bundle(snapshot: Snapshot, refs: Mapping[str, CommitId], target: Path) -> None:
    """Write commits of upstream, with all of their history, as a git bundle.

    Args:
        snapshot: in whose repository they are.
        refs: full name that each has in the bundle → commit.
        target: the file.

    Raises:
        UpstreamError: the history is not whole, as in a shallow or partial clone.
    """
    with tempfile.TemporaryDirectory(prefix="patchlock-upstream-") as folder:
        work = Path(folder)
        git("init", "-q", "--bare", "--object-format=sha1", ".", repository=work)
        objects = (snapshot.repository / "objects").resolve()
        (work / "objects" / "info" / "alternates").write_text(f"{objects}\n", encoding="utf-8", newline="\n")
        if (shallow := snapshot.repository / "shallow").is_file():
            shutil.copyfile(shallow, work / "shallow")
        try:
            for name, commit in refs.items():
                git("update-ref", name, commit, repository=work)
            git("bundle", "create", "--quiet", str(target.resolve()), *refs, repository=work)
            git("bundle", "verify", "--quiet", str(target.resolve()), repository=snapshot.repository)
        except CommandFailedError as error:
            raise UpstreamError(
                "the history of upstream is not whole, and cannot be put into a bundle",
                where=str(snapshot.repository),
                remedy="give a clone that is neither shallow nor partial: --source PATH-OR-URL",
                evidence=error.evidence[:1],
            ) from error


def fetch_branch(address: str, branch: str, *, into: Path, ref: str, cache: Path) -> CommitId:
    """Bring a branch of a repository into a clone that is not ours, through our cache.

    Args:
        address: path or URL.
        branch: its name there.
        into: the clone.
        ref: full name of the ref that will hold it in the clone.
        cache: our cache folder.

    Raises:
        UpstreamError: it cannot be reached, or has no such branch.
    """
    place = absolute_address(address)
    name = f"clone-{hashlib.sha256(place.encode()).hexdigest()[:12]}"
    repository = cache / "upstreams" / f"{name}.git"
    kept = f"refs/remotes/origin/{branch}"
    fetching = (*_QUIETLY, "--update-shallow", "--")
    with file_lock.hold(cache / "upstreams" / f"{name}.lock", wait=600) as lock:
        _init(repository, lock)
        try:
            wanted = f"+refs/heads/{branch}:{kept}"
            git(*fetching, place, wanted, repository=repository, keep_open=[lock])
        except CommandFailedError as error:
            raise UpstreamError(
                f"branch {branch} could not be fetched",
                where=address,
                remedy="check the address and the connection",
                evidence=error.evidence[:1],
            ) from error
        git(*fetching, str(repository), f"+{kept}:{ref}", repository=into, keep_open=[lock])
    return CommitId(git("rev-parse", ref, repository=into).text)


def require_repository(address: str) -> None:
    """Make sure that git can read a repository; nothing is fetched.

    Args:
        address: path or URL.

    Raises:
        UpstreamError: it cannot be reached, or is none.
    """
    _list_remote(address, ("--", absolute_address(address), "HEAD"), "this is not a git repository that can be reached")


def branch_commit(address: str, branch: str) -> CommitId:
    """Ask a repository at which commit a branch of it is; nothing is fetched.

    Args:
        address: path or URL.
        branch: its name there.

    Raises:
        UpstreamError: it cannot be reached, or has no such branch.
    """
    words = ("--exit-code", "--", absolute_address(address), f"refs/heads/{branch}")
    return CommitId(_list_remote(address, words, f"branch {branch} cannot be looked up").split()[0])


def _list_remote(address: str, words: tuple[str, ...], wrong: str) -> str:
    env = process.environment(
        {
            "LC_ALL": "C",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": _PROTOCOLS,
            "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
        }
    )
    try:
        return process.run("git", *_SETTINGS, "ls-remote", *words, env=env, timeout=_PATIENCE).text
    except CommandFailedError as error:
        raise UpstreamError(
            wrong,
            where=address,
            remedy="check the address and the connection",
            evidence=error.evidence[:1],
        ) from error


def _at_hand(repository: Path, revision: str) -> CommitId | None:
    """Look up the commit that a whole id names: what a branch means, only upstream knows."""
    return commit_of(repository, revision) if _OBJECT.fullmatch(revision) else None


def _has(repository: Path, commit: str) -> bool:
    return commit_of(repository, commit) is not None


def commit_of(repository: Path, name: str) -> CommitId | None:
    """Look up the commit that a name stands for; None where the repository does not have it."""
    done = git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", repository=repository, allowed=(0, 1, 128))
    return CommitId(done.text) if done.returncode == 0 else None


def _date(repository: Path, commit: CommitId) -> str:
    seconds = int(git("show", "-s", "--format=%ct", commit, repository=repository).text)
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- reading and committing -------------------------------------------------------------------------------------------


def files(repository: Path, commit: CommitId, directory: PurePosixPath) -> dict[PurePosixPath, str]:
    """List the regular files below a folder of a commit: path from that folder → blob id."""
    name = f"{commit}:" if directory == PurePosixPath() else f"{commit}:{directory}"
    try:
        return {path: blob for mode, blob, path in rows(repository, name) if mode in {"100644", "100755"}}
    except CommandFailedError as error:
        raise UpstreamError(f"commit {commit[:12]} has no folder {directory}") from error


def rows(repository: Path, tree: str) -> Iterator[tuple[str, str, PurePosixPath]]:
    """Give mode, object and path of all that a commit or a tree has, however deep, in git's order."""
    for row in git("ls-tree", "-r", "-z", "--full-tree", tree, repository=repository).stdout.split(b"\0"):
        if row:
            head, _, path = row.partition(b"\t")
            mode, _, name = head.decode().split()
            yield mode, name, PurePosixPath(path.decode("utf-8", errors="surrogateescape"))


def listing(snapshot: Snapshot, folder: PurePosixPath) -> bytes:
    """List all below a folder of the clone, as git does: mode, blob and path of each."""
    return git("ls-tree", "-r", "-z", f"{snapshot.tree}:{folder}", repository=snapshot.repository).stdout


def quoted(path: PurePosixPath) -> bytes:
    """Write a path as `git fast-import` reads it."""
    name = os.fsencode(str(path))
    return b'"%s"' % name.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")


def submodules(repository: Path, commit: CommitId, url: str) -> tuple[Submodule, ...]:
    """List the submodules of a commit, as its tree and its `.gitmodules` name them; sorted by path.

    Args:
        repository: where the commit is.
        commit: the commit.
        url: of the repository, or its path: an address such as `../other.git` is from there.
    """
    from patchlock.model.app import Submodule

    commits = {path: CommitId(name) for mode, name, path in rows(repository, commit) if mode == "160000"}
    if not commits:
        return ()
    asked = ("config", "-z", "--blob", f"{commit}:.gitmodules", "--list")
    declared: dict[str, dict[str, str]] = {}
    for row in os.fsdecode(git(*asked, repository=repository, allowed=(0, 1, 128)).stdout).split("\0"):
        key, _, value = row.partition("\n")
        name, _, word = key.removeprefix("submodule.").rpartition(".")
        declared.setdefault(name, {})[word] = value
    found = []
    for name, said in declared.items():
        path, address = PurePosixPath(said.get("path", "")), _submodule_address(said.get("url", ""), url)
        if path in commits and address and ".." not in PurePosixPath(name).parts:
            found.append(Submodule(name=name, path=path, url=address, commit=commits[path]))
    return tuple(sorted(found, key=lambda one: str(one.path)))


def _submodule_address(written: str, place: str) -> str:
    """Complete an address of `.gitmodules`; "" for one that is not to be asked.

    A folder of this machine only counts where the repository itself is one: else its authors could read what is here.
    SSH wants a key, which public repositories do without by HTTPS.
    """
    if written.startswith(("./", "../")):
        base = place.rstrip("/").split("/")
        for part in written.split("/"):
            if part == "..":
                base.pop()
            elif part != ".":
                base.append(part)
        return "/".join(base)
    if ssh := _SSH.fullmatch(written):
        return f"https://{ssh['host']}/{ssh['path']}"
    if written.startswith(("https://", "http://", "git://")) or Path(place).expanduser().exists():
        return written
    return ""


def blobs(repository: Path, ids: Iterable[str], *, must: bool = True) -> dict[str, bytes]:
    """Read blobs, or other objects, in one go: id → bytes; where they need not be there, missing ones are left out.

    Raises:
        UpstreamError: a blob is not there (an incomplete clone).
    """
    ids = tuple(dict.fromkeys(ids))
    if not ids:
        return {}
    answer = git("cat-file", "--batch", repository=repository, stdin="".join(f"{i}\n" for i in ids).encode()).stdout
    found: dict[str, bytes] = {}
    position = 0
    for blob in ids:
        end = answer.index(b"\n", position)
        head = answer[position:end].split()
        if head[-1] == b"missing" and not must:
            position = end + 1
            continue
        if head[-1] == b"missing":
            raise _incomplete("", f"the file {os.fsdecode(head[0])[:12]} of the commit")
        size = int(head[2])
        found[blob] = answer[end + 1 : end + 1 + size]
        position = end + 2 + size
    return found


def read(
    snapshot: Snapshot, paths: Iterable[PurePosixPath], optional: Collection[PurePosixPath] = ()
) -> dict[PurePosixPath, bytes]:
    """Read files of a snapshot, by path from the app's folder; those that it lacks are left out.

    Args:
        snapshot: the commit.
        paths: the files.
        optional: further ones, which may be missing from an incomplete clone.

    Raises:
        UpstreamError: a file of `paths` is missing from an incomplete clone.
    """
    listed = files(snapshot.repository, snapshot.tree, snapshot.directory)
    wanted = {path: listed[path] for path in paths if path in listed}
    content = blobs(snapshot.repository, wanted.values())
    extra = {path: listed[path] for path in optional if path in listed and path not in wanted}
    content |= blobs(snapshot.repository, extra.values(), must=False)
    return {path: content[blob] for path, blob in (wanted | extra).items() if blob in content}


def read_known(snapshot: Snapshot, commit: CommitId, paths: Collection[PurePosixPath]) -> dict[PurePosixPath, bytes]:
    """Read files of another commit, such as the one that the patches' author saw; nothing where it is not there."""
    if not paths or commit == snapshot.commit or not _has(snapshot.repository, commit):
        return {}
    return read(dataclasses.replace(snapshot, commit=commit, tree=commit), (), optional=paths)
