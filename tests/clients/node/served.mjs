// The server of the environment, and OpenAI's client for it.
import OpenAI from "openai";

export const model = process.env.OUTRIDER_MODEL;
export const client = new OpenAI({
  baseURL: process.env.OUTRIDER_URL + "/v1",
  apiKey: process.env.OUTRIDER_KEY || "none-needed",
  maxRetries: 0,
});
