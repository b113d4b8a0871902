// The board as an SVG: stones, marks that tell what is proven of a point, and points that mouse and keyboard can play on.

import { s } from "./dom.js";
import { vertex } from "./position.js";

const CELL = 40;
const [LEFT, TOP, RIGHT, BOTTOM] = [36, 27, 27, 40];

/** What the marks stand for, in the order of the legend. */
export const MARKS = { win: "wins", loss: "loses", unknown: "not proven", banned: "banned by superko", illegal: "not legal" };

/** The sign of a mark, centred at 0, 0: shape and sign tell them apart, not the colour alone. */
export function mark(kind) {
  const sign = {
    win: () => [s("circle", { r: 12 }), s("path", { d: "M-5.5 0.5 L-1.5 4.5 L6 -4.5" })],
    loss: () => [s("circle", { r: 12 }), s("path", { d: "M-4.5 -4.5 L4.5 4.5 M4.5 -4.5 L-4.5 4.5" })],
    unknown: () => [s("circle", { r: 8 }), s("text", { y: 4 }, "?")],
    banned: () => [s("rect", { x: -12, y: -9, width: 24, height: 18, rx: 3 }), s("text", { y: 4 }, "ko")],
    illegal: () => [s("path", { d: "M-6 0 L6 0" })],
  }[kind];
  return s("g", { class: `mark ${kind}`, "aria-hidden": "true" }, sign());
}

/** A mark on its own, for legends and lists. */
export const badge = (kind) => s("svg", { class: "badge", viewBox: "-13 -13 26 26", "aria-hidden": "true", focusable: "false" }, mark(kind));

export class Board {
  /** `play` and `look` are called with a vertex; `look` with null when none is looked at any more. */
  constructor({ label, play = null, look = null }) {
    this.label = label;
    this.play = play;
    this.look = look;
    this.points = new Map();
    this.element = document.createElement("div");
    this.element.className = "board";
  }

  /** Draws a diagram. `marks` maps a vertex to `{kind, text, note}`; `last` is the vertex of the last move. */
  show({ rows, marks = new Map(), last = null, describe = null }) {
    const shape = `${rows.length}x${rows[0].length}`;
    if (this.shape !== shape) this.build(rows.length, rows[0].length);
    this.shape = shape;
    this.rows = rows;
    this.ghosts.replaceChildren();
    this.stones.replaceChildren();
    rows.forEach((line, row) =>
      [...line].forEach((symbol, col) => {
        const name = vertex(rows.length, row, col);
        const point = this.points.get(name);
        if (symbol !== ".") this.stones.append(this.stone(name, symbol === "X" ? "black" : "white", name === last ? "last" : null));
        const on = symbol === "X" ? "black stone" : symbol === "O" ? "white stone" : "empty";
        const { kind = null, text = null, note = null } = marks.get(name) ?? {};
        point.mark.replaceChildren(...(kind === null ? [] : [mark(kind)]));
        if (note !== null) point.mark.append(s("text", { class: kind === null ? "margin alone" : "margin", y: kind === null ? 5 : 19.5 }, note));
        point.element.setAttribute("aria-label", [name, on, text, describe?.(name)].filter(Boolean).join(", "));
      }),
    );
  }

  /** Stones that are only thought of, in order: `[{vertex, color, text}]`. */
  preview(stones) {
    const shown = stones.filter(({ vertex }) => this.points.has(vertex));
    this.ghosts.replaceChildren(...shown.map(({ vertex, color, text }) => this.stone(vertex, color, "ghost", text)));
    for (const [name, { element }] of this.points) element.classList.toggle("covered", shown.some(({ vertex }) => vertex === name));
  }

  stone(name, color, extra, text = null) {
    const { x, y } = this.points.get(name);
    const ring = extra === "last" ? s("circle", { r: 7, class: "ring" }) : null;
    const number = text === null ? null : s("text", { y: 5 }, text);
    return s("g", { class: `stone ${color} ${extra ?? ""}`, transform: `translate(${x} ${y})` }, s("circle", { r: 18 }), ring, number);
  }

