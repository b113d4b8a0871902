// The page: which view an address shows, the theme, and how the server is reached.

import { setText } from "./dom.js";
import { explorer } from "./explorer.js";
import { campaignView, jobView } from "./job.js";
import { overview } from "./queue.js";
import { setup } from "./setup.js";
import { begin, state, subscribe, watch } from "./state.js";

const MODES = {
  connecting: "connecting…",
  live: "live",
  polling: "updated every 3 s",
  offline: "server not reachable",
  stopping: "server is stopping",
};

const main = document.getElementById("view");
const heading = document.getElementById("title");
const mode = document.getElementById("mode");
let view = null;

/** The view that an address stands for, made anew unless it is there already. */
function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, id] = path.split("/");
  const key = ["job", "campaign"].includes(name) ? path : name;
  const moved = view?.key !== key;
  if (moved) {
    const number = Number(id);
    const made = { job: () => jobView(number), campaign: () => campaignView(number), new: setup, explore: explorer }[name] ?? overview;
    view = { key, ...made() };
    main.replaceChildren(view.element);
    document.title = `${view.title} – Superko`;
    setText(heading, view.title);
    watch(...(view.watched ?? [null, null]));
    for (const link of document.querySelectorAll("nav a")) {
      const own = link.getAttribute("href").replace("#/", "");
      if (own === (["new", "explore"].includes(name) ? name : "")) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }
  view.show?.(new URLSearchParams(query));
  update();
  // Whoever follows a link with the keyboard, or hears the page, begins at the new heading.
  if (moved && begun) heading.focus();
}

function update() {
  view.update?.();
  setText(mode, MODES[state.mode]);
  mode.dataset.mode = state.mode;
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const toggle = document.getElementById("theme");

/** The theme that was chosen here, or the system's. */
function theme(chosen) {
  const current = chosen ?? (dark.matches ? "dark" : "light");
  document.documentElement.dataset.theme = current;
  toggle.setAttribute("aria-pressed", String(current === "dark"));
}

toggle.addEventListener("click", () => {
  const other = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("theme", other);
  theme(other);
});
dark.addEventListener("change", () => theme(localStorage.getItem("theme")));
theme(localStorage.getItem("theme"));

document.querySelector(".skip").addEventListener("click", (event) => {
  // The part after # is taken.
  event.preventDefault();
  heading.focus();
});

let begun = false;
addEventListener("hashchange", route);
subscribe(update);
route();
begun = true;
begin();
