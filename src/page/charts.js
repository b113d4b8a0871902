// Charts of a running search, as SVG with the same said in words.

import { duration, h, put, s, short } from "./dom.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [520, 170, 58, 22, 10];

const CHARTS = [
  { title: "Expansions per second", lines: [{ key: "rate", name: "expansions/s", style: "one" }], log: false, format: short },
  {
    title: "Proof and disproof number of the root (logarithmic)",
    lines: [
      { key: "proof", name: "proof number", style: "one" },
      { key: "disproof", name: "disproof number", style: "two" },
    ],
    log: true,
    format: short,
    lacking: "No numbers of the root so far: they come with the server's events while a search runs.",
  },
  { title: "Table hit rate", lines: [{ key: "hits", name: "hit rate", style: "one" }], log: false, percent: true, format: (rate) => `${(100 * rate).toFixed(1)} %` },
];

/** All charts; `show` takes the points of one job, `[{time, rate, proof, disproof, hits}]`, time in seconds of search. */
export function charts() {
  const parts = CHARTS.map((chart) => ({ chart, element: h("figure", { class: "chart" }) }));
  const show = (points) => parts.forEach(({ chart, element }) => draw(element, chart, points));
  return { element: h("div", { class: "charts" }, parts.map(({ element }) => element)), show };
}

function draw(element, chart, points) {
  const lines = chart.lines.map((line) => ({ ...line, points: points.filter((point) => Number.isFinite(point[line.key])) }));
  const all = lines.flatMap((line) => line.points.map((point) => point[line.key]));
  const caption = h("figcaption", {}, chart.title);
  const drawn = lines.some((line) => line.points.length > 1);
  if (!drawn) {
    put(element, caption, h("p", { class: "empty" }, chart.lacking ?? "Drawn while the job runs and this page is open."));
    return;
  }
  const scale = chart.log ? (value) => Math.log10(Math.max(value, 1)) : (value) => value;
  const high = Math.min(Math.max(scale(Math.max(...all)) * 1.15, chart.log ? 1 : 1e-9), chart.percent ? 1 : Infinity);
  const [start, end] = [points[0].time, Math.max(points.at(-1).time, points[0].time + 1)];
  const x = (time) => LEFT + ((time - start) / (end - start)) * (WIDTH - LEFT - 10);
  const y = (value) => HEIGHT - BOTTOM - (Math.min(scale(value), high) / high) * (HEIGHT - BOTTOM - TOP);
  const ticks = [0, 0.5, 1].map((part) => (chart.log ? 10 ** (part * high) : part * high));
  const grid = ticks.map((tick) => [
    s("path", { class: "grid", d: `M${LEFT} ${y(tick)} H${WIDTH - 10}` }),
    s("text", { class: "axis", x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, chart.format(tick)),
  ]);
  const path = (line) => line.points.map((point, index) => `${index === 0 ? "M" : "L"}${x(point.time).toFixed(1)} ${y(point[line.key]).toFixed(1)}`).join("");
  const words = lines
    .filter((line) => line.points.length > 0)
    .map((line) => {
      const values = line.points.map((point) => point[line.key]);
      return `${line.name}: now ${chart.format(values.at(-1))}, least ${chart.format(Math.min(...values))}, most ${chart.format(Math.max(...values))}`;
    });
  const span = `from ${duration(start)} to ${duration(end)} of search`;
  put(
    element,
    caption,
    s(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${chart.title} ${span}. ${words.join(". ")}.` },
      grid.flat(),
      lines.map((line) => s("path", { class: `line ${line.style}`, d: path(line) })),
      s("text", { class: "axis", x: LEFT, y: HEIGHT - 5 }, duration(start)),
      s("text", { class: "axis", x: WIDTH - 10, y: HEIGHT - 5, "text-anchor": "end" }, `${duration(end)} of search`),
    ),
    h("ul", { class: "key" }, lines.map((line, index) => h("li", { class: line.style }, words[index] ?? line.name))),
  );
}
