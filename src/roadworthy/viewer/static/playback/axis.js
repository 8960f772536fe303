// The time of a playback: frames of all trials in a row. Two traces share one axis, on which each trial is as long as
// its longer version.

/** @typedef {import("../trace.js").Trace} Trace */
/** `step` frames after the start of the trial, and `share` of the way to the next one. @typedef {{trial: number, step: number, share: number}} Place */

export class Axis {
  /** @param {Trace[]} traces */
  constructor(traces) {
    this.dt = traces[0].dt;
    this.trials = Math.max(...traces.map((trace) => trace.trialStarts.length - 1));
    /** The first frame of each trial, and the number of all frames. @type {number[]} */
    this.starts = [0];
    for (let k = 0; k < this.trials; k++) {
      this.starts.push(this.starts[k] + Math.max(...traces.map((trace) => trialLength(trace, k))));
    }
    this.count = this.starts[this.trials];
  }

  /** @param {number} position a frame, maybe between two @returns {Place} */
  place(position) {
    const at = Math.min(Math.max(position, 0), this.count - 1);
    let trial = this.trials - 1;
    while (trial > 0 && this.starts[trial] > at) trial--;
    const step = Math.floor(at) - this.starts[trial];
    const isLast = this.starts[trial] + step + 1 >= this.starts[trial + 1];
    return { trial, step, share: isLast ? 0 : at - Math.floor(at) };
  }

  /** Return the trace's frame at a place: its last one after its trial ended, -1 without this trial. @param {Trace} trace @param {Place} place */
  frameOf(trace, { trial, step }) {
    const length = trialLength(trace, trial);
    return length ? trace.trialStarts[trial] + Math.min(step, length - 1) : -1;
  }

  /** @param {Trace} trace @param {Place} place */
  isOver(trace, { trial, step }) {
    return step >= trialLength(trace, trial);
  }

  /** Return the frame of this axis for a frame of a trace. @param {Trace} trace @param {number} frame */
  positionOf(trace, frame) {
    const trial = trialOf(trace, frame);
    return this.starts[trial] + frame - trace.trialStarts[trial];
  }
}

/** @param {Trace} trace @param {number} trial the number of frames of a trial, 0 if there is no such trial */
export function trialLength(trace, trial) {
  return trial + 1 < trace.trialStarts.length ? trace.trialStarts[trial + 1] - trace.trialStarts[trial] : 0;
}

/** @param {Trace} trace @param {number} frame */
export function trialOf(trace, frame) {
  let trial = trace.trialStarts.length - 2;
  while (trial > 0 && trace.trialStarts[trial] > frame) trial--;
  return trial;
}
