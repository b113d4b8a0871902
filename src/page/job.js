// The views of one job and of one campaign.

import { download, get, post } from "./api.js";
import { Board } from "./board.js";
import { charts } from "./charts.js";
import { act, arrow, bytes, capital, count, duration, h, margin, put, range, say, setText, short, when } from "./dom.js";
import { asked, link, lookUp } from "./position.js";
import { boundsBar, campaignText, controls, outcome, stateBadge, subject } from "./queue.js";
import { isActive, state } from "./state.js";

/** A list of names and values; `show` takes pairs, a value of null leaves its name out. */
function facts() {
  const element = h("dl", { class: "facts" });
  const made = new Map();
  const show = (pairs) =>
    pairs.forEach(([name, value]) => {
      if (!made.has(name)) {
        const fact = { name: h("dt", {}, name), value: h("dd", {}) };
        made.set(name, fact);
        element.append(h("div", {}, fact.name, fact.value));
      }
      const { value: place } = made.get(name);
      place.parentElement.hidden = value === null || value === undefined;
      setText(place, value ?? "");
    });
  return { element, show };
}

/** A board on which a line is played move by move. `start` is the position before it. */
export function player(start, line, label) {
  const board = new Board({ label });
  const caption = h("p", { class: "caption", "aria-live": "polite" });
  let at = 0;
  let looks = [];
  const go = (to) => {
    at = Math.max(0, Math.min(to, line.length));
    const look = looks[at];
    if (look?.rows === undefined) return;
    const move = at === 0 ? null : line[at - 1];
    board.show({ rows: look.rows, last: move });
    const verdict = look.verdict === "unknown" || look.verdict === null ? "" : `; ${look.verdict} wins`;
    const turn = look.over ? "the game is over" : `${look.to_move} to move`;
    setText(caption, `${move === null ? "Start" : `Move ${at} of ${line.length}: ${looks[at - 1].to_move} ${move}`}, ${turn}${verdict}.`);
  };
  const row = h(
    "div",
    { class: "row" },
    arrow("first", "Start of the line", () => go(0)),
    arrow("back", "One move back", () => go(at - 1)),
    arrow("forward", "One move on", () => go(at + 1)),
    arrow("last", "End of the line", () => go(line.length)),
  );
  const element = h("div", { class: "player" }, board.element, row, caption);
  const positions = [...line.keys(), line.length].slice(0, 256).map((number) => asked({ ...start, moves: [...start.moves, ...line.slice(0, number)], at: undefined }));
  lookUp(positions)
    .then((found) => ((looks = found), go(0)))
    .catch((error) => setText(caption, error.message));
  return element;
}

/** What is known of a proof's certificate, with a link to it and a button to have it checked. */
export function proofRow(id, proof) {
  const about = h("p", { class: "note" });
  const fetchIt = h("button", { type: "button", class: "small" }, "Download certificate");
  const verify = h("button", { type: "button", class: "small" }, "Verify");
  const show = ({ certificate, certificate_error: lacking }) => {
    fetchIt.hidden = verify.hidden = !certificate;
    if (!certificate) return setText(about, lacking ?? "No certificate: submit the position again and ask for one.");
    const verdict = { true: "✓ accepted by the checker", false: `✕ REJECTED: ${certificate.error ?? ""}`, null: "not checked yet" }[String(certificate.verified ?? null)];
    setText(about, `Certificate: ${count(certificate.lemmas)} lemmas, ${bytes(Number(certificate.bytes))}, ${verdict}.`);
    about.className = certificate.verified === false ? "error" : "note";
  };
  fetchIt.addEventListener("click", () => act(fetchIt, () => download(`/v1/proofs/${id}/certificate`)));
  verify.addEventListener("click", async () => {
    setText(about, "The checker is at work…");
    const checked = await act(verify, () => post(`/v1/proofs/${id}/verifications`));
    show(checked ?? proof);
    if (checked !== undefined) say(`proof ${id}: ${checked.certificate?.verified ? "accepted" : "rejected"} by the checker`);
  });
  show(proof);
  const claim = proof.winner === null ? "not decided" : `${capital(proof.winner)} wins at komi ${proof.komi}`;
  const raw = h("a", { href: `/v1/proofs/${id}` }, `proof ${id}`);
  return h("li", { class: "proof" }, h("p", {}, h("strong", {}, claim), " · ", raw), about, h("div", { class: "row" }, fetchIt, verify));
}

/** The proofs in a job's result, with their ids. */
export const proofsOf = (job) => {
  const proofs = job.kind === "value" ? (job.result?.proofs ?? []) : job.result ? [job.result] : [];
  return proofs.map((proof, index) => ({ id: job.proofs?.[index] ?? null, proof })).filter(({ id }) => id !== null);
};

