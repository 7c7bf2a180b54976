// The lanes: one per island, its lineage as a tree over rounds, the height of a node its accuracy.
// Only what lies in the window is drawn, so ten thousand candidates cost no more than a hundred.
"use strict";

const Lanes = (() => {
  const TOP = 22;
  const FAR = 34;
  const FINE = 6;

  class View {
    constructor(reel, canvas, scroller, spacer, hooks) {
      this.reel = reel;
      this.scroller = scroller;
      this.spacer = spacer;
      this.hooks = hooks;
      this.position = 0;
      this.column = 22;
      this.left = 0;
      this.narrow = false;
      this.follows = true;
      this.selected = null;
      this.path = new Set();
      this.spans = new Map();
      // A run that has barely begun has no island yet.
      this.order = [];
      this.rank = new Map();
      this.last = 1;
      this.top = 0;
      this.surface = new Drawing.Surface(canvas, (c, w, h) => this.paint(c, w, h));
      scroller.addEventListener("scroll", () => {
        this.top = scroller.scrollTop;
        this.surface.draw();
      });
      this.listen(canvas);
    }

    get gutter() {
      return this.narrow ? 98 : 168;
    }

    get laneHeight() {
      return this.narrow ? 84 : 100;
    }

    // Call when frames came in: lanes, their rank and the height of each node may have changed.
    learn() {
      this.order = [...this.reel.islands.values()];
      this.rank = new Map(this.order.map((island, i) => [island.id, i]));
      for (const island of this.order) this.spans.set(island.id, this.span(island));
      this.last = this.reel.lastRound() + 1;
      this.resize();
    }

    resize() {
      this.narrow = this.scroller.clientWidth < 560;
      const height = Math.max(1, this.order.length) * this.laneHeight + TOP;
      this.spacer.style.height = `${height}px`;
      this.scroller.style.maxHeight = `${height + 2}px`;
    }

    // Lowest and highest accuracy in a lane, and each node's own height in it.
    span(island) {
      let low = 1;
      let high = 0;
      for (const candidate of island.lane) {
        this.place(candidate);
        low = Math.min(low, candidate.height);
        high = Math.max(high, candidate.height);
      }
      if (high < low) return { low: 0, high: 1 };
      const room = Math.max(0.02, (high - low) * 0.08);
      return { low: low - room, high: high + room };
    }

    // The accuracy when it was first scored in full; where it never was, that of its parent.
    place(candidate) {
      const [first] = candidate.scored.search;
      if (first) {
        candidate.height = Numbers.exactSum(first.reward) / Math.max(1, first.reward.length);
      } else {
        candidate.height = this.reel.byId.get(candidate.parents[0])?.height ?? 0;
      }
    }

    seek(position) {
      this.position = position;
      if (this.follows) this.followPlayhead();
      this.surface.draw();
    }

    followPlayhead() {
      const newest = this.reel.candidates[this.reel.countAt(this.position) - 1];
      const room = this.surface.width - this.gutter - 2 * FAR;
      const at = newest ? newest.round * this.column : 0;
      const wanted = Math.max(0, at - room * 0.8);
      if (at - this.left > room * 0.9 || at < this.left) this.left = wanted;
    }

    zoom(factor) {
      const middle = (this.surface.width - this.gutter) / 2;
      const round = (this.left + middle - FAR) / this.column;
      this.column = Math.min(90, Math.max(0.05, this.column * factor));
      this.left = Math.max(0, round * this.column + FAR - middle);
      this.surface.draw();
    }

    fit() {
      const room = this.surface.width - this.gutter - 2 * FAR;
      this.column = Math.min(90, room / Math.max(1, this.last));
      this.left = 0;
      this.surface.draw();
    }

    select(candidate) {
      this.selected = candidate;
      this.path = new Set();
      for (let at = candidate; at && !this.path.has(at); at = this.reel.byId.get(at.parents[0])) {
        this.path.add(at);
      }
      if (candidate) this.reveal(candidate);
      this.surface.draw();
    }

    reveal(candidate) {
      const room = this.surface.width - this.gutter;
      const x = FAR + candidate.round * this.column - this.left;
      if (x < 0 || x > room - FAR) this.left = Math.max(0, candidate.round * this.column - room / 2);
      const rank = this.rank.get(candidate.island);
      if (rank === undefined) return;
      const top = rank * this.laneHeight;
      const { scrollTop, clientHeight } = this.scroller;
      if (top < scrollTop) this.scroller.scrollTop = top;
      if (top + this.laneHeight + TOP > scrollTop + clientHeight) {
        this.scroller.scrollTop = top + this.laneHeight + TOP - clientHeight;
      }
    }

    x(candidate) {
      return this.gutter + FAR + candidate.round * this.column - this.left;
    }

    y(candidate) {
      const rank = this.rank.get(candidate.island);
      if (rank === undefined) return null;
      const { low, high } = this.spans.get(candidate.island);
      const share = (candidate.height - low) / (high - low || 1);
      const inner = this.laneHeight - 26;
      return this.laneTop(rank) + 15 + inner * (1 - share);
    }

    laneTop(rank) {
      return TOP + rank * this.laneHeight - this.top;
    }

    colour(island) {
      return Drawing.colours().hues[(this.rank.get(island) ?? 0) % Drawing.HUES];
    }

    paint(context, width, height) {
      const ranks = this.order.map((_, i) => i).filter((i) => {
        const top = this.laneTop(i);
        return top < height && top + this.laneHeight > TOP;
      });
      this.grid(context, width, height, ranks);
      context.save();
      context.beginPath();
      context.rect(this.gutter, TOP, width - this.gutter, height - TOP);
      context.clip();
      for (const rank of ranks) this.births(context, this.order[rank]);
      for (const rank of ranks) this.edges(context, this.order[rank], width);
      for (const rank of ranks) this.nodes(context, this.order[rank], width);
      this.emphasis(context);
      context.restore();
      this.header(context, width, height);
    }

    // The candidates of a lane that are born and whose round lies in the window.
    seen(island, width) {
      const lane = island.lane;
      const first = (this.left - 2 * FAR) / this.column - 1;
      const last = (this.left + width - this.gutter) / this.column + 1;
      let low = 0;
      let high = lane.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (lane[middle].round < first) low = middle + 1;
        else high = middle;
      }
      const found = [];
      for (let i = low; i < lane.length && lane[i].round <= last; i += 1) {
        if (lane[i].at < this.position) found.push(lane[i]);
      }
      return found;
    }

    grid(context, width, height, ranks) {
      const { line } = Drawing.colours();
      context.strokeStyle = line;
      context.lineWidth = 1;
      context.beginPath();
      for (const rank of ranks) {
        const bottom = Math.round(this.laneTop(rank) + this.laneHeight) - 0.5;
        context.moveTo(0, bottom);
        context.lineTo(width, bottom);
      }
      context.stroke();
      for (const rank of ranks) this.label(context, this.order[rank], rank);
    }

    label(context, island, rank) {
      const { ink, soft } = Drawing.colours();
      const top = this.laneTop(rank);
      const most = this.gutter - 20;
      const state = island.stateAt(this.position);
      context.fillStyle = this.colour(island.id);
      context.globalAlpha = state ? 1 : 0.25;
      context.fillRect(0, top + 4, 4, this.laneHeight - 8);
      Drawing.words(context, island.id, 12, top + 18, { colour: ink, size: 13, bold: true, most });
      const lines = state ? this.facts(state) : ["not founded yet"];
      lines.forEach((text, i) => {
        Drawing.words(context, text, 12, top + 36 + 15 * i, { colour: soft, most });
      });
      context.globalAlpha = 1;
    }

    facts(state) {
      const round = Math.max(0, state.round);
      const best = `best ${Numbers.percent(state.best_validation)} %`;
      const stall = state.closed ? "closed" : `stall ${state.stall}`;
      return this.narrow
        ? [`round ${round}`, best, stall]
        : [state.mutator, `round ${round}, ${state.members.length} members`, `${best}, ${stall}`];
    }

    edges(context, island, width) {
      const fine = this.column >= FINE;
      const solid = new Path2D();
      const faint = new Path2D();
      const grafts = new Path2D();
      for (const candidate of this.seen(island, width)) {
        const [first, ...others] = candidate.parents.map((id) => this.reel.byId.get(id));
        const verdict = candidate.judgedAt(this.position)?.verdict;
        if (first) this.edge(verdict === "admitted" ? solid : faint, first, candidate, fine);
        for (const other of others) this.edge(grafts, other, candidate, fine);
      }
      context.strokeStyle = this.colour(island.id);
      context.lineWidth = fine ? 1.6 : 1;
      context.stroke(solid);
      context.globalAlpha = 0.4;
      context.lineWidth = 1;
      context.stroke(faint);
      context.lineWidth = fine ? 1.6 : 1;
      // Far out the dashes would melt into a line anyway, and they are slow.
      context.globalAlpha = fine ? 0.95 : 0.25;
      context.setLineDash(fine ? [5, 4] : []);
      context.stroke(grafts);
      context.setLineDash([]);
      context.globalAlpha = 1;
    }

    edge(path, parent, child, fine) {
      const fromY = this.y(parent);
      if (fromY === null) return;
      const [fromX, toX, toY] = [this.x(parent), this.x(child), this.y(child)];
      path.moveTo(fromX, fromY);
      if (!fine) {
        path.lineTo(toX, toY);
        return;
      }
      const bend = Math.min(60, Math.max(8, (toX - fromX) / 2));
      path.bezierCurveTo(fromX + bend, fromY, toX - bend, toY, toX, toY);
    }

    nodes(context, island, width) {
      const colour = this.colour(island.id);
      const { reject, surface } = Drawing.colours();
      const fine = this.column >= FINE;
      const size = Math.max(3, Math.min(5.5, this.column / 3));
      const kept = [];
      for (const candidate of this.seen(island, width)) {
        const verdict = candidate.judgedAt(this.position)?.verdict;
        const x = this.x(candidate);
        const y = this.y(candidate);
        if (fine || verdict === "seed") {
          context.fillStyle = surface;
          context.fillRect(x - 2, y - 2, 4, 4);
          Drawing.mark(context, x, y, size, verdict, isLost(verdict) ? reject : colour);
        } else if (verdict === "admitted") {
          kept.push(x, y);
        } else {
          context.fillStyle = reject;
          context.fillRect(x - 1, y - 1, 2, 2);
        }
      }
      context.fillStyle = colour;
      for (let i = 0; i < kept.length; i += 2) context.fillRect(kept[i] - 1.5, kept[i + 1] - 1.5, 3, 3);
    }

    // A speciated island begins at a candidate of another lane: a ribbon leads from there to here.
    births(context, island) {
      const state = island.stateAt(this.position);
      if (!state || !state.source) return;
      const root = this.reel.byId.get(state.root);
      const fromY = root && this.y(root);
      if (fromY === null || fromY === undefined) return;
      const child = island.lane[0];
      const x = this.x(root);
      const round = child ? child.round - 0.6 : root.round + 0.8;
      const toX = Math.max(x + 12, this.gutter + FAR + round * this.column - this.left);
      const toY = this.laneTop(this.rank.get(island.id)) + this.laneHeight / 2;
      context.strokeStyle = this.colour(island.id);
      context.globalAlpha = 0.3;
      context.lineWidth = 6;
      context.beginPath();
      context.moveTo(x, fromY);
      context.bezierCurveTo(x, toY, x, toY, toX, toY);
      context.stroke();
      context.globalAlpha = 1;
      Drawing.mark(context, toX, toY, 5, "seed", this.colour(island.id));
      const born = `born of ${state.source} at ${state.root}`;
      const foot = this.laneTop(this.rank.get(island.id)) + this.laneHeight - 9;
      Drawing.words(context, born, toX, foot, { colour: Drawing.colours().soft });
    }

    emphasis(context) {
      const { ink, accent } = Drawing.colours();
      const chosen = this.selected;
      const winner = this.reel.factsAt(this.position).winner?.candidate;
      const won = winner && this.reel.byId.get(winner);
      if (won && this.y(won) !== null) {
        Drawing.ring(context, this.x(won), this.y(won), 9, accent);
        this.name(context, "winner", this.x(won), this.y(won), accent);
      }
      if (!chosen || chosen.at >= this.position || this.y(chosen) === null) return;
      const trail = new Path2D();
      for (const one of this.path) {
        const parent = this.reel.byId.get(one.parents[0]);
        if (parent && this.y(one) !== null) this.edge(trail, parent, one, true);
      }
      context.strokeStyle = ink;
      context.lineWidth = 2.4;
      context.stroke(trail);
      Drawing.ring(context, this.x(chosen), this.y(chosen), 8, ink);
    }

    // A name over a node, on ground of its own: edges run through most places beside it.
    name(context, text, x, y, colour) {
      const above = y - 18 > TOP + 8;
      const at = above ? y - 18 : y + 18;
      context.font = `600 11px ${Drawing.colours().font}`;
      const wide = context.measureText(text).width + 8;
      context.fillStyle = Drawing.colours().surface;
      context.fillRect(x - wide / 2, at - 8, wide, 16);
      Drawing.words(context, text, x, at, { colour, bold: true, align: "center" });
    }

    header(context, width, height) {
      const { surface, line } = Drawing.colours();
      context.fillStyle = surface;
      context.fillRect(0, 0, width, TOP);
      Drawing.words(context, "island", 12, TOP / 2, {});
      const step = Math.max(1, Numbers.round(60 / this.column));
      const first = Math.ceil(Math.max(0, (this.left - FAR) / this.column) / step) * step;
      for (let round = first; round <= this.last; round += step) {
        const x = this.gutter + FAR + round * this.column - this.left;
        if (x > width) break;
        const label = round === first ? `round ${round}` : String(round);
        Drawing.words(context, label, x, TOP / 2, { align: "center" });
      }
      context.fillStyle = line;
      context.fillRect(0, TOP - 1, width, 1);
      context.fillRect(this.gutter - 1, 0, 1, height);
    }

    // The candidate under a point of the canvas, or null.
    hit(x, y) {
      let found = null;
      let nearest = 12;
      if (x < this.gutter) return null;
      for (const island of this.order) {
        const top = this.laneTop(this.rank.get(island.id));
        if (y < top - 6 || y > top + this.laneHeight + 6) continue;
        for (const candidate of this.seen(island, this.surface.width)) {
          const distance = Math.hypot(this.x(candidate) - x, this.y(candidate) - y);
          if (distance < nearest) [nearest, found] = [distance, candidate];
        }
      }
      return found;
    }

    listen(canvas) {
      let grabbed = null;
      canvas.addEventListener("pointerdown", (event) => {
        grabbed = { x: event.clientX, left: this.left, moved: false };
      });
      canvas.addEventListener("pointermove", (event) => {
        const point = [event.offsetX, event.offsetY];
        if (!grabbed || !event.buttons) {
          this.hooks.hover(this.hit(...point), event);
          return;
        }
        const by = event.clientX - grabbed.x;
        if (Math.abs(by) > 4) grabbed.moved = true;
        if (grabbed.moved) this.pan(grabbed.left - by);
      });
      canvas.addEventListener("pointerleave", (event) => this.hooks.hover(null, event));
      canvas.addEventListener("click", (event) => {
        const moved = grabbed?.moved;
        grabbed = null;
        const found = moved ? null : this.hit(event.offsetX, event.offsetY);
        if (found) this.hooks.choose(found);
      });
      canvas.addEventListener("wheel", (event) => {
        const sideways = event.shiftKey ? event.deltaY : event.deltaX;
        if (event.ctrlKey) this.zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15);
        else if (sideways) this.pan(this.left + sideways);
        else return;
        event.preventDefault();
      }, { passive: false });
      canvas.addEventListener("keydown", (event) => this.key(event));
    }

    pan(left) {
      const most = Math.max(0, (this.last + 1) * this.column - 100);
      this.left = Math.min(most, Math.max(0, left));
      this.follows = false;
      this.hooks.loosened();
      this.surface.draw();
    }

    // Arrow keys walk the tree: left to the parent, right to a child, up and down through the lane.
    key(event) {
      const at = this.selected;
      const known = (one) => one && one.at < this.position;
      const steps = {
        ArrowLeft: () => at && this.reel.byId.get(at.parents[0]),
        ArrowRight: () => at
          ? this.reel.candidates.find((c) => c.parents.includes(at.candidate) && known(c))
          : this.reel.candidates[0],
        ArrowUp: () => this.beside(-1),
        ArrowDown: () => this.beside(1),
      };
      const step = steps[event.key];
      if (!step) {
        if (event.key === "Enter" && at) this.hooks.choose(at);
        return;
      }
      event.preventDefault();
      event.stopPropagation();
      const found = step();
      if (known(found)) this.hooks.point(found);
    }

    beside(by) {
      const lane = this.selected && this.reel.islands.get(this.selected.island)?.lane;
      return lane ? lane[lane.indexOf(this.selected) + by] : this.reel.candidates[0];
    }
  }

  function isLost(verdict) {
    return verdict === "rejected" || verdict === "invalid";
  }

  return { View };
})();
