// The server of the environment, OpenAI's client for it, and what tests wait for.
import assert from "node:assert/strict";
import OpenAI from "openai";

const url = process.env.OUTRIDER_URL;
const apiKey = process.env.OUTRIDER_KEY || "none-needed";

export const model = process.env.OUTRIDER_MODEL;
export const client = new OpenAI({ baseURL: url + "/v1", apiKey, maxRetries: 0 });

// A bound, not a measure; of more with a sanitized server (sanitized.py).
const patience = 60_000 * Number(process.env.OUTRIDER_TEST_SLOWER ?? 1);

/** Asks the server until so many of its slots are in use. */
export async function untilInUse(wanted) {
  const end = Date.now() + patience;
  for (;;) {
    const reply = await fetch(url + "/slots", { headers: { Authorization: `Bearer ${apiKey}` } });
    const slots = await reply.json();
    const inUse = slots.filter((slot) => slot.is_processing).length;
    if (inUse === wanted) return;
    assert.ok(Date.now() < end, `${inUse} slots are in use, never ${wanted}`);
  }
}