/** The komi at which a finished job's result is worth a walk. */
const komiOf = (job) => proofsOf(job)[0]?.proof.komi ?? job.komi ?? 0.5;

/** The result: outcome, line on a board, proofs. */
function result(job) {
  const proofs = proofsOf(job).filter(({ proof }) => proof.winner !== null);
  const start = { board: job.board, setup: job.setup ?? null, moves: job.moves };
  const lines = proofs.map(({ id, proof }) => {
    const line = proof.principal_variation;
    const title = `${capital(proof.winner)} wins at komi ${proof.komi}`;
    const position = { ...start, komi: proof.komi };
    const words = line.length === 0 ? "Decided without search: there is no line." : `Principal variation: ${line.join(" ")}`;
    const explore = h("a", { class: "button", href: link("explore", { ...position, moves: [...job.moves, ...line], at: job.moves.length }) }, "Explore this proof");
    return h("section", { class: "variation" }, h("h3", {}, title), player(position, line, `Principal variation of proof ${id}`), h("p", { class: "moves" }, words), explore);
  });
  const text = outcome(job);
  return [
    h("h2", {}, "Result"),
    h("p", { class: "verdict" }, text === "" ? "No result" : capital(text)),
    lines.length === 0 ? null : h("div", { class: "variations" }, lines),
    proofs.length === 0 ? null : h("h3", {}, "Proofs"),
    proofs.length === 0 ? null : h("ul", { class: "plain" }, proofs.map(({ id, proof }) => proofRow(id, proof))),
  ];
}

const missing = (text) => h("p", { class: "empty" }, text, " ", h("a", { href: "#/" }, "Back to the queue"));

export function jobView(id) {
  const badge = stateBadge();
  const bar = boundsBar();
  const buttons = controls("jobs", id);
  const heading = h("p", { class: "subject" });
  const details = facts();
  const graphs = charts();
  const results = h("section", { class: "card", "aria-label": "Result" });
  const walk = h("a", { class: "button" }, "Open in the explorer");
  const checkpoint = h("p", { class: "note" });
  const progress = h("section", { class: "card" }, h("h2", {}, "Progress"), graphs.element);
  const counts = h("section", { class: "card" }, h("h2", {}, "Counts"), bar.element, details.element, checkpoint);
  const body = h("div", { class: "columns" }, results, counts, progress);
  const head = h("div", { class: "head" }, badge.element, heading, walk, buttons.element);
  const element = h("div", {}, head, body);
  const lost = missing(`There is no job ${id}.`);
  let sought = null;
  let shown = null;
  const update = () => {
    const job = state.jobs.get(id);
    body.hidden = head.hidden = job === undefined;
    if (job === undefined) {
      sought ??= get(`/v1/jobs/${id}`).catch(({ status }) => status === 404 && element.append(lost));
      return;
    }
    lost.remove();
    setText(heading, [subject(job), job.label].filter(Boolean).join(" · "));
    badge.show(job.state);
    bar.show(job);
    buttons.show(job);
    walk.href = link("explore", { board: job.board, komi: komiOf(job), setup: job.setup ?? null, moves: job.moves });
    const { progress: done, limits } = job;
    const rate = isActive(job) ? state.series.get(id)?.at(-1) : undefined;
    details.show([
      ["Expansions", count(done.expansions)],
      ["Expansions per second", rate?.rate === undefined ? null : short(rate.rate)],
      ["Distinct nodes", count(done.distinct_nodes)],
      ["Revisit factor", done.revisit_factor.toFixed(2)],
      ["Table hit rate", `${(100 * done.table_hit_rate).toFixed(1)} %`],
      ["Search time", duration(done.elapsed_seconds)],
      ["Kept by a restart", `${count(done.checkpoint_expansions)} expansions`],
      ["Komi being solved", done.current_komi],
      ["Root proof number", rate?.proof === undefined ? null : short(rate.proof)],
      ["Root disproof number", rate?.disproof === undefined ? null : short(rate.disproof)],
      ["Stage", done.stage],
      ["Black's margin", range(job.bounds)],
      ["Place in the queue", job.queue_position],
      ["Priority", job.priority],
      ["Limit of expansions", limits.expansions === null ? null : count(limits.expansions)],
      ["Limit of time", limits.time_seconds === null ? null : duration(limits.time_seconds)],
      ["Limit of memory", limits.memory_bytes ? bytes(Number(limits.memory_bytes)) : null],
      ["Campaign", job.campaign],
      ["Submitted", when(job.created_at)],
      ["Started", when(job.started_at)],
      ["Ended", job.finished_at ? when(job.finished_at) : null],
      ["Error", job.error],
    ]);
    const last = state.checkpoint;
    setText(checkpoint, last === null || !isActive(job) ? "" : `Last checkpoint: number ${last.sequence} at ${last.time.toLocaleTimeString()}, ${count(last.lemmas)} lemmas.`);
    const points = state.series.get(id) ?? [];
    graphs.show(points);
    progress.hidden = !isActive(job) && points.length === 0;
    results.hidden = !job.result && !job.error;
    const now = JSON.stringify([job.state, job.result]);
    if (now !== shown) put(results, result(job));
    shown = now;
  };
  return { title: `Job ${id}`, element, update, watched: ["job", id] };
}

