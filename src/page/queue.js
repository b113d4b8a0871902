// The overview: what runs, campaigns, and the list of jobs; with the parts that the views of one job or campaign share.

import { post, request } from "./api.js";
import { act, count, duration, field, h, hidden, margin, put, range, say, setText, short, sure } from "./dom.js";
import { accept, filter, isActive, isOpen, more, refresh, state } from "./state.js";

const STATES = ["queued", "running", "paused", "succeeded", "failed", "cancelled", "expired"];
const SIGNS = { queued: "…", running: "▶", paused: "‖", succeeded: "✓", failed: "!", cancelled: "✕", expired: "⌛" };

/** "value of 4x5", "4x5 at komi 1.5", with how far it is from the empty board. */
export function subject({ kind, board, komi, setup, moves }) {
  const where = [setup ? "set up" : null, moves.length > 0 ? `after ${moves.join(" ")}` : null].filter(Boolean).join(", ");
  return `${kind === "solve" ? `${board} at komi ${komi}` : `Value of ${board}`}${where === "" ? "" : ` (${where})`}`;
}

/** The state as a sign and a word. */
export function stateBadge() {
  const element = h("span", { class: "state" });
  const show = (state) => {
    element.className = `state ${state}`;
    put(element, h("span", { "aria-hidden": "true" }, SIGNS[state] ?? "?"), ` ${state}`);
  };
  return { element, show: (state) => element.className !== `state ${state}` && show(state) };
}

/** What is known of the margin, as a bar over all margins from White's best to Black's best. */
export function boundsBar() {
  const inner = h("span", { class: "inner" });
  const text = h("span", { class: "bounds-text" });
  const element = h("div", { class: "bounds" }, h("span", { class: "bar", "aria-hidden": "true" }, inner), text);
  const show = ({ board, bounds }) => {
    const [rows, cols] = board.split("x").map(Number);
    const points = rows * cols;
    const at = (value) => ((value + points) / (2 * points)) * 100;
    inner.style.left = `${Math.min(at(bounds.lower), 98)}%`;
    inner.style.width = `${Math.max(at(bounds.upper) - at(bounds.lower), 2)}%`;
    setText(text, range(bounds));
  };
  return { element, show };
}

/** Who won, or the value, in a few words; empty before the end. */
export function outcome(job) {
  const { result } = job;
  if (job.value !== undefined && job.value !== null) return `value ${margin(job.value)}`;
  if (!result) return job.error ?? "";
  if (job.kind === "value") return result.value === null ? "" : `value ${margin(result.value)}`;
  return result.winner === null ? "not decided" : `${result.winner} wins${result.best_move ? ` with ${result.best_move}` : ""}`;
}

/** Buttons that change a job or a campaign, and its priority; `kind` is "jobs" or "campaigns". */
export function controls(kind, id) {
  const name = `${kind === "jobs" ? "job" : "campaign"} ${id}`;
  const took = (answer) => {
    if (kind === "jobs") accept(answer);
    else refresh();
  };
  const button = (verb, question) => {
    const label = h("span", {}, verb);
    const element = h("button", { type: "button", class: "small" }, label, hidden(` ${name}`));
    element.addEventListener("click", async () => {
      if (question !== undefined && !(await sure(question, verb))) return;
      const answer = await act(element, () => post(`/v1/${kind}/${id}/${verb.toLowerCase()}`));
      if (answer === undefined) return;
      say(`${name}: ${answer.state}`);
      took(answer);
    });
    return element;
  };
  const pause = button("Pause");
  const resume = button("Resume");
  const cancel = button("Cancel", `Cancel ${name}? It cannot be resumed. What it has proven is kept.`);
  const priority = h("input", { type: "number", step: 1, class: "priority", title: "Higher goes first" });
  priority.addEventListener("change", async () => {
    const value = priority.value === "" ? 0 : Number(priority.value);
    const answer = await act(priority, () => request("PATCH", `/v1/${kind}/${id}`, { priority: value }));
    if (answer === undefined) return void refresh();
    say(`${name}: priority ${answer.priority}`);
    took(answer);
  });
  const urgency = h("label", {}, h("span", {}, "Priority", hidden(` of ${name}`)), priority);
  const element = h("div", { class: "controls" }, urgency, pause, resume, cancel);
  const show = (item) => {
    pause.hidden = !["queued", "running"].includes(item.state);
    resume.hidden = !["paused", "expired"].includes(item.state);
    cancel.hidden = !isOpen(item);
    urgency.hidden = !isOpen(item);
    // Not under the fingers of whoever types.
    if (document.activeElement !== priority) priority.value = item.priority;
  };
  return { element, show };
}

/** "123,456 expansions, 81.2 k/s, 3.4 s". */
export function progressText(job) {
  if (job.progress.expansions === "0" && !isActive(job)) return "";
  const rate = isActive(job) ? state.series.get(job.id)?.at(-1)?.rate : undefined;
  const { expansions, elapsed_seconds: elapsed, current_komi: komi, stage } = job.progress;
  return [
    `${count(expansions)} expansions`,
    rate === undefined ? null : `${short(rate)}/s`,
    duration(elapsed),
    komi === null || komi === undefined ? null : `now komi ${komi}`,
    stage && stage !== "search" ? stage : null,
  ].filter(Boolean).join(" · ");
}

