"""Provenance of a run in a report: warnings, errors, settings and their sources, policy, code and machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roadworthy.record.references import FLOOR, FOLDER, best
from roadworthy.report.facts import RunFacts, leaves
from roadworthy.report.markup import Html, folded, join, number_cell, row, table, tag
from roadworthy.report.words import NONE, duration, many, moment, plain_name, setting, value_of

DEFAULT = "default"
MOST_GAPS = 20
MOST_ARTIFACT_ERRORS = 100


def warnings(facts: RunFacts) -> list[str]:
    """Return sentences that a reader should know before believing the figures."""
    found, metrics, planned = [], facts.metrics, int(facts.header["owed"])
    if facts.status != "completed" and not planned:
        found.append(f"The run is {facts.status}: it ended before its episodes were planned.")
    elif facts.status != "completed":
        found.append(
            f"The run is {facts.status}: {facts.episode_count:,} of {many(planned, 'episode')} have ended. It has no "
            "figures, because a mean over the episodes that happened to finish is not an estimate."
        )
    if facts.failed_count:
        found.append(
            f"{many(facts.failed_count, 'episode')} failed; the reasons are below. They count as failures in success "
            "rates; the lighter bars show the worst case for every figure with bounds."
        )
    gaps = metrics.get("gaps") or []
    if gaps:
        names = ", ".join(gap["scenario_id"] for gap in gaps[:MOST_GAPS])
        more = f" and {len(gaps) - MOST_GAPS} more" if len(gaps) > MOST_GAPS else ""
        lacking = many(len(gaps), "scenario" if facts.is_driving else "episode")
        found.append(f"{lacking} have fewer completed episodes than planned: {names}{more}.")
    unscored = facts.realism.get("unscored") or []
    if unscored:
        found.append(f"{many(len(unscored), 'scenario')} could not be scored; the reasons are below.")
    spawns = metrics.get("num_failed_spawns")
    if spawns:
        found.append(f"{many(spawns, 'agent')} could not be placed at the start; they are in no figure.")
    free = metrics.get("num_free_successes")
    if free:
        found.append(
            f"{many(free, 'ego')} started at the goal, where every policy succeeds; they are left out of the score and "
            "of completion, goal and time-out rates."
        )
    bare = [figure for figure in facts.figures.values() if figure["value"] is not None and figure["low"] is None]
    if bare:
        reasons = "; ".join(dict.fromkeys(reason for f in bare if (reason := (f.get("note") or "").partition(": ")[2])))
        found.append(
            f"{len(bare)} of {len(facts.figures)} figures have no interval, because there are not enough data"
            f"{f' ({reasons})' if reasons else ''}."
        )
    found += _of_floors(facts)
    if facts.metrics and not facts.references and _expects_references(facts):
        found.append(
            "There are no reference runs (floor and ceiling) beside this run: it was evaluated without them, or copied "
            f"without the folder {FOLDER}/{facts.name}. They show whether these episodes separate good policies "
            "from bad ones."
        )
    sessions = facts.header.get("sessions", ())
    commits = {(session["revision"]["commit"], session["revision"]["is_dirty"]) for session in sessions}
    if len(commits) > 1:
        found.append(f"The run was made in {len(sessions)} sessions, with different code.")
    if any(is_dirty for _, is_dirty in commits):
        found.append("The code had uncommitted changes.")
    if facts.artifact_errors:
        count = many(len(facts.artifact_errors), "picture or other file")
        found.append(f"{count} could not be made; this does not affect the results.")
    return found


def _expects_references(facts: RunFacts) -> bool:
    """Return whether the evaluator of a run has floors and ceilings that its settings do not switch off."""
    is_reference = facts.header.get("role") is not None
    return facts.is_driving and not is_reference and facts.settings.get("references", []) not in ([], ())


def _of_floors(facts: RunFacts) -> list[str]:
    """Return a warning if a policy that must fail does as well as the policy of the run, as far as the data show."""
    summary = facts.settings.get("summary") or {}
    name = str(summary.get("figure", "score"))
    others = [r for r in facts.references if r.header["policy_spec"] != facts.header.get("policy_spec")]
    own, floor = facts.figures.get(name), best(others, FLOOR, name)
    if own is None or own["low"] is None or floor is None:
        return []
    figure = next(f for f in (floor.metrics or {})["figures"] if f["name"] == name)
    if figure["value"] < own["low"]:
        return []
    return [
        f"The floor {floor.header['policy_spec']!r} reaches {value_of(figure)} in {plain_name(name)}: these episodes "
        "do not show that the policy is better."
    ]


def errors(facts: RunFacts) -> Html | None:
    """Return the errors that ended a run, with tracebacks."""
    parts = []
    for error in facts.errors:
        first, _, rest = str(error["error"]).strip().partition("\n")
        trace = error.get("traceback")
        parts += [tag("p", tag("b", first), f" ({moment(error.get('time'))})"), tag("pre", rest) if rest else None]
        parts.append(folded("Traceback", tag("pre", trace)) if trace else None)
    return join(parts) if parts else None


def artifact_errors(facts: RunFacts) -> Html | None:
    """Return the videos, pictures and publications that failed."""
    found = facts.artifact_errors
    if not found:
        return None
    rows = [row(id or "the run", name.replace("_", " "), error) for id, name, error in found[:MOST_ARTIFACT_ERRORS]]
    shown = f" {MOST_ARTIFACT_ERRORS} of {len(found):,} are listed." if len(found) > MOST_ARTIFACT_ERRORS else ""
    note = f"These files could not be made or published. The results do not depend on them.{shown}"
    return join((tag("p", note, class_="note"), table(["episode", "file", "reason"], rows)))


def config(facts: RunFacts) -> Html:
    """Return every setting with its source: first those that were set, then the defaults, folded."""
    origins: Mapping[str, str] = facts.header.get("origins") or {}
    given: list[Html] = []
    defaults: list[Html] = []
    for key, value in leaves(facts.settings):
        source = _source(origins, key)
        cells = [tag("td", text, class_="key") for text in (key, setting(value))]
        line = row(*cells, source or DEFAULT) if origins else row(*cells)
        (given if source else defaults).append(line)
    head = ["setting", "value", "source"]
    if not origins:  # sources were not recorded
        return table(head[:2], defaults)
    return join(
        (table(head, given), folded(f"{many(len(defaults), 'setting')} left at the default", table(head, defaults)))
    )


def origin(facts: RunFacts) -> Html:
    """Return policy, code, machine, times and hashes."""
    header, metrics = facts.header, facts.metrics
    checkpoint = header.get("checkpoint") or {}
    sessions = header.get("sessions") or [{}]
    last: Mapping[str, Any] = sessions[-1]
    versions: Mapping[str, Any] = last.get("versions") or {}
    log: Mapping[str, Any] = header.get("import") or {}
    lines: list[tuple[str, object]] = [
        ("imported from", f"{log['file']} (format {log['format']})" if log else None),
        ("sha256 of the log", log.get("sha256")),
        ("policy", header.get("policy_spec") or facts.policy),
        ("checkpoint", checkpoint.get("path")),
        ("sha256 of the checkpoint", checkpoint.get("sha256")),
        ("trained for", _training(header)),
        ("co-players", ", ".join(_coplayer(one) for one in header.get("coplayers", ())) or None),
        ("scenarios", facts.settings.get("scenarios")),
        ("episodes", f"{facts.episode_count:,} ended of {header['owed']:,} planned"),
        ("egos", f"{metrics['num_agents_evaluated']:,}" if metrics and facts.is_driving else None),
        ("imported" if log else "started", moment(header.get("created"))),
        ("ended", None if log else moment(header.get("ended"))),
        ("run time", None if facts.seconds is None else duration(facts.seconds)),
        ("code", None if log else _revision(last)),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items() if version) or None),
        ("machine", None if log else _machine(last)),
        ("run", f"{facts.run.folder.parent.name}/{facts.run.folder.name}"),
        ("hash of the config", header.get("config_hash")),
        ("hash of the ledger", header.get("ledger_hash")),
    ]
    rows = [row(tag("th", name), tag("td", value, class_="key")) for name, value in lines if value is not None]
    parts: list[object] = [table((), rows, class_="origin")]
    if len(sessions) > 1:
        parts.append(_sessions(sessions))
    return join(parts)


def commands(facts: RunFacts) -> Html:
    """Return commands for a closer look."""
    run = f"{facts.run.folder.parent.name}/{facts.run.folder.name}"
    worst = facts.episodes[0].id if facts.episodes else "EPISODE"
    lines = (
        (f"roadworthy replay {run} {worst} --verify", "run an episode again and compare its motion bit by bit"),
        (f"roadworthy rescore {run}", "compute every figure again from the traces and compare"),
        (
            f"roadworthy audit {run} --episodes 50",
            "run a sample in other batches and orders and count changed outcomes",
        ),
        (f"roadworthy render {run} --failed --view ego,bev,obs", "make videos of the episodes that went wrong"),
    )
    return table((), [row(tag("td", command, class_="key"), what) for command, what in lines], class_="origin")


def _sessions(sessions: list[Mapping[str, Any]]) -> Html:
    rows = [
        row(
            moment(session.get("started")),
            moment(session.get("ended")),
            session.get("status", NONE),
            session.get("host", NONE),
            number_cell(session.get("cores") or NONE),
            _revision(session) or NONE,
        )
        for session in sessions
    ]
    head = ["started", "ended", "status", "machine", tag("th", "cores", class_="number"), "code"]
    return folded(f"{len(sessions)} sessions", table(head, rows))


def _source(origins: Mapping[str, str], key: str) -> str | None:
    """Return the source of a setting: its own, or that of a table that contains it."""
    while key:
        if key in origins:
            return origins[key]
        key = key.rpartition(".")[0]
    return None


def _training(header: Mapping[str, Any]) -> str | None:
    parts = [many(header["step"], "step")] if header.get("step") is not None else []
    parts += [f"epoch {header['epoch']:,}"] if header.get("epoch") is not None else []
    return ", ".join(parts) or None


def _coplayer(one: Mapping[str, Any]) -> str:
    return f"{one['spec']} ({one['sha256'][:12]})" if one.get("sha256") else str(one["spec"])


def _revision(session: Mapping[str, Any]) -> str | None:
    revision = session.get("revision") or {}
    if not revision.get("commit"):
        return None
    return f"{revision['commit']}{', with changes' if revision.get('is_dirty') else ''}"


def _machine(session: Mapping[str, Any]) -> str | None:
    cores = session.get("cores")
    parts = [
        session.get("host"),
        session.get("system"),
        session.get("processor"),
        many(cores, "core") if cores else None,
    ]
    return ", ".join(str(part) for part in parts if part) or None
