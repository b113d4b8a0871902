// The proof explorer: a position move by move, with what is proven of every move.

import { Board, MARKS, badge } from "./board.js";
import { act, arrow, capital, field, h, margin, put, range, setText } from "./dom.js";
import { proofRow, proofsOf } from "./job.js";
import { asked, finished, forget, link, lookUp, ranked, unlink } from "./position.js";
import { state } from "./state.js";

/** Moves of a line that are followed at once. */
const STRETCH = 40;

const WORDS = { win: "wins", loss: "loses", unknown: "not proven" };
const other = (color) => (color === "black" ? "white" : "black");

/** What a mark stands for, for an entry of `next_moves`. */
const kindOf = ({ legal, superko, verdict }) => (legal ? (verdict ?? "unknown") : superko ? "banned" : "illegal");

export function explorer() {
  let position = null;
  let look = null;
  let round = 0;
  const replies = new Map();

  const board = new Board({ label: "Board of the explorer", play: (vertex) => play(vertex), look: (vertex) => describe(vertex) });
  const verdict = h("h2", { class: "verdict", "aria-live": "polite" });
  const known = h("p", { class: "note" });
  const hover = h("p", { class: "hover", "aria-live": "polite" });
  const trail = h("ol", { class: "chips trail", "aria-label": "Moves so far" });
  const lists = h("div", { class: "verdicts" });
  const line = h("ol", { class: "chips", "aria-label": "Principal variation" });
  const lineEnd = h("p", { class: "note" });
  const proofs = h("ul", { class: "plain" });
  const noProof = h("p", { class: "note" });
  const error = h("p", { class: "error", role: "alert", hidden: true });

  const first = arrow("first", "First position", () => go(0, position.moves));
  const back = arrow("back", "Back", () => go(position.at - 1, position.moves));
  const forward = arrow("forward", "Forward", () => go(position.at + 1, position.moves));
  const pass = h("button", { type: "button", class: "pass", onclick: () => play("pass") });
  for (const [type, on] of [["pointerenter", true], ["focus", true], ["pointerleave", false], ["blur", false]]) pass.addEventListener(type, () => describe(on ? "pass" : null));

  const size = h("input", { required: true, autocomplete: "off", placeholder: "4x4" });
  const komi = h("input", { type: "number", step: 1, required: true });
  const fields = [field("Board", size, { pointers: ["/board"] }), field("Komi", komi, { pointers: ["/komi"] })];
  const form = h("form", { class: "filters", "aria-label": "Position to explore" }, fields.map(({ element }) => element), h("button", {}, "Look up"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const same = position !== null && size.value === position.board;
    const { setup = null, moves = [], at = 0 } = same ? position : {};
    forget();
    const to = link("explore", { board: size.value.trim(), komi: Number(komi.value), setup, moves, at });
    if (location.hash === to) show(new URLSearchParams(to.split("?")[1]));
    else location.hash = to;
  });

  const solve = h("a", { class: "button" }, "Submit this position");
  const copy = h("button", { type: "button" }, "Copy link");
  copy.addEventListener("click", () =>
    act(copy, async () => {
      await navigator.clipboard.writeText(location.href);
      setText(copy, "Copied");
      setTimeout(() => setText(copy, "Copy link"), 2000);
    }),
  );
  const legend = h("ul", { class: "legend", "aria-label": "Signs on the board" }, Object.entries(MARKS).map(([kind, text]) => h("li", {}, badge(kind), text)));

  const found = h(
    "div",
    { class: "columns explore" },
    h("section", { class: "card", "aria-label": "Board" }, board.element, hover, h("div", { class: "row" }, first, back, forward, pass, solve, copy), trail, legend),
    h(
      "div",
      {},
      h("section", { class: "card" }, verdict, known, lists),
      h("section", { class: "card" }, h("h2", {}, "Principal variation"), line, lineEnd),
      h("section", { class: "card" }, h("h2", {}, "Proof and certificate"), noProof, proofs),
    ),
  );
  const suggestions = h("ul", { class: "plain" });
  const nothing = h(
    "section",
    { class: "card" },
    h("h2", {}, "Walk through a proof"),
    h("p", {}, "Give a board and a komi above, or pick something that is proven:"),
    suggestions,
  );
  const element = h("div", {}, h("section", { class: "card slim" }, form, error), found, nothing);

  function go(at, moves) {
    location.hash = link("explore", { ...position, moves, at: Math.max(0, Math.min(at, moves.length)) });
  }

  /** Plays a move; one that is on record ahead keeps what follows. */
  function play(move) {
    const entry = look?.next_moves.find((one) => one.move === move);
    if (entry === undefined || !entry.legal) return describe(move);
    const ahead = position.moves[position.at] === move;
    go(position.at + 1, ahead ? position.moves : [...position.moves.slice(0, position.at), move]);
  }

  /** The words and the stones for a point that is looked at. */
  function describe(move) {
    board.preview([]);
    const entry = move === null ? undefined : look?.next_moves.find((one) => one.move === move);
    if (entry === undefined) return setText(hover, look === null ? "" : "Point at a move to see what is proven of it, and what refutes it.");
    const stones = [{ vertex: move, color: look.to_move, text: "1" }];
    const reply = replies.get(move);
    if (reply?.move) stones.push({ vertex: reply.move, color: other(look.to_move), text: "2" });
    if (entry.legal) board.preview(stones);
    setText(hover, capital(`${move} ${words(entry)}`));
  }

  /** "loses: White answers C3.", "is not legal: …". */
  function words(entry) {
    const { move, legal, reason, verdict, bounds } = entry;
    if (!legal) return `is not legal: ${reason}.`;
    const margins = verdict === "unknown" || bounds.lower === bounds.upper ? `, margin ${range(bounds)}` : "";
    const reply = replies.get(move);
    return `${WORDS[verdict] ?? "is legal"}${margins}${reply === undefined ? "" : `: ${reply.text}`}.`;
  }

  async function show(query) {
    const mine = ++round;
    position = unlink(query);
    error.hidden = true;
    fields.forEach((one) => one.show(""));
    nothing.hidden = position !== null;
    found.hidden = true;
    if (position === null) return suggest();
    size.value = position.board;
    position.komi ??= 0.5;
    komi.value = position.komi;
    try {
      const [answer] = await lookUp([asked(position)]);
      if (mine !== round) return;
      if (answer.next_moves === undefined) throw new Error(answer.detail);
      look = answer;
    } catch (problem) {
      if (mine !== round) return;
      setText(error, problem.message);
      error.hidden = false;
      look = null;
      return;
    }
    replies.clear();
    found.hidden = false;
    draw();
    certify(mine);
    await refute(mine);
    await follow(mine);
  }

  function draw() {
    const marks = new Map(
      look.next_moves.map((entry) => [
        entry.move,
        { kind: kindOf(entry), text: words(entry), note: entry.legal && entry.bounds.lower === entry.bounds.upper ? margin(entry.bounds.lower) : null },
      ]),
    );
    board.show({ rows: look.rows, marks, last: position.at > 0 ? position.moves[position.at - 1] : null });
    describe(null);
    const mover = capital(look.to_move);
    const komi = `at komi ${position.komi}`;
    if (look.over) setText(verdict, `The game is over: ${look.verdict} wins ${komi} by the count ${margin(look.bounds.lower)}`);
    else if (look.verdict === "unknown") setText(verdict, `${mover} to move: not proven ${komi}`);
    else if (look.verdict === look.to_move) setText(verdict, `${mover} to move and wins ${komi}`);
    else setText(verdict, `${mover} to move and loses ${komi}`);
    const { lower, upper } = look.bounds;
    setText(known, lower === upper ? `The margin under best play is ${margin(lower)}.` : `The margin under best play is ${margin(lower)} to ${margin(upper)}.`);
    verdict.className = `verdict ${look.verdict}`;
    first.disabled = back.disabled = position.at === 0;
    forward.disabled = position.at === position.moves.length;
    solve.href = link("new", { ...position, moves: position.moves.slice(0, position.at), at: undefined });
    const passing = look.next_moves.find(({ move }) => move === "pass");
    pass.hidden = passing === undefined;
    if (passing !== undefined) put(pass, badge(kindOf(passing)), `Pass ${WORDS[passing.verdict] ?? ""}`);
    const start = h("li", {}, h("a", { href: link("explore", { ...position, at: 0 }), "aria-current": position.at === 0 ? "step" : null }, "Start"));
    put(trail, start, position.moves.map((move, index) => h("li", {}, h("a", { href: link("explore", { ...position, at: index + 1 }), "aria-current": index + 1 === position.at ? "step" : null }, `${index + 1} ${move}`))));
    list();
  }

  /** The moves by what is proven of them: the board in words. */
  function list() {
    const groups = ["win", "unknown", "loss", "banned"].map((kind) => ({ kind, entries: look.next_moves.filter((entry) => kindOf(entry) === kind) }));
    put(
      lists,
      groups.filter(({ entries }) => entries.length > 0).map(({ kind, entries }) =>
        h(
          "div",
          {},
          h("h3", {}, badge(kind), `${capital(MARKS[kind])} (${entries.length})`),
          h("ul", { class: "chips" }, entries.map((entry) => {
            const reply = replies.get(entry.move);
            const answer = reply?.move ? ` → ${reply.move}` : "";
            if (kind === "banned") return h("li", { class: "chip", title: entry.reason }, `${entry.move}: ${entry.reason}`);
            const on = { onpointerenter: () => describe(entry.move), onfocus: () => describe(entry.move), onpointerleave: () => describe(null), onblur: () => describe(null) };
            return h("li", {}, h("button", { type: "button", class: "chip", title: `${entry.move} ${words(entry)}`, onclick: () => play(entry.move), ...on }, `${entry.move}${answer}`));
          })),
        ),
      ),
    );
  }

  /** Finds the reply that wins against each move that loses. */
  async function refute(mine) {
    const losing = look.next_moves.filter(({ legal, verdict }) => legal && verdict === "loss");
    if (losing.length === 0) return;
    const moves = position.moves.slice(0, position.at);
    const after = await lookUp(losing.map(({ move }) => asked({ ...position, moves: [...moves, move], at: undefined }))).catch(() => []);
    if (mine !== round) return;
    const winner = capital(other(look.to_move));
    after.forEach((child, index) => {
      const { move } = losing[index];
      if (child.next_moves === undefined) return;
      const [best] = ranked(child, "win");
      if (child.over) replies.set(move, { move: null, text: `the game ends, ${winner} wins by the count ${margin(child.bounds.lower)}` });
      else if (best === undefined) replies.set(move, { move: null, text: `${winner} wins, but no single reply is on record` });
      else replies.set(move, { move: best.move, text: `${winner} answers ${best.move}` });
    });
    // Not under the fingers of whoever has a move in focus.
    const focused = lists.contains(document.activeElement) ? document.activeElement.textContent : null;
    list();
    if (focused !== null) [...lists.querySelectorAll("button")].find(({ textContent }) => textContent.split(" ")[0] === focused.split(" ")[0])?.focus();
    look.next_moves.filter(({ move }) => replies.has(move)).forEach((entry) => {
      const point = board.points.get(entry.move)?.element;
      point?.setAttribute("aria-label", `${entry.move}, empty, ${words(entry)}`);
    });
  }

  /** Shows a line of proven moves: one that a finished job found and what is on record after it, or what is on record alone. */
  async function follow(mine) {
    put(line);
    if (look.over) return setText(lineEnd, "The game is over.");
    if (look.verdict === "unknown") return setText(lineEnd, "Nothing is proven here, so there is no line to follow.");
    setText(lineEnd, "Following the proof…");
    const start = position.moves.slice(0, position.at);
    try {
      const searched = await searchedLine(start);
      let best = await extend(mine, start, await proven(start, searched));
      if (best !== null && !best.over && searched.length > 0) {
        const other = await extend(mine, start, []);
        if (other?.over || other?.moves.length > best.moves.length) best = other;
      }
      if (mine !== round || best === null) return;
      chips(start, best.moves);
      setText(lineEnd, best.end);
    } catch (problem) {
      if (mine === round) setText(lineEnd, problem.message);
    }
  }

  const after = (start, moves) => asked({ ...position, moves: [...start, ...moves], at: undefined });

  /** The first moves of a line, as far as each is on record for the same winner. */
  async function proven(start, moves) {
    if (moves.length === 0) return [];
    const looks = await lookUp(moves.map((_, index) => after(start, moves.slice(0, index + 1))));
    const open = looks.findIndex(({ verdict }) => verdict !== look.verdict);
    return moves.slice(0, open < 0 ? moves.length : open);
  }

  /** Goes on from a line with moves on record; null if the explorer has moved on. */
  async function extend(mine, start, moves) {
    let [here] = await lookUp([after(start, moves)]);
    for (; mine === round; ) {
      const stop = (end) => ({ moves, end, over: here.over });
      if (here.over) return stop(`Two passes end the game: ${here.verdict} wins by the count ${margin(here.bounds.lower)}.`);
      if (moves.length >= STRETCH) return stop(`The line goes on; these are its first ${moves.length} moves.`);
      if (here.verdict === here.to_move) {
        const [best] = winning(here, [...start, ...moves].at(-1));
        if (best === undefined) return stop(`${capital(here.to_move)} wins here, but no winning move is on record.`);
        moves = [...moves, best.move];
        [here] = await lookUp([after(start, moves)]);
      } else {
        // All moves lose; one is of use if what refutes it is on record.
        const losing = ranked(here, "loss");
        const next = await lookUp(losing.map(({ move }) => after(start, [...moves, move])));
        const at = next.findIndex((one) => one.over || (one.verdict === here.verdict && ranked(one, "win").length > 0));
        if (at < 0) return stop(`Every move loses here, but no reply is on record: ${here.verdict} wins by what is known of the position itself.`);
        [moves, here] = [[...moves, losing[at].move], next[at]];
      }
    }
    return null;
  }

  /** What is left of a line that the search found and that leads through the position after `start`. */
  async function searchedLine(start) {
    const jobs = await finished();
    const lines = jobs.filter(sameStart).flatMap((job) => proofsOf(job).filter(({ proof }) => proof.komi === position.komi).map(({ proof }) => [...job.moves, ...proof.principal_variation]));
    const through = lines.filter((line) => start.every((move, index) => move === line[index]));
    return (through.sort((a, b) => b.length - a.length)[0] ?? []).slice(start.length, start.length + 250);
  }

  const sameStart = (job) => job.board === look.board && JSON.stringify(job.setup ?? null) === JSON.stringify(look.setup ?? null);

  /** The winner's moves, best first: once the opponent has passed, a pass that wins ends the game. */
  function winning(look, last) {
    const moves = ranked(look, "win");
    const pass = last === "pass" ? moves.filter(({ move }) => move === "pass") : [];
    return [...pass, ...moves];
  }

  function chips(start, moves) {
    put(line, moves.map((move, index) => h("li", {}, h("a", { href: link("explore", { ...position, moves: [...start, ...moves], at: start.length + index + 1 }) }, `${index + 1} ${move}`))));
  }

  /** Proofs of finished jobs from which the position's line starts. */
  async function certify(mine) {
    put(proofs);
    setText(noProof, "Looking for a proof of this line…");
    const jobs = await finished();
    if (mine !== round) return;
    const moves = position.moves.slice(0, position.at);
    const before = (job) => job.moves.length <= moves.length && job.moves.every((move, index) => move === moves[index]);
    // Who wins at a komi wins at any that is better.
    const covers = ({ proof }) => (proof.winner === "black" ? proof.komi >= position.komi : proof.winner === "white" && proof.komi <= position.komi);
    const all = jobs.filter((job) => sameStart(job) && before(job)).flatMap((job) => proofsOf(job).filter(covers).map((one) => ({ ...one, plies: job.moves.length })));
    const near = (one) => one.plies * 1000 - Math.abs(one.proof.komi - position.komi) + (one.proof.certificate ? 0.25 : 0);
    const best = all.sort((a, b) => near(b) - near(a)).slice(0, 3);
    put(proofs, best.map(({ id, proof }) => proofRow(id, proof)));
    setText(noProof, best.length === 0 ? "No finished job proves a position of this line at this komi." : "Finished jobs that prove a position on the way here:");
  }

  let suggested = null;
  function suggest() {
    const done = [...state.jobs.values()].filter((job) => job.state === "succeeded" && proofsOf(job).length > 0).slice(0, 8);
    const items = done.flatMap((job) => proofsOf(job).map(({ proof }) => ({ job, proof })));
    const text = ({ job, proof }) => `${proof.board}${job.setup ? ", set up," : ""} at komi ${proof.komi}${job.moves.length > 0 ? ` after ${job.moves.join(" ")}` : ""}: ${proof.winner} wins`;
    const key = items.map(text).join();
    if (key === suggested) return;
    suggested = key;
    const none = h("li", { class: "empty" }, "No proofs yet: ", h("a", { href: "#/new" }, "submit a position"), ", and walk through it here when it is done.");
    put(suggestions, items.length === 0 ? none : items.map((one) => h("li", {}, h("a", { href: link("explore", { board: one.job.board, komi: one.proof.komi, setup: one.job.setup ?? null, moves: one.job.moves }) }, text(one)))));
  }

  return { title: "Proof explorer", element, show, update: () => position === null && suggest() };
}
