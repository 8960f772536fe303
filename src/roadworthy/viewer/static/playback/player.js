// The clock of a playback.

const MOST_STEP_S = 0.1; // of one picture: a page that was hidden does not leap

export const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];

export class Player {
  /**
   * @param {number} count frames
   * @param {number} dt seconds of a frame
   * @param {(position: number) => void} draw called for every picture
   * @param {() => void} changed called when playing starts or ends, or the speed changes
   */
  constructor(count, dt, draw, changed) {
    this.count = count;
    this.dt = dt;
    this.draw = draw;
    this.changed = changed;
    this.position = 0;
    this.speed = 1;
    this.isPlaying = false;
    this.isEnded = false;
    this.request = 0;
    this.last = 0;
  }

  /** @param {number} position a frame */
  seek(position) {
    this.position = Math.min(Math.max(position, 0), this.count - 1);
    this.redraw();
  }

  /** @param {number} frames */
  step(frames) {
    this.pause();
    this.seek(Math.round(this.position) + frames);
  }

  toggle() {
    if (this.isPlaying) this.pause();
    else this.play();
  }

  play() {
    if (this.position >= this.count - 1) this.position = 0;
    this.isPlaying = true;
    this.last = performance.now();
    this.redraw();
    this.changed();
  }

  pause() {
    if (!this.isPlaying) return;
    this.isPlaying = false;
    this.position = Math.round(this.position);
    this.redraw();
    this.changed();
  }

  /** @param {number} speed */
  setSpeed(speed) {
    this.speed = speed;
    this.changed();
  }

  /** Go to the next or previous speed. @param {number} by */
  changeSpeed(by) {
    const place = SPEEDS.indexOf(this.speed);
    this.setSpeed(SPEEDS[Math.min(Math.max(place + by, 0), SPEEDS.length - 1)]);
  }

  /** Draw once, with the next picture of the screen. */
  redraw() {
    if (!this.request && !this.isEnded) this.request = requestAnimationFrame((now) => this.tick(now));
  }

  /** @param {number} now ms */
  tick(now) {
    this.request = 0;
    if (this.isEnded) return;
    if (this.isPlaying) {
      const passed = Math.min(Math.max(now - this.last, 0) / 1000, MOST_STEP_S);
      this.last = now;
      this.position = Math.min(this.position + (passed * this.speed) / this.dt, this.count - 1);
      if (this.position >= this.count - 1) {
        this.isPlaying = false;
        this.changed();
      }
    }
    this.draw(this.position);
    if (this.isPlaying) this.redraw();
  }

  end() {
    this.isEnded = true;
    cancelAnimationFrame(this.request);
  }
}
