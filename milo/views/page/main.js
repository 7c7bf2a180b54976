// Puts the page together: loads the film, moves through it, and follows a run that goes on.
"use strict";

(() => {
  const { element } = Drawing;
  const $ = (id) => document.getElementById(id);
  const reel = new Film.Reel();
  const WHOLE_FILM_S = 40;
  const SETTLE_MS = 100;
  const LONGEST_MS = 700;
  let position = 0;
  let members = { at: -1, set: new Set() };
  let playing = null;
  let alive = false;
  let settle = 0;
  let rested = 0;
  let queued = false;
  let turn = 0;

  const hooks = {
    choose: (candidate) => choose(candidate),
    point: (candidate) => point(candidate),
    seek: (at) => seek(at),
    hover: (candidate, event, words) => hover(candidate, event, words),
    colour: (island) => lanes.colour(island),
    closed: () => point(null),
    loosened: () => {},
    members: () => {
      if (members.at !== position) members = { at: position, set: reel.membersAt(position) };
      return members.set;
    },
    link: (candidate) => element("button",
      { type: "button", class: "link", onclick: () => choose(candidate) }, candidate.candidate),
  };

  const lanes = new Lanes.View(reel, $("lanes"), $("lanes-scroll"), $("lanes-room"), hooks);
  const curves = new Charts.Curves(reel, $("curves"), hooks);
  const scatters = [new Charts.Scatter(reel, $("by-tokens"), 1, hooks), new Charts.Scatter(reel, $("by-latency"), 2, hooks)];
  const ratchet = new Charts.Ratchet(reel, $("objective"), hooks);
  const matrix = new Matrix.View(reel, $("matrix"), hooks);
  const table = new Panels.Candidates(reel, $("candidates"), hooks);
  const pane = new Details.Pane(reel, $("details"), hooks);

  // --- moving through the film -----------------------------------------------------------------

  function seek(to) {
    position = Math.max(0, Math.min(reel.length, Math.round(to)));
    $("slider").value = String(position);
    if (!queued) {
      queued = true;
      requestAnimationFrame(paint);
    }
  }

  // The pictures follow at once; tables and words when the film comes to rest for a moment, and
  // now and then while it runs.
  function paint() {
    queued = false;
    say();
    lanes.seek(position);
    curves.seek(position);
    // The two clouds take turns while the film moves; both are right once it rests.
    turn = 1 - turn;
    scatters[turn].seek(position);
    clearTimeout(settle);
    if (performance.now() - rested > LONGEST_MS) rest();
    else settle = setTimeout(rest, SETTLE_MS);
  }

  function rest() {
    rested = performance.now();
    for (const scatter of scatters) if (scatter.position !== position) scatter.seek(position);
    matrix.seek(position);
    ratchet.seek(position);
    objectiveWords();
    table.seek(position);
    Panels.islands(reel, position, $("island-rows"), hooks);
    Panels.notes(reel, position, $("notes"), hooks);
    facts();
    document.documentElement.dataset.position = String(position);
  }

  function say() {
    const frame = reel.frames[position - 1];
    const when = Numbers.clock(reel.secondsAt(position));
    $("when").textContent = `${when} · record ${position} of ${reel.length}`;
    $("what").textContent = frame ? eventWords(frame) : "before the start";
    $("slider").setAttribute("aria-valuetext", `${when}, record ${position} of ${reel.length}, ${$("what").textContent}`);
  }

  function eventWords({ kind, about }) {
    const verdict = kind === "candidate_judged" && reel.byId.get(about)?.judgedAt(position)?.verdict;
    const words = {
      run_started: "the run starts", run_resumed: "the run is resumed", run_ended: "the run ends",
      island_founded: `island ${about} is founded`, candidate_proposed: `${about} is proposed`,
      candidate_scored: `${about} is scored`, candidate_judged: `${about} is ${verdict}`,
      frame_fixed: `the scale of ${about} is fixed`, round_ended: `a round of ${about} ends`,
      move_applied: `a move takes effect on ${about}`, move_voided: `a move can't take effect on ${about}`,
      proposal_sent_back: "a proposal is sent back to its mutator", consulted: `the orchestrator answers for ${about}`,
      island_closed: `island ${about} is closed`, winner_frozen: "the winner is frozen",
    };
    return words[kind] || kind;
  }

  function facts() {
    const { started, winner, ended, resumes } = reel.factsAt(position);
    const best = Math.max(0, ...reel.islandsAt(position).map((i) => i.stateAt(position).best_validation));
    const shown = [
      ["Candidates", String(reel.countAt(position))],
      ["Members", String(hooks.members().size)],
      ["Islands", String(reel.islandsAt(position).length)],
      ["Best validation", `${Numbers.percent(best)} %`],
      ["Interventions", String(Film.countBefore(reel.moves, position))],
      ["Resumed", resumes ? `${resumes} ×` : null],
      ["Winner", winner ? winner.candidate : null],
      ["Ended", ended ? ended.reason : null],
    ].filter(([, value]) => value !== null);
    $("facts").replaceChildren(...shown.map(([name, value]) =>
      element("div", {}, element("dt", {}, name), element("dd", {}, value))));
    if (started) $("model").textContent = `model ${started.model}`;
  }

  function objectiveWords() {
    if (!ratchet.problem) return;
    const { up, start, target } = reel.problems.get(ratchet.problem);
    const [seconds, value, id] = ratchet.steps().at(-1);
    const found = id ? `${value} by ${id} after ${Numbers.clock(seconds)}` : "nothing better yet";
    $("objective-words").textContent =
      `${up ? "Larger" : "Smaller"} is better. Best so far: ${found}; best start ${start}, published ${target}.`;
  }

  function play() {
    if (playing) {
      pause();
      return;
    }
    if (position >= reel.length) seek(0);
    $("play").textContent = "Pause";
    $("play").setAttribute("aria-pressed", "true");
    let last = performance.now();
    let exact = position;
    const step = (now) => {
      const rate = (reel.length / WHOLE_FILM_S) * Number($("speed").value);
      exact = Math.min(reel.length, exact + ((now - last) / 1000) * rate);
      last = now;
      if (Math.floor(exact) !== position) seek(Math.floor(exact));
      if (exact >= reel.length) pause();
      else playing = requestAnimationFrame(step);
    };
    playing = requestAnimationFrame(step);
  }

  function pause() {
    if (playing) cancelAnimationFrame(playing);
    playing = null;
    $("play").textContent = "Play";
    $("play").setAttribute("aria-pressed", "false");
  }

  function byRound(direction) {
    const ends = reel.roundEnds;
    const found = direction > 0
      ? ends.find((at) => at > position)
      : ends.findLast((at) => at < position);
    seek(found ?? (direction > 0 ? reel.length : 0));
  }

  function key(event) {
    const inField = event.target.closest("input:not([type=range]), select, textarea, pre, summary");
    if (inField || event.ctrlKey || event.metaKey || event.altKey) return;
    const onButton = event.target.closest("button");
    const keys = {
      " ": () => onButton ? null : play(), k: play,
      ArrowLeft: () => seek(position - 1), ArrowRight: () => seek(position + 1),
      PageUp: () => byRound(-1), PageDown: () => byRound(1), ",": () => byRound(-1), ".": () => byRound(1),
      Home: () => seek(0), End: () => seek(reel.length),
      "+": () => lanes.zoom(1.3), "-": () => lanes.zoom(1 / 1.3), f: () => lanes.fit(),
    };
    const act = keys[event.key];
    if (!act || (event.key === " " && onButton)) return;
    if (event.key.startsWith("Arrow") || event.key.startsWith("Page") || event.key === "Home" || event.key === "End") {
      if (event.target !== $("slider") && event.target !== document.body) return;
    }
    event.preventDefault();
    if (event.key !== " " && event.key !== "k") pause();
    act();
  }

  // --- choosing a candidate --------------------------------------------------------------------

  function point(candidate) {
    for (const scatter of scatters) {
      scatter.selected = candidate;
      scatter.surface.draw();
    }
    matrix.selected = candidate;
    matrix.surface.draw();
    lanes.select(candidate);
    if (candidate) $("chosen").textContent = described(candidate);
  }

  function choose(candidate) {
    if (candidate.at >= position) seek(candidate.at + 1);
    point(candidate);
    hover(null);
    return pane.open(candidate, position);
  }

  function described(candidate) {
    const verdict = candidate.judgedAt(position)?.verdict ?? "pending";
    return `${candidate.candidate}, round ${candidate.round}, ${verdict}: ${candidate.title}`;
  }

  function hover(candidate, event, words) {
    const tip = $("tip");
    tip.hidden = !candidate;
    if (!candidate) return;
    tip.replaceChildren(element("strong", {}, candidate.candidate), ` ${words || described(candidate).slice(candidate.candidate.length + 2)}`);
    const { innerWidth, innerHeight } = window;
    const { offsetWidth: w, offsetHeight: h } = tip;
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - w - 8))}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - h - 8))}px`;
  }

  // --- new frames ------------------------------------------------------------------------------

  function take(answer) {
    const atEnd = position >= reel.length;
    if (answer.frames.length) {
      reel.append(answer.frames);
      learn();
    }
    alive = answer.alive;
    live(answer);
    if (atEnd && $("follow").checked && answer.frames.length) seek(reel.length);
    else say();
  }

  function learn() {
    $("slider").max = String(reel.length);
    $("go-round").max = String(reel.lastRound());
    learnProblems();
    for (const part of [lanes, table, curves, ratchet, ...scatters]) part.learn();
    lengthen();
  }

  function learnProblems() {
    const select = $("problem");
    const known = new Set([...select.options].map((option) => option.value));
    for (const problem of reel.problems.keys()) {
      if (!known.has(problem)) select.append(element("option", { value: problem }, problem));
    }
    $("objective-card").hidden = !reel.problems.size;
    if (!ratchet.problem && reel.problems.size) ratchet.choose(select.value);
  }

  function lengthen() {
    $("matrix").style.height = `${matrix.height()}px`;
  }

  function live({ run, live: now }) {
    document.title = `${run} – MILO`;
    $("run").textContent = run;
    const ended = reel.factsAt(reel.length).ended;
    const state = ended ? "finished" : alive ? (Data.isServed ? "running" : "running when this was written") : reel.length ? "stopped" : "not started";
    $("state").textContent = state;
    $("state").className = `state ${state.split(" ")[0]}`;
    const busy = alive && now ? `${now.slots_busy} of ${now.slots_total} slots busy, ${now.queued} queued` : "";
    $("load").textContent = busy;
    $("follow-box").hidden = !Data.isServed;
  }

  async function follow() {
    try {
      take(await Data.film(reel.length));
      $("lost").hidden = true;
    } catch {
      $("lost").hidden = false;
    }
    setTimeout(follow, alive ? 1000 : 5000);
  }

  // --- the start -------------------------------------------------------------------------------

  function theme() {
    const root = document.documentElement;
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = root.dataset.theme || (dark ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
    recolour();
  }

  function recolour() {
    Drawing.forgetColours();
    for (const part of [lanes, curves, ratchet, matrix, ...scatters]) part.surface.draw();
  }

  function listen() {
    $("slider").addEventListener("input", () => {
      pause();
      seek(Number($("slider").value));
    });
    $("play").addEventListener("click", play);
    $("round-back").addEventListener("click", () => byRound(-1));
    $("round-on").addEventListener("click", () => byRound(1));
    $("go-round").addEventListener("change", () => seek(reel.positionOfRound(Number($("go-round").value))));
    $("zoom-in").addEventListener("click", () => lanes.zoom(1.4));
    $("zoom-out").addEventListener("click", () => lanes.zoom(1 / 1.4));
    $("zoom-fit").addEventListener("click", () => lanes.fit());
    $("theme").addEventListener("click", theme);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
    $("split").addEventListener("change", () => {
      for (const scatter of scatters) {
        scatter.split = $("split").value;
        scatter.learn();
        scatter.surface.draw();
      }
    });
    $("problem").addEventListener("change", () => {
      ratchet.choose($("problem").value);
      ratchet.seek(position);
      objectiveWords();
    });
    $("matrix-split").addEventListener("change", rematrix);
    $("matrix-all").addEventListener("change", rematrix);
    document.addEventListener("keydown", key);
    addEventListener("resize", () => {
      lanes.resize();
      lengthen();
    });
  }

  function rematrix() {
    matrix.split = $("matrix-split").value;
    matrix.everyone = $("matrix-all").checked;
    lengthen();
    matrix.seek(position);
  }

  async function start() {
    listen();
    const answer = await Data.film(0);
    position = 0;
    take(answer);
    if (lanes.column * lanes.last < lanes.surface.width - lanes.gutter) lanes.fit();
    const asked = Number(location.hash.slice(1)) || reel.length;
    seek(asked);
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    document.documentElement.dataset.ready = String(performance.now());
    if (Data.isServed) setTimeout(follow, alive ? 1000 : 5000);
  }

  // For tests and the console: the state at any position, as plain data.
  window.milo = {
    reel, seek, choose, lanes, matrix, ratchet,
    position: () => position,
    stateAt: (at) => reel.stateAt(at),
    idOf: (id) => reel.byId.get(id),
  };
  start().catch((error) => {
    $("what").textContent = `The run can't be shown: ${error.message}`;
    throw error;
  });
})();
