// Build elements. Text from records becomes text nodes and attribute values alone, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, any>} Attributes */

/**
 * Return an HTML element. Attributes named `on...` are listeners, `style` is an object of properties, true and false
 * set and omit an attribute, `class` takes a text or a list.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Attributes | null} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/**
 * Return an SVG element.
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} name
 * @param {Attributes | null} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function s(name, attributes, ...children) {
  return /** @type {any} */ (fill(/** @type {any} */ (document.createElementNS(SVG, name)), attributes, children));
}

/**
 * Append children to an element.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function append(element, ...children) {
  element.append(...nodes(children));
}

/**
 * Replace the children of an element.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function replace(element, ...children) {
  element.replaceChildren(...nodes(children));
}

/**
 * Return the address of a page of the viewer.
 * @param {string[]} path
 * @param {Record<string, string | string[] | null | undefined>} [query]
 */
export function address(path, query = {}) {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== "") words.append(name, one);
    }
  }
  const text = words.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/**
 * @template {Element} E
 * @param {E} element
 * @param {Attributes | null | undefined} attributes
 * @param {(Child | Child[])[]} children
 * @returns {E}
 */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style")
      for (const [key, part] of Object.entries(value)) /** @type {any} */ (element).style.setProperty(key, part);
    else if (name === "class" && Array.isArray(value)) element.setAttribute("class", value.filter(Boolean).join(" "));
    else if (name === "value" || name === "checked" || name === "selected") /** @type {any} */ (element)[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...nodes(children));
  return element;
}

/** @param {(Child | Child[])[]} children @returns {(Node | string)[]} */
function nodes(children) {
  return children
    .flat()
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : String(child)));
}
