/* A graphic as a file: SVG, PNG, JSON, or an HTML page that stands alone.
 *
 * Knows an SVG on the page, its table and its data; not what they show. Files carry their colours as attributes, as
 * they are on the screen, and need neither the style sheet nor a server.
 */

import { h } from "./dom.js";
import { rect } from "./drawing.js";

const STYLES = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-opacity",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linecap",
  "opacity",
  "visibility",
  "font-family",
  "font-size",
  "font-weight",
  "font-style",
  "text-anchor",
  "dominant-baseline",
];
const MARGIN = 16;

/** A copy of an SVG in which every colour and font is an attribute, on the page's background. */
function standalone(graphic) {
  const copy = graphic.cloneNode(true);
  const originals = [graphic, ...graphic.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, i) => {
    const style = getComputedStyle(originals[i]);
    if (style.display === "none") element.setAttribute("display", "none");
    for (const name of STYLES) element.setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "tabindex", "aria-hidden", "role", "id"]) element.removeAttribute(name);
  });
  const [, , width, height] = graphic.getAttribute("viewBox").split(" ").map(Number);
  const [w, t] = [width + 2 * MARGIN, height + 2 * MARGIN];
  const background = getComputedStyle(document.documentElement).getPropertyValue("--surface");
  copy.setAttribute("viewBox", `${-MARGIN} ${-MARGIN} ${w} ${t}`);
  copy.setAttribute("width", w);
  copy.setAttribute("height", t);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.prepend(rect(-MARGIN, -MARGIN, w, t, { fill: resolved(background) }));
  return copy;
}

/** A colour as the browser computes it; custom properties may hold expressions. */
function resolved(colour) {
  const probe = h("span", { hidden: true });
  probe.style.color = colour;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

/** The bytes of a graphic as SVG. */
const svgFile = (graphic) =>
  new Blob([new XMLSerializer().serializeToString(standalone(graphic))], { type: "image/svg+xml" });

/** The bytes of a graphic as PNG, at twice its size on the screen. */
async function pngFile(graphic) {
  const url = URL.createObjectURL(svgFile(graphic));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = h("canvas", { width: 2 * image.width, height: 2 * image.height });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    const file = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    if (!file) throw new Error("it is too large for this browser as a PNG; SVG has no limit");
    return file;
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** The bytes of a page with the graphic and its table, without script or reference to anything else. */
function htmlFile({ title, note, svg, table }) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => resolved(style.getPropertyValue(name));
  const fonts = style.getPropertyValue("--sans").replaceAll('"', "'");
  const css =
    `body{margin:2rem;font:15px/1.5 ${fonts};color:${colour("--ink")};` +
    `background:${colour("--surface")}}svg{max-width:100%;height:auto}table{border-collapse:collapse;margin-top:2rem}` +
    `th,td{padding:.2rem .6rem;border-bottom:1px solid ${colour("--line")};text-align:right}th{text-align:left}`;
  const body = h(
    "body",
    {},
    h("h1", {}, title),
    note ? h("p", {}, note) : null,
    svg ? standalone(svg) : null,
    table ?? null,
  );
  // Elements print themselves escaped; only the rest is put together as text.
  const head = `<meta charset="utf-8">${h("title", {}, title).outerHTML}<style>${css}</style>`;
  return new Blob([`<!doctype html>\n<html lang="en"><head>${head}</head>${body.outerHTML}</html>\n`], {
    type: "text/html",
  });
}

const NAMES = /[^a-z0-9]+/g;

/**
 * Writes one kind of file of a graphic into the browser's downloads.
 *
 * @param {{name: string, note?: string, svg?: SVGElement | (() => SVGElement),
 *   table?: HTMLElement, json?: object}} graphic
 * @param {"svg" | "png" | "json" | "html"} kind
 */
export async function save({ name, note, svg: drawing, table, json }, kind) {
  // For a picture that is drawn for the file: styles apply in the page only.
  const shelf = h("div", { class: "unseen" });
  document.body.append(shelf);
  try {
    const svg = typeof drawing === "function" ? drawing() : drawing;
    if (svg && !svg.isConnected) shelf.append(svg);
    const makers = {
      svg: () => svgFile(svg),
      png: () => pngFile(svg),
      json: () => new Blob([`${JSON.stringify(json, null, 1)}\n`], { type: "application/json" }),
      html: () => htmlFile({ title: name, note, svg, table }),
    };
    download(await makers[kind](), `${name.toLowerCase().replace(NAMES, "-").replace(/^-|-$/g, "")}.${kind}`);
  } finally {
    shelf.remove();
  }
}

function download(file, name) {
  const url = URL.createObjectURL(file);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
