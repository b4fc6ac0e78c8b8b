/* Answers of the server that are kept, so that nothing is asked twice.
 *
 * Knows keys and requests; not what any answer holds.
 */

import { post } from "./api.js";

/** A map of at most so many answers; the oldest is forgotten first. With a search, they last as long as it does. */
export class Answers extends Map {
  #most;

  /**
   * @param {number} most
   * @param {{subscribe: Function}} [search] the next one may be by another checkpoint, so that nothing is kept beyond it
   */
  constructor(most, search) {
    super();
    this.#most = most;
    search?.subscribe(({ stale }) => stale && this.clear());
  }

  set(key, answer) {
    super.set(key, answer);
    if (this.size > this.#most) this.delete(this.keys().next().value);
    return this;
  }

  /** The answer to a POST request; see `post` in api.js for what it raises. */
  async post(path, body, signal) {
    const key = path + JSON.stringify(body);
    if (!this.has(key)) this.set(key, await post(path, body, { signal }));
    return this.get(key);
  }
}
