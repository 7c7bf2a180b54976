// Curves of the best so far, and accuracy against what it costs, with the front among the members.
"use strict";

const Charts = (() => {
  const DIGITS = 92;
  const PAD = { left: 44, right: 14, top: 12, bottom: 30 };

  // A linear scale of both axes onto the canvas; `low`..`high` in data, both ends shown.
  function frame(context, width, height, { x, y, xWords, yWords, xLabel, left = PAD.left }) {
    const { line, soft } = Drawing.colours();
    const inner = { w: width - left - PAD.right, h: height - PAD.top - PAD.bottom };
    const toX = (value) => left + inner.w * ((value - x.low) / (x.high - x.low || 1));
    const toY = (value) => PAD.top + inner.h * (1 - (value - y.low) / (y.high - y.low || 1));
    context.strokeStyle = line;
    context.lineWidth = 1;
    context.beginPath();
    for (const tick of Numbers.ticks(y.low, y.high, height / 50)) {
      context.moveTo(left, toY(tick));
      context.lineTo(width - PAD.right, toY(tick));
      Drawing.words(context, yWords(tick), left - 6, toY(tick), { align: "right" });
    }
    context.stroke();
    for (const tick of Numbers.ticks(x.low, x.high, inner.w / 90)) {
      Drawing.words(context, xWords(tick), toX(tick), height - PAD.bottom + 11, { align: "center" });
    }
    const at = { align: "right", colour: soft, size: 10 };
    Drawing.words(context, xLabel, width - PAD.right, height - 6, at);
    return { toX, toY };
  }

  function span(values, zero, least = 0.05) {
    let low = zero ? 0 : Infinity;
    let high = -Infinity;
    for (const value of values) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    if (high === -Infinity) return { low: 0, high: 1 };
    if (high <= low) return { low: zero ? 0 : low - least, high: high + least };
    const room = (high - low) * 0.06;
    return { low: zero ? 0 : low - room, high: high + room };
  }

  const asPercent = (value) => `${(100 * value).toFixed(0)} %`;

  // Best validation accuracy so far, by island and over all, against active time.
  class Curves {
    constructor(reel, canvas, hooks) {
      this.reel = reel;
      this.hooks = hooks;
      this.position = 0;
      this.surface = new Drawing.Surface(canvas, (c, w, h) => this.paint(c, w, h));
      canvas.addEventListener("click", (event) => {
        const share = (event.offsetX - PAD.left) / (this.surface.width - PAD.left - PAD.right);
        hooks.seek(reel.positionOfSeconds(share * reel.secondsAt(reel.length)));
      });
    }

    seek(position) {
      this.position = position;
      this.surface.draw();
    }

    learn() {
      this.top = this.reel.bests.reduce((top, { best }) => Math.max(top, best), 0);
    }

    // Island -> steps [seconds, best so far]; "" is the best over all islands.
    steps() {
      const lines = new Map([["", []]]);
      const best = new Map([["", 0]]);
      const upto = Film.countBefore(this.reel.bests, this.position);
      for (const { at, island, best: value } of this.reel.bests.slice(0, upto)) {
        for (const name of [island, ""]) {
          const former = best.get(name) ?? -1;
          if (!lines.has(name)) lines.set(name, []);
          if (value > former || !lines.get(name).length) {
            best.set(name, Math.max(former, value));
            lines.get(name).push([this.reel.frames[at].seconds, best.get(name)]);
          }
        }
      }
      return lines;
    }

    paint(context, width, height) {
      const { reel } = this;
      const high = Math.max(0.05, this.top ?? 0);
      const { toX, toY } = frame(context, width, height, {
        x: { low: 0, high: Math.max(1, reel.secondsAt(reel.length)) },
        y: { low: 0, high: Math.min(1, high * 1.12) },
        xWords: (v) => Numbers.clock(v), yWords: asPercent, xLabel: "active time",
      });
      const now = reel.secondsAt(this.position);
      const lines = this.steps();
      for (const [name, points] of lines) if (name) this.line(context, name, points, now, toX, toY);
      this.line(context, "", lines.get(""), now, toX, toY);
      context.fillStyle = Drawing.colours().accent;
      context.fillRect(toX(now) - 0.5, PAD.top, 1.5, height - PAD.top - PAD.bottom);
    }

    line(context, name, points, now, toX, toY) {
      if (!points.length) return;
      context.strokeStyle = name ? this.hooks.colour(name) : Drawing.colours().ink;
      context.lineWidth = name ? 1.8 : 1.2;
      if (!name) context.setLineDash([2, 3]);
      context.beginPath();
      let last = null;
      for (const [seconds, best] of points) {
        if (last === null) context.moveTo(toX(seconds), toY(best));
        else {
          context.lineTo(toX(seconds), toY(last));
          context.lineTo(toX(seconds), toY(best));
        }
        last = best;
      }
      context.lineTo(toX(now), toY(last));
      context.stroke();
      context.setLineDash([]);
    }
  }

  // The raw objective of one problem against active time: a ratchet, since only a better value
  // moves it. The values are far closer to each other than to zero, so the axis spans them alone.
  class Ratchet {
    constructor(reel, canvas, hooks) {
      this.reel = reel;
      this.hooks = hooks;
      this.position = 0;
      this.problem = null;
      this.surface = new Drawing.Surface(canvas, (c, w, h) => this.paint(c, w, h));
      canvas.addEventListener("click", (event) => {
        const found = this.nearest(event.offsetX);
        if (found) hooks.choose(found);
      });
    }

    seek(position) {
      this.position = position;
      this.surface.draw();
    }

    choose(problem) {
      this.problem = problem;
      this.learn();
      this.surface.draw();
    }

    learn() {
      if (!this.reel.problems.has(this.problem)) return;
      const { target } = this.reel.problems.get(this.problem);
      const whole = this.reel.ratchetAt(this.problem, this.reel.length).map(([, value]) => value);
      this.y = span([...whole, target], false, 1e-9);
    }

    steps() {
      return this.reel.problems.has(this.problem)
        ? this.reel.ratchetAt(this.problem, this.position) : [];
    }

    paint(context, width, height) {
      const steps = this.steps();
      if (!steps.length) return;
      const { reel } = this;
      const { target } = reel.problems.get(this.problem);
      const scale = frame(context, width, height, {
        x: { low: 0, high: Math.max(1, reel.secondsAt(reel.length)) }, y: this.y,
        xWords: (v) => Numbers.clock(v), yWords: (v) => exact(v, this.y), xLabel: "active time",
        left: DIGITS,
      });
      this.scale = scale;
      const { toX, toY } = scale;
      const now = reel.secondsAt(this.position);
      this.published(context, width, toY(target));
      context.strokeStyle = Drawing.colours().accent;
      context.lineWidth = 1.8;
      context.beginPath();
      steps.forEach(([seconds, value], i) => {
        if (i) context.lineTo(toX(seconds), toY(steps[i - 1][1]));
        context[i ? "lineTo" : "moveTo"](toX(seconds), toY(value));
      });
      context.lineTo(toX(now), toY(steps.at(-1)[1]));
      context.stroke();
      for (const [seconds, value, id] of steps.slice(1)) {
        const island = reel.byId.get(id)?.island;
        Drawing.mark(context, toX(seconds), toY(value), 3.5, "admitted", this.hooks.colour(island));
      }
    }

    published(context, width, y) {
      const { soft } = Drawing.colours();
      context.strokeStyle = soft;
      context.lineWidth = 1.2;
      context.setLineDash([5, 4]);
      context.beginPath();
      context.moveTo(DIGITS, y);
      context.lineTo(width - PAD.right, y);
      context.stroke();
      context.setLineDash([]);
      Drawing.words(context, "published", width - PAD.right, y - 8, { align: "right", size: 10 });
    }

    nearest(x) {
      const steps = this.steps().slice(1);
      if (!this.scale || !steps.length) return null;
      const away = ([seconds]) => Math.abs(this.scale.toX(seconds) - x);
      const found = steps.reduce((a, b) => (away(b) < away(a) ? b : a));
      return away(found) < 14 ? this.reel.byId.get(found[2]) : null;
    }
  }

  // As many digits as tell two ticks of an axis apart.
  function exact(value, { low, high }) {
    const digits = Math.max(0, 1 - Math.floor(Math.log10(Math.max(1e-12, high - low))));
    return value.toFixed(Math.min(12, digits));
  }

  // Accuracy against a cost. `cost` is its place in a fitness: 1 tokens, 2 latency.
  class Scatter {
    constructor(reel, canvas, cost, hooks) {
      this.reel = reel;
      this.cost = cost;
      this.hooks = hooks;
      this.position = 0;
      this.split = "search";
      this.selected = null;
      this.shown = [];
      this.surface = new Drawing.Surface(canvas, (c, w, h) => this.paint(c, w, h));
      canvas.addEventListener("click", (event) => {
        const found = this.hit(event.offsetX, event.offsetY);
        if (found) hooks.choose(found);
      });
      canvas.addEventListener("pointermove", (event) => {
        hooks.hover(this.hit(event.offsetX, event.offsetY), event);
      });
      canvas.addEventListener("pointerleave", (event) => hooks.hover(null, event));
    }

    seek(position) {
      this.position = position;
      this.surface.draw();
    }

    // Axes that do not jump while the film is scrubbed: they span the whole run.
    learn() {
      const all = this.reel.candidates.map((c) => this.fitness(c, this.reel.length)).filter(Boolean);
      const costs = all.map((f) => f[this.cost]);
      // From zero where that costs no more than half the width: harnesses often cost much alike.
      this.x = span(costs, Math.min(...costs) < Math.max(...costs) / 2);
      this.y = span(all.map((f) => f[0]), false);
    }

    fitness(candidate, position) {
      const { reel, split } = this;
      const set = split === "search" ? reel.searchSetAt(candidate, position) : reel.splitSet(split);
      return reel.fitnessAt(candidate, split, set, position);
    }

    // What is scored at the position, where it stands on the canvas.
    points({ toX, toY }) {
      const { reel, position, cost } = this;
      const members = this.hooks.members();
      const found = [];
      for (let i = 0, n = reel.countAt(position); i < n; i += 1) {
        const candidate = reel.candidates[i];
        const fitness = this.fitness(candidate, position);
        if (!fitness) continue;
        found.push({
          candidate, member: members.has(candidate.candidate), gain: fitness[0], cost: fitness[cost],
          x: toX(fitness[cost]), y: toY(fitness[0]),
        });
      }
      return found;
    }

    paint(context, width, height) {
      if (!this.x) return;
      const words = this.cost === 1 ? Numbers.count : (v) => `${Number(v.toPrecision(6))} s`;
      const scale = frame(context, width, height, {
        x: this.x, y: this.y, xWords: words, yWords: asPercent,
        xLabel: this.cost === 1 ? "tokens per attempt" : "seconds per attempt",
      });
      this.shown = this.points(scale);
      this.front(context, width, scale);
      this.marks(context);
    }

    marks(context) {
      const { reject, ink } = Drawing.colours();
      const small = this.shown.length > 1500;
      context.fillStyle = reject;
      if (small) {
        for (const { x, y, member } of this.shown) if (!member) context.fillRect(x - 1, y - 1, 2, 2);
      }
      for (const { x, y, member, candidate } of this.shown) {
        if (small && !member) continue;
        const verdict = candidate.judgedAt(this.position)?.verdict;
        const colour = member ? this.hooks.colour(candidate.island) : reject;
        Drawing.mark(context, x, y, small ? 2.5 : 4, verdict, colour);
      }
      const chosen = this.shown.find((p) => p.candidate === this.selected);
      if (chosen) Drawing.ring(context, chosen.x, chosen.y, 8, ink);
    }

    // The front as a staircase: what is reachable at each cost.
    front(context, width, { toX, toY }) {
      const members = this.shown.filter((p) => p.member);
      const kept = Film.front(members).map((i) => members[i]);
      if (!kept.length) return;
      context.strokeStyle = Drawing.colours().soft;
      context.lineWidth = 1.3;
      context.beginPath();
      kept.forEach((p, i) => {
        if (!i) context.moveTo(toX(p.cost), toY(this.y.low));
        else context.lineTo(toX(p.cost), toY(kept[i - 1].gain));
        context.lineTo(toX(p.cost), toY(p.gain));
      });
      context.lineTo(width - PAD.right, toY(kept.at(-1).gain));
      context.stroke();
    }

    hit(x, y) {
      let found = null;
      let nearest = 10;
      for (const point of this.shown) {
        const distance = Math.hypot(point.x - x, point.y - y);
        if (distance < nearest) [nearest, found] = [distance, point.candidate];
      }
      return found;
    }
  }

  return { Curves, Scatter, Ratchet };
})();
