/* All that views draw with, from one place. */

export * from "./charts.js";
export * from "./drawing.js";
