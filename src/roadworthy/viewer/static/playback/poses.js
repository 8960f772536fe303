// Where the agents of a trace are at a moment, between two frames too.

const LEAP_MPS = 60; // an agent that moves faster than this has been placed elsewhere

/** @typedef {import("../trace.js").Trace} Trace */

export class Poses {
  /** @param {Trace} trace @param {import("./axis.js").Axis} axis */
  constructor(trace, axis) {
    this.trace = trace;
    this.axis = axis;
    this.x = new Float64Array(trace.agents);
    this.y = new Float64Array(trace.agents);
    this.heading = new Float64Array(trace.agents);
    this.present = new Uint8Array(trace.agents);
    this.active = new Uint8Array(trace.agents);
    this.frame = -1;
    this.isOver = false;
  }

  /** Move to a place; return whether the trace has its trial. @param {import("./axis.js").Place} place */
  at(place) {
    const { trace, axis } = this;
    this.frame = axis.frameOf(trace, place);
    this.isOver = axis.isOver(trace, place);
    if (this.frame < 0) {
      this.present.fill(0);
      return false;
    }
    const next = this.isOver ? this.frame : axis.frameOf(trace, { ...place, step: place.step + 1 });
    const most = LEAP_MPS * trace.dt;
    const base = this.frame * trace.agents;
    for (let agent = 0, k = base, n = next * trace.agents; agent < trace.agents; agent++, k++, n++) {
      this.present[agent] = trace.present[k];
      this.active[agent] = trace.active[k];
      let [x, y, heading] = [trace.x[k], trace.y[k], trace.heading[k]];
      if (place.share > 0 && trace.present[n]) {
        const [dx, dy] = [trace.x[n] - x, trace.y[n] - y];
        if (Math.abs(dx) + Math.abs(dy) < most) {
          x += place.share * dx;
          y += place.share * dy;
          let turn = trace.heading[n] - heading;
          turn -= 2 * Math.PI * Math.round(turn / (2 * Math.PI));
          heading += place.share * turn;
        }
      }
      this.x[agent] = x;
      this.y[agent] = y;
      this.heading[agent] = heading;
    }
    return true;
  }
}
