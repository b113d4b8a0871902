// Requests to the server that the page came from, and its stream of events.

import { h } from "./dom.js";

/** What the server, or the way to it, has against a request. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? `the server answers ${status}`);
    this.status = status;
    this.errors = body.errors ?? [];
  }
}

let token = sessionStorage.getItem("token");
let asking = null;

const authorization = () => (token === null ? {} : { authorization: `Bearer ${token}` });

/** Asks for a token, once for all requests that miss one; false if there is none to be had, from then on without asking. */
function askToken() {
  asking ??= new Promise((resolve) => {
    const input = h("input", { id: "token", type: "password", autocomplete: "off", required: true });
    const why = token === null ? "This server wants an access token" : "The token is none of this server's. Another one";
    const close = () => {
      dialog.remove();
      const given = dialog.returnValue === "use" && input.value !== "";
      if (given) {
        token = input.value;
        sessionStorage.setItem("token", token);
        asking = null;
      }
      resolve(given);
    };
    const use = (event) => (event.preventDefault(), dialog.close("use"));
    const dialog = h(
      "dialog",
      { "aria-label": "Access token", onclose: close },
      h("form", { onsubmit: use }, h("label", { for: "token" }, why), input, h("button", {}, "Use it")),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
  return asking;
}

async function send(method, path, options) {
  for (;;) {
    const used = token;
    let response;
    try {
      response = await fetch(path, { method, cache: "no-store", ...options, headers: { ...options.headers, ...authorization() } });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Problem(0, { detail: "the server cannot be reached" });
    }
    // Another request may have brought a token meanwhile.
    if (response.status !== 401 || (used === token && !(await askToken()))) return response;
  }
}

/** A request with its answer as JSON; throws a {@link Problem}. */
export async function request(method, path, body, headers = {}) {
  const json = body === undefined ? {} : { body: JSON.stringify(body) };
  const type = body === undefined ? {} : { "content-type": "application/json" };
  const response = await send(method, path, { ...json, headers: { ...type, ...headers } });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Problem(response.status, answer);
  return answer;
}

export const get = (path) => request("GET", path);
export const post = (path, body) => request("POST", path, body);

/** Saves a file under the name that the server gives it. A link alone would not carry the token. */
export async function download(path) {
  const response = await send("GET", path, { headers: {} });
  if (!response.ok) throw new Problem(response.status, await response.json().catch(() => ({})));
  const name = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "")?.[1] ?? "certificate.sgc";
  const url = URL.createObjectURL(await response.blob());
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function* lines(stream) {
  let rest = "";
  const decoder = new TextDecoder();
  for (const reader = stream.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = parts.pop();
    yield* parts;
  }
}

/** Waits until the page is looked at. */
async function visible() {
  while (document.visibilityState !== "visible") {
    await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
  }
}

/**
 * Follows the server's events for as long as the page is looked at: a browser has few connections to one server, and one page out of sight,
 * or kept for the way back, must not hold on to one. `mode` hears "live", or "polling" while there is no stream. Lines of JSON rather than
 * an EventSource: that one cannot send a token.
 */
export async function follow(event, mode) {
  let stream = new AbortController();
  const leave = () => stream.abort();
  addEventListener("pagehide", leave);
  document.addEventListener("visibilitychange", () => document.visibilityState === "hidden" && leave());
  for (let last = null; ; ) {
    await visible();
    stream = new AbortController();
    try {
      const resume = last === null ? {} : { "last-event-id": last };
      const headers = { accept: "application/x-ndjson", ...resume };
      const response = await send("GET", "/v1/events", { headers, signal: stream.signal });
      if (response.ok) {
        mode("live");
        for await (const line of lines(response.body)) {
          // Anything else only keeps the connection open.
          if (!line.startsWith("{")) continue;
          const { id, event: name, data } = JSON.parse(line);
          last = id === null || id === undefined ? last : String(id);
          event(name, data);
        }
      }
    } catch (error) {
      if (stream.signal.aborted) continue;
      console.debug("events", error);
    }
    mode("polling");
    await sleep(3000);
  }
}
