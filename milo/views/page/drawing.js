// Small helpers for elements and canvases: sharp on every screen, coloured by the page's style.
"use strict";

const Drawing = (() => {
  const HUES = 8;

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (key === "class") made.className = value;
      else made.setAttribute(key, value === true ? "" : value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }

  // A canvas that fills its box: `paint(context, width, height)` in CSS pixels.
  class Surface {
    constructor(canvas, paint) {
      this.canvas = canvas;
      this.context = canvas.getContext("2d");
      this.paint = paint;
      this.width = this.height = 0;
      new ResizeObserver(() => this.measure()).observe(canvas);
      this.measure();
    }

    measure() {
      const { clientWidth, clientHeight } = this.canvas;
      const ratio = window.devicePixelRatio || 1;
      if (clientWidth === this.width && clientHeight === this.height) return;
      this.width = clientWidth;
      this.height = clientHeight;
      this.canvas.width = Math.round(clientWidth * ratio);
      this.canvas.height = Math.round(clientHeight * ratio);
      this.draw();
    }

    draw() {
      if (!this.width || !this.height) return;
      const ratio = this.canvas.width / this.width;
      this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.context.clearRect(0, 0, this.width, this.height);
      this.paint(this.context, this.width, this.height);
    }
  }

  let palette = null;

  function colours() {
    if (palette) return palette;
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(`--${name}`).trim();
    palette = {
      ink: read("ink"), soft: read("soft"), line: read("line"), surface: read("surface"),
      reject: read("reject"), accent: read("accent"), heat: [read("heat-0"), read("heat-1")],
      hues: Array.from({ length: HUES }, (_, i) => read(`hue-${i}`)),
      font: style.fontFamily,
    };
    return palette;
  }

  function forgetColours() {
    palette = null;
  }

  // A mark by what became of a candidate: shape and fill tell, colour only helps.
  function mark(context, x, y, size, verdict, colour) {
    context.lineWidth = 1.6;
    context.strokeStyle = context.fillStyle = colour;
    context.beginPath();
    if (verdict === "seed") {
      context.moveTo(x, y - size - 1);
      context.lineTo(x + size + 1, y);
      context.lineTo(x, y + size + 1);
      context.lineTo(x - size - 1, y);
      context.fill();
    } else if (verdict === "admitted") {
      context.arc(x, y, size, 0, 2 * Math.PI);
      context.fill();
    } else if (verdict === "rejected") {
      cross(context, x, y, size * 0.8);
    } else if (verdict === "invalid") {
      context.strokeRect(x - size * 0.8, y - size * 0.8, size * 1.6, size * 1.6);
    } else {
      context.arc(x, y, size * 0.8, 0, 2 * Math.PI);
      context.stroke();
    }
  }

  function cross(context, x, y, arm) {
    context.moveTo(x - arm, y - arm);
    context.lineTo(x + arm, y + arm);
    context.moveTo(x - arm, y + arm);
    context.lineTo(x + arm, y - arm);
    context.stroke();
  }

  function ring(context, x, y, size, colour) {
    context.lineWidth = 2;
    context.strokeStyle = colour;
    context.beginPath();
    context.arc(x, y, size, 0, 2 * Math.PI);
    context.stroke();
  }

  function words(context, text, x, y, { colour, align = "left", size = 11, bold = false, most } = {}) {
    context.font = `${bold ? "600 " : ""}${size}px ${colours().font}`;
    context.fillStyle = colour || colours().soft;
    context.textAlign = align;
    context.textBaseline = "middle";
    context.fillText(most ? fitted(context, text, most) : text, x, y);
  }

  function fitted(context, text, most) {
    if (context.measureText(text).width <= most) return text;
    let length = text.length;
    while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > most) length -= 1;
    return `${text.slice(0, length)}…`;
  }

  return { element, Surface, colours, forgetColours, mark, ring, words, HUES };
})();
