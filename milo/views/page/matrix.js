// Tasks by candidates: a cell is as strongly coloured as the candidate's mean reward on the task.
"use strict";

const Matrix = (() => {
  const HEAD = 16;

  class View {
    constructor(reel, canvas, hooks) {
      this.reel = reel;
      this.hooks = hooks;
      this.position = 0;
      this.split = "search";
      this.everyone = false;
      this.left = 0;
      this.selected = null;
      this.surface = new Drawing.Surface(canvas, (c, w, h) => this.paint(c, w, h));
      this.listen(canvas);
    }

    get gutter() {
      return this.surface && this.surface.width < 560 ? 88 : 130;
    }

    rows() {
      const set = this.reel.splitSet(this.split);
      return set === undefined || set === null ? [] : this.reel.sets[set];
    }

    // The height that the rows need: the page gives the canvas as much.
    height() {
      return HEAD + this.rows().length * this.cell().h + 4;
    }

    cell() {
      const count = this.rows().length;
      return { w: 13, h: count > 40 ? 10 : 15 };
    }

    columns() {
      const members = this.everyone ? null : this.hooks.members();
      const { reel, position } = this;
      const found = [];
      for (let i = 0, n = reel.countAt(position); i < n; i += 1) {
        const candidate = reel.candidates[i];
        if (members && !members.has(candidate.candidate)) continue;
        if (Film.countBefore(candidate.scored[this.split] || [], position)) found.push(candidate);
      }
      return found;
    }

    seek(position) {
      this.position = position;
      this.shown = this.columns();
      this.pan(this.atEnd === false ? this.left : Infinity, false);
      this.surface.draw();
    }

    pan(left, byHand = true) {
      const room = this.surface.width - this.gutter;
      const most = Math.max(0, this.shown.length * this.cell().w - room);
      this.left = Math.min(most, Math.max(0, left));
      if (byHand) this.atEnd = this.left >= most - 1;
    }

    paint(context, width) {
      if (!this.shown) return;
      const { w, h } = this.cell();
      const first = Math.floor(this.left / w);
      const last = Math.min(this.shown.length, Math.ceil((this.left + width - this.gutter) / w));
      const rows = this.rows();
      context.save();
      context.beginPath();
      context.rect(this.gutter, 0, width - this.gutter, this.surface.height);
      context.clip();
      for (let i = first; i < last; i += 1) this.column(context, i, rows);
      context.restore();
      rows.forEach((task, row) => {
        const y = HEAD + row * h + h / 2;
        const most = this.gutter - 12;
        Drawing.words(context, this.reel.tasks[task], 4, y, { size: Math.min(11, h), most });
      });
    }

    column(context, i, rows) {
      const { w, h } = this.cell();
      const candidate = this.shown[i];
      const x = this.gutter + i * w - this.left;
      const scores = this.reel.scoresAt(candidate, this.split, this.position);
      const { heat, line, ink } = Drawing.colours();
      context.fillStyle = this.hooks.colour(candidate.island);
      context.fillRect(x, 4, w - 1, 7);
      rows.forEach((task, row) => {
        const score = scores.get(task);
        const y = HEAD + row * h;
        if (!score) {
          context.fillStyle = line;
          context.fillRect(x + w / 2 - 1, y + h / 2 - 1, 2, 2);
          return;
        }
        context.fillStyle = heat[0];
        context.fillRect(x, y, w - 1, h - 1);
        context.globalAlpha = score[1];
        context.fillStyle = heat[1];
        context.fillRect(x, y, w - 1, h - 1);
        context.globalAlpha = 1;
      });
      if (candidate === this.selected) {
        context.strokeStyle = ink;
        context.lineWidth = 2;
        context.strokeRect(x - 1, 2, w + 1, HEAD + rows.length * h);
      }
    }

    hit(event) {
      const x = event.offsetX - this.gutter + this.left;
      return event.offsetX < this.gutter ? null : this.shown[Math.floor(x / this.cell().w)] ?? null;
    }

    taskAt(event) {
      const row = Math.floor((event.offsetY - HEAD) / this.cell().h);
      const task = this.rows()[row];
      return task === undefined ? "" : this.reel.tasks[task];
    }

    listen(canvas) {
      let grabbed = null;
      canvas.addEventListener("pointerdown", (event) => {
        grabbed = { x: event.clientX, left: this.left, moved: false };
      });
      canvas.addEventListener("pointermove", (event) => {
        if (!grabbed || !event.buttons) {
          const found = this.hit(event);
          this.hooks.hover(found, event, found && this.words(found, this.taskAt(event)));
          return;
        }
        const by = event.clientX - grabbed.x;
        if (Math.abs(by) > 4) grabbed.moved = true;
        if (grabbed.moved) this.pan(grabbed.left - by);
        this.surface.draw();
      });
      canvas.addEventListener("pointerleave", (event) => this.hooks.hover(null, event));
      canvas.addEventListener("click", (event) => {
        const found = grabbed?.moved ? null : this.hit(event);
        grabbed = null;
        if (found) this.hooks.choose(found);
      });
      canvas.addEventListener("wheel", (event) => {
        const sideways = event.shiftKey ? event.deltaY : event.deltaX;
        if (!sideways) return;
        event.preventDefault();
        this.pan(this.left + sideways);
        this.surface.draw();
      }, { passive: false });
      canvas.addEventListener("keydown", (event) => {
        const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!by) return;
        event.preventDefault();
        event.stopPropagation();
        this.pan(this.left + by * 10 * this.cell().w);
        this.surface.draw();
      });
    }

    words(candidate, task) {
      const number = this.reel.tasks.indexOf(task);
      const score = this.reel.scoresAt(candidate, this.split, this.position).get(number);
      if (!task) return null;
      return score ? `${task}: mean reward ${score[1].toFixed(2)} of ${score[0]}` : `${task}: not scored`;
    }
  }

  return { View };
})();
