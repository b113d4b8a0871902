// Building blocks: elements without any HTML in strings, numbers as people read them, messages.

/** An HTML element; attributes that begin with "on" are listeners, those that are null, undefined or false are left out. */
export function h(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same for SVG. */
export function s(name, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Changes a text only if it is another one: a screen reader reads out what is written again. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Replaces all children. */
export function put(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
}

const ARROWS = { first: "M5 4V20M20 4L9 12L20 20Z", back: "M18 4L7 12L18 20Z", forward: "M6 4L17 12L6 20Z", last: "M19 4V20M4 4L15 12L4 20Z" };

/** A button with an arrow on it, and its name for those who do not see it. */
export function arrow(kind, name, press) {
  const icon = s("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" }, s("path", { d: ARROWS[kind] }));
  return h("button", { type: "button", "aria-label": name, title: name, onclick: press }, icon);
}

/** Text that only a screen reader gets. */
export const hidden = (text) => h("span", { class: "hidden" }, text);

/** "1,234,567" of a counter that travels as a string. */
export function count(text) {
  return text === null || text === undefined ? "–" : BigInt(text).toLocaleString("en");
}

/** "81.2 k" for charts and rates. */
export function short(number) {
  if (!Number.isFinite(number)) return "∞";
  for (const [size, unit] of [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1e3, " k"]]) {
    if (Math.abs(number) >= size) return (number / size).toPrecision(3) + unit;
  }
  return number === 0 ? "0" : number.toPrecision(3).replace(/\.?0+$/, "");
}

export function duration(seconds) {
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  if (days > 0) return `${days} d ${hours} h`;
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${Math.floor(seconds % 60)} s`;
}

export function bytes(number) {
  return number < 1024 ? `${number} bytes` : short(number).replace(/ ?([kMG]?)$/, " $1B");
}

/** A margin from Black's side: "B+3", "W+2", "even". */
export function margin(points) {
  return points === 0 ? "even" : `${points > 0 ? "B" : "W"}+${Math.abs(points)}`;
}

/** "between W+9 and B+9", or the one margin that it is. */
export function range({ lower, upper }) {
  return lower === upper ? margin(lower) : `${margin(lower)} to ${margin(upper)}`;
}

export function when(time) {
  return time ? new Date(time).toLocaleString([], { dateStyle: "medium", timeStyle: "medium" }) : "–";
}

export const capital = (word) => word.charAt(0).toUpperCase() + word.slice(1);

/** Shows a message for some seconds, and to screen readers at once. */
export function say(text, kind = "note") {
  const message = h("p", { class: `message ${kind}` }, text);
  document.getElementById("messages").append(message);
  setTimeout(() => message.remove(), kind === "error" ? 12000 : 5000);
}

/** Runs what a button is for; the button rests meanwhile, and what goes wrong is said. */
export async function act(button, work) {
  button.disabled = true;
  try {
    return await work();
  } catch (error) {
    say(error.message, "error");
    return undefined;
  } finally {
    button.disabled = false;
  }
}

/** Asks before something that cannot be undone. */
export function sure(question, yes) {
  return new Promise((resolve) => {
    const dialog = h(
      "dialog",
      { "aria-label": question, onclose: () => (dialog.remove(), resolve(dialog.returnValue === "yes")) },
      h("p", {}, question),
      h(
        "div",
        { class: "row" },
        h("button", { type: "button", class: "danger", onclick: () => dialog.close("yes") }, yes),
        h("button", { type: "button", onclick: () => dialog.close("no") }, "Keep it"),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}

let fields = 0;

/** A label, a control and a place for what the server says about it. `pointers` are the JSON pointers of the field. */
export function field(label, control, { pointers = [], hint = null, inline = false } = {}) {
  const id = `field-${++fields}`;
  control.id = id;
  const note = hint === null ? null : h("p", { class: "hint", id: `${id}-hint` }, hint);
  const error = h("p", { class: "error", id: `${id}-error`, hidden: true });
  control.setAttribute("aria-describedby", note === null ? error.id : `${note.id} ${error.id}`);
  const name = h("label", { for: id }, label);
  const element = h("div", { class: inline ? "field inline" : "field" }, inline ? [control, name] : [name, control], note, error);
  const show = (text) => {
    setText(error, text);
    error.hidden = text === "";
    if (text === "") control.removeAttribute("aria-invalid");
    else control.setAttribute("aria-invalid", "true");
  };
  return { element, control, show, pointers };
}

/** Shows each error of a problem at its field; answers what is left over. */
export function showErrors(fields, problem) {
  const texts = new Map(fields.map((field) => [field, []]));
  const left = [];
  const errors = problem === null ? [] : problem.errors.length > 0 ? problem.errors : [{ pointer: null, detail: problem.message }];
  for (const { pointer, detail } of errors) {
    const at = (start) => pointer === start || pointer?.startsWith(`${start}/`);
    const place = fields.find((field) => field.pointers.some(at));
    if (place === undefined) left.push(detail);
    else texts.get(place).push(detail);
  }
  for (const [field, details] of texts) field.show(details.join("; "));
  return left.join("; ");
}
