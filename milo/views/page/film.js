// The run as a film. Frames come from the records, already folded: here they are only set,
// appended and merged, and asked for at any position. Position p means: the first p frames.
"use strict";

const Film = (() => {
  const SNAPSHOT_EVERY = 64;
  const COLUMNS = ["n", "reward", "resolved", "tokens", "latency_s"];

  class Island {
    constructor(id, at) {
      this.id = id;
      this.at = at;
      this.log = [];
      this.snapshots = [];
      this.lane = [];
      this.cursor = null;
    }

    add(at, changes) {
      if (this.log.length % SNAPSHOT_EVERY === 0) {
        const last = this.log.length ? this.step(this.log.length) : {};
        this.snapshots.push(copied(last));
      }
      this.log.push({ at, changes });
    }

    // The island's fields at a position, null before it was founded. Not to be changed.
    stateAt(position) {
      const upto = countBefore(this.log, position);
      return upto ? this.step(upto) : null;
    }

    step(upto) {
      let cursor = this.cursor;
      if (!cursor || cursor.upto > upto || upto - cursor.upto > SNAPSHOT_EVERY) {
        const nearest = Math.min(this.snapshots.length - 1, Math.floor(upto / SNAPSHOT_EVERY));
        cursor = { upto: nearest * SNAPSHOT_EVERY, state: copied(this.snapshots[nearest]) };
      }
      for (; cursor.upto < upto; cursor.upto += 1) merge(cursor.state, this.log[cursor.upto].changes);
      this.cursor = cursor;
      return cursor.state;
    }
  }

  function copied(state) {
    return state.members ? { ...state, members: state.members.slice() } : { ...state };
  }

  function merge(state, changes) {
    for (const [name, value] of Object.entries(changes)) {
      if (name === "members+") state.members.push(...value);
      else if (name === "members") state.members = value.slice();
      else state[name] = value;
    }
  }

  // How many of the entries (in order of `at`) lie before the position.
  function countBefore(entries, position) {
    let low = 0;
    let high = entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (entries[middle].at < position) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  class Candidate {
    constructor(facts, number, at) {
      Object.assign(this, facts);
      this.number = number;
      this.at = at;
      this.judgements = [];
      this.scored = { search: [], validation: [], test: [] };
      this.known = {};
      this.fits = new Map();
    }

    judgedAt(position) {
      const upto = countBefore(this.judgements, position);
      return upto ? this.judgements[upto - 1].verdict : null;
    }
  }

  class Reel {
    constructor() {
      this.frames = [];
      this.tasks = [];
      this.sets = [];
      this.candidates = [];
      this.byId = new Map();
      this.islands = new Map();
      this.consultations = [];
      this.moves = [];
      this.voided = [];
      this.facts = [];
      this.roundEnds = [];
      this.bests = [];
      this.objectives = [];
      this.problems = new Map();
    }

    get length() {
      return this.frames.length;
    }

    append(frames) {
      for (const [seq, seconds, kind, operations] of frames) {
        const at = this.frames.length;
        const frame = { seq, seconds, kind, about: "" };
        for (const operation of operations) this.apply(at, operation, frame);
        if (kind === "round_ended") this.roundEnds.push(at + 1);
        this.frames.push(frame);
      }
    }

    apply(at, [name, ...given], frame) {
      const [first, second, third, fourth] = given;
      switch (name) {
        case "tasks": this.tasks.push(...first); break;
        case "set": this.sets.push(first); break;
        case "run": this.facts.push({ at, fields: first }); break;
        case "new": this.propose(at, first); frame.about = first.candidate; break;
        case "score": this.score(at, first); frame.about = first.candidate; break;
        case "judge": this.judge(at, first); frame.about = first.candidate; break;
        case "objective": this.reach(at, first, second); break;
        case "island": this.change(at, first, second, frame); break;
        case "consult":
          this.consultations.push({ at, answer: first, usage: second });
          frame.about = first.island;
          break;
        case "move":
          this.moves.push({ at, island: first, round: second, move: third });
          frame.about = first;
          break;
        case "void":
          this.voided.push({ at, island: first, round: second, move: third, reason: fourth });
          frame.about = first;
          break;
        default: throw new Error(`unknown operation ${name}`);
      }
    }

    propose(at, facts) {
      const candidate = new Candidate(facts, this.candidates.length, at);
      this.candidates.push(candidate);
      this.byId.set(candidate.candidate, candidate);
      const island = this.islands.get(candidate.island);
      if (island) island.lane.push(candidate);
    }

    score(at, entry) {
      const candidate = this.byId.get(entry.candidate);
      (candidate.scored[entry.split] ??= []).push({ at, ...entry });
    }

    // Raw objectives of a candidate's attempts. Which way is better is told by start and target.
    reach(at, candidate, found) {
      for (const [problem, value, start, target] of found) {
        this.objectives.push({ at, candidate, problem, value });
        const known = this.problems.get(problem);
        const up = target > start;
        const better = !known || (up ? start > known.start : start < known.start);
        this.problems.set(problem, { up, target, start: better ? start : known.start });
      }
    }

    // The best so far on a problem at a position: steps [seconds, value, candidate].
    ratchetAt(problem, position) {
      const { up, start } = this.problems.get(problem);
      const steps = [[0, start, ""]];
      const upto = countBefore(this.objectives, position);
      for (const { at, candidate, problem: which, value } of this.objectives.slice(0, upto)) {
        const best = steps.at(-1)[1];
        if (which === problem && (up ? value > best : value < best)) {
          steps.push([this.frames[at].seconds, value, candidate]);
        }
      }
      return steps;
    }

    judge(at, verdict) {
      this.byId.get(verdict.candidate).judgements.push({ at, verdict });
    }

    change(at, id, changes, frame) {
      if (!this.islands.has(id)) this.islands.set(id, new Island(id, at));
      this.islands.get(id).add(at, changes);
      if (!frame.about) frame.about = id;
      if ("best_validation" in changes) {
        this.bests.push({ at, island: id, best: changes.best_validation });
      }
    }

    // The scores of a candidate on a split: task number -> [n, reward, resolved, tokens, latency].
    scoresAt(candidate, split, position) {
      const entries = candidate.scored[split] || [];
      const upto = countBefore(entries, position);
      const known = candidate.known[split];
      if (known && known.upto === upto) return known.scores;
      const scores = new Map();
      for (const entry of entries.slice(0, upto)) {
        this.sets[entry.set].forEach((task, i) => scores.set(task, COLUMNS.map((c) => entry[c][i])));
      }
      candidate.known[split] = { upto, scores };
      return scores;
    }

    // [accuracy, tokens, latency] on a task set, null where a task lacks a valid attempt.
    fitnessAt(candidate, split, set, position) {
      const entries = candidate.scored[split] || [];
      const upto = countBefore(entries, position);
      if (!upto || set === null || set === undefined) return null;
      if (upto === 1 && entries[0].set === set) return entries[0].fitness;
      const key = `${split} ${upto} ${set}`;
      let known = candidate.fits.get(key);
      if (known === undefined) {
        known = this.measure(candidate, split, set, position);
        candidate.fits.set(key, known);
      }
      return known;
    }

    measure(candidate, split, set, position) {
      const tasks = this.sets[set];
      if (!tasks.length) return null;
      const scores = this.scoresAt(candidate, split, position);
      if (tasks.some((task) => !scores.has(task))) return null;
      const rows = tasks.map((task) => scores.get(task));
      return means(...[0, 1, 3, 4].map((column) => rows.map((row) => row[column])));
    }

    // The search set that a candidate is measured on: that of the island that made it.
    searchSetAt(candidate, position) {
      const state = this.islands.get(candidate.island)?.stateAt(position);
      return state ? state.search : this.started()?.search;
    }

    splitSet(split) {
      return this.started()?.[split];
    }

    started() {
      for (const { fields } of this.facts) if (fields.started) return fields.started;
      return null;
    }

    factsAt(position) {
      const found = { started: null, resumes: 0, winner: null, ended: null };
      for (const { at, fields } of this.facts) if (at < position) Object.assign(found, fields);
      return found;
    }

    countAt(position) {
      return countBefore(this.candidates, position);
    }

    islandsAt(position) {
      return [...this.islands.values()].filter((island) => island.at < position);
    }

    membersAt(position) {
      const members = new Set();
      for (const island of this.islandsAt(position)) {
        for (const member of island.stateAt(position).members) members.add(member);
      }
      return members;
    }

    // Where every island that goes on has ended this round: the position of "round r".
    positionOfRound(round) {
      for (const position of this.roundEnds) {
        const open = this.islandsAt(position).map((i) => i.stateAt(position));
        if (open.every((state) => state.closed || state.round >= round)) return position;
      }
      return this.length;
    }

    lastRound() {
      let last = 0;
      for (const island of this.islands.values()) {
        last = Math.max(last, island.stateAt(this.length).round);
      }
      return last;
    }

    secondsAt(position) {
      return position ? this.frames[position - 1].seconds : 0;
    }

    positionOfSeconds(seconds) {
      let low = 0;
      let high = this.frames.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.frames[middle].seconds <= seconds) low = middle + 1;
        else high = middle;
      }
      return low;
    }

    // Everything that the journal says at a position, as plain data.
    stateAt(position) {
      const at = (entries) => entries.slice(0, countBefore(entries, position));
      return {
        run: this.factsAt(position),
        islands: this.islandsAt(position).map((i) => this.plainIsland(i.stateAt(position))),
        candidates: at(this.candidates).map((c) => this.plainCandidate(c, position)),
        consultations: at(this.consultations).map(({ answer, usage }) => ({ answer, usage })),
        moves: at(this.moves).map(({ island, round, move }) => [island, round, move]),
        voided: at(this.voided).map(({ island, round, move }) => [island, round, move]),
      };
    }

    plainIsland(state) {
      return { ...state, search: this.sets[state.search].map((task) => this.tasks[task]) };
    }

    plainCandidate(candidate, position) {
      const scores = {};
      for (const split of Object.keys(candidate.scored)) {
        const known = this.scoresAt(candidate, split, position);
        if (known.size) {
          scores[split] = Object.fromEntries([...known].map(([t, row]) => [this.tasks[t], row]));
        }
      }
      const { candidate: id, island, round, parents, harness, mutator, title, usage } = candidate;
      return {
        candidate: id, island, round, parents, harness, mutator, title, usage,
        patch_lines: candidate.patch_lines,
        tries: candidate.tries,
        verdict: candidate.judgedAt(position),
        scores,
        fitness: this.fitnessAt(candidate, "search", this.searchSetAt(candidate, position), position),
      };
    }
  }

  function means(n, reward, tokens, latency) {
    const attempts = n.reduce((sum, one) => sum + one, 0);
    const weighted = (values) => Numbers.exactSum(values.map((value, i) => value * n[i])) / attempts;
    return [Numbers.exactSum(reward) / reward.length, weighted(tokens), weighted(latency)];
  }

  // Indices of the points that no other beats: `cost` smaller and `gain` larger is better.
  function front(points) {
    const order = points.map((_, i) => i);
    order.sort((a, b) => points[a].cost - points[b].cost || points[b].gain - points[a].gain);
    const kept = [];
    let best = -Infinity;
    for (const i of order) {
      if (points[i].gain > best) {
        kept.push(i);
        best = points[i].gain;
      }
    }
    return kept;
  }

  return { Reel, countBefore, front };
})();
