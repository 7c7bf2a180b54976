// Where the page's data come from: packed into this very file, or asked of `milo view`.
"use strict";

const Data = (() => {
  const isServed = document.documentElement.dataset.source === "served";

  async function unpack(id) {
    const holder = document.getElementById(id);
    if (!holder) return null;
    const bytes = Uint8Array.from(atob(holder.textContent.trim()), (c) => c.charCodeAt(0));
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(plain).json();
  }

  async function ask(path) {
    const answer = await fetch(path, { cache: "no-store" });
    if (answer.status === 404) return null;
    if (!answer.ok) throw new Error((await answer.text()) || `${path}: ${answer.status}`);
    return answer.json();
  }

  // { frames, alive, run, live } from a frame number on.
  const film = (from) => (isServed ? ask(`film?from=${from}`) : unpack("film"));

  async function details(candidate) {
    if (isServed) return ask(`details/${encodeURIComponent(candidate.candidate)}`);
    const size = Number(document.documentElement.dataset.chunk);
    const chunk = await unpack(`details-${Math.floor(candidate.number / size)}`);
    return chunk && (chunk[candidate.candidate] ?? null);
  }

  // The trace of an attempt by its hash, null where this file leaves it out.
  const trace = (hash) => (isServed ? ask(`trace/${hash}`) : unpack(`trace-${hash}`));

  return { isServed, film, details, trace };
})();
