// What is said in words beside the pictures: islands, candidates, the orchestrator's notes.
"use strict";

const Panels = (() => {
  const { element } = Drawing;
  const PAGE = 50;
  const NOTES = 40;

  function row(cells, head = false) {
    return element("tr", {}, ...cells.map((cell, i) => {
      const isNumber = cell !== null && typeof cell === "object" && "number" in cell;
      const content = isNumber ? cell.number : cell;
      const name = head || i === 0 ? "th" : "td";
      const scope = head ? "col" : i === 0 ? "row" : null;
      return element(name, { scope, class: isNumber ? "number" : null }, content ?? "");
    }));
  }

  const number = (text) => ({ number: text });

  function chip(reel, island, colour) {
    const dot = element("span", { class: "dot", "aria-hidden": "true" });
    dot.style.background = colour(island);
    return element("span", {}, dot, island);
  }

  function islands(reel, position, body, hooks) {
    body.replaceChildren(...reel.islandsAt(position).map((island) => {
      const state = island.stateAt(position);
      const best = best_of(reel, state, position);
      return row([
        chip(reel, island.id, hooks.colour), state.mutator, number(String(Math.max(0, state.round))),
        number(String(state.members.length)), number(Numbers.percent(state.best_validation)),
        number(String(state.stall)), best ? hooks.link(best) : Numbers.DASH,
        state.closed ? `closed: ${state.closed}` : state.source ? `born of ${state.source}` : "",
      ]);
    }));
  }

  // The member with the highest accuracy on the island's present search set, ties by tokens.
  function best_of(reel, state, position) {
    let found = null;
    let rank = null;
    for (const id of state.members) {
      const candidate = reel.byId.get(id);
      const fitness = candidate && reel.fitnessAt(candidate, "search", state.search, position);
      if (!fitness) continue;
      if (!rank || fitness[0] > rank[0] || (fitness[0] === rank[0] && fitness[1] < rank[1])) {
        [found, rank] = [candidate, fitness];
      }
    }
    return found;
  }

  // The table beside the lanes: everything that they show, in pages, for those who can't see them.
  class Candidates {
    constructor(reel, root, hooks) {
      this.reel = reel;
      this.hooks = hooks;
      this.page = 0;
      this.position = 0;
      this.find = (name) => root.querySelector(`[data-part=${name}]`);
      for (const name of ["island", "verdict", "text"]) {
        this.find(name).addEventListener("input", () => this.turn(-this.page));
      }
      this.find("back").addEventListener("click", () => this.turn(-1));
      this.find("on").addEventListener("click", () => this.turn(1));
    }

    turn(by) {
      this.page += by;
      this.draw();
    }

    learn() {
      const select = this.find("island");
      const known = new Set([...select.options].map((option) => option.value));
      for (const id of this.reel.islands.keys()) {
        if (!known.has(id)) select.append(element("option", { value: id }, id));
      }
    }

    seek(position) {
      this.position = position;
      this.draw();
    }

    matching() {
      const [island, verdict] = [this.find("island").value, this.find("verdict").value];
      const text = this.find("text").value.trim().toLowerCase();
      const found = [];
      for (let i = this.reel.countAt(this.position) - 1; i >= 0; i -= 1) {
        const one = this.reel.candidates[i];
        const judged = one.judgedAt(this.position)?.verdict ?? "pending";
        if (island && one.island !== island) continue;
        if (verdict && judged !== verdict) continue;
        if (text && !`${one.candidate} ${one.title} ${one.mutator}`.toLowerCase().includes(text)) {
          continue;
        }
        found.push(one);
      }
      return found;
    }

    draw() {
      const found = this.matching();
      const pages = Math.max(1, Math.ceil(found.length / PAGE));
      this.page = Math.min(pages - 1, Math.max(0, this.page));
      const shown = found.slice(this.page * PAGE, (this.page + 1) * PAGE);
      this.find("rows").replaceChildren(...shown.map((one) => this.row(one)));
      this.find("where").textContent =
        `${found.length} candidates, page ${this.page + 1} of ${pages}`;
      this.find("back").disabled = this.page === 0;
      this.find("on").disabled = this.page >= pages - 1;
    }

    row(one) {
      const { reel, position } = this;
      const judged = one.judgedAt(position);
      const search = reel.fitnessAt(one, "search", reel.searchSetAt(one, position), position);
      const seen = reel.fitnessAt(one, "validation", reel.splitSet("validation"), position);
      return row([
        this.hooks.link(one), chip(reel, one.island, this.hooks.colour), number(String(one.round)),
        one.parents.join(" + ") || "seed", judged ? judged.verdict : "pending",
        number(Numbers.percent(search?.[0])), number(Numbers.percent(seen?.[0])),
        number(Numbers.count(search?.[1])), number(Numbers.seconds(search?.[2])),
        element("span", { class: "clamp" }, one.title),
      ]);
    }
  }

  function moveWords(move) {
    switch (move.kind) {
      case "reassign": return `Reassign: island ${move.island} gets the mutator ${move.mutator}.`;
      case "graft":
        return `Graft: ${move.donor_candidate} of island ${move.donor} co-parents the next child of island ${move.island}.`;
      case "speciate":
        return `Speciate: the subtree at ${move.root} of island ${move.island} becomes island ${move.new_island} with the mutator ${move.mutator}.`;
      default: return `Curriculum: search set ${move.epoch} of ${move.tasks.length} tasks.`;
    }
  }

  function notes(reel, position, holder, hooks) {
    const upto = Film.countBefore(reel.consultations, position);
    const shown = reel.consultations.slice(Math.max(0, upto - NOTES), upto).reverse();
    const older = upto - shown.length;
    const made = shown.map((one) => note(reel, one, position, hooks));
    if (!made.length) made.push(element("p", { class: "soft" }, "Nothing yet: nobody asked it for a diagnosis."));
    if (older > 0) made.push(element("p", { class: "soft" }, `${older} earlier notes: scrub back to read them.`));
    holder.replaceChildren(...made);
  }

  function note(reel, { at, answer }, position, hooks) {
    const applied = reel.moves.slice(0, Film.countBefore(reel.moves, position));
    const voided = reel.voided.slice(0, Film.countBefore(reel.voided, position));
    const items = answer.moves.map((move) => {
      const text = JSON.stringify(move);
      const isThis = (one) => one.at >= at && JSON.stringify(one.move) === text;
      const [took, lost] = [applied.find(isThis), voided.find(isThis)];
      const when = took ? ` Took effect before round ${took.round} of ${took.island}.`
        : lost ? ` Could not take effect: ${lost.reason}.`
        : reel.factsAt(position).ended ? " Never took effect: the run ended first." : " Waits.";
      return element("li", {}, moveWords(move) + when);
    });
    items.push(...answer.refused.map((refusal) =>
      element("li", { class: "refused" }, `Refused: ${moveWords(refusal.move)} ${refusal.reason}`)));
    if (!answer.moves.length) items.unshift(element("li", {}, "No move."));
    const when = element("button", { class: "link", type: "button", onclick: () => hooks.seek(at + 1) },
      Numbers.clock(reel.frames[at].seconds));
    return element("article", { class: "note" },
      element("h3", {}, chip(reel, answer.island, hooks.colour), ` round ${answer.round}: ${answer.diagnosis} `, when),
      element("p", {}, answer.words), element("ul", {}, ...items));
  }

  return { islands, Candidates, notes, row, number, moveWords };
})();