  build(rows, cols) {
    const [right, bottom] = [LEFT + (cols - 1) * CELL, TOP + (rows - 1) * CELL];
    const [width, height] = [right + RIGHT, bottom + BOTTOM];
    const at = (row, col) => ({ x: LEFT + col * CELL, y: TOP + row * CELL });
    this.points.clear();
    const lines = s("g", { class: "lines", "aria-hidden": "true" });
    const labels = s("g", { class: "labels", "aria-hidden": "true" });
    const tick = 7;
    for (let row = 0; row < rows; row++) {
      const { y } = at(row, 0);
      lines.append(s("path", { d: `M${LEFT - (cols === 1 ? tick : 0)} ${y} H${right + (cols === 1 ? tick : 0)}` }));
      labels.append(s("text", { x: 11, y: y + 4 }, String(rows - row)));
    }
    for (let col = 0; col < cols; col++) {
      const { x } = at(0, col);
      lines.append(s("path", { d: `M${x} ${TOP - (rows === 1 ? tick : 0)} V${bottom + (rows === 1 ? tick : 0)}` }));
      labels.append(s("text", { x, y: height - 6 }, vertex(rows, rows - 1, col).replace(/\d+$/, "")));
    }
    const layer = s("g", {});
    for (let row = 0; row < rows; row++) {
      for (let col = 0; col < cols; col++) {
        const name = vertex(rows, row, col);
        const { x, y } = at(row, col);
        const holder = s("g", {});
        const area = s("rect", { x: -CELL / 2, y: -CELL / 2, width: CELL, height: CELL, rx: 4, class: "area" });
        const element = s("g", { class: "point", transform: `translate(${x} ${y})`, "data-vertex": name }, area, holder);
        if (this.play !== null) {
          element.setAttribute("role", "button");
          element.setAttribute("tabindex", this.points.size === 0 ? "0" : "-1");
        } else {
          element.setAttribute("role", "img");
        }
        this.points.set(name, { element, mark: holder, x, y, row, col });
        layer.append(element);
      }
    }
    this.stones = s("g", { "aria-hidden": "true" });
    this.ghosts = s("g", { "aria-hidden": "true" });
    const wood = s("rect", { class: "wood", width, height, rx: 6 });
    const svg = s(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `${this.label}, ${rows} rows and ${cols} columns` },
      wood, lines, labels, this.stones, layer, this.ghosts,
    );
    // Big enough to hit, small enough for a desk.
    svg.style.minWidth = `${Math.round(width * 0.65)}px`;
    svg.style.maxWidth = `${Math.max(width * Math.min(2.2, 620 / height), 160)}px`;
    this.listen(svg);
    this.element.replaceChildren(svg);
  }

  listen(svg) {
    const name = (event) => event.target.closest?.("[data-vertex]")?.dataset.vertex ?? null;
    for (const [type, on] of [["pointerover", true], ["pointerleave", false], ["focusin", true], ["focusout", false]]) {
      svg.addEventListener(type, (event) => this.look?.(on ? name(event) : null));
    }
    if (this.play === null) return;
    svg.addEventListener("click", (event) => {
      const at = name(event);
      if (at === null) return;
      this.rove(at);
      this.play(at);
    });
    svg.addEventListener("keydown", (event) => {
      const at = this.points.get(name(event));
      if (at === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (step !== undefined) {
        const to = [...this.points.values()].find(({ row, col }) => row === at.row + step[0] && col === at.col + step[1]);
        if (to !== undefined) this.rove(to.element.dataset.vertex).focus();
      } else if (event.key === "Enter" || event.key === " ") {
        this.play(name(event));
      } else {
        return;
      }
      event.preventDefault();
    });
  }

  /** Makes one point the one that the tab key reaches. */
  rove(name) {
    for (const [at, { element }] of this.points) element.setAttribute("tabindex", at === name ? "0" : "-1");
    return this.points.get(name).element;
  }
}
