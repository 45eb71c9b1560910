/** The API reference as one page: made from the OpenAPI document alone, with no script and nothing from elsewhere. */
import { ERRORS } from '../domain/errors.ts'
import type { Limits, Range } from '../domain/limits.ts'
import { EVENTS, EVENTS_TEXT, INTRODUCTION } from './api-texts.ts'
import { fieldRows, parameterRows, schemaName, table, typeOf } from './docs-fields.ts'
import { type Html, html, inline, prose } from './docs-html.ts'
import type { Json, JsonObject } from './openapi.ts'
import { ERROR_MEANINGS } from './route-docs.ts'

export interface Operation {
  readonly method: string
  readonly path: string
  readonly doc: JsonObject
}

export function renderDocs(document: JsonObject, limits: Limits, baseUrl: string): string {
  const tags = (document.tags as { name: string; description: string }[]).map((tag) => ({
    ...tag,
    operations: operationsOf(document, tag.name),
  }))
  const schemas = (document.components as JsonObject).schemas as Record<string, JsonObject>
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Errand API reference</title>
<link rel="stylesheet" href="/docs/style.css">
<link rel="icon" href="data:,">
</head>
<body>
<nav aria-label="Contents">${contents(tags)}</nav>
<main>
${introduction(baseUrl)}
${tags.map((tag) => html`<h2 id="${anchor(tag.name)}">${tag.name}</h2>${tag.operations.map((op) => section(op, schemas))}`)}
${events()}
${errors()}
${limitsSection(limits)}
${versioning(String((document.info as JsonObject).version))}
<h2 id="objects">Objects</h2>
${Object.entries(schemas).map(([name, schema]) => object(name, schema))}
<footer>Errand · <a href="/openapi.json">openapi.json</a> · OpenAPI ${String(document.openapi)}</footer>
</main>
</body>
</html>`
  return page.html
}

function operationsOf(document: JsonObject, tag: string): Operation[] {
  return Object.entries(document.paths as Record<string, Record<string, JsonObject>>).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, doc]) => (doc.tags as string[]).includes(tag))
      .map(([method, doc]) => ({ method: method.toUpperCase(), path, doc })),
  )
}

function contents(tags: readonly { name: string; operations: readonly Operation[] }[]): Html {
  return html`<a class="brand" href="#top">Errand <span>API</span></a>
<ul>
<li><a href="#start">Quick start</a></li>
${tags.map(
  (tag) =>
    html`<li><a href="#${anchor(tag.name)}">${tag.name}</a><ul>${tag.operations.map(
      ({ method, doc }) =>
        html`<li><a href="#${String(doc.operationId)}"><b class="${method}">${method}</b>${String(doc.summary)}</a></li>`,
    )}</ul></li>`,
)}
<li><a href="#events">Events</a></li>
<li><a href="#errors">Errors</a></li>
<li><a href="#limits">Limits</a></li>
<li><a href="#versioning">Versioning</a></li>
<li><a href="#objects">Objects</a></li>
</ul>`
}

function introduction(baseUrl: string): Html {
  return html`<header id="top"><h1>API reference</h1>${prose(INTRODUCTION)}</header>
<h2 id="start">Quick start</h2>
<pre><code>export ERRAND_URL=${baseUrl}
export ERRAND_API_KEY=…   <i># errand keys create --name me</i>

curl -N "$ERRAND_URL/v1beta/interactions:stream" \\
  -H "x-svc-api-key: $ERRAND_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{"instruction": "What is 17 * 23? Use Python.", "tools": ["code_execution"]}'</code></pre>`
}