/** A row of the list. */
function jobRow(id) {
  const badge = stateBadge();
  const bar = boundsBar();
  const buttons = controls("jobs", id);
  const title = h("a", { href: `#/job/${id}` });
  const note = h("p", { class: "note" });
  const numbers = h("p", { class: "numbers" });
  const element = h("li", { class: "item" }, h("div", { class: "what" }, title, note), h("div", {}, badge.element), h("div", { class: "how" }, bar.element, numbers), buttons.element);
  const show = (job) => {
    setText(title, `${id} · ${subject(job)}`);
    const queue = job.queue_position === null ? null : `place ${job.queue_position} in the queue`;
    setText(note, [job.label, outcome(job), queue, job.campaign ? `campaign ${job.campaign}` : null].filter(Boolean).join(" · "));
    setText(numbers, progressText(job));
    badge.show(job.state);
    bar.show(job);
    buttons.show(job);
  };
  return { element, show };
}

function campaignRow(id) {
  const badge = stateBadge();
  const bar = boundsBar();
  const buttons = controls("campaigns", id);
  const title = h("a", { href: `#/campaign/${id}` });
  const note = h("p", { class: "note" });
  const numbers = h("p", { class: "numbers" });
  const element = h("li", { class: "item" }, h("div", { class: "what" }, title, note), h("div", {}, badge.element), h("div", { class: "how" }, bar.element, numbers), buttons.element);
  const show = (campaign) => {
    setText(title, `${id} · ${subject(campaign)}`);
    setText(note, [campaign.label, outcome(campaign), campaign.stage ? `stage: ${campaign.stage}` : null].filter(Boolean).join(" · "));
    setText(numbers, campaignText(campaign));
    badge.show(campaign.state);
    bar.show(campaign);
    buttons.show(campaign);
  };
  return { element, show };
}

/** "3 jobs queued, 1 running · 123,456 expansions". */
export function campaignText({ jobs, expansions, elapsed_seconds: elapsed }) {
  const parts = Object.entries(jobs ?? {}).filter(([, number]) => number > 0).map(([state, number]) => `${number} ${state}`);
  return [parts.length > 0 ? `jobs: ${parts.join(", ")}` : null, `${count(expansions)} expansions`, duration(elapsed)].filter(Boolean).join(" · ");
}

/** Keeps one row for each item, in order; rows stay where they are, so that the focus does. */
function rows(list, items, make) {
  const made = (list.made ??= new Map());
  const kept = new Set(items.map(({ id }) => id));
  for (const [id, row] of made) {
    if (kept.has(id)) continue;
    row.element.remove();
    made.delete(id);
  }
  items.forEach((item, index) => {
    if (!made.has(item.id)) made.set(item.id, make(item.id));
    const row = made.get(item.id);
    row.show(item);
    if (list.children[index] !== row.element) list.insertBefore(row.element, list.children[index] ?? null);
  });
}

export function overview() {
  const running = h("ul", { class: "items" });
  const idle = h("p", { class: "empty" }, "Nothing is being solved. ", h("a", { href: "#/new" }, "Set up a position"), " to start.");
  const campaigns = h("ul", { class: "items" });
  const noCampaigns = h("p", { class: "empty" }, "No campaigns yet: a campaign finds the value of a whole board and its best first moves. ", h("a", { href: "#/new" }, "Start one"), ".");
  const campaignPart = h("section", { class: "card", "aria-labelledby": "campaigns-title" }, h("h2", { id: "campaigns-title" }, "Campaigns"), noCampaigns, campaigns);
  const list = h("ul", { class: "items" });
  const none = h("p", { class: "empty" });
  const next = h("button", { type: "button" }, "Older jobs");
  next.addEventListener("click", () => act(next, more));

  const choice = h("select", {}, h("option", { value: "" }, "any"), STATES.map((name) => h("option", { value: name }, name)));
  choice.addEventListener("change", () => filter({ state: choice.value }));
  const label = h("input", { type: "search", autocomplete: "off" });
  label.addEventListener("change", () => filter({ label: label.value }));
  const campaign = h("input", { type: "number", min: 1, step: 1 });
  campaign.addEventListener("change", () => filter({ campaign: campaign.value }));
  choice.value = state.filters.state;
  label.value = state.filters.label;
  campaign.value = state.filters.campaign;
  const ofCampaign = field("Campaign", campaign).element;
  const filters = h("div", { class: "filters", role: "search", "aria-label": "Filters of the list of jobs" }, field("State", choice).element, field("Label", label).element, ofCampaign);

  const trouble = h("p", { class: "error", role: "alert", hidden: true });
  const element = h(
    "div",
    {},
    trouble,
    h("section", { class: "card", "aria-labelledby": "running-title" }, h("h2", { id: "running-title" }, "Running now"), idle, running),
    campaignPart,
    h("section", { class: "card", "aria-labelledby": "jobs-title" }, h("h2", { id: "jobs-title" }, "Jobs"), filters, none, list, next),
  );

  const update = () => {
    setText(trouble, state.trouble ?? "");
    trouble.hidden = state.trouble === null;
    const active = [...state.jobs.values()].filter(isActive);
    rows(running, active, jobRow);
    idle.hidden = active.length > 0 || !state.loaded;
    const all = [...(state.campaigns.values())].sort((a, b) => b.id - a.id);
    rows(campaigns, all, campaignRow);
    noCampaigns.hidden = all.length > 0;
    // What runs is above already, unless somebody asks for it.
    const wanted = state.listed.map((id) => state.jobs.get(id)).filter((job) => job !== undefined);
    const listed = wanted.filter((job) => (state.filters.state === "" ? !isActive(job) : job.state === state.filters.state));
    rows(list, listed, jobRow);
    next.hidden = state.next === null;
    none.hidden = wanted.length > 0 || !state.loaded;
    const filtered = Object.values(state.filters).some((value) => value !== "");
    const text = filtered ? "No job is like that: change the filters above." : "No jobs yet: set up a position and submit it, or run “superko job submit --board 3x3 --kind value”.";
    setText(none, text);
  };
  return { title: "Queue", element, update };
}
