// A position set up by clicking, and its submission as a job or a campaign.

import { Problem, post } from "./api.js";
import { Board } from "./board.js";
import { capital, field, h, range, say, setText, showErrors } from "./dom.js";
import { asked, link, lookUp, size, unlink } from "./position.js";
import { accept, refresh } from "./state.js";

const BOARDS = ["3x3", "3x4", "4x4", "4x5", "5x5", "2x6", "2x8", "1x8", "1x12"];
const TOOLS = [["play", "Play moves"], ["X", "Black stones"], ["O", "White stones"], [".", "Remove stones"]];
const KINDS = [
  ["solve", "Who wins", "at one komi"],
  ["value", "Value", "the margin under best play, with both proofs"],
  ["campaign", "Campaign", "the value, and every best first move, in jobs of their own"],
];

/** A group of radio buttons. */
function choice(legend, name, options, change) {
  const inputs = options.map(([value, text, hint]) => {
    const input = h("input", { type: "radio", name, value, id: `${name}-${value}`, onchange: () => change(value) });
    const note = hint === undefined ? null : h("span", { class: "hint" }, ` ${hint}`);
    return { value, input, element: h("div", { class: "option" }, input, h("label", { for: input.id }, text, note)) };
  });
  const element = h("fieldset", { class: "choice" }, h("legend", {}, legend), inputs.map(({ element }) => element));
  const set = (value) => inputs.forEach((one) => (one.input.checked = one.value === value));
  return { element, set, inputs };
}

