// Shows /v1/openapi.json. No library, nothing from another server.
"use strict";

/** An element with attributes and children; strings become text, never markup. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** Text in which `backticks` mark code. */
function prose(text) {
  const parts = String(text ?? "").split("`");
  return parts.map((part, index) => (index % 2 ? element("code", {}, part) : part));
}

const code = (value) => element("pre", {}, typeof value === "string" ? value : JSON.stringify(value, null, 2));

/** A schema in a few words, and links to the named ones. */
function type(schema) {
  if (!schema) return ["anything"];
  if (schema.$ref) {
    const name = schema.$ref.split("/").pop();
    return [element("a", { href: `#${name}` }, name)];
  }
  const joined = (list, word) => list.flatMap((one, index) => (index ? [word, ...type(one)] : type(one)));
  for (const [key, word] of [["oneOf", " or "], ["anyOf", " or "], ["allOf", " and "]]) {
    if (schema[key]) return joined(schema[key], word);
  }
  if (schema.enum) return [schema.enum.map((value) => JSON.stringify(value)).join(", ")];
  const types = [schema.type ?? "anything"].flat();
  const words = [types.join(" or ")];
  if (types.includes("array")) words.push(" of ", ...type(schema.items));
  if (schema.additionalProperties) words.push(" of ", ...type(schema.additionalProperties));
  for (const key of ["format", "pattern", "minimum", "maximum", "multipleOf", "maxLength"]) {
    if (schema[key] !== undefined) words.push(`, ${key} ${schema[key]}`);
  }
  return words;
}

/** Rows of name, type and meaning. */
function rows(list) {
  const line = ([name, schema, text, must]) =>
    element("tr", {},
      element("td", {}, element("code", {}, name), must ? "" : element("span", { class: "note" }, " optional")),
      element("td", {}, ...type(schema)),
      element("td", {}, ...prose(text ?? schema.description)));
  const head = element("tr", {}, ...["Name", "Type", "Meaning"].map((name) => element("th", { scope: "col" }, name)));
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...list.map(line)));
}

const properties = (schema) =>
  rows(Object.entries(schema.properties ?? {}).map(([name, one]) => [name, one, one.description, (schema.required ?? []).includes(name)]));

/** The bodies of a request or an answer. */
function contents(content) {
  return Object.entries(content ?? {}).map(([kind, media]) =>
    element("div", {},
      element("p", {}, element("code", {}, kind), ": ", ...type(media.schema)),
      media.example === undefined ? null : code(media.example)));
}

function answer([status, response]) {
  const headers = Object.entries(response.headers ?? {}).map(([name, header]) => {
    const { schema, description } = header.$ref ? common[name] : header;
    return [name, schema, description, true];
  });
  return element("details", {},
    element("summary", {}, element("strong", {}, status), " ", ...prose(response.description)),
    ...contents(response.content),
    headers.length ? rows(headers) : null);
}

function operation(path, method, one) {
  const scopes = (one.security ?? []).flatMap((way) => way.token ?? []);
  const parameters = (one.parameters ?? []).map((each) => [`${each.name} (${each.in})`, each.schema, each.description, each.required]);
  return element("details", { class: "operation", id: one.operationId },
    element("summary", {},
      element("span", { class: `method ${method}` }, method), element("code", {}, path), " ", ...prose(one.summary)),
    one.description ? element("p", {}, ...prose(one.description)) : null,
    element("p", { class: "note" }, scopes.length ? `Scope of the token, where the server asks for one: ${scopes.join(", ")}` : "Open to all"),
    parameters.length ? rows(parameters) : null,
    one.requestBody ? element("h3", {}, "Body") : null,
    ...contents(one.requestBody?.content),
    element("h3", {}, "Answers"),
    ...Object.entries(one.responses).map(answer));
}

function schema([name, one]) {
  return element("details", { class: "schema", id: name },
    element("summary", {}, element("code", {}, name), " ", ...prose(one.description)),
    one.properties ? properties(one) : element("p", {}, ...type(one)),
    ...(one.allOf ?? []).filter((part) => part.properties).map(properties),
    one.example === undefined ? null : code(one.example));
}

/** The headers that many answers have. */
let common = {};

function show(description) {
  common = description.components.headers;
  document.getElementById("about").append(...prose(`${description.info.description} Version ${description.info.version}.`));
  const operations = Object.entries(description.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, one]) => ({ tag: one.tags?.[0], shown: operation(path, method, one) })));
  const groups = description.tags.flatMap((tag) => [
    element("h2", {}, tag.name, element("span", { class: "note" }, ` ${tag.description}`)),
    ...operations.filter((one) => one.tag === tag.name).map((one) => one.shown),
  ]);
  const main = document.getElementById("main");
  main.replaceChildren(...groups, element("h2", {}, "Schemas"), ...Object.entries(description.components.schemas).map(schema));
  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target?.tagName === "DETAILS") {
      target.open = true;
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", open);
  open();
  document.getElementById("filter").addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase();
    for (const each of main.querySelectorAll(":scope > details")) each.hidden = !each.textContent.toLowerCase().includes(wanted);
  });
}

fetch("/v1/openapi.json")
  .then((response) => (response.ok ? response.json() : Promise.reject(new Error(`status ${response.status}`))))
  .then(show)
  .catch((error) => document.getElementById("main").replaceChildren(element("p", {}, `openapi.json cannot be read: ${error.message}`)));
