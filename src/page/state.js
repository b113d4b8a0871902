// What the page knows of jobs and campaigns: fetched, then kept up to date by the server's events, or by asking again where there are none.

import { Problem, follow, get } from "./api.js";
import { forget } from "./position.js";

const POLL_SECONDS = 3;
const MOST_POINTS = 600;

export const state = {
  /** "connecting", "live", "polling", "offline" or "stopping". */
  mode: "connecting",
  /** Whether everything was fetched once. */
  loaded: false,
  jobs: new Map(),
  /** Ids in the list as the server filtered them, newest first. */
  listed: [],
  next: null,
  /** Whether older pages of the list were asked for. */
  deep: false,
  filters: { state: "", label: "", campaign: "" },
  campaigns: new Map(),
  /** Points of the charts, by job. */
  series: new Map(),
  checkpoint: null,
  /** What the server had against the last requests. */
  trouble: null,
  /** The job or campaign that is looked at: `{kind, id}`. */
  watched: null,
};

const listeners = new Set();

/** Calls `listener` after every change, until the function that it answers is called. */
export function subscribe(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

let telling = null;

/** Tells the views, a few times a second at most: events may come faster than anybody reads. */
function tell() {
  telling ??= setTimeout(() => {
    telling = null;
    listeners.forEach((listener) => listener());
  }, 100);
}

export const isOpen = ({ state }) => ["queued", "running", "paused"].includes(state);
export const isActive = ({ state }) => state === "running";

function keep(job) {
  const before = state.jobs.get(job.id);
  // Something may be proven now that was not.
  if (before !== undefined && before.state !== job.state && !isOpen(job)) forget();
  state.jobs.set(job.id, before === undefined ? job : { ...before, ...job });
  if (state.mode !== "live" && isActive(job)) measure(job, before);
}

/** The chart's point of a job that was asked for: its rate is that since it was last asked for. */
function measure(job, before) {
  const counts = ({ progress }) => [Number(progress.expansions), progress.elapsed_seconds];
  const [expansions, elapsed] = counts(job);
  const [earlier, then] = before === undefined ? [0, 0] : counts(before);
  if (elapsed <= then) return;
  point(job.id, { time: elapsed, rate: (expansions - earlier) / (elapsed - then), hits: job.progress.table_hit_rate });
}

function point(id, values) {
  const points = state.series.get(id) ?? [];
  // A stream that begins again may tell twice.
  if (values.time <= points.at(-1)?.time) return;
  points.push(values);
  // The older half in half the detail.
  if (points.length > MOST_POINTS) state.series.set(id, points.filter((_, index) => index > MOST_POINTS / 2 || index % 2 === 0));
  else state.series.set(id, points);
}

const number = (text) => (text === null || text === undefined ? undefined : Number(text));

function hear(name, data) {
  if (name === "state" || name === "result") {
    const isNew = !state.jobs.has(data.id);
    keep(data);
    if (isNew && matches(data) && !state.listed.includes(data.id)) state.listed = [data.id, ...state.listed].sort((a, b) => b - a);
    // Places in the queue have changed.
    soon();
  } else if (name === "progress") {
    const job = state.jobs.get(data.job);
    if (job !== undefined) state.jobs.set(job.id, { ...job, bounds: data.bounds, progress: { ...job.progress, ...data.progress } });
    const { elapsed_seconds: time, expansions_per_second: rate, proof_number: proof, disproof_number: disproof, table_hit_rate: hits } = data.progress;
    point(data.job, { time, rate, hits, proof: number(proof), disproof: number(disproof) });
  } else if (name === "checkpoint") {
    state.checkpoint = { ...data, time: new Date() };
  } else if (name === "campaign") {
    state.campaigns.set(data.id, data);
  } else if (name === "reset") {
    // More happened than the server keeps.
    refresh();
  } else if (name === "draining") {
    state.mode = "stopping";
  }
  tell();
}

const matches = (job) =>
  Object.entries(state.filters).every(([name, value]) => value === "" || (job[name] !== null && String(job[name] ?? "") === value));

let timer = null;

/** Asks again in a while, once for all reasons there are until then. */
function soon() {
  timer ??= setTimeout(() => ((timer = null), refresh()), 2000);
}

const query = (filters) => new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== "" && value !== null));