function section({ method, path, doc }: Operation, schemas: Record<string, JsonObject>): Html {
  const parameters = (doc.parameters ?? []) as JsonObject[]
  const [body] = contentOf(doc.requestBody as JsonObject | undefined)
  const bodyName = body && schemaName(String(body.schema.$ref))
  const responses = doc.responses as Record<string, JsonObject>
  return html`<section id="${String(doc.operationId)}">
<h3>${String(doc.summary)}</h3>
<p class="route"><b class="${method}">${method}</b><code>${path}</code></p>
${prose(String(doc.description))}
${table('Path', parameterRows(parameters, 'path'))}
${table('Query', parameterRows(parameters, 'query'))}
${table(
  'Headers',
  parameterRows(parameters, 'header').filter(({ name }) => name !== 'Api-Revision'),
)}
${bodyName === undefined ? '' : table('Body', fieldRows(schemas[bodyName] ?? {}))}
<h4>Answer</h4><p>${contentOf(responses['200']).map(
    ({ type, schema }, i) => html`${i > 0 ? ' or ' : ''}<code>200</code> ${answerType(schema)} as <code>${type}</code>`,
  )}</p>
<details class="errors"><summary>Errors: ${Object.keys(responses)
    .filter((status) => status !== '200')
    .join(', ')}</summary><dl class="fields">${Object.entries(responses)
    .filter(([status]) => status !== '200')
    .map(
      ([status, { description }]) =>
        html`<div><dt><code>${status}</code></dt><dd>${inline(String(description))}</dd></div>`,
    )}</dl></details>
<pre><code>${curl(method, path, doc, body?.example)}</code></pre>
</section>`
}

interface Content {
  readonly type: string
  readonly schema: JsonObject
  readonly example: Json | undefined
}

function contentOf(holder: JsonObject | undefined): Content[] {
  const content = (holder?.content ?? {}) as Record<string, { schema: JsonObject; example?: Json }>
  return Object.entries(content).map(([type, { schema, example }]) => ({ type, schema, example }))
}

function answerType(schema: JsonObject): Html {
  if (schema.$ref === undefined && Object.keys((schema.properties ?? {}) as object).length === 0) {
    return schema.type === 'object' ? html`an empty object` : html`the content`
  }
  return typeOf(schema)
}

/** A call that works when the ids in it are replaced. */
function curl(method: string, path: string, doc: JsonObject, example: Json | undefined): string {
  const keyed = (doc.security as unknown[]).length > 0
  const file = path.includes('{name}')
  const url = file ? '"$FILE_URL"' : `"$ERRAND_URL${path.replace('{id}', '$ID').replace('{version}', '1')}"`
  const lines = [`curl${doc.operationId && String(doc.operationId).includes('tream') ? ' -N' : ''} ${url}`]
  if (file) lines[0] += ' -OJ'
  if (method !== 'GET' && !(method === 'POST' && example)) lines[0] += ` -X ${method}`
  if (keyed) lines.push('-H "x-svc-api-key: $ERRAND_API_KEY"', '-H "Api-Revision: 2026-05-20"')
  if (example) lines.push('-H "Content-Type: application/json"', `-d '${JSON.stringify(example, null, 2)}'`)
  return lines.join(' \\\n  ')
}

function events(): Html {
  return html`<h2 id="events">Events</h2>${prose(EVENTS_TEXT)}
<dl class="fields">${EVENTS.map(
    (event) =>
      html`<div><dt><code>${event.name}</code><span><code>${event.data}</code></span></dt><dd>${inline(event.when)}</dd></div>`,
  )}</dl>
<pre><code>id: 3
event: tool_call
data: {"step":1,"name":"code_execution","args":{"code":"print(17 * 23)"}}

id: 4
event: tool_result
data: {"step":2,"output":"391\\n","duration_ms":12}

id: 5
event: partial_output
data: {"text":"17 × 23 is 391."}

id: 6
event: completed
data: {"interactionId":"int_0Wb1xYz3kJ9mQ2pR5sT7uV","status":"completed","usage":{"input_tokens":412, …}}</code></pre>`
}

function errors(): Html {
  const codes = Object.entries(ERRORS) as [keyof typeof ERRORS, { status: number; retryable: boolean }][]
  return html`<h2 id="errors">Errors</h2>
${prose(
  'Every error has one body, and every answer an `X-Request-Id`. Checks go in this order: key, switch, rate, revision, address, media type, size, JSON, fields, and last whether the agent exists. `Retry-After` comes with 429, 500 and 503.',
)}
<pre><code>{
  "error": {
    "code": "invalid_request",
    "message": "\`policy.maxTurnDuration\` must be from 1 to 28,800 seconds.",
    "status": 400,
    "param": "policy.maxTurnDuration",
    "details": [{"param": "policy.maxTurnDuration", "message": "…"}],
    "retryable": false
  },
  "requestId": "req_0Wb1xYz3kJ9mQ2pR5sT7uV"
}</code></pre>
<dl class="fields">${codes.map(
    ([code, { status, retryable }]) =>
      html`<div><dt><code>${code}</code><span>${status}${retryable ? ', retryable' : ''}</span></dt><dd>${inline(ERROR_MEANINGS[code])}</dd></div>`,
  )}</dl>`
}

