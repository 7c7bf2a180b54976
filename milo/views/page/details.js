// One candidate in full: why it was made, its patch, its verdict, what it cost, and its traces.
"use strict";

const Details = (() => {
  const { element } = Drawing;
  const LONG = 20000;

  class Pane {
    constructor(reel, root, hooks) {
      this.reel = reel;
      this.root = root;
      this.hooks = hooks;
      this.find = (name) => root.querySelector(`[data-part=${name}]`);
      this.find("close").addEventListener("click", () => this.close());
      root.addEventListener("keydown", (event) => {
        if (event.key === "Escape") this.close();
      });
    }

    get isOpen() {
      return !this.root.hidden;
    }

    async open(candidate, position) {
      if (!this.isOpen) this.before = document.activeElement;
      this.root.hidden = false;
      document.body.classList.add("with-details");
      this.candidate = candidate;
      this.find("title").textContent = candidate.candidate;
      this.find("body").replaceChildren(...this.summary(candidate, position),
        element("p", { class: "soft", role: "status" }, "Loading the patch and the attempts…"));
      this.find("title").focus();
      const found = await Data.details(candidate).catch((error) => ({ fault: String(error) }));
      if (this.candidate !== candidate) return;
      this.find("body").lastChild.remove();
      this.find("body").append(...this.rest(candidate, found));
    }

    close() {
      this.root.hidden = true;
      this.candidate = null;
      document.body.classList.remove("with-details");
      this.hooks.closed();
      if (this.before?.isConnected) this.before.focus();
    }

    summary(one, position) {
      const judged = one.judgedAt(position);
      const verdict = judged ? judged.verdict : "pending";
      const facts = [
        ["Verdict", element("span", { class: `verdict ${verdict}` }, verdict)],
        ["Reason", judged?.reason],
        ["Gain", judged && judged.gain ? `${judged.gain.toFixed(5)} hypervolume, support ${judged.support.toFixed(2)}` : null],
        ["Island, round", `${one.island}, ${one.round}`],
        ["Parents", this.links(one.parents)],
        ["Mutator", one.mutator || "none: a seed"],
        ["Patch", one.parents.length ? `${one.patch_lines} lines, ${one.tries} ${one.tries === 1 ? "try" : "tries"}` : null],
        ["Mutator's cost", usageWords(one.usage)],
        ...["search", "validation", "test"].map((split) => [`On ${split}`, this.fitness(one, split, position)]),
        ["From the seed", this.trail(one)],
        ["Harness", element("code", {}, one.harness.slice(0, 16))],
      ];
      return [element("p", { class: "lead" }, one.title), list(facts)];
    }

    links(ids) {
      return ids.length ? this.join(ids, " and ") : "none";
    }

    join(ids, between) {
      const made = element("span", {});
      ids.forEach((id, i) => {
        const known = this.reel.byId.get(id);
        made.append(i ? between : "", known ? this.hooks.link(known) : id);
      });
      return made;
    }

    trail(one) {
      const path = [];
      for (let at = one; at && path.length < 500; at = this.reel.byId.get(at.parents[0])) {
        path.unshift(at.candidate);
      }
      return path.length > 1 ? this.join(path, " → ") : null;
    }

    fitness(one, split, position) {
      const set = split === "search" ? this.reel.searchSetAt(one, position) : this.reel.splitSet(split);
      const found = this.reel.fitnessAt(one, split, set, position);
      if (!found) return null;
      const [accuracy, tokens, latency] = found;
      return `${Numbers.percent(accuracy)} %, ${Numbers.count(tokens)} tokens, ${Numbers.seconds(latency)} per attempt`;
    }

    rest(one, found) {
      if (!found) return [element("p", { class: "soft" }, "This file holds no more of this candidate; `milo view` shows all.")];
      if (found.fault) return [element("p", { class: "refused" }, found.fault)];
      const { change } = found;
      return [
        list([["Diagnosis", change.diagnosis], ["Hypothesis", change.hypothesis], ["Evidence", change.evidence.join("; ")]]),
        ...found.patches.flatMap(({ parent, patch }) => [
          element("h3", {}, `Patch from ${parent}`), patchView(patch)]),
        element("h3", {}, "Attempts"), this.attempts(found.attempts),
      ];
    }

    attempts(attempts) {
      if (!attempts.length) return element("p", { class: "soft" }, "None.");
      const head = Panels.row(["task", "split", "reward", "status", "tokens", "time", "trace"], true);
      const { number } = Panels;
      const rows = attempts.map((a) => Panels.row([
        a.task, a.split, number(a.reward === null ? Numbers.DASH : a.reward.toFixed(2)),
        [a.status, ...a.flags].join(", "), number(Numbers.count(a.tokens)),
        number(Numbers.seconds(a.latency_s)),
        a.trace ? element("button", { type: "button", class: "link", "aria-label": `trace of ${a.task}`, onclick: (event) => this.trace(a, event.target) }, "open") : Numbers.DASH,
      ]));
      return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Attempts" },
        element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
    }

    async trace(attempt, button) {
      const after = button.closest("tr");
      if (after.nextSibling?.classList?.contains("trace")) {
        after.nextSibling.remove();
        return;
      }
      const found = await Data.trace(attempt.trace).catch((error) => ({ fault: String(error) }));
      const cell = element("td", { colspan: "7" }, ...traceView(attempt, found));
      after.after(element("tr", { class: "trace" }, cell));
    }
  }

  function list(facts) {
    const shown = facts.filter(([, value]) => value !== null && value !== undefined && value !== "");
    return element("dl", {}, ...shown.flatMap(([name, value]) =>
      [element("dt", {}, name), element("dd", {}, value)]));
  }

  function usageWords([uncached, cached, written, output, , calls, price, estimated]) {
    if (!calls) return "no model call";
    const tokens = Numbers.count(uncached + cached + written + output);
    return `${tokens} tokens in ${calls} ${calls === 1 ? "call" : "calls"}, ${Numbers.dollars(price)}${estimated ? ", estimated" : ""}`;
  }

  function patchView(patch) {
    if (!patch) return element("p", { class: "soft" }, "No patch is on record.");
    const lines = patch.split("\n").map((line) => {
      const kind = line.startsWith("+++") || line.startsWith("---") ? "file"
        : line.startsWith("+") ? "plus" : line.startsWith("-") ? "minus"
          : line.startsWith("@@") ? "hunk" : "";
      return element("span", { class: kind }, `${line}\n`);
    });
    return element("pre", { class: "patch", tabindex: "0", role: "region", "aria-label": "Patch" }, ...lines);
  }

  function traceView(attempt, trace) {
    if (!trace) return ["This file leaves this trace out; `milo trace` and `milo view` show it."];
    if (trace.fault) return [trace.fault];
    const made = [];
    if (attempt.detail) made.push(element("p", {}, attempt.detail));
    trace.calls.forEach((call, i) => made.push(callView(call, i)));
    const texts = [["Standard output", trace.stdout], ["Standard error", trace.stderr],
      ["Verifier's report", trace.report],
      ...Object.entries(trace.changed).map(([path, text]) => [`File ${path}`, text])];
    for (const [name, text] of texts) if (text) made.push(folded(name, text));
    return made.length ? made : ["The attempt left nothing to look at."];
  }

  function callView({ said: turns, seconds }, i) {
    const name = `Model call ${i + 1}: ${turns.length} turns, ${Numbers.seconds(seconds)}`;
    return element("details", {}, element("summary", {}, name), ...turns.map((turn) => said(...turn)));
  }

  function said(who, text) {
    return element("div", { class: "said" }, element("strong", {}, who), element("pre", {}, cut(text)));
  }

  function folded(name, text) {
    return element("details", {}, element("summary", {}, name), element("pre", {}, cut(text)));
  }

  function cut(text) {
    return text.length > LONG ? `${text.slice(0, LONG)}\n… ${text.length - LONG} more characters` : text;
  }

  return { Pane };
})();
