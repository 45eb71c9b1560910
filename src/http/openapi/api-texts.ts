/** Markdown texts of the API reference that are not about a single operation. The documentation and OpenAPI show them. */

export const INTRODUCTION = `Errand runs an AI agent on your behalf: you send an instruction, the agent works in a fresh, isolated Linux sandbox, and you get an answer in natural language with a step-by-step trace. The sandbox is discarded at the end; nothing in it is kept between runs.

Every call needs an API key in the header \`x-svc-api-key\`, and should send \`Api-Revision: 2026-05-20\`, so that the API’s behavior never changes for it. POST and PATCH take JSON with \`Content-Type: application/json\`. A colon in a path may be written as \`%3A\`.`

export const EVENTS_TEXT = `A stream consists of Server-Sent Events (SSE), in the order in which the agent works. Each event has \`id:\` (its number in the interaction’s log: 1, 2, 3 … without gaps), \`event:\` (its name) and \`data:\` (a JSON object). \`completed\` is the last event of every run. To resume after a broken connection, call \`GET /v1beta/interactions/{id}:stream\` with \`Last-Event-ID\`. Ignore event names that you don’t know. The server sends a comment every 15 s to keep an idle connection alive, and disconnects a client that reads nothing for 30 s; it can resume. In the short form, \`usage\` has two fields and \`args\` is JSON text.`