export function campaignView(id) {
  const badge = stateBadge();
  const bar = boundsBar();
  const buttons = controls("campaigns", id);
  const heading = h("p", { class: "subject" });
  const details = facts();
  const verdict = h("p", { class: "verdict" });
  const moves = h("ul", { class: "chips" });
  const proofs = h("ul", { class: "plain" });
  const board = new Board({ label: "Start of the campaign, with what is proven of its first moves" });
  const ofIt = h("button", { type: "button" }, "Its jobs in the queue");
  const body = h(
    "div",
    { class: "columns" },
    h("section", { class: "card" }, h("h2", {}, "Result"), verdict, board.element, h("h3", {}, "First moves"), moves, h("h3", {}, "Proofs"), proofs),
    h("section", { class: "card" }, h("h2", {}, "Counts"), bar.element, details.element, h("p", { class: "row" }, ofIt)),
  );
  const walk = h("a", { class: "button" }, "Open in the explorer");
  const head = h("div", { class: "head" }, badge.element, heading, walk, buttons.element);
  const element = h("div", {}, head, body);
  const lost = missing(`There is no campaign ${id}.`);
  ofIt.addEventListener("click", () => {
    state.filters = { state: "", label: "", campaign: String(id) };
    location.hash = "#/";
  });
  let shown = null;
  const update = () => {
    const campaign = state.campaigns.get(id);
    body.hidden = head.hidden = campaign === undefined;
    if (campaign === undefined) {
      if (state.loaded) element.append(lost);
      return;
    }
    lost.remove();
    setText(heading, [subject(campaign), campaign.label].filter(Boolean).join(" · "));
    badge.show(campaign.state);
    bar.show(campaign);
    buttons.show(campaign);
    const known = campaign.value;
    const komi = known === null || known === undefined ? 0.5 : known - 0.5;
    const start = { board: campaign.board, setup: campaign.setup ?? null, moves: campaign.moves };
    walk.href = link("explore", { ...start, komi });
    details.show([
      ["Stage", campaign.stage],
      ["Work", campaignText(campaign)],
      ["Black's margin", range(campaign.bounds)],
      ["Plies that it is split at", campaign.split],
      ["Submitted", when(campaign.created_at)],
      ["Ended", campaign.finished_at ? when(campaign.finished_at) : null],
      ["Error", campaign.error],
    ]);
    const best = new Set(campaign.optimal_moves ?? []);
    const words = best.size === 0 ? "" : `, best with ${[...best].join(", ")}`;
    setText(verdict, known === null || known === undefined ? `Not known yet: ${range(campaign.bounds)}` : `Value ${margin(known)}${words}`);
    const now = JSON.stringify([campaign.moves_known, campaign.optimal_moves, campaign.proofs]);
    if (now === shown) return;
    shown = now;
    const list = campaign.moves_known ?? [];
    put(moves, list.length === 0 ? h("li", { class: "empty" }, "Nothing is known of single moves yet.") : list.map(({ move, bounds }) => h("li", { class: best.has(move) ? "chip best" : "chip" }, `${best.has(move) ? "★ " : ""}${move} ${range(bounds)}`)));
    const notes = list.map(({ move, bounds }) => [move, { kind: best.has(move) ? "win" : null, note: bounds.lower === bounds.upper ? margin(bounds.lower) : null, text: range(bounds) }]);
    lookUp([asked({ ...start, komi: null })]).then(([look]) => look.rows && board.show({ rows: look.rows, marks: new Map(notes) }));
    Promise.all((campaign.proofs ?? []).map((proof) => get(`/v1/proofs/${proof}`).then((found) => proofRow(proof, found), () => null)))
      .then((found) => put(proofs, found.length === 0 ? h("li", { class: "empty" }, "No proofs yet.") : found));
  };
  return { title: `Campaign ${id}`, element, update, watched: ["campaign", id] };
}
