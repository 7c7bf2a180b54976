// Figures: exact sums as the records' own fold makes them, and how figures are written.
"use strict";

const Numbers = (() => {
  // The correctly rounded sum (Shewchuk's non-overlapping partials), so that a mean shown here is
  // the very float that the search computed.
  function exactSum(values) {
    const partials = [];
    for (const value of values) {
      let x = value;
      let kept = 0;
      for (const partial of partials) {
        let y = partial;
        if (Math.abs(x) < Math.abs(y)) [x, y] = [y, x];
        const high = x + y;
        const low = y - (high - x);
        if (low !== 0) partials[kept++] = low;
        x = high;
      }
      partials.length = kept;
      partials.push(x);
    }
    return roundPartials(partials);
  }

  function roundPartials(partials) {
    let at = partials.length - 1;
    if (at < 0) return 0;
    let high = partials[at];
    let low = 0;
    while (at > 0) {
      const x = high;
      const y = partials[--at];
      high = x + y;
      low = y - (high - x);
      if (low !== 0) break;
    }
    // A tie is broken by the sign of what lies below it.
    if (at > 0 && low !== 0 && Math.sign(low) === Math.sign(partials[at - 1])) {
      const doubled = low * 2;
      const moved = high + doubled;
      if (moved - high === doubled) return moved;
    }
    return high;
  }

  const DASH = "–";

  // As Python writes it: of two equally near figures the even one (`toFixed` takes the larger).
  function fixed(value, digits) {
    const halves = value * 2 ** (digits + 1);
    const isTie = Number.isInteger(halves) && halves % 2 !== 0;
    if (!isTie) return value.toFixed(digits);
    const scale = 10 ** digits;
    const low = Math.floor(value * scale);
    return ((low % 2 === 0 ? low : low + 1) / scale).toFixed(digits);
  }

  function percent(share, digits = 1) {
    return share === null || share === undefined ? DASH : fixed(100 * share, digits);
  }

  function count(number) {
    if (number === null || number === undefined) return DASH;
    for (const [limit, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
      if (Math.abs(number) >= limit * 0.9995) return fixed(number / limit, 1) + unit;
    }
    return fixed(number, 0);
  }

  function seconds(value) {
    if (value === null || value === undefined) return DASH;
    if (value < 60) return `${fixed(value, value < 10 ? 2 : 1)} s`;
    const whole = Math.round(value);
    const minutes = Math.floor(whole / 60);
    if (minutes < 60) return `${minutes} min ${String(whole % 60).padStart(2, "0")} s`;
    return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
  }

  function clock(value) {
    const whole = Math.max(0, Math.floor(value));
    const pad = (n) => String(n).padStart(2, "0");
    const hours = Math.floor(whole / 3600);
    const rest = `${hours ? pad(Math.floor(whole / 60) % 60) : Math.floor(whole / 60)}:${pad(whole % 60)}`;
    return hours ? `${hours}:${rest}` : rest;
  }

  function dollars(value) {
    if (value === null || value === undefined) return "price unknown";
    return value >= 0.01 || value === 0 ? `$${fixed(value, 2)}` : `$${fixed(value, 4)}`;
  }

  // The next of 1, 2, 5, 10, 20, … at or above a number.
  function round(number) {
    const power = 10 ** Math.floor(Math.log10(number));
    return [1, 2, 5, 10].map((m) => m * power).find((s) => s >= number * 0.999999);
  }

  // Round values for an axis that covers [low, high], at most `most` of them.
  function ticks(low, high, most) {
    const step = round((high - low || 1) / Math.max(1, most));
    const found = [];
    for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(at);
    return found;
  }

  return { exactSum, percent, count, seconds, clock, dollars, round, ticks, DASH };
})();