export function setup() {
  let tool = "play";
  let kind = "value";
  let rows = [];
  let moves = [];
  let look = null;
  let round = 0;

  const text = (attributes = {}) => h("input", { autocomplete: "off", spellcheck: "false", ...attributes });
  const boardInput = text({ required: true, list: "boards", value: "4x4" });
  const boards = h("datalist", { id: "boards" }, BOARDS.map((value) => h("option", { value })));
  const boardField = field("Board", boardInput, { pointers: ["/board"], hint: "Rows x columns: up to 8x8, or long ones such as 1x12." });
  const komiField = field("Komi", h("input", { type: "number", step: 1, value: 0.5 }), { pointers: ["/komi"], hint: "Points for White, a half-integer such as 1.5." });
  const movesField = field("Moves from the start", text({ placeholder: "B2 C3 pass" }), { pointers: ["/moves"] });
  const passed = field("The last move was a pass", h("input", { type: "checkbox" }), { pointers: ["/setup/passes"], inline: true });
  const earlier = field("Earlier boards that may not recur", h("textarea", { rows: 2, spellcheck: "false", placeholder: "X.O/.../..." }), {
    pointers: ["/setup/earlier"],
    hint: "One a line, rows from the top with / between them: X black, O white, . empty.",
  });
  const label = field("Label", text({ maxlength: 200 }), { pointers: ["/label"], hint: "To find it by." });
  const priority = field("Priority", h("input", { type: "number", step: 1, value: 0 }), { pointers: ["/priority"], hint: "Higher goes first." });
  const expansions = field("Limit of expansions", text({ inputmode: "numeric" }), { pointers: ["/limits/expansions"] });
  const seconds = field("Limit of time, in seconds", text({ inputmode: "decimal" }), { pointers: ["/limits/time_seconds"] });
  const memory = field("Limit of memory, in bytes", text({ inputmode: "numeric" }), { pointers: ["/limits/memory_bytes", "/limits"] });
  const certificate = field("Write a certificate", h("input", { type: "checkbox", checked: true }), { pointers: ["/certificate"], inline: true });
  const verify = field("Have the checker judge it", h("input", { type: "checkbox", checked: true }), { pointers: ["/verify"], inline: true });
  const split = field("Split the proofs at plies", h("select", {}, [0, 1, 2, 3].map((plies) => h("option", { value: plies }, String(plies)))), { pointers: ["/split"], hint: "0: one job a proof." });
  const allMoves = field("Find every best first move", h("input", { type: "checkbox", checked: true }), { pointers: ["/all_moves"], inline: true });
  const fields = [boardField, komiField, movesField, passed, earlier, label, priority, expansions, seconds, memory, certificate, verify, split, allMoves];

  const tools = choice("A click on the board", "tool", TOOLS, (value) => (tool = value));
  const turn = choice("Side to move at the start", "turn", [["black", "Black"], ["white", "White"]], () => changed());
  const kinds = choice("What to find out", "kind", KINDS, (value) => ((kind = value), adapt(), changed()));
  turn.set("black");
  tools.set(tool);
  kinds.set(kind);

  const board = new Board({ label: "Board of the new position", play: (vertex) => click(vertex) });
  const status = h("p", { class: "hover", "aria-live": "polite" });
  const wrong = h("p", { class: "error", role: "alert", hidden: true });
  const atSetup = { pointers: ["/setup"], show: (words) => (setText(wrong, words), (wrong.hidden = words === "")) };
  const explore = h("a", { class: "button" }, "Explore");
  const pass = h("button", { type: "button", onclick: () => play("pass") }, "Pass");
  const undo = h("button", { type: "button" }, "Undo move");
  undo.addEventListener("click", () => ((moves = moves.slice(0, -1)), changed()));
  const clear = h("button", { type: "button" }, "Clear board");
  clear.addEventListener("click", () => (empty(), changed()));

  const general = h("p", { class: "error", role: "alert", hidden: true });
  const submit = h("button", { class: "primary" }, "Submit");
  const history = h("details", {}, h("summary", {}, "Superko history before the start"), passed.element, earlier.element);
  const ofCampaign = h("div", { class: "pair" }, split.element, allMoves.element);
  const form = h(
    "form",
    { class: "card", "aria-label": "Job", novalidate: true },
    h("h2", {}, "Question"),
    kinds.element,
    h("div", { class: "pair" }, boardField.element, komiField.element),
    boards,
    movesField.element,
    ofCampaign,
    h("div", { class: "pair" }, label.element, priority.element),
    h("details", {}, h("summary", {}, "Limits"), h("div", { class: "pair" }, expansions.element, seconds.element, memory.element)),
    h("div", { class: "pair" }, certificate.element, verify.element),
    general,
    h("p", { class: "row" }, submit),
  );
  const element = h(
    "div",
    { class: "columns setup" },
    h("section", { class: "card", "aria-label": "Position" }, board.element, status, wrong, h("div", { class: "row" }, pass, undo, clear, explore), tools.element, turn.element, history),
    form,
  );

  boardInput.addEventListener("change", () => (empty(), changed()));
  komiField.control.addEventListener("input", () => changed());
  movesField.control.addEventListener("change", () => ((moves = movesField.control.value.split(/[\s,]+/).filter(Boolean)), changed()));
  passed.control.addEventListener("change", () => changed());
  earlier.control.addEventListener("change", () => changed());
  certificate.control.addEventListener("change", () => adapt());

  function empty() {
    const shape = size(boardInput.value) ?? { rows: 0, cols: 0 };
    rows = Array.from({ length: Math.min(shape.rows, 64) }, () => ".".repeat(Math.min(shape.cols, 64)));
    moves = [];
  }

  function adapt() {
    komiField.element.hidden = kind !== "solve";
    ofCampaign.hidden = kind !== "campaign";
    verify.element.hidden = !certificate.control.checked;
  }

  /** The start diagram, unless it is the empty board as every game begins. */
  function start() {
    const to_move = turn.inputs.find(({ input }) => input.checked)?.value ?? "black";
    const boards = earlier.control.value.split("\n").map((one) => one.trim()).filter(Boolean).map((one) => one.split("/"));
    const passes = passed.control.checked ? 1 : 0;
    const plain = rows.every((row) => /^\.*$/.test(row)) && to_move === "black" && passes === 0 && boards.length === 0;
    return plain ? null : { rows, to_move, passes, ...(boards.length > 0 ? { earlier: boards } : {}) };
  }

  /** What stands in a number's field, as it is where it is no number: the server says what is wrong with it. */
  const figure = (input) => (input.value !== "" && Number.isFinite(Number(input.value)) ? Number(input.value) : input.value === "" ? null : input.value);

  const position = () => ({ board: boardInput.value.trim(), komi: kind === "solve" ? figure(komiField.control) : null, setup: start(), moves });

  function play(move) {
    const entry = look?.next_moves?.find((one) => one.move === move);
    if (entry !== undefined && !entry.legal) return setText(status, `${move} is not legal: ${entry.reason}.`);
    if (entry === undefined) return setText(status, look?.over ? "The game is over: two passes end it." : `${move} is occupied.`);
    moves = [...moves, move];
    changed();
  }

  function click(vertex) {
    if (tool === "play") return play(vertex);
    const { row, col } = board.points.get(vertex);
    if (moves.length > 0) {
      // The stones as they stand become the start; the moves that led there go.
      rows = [...(look?.rows ?? rows)];
      turn.set(look?.to_move ?? "black");
      moves = [];
      say("The position on the board is the start now; its moves are gone.");
    }
    const before = rows[row][col];
    rows = rows.map((line, index) => (index === row ? line.slice(0, col) + (before === tool ? "." : tool) + line.slice(col + 1) : line));
    changed();
  }

  let timer = null;

  /** Shows what the server makes of the position as it is now. */
  function changed() {
    clearTimeout(timer);
    movesField.control.value = moves.join(" ");
    if (look === null && rows.length > 0) board.show({ rows });
    timer = setTimeout(check, 60);
  }

  async function check() {
    const mine = ++round;
    let answer;
    try {
      [answer] = await lookUp([asked(position())]);
    } catch (problem) {
      answer = problem;
    }
    if (mine !== round) return;
    const problem = answer;
    // The stones do not depend on the komi.
    if (answer.errors?.every(({ pointer }) => pointer === "/komi")) [answer] = await lookUp([asked({ ...position(), komi: null })]).catch((error) => [error]);
    if (mine !== round) return;
    undo.disabled = moves.length === 0;
    const fine = answer.next_moves !== undefined;
    look = fine ? answer : null;
    explore.hidden = pass.hidden = !fine;
    const left = showErrors([...fields, atSetup], problem.next_moves === undefined ? { errors: problem.errors ?? [], message: problem.detail ?? problem.message } : null);
    if (!fine) {
      setText(status, left);
      if (rows.length > 0 && rows[0].length > 0 && rows.length * rows[0].length <= 64) board.show({ rows });
      return;
    }
    const marks = new Map(answer.next_moves.filter(({ superko, legal }) => superko && !legal).map(({ move, reason }) => [move, { kind: "banned", text: reason }]));
    board.show({ rows: answer.rows, marks, last: moves.at(-1) ?? null });
    const komi = answer.komi === null ? 0.5 : answer.komi;
    explore.href = link("explore", { ...position(), komi });
    const known = answer.verdict !== null && answer.verdict !== "unknown" ? ` Proven already: ${answer.verdict} wins.` : answer.bounds.lower === answer.bounds.upper ? ` Proven already: the margin is ${range(answer.bounds)}.` : "";
    setText(status, answer.over ? `The game is over.${known}` : `${capital(answer.to_move)} to move.${known}`);
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (document.activeElement === movesField.control) moves = movesField.control.value.split(/[\s,]+/).filter(Boolean);
    const { setup, komi } = position();
    const limits = {};
    if (expansions.control.value.trim() !== "") limits.expansions = expansions.control.value.trim();
    if (seconds.control.value.trim() !== "") limits.time_seconds = figure(seconds.control);
    if (memory.control.value.trim() !== "") limits.memory_bytes = memory.control.value.trim();
    const body = {
      board: boardInput.value.trim(),
      moves,
      ...(setup === null ? {} : { setup }),
      ...(kind === "solve" ? { komi } : {}),
      ...(kind === "campaign" ? { split: Number(split.control.value), all_moves: allMoves.control.checked } : { kind }),
      priority: figure(priority.control) ?? 0,
      ...(Object.keys(limits).length > 0 ? { limits } : {}),
      ...(label.control.value === "" ? {} : { label: label.control.value }),
      certificate: certificate.control.checked,
      verify: certificate.control.checked && verify.control.checked,
    };
    showErrors([...fields, atSetup], null);
    general.hidden = true;
    submit.disabled = true;
    try {
      const answer = await post(kind === "campaign" ? "/v1/campaigns" : "/v1/jobs", body);
      if (kind === "campaign") await refresh();
      else accept(answer);
      location.hash = `#/${kind === "campaign" ? "campaign" : "job"}/${answer.id}`;
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      const left = showErrors([...fields, atSetup], problem);
      setText(general, left);
      general.hidden = left === "";
      for (const one of fields) if (one.control.getAttribute("aria-invalid")) one.control.closest("details")?.setAttribute("open", "");
      form.querySelector("[aria-invalid]")?.focus();
    } finally {
      submit.disabled = false;
    }
  });

  /** Takes over the position of a link. */
  function show(query) {
    const given = unlink(query);
    if (given !== null) {
      boardInput.value = given.board;
      empty();
      if (given.setup !== null) {
        const shaped = given.setup.rows.length === rows.length && given.setup.rows.every((row) => row.length === rows[0].length);
        if (shaped) rows = given.setup.rows;
        turn.set(given.setup.to_move);
        passed.control.checked = given.setup.passes === 1;
        earlier.control.value = given.setup.earlier.map((one) => one.join("/")).join("\n");
      }
      moves = given.moves;
      if (given.komi !== null) {
        komiField.control.value = given.komi;
        kind = "solve";
        kinds.set(kind);
      }
    } else if (rows.length === 0) {
      empty();
    }
    adapt();
    changed();
  }

  return { title: "New position", element, show };
}
