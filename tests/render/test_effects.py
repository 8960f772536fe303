"""Videos show the fault of collisions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from roadworthy.render.counts import egos
from roadworthy.render.effects import Effects
from roadworthy.render.overlay import Overlay
from roadworthy.render.scoreboard import Heading, Scoreboard
from roadworthy.render.style import BLACK, LIGHT, WHITE
from roadworthy.sim.state import EVENT_AT_FAULT, EVENT_COLLISION, EVENT_GOAL, EVENT_OFF_ROAD


def with_events(trace, agent, *events, **changes):
    """The trace in which an agent has these events in the fifth frame, and nothing else happens."""
    changed = np.zeros_like(trace.events)
    changed[5, agent] = sum(events)
    return replace(trace, events=changed, **changes)


def told(trace):
    """The word beside the agent in the fifth frame, and its color."""
    return [(label.text, label.color) for label in Effects(trace, LIGHT, 0, 2.0).labels(5, 0)]


@pytest.mark.row("CL-1")
def test_a_collision_is_shown_by_who_is_at_fault(scene):
    trace, agent = scene.trace, int(egos(scene.trace)[0])
    assert told(with_events(trace, agent, EVENT_COLLISION, EVENT_AT_FAULT)) == [("at fault", LIGHT.red)]
    assert told(with_events(trace, agent, EVENT_AT_FAULT)) == [("at fault", LIGHT.red)]
    assert told(with_events(trace, agent, EVENT_COLLISION)) == [("contact", LIGHT.amber)]
    assert told(with_events(trace, agent, EVENT_COLLISION, EVENT_OFF_ROAD)) == [("contact, off road", LIGHT.red)]
    assert told(with_events(trace, agent, EVENT_COLLISION, judges_fault=False)) == [("collision", LIGHT.red)]
    assert told(with_events(trace, agent, EVENT_GOAL)) == []


@pytest.mark.row("CL-1")
def test_the_time_line_and_the_card_tell_contacts_apart(scene):
    """The color of the mark where it happened, and of the chips that count it."""
    trace, agent = scene.trace, int(egos(scene.trace)[0])
    overlay, looks = Overlay((960, 540), LIGHT), {}
    for name, events in (("fault", EVENT_COLLISION | EVENT_AT_FAULT), ("contact", EVENT_COLLISION)):
        changed = with_events(trace, agent, events)
        board = Scoreboard(overlay, changed, np.array([agent]), Heading("", ""), trace.frame_count, "")
        marks = {tuple(color) for color in board._marks.colors[:, :3].astype(int).tolist()}
        chips = [board._chips(7)[k] for k in (0, 1)]
        looks[name] = (marks, [chip is overlay.chip(*look) for chip, look in zip(chips, CHIPS[name], strict=True)])
    assert looks == {"fault": ({LIGHT.red}, [True, True]), "contact": ({LIGHT.amber}, [True, True])}


# What the chips look like two frames after the event, between two blinks: text, color, color of the letters.
NONE = (LIGHT.land, LIGHT.faint_ink)
CHIPS = {
    "fault": (("at fault 1", LIGHT.red, WHITE), ("contact 0", *NONE)),
    "contact": (("at fault 0", *NONE), ("contact 1", LIGHT.amber, BLACK)),
}
