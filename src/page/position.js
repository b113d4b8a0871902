// Positions as the page keeps them: `{board, komi, setup, moves, at}`, where only the first `at` moves are on the board. The rules of the
// game are the server's alone; it tells the stones and the legal moves of a position.

import { get, post } from "./api.js";

/** Rows and columns of "3x4", if that is what it is. */
export function size(board) {
  const match = /^\s*(\d{1,2})\s*[xX×]\s*(\d{1,2})\s*$/.exec(board);
  return match === null || match[1] === "0" || match[2] === "0" ? null : { rows: Number(match[1]), cols: Number(match[2]) };
}

/** Column letters leave out I, also in their second round. */
function letter(col) {
  const letters = "ABCDEFGHJKLMNOPQRSTUVWXYZ";
  return (col < 25 ? "" : letters[Math.floor(col / 25) - 1]) + letters[col % 25];
}

/** The vertex in a row, counted from the top, and a column. */
export const vertex = (rows, row, col) => letter(col) + String(rows - row);

/** The part of the position that the server looks up. */
export function asked({ board, komi, setup, moves, at }) {
  return { board, moves: moves.slice(0, at ?? moves.length), ...(komi === null ? {} : { komi }), ...(setup === null ? {} : { setup }) };
}

const known = new Map();

let ended = null;

/** Forgets what was looked up, since more may be proven now. */
export function forget() {
  known.clear();
  ended = null;
}

/** The newest jobs that succeeded, asked for once. */
export function finished() {
  ended ??= get("/v1/jobs?state=succeeded&limit=500&order=newest").then(({ jobs }) => jobs).catch(() => ((ended = null), []));
  return ended;
}

/** Looks positions up, each once. An entry without `next_moves` is the server's problem with it. */
export async function lookUp(positions) {
  const keys = positions.map((position) => JSON.stringify(position));
  const missing = [...new Set(keys.filter((key) => !known.has(key)))];
  if (known.size + missing.length > 4000) known.clear();
  const found = new Map();
  for (let start = 0; start < missing.length; start += 256) {
    const part = missing.slice(start, start + 256);
    const { results } = await post("/v1/positions:batch", { positions: part.map((key) => JSON.parse(key)) });
    results.forEach((result, index) => found.set(part[index], result.position ?? result.error));
  }
  found.forEach((value, key) => known.set(key, value));
  return keys.map((key) => found.get(key) ?? known.get(key));
}

/** A link to a view of a position. */
export function link(view, { board, komi, setup, moves, at }) {
  const parts = [["board", board]];
  if (komi !== null && komi !== undefined) parts.push(["komi", komi]);
  if (setup) {
    parts.push(["rows", setup.rows.join("/")], ["to_move", setup.to_move]);
    if (setup.passes) parts.push(["passes", setup.passes]);
    if (setup.earlier?.length) parts.push(["earlier", setup.earlier.map((rows) => rows.join("/")).join("_")]);
  }
  if (moves.length > 0) parts.push(["moves", moves.join(".")]);
  if (at !== undefined && at !== moves.length) parts.push(["at", at]);
  return `#/${view}?${parts.map(([name, value]) => `${name}=${encodeURIComponent(value).replaceAll("%2F", "/")}`).join("&")}`;
}

/** The position in the query of a link; null without a board. */
export function unlink(query) {
  const text = (name) => query.get(name) ?? "";
  const list = (value, separator) => value.split(separator).filter((part) => part !== "");
  if (text("board") === "") return null;
  const moves = list(text("moves"), /[.,\s]+/);
  const at = /^\d+$/.test(text("at")) ? Math.min(Number(text("at")), moves.length) : moves.length;
  const setup =
    text("rows") === ""
      ? null
      : {
          rows: text("rows").split("/"),
          to_move: text("to_move") || "black",
          passes: text("passes") === "1" ? 1 : 0,
          earlier: list(text("earlier"), "_").map((rows) => rows.split("/")),
        };
  const komi = text("komi") === "" || !Number.isFinite(Number(text("komi"))) ? null : Number(text("komi"));
  return { board: text("board"), komi, setup, moves, at };
}

/** The moves on record, best first for whoever makes them: by what is proven of the margin, stones before the pass, attacks before the rest. */
export function ranked(look, verdict) {
  const side = look.to_move === "black" ? 1 : -1;
  const sure = ({ bounds }) => (side > 0 ? bounds.lower : -bounds.upper);
  const hope = ({ bounds }) => (side > 0 ? bounds.upper : -bounds.lower);
  const lively = ({ move }) => (move === "pass" ? -1 : touching(look, move));
  const order = (a, b) => sure(b) - sure(a) || hope(b) - hope(a) || lively(b) - lively(a);
  return look.next_moves.filter((entry) => entry.legal && entry.verdict === verdict).sort(order);
}

/** How many stones of the opponent are next to a point, corners included. */
function touching({ rows, to_move: mover }, move) {
  const enemy = mover === "black" ? "O" : "X";
  let number = 0;
  rows.forEach((line, row) =>
    [...line].forEach((_, col) => {
      if (vertex(rows.length, row, col) !== move) return;
      for (const r of [row - 1, row, row + 1]) for (const c of [col - 1, col, col + 1]) number += rows[r]?.[c] === enemy ? 1 : 0;
    }),
  );
  return number;
}