function limitsSection(limits: Limits): Html {
  const n = (value: number) => value.toLocaleString('en')
  const mib = (bytes: number) => `${n(Math.round(bytes / 1024 / 1024))} MiB`
  const span = ({ min, max, default: usual }: Range) => `${n(min)} to ${n(max)}, default ${n(usual)}`
  const rows: [string, string][] = [
    ['New interactions a minute, a project', n(limits.interactionsPerMinute)],
    ['Other calls a minute, a project', n(limits.callsPerMinute)],
    ['Running at once, a project', `${n(limits.runningPerProject)}, then ${n(limits.queuedPerProject)} wait, then 503`],
    ['policy.maxTurnDuration, seconds', span(limits.maxTurnDuration)],
    ['policy.maxOutputTokens', span(limits.maxOutputTokens)],
    ['policy.maxToolDuration, seconds of one tool call', span(limits.maxToolDuration)],
    ...Object.entries(limits.sandbox).map(([name, range]): [string, string] => [`policy.sandbox.${name}`, span(range)]),
    ['Request body', mib(limits.bodyBytes)],
    ['Inline files of a request', `${n(limits.files)} files, ${mib(limits.inlineFilesBytes)} in all`],
    ['A file by URL', mib(limits.fileBytes)],
    ['Output files of a run', mib(limits.outputFilesBytes)],
    [
      'Instruction · systemInstruction, characters',
      `${n(limits.instructionChars)} · ${n(limits.systemInstructionChars)}`,
    ],
    ['Tools · skills · MCP servers', `${n(limits.tools)} · ${n(limits.skills)} · ${n(limits.mcp)}`],
    ['A skill, as a zip and unpacked', `${mib(limits.skillBytes)}, ${n(limits.skillFiles)} files`],
    ['Labels', `${limits.labels}; name ${limits.labelKeyChars}, value ${limits.labelValueChars} characters`],
    ['JSON', `${limits.jsonDepth} levels deep, 20,000 values`],
    ['Kept after the end', `${n(limits.retentionDays)} days`],
  ]
  return html`<h2 id="limits">Limits</h2>
${prose(
  'As this server’s operator has set them. A call over the rate is 429 and not counted: waiting `Retry-After` seconds is enough. A POST that creates nothing (a wrong field, a missing agent) counts as a call, not as a creation. What is left stands in `RateLimit` and `X-RateLimit-*` on every answer.',
)}
<table>${rows.map(([what, value]) => html`<tr><th scope="row">${what}</th><td>${value}</td></tr>`)}</table>`
}

function versioning(revision: string): Html {
  return html`<h2 id="versioning">Versioning</h2>
${prose(
  `The path carries \`v1beta\`; the header \`Api-Revision\` pins the behaviour to a dated revision. The latest here is \`${revision}\`. Without the header you get the latest one, whatever it is by then: send it always in production. The revision that was used comes back in \`Api-Revision\`. An unknown, malformed or retired one is 400 \`unsupported_api_revision\`, with \`supported\`.`,
)}`
}

function object(name: string, schema: JsonObject): Html {
  const kinds = (schema.oneOf ?? []) as JsonObject[]
  return html`<section id="${name}"><h3>${name}</h3>${prose(String(schema.description ?? ''))}
${table('Fields', fieldRows(schema))}
${kinds.map((kind) => {
  const type = ((kind.properties as JsonObject).type as JsonObject) ?? {}
  return table(`type ${JSON.stringify(type.const ?? (type.enum as string[])?.[0])}`, fieldRows(kind))
})}</section>`
}

function anchor(name: string): string {
  return name.toLowerCase()
}