/** A page of the list, newest first. */
const page = (more) => get(`/v1/jobs?${query({ ...state.filters, order: "newest", limit: 50, ...more })}`);

async function campaigns() {
  const all = [];
  for (let query = ""; query !== null; ) {
    const { campaigns, next } = await get(`/v1/campaigns${query}`);
    all.push(...campaigns);
    query = next === null ? null : `?cursor=${next}`;
  }
  state.campaigns = new Map(all.map((campaign) => [campaign.id, campaign]));
}

let refreshing = null;

/** Fetches all that is on the page. */
export function refresh() {
  refreshing ??= fetchAll().finally(() => (refreshing = null));
  return refreshing;
}

async function fetchAll() {
  try {
    const [first, running] = await Promise.all([page({}), get("/v1/jobs?state=running"), campaigns()]);
    const more = state.deep ? state.listed.filter((id) => id < (first.jobs.at(-1)?.id ?? 0)) : [];
    state.listed = [...first.jobs.map((job) => job.id), ...more];
    if (!state.deep) state.next = first.next;
    const seen = [...first.jobs, ...running.jobs];
    // One that was running and is on neither list has ended, or waits again.
    const lost = [...state.jobs.values()].filter((job) => isActive(job) && !seen.some(({ id }) => id === job.id)).map((job) => job.id);
    if (state.watched?.kind === "job" && !seen.some(({ id }) => id === state.watched.id)) lost.push(state.watched.id);
    const found = await Promise.all([...new Set(lost)].map((id) => get(`/v1/jobs/${id}`).catch(() => null)));
    [...new Map([...seen, ...found.filter(Boolean)].map((job) => [job.id, job])).values()].forEach(keep);
    forgetOthers();
    if (["connecting", "offline", "stopping"].includes(state.mode)) state.mode = "polling";
    state.trouble = null;
    state.loaded = true;
  } catch (error) {
    if (error instanceof Problem && error.status === 0) state.mode = "offline";
    else state.trouble = error.message;
  }
  tell();
}

/** A page that stays open for weeks keeps what it shows, not all that it has seen. */
function forgetOthers() {
  const listed = new Set(state.listed);
  for (const [id, job] of state.jobs) {
    const isWatched = state.watched?.kind === "job" && state.watched.id === id;
    if (listed.has(id) || isWatched || isActive(job)) continue;
    state.jobs.delete(id);
    // What waits for its next turn goes on with its charts.
    if (!isOpen(job)) state.series.delete(id);
  }
}

/** Fetches the following page of the list. */
export async function more() {
  const { jobs, next } = await page({ cursor: state.next });
  state.deep = true;
  jobs.forEach(keep);
  state.listed = [...state.listed, ...jobs.map((job) => job.id)];
  state.next = next;
  tell();
}

/** Lists other jobs. */
export function filter(filters) {
  state.filters = { ...state.filters, ...filters };
  state.listed = [];
  state.deep = false;
  return (refreshing ?? Promise.resolve()).then(refresh);
}

/** Takes in a job that an answer holds. */
export function accept(job) {
  keep(job);
  if (!state.listed.includes(job.id) && matches(job)) state.listed = [job.id, ...state.listed].sort((a, b) => b - a);
  soon();
  tell();
}

/** Fetches one more job or campaign now, and whenever all is fetched. */
export function watch(kind, id) {
  state.watched = kind === null ? null : { kind, id };
  return kind === null ? Promise.resolve() : (refreshing ?? Promise.resolve()).then(refresh);
}

/** Begins to follow the server. */
export function begin() {
  refresh();
  follow(hear, (mode) => {
    // Whether the server can be reached shows when it is asked.
    if (mode === "polling" && ["offline", "stopping"].includes(state.mode)) return;
    const news = state.mode !== mode;
    state.mode = mode;
    // What happened while there was no stream.
    if (news) refresh();
    tell();
  });
  setInterval(() => {
    if (state.mode !== "live" && document.visibilityState === "visible") refresh();
  }, POLL_SECONDS * 1000);
}
