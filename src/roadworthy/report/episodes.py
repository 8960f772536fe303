"""Episodes in a report: the worst ones with pictures, a table of all, and those without a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roadworthy.report.facts import FAULTS, MOST_EPISODES, MOST_FAILED, OTHER_COLLISIONS, Episode, RunFacts
from roadworthy.report.markup import Html, folded, join, number_cell, row, table, tag
from roadworthy.report.pictures import Pictures
from roadworthy.report.realism import REALISM, losses
from roadworthy.report.words import LIKELIHOOD, NONE, digits, many, number, plain_name

UNITS = {"_m": "m", "_rate": "share"}  # by the suffix of the name
SHARES = ("score", "success", "goal_rate", "comfort")
COLUMNS = ("realism", "passed", "score", "success", "goal_rate", "distance_m", "comfort", "return")
FOLDED_AFTER = 25  # rows of the table


def draw(facts: RunFacts, pictures: Pictures) -> dict[str, Html]:
    """Return the pictures of episodes by id, worst first, as far as they exist and the page has space."""
    drawn = ((episode.id, pictures.of(facts, episode)) for episode in facts.episodes)
    return {id: picture for id, picture in drawn if picture is not None}


def cards(facts: RunFacts, drawn: Mapping[str, Html]) -> Html | None:
    """Return a card for each episode with pictures, worst first."""
    found = [_card(facts, episode, drawn[episode.id]) for episode in facts.episodes if episode.id in drawn]
    return tag("div", *found, class_="cards") if found else None


def episode_table(facts: RunFacts, drawn: Mapping[str, Html]) -> Html:
    """Return a table of all completed episodes, worst first; links to episodes without a card point to its rows."""
    columns = [name for name in COLUMNS if any(episode.outcomes.get(name) is not None for episode in facts.episodes)]
    chips = {episode.id: _chips(episode, facts.is_driving) for episode in facts.episodes}
    has_chips = any(chips.values())
    head = [
        "episode",
        *(["what happened"] if has_chips else []),
        *(tag("th", plain_name(name), class_="number") for name in (*columns, "steps")),
    ]
    rows = [
        _row(episode, columns, chips[episode.id] if has_chips else None, has_card=episode.id in drawn)
        for episode in facts.episodes
    ]
    ended = facts.episode_count - facts.failed_count
    note = f"The {MOST_EPISODES:,} worst of {ended:,} are listed." if len(rows) == MOST_EPISODES < ended else None
    title = f"All {many(ended, 'episode')}, worst first"
    if facts.realism:
        note, title = "The first rollout of each.", f"All {many(len(rows), 'scenario')}, least realistic first"
    whole = (tag("p", note, class_="note") if note else None, table(head, rows, is_sortable=True))
    return folded(title, *whole, is_open=len(rows) <= FOLDED_AFTER)


def failed_episodes(facts: RunFacts) -> Html | None:
    """Return the episodes without a result: reasons with counts, then each episode with its error."""
    if not facts.failed_count:
        return None
    note = f"{many(facts.failed_count, 'episode')} of {facts.header['owed']:,} have no result and are in no figure."
    reasons = [row(reason, number_cell(f"{count:,}")) for reason, count in facts.reasons]
    each = [
        folded(episode.id, tag("pre", episode.error or "no reason given"), tag("p", _origin(episode), class_="note"))
        for episode in facts.failed
    ]
    if facts.failed_count > MOST_FAILED:
        each.append(tag("p", f"{MOST_FAILED} of {facts.failed_count:,} are listed.", class_="note"))
    return join(
        (
            tag("p", note, class_="note"),
            table(["reason", tag("th", "episodes", class_="number")], reasons),
            folded("Each of them", *each),
        )
    )


def _card(facts: RunFacts, episode: Episode, picture: Html) -> Html:
    outcome = facts.main_outcome
    value = _value(episode, outcome) if outcome else NONE
    head = tag(
        "div",
        tag("span", value, class_=f"verdict {_shade(episode, outcome)}", title=plain_name(outcome or "")),
        tag("b", episode.id),
        _chips(episode, facts.is_driving),
        class_="card-head",
    )
    least_likely = losses(facts, episode.scenario_id)
    lines = (tag("div", line, class_="meaning") for line in (least_likely, _origin(episode)) if line)
    return tag("article", head, picture, *lines, class_="card", id=episode.anchor)


def _row(episode: Episode, columns: Sequence[str], chips: Html | None, has_card: bool) -> Html:
    name = tag("a", episode.id, href=f"#{episode.anchor}") if has_card else episode.id
    cells = [number_cell(_value(episode, column), episode.outcomes.get(column)) for column in columns]
    steps = number_cell(f"{episode.steps:,}", episode.steps)
    happened = [] if chips is None else [tag("td", chips)]
    return row(tag("td", name), *happened, *cells, steps, id=None if has_card else episode.anchor)


def _chips(episode: Episode, is_driving: bool) -> Html:
    """Return labels for the infractions of egos, or `clean`."""
    chips = []
    for name, words in FAULTS.items():
        found = episode.faults.get(name, 0)
        if found:
            of = f" {found} of {episode.egos}" if episode.egos > 1 else ""
            shade = "middling" if name == OTHER_COLLISIONS else "bad"
            chips.append(tag("span", f"{words}{of}", class_=f"chip {shade}"))
    if episode.outcomes.get("starts_at_goal"):
        chips.append(tag("span", "starts at its goal", class_="chip"))
    if is_driving and not chips and episode.outcomes.get("score") == 1.0:
        chips.append(tag("span", "clean", class_="chip good"))
    return join(chips, " ")


def _origin(episode: Episode) -> str:
    """Return the details that identify an episode."""
    parts = [name.replace("_", " ") for name in episode.tags]
    parts += [many(episode.egos, "ego")] if episode.egos else []
    parts += [many(episode.trials, "trial")] if episode.trials > 1 else []
    parts += [many(episode.steps, "step"), f"seed {episode.seed}"]
    parts += [f"{name} {_short(value)}" for name, value in episode.factors.items() if value is not None]
    return " · ".join(parts)


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else digits(value)


def _value(episode: Episode, name: str) -> str:
    unit = "share" if name in SHARES else next((unit for end, unit in UNITS.items() if name.endswith(end)), "1")
    unit = LIKELIHOOD if name == REALISM else unit
    return number(episode.outcomes.get(name), unit)


def _shade(episode: Episode, outcome: str | None) -> str:
    value = episode.outcomes.get(outcome) if outcome in SHARES else None
    return "" if value is None else "good" if value >= 1.0 else "bad" if value <= 0.0 else "middling"
