/* Requests to the server: JSON, and streams of server-sent events over fetch, so that aborting ends the work.
 *
 * Knows HTTP and the form of an error; not what any request is for.
 */

/** A request that failed, with a message for people. `status` is 0 where no server answered. */
export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.name = "ApiError";
    this.status = status;
  }
}

export const OFFLINE = "The playground's server does not answer. Is “endeavour play” still running?";

/** Whether an error only says that a request was overtaken by another. */
export const overtaken = (error) => error?.name === "AbortError";

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    throw overtaken(error) ? error : new ApiError(OFFLINE, 0);
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => null);
  options.signal?.throwIfAborted();
  throw new ApiError(
    body?.error ?? `The server answered ${response.status} ${response.statusText}`,
    response.status,
  );
}

const asJson = (body, signal) => ({
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(body),
  signal,
});

/** The JSON answer to a GET request. Raises `ApiError`. */
export async function get(path, { signal } = {}) {
  return (await request(path, { signal })).json();
}

/** The JSON answer to a POST request with a JSON body. Raises `ApiError`. */
export async function post(path, body, { signal } = {}) {
  return (await request(path, asJson(body, signal))).json();
}

/** Hands on each event of a POST request's answer as `onEvent(name, data)`; resolves when the stream ends. */
export async function stream(path, body, { signal, onEvent }) {
  const response = await request(path, asJson(body, signal));
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const blocks = (rest + decoder.decode(value, { stream: true })).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) emit(block, onEvent);
    }
  } catch (error) {
    throw overtaken(error) || !(error instanceof TypeError) ? error : new ApiError(OFFLINE, 0);
  }
}

function emit(block, onEvent) {
  let name = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
  }
  if (name === "error") throw new ApiError(data.length ? JSON.parse(data.join("\n")).error : OFFLINE, 500);
  if (data.length) onEvent(name, JSON.parse(data.join("\n")));
}
